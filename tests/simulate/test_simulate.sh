#!/usr/bin/env bash
# test_simulate.sh BUILD [CMAKE-OPTION...] [--short]: experiments/simulate.sh builds psring-simulate in the folder BUILD
# and keeps it. It simulates, and reports rows that differ from the closed forms. --short only configures and compiles
# the replacements of clocks, threads and the network. The whole build takes minutes.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
build=$1
shift
((!short)) || set -- "${@:1:$#-1}"
simulate=$root/experiments/simulate.sh
out=$folder/out

# ends CODE WORDS ARGUMENT...: simulate.sh exits with CODE and prints WORDS.
ends()
{
    local expected=$1 words=$2 code=0
    shift 2
    timeout 600 "$simulate" --build "$build" --out "$out" "$@" >"$folder/log" 2>&1 || code=$?
    ((code == expected)) || fail "simulate.sh $*: ended with $code, expected $expected:"
    grep -qF -- "$words" "$folder/log" || fail "simulate.sh $*: no '$words':"
}

ends 2 "--workers '1': expected 2 to 1024" --workers 1
ends 2 "--workers '1': expected 2 to 1024" --workers 1 --quick
ends 2 "--shape-workers '10': expected at most 1024, and as many for each of 4 racks" --shape-workers 10
ends 2 "--rate '0': expected a number above 0" --rate 0
ends 2 "cannot be read; expected a bench.csv" --against "$folder/none"
ends 2 "cannot be read; expected a model.json" --cost-model "$folder/none"
ends 2 "--rate: --cost-model contains it; omit one of them" --cost-model "$folder/model.json" --rate 1e6
ends 2 "--link 'net/tcp' needs --cost-model FILE" --link net/tcp
if ! command -v smpirun >/dev/null; then
    ends 77 "SimGrid is missing (Debian: libsimgrid-dev)" --quick
    skip "SimGrid is missing (Debian: libsimgrid-dev)"
fi

# Columns of older files, and devices: which rows can be compared with a simulation in host memory.
cat >"$folder/rows.csv" <<'CSV'
backend,device,network,workers,servers,placement,bytes,link_bytes_per_s,wrong,api,time_us_median,series_iters
ring,cpu,net,4,0,none,4799528,1e7,0,comm,100,1
ring,cpu,net,4,0,none,4799528,1e7,0,library,300,1
ring,cuda,net,4,0,none,4799528,1e7,0,comm,900,1
ring,cpu,net,4,0,none,4799528,1e7,0,comm,50,10
ring,cpu,fast,4,0,none,4799528,2e7,0,comm,60,1
CSV
awk -f "$root/experiments/simulate/measured.awk" "$folder/rows.csv" >"$folder/log"
[[ $(xargs <"$folder/log") == 'ring none 4 0 4799528 10000000 100 0 ring none 4 0 4799528 20000000 60 0' ]] ||
    fail "rows of the library, of a GPU, of a series or of another network are mixed:"

