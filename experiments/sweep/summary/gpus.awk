# gpus.awk: all-reduces and training between GPUs, a worker each.

function gpu_text(who, workers, bytes, key) {
    key = "gpu " who SUBSEP workers SUBSEP bytes
    return key in time_us ? marked_time(key) : "-"
}

# Sums alone: the GPU did the ranks in turns. That they are right is in the sentence on all sums.
function print_shared() {
    if (shared_names == "")
        return
    heading("On one GPU that ranks share")
    printf "  %d elements were averaged to see that they are right, by %s.\n", shared_elements, shared_names
    print "  The ranks took turns on the GPU, so their times say nothing and are not shown."
}

function print_gpus(counts, list, count, most, w, b) {
    count = sorted(gpu_counts, counts)
    most = sorted(gpu_sizes, list)
    if (count)
        heading("Between GPUs, a worker each")
    if (count)
        print "  GPUs   message       nccl  nccl tree       ring  in workers   1 server  MPI_Allreduce  hierarchical"
    for (w = 1; w <= count; w++)
        for (b = 1; b <= most; b++)
            printf "  %4d %9s %10s %10s %10s %11s %10s %14s %13s\n", counts[w], size_text(list[b]),
                gpu_text("nccl", counts[w], list[b]), gpu_text("nccl tree", counts[w], list[b]), gpu_text("ring", counts[w], list[b]),
                gpu_text("ps colocated " counts[w], counts[w], list[b]), gpu_text("ps dedicated 1", counts[w], list[b]),
                gpu_text("mpi default", counts[w], list[b]), gpu_text("hierarchical", counts[w], list[b])
    if (count) {
        print "\n  nccl averages where the gradients are" (nccl_algorithm == "" ? "" : ", by " nccl_algorithm " by its own log") "; the others through the hosts\047 memory (MPI where"
        print "  gradients are if it says that it can)."
        if (nccl_unknown)
            printf "  Not shown: %d of nccl whose algorithm is not known, because NCCL\047s log was not there to be read.\n", nccl_unknown
    }
    for (w = 1; w <= gpu_trainings; w++)
        print (w == 1 ? "\n" : "") "  " gpu_trained[w]
    print_shared()
}
