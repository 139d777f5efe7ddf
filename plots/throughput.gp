# throughput.gp DIR: images/s of paced training against the number of workers, from DIR/train.csv.
out = ARG1
load system("dirname '" . ARG0 . "'") . "/style.gp"
file = out . "/train.csv"

network = word(values(file, "network", "1"), 1)
computes = values(file, "compute", "$c[\"compute\"] ~ /^paced:/")
if (words(computes) == 0) { exit message "throughput: no paced training to draw" }
compute = word(computes, 1) # paced:MS
paced_ms = compute[7:] + 0
batch = word(values(file, "batch", "$c[\"compute\"] ~ /^paced:/"), 1) + 0
counts = values(file, "workers", "$c[\"compute\"] ~ /^paced:/")
most = word(counts, words(counts)) + 0

set xlabel "workers"
set ylabel "training throughput (images/s), both axes logarithmic"
set logscale xy
set xrange [0.8 : most * 1.25]
set xtics (1)
set ytics (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000)
do for [i = 1:words(counts)] { set xtics add (int(word(counts, i))) }
set title sprintf("Training keras-cnn, %g ms of computation a step (%d images a worker)\n%s", \
    paced_ms, batch, where(network))

do for [t = 1:terminals] {
    eval terminal(t, "throughput", 640, 460)
    plot for [i = 1:configurations] file \
             using (is(i) && strcol("compute") eq compute ? column("workers") : NaN):(column("images_per_s")) \
             smooth unique with linespoints ls i title label(i), \
         x * batch / paced_ms * 1e3 ls 9 title "if averaging were free"
}
