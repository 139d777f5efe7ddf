# time_vs_workers.gp DIR: time of one all-reduce against the number of workers, from DIR/bench.csv.
out = ARG1
load system("dirname '" . ARG0 . "'") . "/style.gp"
file = out . "/bench.csv"
NAME = "time_vs_workers"
TITLE = "One all-reduce: time against workers"
THEORY_NAME = "theory, bytes alone"
ROWS = 1
YLABEL1 = "time (ms)"
Y1(x) = column(TIME)
THEORY_Y1(x) = column(THEORY)
Y2(x) = NaN
THEORY_Y2(x) = NaN
load here . "/vs_workers.gp"
