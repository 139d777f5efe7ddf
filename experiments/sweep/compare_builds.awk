# compare_builds.awk BEFORE.csv AFTER.csv: rows of `psring bench --csv` of two builds, several of each kind; prints the table
# that compare_builds.sh describes. Exits 1 if a line is slower.

function median(values, count,   i, j, held) {
    for (i = 2; i <= count; i++) {
        held = values[i]
        for (j = i - 1; j >= 1 && values[j] > held; j--)
            values[j + 1] = values[j]
        values[j + 1] = held
    }
    return (values[int((count + 1) / 2)] + values[int(count / 2) + 1]) / 2
}

# The medians that `file` has for `row` go to `found`, sorted; returns the median of them.
function medians_of(file, row,   i) {
    split("", found)
    for (i = 1; i <= count[file, row]; i++)
        found[i] = time[file, row, i]
    return median(found, count[file, row])
}

FNR == 1 {
    file++
    for (i = 1; i <= NF; i++)
        column[$i] = i
    next
}
{
    network = $column["network"]
    row = sprintf("%-18s %-5s %-4s %-5s W=%d", network, $column["backend"], $column["transport"], $column["compress"],
        $column["workers"])
    row = row sprintf(" S=%-2d %-10s %9d", $column["servers"], $column["placement"], $column["bytes"])
    if (!(row in number)) {
        number[row] = ++rows
        text[rows] = row
        limit[row] = network ~ /^loopback/ ? 1.03 : 1.01
    }
    time[file, row, ++count[file, row]] = $column["time_us_median"]
}
END {
    printf "%-75s %11s %11s %7s %7s\n", "", "before us", "after us", "ratio", "fastest"
    for (i = 1; i <= rows; i++) {
        row = text[i]
        if (!count[1, row] || !count[2, row]) {
            printf "%-75s measured with one of them only\n", row
            bad = 1
            continue
        }
        before = medians_of(1, row); fastest_before = found[1]
        after = medians_of(2, row); fastest = found[1] / fastest_before
        slower = after / before > limit[row] && fastest > limit[row]
        bad = bad || slower
        printf "%-75s %11.1f %11.1f %7.3f %7.3f%s\n", row, before, after, after / before, fastest, slower ? "  slower" : ""
    }
    exit bad
}
