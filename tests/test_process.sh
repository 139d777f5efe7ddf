#!/usr/bin/env bash
# test_process.sh PSRING MAKE_DATASET: what surrounds the process of a rank. Its standard streams are closed,
# its host's name is as long as one can be, or its limits are tight.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=train_lib.sh
. "$(dirname "$0")/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=ranks_lib.sh
. "$here/ranks_lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK
training=(train --data "$data" --model mlp --batch 8 --steps 3)

show()
{
    tail -n 3 "$folder"/rank.*
}

# --- closed descriptors -----------------------------------------------------------------------------

# streams COMMAND...: runs it with those streams closed that $closed names. A closed stream's descriptor must
# not become a socket's: the log would go into it.
streams()
{
    eval '"$@"' "$closed"
}

for closed in '<&- >&- 2>&-' '>&-' '2>&-'; do
    port=$(free_port)
    meet=("${training[@]}" --verbose --rendezvous "tcp://127.0.0.1:$port" --world 2)
    timeout 60 "$psring" "${meet[@]}" --rank 0 >"$folder/rank.0" 2>&1 &
    streams timeout 60 "$psring" "${meet[@]}" --rank 1 || true
    wait $! || fail "rank 1 with $closed ended rank 0: $(show)"
done

# Results that cannot be written are an error all the same.
closed='>&-'
! streams "$psring" bench --backend none -e 4k --csv - 2>"$folder/log" || fail "lost results are no error:"

# --- MPI is left alone where nothing asks for it ----------------------------------------------------

# MPI_Init fails with names from 57 letters on, MPI_T_init_thread with 64.
if unshare --uts true 2>/dev/null; then
    long=$(printf 'a%.0s' {1..64})
    named() # COMMAND...: on a host of that name
    {
        # shellcheck disable=SC2016
        unshare --uts sh -c 'hostname "$0" && exec "$@"' "$long" "$@"
    }
    named "$psring" "${training[@]}" --backend none >"$folder/log" 2>&1 || fail "alone, 64 letters:"
    named "$psring" bench -e 4k -n 2 -w 1 >"$folder/log" 2>&1 || fail "bench alone, 64 letters:"
    port=$(free_port)
    meet=(bench -e 4k -n 2 -w 1 --rendezvous "tcp://127.0.0.1:$port" --world 2)
    named timeout 60 "$psring" "${meet[@]}" --rank 1 >"$folder/rank.1" 2>&1 &
    named timeout 60 "$psring" "${meet[@]}" --rank 0 >"$folder/rank.0" 2>&1 || fail "rank 0, 64 letters: $(show)"
    wait $! || fail "rank 1, 64 letters: $(show)"
fi
# MPI_Init makes a file of several megabytes.
(ulimit -f 100 && "$psring" "${training[@]}" --backend none) >"$folder/log" 2>&1 || fail "alone, small files:"

echo "process: closed streams and long names do no harm"
