# words.awk: numbers as words, ratios, and which measurement a column of a table shows.

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

# "2.66 (2.60 to 2.71)": a ratio of medians, and what their 95% intervals allow.
function interval_text(above, below) {
    if (low_us[above] == "" || low_us[below] == "" || low_us[below] == 0)
        return ratio_text(time_us[above], time_us[below])
    return sprintf("%s (%.2f to %.2f)", ratio_text(time_us[above], time_us[below]),
        low_us[above] / high_us[below], high_us[above] / low_us[below])
}

# Did the processors limit it?
function limits(key) {
    return busy[key] != "" && busy[key] > CPU_LIMITED
}

function percent(share) {
    return share == "" ? "-" : sprintf("%.1f%%", 100 * share)
}

# The measurement that a column of the tables shows: ps1 and psW, servers on machines of their own;
# inW, in all workers; mixed, W/2 spare ones as well; mpi, the fastest algorithm.
function key_of(column, workers, bytes, who) {
    if (column == "mpi")
        return ((workers, bytes) in fastest) ? fastest[workers, bytes] : ""
    who = column == "ps1" ? "ps dedicated 1" : column == "psW" ? "ps dedicated " workers : \
        column == "in1" ? "ps colocated 1" : column == "inW" ? "ps colocated " workers : \
        column == "mixed" ? "ps mixed " int(workers / 2) : column
    return who SUBSEP workers SUBSEP bytes
}

# A measured time; marked where the processors were the limit.
function point_text(column, workers, bytes, key) {
    key = key_of(column, workers, bytes)
    return time_text(time_us[key]) (limits(key) ? "*" : "")
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