cmake --preset simulate -S "$root" -B "$build" "$@" >"$folder/log" 2>&1 || fail "cmake failed:"
if ((short)); then
    mapfile -t objects < <(ninja -C "$build" -t targets all | sed -n 's/: C_COMPILER.*//p' | grep simulat)
    ((${#objects[@]} >= 5)) || fail "only ${#objects[@]} files replace others: ${objects[*]}"
    cmake --build "$build" --target "${objects[@]}" >"$folder/log" 2>&1 || fail "the build failed:"
    echo "simulate: compiles ${#objects[@]} files"
    exit 0
fi
cmake --build "$build" --target psring-simulate >"$folder/log" 2>&1 || fail "the build failed:"

# model.json: two psring transports over one network, and an algorithm of MPI_Allreduce.
model()
{
    local terms='latency_s link_s_per_byte burst_s fill_burst_s reduce_s_per_byte message_s cpu_message_s cpu_s_per_byte' between='' transport term
    printf '{"format": "psring-model-2", "models": ['
    for transport in tcp zmq mpi-ring; do
        printf '%s{"network": "net", "transport": "%s", "nominal_link_bytes_per_s": 5e7, "workers": [2, 4], "servers": [0, 0],' "$between" $transport
        printf '"bytes": [65536, 4799528], "rows_fitted": 30, "rows_held_out": 0, "errors": [[0.1, 0.01]], "constants": {'
        between=''
        for term in $terms; do
            case $term-$transport in
            latency_s-*) term_value=1e-3 ;;
            link_s_per_byte-zmq) term_value=4e-8 ;;
            link_s_per_byte-*) term_value=2e-8 ;;
            *) term_value=0 ;;
            esac
            printf '%s"%s": {"value": %s, "low": 0, "high": 1, "covariance": [0, 0, 0, 0, 0, 0, 0, 0]}' "$between" "$term" "$term_value"
            between=', '
        done
        printf '}}'
    done
    printf ']}\n'
}
model >"$folder/model.json"
ends 2 "--link 'net/mpi-ring': not in '$folder/model.json', which has net/tcp net/zmq" --cost-model "$folder/model.json" --link net/mpi-ring
ends 0 "0 WRONG." --quick --workers 4 --shape-workers 4 --cost-model "$folder/model.json"
grep -qx '  net/tcp: 50000000, 0.001' "$folder/log" || fail "the fitted rate is not named:"
# 2 (W-1) a + 2(W-1)/W M/B, W = 4: 6 ms + 144 ms, and with half the rate 294 ms.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $at["network"] ~ "^simulated:net/(tcp|zmq)/flat$" && $at["backend"] == "ring" && $at["workers"] == 4 { printf "%s %.0f ", $at["network"], $at["time_us_median"] / 1e3 }
    END { print NR }' "$out/simulate.csv" | grep -q '^simulated:net/tcp/flat 150 simulated:net/zmq/flat 294 ' || fail "times are not those of the fitted links"
sed 's/"workers"/"labourers"/' "$folder/model.json" >"$folder/other.json"
ends 2 "a model is incomplete; expected a model.json of this version" --quick --cost-model "$folder/other.json"
(($(grep -vc '^ *$' "$folder/log") == 1)) || fail "more than one message for a bad model.json:"

# Rows of an idle virtual cluster of 200 Mbit/s. The simulation must leave out the other rows: loopback without link
# rates, unequal links, long links, and processors as the limit. The folder is that of a run, whose own files stay.
mkdir -p "$out"
echo "of the run" | tee "$out/summary.txt" >"$out/log.txt"
awk -F, 'BEGIN { OFS = "," } NR == 1 { print $0, "cpu_busy"; next }
    { print $0, 0.8; print $0, 0.9; $4 = "loopback"; print $0, ""; $4 = "vcluster:200mbit/racks:2x100mbit"; print $0, ""
      $4 = "vcluster:200mbit+50ms"; print $0, "" }' \
    "$here/measured.csv" >"$folder/measured.csv"
awk -F, 'NR > 1 && $NF == 0.9 { $11 *= 2 } 1' OFS=, "$folder/measured.csv" >"$folder/busy.csv" && mv "$folder/busy.csv" "$folder/measured.csv"
ends 0 "10 of 10 rows within 5%." --quick --workers 8 --against "$folder/measured.csv"
[[ $(cat "$out/summary.txt" "$out/log.txt") == "of the run"$'\n'"of the run" ]] || fail "the run's own summary.txt or log.txt is gone"
grep -qE '^[0-9]+ rows, 24 of them to be within 0.5% of a closed form: 0 WRONG\.$' "$folder/log" || fail "not all closed forms were checked:"
head -n 1 "$out/simulate.csv" | grep -q '^backend,transport,device,network,workers,servers,placement,bytes,' ||
    fail "simulate.csv has other columns than bench.csv"

