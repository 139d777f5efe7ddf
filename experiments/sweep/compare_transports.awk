# compare_transports.awk LIMITS.csv ROWS.csv: compares rows of `psring bench --csv`, several of each kind. Prints the
# tables that compare_transports.sh describes. Exits with 1 if a size lacks a column, sums are wrong, or the machine's
# limits were not measured. Needs median.awk. The variable `columns` has the plan's names.

FNR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    if (("socket_round_trip_us" in column) && !("tcp_rtt_us" in column)) # as older programs call it
        column["tcp_rtt_us"] = column["socket_round_trip_us"]
    next
}
FILENAME == ARGV[1] {
    trips = trips " " $column["tcp_rtt_us"]
    streams = streams " " $column["stream_bytes_per_s"]
    next
}
{
    name = $column["backend"] == "mpi" ? "mpi-" ($column["mpi_algorithm"] == "" ? "default" : $column["mpi_algorithm"]) : \
        $column["backend"] == "ps" ? "ps-" $column["placement"] "-" $column["servers"] "+" $column["transport"] : \
        $column["backend"] "+" $column["transport"]
    workers = $column["workers"]
    bytes = $column["bytes"]
    if (!(workers in sizes_of_workers))
        worker_counts[++worker_count_count] = workers
    if (!((workers, bytes) in seen)) {
        seen[workers, bytes] = 1
        sizes_of_workers[workers] = sizes_of_workers[workers] " " bytes
    }
    if (("wrong" in column) && $column["wrong"] + 0 > 0)
        wrong[name, workers, bytes]
    time = $column["time_us_median"]
    times[name, workers, bytes] = times[name, workers, bytes] " " time
    if (!((name, workers, bytes) in least) || time + 0 < least[name, workers, bytes])
        least[name, workers, bytes] = time + 0
}

# The smallest median (or fastest round) of the columns whose name matches; "" if there is none.
function best_of(pattern, workers, bytes, fastest, i, time, best) {
    best = ""
    for (i = 1; i <= name_count; i++) {
        if (names[i] !~ pattern || !((names[i], workers, bytes) in times) || (names[i], workers, bytes) in wrong)
            continue
        time = fastest ? least[names[i], workers, bytes] : median_of(times[names[i], workers, bytes])
        if (best == "" || time < best)
            best = time
    }
    return best
}

function ratio(workers, bytes, fastest, ours, theirs) {
    ours = best_of("^(ring|rhd|tree)[+]tcp$", workers, bytes, fastest)
    theirs = best_of("^mpi-", workers, bytes, fastest)
    return ours == "" || theirs == "" ? "" : sprintf("%.2f", ours / theirs)
}

END {
    name_count = split(columns, names, " ")
    if (trips == "") {
        print "the machine's own limits could not be measured"
        bad = 1
    } else
        printf "4 bytes on a plain socket, there and back: %.1f us; plain TCP, two opposite streams: %.1f MB/s each\n",
            median_of(trips), median_of(streams) / 1e6
    for (w = 1; w <= worker_count_count; w++) {
        workers = worker_counts[w]
        printf "\n%d workers; us%*s", workers, 10 - length(workers), ""
        for (i = 1; i <= name_count; i++)
            printf " %*s", width(names[i]), names[i]
        printf " %9s %9s\n", "tcp / mpi", "fastest"
        size_count = split(sizes_of_workers[workers], sizes_here, " ")
        for (s = 1; s <= size_count; s++) {
            bytes = sizes_here[s]
            printf "%20d", bytes
            for (i = 1; i <= name_count; i++) {
                if ((names[i], workers, bytes) in wrong) { # its times mean nothing
                    printf " %*s", width(names[i]), "WRONG"
                    bad = 1
                } else if ((names[i], workers, bytes) in times)
                    printf " %*.1f", width(names[i]), median_of(times[names[i], workers, bytes])
                else {
                    printf " %*s", width(names[i]), "-"
                    bad = 1
                }
            }
            printf " %9s %9s\n", ratio(workers, bytes, 0), ratio(workers, bytes, 1)
        }
    }
    exit bad
}

function width(name) {
    return length(name) > 12 ? length(name) : 12
}
