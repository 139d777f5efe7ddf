#!/usr/bin/env bash
# papers.sh [OPTION...]: simulates published comparisons of all-reduce and parameter server, and prints both results.
# psring's ring and parameter server run in SimGrid, with the gradients of the published networks and the links of the
# clusters.
#
#   Horovod (Sergeev, Del Balso 2018, arXiv 1802.05799): efficiency of 16 and 512 GPUs, by TCP and RDMA.
#   BytePS (Jiang et al., OSDI 2020): 256 GPUs, all-reduce and parameter servers, with spare CPU machines.
#
# The table lists assumptions that the publications leave open; rates and latencies are options. A sign or an order that
# differs from the publication is WRONG, with exit status 1. If the efficiency of the most GPUs differs by more than 5
# points, the script simulates it again with each assumption changed, which shows the influence of each.
#
#   --quick               only 16 GPUs of Horovod and 8 machines of BytePS; a minute
#   --out DIR             folder of the results (default: results-papers)
#   --tcp-rate BYTES      payload rate of TCP on 25 Gbit/s, bytes/s (default 1.7e9)
#   --rdma-rate BYTES     payload rate of RDMA (default 2.9e9)
#   --slow-rate BYTES     payload rate of TCP on BytePS's 20 Gbit/s (default 2.3e9)
#   --tcp-latency SECONDS latency of a message (default 25e-6)
#   --rdma-latency SECONDS the same by RDMA (default 5e-6)
#   --v100 FACTOR         a V100's images/s, as a multiple of a P100's (default 1.69)
#   --build DIR           build folder of psring-simulate (default: build-simulate)
#
# DIR gets papers.csv, with bench.csv's columns, and papers.txt, which is also printed. Everything takes at most 10
# minutes of one core; a first build takes two more. A simulation fails after 5 minutes. Needs SimGrid (setup.sh
# --simulate); without it the exit status is 77.
set -euo pipefail
export LC_ALL=C # decimal points in every locale

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source-path=SCRIPTDIR source=simulate/build.sh
. "$here/simulate/build.sh"
# shellcheck source-path=SCRIPTDIR source=simulate/simulations.sh
. "$here/simulate/simulations.sh"

papers_arguments()
{
    out=results-papers build=$root/build-simulate quick=''
    tcp_rate=1.7e9 rdma_rate=2.9e9 slow_rate=2.3e9 tcp_latency=25e-6 rdma_latency=5e-6 v100=1.69
    while (($#)); do
        case $1 in
        --quick) quick=yes ;;
        *)
            take_option "--out --build --tcp-rate --rdma-rate --slow-rate --tcp-latency --rdma-latency --v100" "$@"
            shift
            ;;
        esac
        shift
    done
    need_above_zero tcp_rate rdma_rate slow_rate tcp_latency rdma_latency v100
}

# compute MODEL [FACTOR]: prints the ms of 64 images on a P100, or on a GPU that is FACTOR times as fast. Source: the
# images/s of a single GPU in Horovod's README of September 2017 (horovod/horovod, pull request 44), with the table of
# 16 GPUs.
compute()
{
    awk -v model="$1" -v factor="${2:-1}" 'BEGIN {
        rate["inception-v3"] = 134.4; rate["resnet101"] = 119.4; rate["vgg16"] = 130.9
        printf "%.3f\n", 64e3 / (rate[model] * factor)
    }'
}

# steps NAME HOSTS MODEL COMPUTE-MS OPTION...: simulates training steps on links of $rate and $latency; writes
# papers.csv as simulated:NAME.
steps()
{
    local name=$1 hosts=$2 model=$3 compute_ms=$4
    shift 4
    say "$name: $model on $hosts hosts"
    platform
    ranks "$hosts"
    simulate "$name" "$out/papers.csv" --model-gradients "$model" --compute-ms "$compute_ms" --sync-step --bucket-mb "${bucket_mb:-64}" "$@"
}

# -------- Horovod -------------------------------------------------------------------------------

