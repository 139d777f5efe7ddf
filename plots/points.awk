# points.awk: the rows as what figures draw, after sweep/rows/ has read them. Writes here:
#
# points.txt, one all-reduce a line, in the order of COLUMNS in style.gp:
#   series own workers bytes time_ms theory_ms efficiency efficiency_a_machine
#   worker_sent worker_theory server_sent server_theory
# training.txt, one paced training a line: series own workers images_per_s
# processors.txt, one all-reduce a line: topology (1 one server on a machine of its own, 2 ring, 3 MPI_Allreduce)
#   transport (1 zmq, 2 mpi, 3 tcp) workers bytes cpu_s_per_gb; with one number of workers, compared_workers.
# facts.gp, the training's constants; network.txt, the network's name.
#
# Series 1 to 4 are parameter servers on machines of their own: 1, 2, W/2, W of them; 5 to 8 the same inside
# workers; 9 servers in all workers and W/2 on spare machines; 10 the ring, 11 halving-doubling, 12 MPI_Allreduce
# by its fastest algorithm at that point (training: as the library chooses). A measurement may belong to several
# (two servers are half of four workers); own is 1 for the first of them. What is not known
# is NaN.

function number(text) {
    return text == "" ? "NaN" : text
}

function put(file, series, own) {
    print series, own, rest > file
}

function put_servers(file, first, servers, workers, own) {
    own = 1
    if (servers == 1) { put(file, first, own); own = 0 }
    if (servers == workers) { put(file, first + 3, own); own = 0 }
    if (servers == int(workers / 2)) { put(file, first + 2, own); own = 0 }
    if (servers == 2) put(file, first + 1, own)
}

function put_all(file, who, workers, mpi, word) {
    split(who, word, " ")
    if (who == "ring")
        put(file, 10, 1)
    else if (who == "rhd")
        put(file, 11, 1)
    else if (who == mpi)
        put(file, 12, 1)
    else if (word[2] == "dedicated")
        put_servers(file, 1, word[3], workers)
    else if (word[2] == "colocated")
        put_servers(file, 5, word[3], workers)
    else if (word[2] == "mixed" && word[3] == int(workers / 2))
        put(file, 9, 1)
}

function put_bench(key, workers, bytes) {
    workers = part_of(key, 2)
    bytes = part_of(key, 3)
    rest = workers " " bytes " " time_us[key] / 1e3 " " (theory_us[key] == "" ? "NaN" : theory_us[key] / 1e3) " " \
        number(efficiency[key]) " " number(efficiency_a_machine(key)) " " \
        number(worker_sent[key]) " " number(worker_theory[key]) " " number(server_sent[key]) " " number(server_theory[key])
    put_all("points.txt", part_of(key, 1), workers, part_of(fastest[workers, bytes], 1))
}

function put_processors(topology, transport, key) {
    if (key in cpu_s && cpu_s[key] != "")
        print topology, transport, part_of(key, 2), part_of(key, 3), cpu_s[key] > "processors.txt"
}

function put_all_processors(w, m, t, transport) {
    w = compared_workers()
    split("zmq mpi tcp", transport, " ")
    for (m in sizes) {
        for (t = 1; t <= 3; t++) {
            put_processors(1, t, key_over("ps1", transport[t], w, m))
            put_processors(2, t, key_over("ring", transport[t], w, m))
        }
        put_processors(3, 2, key_of("mpi", w, m))
    }
}

END {
    settle_rates()
    printf "" > "points.txt"
    printf "" > "training.txt"
    printf "" > "processors.txt"
    put_all_processors()
    for (key in all_keys)
        if (part_of(key, 2) > 1)
            put_bench(key)
    for (key in images_per_s) {
        rest = part_of(key, 2) " " images_per_s[key]
        put_all("training.txt", part_of(key, 1), part_of(key, 2), "mpi default")
    }
    print network > "network.txt"
    print "PACED_MS = " paced + 0 "; BATCH = " batch + 0 > "facts.gp"
}
