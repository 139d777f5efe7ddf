# consistency_row.awk: makes a row of consistency.csv from the rows of one run's --metrics. The last row shows whether
# and when the run reached its target. -v mode=NAME; -v header=1 also prints the header.

NR == 1 {
    for (i = 1; i <= NF; i++)
        at[$i] = i
    count = split("straggler,seed,workers,model,batch,compute,network,target_accuracy,target_reached,seconds,step,images," \
        "test_accuracy,staleness_mean,staleness_max,steps_skipped,steps_dropped", columns, ",")
    next
}

{
    compute_ms += $at["compute_ms_median"]
    rows++
}

END {
    if (header)
        printf "mode"
    for (i = 1; i <= count && header; i++)
        printf ",%s", columns[i]
    if (header)
        print ",images_per_s,compute_ms"
    printf "%s", mode
    for (i = 1; i <= count; i++)
        printf ",%s", $at[columns[i]]
    printf ",%.1f,%.2f\n", ($at["seconds"] > 0 ? $at["images"] / $at["seconds"] : 0), compute_ms / rows
}
