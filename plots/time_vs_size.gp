# time_vs_size.gp DIR: time of one all-reduce against its size, from DIR/bench.csv, a panel for each
# number of workers. Dashed: theory from the rate of a link alone, without latency.
out = ARG1
load system("dirname '" . ARG0 . "'") . "/style.gp"
file = out . "/bench.csv"

network = word(values(file, "network", "1"), 1)
rate = word(values(file, "link_bytes_per_s", "1"), 1)
link = strlen(rate) ? rate + 0 : 0 # bytes/s each way; 0: no limit
counts = values(file, "workers", "$c[\"workers\"] > 1")
panels = words(counts)

if (panels == 0) { exit message "time_vs_size: no all-reduce of more than one worker to draw" }

set logscale xy
set format x "%.0s %cB"
set format y "%g"
set xlabel "size of the message"
set ylabel "time (ms), median of the slowest rank"
sizes = values(file, "bytes", "1")
set xrange [word(sizes, 1) / 1.5 : word(sizes, words(sizes)) * 1.5]
times = values(file, "time_us_median", "$c[\"workers\"] > 1")
set yrange [word(times, 1) / 2e3 : word(times, words(times)) / 3e2]

# Milliseconds to move `share` messages of M bytes over one link.
ms(M, share) = link > 0 && share > 0 ? 1e3 * share * M / link : NaN

do for [t = 1:terminals] {
    width = 300 + 400 * panels
    eval terminal(t, "time_vs_size", width, 460)
    set multiplot layout 1, panels title "One all-reduce: time against size, " . where(network) \
        margins char 10, screen 1 - 225.0 / width, char 4.5, screen 0.83 spacing char 11
    do for [p = 1:panels] {
        N = int(word(counts, p))
        set title sprintf("%d workers", N)
        # One legend for all panels, on their right.
        set key at screen 1 - 215.0 / width, screen 0.5 left center vertical
        if (p > 1) { unset key }
        plot for [i = 1:configurations] file \
                 using (is(i) && column("workers") == N ? column("bytes") : NaN):(column("time_us_median") / 1e3) \
                 smooth unique with linespoints ls i title label(i), \
             ms(x, N) ls 11 title link > 0 ? "theory: N M/B" : "", \
             ms(x, N - 1) ls 12 title link > 0 ? "theory: (N-1) M/B" : "", \
             ms(x, 2.0 * (N - 1) / N) ls 13 title link > 0 ? "theory: 2(N-1)/N M/B" : "", \
             ms(x, 1) ls 9 title link > 0 ? "M/B: once over a link" : ""
    }
    unset multiplot
}
