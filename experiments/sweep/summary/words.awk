# words.awk: numbers and ratios as words.

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

# "1 worker", "4 workers".
function counted(number, word) {
    return number " " word (number == 1 ? "" : "s")
}

function ratio_text(above, below) {
    return above == "" || below == "" || below == 0 ? "-" : sprintf("%.2f", above / below)
}

# The ratio of two measured times; not where the 95% intervals of both medians overlap, nor where it is 1 to
# two decimals.
function measured_ratio(above, below, ratio) {
    ratio = ratio_text(time_us[above], time_us[below])
    if (ratio == "1.00" || (ratio != "-" && low_us[above] != "" && low_us[below] != "" &&
        low_us[above] <= high_us[below] && low_us[below] <= high_us[above]))
        return "no difference"
    return ratio
}

function theory_ratio(above, below) {
    return theory_us[above] == "" || theory_us[below] == "" ? "-" : ratio_text(theory_us[above], theory_us[below])
}

# "2.66 (2.60 to 2.71)": a ratio of medians, and what their 95% intervals allow; with as many digits as show that
# neither end of a difference is 1.
function interval_text(above, below, low, high, nearest, digits) {
    if (low_us[above] == "" || low_us[below] == "" || low_us[below] == 0)
        return ratio_text(time_us[above], time_us[below])
    low = low_us[above] / high_us[below]
    high = high_us[above] / low_us[below]
    nearest = low > 1 ? low - 1 : 1 - high
    for (digits = 2; digits < 8 && nearest > 0 && nearest < 0.5 * 10 ^ -digits;)
        digits++
    return sprintf("%.*f (%.*f to %.*f)", digits, time_us[above] / time_us[below], digits, low, digits, high)
}

function percent(share) {
    return share == "" ? "-" : sprintf("%.1f%%", 100 * share)
}

# A measured time; marked where the processors were the limit, or other processes had them.
function marked_time(key) {
    return time_text(time_us[key]) (limits(key) ? "*" : disturbed(key) ? "+" : "")
}

function point_text(column, workers, bytes) {
    return marked_time(key_of(column, workers, bytes))
}
