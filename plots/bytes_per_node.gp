# bytes_per_node.gp: bytes that one node sends in one all-reduce, from bench.csv: counted by the
# transport (bars) and by theory (lines).
load "style.gp"

M = focus(point_values("", "BYTES"))
counts = point_values(sprintf("$BYTES == %d", M), "WORKERS")

if (words(counts) == 0) { exit message "bytes_per_node: no all-reduce of more than one worker to draw" }

# Numbers of workers are evenly spaced. Each has 1 to 4 bars around it.
bar = 0.18
place(workers) = sum [i = 1:words(counts)] (int(word(counts, i)) == workers ? i : 0)
at(b) = place(column(WORKERS)) + (b - 2.5) * bar

# One bar each: series, and bytes sent. For servers in workers, the bytes of both processes of a host are added.
BARS = 4
array SERIES_OF[BARS] = [10, 1, 1, 8]
array NAMES[BARS] = [LABEL[10] . ": a worker", LABEL[1] . ": a worker", LABEL[1] . ": the server", LABEL[8] . ": a worker and its server"]
array FILL[BARS] = [COLOUR[10], "#F2B98F", COLOUR[1], IN_WORKERS]
bytes(b, worker, server) = column(BYTES) != M || column(SERIES) != SERIES_OF[b] ? NaN : \
    (b == 3 ? 0 : column(worker)) + (b < 3 ? 0 : column(server))

set xlabel "workers W"
set ylabel "bytes sent (MB)"
set xrange [0.4 : words(counts) + 0.6]
set yrange [0 : *]
set xtics ("" 0)
do for [i = 1:words(counts)] { set xtics add (word(counts, i) i) }
set boxwidth bar * 0.9
set style fill solid 0.75 noborder
set grid noxtics
set title sprintf("Bytes sent by one node in one all-reduce of %s, counted and by theory\n", size_text(M)) . where

do for [t = 1:terminals] {
    eval terminal(t, "bytes_per_node", 700, 460)
    plot for [b = 1:BARS] points using (at(b)):(bytes(b, WORKER_SENT, SERVER_SENT) / 1e6) \
             with boxes lc rgb FILL[b] title NAMES[b], \
         for [b = 1:BARS] points using (at(b)):(bytes(b, WORKER_THEORY, SERVER_THEORY) / 1e6):(bar / 2) \
             with xerrorbars lc rgb "black" lw 1.5 pt 0 title b == 1 ? "theory" : ""
}
