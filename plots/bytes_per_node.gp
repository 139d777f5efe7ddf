# bytes_per_node.gp: bytes that one node sends in one all-reduce, from bench.csv: what the
# transport counted (bars) against theory (lines).
load "style.gp"
file = "bench.csv"
set datafile separator ","
set datafile columnheaders

network = word(values(file, "network", "1"), 1)
M = focus(values(file, "bytes", "$c[\"workers\"] > 1"))
counts = values(file, "workers", sprintf("$c[\"workers\"] > 1 && $c[\"bytes\"] == %d", M))

if (words(counts) == 0) { exit message "bytes_per_node: no all-reduce of more than one worker to draw" }

# The place of a number of workers on the axis: evenly spaced.
place(workers) = sum [i = 1:words(counts)] (int(word(counts, i)) == workers ? i : 0)
bar = 0.18
row(x) = column("bytes") == M && column("workers") > 1
ring(x) = row(0) && strcol("backend") eq "ring"
one(x) = row(0) && strcol("backend") eq "ps" && strcol("placement") eq "dedicated" && column("servers") == 1
inside(x) = row(0) && strcol("backend") eq "ps" && strcol("placement") eq "colocated" && column("servers") == column("workers")
at(x) = place(column("workers")) + x * bar

set xlabel "workers"
set ylabel sprintf("sent for a message of %s (MB)", size_text(M))
set xrange [0.4 : words(counts) + 0.6]
set yrange [0 : *]
set xtics ("" 0)
do for [i = 1:words(counts)] { set xtics add (word(counts, i) i) }
set boxwidth bar * 0.9
set style fill solid 0.75 noborder
set grid noxtics
set title "Bytes sent by one node in one all-reduce, counted and by theory\n" . where(network)

do for [t = 1:terminals] {
    eval terminal(t, "bytes_per_node", 700, 460)
    plot plain using (ring(0) ? at(-2) : NaN):(column("worker_sent_bytes") / 1e6) \
             with boxes lc rgb COLOUR[10] title "ring: a worker", \
         plain using (one(0) ? at(-1) : NaN):(column("worker_sent_bytes") / 1e6) \
             with boxes lc rgb "#F2B98F" title "1 server: a worker", \
         plain using (one(0) ? at(0) : NaN):(column("server_sent_bytes") / 1e6) \
             with boxes lc rgb COLOUR[1] title "1 server: the server", \
         plain using (inside(0) ? at(1) : NaN):((column("worker_sent_bytes") + column("server_sent_bytes")) / 1e6) \
             with boxes lc rgb COLOUR[4] title "W servers in workers: both of a host", \
         plain using (ring(0) ? at(-2) : NaN):(column("theory_worker_sent_bytes") / 1e6):(bar / 2) \
             with xerrorbars lc rgb "black" lw 1.5 pt 0 title "theory", \
         plain using (one(0) ? at(-1) : NaN):(column("theory_worker_sent_bytes") / 1e6):(bar / 2) \
             with xerrorbars lc rgb "black" lw 1.5 pt 0 notitle, \
         plain using (one(0) ? at(0) : NaN):(column("theory_server_sent_bytes") / 1e6):(bar / 2) \
             with xerrorbars lc rgb "black" lw 1.5 pt 0 notitle, \
         plain using (inside(0) ? at(1) : NaN):((column("theory_worker_sent_bytes") + column("theory_server_sent_bytes")) / 1e6):(bar / 2) \
             with xerrorbars lc rgb "black" lw 1.5 pt 0 notitle
}
