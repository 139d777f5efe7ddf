# Parts of all figures: reading of points, the look of each series, titles. Each figure loads this file.
# gnuplot runs in draw.sh's folder, among the files of psring report --figures. draw.sh sets MODEL_BYTES.
set datafile missing "NaN"
set encoding utf8

# The series of results_series (experiments/bench/results.h), in the colours of Okabe and Ito, which colour-blind
# readers can distinguish. The shapes differ, too; open shapes do not hide others. The theory of a series has its style
# plus 20. Style 39 is all theory in a key, 40 a limit. The page of psring report has the same colours
# (report/palette.css).

array COLOUR[15] = ["#D55E00", "#E69F00", "#CC79A7", "#7A3E9D", "#E69F00", "#E69F00", "#CC79A7", "#B79AD6", "#8B6B3D", "#0072B2", "#56B4E9", "#009E73", "#000000", "#A39800", "#A50F15"]
array SHAPE[15] = [5, 9, 11, 15, 4, 8, 10, 14, 3, 7, 4, 12, 6, 13, 8]
load "names.gp" # LABEL, the names of the series (results_series_name)
IN_WORKERS = COLOUR[8] # servers in workers: lighter than dedicated ones, and open
do for [i = 1:15] {
    # The ring's line is wide and MPI_Allreduce's thin, so that both show where they coincide.
    set style line i lc rgb COLOUR[i] pt SHAPE[i] ps (i > 10 ? 1.5 : 0.9) lw (i == 10 ? 4 : i == 12 ? 1 : 1.8)
    set style line 20 + i lc rgb COLOUR[i] lw 1.1 dt 2
}
set style line 39 lc rgb "#444444" lw 1.1 dt 2
# Style 41 is a cross behind a point that may not show the network (results_is_sound), in a key.
set style line 41 lc rgb "#444444" pt 2 ps 1.8 lw 1.6
set style line 40 lc rgb "#555555" lw 1.5 dt 3
set grid lc rgb "#dddddd" lt 1 lw 1
set border 3
set tics nomirror out
set key top left reverse Left samplen 3

# The series of the left panels (dedicated servers) and of the right panels (servers in workers). Only a few, so that
# the figure is readable; the tables and the page of psring report have all.
# In the order of drawing: MPI_Allreduce first, because its marks are large and hollow, so others show within them.
LEFT = "12 1 4 10"
RIGHT = "12 5 8 9 10"

# The columns of points.txt by name, here and in the awk conditions below: "$BYTES == 4".
points = "points.txt"
COLUMNS = "SERIES OWN WORKERS BYTES TIME THEORY EFFICIENCY PER_MACHINE WORKER_SENT WORKER_THEORY SERVER_SENT SERVER_THEORY LOW HIGH DOUBTFUL"
columns = ""
do for [i = 1:words(COLUMNS)] {
    eval word(COLUMNS, i) . " = " . i
    columns = columns . sprintf("-v %s=%d ", word(COLUMNS, i), i)
}
# point_values(CONDITION, NAME): the distinct numbers of a column, ascending.
point_values(condition, name) = system(sprintf( \
    "awk %s '%s { print $%s }' points.txt | sort -nu | tr '\\n' ' '", columns, condition, name))
# present(LIST, CONDITION): the series of the list, in its order, that have points with CONDITION.
present(list, condition) = system(sprintf( \
    "awk %s '%s { has[$SERIES] } END { n = split(\"%s\", list, \" \"); for (i = 1; i <= n; i++) if (list[i] in has) printf \"%%s \", list[i] }' points.txt", \
    columns, condition, list))

HAS_DOUBTFUL = words(point_values("$DOUBTFUL == 1", "DOUBTFUL")) > 0
HAS_INTERVALS = 0 # see panel.gp
larger(a, b) = a > b ? a : b # b if a is unknown
network = system("cat network.txt")

where = network[1:8] eq "loopback" ? \
    "network=loopback: no per-node limit, topology effects do not show" : "network=" . network
size_text(bytes) = bytes >= 1e6 ? sprintf("%.1f MB", bytes / 1e6) : sprintf("%.1f kB", bytes / 1e3)
# The size of keras-cnn's gradient if it was measured, otherwise the largest size.
focus(sizes) = words(sizes) == 0 ? 0 : strstrt(" " . sizes, sprintf(" %d ", MODEL_BYTES)) ? MODEL_BYTES : int(word(sizes, words(sizes)))

# Each figure is drawn three times: terminal(1, NAME, W, H) is SVG, terminal(2, ...) PNG, terminal(3, ...) PDF with 100
# units per inch.
terminals = 3
terminal(i, name, width, height) = i == 3 ? \
    sprintf("set terminal pdfcairo noenhanced size %.2fin,%.2fin font 'DejaVu Sans,9.4' fontscale 1 linewidth 1.4 pointscale 0.8; set output '%s.pdf'", width / 100.0, height / 100.0, name) : i == 1 ? \
    sprintf("set terminal svg noenhanced size %d,%d font 'DejaVu Sans,Arial,sans-serif,13' background '#ffffff'; set output '%s.svg'", width, height, name) : \
    sprintf("set terminal pngcairo noenhanced size %d,%d font 'DejaVu Sans,21' fontscale 1 linewidth 2 pointscale 1.8; set output '%s.png'", 2 * width, 2 * height, name)
