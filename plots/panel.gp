# panel.gp: one panel. LIST: series; CONDITION(0): does the current point belong? X: column of the axis;
# Y(0), THEORY_Y(0): the measured value and theory's; LEGEND: 1 in the panel that carries the key.
plot for [k = 1:words(LIST)] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) : NaN):(THEORY_Y(0)) \
         smooth unique with lines ls 20 + int(word(LIST, k)) notitle, \
     for [k = 1:words(LIST)] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) : NaN):(Y(0)) \
         smooth unique with linespoints ls int(word(LIST, k)) title LEGEND ? LABEL[int(word(LIST, k))] : "", \
     points using (strstrt(" " . LIST . " ", sprintf(" %d ", column(SERIES))) && CONDITION(0) && column(LIMITED) > 0 ? column(X) : NaN):(Y(0)) \
         with points ls 19 title LEGEND ? "limited by the CPUs" : "", \
     NaN with lines ls 39 title LEGEND && HAS_THEORY ? THEORY_NAME : ""
