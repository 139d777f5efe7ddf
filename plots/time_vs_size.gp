# time_vs_size.gp: time of one all-reduce by message size, from bench.csv. Dashed: theory, from bytes,
# link rate and round trip.
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
# An interval may be wider than half and twice the times.
ends = point_values("$LOW > 0 && $LOW != \"NaN\"", "LOW") . point_values("$HIGH != \"NaN\"", "HIGH")
least = word(times, 1) / 2
most = word(times, words(times)) * 2
do for [end in ends] {
    if (end * 0.9 < least) { least = end * 0.9 }
    if (end * 1.1 > most) { most = end * 1.1 }
}
set yrange [least : most]
load "vs_size.gp"
