# time_vs_workers.gp: time of one all-reduce by number of workers, from bench.csv.
load "style.gp"
NAME = "time_vs_workers"
TITLE = "One all-reduce: time by workers, with 95% intervals"
THEORY_NAME = "theory, bytes and distance"
HAS_INTERVALS = 1
ROWS = 1
YLABEL1 = "time (ms)"
Y1(x) = column(TIME)
THEORY_Y1(x) = column(THEORY)
Y2(x) = NaN
THEORY_Y2(x) = NaN
load "vs_workers.gp"
