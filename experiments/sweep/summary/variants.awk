# variants.awk: what a further transport, compressed messages, and a computation beside the all-reduce change.

function print_variants(i, key, plain) {
    if (!variants)
        return
    heading("Over a further transport, and with compressed messages")
    print "                                  W  message       time  plain time   / plain                by theory"
    for (i = 1; i <= variants; i++) {
        key = varied[i]
        plain = plain_of[key]
        printf "  %-28s %4d %8s %10s %11s   %-20s %11s\n", part_of(key, 1), part_of(key, 2), size_text(part_of(key, 3)),
            marked_time(key), marked_time(plain),
            measured_ratio(key, plain) == "no difference" ? "no difference" : interval_text(key, plain),
            theory_ratio(key, plain)
    }
    print "\n  The same topology, code and numbers: what differs by transport is the library that carries the messages."
}

function print_overlap(i, key) {
    if (!overlaps)
        return
    heading("Beside a computation that takes as long as the all-reduce alone: what of its time is hidden")
    print "                                  W  message      alone     exposed    hidden"
    for (i = 1; i <= overlaps; i++) {
        key = overlapped[i]
        printf "  %-28s %4d %8s %10s %11s %9s\n", part_of(key, 1), part_of(key, 2), size_text(part_of(key, 3)), time_text(time_us[key]),
            time_text(exposed_us[key]), percent(time_us[key] > 0 ? 1 - exposed_us[key] / time_us[key] : "")
    }
    print "\n  The computation is a timed wait, so it takes no processor from the all-reduce."
}
