# summary.awk: what bench.csv and train.csv say, as tables and sentences for a newcomer.
#
#   awk -v model_bytes=4799528 -v cores=2 -v failures=0 -v out=DIR -f summary.awk bench.csv train.csv
#
# Columns are found by name, so further ones may follow. Theory is the column theory_time_us: bytes alone,
# on the link's rate that was measured in the same run where link_source says probe, else the nominal.
#
# A configuration is "ring", "rhd", "mpi ALGORITHM", "ps dedicated K" or "ps colocated K", K servers, or
# "ps mixed K", a server in each worker and K spare ones.

BEGIN {
    FS = ","
    CPU_LIMITED = 0.85
}

FNR == 1 {
    delete column
    for (i = 1; i <= NF; i++)
        column[$i] = i
    is_bench = "algbw_bytes_per_s" in column
    next
}

function field(name) {
    return column[name] ? $column[name] : ""
}

function configuration(backend, placement, servers, algorithm) {
    if (backend == "mpi")
        return "mpi " (algorithm == "" ? "default" : algorithm)
    return backend == "ps" ? "ps " placement " " servers : backend
}

# Processes that share a GPU take turns on it: their times are no one's to compare.
field("network") == "time-slicing" { next }

# Of rows with compressed messages, others speak.
is_bench && field("compress") != "" && field("compress") != "none" { next }

is_bench {
    workers = field("workers")
    bytes = field("bytes")
    who = configuration(field("backend"), field("placement"), field("servers"), field("mpi_algorithm"))
    key = who SUBSEP workers SUBSEP bytes
    network = field("network")
    link[key] = field("link_bytes_per_s") + 0
    note_link(link[key], field("link_source"), field("nominal_link_bytes_per_s"))
    low_us[key] = field("time_us_median_low")
    high_us[key] = field("time_us_median_high")
    intervals += low_us[key] != ""
    busy[key] = field("cpu_busy")
    if (limits(key))
        limited++
    transport[field("backend")] = field("transport")
    time_us[key] = field("time_us_median")
    theory_us[key] = field("theory_time_us")
    machines[key] = workers + (field("placement") ~ /^(dedicated|mixed)$/ ? field("servers") : 0)
    all_keys[key]
    if (field("backend") == "mpi" && (!((workers, bytes) in fastest) || time_us[key] < time_us[fastest[workers, bytes]]))
        fastest[workers, bytes] = key
    efficiency[key] = field("efficiency")
    worker_sent[key] = field("worker_sent_bytes")
    worker_theory[key] = field("theory_worker_sent_bytes")
    server_sent[key] = field("server_sent_bytes")
    server_theory[key] = field("theory_server_sent_bytes")
    wrong += field("wrong")
    elements += bytes / 4 * field("iters")
    bench_workers[workers]
    sizes[bytes]
    sizes_of[workers, bytes]
    next
}

{
    workers = field("workers")
    who = configuration(field("backend"), field("placement"), field("servers"), "")
    key = who SUBSEP workers
    compute = field("compute")
    network = network ? network : field("network")
    if (compute ~ /^paced:/) {
        paced = substr(compute, 7) + 0
        images_per_s[key] = field("images_per_s")
        exposed_ms[key] = field("exposed_comm_ms_median")
        batch = field("batch") ? field("batch") : field("images") / field("step") / workers
        train_workers[workers]
    } else if (field("test_accuracy") != "") {
        if (!(key in accuracy))
            real_order[++reals] = key
        accuracy[key] = field("test_accuracy")
        loss[key] = field("test_loss")
        images[key] = field("images")
        seconds[key] = field("seconds")
        dataset[key] = field("dataset")
        weights[key] = field("weights_sha256")
    }
}

# What all rows together say of a link: the lowest and the highest rate, and where they come from.
function note_link(rate, source, nominal) {
    if (nominal != "")
        nominal_rate = nominal + 0
    if (!rate)
        return
    if (source == "probe")
        probed++
    else
        unprobed++
    if (!link_least || rate < link_least)
        link_least = rate
    if (rate > link_most)
        link_most = rate
}

# --- words and numbers ---

