# What the figures share: how the CSV files are read, what each configuration looks like, titles.
# Each figure sets `out`, the folder of bench.csv and train.csv, and loads this.
set datafile separator ","
set datafile columnheaders
set datafile missing NaN
set encoding utf8

# Okabe and Ito's colours, which colour-blind readers can tell apart; the shapes differ as well.
# 1 to 4 are measurements, 11 to 13 the theory of 1 to 3, 9 a limit.
set style line 1 lc rgb "#D55E00" pt 5 ps 1.0 lw 2
set style line 2 lc rgb "#E69F00" pt 9 ps 1.2 lw 2
set style line 3 lc rgb "#0072B2" pt 7 ps 1.0 lw 2
set style line 4 lc rgb "#009E73" pt 13 ps 1.2 lw 2
set style line 9 lc rgb "#555555" lw 1.5 dt 3
set style line 11 lc rgb "#D55E00" lw 1.2 dt 2
set style line 12 lc rgb "#E69F00" lw 1.2 dt 2
set style line 13 lc rgb "#0072B2" lw 1.2 dt 2
set grid lc rgb "#dddddd" lt 1 lw 1
set border 3
set tics nomirror out
set key top left reverse Left samplen 3

configurations = 4
name(i) = word("ps ps-colocated ring mpi", i)
label(i) = i == 1 ? "parameter server" : i == 2 ? "server in a worker" : i == 3 ? "ring" : "Open MPI"

# Is the current row of configuration i?
is(i) = strcol("backend") . (strcol("placement") eq "colocated" ? "-colocated" : "") eq name(i)

# values(FILE, COLUMN, CONDITION): the different numbers of a column, ascending, as a list of words;
# CONDITION is awk's, with c["name"] the place of a column.
values(file, column, condition) = system(sprintf( \
    "awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } %s { print $c[\"%s\"] }' '%s' | sort -nu | tr '\\n' ' '", \
    condition, column, file))

where(network) = network[1:8] eq "loopback" ? \
    "network=loopback: no per-node limit, topology effects do not show" : "network=" . network
size_text(bytes) = bytes >= 1e6 ? sprintf("%.1f MB", bytes / 1e6) : sprintf("%.1f kB", bytes / 1e3)

# Each figure is drawn twice: terminal(1, NAME, W, H) is SVG, terminal(2, ...) PNG.
terminals = 2
terminal(i, name, width, height) = i == 1 ? \
    sprintf("set terminal svg size %d,%d font 'DejaVu Sans,Arial,sans-serif,13' background '#ffffff'; set output '%s/%s.svg'", width, height, out, name) : \
    sprintf("set terminal pngcairo size %d,%d font 'DejaVu Sans,21' fontscale 1 linewidth 2 pointscale 1.8; set output '%s/%s.png'", 2 * width, 2 * height, out, name)