# time_of NETWORK BACKEND: prints the ms of its last row with 8 workers and no dedicated server.
time_of()
{
    awk -F, -v network="simulated:$1" -v backend="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $at["network"] == network && $at["backend"] == backend && $at["workers"] == 8 && $at["placement"] != "dedicated" {
            time = $at["time_us_median"]
        }
        END { printf "%.0f\n", time / 1e3 }' "$out/simulate.csv"
}

# 2(W-1)/W M/B = 352.7 ms, plus 14 a. Racks of two with 4:1 have half the rate between them. A slow link of one host
# delays the whole ring.
[[ $(time_of flat ring) == 354 ]] || fail "ring, flat: $(time_of flat ring) ms, expected 354"
[[ $(time_of racks-4x2-4:1 ring) == 706 ]] || fail "ring, racks: $(time_of racks-4x2-4:1 ring) ms, expected 706"
# Each of a rack's two workers sends 2/8 + 1/8 of the vector to other racks, and as much on the way back.
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $at["network"] == "simulated:racks-4x2-4:1" && $at["backend"] == "rhd" { found = $at["uplink_bytes"] }
    END { exit found != 1.5 * 4799528 + 4 }' "$out/simulate.csv" || fail "rhd, racks: not 1.5 vectors pass an uplink"
[[ $(time_of racks-4x2-4:1-interleaved ring) == 1411 ]] ||
    fail "ring, neighbours in different racks: $(time_of racks-4x2-4:1-interleaved ring) ms, expected 1411"
[[ $(time_of one-at-0.5 ring) == 706 ]] || fail "ring, one slow host: $(time_of one-at-0.5 ring) ms, expected 706"

