# slots.awk: several workers a host, which share its link.

function print_slots(i, key) {
    if (!slots)
        return
    heading("Several workers a host")
    print "                                     message       time      95% interval   by theory   / theory"
    for (i = 1; i <= slots; i++) {
        key = slotted[i]
        printf "  %-34s %8s %10s %17s %11s %10s\n", part_of(key, 1), size_text(part_of(key, 3)), marked_time(key),
            low_us[key] == "" ? "-" : sprintf("%s-%s", time_text(low_us[key]), time_text(high_us[key])),
            time_text(theory_us[key]), ratio_text(time_us[key], theory_us[key])
    }
    print "\n  Theory: what the busiest host\047s link carries, at B bytes/s, with H hosts and W workers. Hierarchical: 2(H-1)/H"
    print "  M/B, the least there is. The ring of all workers, host by host: 2(W-1)/W M/B. In the worst order each neighbour"
    print "  is on another host: that as often as there are workers on a host."
}