function sorted(set, list, count, item, i, j, swap) {
    count = 0
    for (item in set)
        list[++count] = item + 0
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
            swap = list[j]
            list[j] = list[j - 1]
            list[j - 1] = swap
        }
    return count
}

function size_text(bytes) {
    if (bytes >= 1e6)
        return sprintf("%.1f MB", bytes / 1e6)
    return bytes >= 1e3 ? sprintf("%.1f kB", bytes / 1e3) : bytes " B"
}

function time_text(us) {
    if (us == "")
        return "-"
    if (us < 1e3)
        return sprintf("%.0f us", us)
    if (us >= 1e6)
        return sprintf("%.2f s", us / 1e6)
    return us >= 1e5 ? sprintf("%.0f ms", us / 1e3) : sprintf("%.1f ms", us / 1e3)
}

function count_text(number, text, i) {
    if (number == "")
        return "-"
    text = sprintf("%.0f", number)
    for (i = length(text) - 3; i > 0; i -= 3)
        text = substr(text, 1, i) "," substr(text, i + 1)
    return text
}

function ratio_text(above, below) {
    return above == "" || below == "" || below == 0 ? "-" : sprintf("%.2f", above / below)
}

# The ratio of two measured times, unless its interval holds 1: from the 95% intervals of both medians.
function measured_ratio(above, below) {
    if (time_us[above] != "" && time_us[below] != "" && low_us[above] != "" && low_us[below] != "" &&
        low_us[above] <= high_us[below] && low_us[below] <= high_us[above])
        return "no difference"
    return ratio_text(time_us[above], time_us[below])
}

# The measurement that a column of the tables shows: ps1 and psW, servers on machines of their own;
# inW, in all workers; mixed, W/2 spare ones as well; mpi, the fastest algorithm.
function key_of(column, workers, bytes, who) {
    if (column == "mpi")
        return ((workers, bytes) in fastest) ? fastest[workers, bytes] : ""
    who = column == "ps1" ? "ps dedicated 1" : column == "psW" ? "ps dedicated " workers : \
        column == "in1" ? "ps colocated 1" : column == "inW" ? "ps colocated " workers : \
        column == "mixed" ? "ps mixed " int(workers / 2) : column
    return who SUBSEP workers SUBSEP bytes
}

# A measured time; marked where the processors were the limit.
function point_text(column, workers, bytes, key) {
    key = key_of(column, workers, bytes)
    return time_text(time_us[key]) (limits(key) ? "*" : "")
}

function theory_ratio(above, below) {
    return theory_us[above] == "" || theory_us[below] == "" ? "-" : ratio_text(theory_us[above], theory_us[below])
}

# "2.66 (2.60 to 2.71)": a ratio of medians, and what their 95% intervals allow.
function interval_text(above, below) {
    if (low_us[above] == "" || low_us[below] == "" || low_us[below] == 0)
        return ratio_text(time_us[above], time_us[below])
    return sprintf("%s (%.2f to %.2f)", ratio_text(time_us[above], time_us[below]),
        low_us[above] / high_us[below], high_us[above] / low_us[below])
}

# The model's gradient if it was measured with so many workers, else the largest message that was.
function focus(workers, count, list, i) {
    if ((workers, model_bytes) in sizes_of)
        return model_bytes
    count = sorted(sizes, list)
    for (i = count; i > 0; i--)
        if ((workers, list[i]) in sizes_of)
            return list[i]
    return 0
}

function heading(text) {
    printf "\n%d. %s\n\n", ++section, text
}

# --- the tables ---

