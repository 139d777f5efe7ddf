# read.awk: the rows of bench.csv and train.csv, by configuration, workers and bytes. Columns are found by
# name, so further ones may follow.
#
# A configuration is "ring", "rhd", "mpi ALGORITHM", "ps dedicated K" or "ps colocated K", K servers, or
# "ps mixed K", a server in each worker and K spare ones. A variant of it goes over a further transport, or
# compresses: the first transport that a backend is seen with is its own. Where workers share hosts, it has ",
# WORKERS on HOSTS hosts" after it, and ", worst order" where all neighbours are on two; such measurements are in
# `slotted`, and in no table but theirs.

BEGIN { FS = "," }

FNR == 1 {
    delete column
    for (i = 1; i <= NF; i++)
        column[$i] = i
    is_bench = "algbw_bytes_per_s" in column
    next
}

function field(name) {
    return column[name] ? $column[name] : ""
}

# Processes that share a GPU take turns on it: their times are no one's to compare, their sums must be right.
field("network") == "time-slicing" {
    if (is_bench) {
        wrong += field("wrong")
        shared_elements += field("bytes") / 4 * field("iters")
        who = field("backend") (field("nccl_algorithm") == "" ? "" : " (" field("nccl_algorithm") ")")
        if (!shared_backends[who]++)
            shared_names = shared_names (shared_names == "" ? "" : ", ") who
    }
    next
}
# The same size once more, through libpsring (bench --library).
field("api") == "library" { next }
# Between GPUs, by hosts' networks only in part: in tables of their own.
field("device") == "cuda" && is_bench {
    who = configuration(field("backend"), field("placement"), field("servers"), field("mpi_algorithm"))
    # By what NCCL's log says, not by what was asked for: without it, a row is in neither column.
    if (who == "nccl" && field("nccl_algorithm") !~ /^ring\//) {
        who = field("nccl_algorithm") ~ /^tree\// ? "nccl tree" : "nccl otherwise"
        nccl_unknown += field("nccl_algorithm") == ""
    }
    key = who SUBSEP field("workers") SUBSEP field("bytes")
    gpu_keys[key]
    gpu_counts[field("workers")]
    gpu_sizes[field("bytes")]
    time_us[key = "gpu " key] = field("time_us_median")
    busy[key] = field("cpu_busy")
    other[key] = field("cpu_other")
    if (who == "nccl")
        nccl_algorithm = field("nccl_algorithm")
    wrong += field("wrong")
    elements += field("bytes") / 4 * field("iters")
    next
}
field("device") == "cuda" {
    gpu_trained[++gpu_trainings] = sprintf("%-20s %d GPUs: %.2f%% after %d images of %s, %.0f s", \
        configuration(field("backend"), field("placement"), field("servers"), ""), field("workers"), \
        100 * field("test_accuracy"), field("images"), field("dataset"), field("seconds"))
    next
}
# Gradients of another model, in buckets (bench --model-gradients): in a table of their own.
field("model_gradients") != "" {
    key = configuration(field("backend"), field("placement"), field("servers"), field("mpi_algorithm")) SUBSEP \
        field("workers") SUBSEP field("bytes")
    published[++publisheds] = key
    published_model[key] = field("model_gradients")
    published_buckets[key] = field("buckets")
    published_compute[key] = field("compute_us_median")
    published_exposed[key] = field("exposed_us_median")
    published_scaling[key] = field("scaling_efficiency")
    time_us[key] = field("time_us_median")
    theory_us[key] = field("theory_time_us")
    busy[key] = field("cpu_busy")
    other[key] = field("cpu_other")
    wrong += field("wrong")
    elements += field("bytes") / 4 * field("iters")
    network = field("network")
    next
}

# "over TRANSPORT", "fp16", or nothing.
function variant_of(backend, transport, compress, variant) {
    if (!(backend in own_transport))
        own_transport[backend] = transport
    variant = transport == own_transport[backend] ? "" : "over " transport
    if (compress != "" && compress != "none")
        variant = variant (variant ? ", " : "") compress
    return variant
}

# Host by host, as many neighbours are on two hosts as there are hosts.
function order_of(apart) {
    if (apart <= hosts + 0)
        return ""
    return apart == workers + 0 ? ", worst order" : ", " apart " neighbours apart"
}

