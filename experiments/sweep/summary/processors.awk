# processors.awk: what all-reduces take from the processors, over each transport.

function seconds_text(seconds) {
    if (seconds == "")
        return "-"
    return sprintf(seconds < 100 ? "%.3g" : "%.0f", seconds)
}

function print_processors(w, count, list, i, m, t, transport, line, known) {
    if (!cpu_known)
        return
    w = compared_workers()
    heading("Processor seconds of all ranks for a GB of messages, " w " workers")
    print "             1 server, over                   ring, over"
    print "   message       zmq       mpi       tcp        zmq       mpi       tcp   MPI_Allreduce"
    split("zmq mpi tcp", transport, " ")
    count = sorted(sizes, list)
    for (i = 1; i <= count; i++) {
        m = list[i]
        if (!((w, m) in sizes_of))
            continue
        line = sprintf("  %8s", size_text(m))
        for (t = 1; t <= 3; t++)
            line = line sprintf(" %9s", seconds_text(cpu_s[key_over("ps1", transport[t], w, m)]))
        line = line " "
        for (t = 1; t <= 3; t++)
            line = line sprintf(" %9s", seconds_text(cpu_s[key_over("ring", transport[t], w, m)]))
        print line sprintf(" %15s", seconds_text(cpu_s[key_of("mpi", w, m)]))
    }
    print "\n  User and system, workers and servers: what communication takes away from computing. A wait that spins is in"
    print "  it (all of MPI_Allreduce\047s, the first 50 us of tcp\047s where ranks have a core each)."
}
