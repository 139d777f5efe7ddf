# efficiency_vs_size.gp: the least time that any all-reduce among the workers alone could take over
# the time taken, against the size of the message, from bench.csv. Dashed: by theory, without latency.
load "style.gp"
NAME = "efficiency_vs_size"
TITLE = "One all-reduce: least time of W workers alone over the time taken, against size\n" . \
    "above 100%: servers on further machines, or a message so short that a link sends it from what it saved while idle"
YLABEL = "efficiency (%)"
THEORY_NAME = "theory, bytes alone"
Y(x) = 100 * column(EFFICIENCY)
THEORY_Y(x) = 100 * column(EFFICIENCY) * column(TIME) / column(THEORY)
if (words(point_values("$EFFICIENCY != \"NaN\"", "EFFICIENCY")) == 0) { exit message "efficiency_vs_size: no rate of the links is known" }
stats points using (column(OWN) == 1 ? larger(THEORY_Y(0), Y(0)) : NaN) nooutput
set yrange [0 : STATS_max * 1.05]
load "vs_size.gp"