is_bench {
    workers = field("workers")
    bytes = field("bytes")
    hosts = field("hosts")
    shares_hosts = hosts > 1 && hosts < workers + 0
    who = configuration(field("backend"), field("placement"), field("servers"), field("mpi_algorithm"))
    if (shares_hosts)
        who = who ", " workers " on " hosts " hosts" order_of(field("neighbours_apart") + 0)
    plain = who SUBSEP workers SUBSEP bytes
    variant = variant_of(field("backend"), field("transport"), field("compress"))
    key = (variant ? who ", " variant : who) SUBSEP workers SUBSEP bytes
    network = field("network")
    link[key] = field("link_bytes_per_s") + 0
    source[key] = field("link_source")
    machines_of[key] = (shares_hosts ? hosts : workers) + (field("placement") ~ /^(dedicated|mixed)$/ ? field("servers") : 0)
    note_link(link[key], source[key], field("nominal_link_bytes_per_s"))
    low_us[key] = field("time_us_median_low")
    high_us[key] = field("time_us_median_high")
    intervals += low_us[key] != ""
    busy[key] = field("cpu_busy")
    other[key] = field("cpu_other")
    limited += limits(key)
    disturbances += disturbed(key)
    cpu_s[key] = field("cpu_s_per_gb")
    cpu_known += cpu_s[key] != ""
    time_us[key] = field("time_us_median")
    theory_us[key] = field("theory_time_us")
    worker_sent[key] = field("worker_sent_bytes")
    worker_theory[key] = field("theory_worker_sent_bytes")
    server_sent[key] = field("server_sent_bytes")
    server_theory[key] = field("theory_server_sent_bytes")
    wrong += field("wrong")
    elements += bytes / 4 * field("iters")
    if (field("compute_us_median") > 0) {
        overlapped[++overlaps] = key
        exposed_us[key] = field("exposed_us_median")
    }
    if (shares_hosts) {
        slotted[++slots] = key
        in_slots[key]
        next
    }
    if (variant) {
        varied[++variants] = key
        plain_of[key] = plain
        next
    }
    all_keys[key]
    if (field("backend") == "mpi" && (!((workers, bytes) in fastest) || time_us[key] < time_us[fastest[workers, bytes]]))
        fastest[workers, bytes] = key
    efficiency[key] = field("efficiency")
    bench_workers[workers]
    sizes[bytes]
    sizes_of[workers, bytes]
    next
}

{
    workers = field("workers")
    who = configuration(field("backend"), field("placement"), field("servers"), "")
    key = who SUBSEP workers
    compute = field("compute")
    network = network ? network : field("network")
    if (compute ~ /^paced:/) {
        paced = substr(compute, 7) + 0
        images_per_s[key] = field("images_per_s")
        exposed_ms[key] = field("exposed_comm_ms_median")
        if (field("limit") != "") {
            limit[key] = field("limit") (field("limit_rank") != "" ? " " field("limit_rank") : "")
            limits_known = 1
        }
        batch = field("batch") ? field("batch") : field("images") / field("step") / workers
        train_workers[workers]
    } else if (field("test_accuracy") != "") {
        if (!(key in accuracy))
            real_order[++reals] = key
        accuracy[key] = field("test_accuracy")
        loss[key] = field("test_loss")
        images[key] = field("images")
        seconds[key] = field("seconds")
        dataset[key] = field("dataset")
        weights[key] = field("weights_sha256")
        order[key] = field("reduce_order")
        settings[key] = field("model") SUBSEP field("dataset") SUBSEP field("images") SUBSEP field("device") SUBSEP \
            field("workers") SUBSEP field("batch") SUBSEP field("optimizer") SUBSEP field("lr") SUBSEP \
            field("seed") SUBSEP field("bucket_mb") SUBSEP field("compress")
    }
}

# What all rows together say of a link: the lowest and the highest rate, and where they come from.
function note_link(rate, source, nominal) {
    if (nominal != "")
        nominal_rate = nominal + 0
    if (!rate)
        return
    if (source == "probe")
        probed++
    else
        unprobed++
    if (!link_least || rate < link_least)
        link_least = rate
    if (rate > link_most)
        link_most = rate
}
