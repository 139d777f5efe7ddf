# time_vs_size.gp DIR: time of one all-reduce against its size, from DIR/bench.csv. Dashed: theory, the
# column theory_time_us, from the rate of a link alone, without latency.
out = ARG1
load system("dirname '" . ARG0 . "'") . "/style.gp"
file = out . "/bench.csv"
NAME = "time_vs_size"
TITLE = "One all-reduce: time against size (W workers)"
YLABEL = "time (ms)"
THEORY_NAME = "theory, bytes alone"
Y(x) = column(TIME)
THEORY_Y(x) = column(THEORY)
times = point_values("", TIME)
set logscale y
set format y "%g"
set yrange [word(times, 1) / 2 : word(times, words(times)) * 2]
load here . "/vs_size.gp"
