# summary.awk: what bench.csv and train.csv say, as tables and sentences for a newcomer.
#
#   awk -v model_bytes=4799528 -v cores=2 -v failures=0 -v out=DIR -f summary.awk bench.csv train.csv
#
# Columns are found by name, so further ones may follow. Theory: with W workers, B bytes/s a link and
# M bytes, the ring takes 2(W-1)/W M/B; one dedicated server whose pushes and pulls overlap W M/B; one
# server inside a worker, which exchanges nothing with itself, (W-1) M/B. B is what was measured in the
# same run as the time, where link_source says probe, else the nominal rate.

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

function configuration(backend, placement) {
    return backend == "ps" && placement == "colocated" ? "ps-colocated" : backend
}

is_bench {
    who = configuration(field("backend"), field("placement"))
    workers = field("workers")
    bytes = field("bytes")
    key = who SUBSEP workers SUBSEP bytes
    network = field("network")
    link[key] = field("link_bytes_per_s") + 0
    note_link(link[key], field("link_source"), field("nominal_link_bytes_per_s"))
    low_us[key] = field("time_us_median_low")
    high_us[key] = field("time_us_median_high")
    intervals += low_us[key] != ""
    busy[key] = field("cpu_busy")
    if (busy[key] != "" && busy[key] > CPU_LIMITED)
        limited++
    transport[who] = field("transport")
    time_us[key] = field("time_us_median")
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
    who = configuration(field("backend"), field("placement"))
    workers = field("workers")
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

# A measured time; marked where the processors were the limit.
function point_text(who, workers, bytes, key) {
    key = who SUBSEP workers SUBSEP bytes
    return time_text(time_us[key]) (busy[key] != "" && busy[key] > CPU_LIMITED ? "*" : "")
}

# In units of a message's time on a link, M/B.
function theory(who, workers) {
    if (!link_least)
        return ""
    if (who == "ring")
        return 2 * (workers - 1) / workers
    if (who == "ps")
        return workers
    return who == "ps-colocated" ? workers - 1 : ""
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
    print "  workers   message         PS   PS in a worker      ring    Open MPI       PS / ring   by theory   ring's efficiency"
    for (i = 1; i <= bench_count; i++) {
        w = bench_list[i]
        m = focus(w)
        ps = "ps" SUBSEP w SUBSEP m
        ring = "ring" SUBSEP w SUBSEP m
        printf "  %7d %9s %10s %16s %9s %11s %15s %11s %19s\n", w, size_text(m), point_text("ps", w, m),
            point_text("ps-colocated", w, m), point_text("ring", w, m), point_text("mpi", w, m),
            measured_ratio(ps, ring), ratio_text(theory("ps", w), theory("ring", w)),
            efficiency[ring] != "" ? sprintf("%.1f%%", 100 * efficiency[ring]) : "-"
    }
    print_legend()
    if (!link_least)
        return
    print "\n  PS: a parameter server on a host of its own. Efficiency: the least time that any all-reduce"
    if (probed)
        print "  could take on links that carry what TCP streams reached in the same run, over the time taken."
    else
        print "  could take on these links, over the time taken; about 96% is what TCP's headers leave."
}

function print_legend() {
    if (limited)
        printf "\n  * CPU-limited: the processors were more than %.0f%% busy, so this time tells of them, not of the\n  network.\n", 100 * CPU_LIMITED
    if (intervals)
        print "\n  no difference: the 95% intervals of the two medians overlap."
}

function print_bytes(i, w, m, differ, known, key) {
    heading("The same all-reduce: bytes sent by one node, counted | by theory")
    print "  workers             ring, a worker                PS, a worker               PS, the server"
    for (i = 1; i <= bench_count; i++) {
        w = bench_list[i]
        m = focus(w)
        printf "  %7d %26s  %26s  %27s\n", w,
            count_text(worker_sent["ring", w, m]) " | " count_text(worker_theory["ring", w, m]),
            count_text(worker_sent["ps", w, m]) " | " count_text(worker_theory["ps", w, m]),
            count_text(server_sent["ps", w, m]) " | " count_text(server_theory["ps", w, m])
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
        print "\n  Over all sizes, every count for ring and PS equals theory to the byte."
}

function print_sizes(count, list, w, i, m) {
    w = bench_list[bench_count]
    # The number of workers with the most sizes.
    for (i = bench_count; i > 0; i--)
        if (sizes_at(bench_list[i]) > sizes_at(w))
            w = bench_list[i]
    heading("Time by size, " w " workers")
    print "   message         PS   PS in a worker      ring    Open MPI       PS / ring"
    count = sorted(sizes, list)
    for (i = 1; i <= count; i++) {
        m = list[i]
        if ((w, m) in sizes_of)
            printf "  %8s %10s %16s %9s %11s %15s\n", size_text(m), point_text("ps", w, m),
                point_text("ps-colocated", w, m), point_text("ring", w, m), point_text("mpi", w, m),
                measured_ratio("ps" SUBSEP w SUBSEP m, "ring" SUBSEP w SUBSEP m)
    }
}

function sizes_at(w, m, count) {
    count = 0
    for (m in sizes)
        count += ((w, m) in sizes_of)
    return count
}

function print_throughput(count, list, i, w) {
    heading("Training keras-cnn with " paced " ms of computation a step: images/s")
    print "  workers         PS   PS in a worker      ring    Open MPI    if averaging were free"
    count = sorted(train_workers, list)
    for (i = 1; i <= count; i++) {
        w = list[i]
        printf "  %7d %10s %16s %9s %11s %25s\n", w, count_text(images_per_s["ps", w]),
            count_text(images_per_s["ps-colocated", w]), count_text(images_per_s["ring", w]),
            count_text(images_per_s["mpi", w]), count_text(w * batch / paced * 1e3)
    }
    print "\n  Computation is a timed wait here, so that workers that share " cores " cores do not slow each"
    print "  other down; the gradients are real in size and travel over the real links."
}

function print_accuracy(i, part, key) {
    heading("Training for real: accuracy on the test images")
    for (i = 1; i <= reals; i++) {
        key = real_order[i]
        split(key, part, SUBSEP)
        printf "  %-12s %d workers: %.2f%% after %s images of %s (test loss %.4f, %.0f s)\n", part[1], part[2],
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

function print_meaning(w, m, measured, expected) {
    heading("What this means")
    if (network ~ /^loopback/) {
        print "  network=loopback: no per-node limit, topology effects do not show. What is compared here is"
        print "  how much work each implementation makes for this machine's processors."
        return
    }
    w = bench_list[bench_count]
    m = focus(w)
    measured = measured_ratio("ps" SUBSEP w SUBSEP m, "ring" SUBSEP w SUBSEP m)
    expected = ratio_text(theory("ps", w), theory("ring", w))
    if (measured == "-")
        return
    if (measured == "no difference")
        printf "  With %d workers, no difference was measured between one parameter server and the ring; theory\n  says that the server takes %s times as long,\n", w, expected
    else
        printf "  With %d workers, one parameter server took %s times as long as the ring; theory says %s,\n", w, measured, expected
    print "  because the server's one link carries every worker's gradient, while in the ring each link"
    printf "  carries 2(N-1)/N of one gradient, here %.2f, and never more than 2 of them.\n", 2 * (w - 1) / w
    print "  It does not mean that every parameter server is slower: servers on several spare machines"
    print "  share that load, and for small messages (the table by size) a ring's 2(N-1) steps can cost"
    print "  more than a server's two. Nor does it speak of links much faster than these, where processors"
    print "  rather than links set the pace."
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
        print_times()
        print_bytes()
        print_sizes()
    }
    if (paced)
        print_throughput()
    if (reals)
        print_accuracy()
    print_meaning()
    print "\nAll numbers: bench.csv and train.csv; figures: *.svg and *.png in " out
}
