# measured.awk: prints one line for each comparable row of a bench.csv.
# Columns: BACKEND PLACEMENT WORKERS SERVERS BYTES LINK-RATE MEDIAN-US BURST-BYTES.
# Skips rows that processors limited (-v CPU_LIMITED=SHARE), rhd with another radix than 2, and clusters with unequal or
# long links, and series. Each network has its own cases. If the rate of a virtual cluster was not measured, -v PAYLOAD_SHARE of it is payload. The burst of its links
# is -v BUCKET_BYTES=NUMBER. Several rows of one case (repetitions, transports) become their median.
function median(list, n, i, k, value, values) {
    n = split(list, values, " ")
    for (i = 2; i <= n; i++) {
        value = values[i] + 0
        for (k = i - 1; k >= 1 && values[k] + 0 > value; k--)
            values[k + 1] = values[k]
        values[k + 1] = value
    }
    return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
}
BEGIN {
    FS = ","
}
FNR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    next
}
{
    backend = $column["backend"]
    rate = $column["link_bytes_per_s"]
    if (backend !~ /^(ring|rhd|tree|ps)$/ || $column["bytes"] < 1000000 || $column["workers"] < 2 || $column["workers"] > 8)
        next
    if ($column["network"] ~ /^(loopback|time-slicing|simulated)/ || rate + 0 <= 0 || $column["wrong"] + 0 > 0)
        next
    # Skip racks and hosts with different rates, and latencies: the simulation here has equal, short links.
    if ($column["network"] ~ /^vcluster:[^\/+]*[\/+]/)
        next
    if (("link_source" in column) && $column["link_source"] == "nominal" && $column["network"] ~ /^vcluster/)
        rate *= PAYLOAD_SHARE
    if (("cpu_busy" in column) && $column["cpu_busy"] > CPU_LIMITED)
        next
    if (("radix" in column) && $column["radix"] > 2)
        next
    if (("hosts" in column) && $column["hosts"] != $column["workers"])
        next
    if (("compress" in column) && $column["compress"] != "none" || ("device" in column) && $column["device"] == "cuda")
        next
    if (("interface" in column) && $column["interface"] == "library" || ("api" in column) && $column["api"] == "library")
        next # older files have the column api
    if (("model_gradients" in column) && $column["model_gradients"] != "")
        next
    if (("skew_ms" in column) && $column["skew_ms"] > 0) # ranks started apart
        next
    if (("series_iters" in column) && $column["series_iters"] > 1) # without a barrier between them
        next
    words = backend " " $column["placement"] " " $column["workers"] " " $column["servers"] " " $column["bytes"]
    key = words " " $column["network"]
    if (!(key in times)) {
        keys[++count] = key
        case_of[key] = words
    }
    times[key] = times[key] " " $column["time_us_median"]
    rates[key] = rates[key] " " rate
    bursts[key] = $column["network"] ~ /^vcluster/ ? BUCKET_BYTES : 0
}
END {
    for (i = 1; i <= count; i++)
        printf "%s %.17g %.9g %d\n", case_of[keys[i]], median(rates[keys[i]]), median(times[keys[i]]), bursts[keys[i]]
}
