# throughput.gp: images/s of paced training by number of workers, from train.csv.
load "style.gp"
load "facts.gp"

counts = system("awk '{ print $3 }' training.txt | sort -nu | tr '\\n' ' '")
if (words(counts) == 0) { exit message "throughput: no paced training to draw" }
most = word(counts, words(counts)) + 0

# Both axes start at 0, so free averaging is a straight line, and losses have their true length.
set xlabel "workers W"
set ylabel "images/s, all workers"
set xrange [0 : most * 1.1]
set yrange [0 : *]
set xtics ("0" 0)
do for [i = 1:words(counts)] { set xtics add (word(counts, i) int(word(counts, i))) }
set title sprintf("Training %s, %g ms of computation per step (%d images per worker)\n%s", TRAINED, PACED_MS, BATCH, where)

DRAWN = "1 4 8 10 12"

do for [t = 1:terminals] {
    eval terminal(t, "throughput", 700, 460)
    plot for [i = 1:words(DRAWN)] "training.txt" using ($1 == word(DRAWN, i) + 0 ? $3 : NaN):4 \
             smooth unique with linespoints ls int(word(DRAWN, i)) title LABEL[int(word(DRAWN, i))], \
         x * BATCH / PACED_MS * 1e3 ls 40 title "if averaging were free"
}
