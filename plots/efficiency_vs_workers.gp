# efficiency_vs_workers.gp: efficiency of one all-reduce against the number of workers, from
# bench.csv: of the workers' links, and of all machines' (servers of their own count as machines).
load "style.gp"
NAME = "efficiency_vs_workers"
TITLE = "One all-reduce: least time of W workers alone over the time taken"
THEORY_NAME = "theory, bytes alone"
ROWS = 2
YLABEL1 = "efficiency a worker (%)"
YLABEL2 = "efficiency a machine (%)"
Y1(x) = 100 * column(EFFICIENCY)
THEORY_Y1(x) = 100 * column(EFFICIENCY) * column(TIME) / column(THEORY)
Y2(x) = 100 * column(PER_MACHINE)
THEORY_Y2(x) = 100 * column(PER_MACHINE) * column(TIME) / column(THEORY)
if (words(point_values("$EFFICIENCY != \"NaN\"", "EFFICIENCY")) == 0) { exit message "efficiency_vs_workers: no rate of the links is known" }
load "vs_workers.gp"
