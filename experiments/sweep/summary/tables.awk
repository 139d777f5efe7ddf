# tables.awk: the tables, section by section.

function heading(text) {
    printf "\n%d. %s\n\n", ++section, text
}

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
        print "  the workers could take on links that carry what TCP streams reached in the same runs, over the time taken.\n  That rate is a measurement, too, so a little over 100% is possible."
    else
        print "  the workers could take on these links, over the time taken; about 96% is what TCP\047s headers leave."
}

# Every configuration at the most workers, the fastest first.
function print_all(w, m, key, part, list, count, i, ring) {
    w = bench_list[bench_count]
    m = focus(w)
    for (key in all_keys) {
        split(key, part, SUBSEP)
        if (part[2] == w && part[3] == m)
            list[++count] = key
    }
    if (count < 2)
        return
    sort_by(time_us, list, count)
    heading("All of them, " counted(w, "worker") ", " size_text(m) ", the fastest first")
    print "                          time      95% interval   by theory  / ring                 efficiency  machines  a machine"
    ring = key_of("ring", w, m)
    for (i = 1; i <= count; i++) {
        key = list[i]
        split(key, part, SUBSEP)
        printf "  %-19s %9s %17s %11s  %-20s %12s %9d %10s\n", part[1], marked_time(key),
            low_us[key] == "" ? "-" : sprintf("%s-%s", time_text(low_us[key]), time_text(high_us[key])),
            time_text(theory_us[key]), key == ring ? "" : measured_ratio(key, ring) == "no difference" ? \
            "no difference" : interval_text(key, ring), percent(efficiency[key]), machines_of[key],
            percent(efficiency_a_machine(key))
    }
    print "\n  a machine: efficiency times W / machines, because servers of their own are machines, too."
}

function print_legend() {
    if (limited)
        printf "\n  * CPU-limited: the processors were more than %.0f%% busy, so this time may be theirs, not the\n  network\047s. MPI_Allreduce\047s busy share is spinning, that is waiting, not work: whatever limits it, it looks busy.\n", 100 * CPU_LIMITED
    if (disturbances)
        printf "\n  + the machine was busy with other work: without other processes its processors would have been less than\n  %.0f%% busy. Measure again when it is quiet.\n", 100 * CPU_LIMITED
    if (intervals)
        print "\n  no difference: the 95% intervals of the two medians overlap, or their ratio is 1.00."
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
        printf "\n  %s over all sizes %s from theory.\n", counted(differ, "count"), differ == 1 ? "differs" : "differ"
    else if (known)
        print "\n  Over all sizes and configurations, every count equals theory to the byte."
}

function print_sizes(count, list, w, i, m) {
    w = bench_list[bench_count]
    # The number of workers with the most sizes.
    for (i = bench_count; i > 0; i--)
        if (sizes_at(bench_list[i]) > sizes_at(w))
            w = bench_list[i]
    heading("Time by size, " counted(w, "worker"))
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
    if (limits_known)
        print "\n  What limits each, as it has found itself:"
    for (i = 1; i <= count && limits_known; i++) {
        w = list[i]
        printf "  %7d %10s %10s %13s %9s %14s\n", w, limit_text("ps dedicated 1", w), limit_text("ps dedicated " w, w),
            limit_text("ps colocated " w, w), limit_text("ring", w), limit_text("mpi default", w)
    }
    print "\n  Computation is a timed wait here, so that workers that share " cores " cores do not slow each"
    print "  other down; the gradients are real in size and travel over the real links."
}

function limit_text(who, w) {
    return (who, w) in limit ? limit[who, w] : "-"
}

function print_accuracy(i, part, key) {
    heading("Training for real: accuracy on the test images")
    for (i = 1; i <= reals; i++) {
        key = real_order[i]
        split(key, part, SUBSEP)
        printf "  %-15s %s: %.2f%% after %s images of %s (test loss %.4f, %.0f s)\n", part[1], counted(part[2], "worker"),
            100 * accuracy[key], count_text(images[key]), dataset[key], loss[key], seconds[key]
    }
    if (reals < 2)
        return
    if (trainings_agree())
        print "\n  Both ended with the same weights, bit for bit (SHA-256 " substr(weights[real_order[1]], 1, 12) "):\n  summed in the same order, the topology changes the time and nothing else."
    else if (trainings_must_agree())
        print "\n  WRONG: both added the same gradients in the same order, and ended with different weights."
    else
        print "\n  Both average the same gradients; their weights differ by rounding."
}

function trainings_agree() {
    return reals >= 2 && weights[real_order[1]] != "" && weights[real_order[1]] == weights[real_order[2]]
}

# With --reduce-order ring, all else alike, weights are alike to the bit.
function trainings_must_agree(one, two) {
    one = real_order[1]
    two = real_order[2]
    return reals >= 2 && order[one] == "ring" && order[two] == "ring" && settings[one] == settings[two] && \
        weights[one] != "" && weights[two] != ""
}
