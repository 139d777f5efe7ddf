#!/usr/bin/env bash
# mpirun.sh [--bind-to WHAT] N COMMAND...: N ranks on this machine, over loopback TCP. It allows more ranks than cores,
# and binds no rank without --bind-to. It ends the run after PSRING_LIMIT_S seconds (default: 280).
set -euo pipefail
bind=none
if [ "$1" = --bind-to ]; then
    bind=$2
    shift 2
fi
ranks=$1
shift
root=()
[ "$(id -u)" -ne 0 ] || root=(--allow-run-as-root)
exec timeout --kill-after=5 "${PSRING_LIMIT_S:-280}" mpirun "${root[@]}" --oversubscribe --bind-to "$bind" \
    --mca mpi_yield_when_idle 1 --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include lo \
    --mca oob_tcp_if_include lo -n "$ranks" "$@"
