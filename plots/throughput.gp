# throughput.gp: images/s of paced training against the number of workers, from train.csv.
load "style.gp"
file = "train.csv"
set datafile separator ","
set datafile columnheaders

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

# Series as in series.awk, but that MPI_Allreduce is as the library chooses.
DRAWN = "1 4 8 10 12"
array NAMES[5] = ["1 server", "W servers", "W servers in workers", "ring", "MPI_Allreduce"]
own(x) = strcol("placement") eq "dedicated"
all(x) = column("servers") == column("workers")
series(x) = strcol("network") eq "time-slicing" ? 0 : strcol("backend") eq "ring" ? 10 : strcol("backend") eq "mpi" ? 12 : strcol("backend") ne "ps" ? 0 : \
    own(0) && column("servers") == 1 ? 1 : own(0) && all(0) ? 4 : strcol("placement") eq "colocated" && all(0) ? 8 : 0
set style line 8 lc rgb "#8B6B3D" pt 11 ps 0.9 lw 1.8

do for [t = 1:terminals] {
    eval terminal(t, "throughput", 700, 460)
    plot for [i = 1:words(DRAWN)] file \
             using (series(0) == word(DRAWN, i) + 0 && strcol("compute") eq compute ? column("workers") : NaN):(column("images_per_s")) \
             smooth unique with linespoints ls int(word(DRAWN, i)) title NAMES[i], \
         x * batch / paced_ms * 1e3 ls 40 title "if averaging were free"
}
