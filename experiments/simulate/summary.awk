# summary.awk: prints simulate.csv as one table per platform. Fails if an element is wrong or if bytes differ from
# theory. Fails if a row of a flat platform, or of a tree of switches, is off the closed form by more than 0.5%.
# The file of -v links=FILE has the message latency of each platform. Servers inside workers may be faster by one
# latency, because it can overlap with other messages on the link.
BEGIN {
    while (links != "" && (getline line <links) > 0) {
        split(line, fields, "\t")
        latency_us["simulated:" fields[1]] = 1e6 * fields[3]
    }
    FS = ","
}
NR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    next
}
{
    network = $column["network"]
    if (network != last) {
        flat = network ~ "[:/](flat|tree-of-switches-[^/]*)$"
        compared = $column["rack_ranks"] > 0 ? "these racks" : "equal links"
        printf "\n%s%s, ms:\n\n", network, flat ? ", compared with the closed form" : ", compared with the closed form for " compared
        printf "  %-8s %-10s %7s %7s %12s %12s %9s\n", "backend", "placement", "workers", "servers", "simulated", flat ? "closed form" : compared, flat ? "error" : "ratio"
        last = network
    }
    time = $column["time_us_median"]
    theory = $column["theory_time_us"]
    ratio = time / theory
    checked += flat
    early = $column["placement"] == "colocated" ? latency_us[substr(network, 1, length(network) - length("flat"))] : 0
    bad = flat && (time > 1.005 * theory || time < 0.995 * theory - early) || $column["wrong"] + 0 > 0 ||
        $column["worker_sent_bytes"] != $column["theory_worker_sent_bytes"] || $column["server_sent_bytes"] != $column["theory_server_sent_bytes"] || $column["uplink_bytes"] != $column["theory_uplink_bytes"]
    wrong += bad
    printf "  %-8s %-10s %7d %7d %12.2f %12.2f %9s%s\n", $column["backend"], $column["placement"], $column["workers"], $column["servers"], time / 1e3, theory / 1e3,
        flat ? sprintf("%+.3f%%", 100 * (ratio - 1)) : sprintf("%.3f", ratio), bad ? " WRONG" : ""
}
END {
    printf "\n%d rows, %d of them to be within 0.5%% of a closed form: %d WRONG.\n", NR - 1, checked, wrong
    exit wrong > 0 || NR < 2
}
