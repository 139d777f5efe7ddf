# bytes_per_node.gp DIR: bytes that one node sends in one all-reduce, from DIR/bench.csv: what the
# transport counted (bars) against theory (lines).
out = ARG1
load system("dirname '" . ARG0 . "'") . "/style.gp"
file = out . "/bench.csv"

network = word(values(file, "network", "1"), 1)
sizes = values(file, "bytes", "$c[\"workers\"] > 1")
# The gradient of keras-cnn if it was measured, else the largest message.
M = words(sizes) == 0 ? 0 : strstrt(" " . sizes, " 4799528 ") ? 4799528 : int(word(sizes, words(sizes)))
counts = values(file, "workers", sprintf("$c[\"workers\"] > 1 && $c[\"bytes\"] == %d", M))

if (words(counts) == 0) { exit message "bytes_per_node: no all-reduce of more than one worker to draw" }

# The place of a number of workers on the axis: evenly spaced.
place(workers) = sum [i = 1:words(counts)] (int(word(counts, i)) == workers ? i : 0)
bar = 0.24
row(i) = is(i) && column("bytes") == M && column("workers") > 1

set xlabel "workers"
set ylabel sprintf("sent by one node for a message of %s (MB)", size_text(M))
set xrange [0.4 : words(counts) + 0.6]
set yrange [0 : *]
set xtics ("" 0)
do for [i = 1:words(counts)] { set xtics add (word(counts, i) i) }
set boxwidth bar * 0.9
set style fill solid 0.75 noborder
set grid noxtics
set title "Bytes sent by one node in one all-reduce, counted and by theory\n" . where(network)

do for [t = 1:terminals] {
    eval terminal(t, "bytes_per_node", 640, 460)
    plot file using (row(3) ? place(column("workers")) - bar : NaN):(column("worker_sent_bytes") / 1e6) \
             with boxes ls 3 title "ring: a worker", \
         file using (row(1) ? place(column("workers")) : NaN):(column("worker_sent_bytes") / 1e6) \
             with boxes lc rgb "#F2B98F" title "parameter server: a worker", \
         file using (row(1) ? place(column("workers")) + bar : NaN):(column("server_sent_bytes") / 1e6) \
             with boxes ls 1 title "parameter server: the server", \
         file using (row(3) ? place(column("workers")) - bar : NaN):(column("theory_worker_sent_bytes") / 1e6):(bar / 2) \
             with xerrorbars lc rgb "black" lw 1.5 pt 0 title "theory", \
         file using (row(1) ? place(column("workers")) : NaN):(column("theory_worker_sent_bytes") / 1e6):(bar / 2) \
             with xerrorbars lc rgb "black" lw 1.5 pt 0 notitle, \
         file using (row(1) ? place(column("workers")) + bar : NaN):(column("theory_server_sent_bytes") / 1e6):(bar / 2) \
             with xerrorbars lc rgb "black" lw 1.5 pt 0 notitle
}
