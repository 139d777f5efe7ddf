# cpu_vs_size.gp: processor seconds of all ranks per GB of messages, by message size, from bench.csv. The left panel has
# one server, the right panel the ring, each over all transports. MPI_Allreduce is in both panels.
load "style.gp"

processors = "processors.txt"
values(which) = system(sprintf("awk '{ print $%d }' processors.txt | sort -g -u | tr '\\n' ' '", which))
workers = values(3)
if (words(workers) == 0) { exit message "cpu_vs_size: no processor seconds to draw" }
sizes = values(4)
seconds = values(5)

# Each topology has one colour, darker for a transport with fewer layers. MPI_Allreduce has line style 12.
array NAMES[3] = ["over zmq", "over mpi", "over tcp"]
array TITLES[2] = [LABEL[1], LABEL[10]]
array TINTS[6] = ["#F2B98F", "#E58A4B", COLOUR[1], "#A3CBE5", "#4F9FD0", COLOUR[10]]
array MARKS[6] = [4, 2, SHAPE[1], 6, 2, SHAPE[10]]
do for [i = 1:6] { set style line 100 + i lc rgb TINTS[i] pt MARKS[i] ps 1.1 lw 1.8 }
at(topology, transport) = column(1) == topology && column(2) == transport ? column(4) : NaN

set logscale xy
set format x "%.0s %cB"
set format y "%g"
set xrange [word(sizes, 1) / 1.5 : word(sizes, words(sizes)) * 1.5]
set yrange [word(seconds, 1) / 1.5 : word(seconds, words(seconds)) * 1.5]
set xlabel "message size"
set key at graph -0.05, graph -0.24 left top vertical maxrows 2 reverse Left samplen 2 width -7 # below the panels, because lines may be anywhere

do for [t = 1:terminals] {
    height = 540.0
    eval terminal(t, "cpu_vs_size", 1000, height)
    set multiplot layout 1, 2 title sprintf("Processor seconds of all ranks per GB of messages (%d workers)\n", int(word(workers, 1))) . where \
        margins char 12, screen 0.985, screen 155.0 / height, screen 1 - 95.0 / height spacing char 11, char 0
    do for [topology = 1:2] {
        set title TITLES[topology]
        if (topology == 1) { set ylabel "processor s / GB" } else { unset ylabel }
        set label 1 topology == 2 ? "User and system time, servers' as well. MPI_Allreduce spins while it waits." : "" at screen 0.07, screen 14.0 / height left
        plot for [k = 1:3] processors using (at(topology, k)):5 \
                 smooth unique with linespoints ls 100 + 3 * (topology - 1) + k title NAMES[k], \
             processors using (at(3, 2)):5 smooth unique with linespoints ls 12 title LABEL[12]
    }
    unset multiplot
}
