# median.awk: shared by compare_builds.awk and compare_transports.awk.

# The median of the numbers in `text`.
function median_of(text, value, count, i, j, swap) {
    count = split(text, value, " ")
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && value[j] + 0 < value[j - 1] + 0; j--) {
            swap = value[j]
            value[j] = value[j - 1]
            value[j - 1] = swap
        }
    return (value[int((count + 1) / 2)] + value[int(count / 2) + 1]) / 2
}
