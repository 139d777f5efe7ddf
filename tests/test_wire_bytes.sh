#!/usr/bin/env bash
# test_wire_bytes.sh PSRING: in a virtual cluster, what the kernel counts at the busiest host's interface
# is the payload that the transport counts, and the headers of its packets, within 5%. Exits 77
# (skipped) without root or namespaces.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
psring=$1
name=wire-$$
if ((EUID != 0)) || ! unshare --net true 2>/dev/null || ! command -v ip tc mpirun >/dev/null; then
    echo "test_wire_bytes: skipped: needs root, network namespaces, ip, tc and mpirun"
    exit 77
fi
export ASAN_OPTIONS=detect_leaks=0 # Open MPI keeps what it allocates
dir=$(mktemp -d)
trap '"$root/experiments/vcluster.sh" down --name $name >/dev/null 2>&1; rm -rf "$dir"' EXIT
"$root/experiments/vcluster.sh" up --name $name --hosts 5 --rate 200mbit --owner $$ >/dev/null
rows=0

bench() # RANKS OPTION...
{
    local ranks=$1
    shift
    if ! "$root/experiments/vcluster.sh" run --name $name -n "$ranks" -- "$psring" bench "$@" \
        -b 4799528 -e 4799528 -n 2 -w 1 --probe off --csv "$dir/bench.csv" >"$dir/out" 2>&1; then
        echo "test_wire_bytes: psring bench $* on $ranks hosts failed:"
        cat "$dir/out"
        exit 1
    fi
    rows=$((rows + 1))
}

for transport in zmq mpi; do
    bench 4 --backend ring --transport $transport
    bench 4 --backend rhd --transport $transport
    bench 5 --backend ps --transport $transport --servers 1
    bench 4 --backend ps --transport $transport --servers 1 --placement colocated
    bench 4 --backend ps --transport $transport --servers 4 --placement colocated
done

# A full packet carries 1448 bytes behind 66 of headers: Ethernet 14, IPv4 20, TCP 20 and its timestamps
# 12. What the receiver confirms adds less than half of that; a device that is handed several packets
# as one counts fewer headers. The worker and the server of one process share its host's interface.
awk -F, -v rows=$rows '
    NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    {
        worker = $c["worker_sent_bytes"]
        server = $c["server_sent_bytes"]
        colocated = $c["placement"] == "colocated"
        # One server in four workers: its own worker has nothing to send it.
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
            printf "test_wire_bytes: FAILED: %d of %d rows are off\n", bad, rows
            exit 1
        }
    }' "$dir/bench.csv"