# on_two RATE LATENCY HEADER BURST OPTION...: simulates the ring of two hosts with one message a step; its row is in
# step.csv.
on_two()
{
    local rate=$1 latency=$2 header=$3 burst=$4
    shift 4
    printf 'h0\nh1\n' >"$folder/hosts"
    awk -v hosts=2 -v rate="$rate" -v latency="$latency" -v header="$header" -v burst="$burst" -v racks=1 \
        -v oversubscribed=1 -v slow= -v slow_factor=1 \
        -f "$root/experiments/simulate/platform.awk" >"$folder/platform.xml"
    rm -f "$folder/step.csv"
    timeout 300 smpirun -np 2 -platform "$folder/platform.xml" -hostfile "$folder/hosts" --cfg=smpi/simulate-computation:no \
        --cfg=smpi/wtime:0 --cfg=smpi/privatization:no --log=root.thresh:critical "$build/psring-simulate" --backend ring \
        --segment-bytes 1g --network simulated:step --link-rate $((8 * rate)) --csv "$folder/step.csv" "$@" >"$folder/log" 2>&1 ||
        fail "psring-simulate $*:"
    read -r exposed alone < <(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        { printf "%.1f %.1f\n", $at["exposed_us_median"] / 1e3, $at["time_us_median"] / 1e3 }' "$folder/step.csv")
}

# Two workers swap 65,536 bytes, one message each, at 1 MB/s. A burst of 10,000 bytes leaves at once, before the rate
# applies.
on_two 1000000 0 0 0 --sizes 65536
[[ $alone == 65.5 ]] || fail "a swap of 65,536 bytes at 1 MB/s takes $alone ms, expected 65.5:"
on_two 1000000 0 0 10000 --sizes 65536
[[ $alone == 55.5 ]] || fail "with a burst of 10,000 bytes it takes $alone ms, expected 55.5:"
on_two 1000000 0 1000 0 --sizes 65536
[[ $alone == 66.5 ]] || fail "with headers of 1,000 bytes it takes $alone ms, expected 66.5:"

# step MODEL OPTION...: simulates steps that exchange a model's gradients. Sets exposed and alone to the exposed
# communication and to the time of averaging alone, in ms. A single bucket hides nothing. With several buckets and long
# computation only the last one is exposed. If the network is the limit, the next step's forward pass hides more.
# 2(W-1)/W M/B = M/B = 178.2 ms, and a = 0.1.
step()
{
    on_two 1000000000 1e-4 0 0 --model-gradients "$@"
}
step resnet101 --bucket-mb 0 --compute-ms 500 --sync-step
[[ "$exposed $alone" == "178.3 178.3" ]] || fail "a step in one bucket exposes $exposed of $alone ms, expected all of 178.3:"
step resnet101 --bucket-mb 64 --compute-ms 5000 --sync-step
awk -v exposed="$exposed" 'BEGIN { exit !(exposed > 1 && exposed < 68) }' || fail "a step exposes $exposed of $alone ms, expected its last bucket, of at most 64 MB:"
step vgg16 --bucket-mb 64 --compute-ms 500 --sync-step
waits=$exposed
step vgg16 --bucket-mb 64 --compute-ms 500
awk -v exposed="$exposed" -v alone="$alone" -v waits="$waits" 'BEGIN { exit !(exposed >= alone - 500 && exposed < waits - 50) }' ||
    fail "where the network is the limit a step exposes $exposed of $alone ms, and $waits where it waits for its buckets; expected less, hidden by the next forward pass:"

# A wrong time, and an inexact sum.
awk -F, 'BEGIN { OFS = "," } NR == 4 { $11 *= 1.1 } { print }' "$here/measured.csv" >"$folder/measured.csv"
ends 1 "9 of 10 rows within 5%." --quick --workers 2 --against "$folder/measured.csv"
grep -q '8 .*-9\.[0-9]*% WRONG$' "$folder/log" || fail "the row that is off is not named:"
awk -F, 'BEGIN { OFS = "," } NR == 2 { $25 = 1 } { print }' "$out/simulate.csv" >"$folder/inexact.csv"
! awk -f "$root/experiments/simulate/summary.awk" "$folder/inexact.csv" >"$folder/log" || fail "a wrong element passes:"
grep -q ' WRONG$' "$folder/log" || fail "the row with a wrong element is not named:"
awk -F, 'BEGIN { OFS = "," } NR == 2 { $11 *= 1.006 } { print }' "$out/simulate.csv" >"$folder/slow.csv"
! awk -f "$root/experiments/simulate/summary.awk" "$folder/slow.csv" >"$folder/log" || fail "0.6% off the closed form passes:"

# Published comparisons: signs and orders are as published, and each row that is off has the effect of the assumptions.
# A reversed sign is WRONG.
papers()
{
    local expected=$1 words=$2 code=0
    shift 2
    timeout 600 "$root/experiments/papers.sh" --build "$build" --out "$folder/papers" "$@" >"$folder/log" 2>&1 || code=$?
    ((code == expected)) || fail "papers.sh $*: ended with $code, expected $expected:"
    grep -qF -- "$words" "$folder/log" || fail "papers.sh $*: no '$words':"
}
papers 2 "--tcp-rate '0': expected a number above 0" --tcp-rate 0
papers 2 "unknown argument '--fast'" --fast
papers 0 "0 WRONG." --quick
grep -qE '^ +16  tcp +vgg16 +62\.5 ' "$folder/log" || fail "published and simulated are not in one row:"
awk -F, 'BEGIN { OFS = "," } NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
    $at["network"] == "simulated:horovod/rdma/4" && $at["model_gradients"] == "vgg16" { $at["scaling_efficiency"] = 0.5 } { print }' \
    "$folder/papers/papers.csv" >"$folder/slow.csv"
! awk -v what=all -f "$root/experiments/simulate/papers.awk" "$folder/slow.csv" >"$folder/log" || fail "RDMA that loses passes:"
grep -q '^  WRONG  16 GPUs: RDMA gains VGG-16 most' "$folder/log" || fail "the sign that is wrong is not named:"

echo "simulate: closed forms, measured rows and platforms as expected"
