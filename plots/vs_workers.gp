# vs_workers.gp: draws a figure by number of workers, at the size of keras-cnn's gradient if it was measured, otherwise
# at the largest. One row of panels per ROWS: Y1 and THEORY_Y1, Y2 and THEORY_Y2. The caller sets NAME, TITLE, ROWS,
# YLABEL1, YLABEL2.
M = focus(point_values("", "BYTES"))
if (M == 0) { exit message NAME . ": no all-reduce of more than one worker to draw" }
counts = point_values(sprintf("$BYTES == %d", M), "WORKERS")
HAS_THEORY = words(point_values("$THEORY != \"NaN\"", "THEORY")) > 0
X = WORKERS
ALONE = words(counts) == 1
CONDITION(x) = column(BYTES) == M
# The panels of a row share one scale.
array TOP[2]
do for [row = 1:ROWS] {
    stats points using (CONDITION(0) ? row == 1 ? larger(HAS_INTERVALS ? column(HIGH) : NaN, larger(THEORY_Y1(0), Y1(0))) : larger(THEORY_Y2(0), Y2(0)) : NaN) nooutput
    TOP[row] = STATS_max * 1.05
}
set logscale x 2
set xrange [word(counts, 1) / 1.25 : word(counts, words(counts)) * 1.25]
set xtics (word(counts, 1) word(counts, 1))
do for [i = 1:words(counts)] { set xtics add (word(counts, i) int(word(counts, i))) }

do for [t = 1:terminals] {
    height = 95 + 310 * ROWS + 150
    eval terminal(t, NAME, 1000, height)
    set multiplot layout ROWS, 2 title TITLE . sprintf(", %s", size_text(M)) . "\n" . where \
        margins char 12, screen 0.985, screen 175.0 / height, screen 1 - 95.0 / height spacing char 11, screen 85.0 / height
    do for [p = 1:2 * ROWS] {
        LIST = present(p % 2 ? LEFT : RIGHT, "1")
        LEGEND = p == 2 * ROWS
        Y(x) = p <= 2 ? Y1(0) : Y2(0)
        THEORY_Y(x) = p <= 2 ? THEORY_Y1(0) : THEORY_Y2(0)
        set yrange [0 : TOP[(p + 1) / 2]]
        set key at screen 0.07, screen 100.0 / height left top vertical maxrows 4
        set title p % 2 ? "dedicated servers" : "servers in workers"
        if (p > 2 * ROWS - 2) { set xlabel "workers W" } else { unset xlabel }
        if (p % 2) { set ylabel (p <= 2 ? YLABEL1 : YLABEL2) } else { unset ylabel }
        load "panel.gp"
    }
    unset multiplot
}
