# kernels.awk: time and bytes of the kernels of a training step, from the output of Nsight Compute with --csv.
#
#   awk -v own="lower pool ..." -v mark=gather_pixels -f kernels.awk ncu.csv
#
# Counts whole steps only: from the first kernel named `mark` (one per step) to the last one. Each kernel in `own` has a
# line; NVIDIA's are added up by library. Metrics: gpu__time_duration.sum, dram__bytes.sum.

BEGIN {
    count = split(own, words, " ")
    for (i = 1; i <= count; i++)
        is_own[words[i]] = 1
    factor["n"] = 1e-3 # to us
    factor["u"] = 1
    factor["m"] = 1e3
    factor["s"] = 1e6
    size["b"] = 1e-6 # to MB
    size["K"] = 1e-3
    size["M"] = 1
    size["G"] = 1e3
}

# Fields are quoted, and names have commas in them.
!/^"/ {
    next
}

{
    fields = split(substr($0, 2, length($0) - 2), field, /","/)
}

field[1] == "ID" {
    for (i = 1; i <= fields; i++)
        column[field[i]] = i
    next
}

"ID" in column {
    id = field[column["ID"]]
    if (!(id in at)) {
        at[id] = ++launches
        kernel[launches] = field[column["Kernel Name"]]
    }
    metric = field[column["Metric Name"]]
    unit = substr(field[column["Metric Unit"]], 1, 1)
    value = field[column["Metric Value"]]
    gsub(/,/, "", value)
    if (metric ~ /^gpu__time_duration/)
        us[at[id]] = value * factor[unit]
    else if (metric ~ /^dram__bytes/)
        mb[at[id]] = value * size[unit]
}

function group_of(name,    base) {
    base = name
    sub(/^void /, "", base)
    sub(/[<(].*/, "", base)
    if (base in is_own)
        return base
    if (name ~ /gemm|gemv|cutlass|cublas|splitK|xmma/)
        return "cuBLAS"
    return "other: " substr(base, 1, 30)
}

END {
    for (i = 1; i <= launches; i++) {
        if (group_of(kernel[i]) != mark)
            continue
        first = first ? first : i
        last = i
        steps++
    }
    steps--
    if (steps < 1) {
        print "kernels.awk: " launches + 0 " launches, and no whole step from one " mark " to the next" > "/dev/stderr"
        exit 1
    }
    for (i = first; i < last; i++) {
        group = group_of(kernel[i])
        if (!(group in number))
            order[++groups] = group
        number[group]++
        group_us[group] += us[i]
        group_mb[group] += mb[i]
        all_us += us[i]
        all_mb += mb[i]
    }
    if (all_us <= 0) {
        print "kernels.awk: no times in the file" > "/dev/stderr"
        exit 1
    }
    for (i = 2; i <= groups; i++)
        for (j = i; j > 1 && group_us[order[j]] > group_us[order[j - 1]]; j--) {
            group = order[j]
            order[j] = order[j - 1]
            order[j - 1] = group
        }
    printf "# a step's kernels, means of %d steps, one after another; MB: read from and written to memory\n", steps
    printf "#%-30s %8s %9s %7s %9s %8s\n", "kernel", "launches", "us", "share", "MB", "GB/s"
    for (i = 1; i <= groups; i++) {
        group = order[i]
        printf " %-30s %8.1f %9.2f %6.1f%% %9.2f %8.0f\n", group, number[group] / steps, group_us[group] / steps,
            100 * group_us[group] / all_us, group_mb[group] / steps, 1e3 * group_mb[group] / group_us[group]
    }
    printf "kernels a step: %.0f\n", (last - first) / steps
    printf "all: %.0f kernels take %.1f us a step and move %.1f MB; most: %s, %.0f%%\n", (last - first) / steps,
        all_us / steps, all_mb / steps, order[1], 100 * group_us[order[1]] / all_us
}
