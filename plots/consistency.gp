# consistency.gp: throughput, and time to the target accuracy, of each kind of consistency, with equally fast workers
# and with one slow worker; from consistency.csv.
load "style.gp"
load "consistency_facts.gp"

set style fill solid 0.85 noborder
set boxwidth 0.4
set key bmargin center horizontal Left reverse samplen 1 width 2
set xtics nomirror scale 0
set grid noxtics ytics
set yrange [0 : *]
set offsets 0.6, 0.6, graph 0.08, 0

FILE = "modes.txt"
text(value, format) = value > 0 ? sprintf(format, value) : ""
never(value) = value < 0 ? "never" : ""
height(value) = value > 0 ? value : 0

do for [t = 1:terminals] {
    eval terminal(t, "consistency", 1060, 440)
    LABELS = t == 1 ? ",11" : ",17"
    set multiplot layout 1,2 title FACTS
    set title "Throughput (higher is better)"
    set ylabel "images/s, all workers"
    plot FILE using ($0 - 0.2):2:xtic(1) with boxes lc rgb COLOUR[10] title "all workers equally fast", \
         "" using ($0 + 0.2):6 with boxes lc rgb COLOUR[1] title "one computes " . SLOW, \
         "" using ($0 - 0.2):2:(text($2, "%.0f")) with labels font LABELS offset -0.5,0.6 notitle, \
         "" using ($0 + 0.2):6:(text($6, "%.0f")) with labels font LABELS offset 0.5,0.6 notitle
    set title "Time to " . TARGET . "% of the test images (lower is better)"
    set ylabel "seconds (column: median; line: all seeds)"
    plot FILE using ($0 - 0.2):(height($3)):xtic(1) with boxes lc rgb COLOUR[10] title "all workers equally fast", \
         "" using ($0 + 0.2):(height($7)) with boxes lc rgb COLOUR[1] title "one computes " . SLOW, \
         "" using ($0 - 0.2):(height($4)):(0):($5 > 0 ? $5 - $4 : 0) with vectors nohead lc rgb "#222222" lw 1.5 notitle, \
         "" using ($0 + 0.2):(height($8)):(0):($9 > 0 ? $9 - $8 : 0) with vectors nohead lc rgb "#222222" lw 1.5 notitle, \
         "" using ($0 - 0.2):(height(larger($3, $5))):(text($3, "%.0f")) with labels font LABELS offset 0,0.6 notitle, \
         "" using ($0 - 0.2):(0):(never($3)) with labels font LABELS rotate by 90 left offset 0,0.5 notitle, \
         "" using ($0 + 0.2):(height(larger($7, $9))):(text($7, "%.0f")) with labels font LABELS offset 0,0.6 notitle, \
         "" using ($0 + 0.2):(0):(never($7)) with labels font LABELS rotate by 90 left offset 0,0.5 notitle
    unset multiplot
}