# on NETWORK: sets rate and latency to those of the network.
on()
{
    local of_rate=$1_rate of_latency=$1_latency
    rate=${!of_rate} latency=${!of_latency:-$tcp_latency}
}

simulate_horovod()
{
    local servers network model
    for servers in 4 ${quick:-128}; do
        [[ $servers != yes ]] || continue
        for network in tcp rdma; do
            on $network
            for model in inception-v3 resnet101 vgg16; do
                steps "horovod/$network/$servers" "$servers" $model "$(compute $model)" "${ring[@]}"
            done
        done
    done
}

# For each efficiency that is off, changes one assumption at a time. Eight servers suffice, because the ring's time
# hardly depends on their number.
simulate_what_moves()
{
    local network servers model factor
    while read -r network servers model; do
        ((servers <= 8)) || servers=8
        on "$network"
        steps "moves/$network/as-assumed" "$servers" "$model" "$(compute "$model")" "${ring[@]}"
        steps "moves/$network/half-the-images-per-s" "$servers" "$model" "$(compute "$model" 0.5)" "${ring[@]}"
        bucket_mb=16 steps "moves/$network/buckets-of-16-MB" "$servers" "$model" "$(compute "$model")" "${ring[@]}"
        for factor in 0.8 1.25; do
            on "$network"
            rate=$(awk -v rate="$rate" -v factor=$factor 'BEGIN { print rate * factor }')
            steps "moves/$network/rate-x-$factor" "$servers" "$model" "$(compute "$model")" "${ring[@]}"
        done
    done < <(papers_table off)
}

# -------- BytePS --------------------------------------------------------------------------------

# The longest chunks that psring chooses. Shorter ones would be more messages to simulate.
chunks=(--push-window 4 --segment-bytes 64k)

# n machines of eight GPUs: the ring, servers on k spare machines (PS), and also servers on all other machines (BytePS).
simulate_byteps()
{
    local n=32 k compute_ms hosts
    [[ ! $quick ]] || n=8
    on slow
    compute_ms=$(compute vgg16 "$v100")
    for hosts in $((n / 4)) $((n / 2)) "$n"; do
        steps byteps/ring "$hosts" vgg16 "$compute_ms" "${ring[@]}"
        steps byteps/ps $((hosts + 1)) vgg16 "$compute_ms" --backend ps --servers 1 --placement dedicated "${chunks[@]}"
    done
    for k in $((n / 4)) $((n / 2)) $((n * 3 / 4)) "$n"; do
        steps byteps/ps $((n + k)) vgg16 "$compute_ms" --backend ps --servers "$k" --placement dedicated "${chunks[@]}"
        ((k < n)) || continue
        steps byteps/spare $((n + k)) vgg16 "$compute_ms" --backend ps --servers "$k" --placement mixed "${chunks[@]}"
    done
}

# -------- the table -----------------------------------------------------------------------------

papers_table()
{
    awk -v what="$1" -v tcp_rate="$tcp_rate" -v rdma_rate="$rdma_rate" -v slow_rate="$slow_rate" -v tcp_latency="$tcp_latency" \
        -v rdma_latency="$rdma_latency" -v v100="$v100" -f "$here/simulate/papers.awk" "$out/papers.csv"
}

papers_main()
{
    papers_arguments "$@"
    take_folder "$out"
    log_name=papers-log.txt
    keep_foreign_files papers.csv papers.txt $log_name build.log
    begin_log "$0 $*"
    work=$(mktemp -d)
    child='' limit=300
    # shellcheck disable=SC2016  # the end expands it
    end_with '[[ ! $child ]] || kill -TERM "$child" 2>/dev/null || true; rm -rf "$work"'
    build_program
    replace_files papers.csv papers.txt
    simulate_byteps
    simulate_horovod
    simulate_what_moves
    local wrong=0
    papers_table all >"$out/papers.txt" || wrong=1
    cat "$out/papers.txt"
    exit $wrong
}

heed_interrupts "$@"
papers_main "$@"
