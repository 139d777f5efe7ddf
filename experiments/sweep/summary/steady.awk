# steady.awk: the rate of a link from all probes, and which measurements something disturbed.
#
# Every run probes the links for itself. A disturbance of a second while one of them did so would put its rows
# beside another theory than the rest, so all stand against one rate: the median of the probes. On real machines,
# whose links may differ, of the runs on as many machines.

function group_of(key) {
    return network ~ /^hosts/ ? machines_of[key] : "all"
}

# Call once, when all rows are read.
function settle_rates(key, group, rates, list, i) {
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

function median_of(text, list, count, i, j, swap) {
    count = split(text, list, " ")
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && list[j] + 0 < list[j - 1] + 0; j--) {
            swap = list[j]
            list[j] = list[j - 1]
            list[j - 1] = swap
        }
    return (list[int((count + 1) / 2)] + list[int(count / 2) + 1]) / 2
}

# unsteady[key]: why the measurement is not to be relied on. Times are judged where the tables are drawn from, and
# only of messages that are long beside what a link's buffers let through at once.
function note_steadiness(key, bytes) {
    bytes = part_of(key, 3)
    if (source[key] == "probe" && (share[key] > SAME_LINK || share[key] * SAME_LINK < 1))
        unsteady[key] = sprintf("its probe found %.1f Mbit/s", link[key] * 8 / 1e6)
    else if (bytes < LONG_BYTES || bytes != focus(part_of(key, 2)))
        return
    else if (theory_us[key] > 0 && source[key] == "probe" && time_us[key] * POSSIBLE < theory_us[key])
        unsteady[key] = "less time than its bytes take"
    else if (low_us[key] > 0 && high_us[key] > low_us[key] * SCATTER)
        unsteady[key] = "its iterations scatter"
}

# The words that run_scaling.sh has for it: CONFIGURATION WORKERS.
function plan_name(key, who) {
    who = part_of(key, 1)
    gsub(/, over |, /, "+", who)
    gsub(/ /, "-", who)
    return who " " part_of(key, 2)
}

# Those to be measured again, a line each: with the most workers first, of these the ring first.
function list_unsteady(key, seen, name, sort) {
    sort = "sort -k1,1nr -k2,2nr | cut -d ' ' -f 3-"
    for (key in unsteady) {
        name = plan_name(key)
        if (!seen[name]++)
            print part_of(key, 2), part_of(key, 1) == "ring", name, unsteady[key] | sort
    }
    close(sort)
}

function print_unsteady(key, shown, more) {
    for (key in unsteady)
        if (++shown <= 5)
            printf "Not steady: %s, %d workers, %s: %s\n", part_of(key, 1), part_of(key, 2), size_text(part_of(key, 3)), unsteady[key]
    if (shown > 5)
        printf "Not steady: %d measurements more\n", shown - 5
}