function print_times(i, w, m, ps, ring) {
    heading("One all-reduce: time (median of the slowest rank)")
    print "  W: workers. Servers on machines of their own: 1, W; in the workers: W; mixed: W there and W/2 spare"
    print "   W  message   1 server  W servers  W in workers     mixed      ring       rhd  MPI_Allreduce    1 server / ring  by theory  ring\047s efficiency"
    for (i = 1; i <= bench_count; i++) {
        w = bench_list[i]
        m = focus(w)
        ps = key_of("ps1", w, m)
        ring = key_of("ring", w, m)
        printf "  %2d %8s %10s %10s %13s %9s %9s %9s %14s %18s %10s %18s\n", w, size_text(m), point_text("ps1", w, m),
            point_text("psW", w, m), point_text("inW", w, m), point_text("mixed", w, m), point_text("ring", w, m),
            point_text("rhd", w, m), point_text("mpi", w, m), measured_ratio(ps, ring), theory_ratio(ps, ring),
            efficiency[ring] != "" ? sprintf("%.1f%%", 100 * efficiency[ring]) : "-"
    }
    print_legend()
    if (!link_least)
        return
    print "\n  MPI_Allreduce: the fastest of its algorithms. Efficiency: the least time that any all-reduce among"
    if (probed)
        print "  the workers could take on links that carry what TCP streams reached in the same run, over the time taken."
    else
        print "  the workers could take on these links, over the time taken; about 96% is what TCP\047s headers leave."
}

# Every configuration at the most workers, the fastest first.
function print_all(w, m, key, part, list, count, i, j, swap, ring) {
    w = bench_list[bench_count]
    m = focus(w)
    for (key in all_keys) {
        split(key, part, SUBSEP)
        if (part[2] == w && part[3] == m)
            list[++count] = key
    }
    if (count < 2)
        return
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && time_us[list[j]] + 0 < time_us[list[j - 1]] + 0; j--) {
            swap = list[j]
            list[j] = list[j - 1]
            list[j - 1] = swap
        }
    heading("All of them, " w " workers, " size_text(m) ", the fastest first")
    print "                          time      95% interval   by theory  / ring                 efficiency  machines  a machine"
    ring = key_of("ring", w, m)
    for (i = 1; i <= count; i++) {
        key = list[i]
        split(key, part, SUBSEP)
        printf "  %-19s %9s %17s %11s  %-20s %12s %9d %10s\n", part[1], time_text(time_us[key]) (limits(key) ? "*" : ""),
            low_us[key] == "" ? "-" : sprintf("%s-%s", time_text(low_us[key]), time_text(high_us[key])),
            time_text(theory_us[key]), key == ring ? "" : measured_ratio(key, ring) == "no difference" ? \
            "no difference" : interval_text(key, ring), percent(efficiency[key]), machines[key],
            percent(efficiency[key] == "" ? "" : efficiency[key] * w / machines[key])
    }
    print "\n  a machine: efficiency times W / machines, because servers of their own are machines, too."
}

# Did the processors limit it?
function limits(key) {
    return busy[key] != "" && busy[key] > CPU_LIMITED
}

function percent(share) {
    return share == "" ? "-" : sprintf("%.1f%%", 100 * share)
}

function print_legend() {
    if (limited)
        printf "\n  * CPU-limited: the processors were more than %.0f%% busy, so this time may tell of them, not of the\n  network. MPI_Allreduce\047s busy share is spinning, that is waiting, not work: whatever limits it, it looks busy.\n", 100 * CPU_LIMITED
    if (intervals)
        print "\n  no difference: the 95% intervals of the two medians overlap."
}

function both(sent, by_theory, key) {
    return count_text(sent[key]) " | " count_text(by_theory[key])
}

function print_bytes(i, w, m, differ, known, key) {
    heading("The same all-reduce: bytes sent by one node, counted | by theory")
    print "  workers             ring, a worker          1 server: a worker         1 server: the server"
    for (i = 1; i <= bench_count; i++) {
        w = bench_list[i]
        m = focus(w)
        printf "  %7d %26s  %26s  %27s\n", w,
            both(worker_sent, worker_theory, key_of("ring", w, m)),
            both(worker_sent, worker_theory, key_of("ps1", w, m)),
            both(server_sent, server_theory, key_of("ps1", w, m))
    }
    for (key in worker_sent) {
        known += worker_theory[key] > 0
        if (worker_theory[key] != "" && worker_theory[key] > 0 && worker_sent[key] != worker_theory[key])
            differ++
        if (server_theory[key] != "" && server_theory[key] > 0 && server_sent[key] != server_theory[key])
            differ++
    }
    if (differ)
        printf "\n  %d counts over all sizes differ from theory.\n", differ
    else if (known)
        print "\n  Over all sizes and configurations, every count equals theory to the byte."
}

