# series.awk -v limited=SHARE: the rows of plain.awk as the series that figures draw, one point a line:
#
#   series own workers machines bytes time_ms low_ms high_ms theory_ms efficiency per_machine busy
#
# Series 1 to 4 are parameter servers on machines of their own: 1, 2, W/2, W of them; 5 to 8 the same
# inside workers; 9 servers in all workers and W/2 on spare machines; 10 the ring, 11 halving-doubling,
# 12 MPI_Allreduce by its fastest algorithm at that point. A measurement may belong to several (two
# servers are half of four workers); own is 1 for the first of them; busy is 1 where more than
# `limited` of the CPUs were. What is not known is NaN.
BEGIN { FS = "," }

NR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    next
}

function field(name) {
    return column[name] ? $column[name] : ""
}

function number(text) {
    return text == "" ? "NaN" : text
}

function put(series, own) {
    print series, own, rest
}

function put_servers(first, own) {
    own = 1
    if (servers == 1) { put(first, own); own = 0 }
    if (servers == workers) { put(first + 3, own); own = 0 }
    if (servers == int(workers / 2)) { put(first + 2, own); own = 0 }
    if (servers == 2) put(first + 1, own)
}

field("workers") < 2 { next }

{
    backend = field("backend")
    placement = field("placement")
    workers = field("workers") + 0
    servers = field("servers") + 0
    spare = placement == "dedicated" || placement == "mixed" ? servers : 0
    efficiency = number(field("efficiency"))
    per_machine = efficiency == "NaN" ? "NaN" : efficiency * workers / (workers + spare)
    time = field("time_us_median")
    theory = number(field("theory_time_us"))
    rest = workers " " workers + spare " " field("bytes") " " time / 1e3 " " \
        number(field("time_us_median_low")) / 1e3 " " number(field("time_us_median_high")) / 1e3 " " \
        (theory == "NaN" ? theory : theory / 1e3) " " efficiency " " per_machine " " (field("cpu_busy") > limited ? 1 : 0)
    if (backend == "ring")
        put(10, 1)
    else if (backend == "rhd")
        put(11, 1)
    else if (placement == "dedicated")
        put_servers(1)
    else if (placement == "colocated")
        put_servers(5)
    else if (placement == "mixed" && spare == int(workers / 2))
        put(9, 1)
    else if (backend == "mpi") {
        key = workers " " field("bytes")
        if (!(key in fastest) || time + 0 < fastest[key]) {
            fastest[key] = time + 0
            row[key] = rest
        }
    }
}

END {
    for (key in row)
        print 12, 1, row[key]
}
