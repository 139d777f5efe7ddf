#!/usr/bin/env bash
# test_wire_bytes.sh [--short]: compares the bytes that the kernel counts at the interface of the busiest host with the
# transport's payload and its packet headers. Runs in a virtual cluster; both counts agree within 5%.
#
# --short: every shape over tcp, some over zmq and mpi. Skipped without namespaces.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
needs_namespaces
cluster_up 5 200mbit
rows=0

bench() # RANKS OPTION...
{
    local ranks=$1
    shift
    "$vcluster" run --name "$cluster" -n "$ranks" --ranks-per-host $((ranks > 5 ? 2 : 1)) -- "$psring" bench "$@" \
        -b 4799528 -e 4799528 -n 2 -w 1 --probe off --csv "$folder/bench.csv" >"$folder/log" 2>&1 ||
        fail "psring bench $* on $ranks hosts failed:"
    rows=$((rows + 1))
}

for transport in zmq mpi tcp; do
    bench 4 --backend ring --transport $transport
    [[ $transport != zmq ]] || bench 5 --backend ps --transport $transport --servers 1
    ((!short)) || [[ $transport == tcp ]] || continue
    bench 8 --backend hierarchical --transport $transport
    bench 4 --backend rhd --transport $transport
    [[ $transport == zmq ]] || bench 5 --backend ps --transport $transport --servers 1
    bench 4 --backend ps --transport $transport --servers 1 --placement colocated
    bench 4 --backend ps --transport $transport --servers 4 --placement colocated
done

# A full packet has 1448 bytes of payload and 66 of headers: Ethernet 14, IPv4 20, TCP 20 and its timestamps 12. The
# receiver's acknowledgements add less than half of that. With segmentation offload a device counts fewer headers.
# Eight workers run as two on each of four hosts. A worker and a server in one process share an interface.
awk -F, -v rows=$rows '
    NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    {
        worker = $c["worker_sent_bytes"]
        server = $c["server_sent_bytes"]
        colocated = $c["placement"] == "colocated"
        # One server colocated with one of four workers: that worker sends it nothing over the link.
        if ($c["hosts"] < $c["workers"] && $c["backend"] == "hierarchical") {
            worker *= $c["workers"] / $c["hosts"]
            limit = 2 * ($c["hosts"] - 1) / $c["hosts"] * $c["bytes"]
            if (worker - limit > 64 || limit - worker > 64) # chunks differ by an element
                bad++
        }
        payload = $c["servers"] == 0 ? worker : !colocated || $c["servers"] == 1 ? server : worker + server
        expected = payload * (1 + 66 / 1448)
        wire = $c["wire_tx_bytes_max"]
        off = wire / expected - 1
        printf "test_wire_bytes: %s over %s, %d servers %s: payload %d, with headers %d, the kernel counted %d: %+.1f%%\n",
            $c["backend"], $c["transport"], $c["servers"], $c["placement"], payload, expected, wire, 100 * off
        if (wire == "" || wire < payload || off < -0.05 || off > 0.05)
            bad++
        found++
    }
    END {
        if (found != rows || bad) {
            printf "test_wire_bytes: FAILED: %d of %d rows differ by over 5%%\n", bad, rows
            exit 1
        }
    }' "$folder/bench.csv"