function print_sizes(count, list, w, i, m) {
    w = bench_list[bench_count]
    # The number of workers with the most sizes.
    for (i = bench_count; i > 0; i--)
        if (sizes_at(bench_list[i]) > sizes_at(w))
            w = bench_list[i]
    heading("Time by size, " w " workers")
    print "   message   1 server  W servers  W in workers     mixed      ring       rhd  MPI_Allreduce   (algorithm)    1 server / ring"
    count = sorted(sizes, list)
    for (i = 1; i <= count; i++) {
        m = list[i]
        if ((w, m) in sizes_of)
            printf "  %8s %10s %10s %13s %9s %9s %9s %14s %13s %18s\n", size_text(m), point_text("ps1", w, m),
                point_text("psW", w, m), point_text("inW", w, m), point_text("mixed", w, m), point_text("ring", w, m),
                point_text("rhd", w, m), point_text("mpi", w, m), algorithm_text(w, m),
                measured_ratio(key_of("ps1", w, m), key_of("ring", w, m))
    }
}

function algorithm_text(w, m, part) {
    split(key_of("mpi", w, m), part, SUBSEP)
    sub(/^mpi /, "", part[1])
    return part[1]
}

function sizes_at(w, m, count) {
    count = 0
    for (m in sizes)
        count += ((w, m) in sizes_of)
    return count
}

function print_throughput(count, list, i, w) {
    heading("Training keras-cnn with " paced " ms of computation a step: images/s")
    print "  workers   1 server  W servers  W in workers      ring  MPI_Allreduce    if averaging were free"
    count = sorted(train_workers, list)
    for (i = 1; i <= count; i++) {
        w = list[i]
        printf "  %7d %10s %10s %13s %9s %14s %25s\n", w, count_text(images_per_s["ps dedicated 1", w]),
            count_text(images_per_s["ps dedicated " w, w]), count_text(images_per_s["ps colocated " w, w]),
            count_text(images_per_s["ring", w]), count_text(images_per_s["mpi default", w]),
            count_text(w * batch / paced * 1e3)
    }
    print "\n  Computation is a timed wait here, so that workers that share " cores " cores do not slow each"
    print "  other down; the gradients are real in size and travel over the real links."
}

function print_accuracy(i, part, key) {
    heading("Training for real: accuracy on the test images")
    for (i = 1; i <= reals; i++) {
        key = real_order[i]
        split(key, part, SUBSEP)
        printf "  %-15s %d workers: %.2f%% after %s images of %s (test loss %.4f, %.0f s)\n", part[1], part[2],
            100 * accuracy[key], count_text(images[key]), dataset[key], loss[key], seconds[key]
    }
    if (reals < 2)
        return
    if (weights[real_order[1]] != "" && weights[real_order[1]] == weights[real_order[2]])
        print "\n  Both ended with the same weights, bit for bit (SHA-256 " substr(weights[real_order[1]], 1, 12) "):\n  summed in the same order, the topology changes the time and nothing else."
    else
        print "\n  Both average the same gradients; their weights differ by rounding."
}

# Of the network's line: what a link carries.
function print_link(nominal) {
    nominal = unprobed ? (nominal_rate ? nominal_rate : link_most) : nominal_rate
    if (nominal)
        printf ": %.0f Mbit/s (%.1f MB/s) each way for each host", nominal * 8 / 1e6, nominal / 1e6
    if (!probed)
        printf ", nominal"
    else if (link_most < link_least * 1.005)
        printf "\nmeasured in the same runs, TCP streams both ways at once: %.1f Mbit/s (%.2f MB/s)", link_most * 8 / 1e6, link_most / 1e6
    else
        printf "\nmeasured in the same runs, TCP streams both ways at once: %.1f to %.1f Mbit/s", link_least * 8 / 1e6, link_most * 8 / 1e6
    if (probed && unprobed)
        printf "\n%d of %d measurements had no probe and stand against the nominal rate", unprobed, probed + unprobed
}

