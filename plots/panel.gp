# panel.gp: one panel. LIST: series; CONDITION(0): does the current point belong? X: column of the axis;
# Y(0), THEORY_Y(0): the measured value and theory's; LEGEND: 1 in the panel that carries the key;
# BUSY_LIST: those of LIST with points here at which the CPUs were busy, and 0, which none is, because an empty
# list is drawn, too; ALL_BUSY: those of all panels.
plot for [k = 1:words(LIST)] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) : NaN):(THEORY_Y(0)) \
         smooth unique with lines ls 20 + int(word(LIST, k)) notitle, \
     for [k = 1:words(LIST)] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) : NaN):(Y(0)) \
         smooth unique with linespoints ls int(word(LIST, k)) title LEGEND ? LABEL[int(word(LIST, k))] : "", \
     for [k = 1:words(BUSY_LIST)] points \
         using (column(SERIES) == word(BUSY_LIST, k) + 0 && CONDITION(0) && column(BUSY) > 0 ? column(X) : NaN):(Y(0)) \
         with points ls 50 + int(word(BUSY_LIST, k)) notitle, \
     NaN with points ls 19 title LEGEND && words(ALL_BUSY) ? sprintf("CPUs over %.0f%% busy", BUSY_PERCENT) : "", \
     NaN with points ls 62 title LEGEND && strstrt(" " . ALL_BUSY, " 12 ") ? "busy, but by spinning" : "", \
     NaN with lines ls 39 title LEGEND && HAS_THEORY ? THEORY_NAME : ""
