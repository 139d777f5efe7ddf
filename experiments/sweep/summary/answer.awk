# answer.awk: first what the network is, then the answer in sentences, then the tables.

# Of the network's line: what a link carries.
function print_link(nominal) {
    nominal = unprobed ? (nominal_rate ? nominal_rate : link_most) : nominal_rate
    if (nominal)
        printf ": %.0f Mbit/s (%.1f MB/s) each way for each host", nominal * 8 / 1e6, nominal / 1e6
    if (!probed)
        printf ", nominal"
    else {
        printf "\nmeasured in the same runs, TCP streams both ways at once: "
        if ("all" in rate_of)
            printf "%.1f Mbit/s (%.2f MB/s)", rate_of["all"] * 8 / 1e6, rate_of["all"] / 1e6
        if (link_most >= link_least * 1.005 || !("all" in rate_of))
            printf "%s%.1f to %.1f Mbit/s", "all" in rate_of ? ", the median of " : "", link_least * 8 / 1e6, link_most * 8 / 1e6
    }
    if (probed && unprobed)
        printf "\n%d of %d measurements had no probe and stand against the others\047", unprobed, probed + unprobed
}

# How many machines `who` would have taken with `w` workers; 0 if it was not left out.
function machines_for(who, w, count, list, part, i) {
    gsub(/ /, "-", who)
    count = split(left_out, list, ";")
    for (i = 1; i <= count; i++) {
        split(list[i], part, " ")
        if (part[1] == who && part[2] == w)
            return part[3]
    }
    return 0
}

# The most workers that both `column` and the ring were measured with, and steadily where `steady`; 0: none.
function most_workers(column, steady, i, w, key, ring) {
    for (i = bench_count; i > 0; i--) {
        w = bench_list[i]
        key = key_of(column, w, focus(w))
        ring = key_of("ring", w, focus(w))
        if (key in all_keys && ring in all_keys && !(steady && (key in unsteady || ring in unsteady)))
            return w
    }
    return 0
}

# "NAME: slower than the ring, 2.66 (2.60 to 2.71) times its time; theory: 2.67." With fewer workers where the
# most would have taken more machines than there were, or were not measured steadily.
function print_against(column, name, w, m, key, ring, verdict, theory, more, needed, most) {
    most = w = bench_list[bench_count]
    m = focus(w)
    needed = machines_for(part_of(key_of(column, w, m), 1), w)
    if (most_workers(column, 1) && most_workers(column, 1) < most_workers(column, 0))
        more = sprintf(" (with %d not steady)", most_workers(column, 0))
    else if (most_workers(column, 0) && !most_workers(column, 1))
        more = "; no steady measurement"
    if (needed)
        more = more sprintf(" (%s with it take %d machines)", counted(most, "worker"), needed)
    w = most_workers(column, 1) ? most_workers(column, 1) : most_workers(column, 0) ? most_workers(column, 0) : w
    m = focus(w)
    sub(/\{W\}/, w, name)
    sub(/\{W\/2\}/, int(w / 2), name)
    key = key_of(column, w, m)
    ring = key_of("ring", w, m)
    if (!(key in all_keys) || !(ring in all_keys)) {
        if (needed)
            printf "  - %s: not measured%s.\n", name, more
        return
    }
    if (w != most)
        more = sprintf("; with %s%s", counted(w, "worker"), more)
    theory = theory_ratio(key, ring)
    theory = theory == "-" ? "" : "; theory: " theory
    if (measured_ratio(key, ring) == "no difference")
        verdict = "no difference from the ring was measured"
    else if (time_us[key] + 0 < time_us[ring] + 0)
        verdict = "faster than the ring, " interval_text(key, ring) " times its time"
    else
        verdict = "slower than the ring, " interval_text(key, ring) " times its time"
    printf "  - %s: %s%s%s%s.\n", name, verdict, theory, more, (limits(key) || limits(ring) ? "; CPU-limited*" : "") \
        (disturbed(key) || disturbed(ring) ? "; the machine was busy with other work+" : "")
}

# What was left out for want of machines, by workers, and how many it would take.
function print_left_out(count, list, part, i, before) {
    heading("What " machine_count " machines cannot measure")
    count = split(left_out, list, ";")
    for (i = 1; i <= count; i++) {
        split(list[i], part, " ")
        gsub(/-/, " ", part[1])
        if (part[2] != before)
            printf "%s  %s: %s takes %d machines", before ? "\n" : "", counted(part[2], "worker"), part[1], part[3]
        else
            printf "; %s %d", part[1], part[3]
        before = part[2]
    }
    print ""
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
    printf "\n  %s, a message of %s, this network. The ring took %s%s%s.\n", counted(w, "worker"), size_text(m), point_text("ring", w, m),
        ring in unsteady ? " (not steady: " unsteady[ring] ")" : "", efficiency[ring] == "" ? "" : sprintf(", %.1f%% of the best that workers alone can reach", 100 * efficiency[ring])
    print_against("ps1", "One parameter server on a machine of its own")
    print_against("in1", "One parameter server inside a worker")
    print_against("inW", "Servers in all workers, on the same machines")
    print_against("psW", "As many servers as workers, on {W} further machines")
    print_against("mixed", "Servers in all workers and on {W/2} further machines")
    print_against("rhd", "Halving-doubling")
    print_against("mpi", "MPI_Allreduce, the fastest of its algorithms here (" algorithm_text(w, m) ")")
    print_small()
    print "  Theory: the ring is bandwidth-optimal among the workers alone; servers on further machines can be"
    print "  faster, because their links come in addition. In brackets: what both 95% intervals allow."
}

END {
    bench_count = sorted(bench_workers, bench_list)
    settle_rates()
    if (only == "unsteady") {
        list_unsteady()
        exit
    }
    print "psring: parameter server against ring all-reduce"
    printf "network=%s", network ? network : "unknown"
    if (link_least)
        print_link()
    else if (network ~ /^loopback/)
        printf ": no per-node limit, topology effects do not show"
    if (shaped())
        printf "\nThe cluster has a shape, %s. Theory and efficiency are those of links that all carry the same.", substr(network, index(network, "/") + 1)
    printf "\n%d cores; ps over %s, ring over %s\n", cores, own_transport["ps"] ? own_transport["ps"] : "-",
        own_transport["ring"] ? own_transport["ring"] : "-"
    if (wrong > 0)
        printf "WRONG: %d elements differ from the exact sum; do not use these times\n", wrong
    else if (elements > 0)
        printf "Checked: all %s elements of the timed all-reduces are the exact sums\n", count_text(elements)
    if (trainings_must_agree() && !trainings_agree())
        print "WRONG: two trainings that must end with the same weights, bit for bit, do not"
    print_unsteady()
    if (failures > 0)
        printf "INCOMPLETE: %s failed; log.txt has the messages\n", counted(failures, "measurement")
    if (bench_count > 0) {
        print_meaning()
        print_times()
        print_all()
        print_bytes()
        print_sizes()
        print_processors()
        print_variants()
        print_overlap()
    }
    print_slots()
    print_published()
    print_gpus()
    if (paced)
        print_throughput()
    if (reals)
        print_accuracy()
    if (left_out)
        print_left_out()
    print "\nAll numbers: bench.csv and train.csv; figures: *.svg and *.png"
}
