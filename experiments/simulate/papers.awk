# papers.awk: prints the table of papers.sh from its papers.csv, published next to simulated. The exit status is 1 if a
# sign or an order is WRONG. With -v what="off" it prints only the rows of Horovod that are off by more than 5 points
# (network, servers, model); otherwise what="all". The other options are the assumptions: tcp_rate, rdma_rate,
# slow_rate, tcp_latency, rdma_latency, v100.
#
# Published values of Horovod for 16 GPUs: README of September 2017 (pull request 44), images/s over 16 times a single
# GPU's. Published values for 512 GPUs: arXiv 1802.05799. It gives RDMA as a gain over TCP of 30% for VGG-16. For other
# models it says "little", without a number.
BEGIN {
    FS = ","
    split("inception-v3 resnet101 vgg16", models, " ")
    split("4 128", sizes, " ")
    split("tcp rdma", networks, " ")
    published["tcp", 4, "inception-v3"] = 92.6; published["tcp", 4, "resnet101"] = 88.2; published["tcp", 4, "vgg16"] = 62.5
    published["rdma", 4, "inception-v3"] = 94.1; published["rdma", 4, "resnet101"] = 91.4; published["rdma", 4, "vgg16"] = 85.3
    published["tcp", 128, "inception-v3"] = 90; published["tcp", 128, "resnet101"] = 90; published["tcp", 128, "vgg16"] = 68
    published["rdma", 128, "vgg16"] = 68 * 1.3
}
NR == 1 {
    for (i = 1; i <= NF; i++)
        at[$i] = i
    next
}
{
    split($at["network"], part, "[:/]") # simulated:horovod/tcp/4
    model = $at["model_gradients"]
    percent = 100 * $at["scaling_efficiency"]
    alone = $at["time_us_median"] / 1e3
    if (part[2] == "horovod") {
        efficiency[part[3], part[4], model] = percent
        averaging[part[3], part[4], model] = alone
        backward[model] = $at["backward_us"] / 1e3
        computing[model] = $at["compute_us_median"] / 1e3
    } else if (part[2] == "moves") {
        key = part[3] " " $at["workers"] " " model
        if (!(key in moves))
            moved[++moved_count] = key
        moves[key] = moves[key] sprintf("    %-26s %5.1f%%\n", part[4], percent)
    } else {
        key = part[3] SUBSEP $at["workers"] SUBSEP $at["servers"]
        time[key] = alone
        theory[key] = $at["theory_time_us"] / 1e3
        step[key] = ($at["compute_us_median"] + $at["exposed_us_median"]) / 1e3
        if ($at["workers"] > n)
            n = $at["workers"]
        if (part[3] == "ring")
            rings[++ring_count] = $at["workers"]
        if (part[3] == "spare")
            spares[++spare_count] = $at["servers"]
    }
}
function check(holds, words) {
    printf "  %-5s  %s\n", holds ? "ok" : "WRONG", words
    wrong += !holds
}
function off(network, size, model) {
    return (network, size, model) in published && (network, size, model) in efficiency &&
        (efficiency[network, size, model] - published[network, size, model]) ^ 2 > 25
}
function gain(size, model) {
    return efficiency["rdma", size, model] / efficiency["tcp", size, model]
}
function horovod(size,    i, j, network, model, has, tcp) {
    for (i = 1; i <= 2; i++)
        for (j = 1; j <= 3; j++) {
            network = networks[i]; model = models[j]
            has = (network, size, model) in published
            printf "  %4d  %-5s  %-13s  %9s  %9.1f  %6s  %9.1f  %8.1f  %s\n", 4 * size, network, model,
                has ? sprintf("%.1f", published[network, size, model]) : "little", efficiency[network, size, model],
                has ? sprintf("%+.1f", efficiency[network, size, model] - published[network, size, model]) : "-",
                averaging[network, size, model], backward[model],
                (averaging[network, size, model] > backward[model]) ? "the network" : "computing"
        }
}
function horovod_checks(size,    w) {
    w = 4 * size " GPUs: "
    check(efficiency["tcp", size, "vgg16"] < efficiency["tcp", size, "resnet101"] && efficiency["tcp", size, "resnet101"] <= efficiency["tcp", size, "inception-v3"],
        w "VGG-16 scales worst, Inception V3 best, by TCP")
    check(gain(size, "vgg16") > 1.05 && gain(size, "vgg16") > gain(size, "resnet101") && gain(size, "vgg16") > gain(size, "inception-v3"),
        sprintf("%sRDMA gains VGG-16 most: %+.0f%%, ResNet-101 %+.0f%%, Inception V3 %+.0f%%", w, 100 * (gain(size, "vgg16") - 1),
            100 * (gain(size, "resnet101") - 1), 100 * (gain(size, "inception-v3") - 1)))
}
function byteps_row(name, kind, k,    key, ring) {
    key = kind SUBSEP n SUBSEP k
    ring = "ring" SUBSEP n SUBSEP 0
    printf "  %-34s  %5d  %9.1f  %9.1f  %8.1f  %+6.0f%%  %+6.0f%%\n", name, k, time[key], theory[key], step[key],
        100 * (time[ring] / time[key] - 1), 100 * (step[ring] / step[key] - 1)
}
function byteps(    i, k) {
    byteps_row("all-reduce (ring)", "ring", 0)
    byteps_row("parameter server, its own machine", "ps", 1)
    for (i = 1; i <= spare_count; i++) {
        byteps_row("parameter servers on spare", "ps", spares[i])
        byteps_row("BytePS: on spare and all others", "spare", spares[i])
    }
    byteps_row("both: as many as workers", "ps", n)
}
function byteps_checks(    i, k, slow, before) {
    slow = time["ring", n, 0]
    before = slow
    for (i = 1; i <= spare_count; i++) {
        k = spares[i]
        check(time["spare", n, k] < time["ps", n, k],
            sprintf("%d spare machines: BytePS against the parameter server: %+.0f%%", k, 100 * (time["ps", n, k] / time["spare", n, k] - 1)))
        check(time["spare", n, k] < before,
            sprintf("%d spare machines: BytePS against all-reduce: %+.0f%%, and faster than with fewer", k, 100 * (slow / time["spare", n, k] - 1)))
        before = time["spare", n, k]
    }
    check(time["ps", n, n] < before, n " spare machines: faster still")
    check(time["ps", n, n / 4] > slow, n / 4 " servers are slower than all-reduce")
    for (i = 2; i <= ring_count; i++) {
        check(time["ring", rings[i], 0] < 1.02 * time["ring", rings[i - 1], 0] * (1 - 1 / rings[i]) / (1 - 1 / rings[i - 1]),
            sprintf("ring, %d to %d machines: flat, %.2f times, as (N - 1)/N", rings[i - 1], rings[i], time["ring", rings[i], 0] / time["ring", rings[i - 1], 0]))
        check(time["ps", rings[i], 1] > 1.8 * time["ps", rings[i - 1], 1],
            sprintf("one server, %d to %d: grows with their number, %.2f times", rings[i - 1], rings[i], time["ps", rings[i], 1] / time["ps", rings[i - 1], 1]))
    }
}
END {
    if (what == "off") {
        for (i = 1; i <= 2; i++)
            for (s = ("tcp", 128, "vgg16") in efficiency ? 2 : 1; s <= 2; s++)
                for (j = 1; j <= 3; j++)
                    if (off(networks[i], sizes[s], models[j]))
                        print networks[i], sizes[s], models[j]
        exit
    }
    print "Assumed, because the publications do not say:"
    print "  images/s of one P100, batch 64: Inception V3 134.4, ResNet-101 119.4, VGG-16 130.9 (Horovod's README, September 2017)"
    printf "  TCP makes %.2f GB/s of 25 Gbit/s, a message %g us (NVIDIA/nccl-tests issue 83: at most 1.7 of 25 Gbit/s; nccl issue 209: 60%% of a link)\n", tcp_rate / 1e9, tcp_latency * 1e6
    printf "  RDMA makes %.2f GB/s of it, a message %g us\n", rdma_rate / 1e9, rdma_latency * 1e6
    print "  the four or eight GPUs of a server add in no time, and the server's one link carries the ring; buckets of 64 MB (Horovod's"
    print "  fusion buffer); a step waits for all its buckets; computation is distributed over layers by their operations"
    printf "  BytePS: VGG-16, a V100 is %.2f times a P100 (peak float32), 64 images a GPU; 20 Gbit/s by TCP, %.2f GB/s (bytedance/byteps, performance.md)\n", v100, slow_rate / 1e9
    print "\nHorovod: efficiency in per cent of as many single GPUs; averaging alone and the backward pass that hides it, in ms"
    print "  GPUs  by     model          published  simulated  points  averaging  backward  longer"
    for (s = 1; s <= 2; s++)
        if (("tcp", sizes[s], "vgg16") in efficiency)
            horovod(sizes[s])
    for (i = 1; i <= moved_count; i++) {
        split(moved[i], part, " ")
        printf "  more than 5 points off: %s by %s; effect of each assumption (simulated on %d servers):\n%s", part[3], part[1], part[2], moves[moved[i]]
    }
    printf "\nBytePS: VGG-16, %d machines of eight GPUs; published, 256 GPUs: up to +84%% over all-reduce, +245%% over PS; 20 Gbit/s: +100%% over Horovod\n", n
    print "  who adds                            spare  averaging    formula      step   faster than ring: averaging, step"
    byteps()
    print "\nSigns and orders:"
    for (s = 1; s <= 2; s++)
        if (("tcp", sizes[s], "vgg16") in efficiency)
            horovod_checks(sizes[s])
    byteps_checks()
    printf "%d WRONG.\n", wrong
    exit wrong > 0
}
