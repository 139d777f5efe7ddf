# efficiency_vs_workers.gp: efficiency of one all-reduce by number of workers, from bench.csv: per
# worker link, and per machine (dedicated servers count as machines).
load "style.gp"
NAME = "efficiency_vs_workers"
TITLE = "One all-reduce: shortest possible time of W workers alone / time taken"
THEORY_NAME = "theory, bytes and distance"
ROWS = 2
YLABEL1 = "efficiency per worker (%)"
YLABEL2 = "efficiency per machine (%)"
Y1(x) = 100 * column(EFFICIENCY)
THEORY_Y1(x) = 100 * column(EFFICIENCY) * column(TIME) / column(THEORY)
Y2(x) = 100 * column(PER_MACHINE)
THEORY_Y2(x) = 100 * column(PER_MACHINE) * column(TIME) / column(THEORY)
if (words(point_values("$EFFICIENCY != \"NaN\"", "EFFICIENCY")) == 0) { exit message "efficiency_vs_workers: the link rate is unknown" }
load "vs_workers.gp"
