# winner_map.gp: the fastest way by prediction, of winner_map.csv (psring predict --map). A panel for each kind of cluster
# (rows) and round trip (columns); each has the workers on x and the message on y. Draws the file's first network.
load "style.gp"

array KIND[9] = [LABEL[10], LABEL[11], LABEL[11] . " radix > 2", LABEL[13], "hierarchical", \
    "servers in workers", "servers on further machines", "W in workers + further", LABEL[14]]
array LOOK[9] = [COLOUR[10], COLOUR[11], "#BFE3F7", "#444444", COLOUR[12], IN_WORKERS, COLOUR[4], COLOUR[9], COLOUR[14]]
array NAME_OF[5] = ["workers alone", "workers alone, in racks", "4 workers a host", "with W further machines", \
    "with a server in the switch"]
array WIRING[5] = ["flat", "racks", "shared hosts", "flat", "flat"]
array MACHINES[5] = ["workers alone", "workers alone", "workers alone", "as many spare machines", "a server in the switch"]
TRIPS = "0 1 10 50"

# Each panel's cells: exponents of workers and of size, kind, and whether the cell is in the fitted range.
system("awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } \
    network == \"\" { network = $at[\"network\"]; print network, $at[\"link_bytes_per_s\"] * 8e-6 >\"map_of.txt\" } \
    $at[\"network\"] == network { \
        way = $at[\"way\"]; \
        kind = way == \"ring\" ? 1 : way == \"rhd\" ? 2 : way ~ /^rhd/ ? 3 : way == \"tree\" ? 4 : way == \"hierarchical\" ? 5 : \
            way ~ /colocated/ ? 6 : way ~ /dedicated/ ? 7 : way ~ /mixed/ ? 8 : way ~ /switch/ ? 9 : \"NaN\"; \
        print log($at[\"workers\"]) / log(2), log($at[\"bytes\"] / 1024) / log(4), kind, $at[\"fitted\"] + 0, \
            $at[\"added_rtt_ms\"], \"\\\"\" $at[\"wiring\"] \"\\\"\", \"\\\"\" $at[\"machines\"] \"\\\"\" >\"map.txt\" }' winner_map.csv")
if (system("test -s map.txt && echo yes") ne "yes") { exit message "winner_map: winner_map.csv has no rows" }
map_network = system("cut -d ' ' -f 1 map_of.txt")
map_rate = system("cut -d ' ' -f 2 map_of.txt")

unset grid
unset colorbox
unset key
set xrange [0.5:10.5]
set yrange [-0.5:9.5]
XTICS = '"2" 1, "8" 3, "32" 5, "128" 7, "512" 9'
YTICS = '"1 kB" 0, "16 kB" 2, "256 kB" 4, "4 MB" 6, "64 MB" 8'
NO_XTICS = '"" 1, "" 3, "" 5, "" 7, "" 9'
NO_YTICS = '"" 0, "" 2, "" 4, "" 6, "" 8'
set style fill solid noborder

do for [t = 1:terminals] {
    height = 1180
    eval terminal(t, "winner_map", 1000, height)
    set multiplot layout 5, 4 title sprintf("The fastest way, by prediction: links of %s Mbit/s each way, a machine for each process", map_rate) . \
        "\nfitted to " . map_network . "; each cell has the simplest way within 3% of the fastest" \
        margins char 10, screen 0.985, screen 150.0 / height, screen 1 - 115.0 / height spacing char 2, screen 34.0 / height
    do for [p = 0:19] {
        row = p / 4 + 1
        trip = word(TRIPS, p % 4 + 1)
        first = p % 4 == 0
        set title p > 3 ? "" : trip eq "0" ? "round trip as measured" : "round trip + " . trip . " ms" offset 0, 0.7
        unset label
        if (first) { set label NAME_OF[row] at graph 0, 1.09 left }
        eval "set xtics (" . (p > 15 ? XTICS : NO_XTICS) . ")"
        eval "set ytics (" . (first ? YTICS : NO_YTICS) . ")"
        if (p > 15) { set xlabel "workers W" } else { unset xlabel }
        HERE(x) = stringcolumn(6) eq WIRING[row] && stringcolumn(7) eq MACHINES[row] && column(5) == real(trip)
        if (p == 19) { set key at screen 0.06, screen 80.0 / height left top vertical maxrows 4 sample 1.5 }
        plot for [k = 1:9] "map.txt" using (HERE(0) && column(3) == k ? column(1) : NaN):2:(0.5):(0.5) \
                 with boxxyerror lc rgb LOOK[k] notitle, \
             "map.txt" using (HERE(0) && column(4) == 1 ? column(1) : NaN):2 with points pt 7 ps 0.3 lc rgb "#ffffff" notitle, \
             for [k = 1:p == 19 ? 9 : 0] NaN with boxes lc rgb LOOK[k] title KIND[k], \
             NaN with points pt 6 ps 0.5 lc rgb "#444444" title p == 19 ? "dot: within the fitted range" : ""
    }
    unset multiplot
}
