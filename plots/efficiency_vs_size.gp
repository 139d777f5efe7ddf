# efficiency_vs_size.gp: efficiency by message size, from bench.csv: the shortest possible time of an all-reduce among
# the workers alone / the time taken. Dashed: theory.
load "style.gp"
NAME = "efficiency_vs_size"
TITLE = "One all-reduce: shortest possible time of W workers alone / time taken, by size\n" . \
    "above 100%: servers add links, or a short message fits into the burst of an idle link"
YLABEL = "efficiency (%)"
THEORY_NAME = "theory, bytes and distance"
Y(x) = 100 * column(EFFICIENCY)
THEORY_Y(x) = 100 * column(EFFICIENCY) * column(TIME) / column(THEORY)
if (words(point_values("$EFFICIENCY != \"NaN\"", "EFFICIENCY")) == 0) { exit message "efficiency_vs_size: the link rate is unknown" }
stats points using (column(OWN) == 1 ? larger(THEORY_Y(0), Y(0)) : NaN) nooutput
set yrange [0 : STATS_max * 1.05]
load "vs_size.gp"
