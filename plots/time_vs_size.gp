# time_vs_size.gp: time of one all-reduce by message size, from bench.csv. Dashed: theory, bytes / link rate, without
# latency.
load "style.gp"
NAME = "time_vs_size"
TITLE = "One all-reduce: time by size (W workers), with 95% intervals"
YLABEL = "time (ms)"
THEORY_NAME = "theory, bytes and distance"
HAS_INTERVALS = 1
Y(x) = column(TIME)
THEORY_Y(x) = column(THEORY)
times = point_values("", "TIME")
set logscale y
set format y "%g"
set yrange [word(times, 1) / 2 : word(times, words(times)) * 2]
load "vs_size.gp"
