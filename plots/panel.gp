# panel.gp: draws one panel. LIST: the series. CONDITION(0): whether the panel has the current point. X: column of the
# axis.
# Y(0), THEORY_Y(0): measured value and theory. LEGEND: 1 in the panel with the key. ALONE: 1 if the axis has a single
# value; theory is then a short line across it. HAS_INTERVALS: 1 if Y is the time; its 95% interval is drawn as a bar.
# Servers outside workers are in left panels only, so they have no point in the panel with the key.
ONLY_LEFT(series) = LEGEND && words(present(series, "1")) > 0 ? LABEL[int(series)] : ""
plot NaN with linespoints ls 1 title ONLY_LEFT("1"), NaN with linespoints ls 4 title ONLY_LEFT("4"), \
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
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) && column(DOUBTFUL) == 1 ? column(X) : NaN):(Y(0)) \
         with points lc rgb COLOUR[int(word(LIST, k))] pt 2 ps 1.8 lw 1.6 notitle, \
     for [k = 1:words(LIST)] points \
         using (column(SERIES) == word(LIST, k) + 0 && CONDITION(0) ? column(X) : NaN):(Y(0)) \
         smooth unique with linespoints ls int(word(LIST, k)) title LEGEND ? LABEL[int(word(LIST, k))] : "", \
     NaN with points ls 41 title LEGEND && HAS_DOUBTFUL ? "CPU-limited, disturbed or not steady" : "", \
     NaN with lines ls 39 title LEGEND && HAS_THEORY ? THEORY_NAME : ""
