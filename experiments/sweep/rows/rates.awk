# rates.awk: the rate of a link from all probes, and which measurements something disturbed.
#
# Every run probes the links for itself. A disturbance of a second while one of them did so would put its rows
# beside another theory than the rest, so all stand against one rate: the median of the probes. On real machines and
# in clusters with a shape, whose links differ, of the runs on as many machines.

BEGIN {
    SAME_LINK = 1.02   # a probe that is off the others by more was disturbed
    POSSIBLE = 1.05    # a time that is less than theory's by more cannot be
    SCATTER = 1.15     # beyond this ratio of the ends of the median's 95% interval, iterations scatter
    LONG_BYTES = 1e6
}

function group_of(key) {
    return network ~ /^hosts/ || shaped() ? machines_of[key] : "all"
}

# Racks, or hosts with rates of their own (vcluster.sh --help): theory knows of none.
function shaped() {
    return network ~ /^vcluster:[^\/]*\//
}

# Call once, when all rows are read.
function settle_rates(key, group, rates) {
    for (key in link)
        if (source[key] == "probe") {
            group = group_of(key)
            rates[group] = rates[group] " " link[key]
        }
    for (group in rates)
        rate_of[group] = median_of(rates[group])
    for (key in link) {
        group = group_of(key)
        if (!(group in rate_of) || !link[key])
            continue
        share[key] = link[key] / rate_of[group]
        if (efficiency[key] != "")
            efficiency[key] *= share[key]
        if (theory_us[key] != "")
            theory_us[key] *= share[key]
    }
    for (key in link)
        if (network !~ /^loopback/)
            note_steadiness(key)
}

# The median of the numbers in `text`.
function median_of(text, value, list, count, i) {
    count = split(text, value, " ")
    for (i = 1; i <= count; i++)
        list[i] = i
    sort_by(value, list, count)
    return (value[list[int((count + 1) / 2)]] + value[list[int(count / 2) + 1]]) / 2
}

# unsteady[key]: why the measurement is not to be relied on. Times are judged where the tables are drawn from, and
# only of messages that are long beside what a link's buffers let through at once.
function note_steadiness(key, bytes) {
    bytes = part_of(key, 3)
    if (source[key] == "probe" && (share[key] > SAME_LINK || share[key] * SAME_LINK < 1))
        unsteady[key] = sprintf("its probe found %.1f Mbit/s", link[key] * 8 / 1e6)
    else if (bytes < LONG_BYTES || bytes != focus(part_of(key, 2)))
        return
    else if (!shaped() && theory_us[key] > 0 && source[key] == "probe" && time_us[key] * POSSIBLE < theory_us[key])
        unsteady[key] = "less time than its bytes take"
    else if (low_us[key] > 0 && high_us[key] > low_us[key] * SCATTER)
        unsteady[key] = "its iterations scatter"
}
