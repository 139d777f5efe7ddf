# published.awk: the gradients of published models, exchanged in buckets beside a computation.

# What there was no time for, or (`memory`) no memory: "CONFIGURATION WORKERS MODEL SECONDS;..." or "... NUMBERGB", by
# model.
function print_not_measured(memory, reason, count, list, part, i, before) {
    count = split(too_long, list, ";")
    for (i = 1; i <= count; i++) {
        split(list[i], part, " ")
        if ((part[4] ~ /GB$/) != memory)
            continue
        gsub(/-/, " ", part[1])
        sub(/GB$/, " GB", part[4])
        printf "%s%s %s", part[3] == before ? ", " : (before ? "\n" : "") "  not measured, " reason ": " part[3] ": ", \
            part[1], part[4] (memory ? "" : " s")
        before = part[3]
    }
    if (before)
        print ""
}

function print_published(i, key) {
    if (!publisheds && !too_long)
        return
    heading("Gradients of published models, in buckets, as training exchanges them")
    if (publisheds)
        print "                                        W  gradients buckets  averaging   by theory    compute    exposed    scaling"
    for (i = 1; i <= publisheds; i++) {
        key = published[i]
        printf "  %-14s %-20s %4d %10s %7d %10s %11s %10s %10s %10s\n", published_model[key], part_of(key, 1), part_of(key, 2),
            size_text(part_of(key, 3)), published_buckets[key], marked_time(key), time_text(theory_us[key]),
            time_text(published_compute[key]), time_text(published_exposed[key]), percent(published_scaling[key])
    }
    print_not_measured(0, "it would take too long")
    print_not_measured(1, "it needs more memory than there is")
    if (publisheds) {
        print "\n  A step computes (a timed wait, spread over the tensors by their operations) and averages meanwhile. Exposed: what"
        print "  it takes beyond computing. Scaling: computing over the step. Averaging: all buckets, while nothing is computed."
    }
}
