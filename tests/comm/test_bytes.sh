#!/usr/bin/env bash
# test_bytes.sh [MOST | --short]: the bytes that bench counts equal theory exactly, for every backend, transport and
# placement, and for 1 to MOST workers (5). No element is wrong. --short: only some numbers of workers. The bytes are
# read from bench.csv, as a user would. The test computes the expected bytes a second time, from the definitions.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
most=5
((short)) || most=${1:-5}
# 0, 4, 284, 20164 and 1431644 bytes: nothing, less than one element for each rank, and uneven parts.
sizes=(-b 0 -e 1500000 -f 71 -n 1 -w 1)
runs=0

bench() # RANKS OPTION...
{
    local ranks=$1 starter=ranks.sh
    shift
    [[ "$*" != *'--transport mpi'* ]] || starter=mpirun.sh
    "$lib/$starter" "$ranks" "$psring" bench "$@" "${sizes[@]}" --csv "$folder/bench.csv" \
        >"$folder/log" 2>&1 || fail "psring bench $* on $ranks ranks failed:"
    runs=$((runs + 1))
}

for transport in zmq mpi tcp; do
    mapfile -t counts < <(seq "$most")
    ((!short)) || counts=(3)
    [[ $short$transport != 1tcp ]] || counts=(2 3 5)
    for workers in "${counts[@]}"; do
        bench "$workers" --backend ring --transport $transport
        bench "$workers" --backend rhd --transport $transport
        bench "$workers" --backend tree --transport $transport
        bench "$workers" --backend hierarchical --transport $transport
        bench $((workers + 1)) --backend ps --transport $transport --servers 1
        bench "$workers" --backend ps --transport $transport --servers 1 --placement colocated
        bench "$workers" --backend ps --transport $transport --servers "$workers" \
            --placement colocated
    done
    bench 5 --backend ps --transport $transport --servers 2
    bench 5 --backend ps --transport $transport --servers 3 --placement colocated
done

awk -F, -v rows=$((runs * 5)) '
    # The number of elements in part `index` of `parts`.
    function part(count, parts, at) { return int(count / parts) + (at % parts < count % parts) }

    # The most that a rank of the ring sends: every chunk twice, except for two neighbouring chunks.
    function ring(count, workers, rank, sent, most) {
        most = 0
        for (rank = 0; workers > 1 && rank < workers; rank++) {
            sent = 2 * count - part(count, workers, rank + 1) - part(count, workers, rank + 2)
            most = sent > most ? sent : most
        }
        return 4 * most
    }

    # The elements of chunks first .. first+size-1.
    function parts(count, workers, first, size, i, sum) {
        sum = 0
        for (i = first; i < first + size; i++)
            sum += part(count, workers, i)
        return sum
    }

    # The most that a rank of halving-doubling sends. Up to 2 KB, 2 workers send the whole vector to their partner, and 4
    # workers send it to two partners. Otherwise the workers are cut into 2 parts (or 3, 5, ...), and each part again.
    # Reduce-scatter: a rank sends every chunk except its own once. All-gather: at each cut it sends the chunks of its
    # part to every other part.
    function rhd(count, workers, rank, first, size, ways, moved, most) {
        most = 0
        if ((workers == 2 || workers == 4) && 4 * count <= 2048)
            return 4 * count * workers / 2
        for (rank = 0; rank < workers; rank++) {
            moved = count - part(count, workers, rank)
            first = 0
            size = workers
            while (size > 1) {
                for (ways = 2; size % ways; ways++)
                    ;
                size /= ways
                while (first + size <= rank)
                    first += size
                moved += (ways - 1) * parts(count, workers, first, size)
            }
            most = moved > most ? moved : most
        }
        return 4 * most
    }

    # The most that a rank of the double binary tree sends: an inner node of tree 0, which moves the longer half, with a
    # parent and two children. It is a leaf of tree 1. (3 workers: the root of tree 0.)
    function tree(count, workers, longer, shorter) {
        longer = int((count + 1) / 2)
        shorter = count - longer
        return 4 * (workers == 1 ? 0 : (workers == 2 ? 1 : workers == 3 ? 2 : 3) * longer + shorter)
    }

    # A worker sends everything, except for the shard of a server in its process.
    function ps_worker(count, workers, servers, colocated, least) {
        least = 0
        if (colocated && servers == workers)
            least = part(count, servers, servers - 1)
        return 4 * (count - least)
    }

    # A server answers every worker that is not in its process.
    function ps_server(count, workers, servers, colocated) {
        return 4 * (workers - colocated) * part(count, servers, 0)
    }

    function expect(name, expected) {
        if ($column[name] "" == expected "")
            return
        printf "test_bytes: %s over %s, %d workers, %d servers %s, %d bytes: %s is %s, expected %s\n",
            $1, $2, $5, $6, $7, $8, name, $column[name], expected
        bad++
    }

    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    {
        count = $column["bytes"] / 4
        workers = $column["workers"]
        servers = $column["servers"]
        colocated = $column["placement"] == "colocated"
        server = 0
        if ($column["backend"] == "ring") {
            worker = ring(count, workers)
        } else if ($column["backend"] == "tree") {
            worker = tree(count, workers)
        } else if ($column["backend"] == "rhd") {
            worker = rhd(count, workers)
        } else if ($column["backend"] == "hierarchical") {
            worker = 0 # all ranks are on one host
        } else {
            worker = ps_worker(count, workers, servers, colocated)
            server = ps_server(count, workers, servers, colocated)
        }
        expect("worker_sent_bytes", worker)
        expect("worker_recv_bytes", worker)
        expect("server_sent_bytes", server)
        expect("server_recv_bytes", server)
        expect("theory_worker_sent_bytes", worker)
        expect("theory_server_sent_bytes", server)
        expect("theory_worker_recv_bytes", worker)
        expect("theory_server_recv_bytes", server)
        expect("wrong", 0)
        found++
    }
    END {
        if (found != rows) {
            printf "test_bytes: %d rows, expected %d\n", found, rows
            bad++
        }
        exit bad > 0
    }' "$folder/bench.csv"
echo "test_bytes: $runs runs, $((runs * 5)) sizes, bytes equal theory and no element is wrong"
