# panel.gp: one panel. LIST: series; CONDITION(0): does the current point belong? X: column of the axis;
# Y(0), THEORY_Y(0): the measured value and theory's; LEGEND: 1 in the panel that carries the key; ALONE: 1 where the axis
# has one value, at which no line can be drawn: theory is a short one across it. HAS_INTERVALS: 1 where Y is the time, whose
# 95% interval is drawn as a bar.
plot for [k = 1:ALONE ? words(LIST) : 0] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) / 1.06 : NaN):(THEORY_Y(0)):(column(X) * 0.12):(0) \
         with vectors nohead ls 20 + int(word(LIST, k)) notitle, \
     for [k = 1:words(LIST)] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) : NaN):(THEORY_Y(0)) \
         smooth unique with lines ls 20 + int(word(LIST, k)) notitle, \
     for [k = 1:HAS_INTERVALS ? words(LIST) : 0] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) : NaN):(Y(0)):(column(LOW)):(column(HIGH)) \
         with yerrorbars lc rgb COLOUR[int(word(LIST, k))] lw 1.2 pt 0 notitle, \
     for [k = 1:words(LIST)] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) : NaN):(Y(0)) \
         smooth unique with linespoints ls int(word(LIST, k)) title LEGEND ? LABEL[int(word(LIST, k))] : "", \
     NaN with lines ls 39 title LEGEND && HAS_THEORY ? THEORY_NAME : ""
