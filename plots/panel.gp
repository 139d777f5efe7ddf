# panel.gp: draws one panel. LIST: the series. CONDITION(0): whether the panel has the current point. X: column of the
# axis.
# Y(0), THEORY_Y(0): measured value and theory. LEGEND: 1 in the panel with the key. ALONE: 1 if the axis has a single
# value; theory is then a short line across it. HAS_INTERVALS: 1 if Y is the time; its 95% interval is drawn as a bar.
# One server outside workers is in left panels only. If one in a worker was measured, it has the same look and name.
ONLY_LEFT = LEGEND && words(present("1", "1")) > 0 && words(present("5", "1")) == 0
plot NaN with linespoints ls 1 title ONLY_LEFT ? LABEL[1] : "", \
     for [k = 1:ALONE ? words(LIST) : 0] points \
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
