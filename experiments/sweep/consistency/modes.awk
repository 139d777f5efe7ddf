# modes.awk: reads consistency.csv, for summary.awk and the figure. `case` is 0, all workers alike, or 1, one slow. What
# there is of several seeds: medians, and ranges. A run that has not reached its target took for ever.

FNR == 1 {
    for (i = 1; i <= NF; i++)
        at[$i] = i
    FOREVER = 1e300
    next
}

{
    m = $at["mode"]
    slow = $at["straggler"] != "none"
    if (!(m in seen))
        modes[++count] = m
    seen[m]
    cases[slow]
    if (slow)
        straggler = $at["straggler"]
    target = 100 * $at["target_accuracy"]
    workers = $at["workers"]
    facts = sprintf("%s, batch %s x %s, computing for %s ms a step", $at["model"], workers, $at["batch"], substr($at["compute"], 6))
    runs[m, slow]++
    reached[m, slow] += $at["on_target"] + 0
    times[m, slow] = times[m, slow] " " ($at["on_target"] + 0 ? $at["seconds"] : FOREVER)
    rates[m, slow] = rates[m, slow] " " $at["images_per_s"]
    accuracies[m, slow] = accuracies[m, slow] " " 100 * $at["test_accuracy"]
    lost[m, slow] = lost[m, slow] " " 100 * ($at["steps_left_out"] + $at["steps_dropped"]) / ($at["step"] * workers)
    if ($at["staleness_max"] != "") {
        staleness[m, slow] = staleness[m, slow] " " $at["staleness_mean"]
        most[m, slow] = most[m, slow] " " $at["staleness_max"]
    }
    if (!slow)
        compute_ms = compute_ms " " $at["compute_ms"]
    step_ms = substr($at["compute"], 6)
}

# Of numbers with spaces between: part 0 is the least, 0.5 the median, 1 the most. "" of none.
function part_of(text, part, list, n, i, j, swap)
{
    n = split(text, list, " ")
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && list[j - 1] + 0 > list[j] + 0; j--) {
            swap = list[j]
            list[j] = list[j - 1]
            list[j - 1] = swap
        }
    if (n == 0)
        return ""
    i = 1 + int((n - 1) * part)
    return part == 0.5 && n % 2 == 0 ? (list[n / 2] + list[n / 2 + 1]) / 2 : list[i] + 0
}

# Seconds to the target; at least FOREVER / 2: not reached.
function time_of(m, slow, part)
{
    return part_of(times[m, slow], part) + 0
}

function is_never(time)
{
    return time >= FOREVER / 2
}