# "NAME took 2.66 (2.60 to 2.71) times as long as the ring; theory: 2.67." `more`: what to add.
function print_against(column, name, more, w, m, key, ring, verdict, theory) {
    w = bench_list[bench_count]
    m = focus(w)
    key = key_of(column, w, m)
    ring = key_of("ring", w, m)
    if (!(key in all_keys) || !(ring in all_keys))
        return
    theory = theory_ratio(key, ring)
    theory = theory == "-" ? "" : "; theory: " theory
    if (measured_ratio(key, ring) == "no difference")
        verdict = "no difference from the ring was measured"
    else if (time_us[key] + 0 < time_us[ring] + 0)
        verdict = "faster than the ring, " interval_text(key, ring) " times its time"
    else
        verdict = "slower than the ring, " interval_text(key, ring) " times its time"
    printf "  - %s: %s%s%s.%s\n", name, verdict, theory, more,
        (limits(key) || limits(ring) ? " (CPU-limited, *)" : "")
}

# Where a parameter server beats the ring: from the smallest message on, one server on its own machine.
function print_small(w, count, list, i, key, ring, last) {
    w = bench_list[bench_count]
    count = sorted(sizes, list)
    for (i = 1; i <= count; i++) {
        key = key_of("ps1", w, list[i])
        ring = key_of("ring", w, list[i])
        if (!(key in all_keys) || !(ring in all_keys) || measured_ratio(key, ring) == "no difference" || time_us[key] + 0 >= time_us[ring] + 0)
            break
        last = list[i]
    }
    if (last)
        printf "  - Small messages: up to %s one server was faster than the ring, %s times its time there.\n",
            size_text(last), interval_text(key_of("ps1", w, last), key_of("ring", w, last))
    else if (count)
        printf "  - Small messages: one server was nowhere measurably faster than the ring, from %s on.\n", size_text(list[1])
}

function print_meaning(w, m, ring) {
    print "\nThe answer"
    if (network ~ /^loopback/) {
        print "\n  network=loopback: no per-node limit, topology effects do not show. What is compared here is"
        print "  how much work each implementation makes for this machine\047s processors."
        return
    }
    w = bench_list[bench_count]
    m = focus(w)
    ring = key_of("ring", w, m)
    if (!(ring in all_keys))
        return
    printf "\n  %d workers, a message of %s, this network. The ring took %s%s.\n", w, size_text(m), point_text("ring", w, m),
        efficiency[ring] == "" ? "" : sprintf(", %.1f%% of the best that workers alone can reach", 100 * efficiency[ring])
    print_against("ps1", "One parameter server on a machine of its own", "")
    print_against("in1", "One parameter server inside a worker", "")
    print_against("inW", "Servers in all workers, on the same machines", "")
    print_against("psW", "As many servers as workers, on " w " further machines", "")
    print_against("mixed", "Servers in all workers and on " int(w / 2) " further machines", "")
    print_against("rhd", "Halving-doubling", "")
    print_against("mpi", "MPI_Allreduce, the fastest of its algorithms here (" algorithm_text(w, m) ")", "")
    print_small()
    print "  So the ring is bandwidth-optimal among the workers alone; servers on further machines can be"
    print "  faster, because their links come in addition. Times in brackets: what both 95% intervals allow."
}

END {
    bench_count = sorted(bench_workers, bench_list)
    print "psring: parameter server against ring all-reduce"
    printf "network=%s", network ? network : "unknown"
    if (link_least)
        print_link()
    else if (network ~ /^loopback/)
        printf ": no per-node limit, topology effects do not show"
    printf "\n%d cores; ps over %s, ring over %s\n", cores, transport["ps"] ? transport["ps"] : "-",
        transport["ring"] ? transport["ring"] : "-"
    if (wrong > 0)
        printf "WRONG: %d elements differ from the exact sum; do not use these times\n", wrong
    else if (elements > 0)
        printf "Checked: all %s elements of the timed all-reduces are the exact sums\n", count_text(elements)
    if (failures > 0)
        printf "INCOMPLETE: %d measurements failed; log.txt has their messages\n", failures
    if (bench_count > 0) {
        print_meaning()
        print_times()
        print_all()
        print_bytes()
        print_sizes()
    }
    if (paced)
        print_throughput()
    if (reals)
        print_accuracy()
    print "\nAll numbers: bench.csv and train.csv; figures: *.svg and *.png in " out
}
