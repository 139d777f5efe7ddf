# vs_size.gp: draws a figure by message size, with one row of panels per number of workers. The left panels have
# dedicated servers, the right ones servers in workers. The caller sets NAME, TITLE, YLABEL, THEORY_NAME, Y, THEORY_Y
# and the y axis.

# Leave out numbers of workers with a single size, unless all have a single size.
all_counts = point_values("", "WORKERS")
counts = ""
do for [N in all_counts] {
    if (words(point_values("$WORKERS == " . N, "BYTES")) > 1) { counts = counts . N . " " }
}
if (words(counts) == 0) { counts = all_counts }
rows = words(counts)
if (rows == 0) { exit message NAME . ": no all-reduce of more than one worker to draw" }
HAS_THEORY = words(point_values("$THEORY != \"NaN\"", "THEORY")) > 0
sizes = point_values("", "BYTES")
X = BYTES
set logscale x
set format x "%.0s %cB"
set xrange [word(sizes, 1) / 1.5 : word(sizes, words(sizes)) * 1.5]

do for [t = 1:terminals] {
    height = 130 + 290 * rows + 130
    eval terminal(t, NAME, 1000, height)
    set multiplot layout rows, 2 title TITLE . "\n" . where \
        margins char 12, screen 0.985, screen 170.0 / height, screen 1 - 95.0 / height spacing char 11, screen 85.0 / height
    do for [p = 1:2 * rows] {
        N = int(word(counts, (p + 1) / 2))
        all = p % 2 ? LEFT : RIGHT
        ALONE = words(point_values("$WORKERS == " . N, "BYTES")) == 1
        CONDITION(x) = column(WORKERS) == N && column(OWN) == 1
        # The last panel has the only key. Its series have the same colours in the left panels.
        LIST = all
        LEGEND = p == 2 * rows
        if (LEGEND) { LIST = present(all, "1") }
        set key at screen 0.07, screen 100.0 / height left top vertical maxrows 4
        set title sprintf("%d workers, servers %s", N, p % 2 ? "outside workers" : "in workers")
        if (p > 2 * rows - 2) { set xlabel "message size" } else { unset xlabel }
        if (p % 2) { set ylabel YLABEL } else { unset ylabel }
        load "panel.gp"
    }
    unset multiplot
}
