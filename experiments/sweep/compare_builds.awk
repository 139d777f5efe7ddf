# compare_builds.awk BEFORE.csv AFTER.csv: compares rows of `psring bench --csv` of two builds, several of each kind.
# Prints the table that compare_builds.sh describes. Exits with 1 if a line is slower or has wrong sums. Needs
# median.awk and CPU_LIMITED.

FNR == 1 {
    file++
    split("", column)
    for (i = 1; i <= NF; i++)
        column[$i] = i
    next
}
{
    radix = ("radix" in column) && $column["radix"] > 2 ? "/" $column["radix"] : ""
    row = sprintf("%-16s %-5s %-3s %-4s W=%d S=%d %-9s %8d", $column["network"], $column["backend"] radix,
        $column["transport"], $column["compress"], $column["workers"], $column["servers"], $column["placement"],
        $column["bytes"])
    if (!(row in limit)) {
        rows[++count] = row
        limit[row] = 1.01
    }
    if ($column["network"] ~ /^loopback/ || $column["cpu_busy"] > CPU_LIMITED)
        limit[row] = 1.03
    if ("wrong" in column && $column["wrong"] + 0 > 0)
        wrong[row]
    time = $column["time_us_median"]
    times[file, row] = times[file, row] " " time
    if (!((file, row) in fastest) || time + 0 < fastest[file, row])
        fastest[file, row] = time + 0
}
END {
    printf "%-64s %11s %11s %7s %7s\n", "", "before, us", "after, us", "ratio", "fastest"
    for (i = 1; i <= count; i++) {
        row = rows[i]
        if (!((1, row) in times) || !((2, row) in times)) {
            printf "%-64s measured with one of them only\n", row
            bad = 1
            continue
        }
        if (row in wrong) { # their times mean nothing
            printf "%-64s WRONG sums\n", row
            bad = 1
            continue
        }
        before = median_of(times[1, row])
        after = median_of(times[2, row])
        best = fastest[2, row] / fastest[1, row]
        slower = after / before > limit[row] && best > limit[row]
        bad = bad || slower
        printf "%-64s %11.1f %11.1f %7.3f %7.3f%s\n", row, before, after, after / before, best, slower ? "  slower" : ""
    }
    exit bad
}
