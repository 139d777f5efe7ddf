#!/usr/bin/env bash
# test_elastic_network.sh: two servers (psring serve) and three workers on the hosts of a virtual cluster. The link of
# one host is cut. Exits 77 (skipped) without namespaces.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
needs_namespaces
cluster_up 3 1gbit
subnet=$("$vcluster" exec --name "$cluster" switch -- printenv PSRING_BIND_SUBNET)
first=tcp://${subnet%0/24}1:29600 second=tcp://${subnet%0/24}2:29600

# on HOST NAME COMMAND OPTION...: starts psring on the host. Its output is in $folder/NAME, its process in $pid_NAME.
on()
{
    local host=$1 as=$2
    shift 2
    timeout --kill-after=5 200 "$vcluster" exec --name "$cluster" "$host" -- "$psring" "$@" --timeout 5 >"$folder/$as" 2>&1 &
    printf -v "pid_$as" '%d' $!
    within grep -q . "$folder/$as" || fail "$as prints nothing"
}

worker()
{
    on "$1" "$2" train --backend ps --model lenet --batch 8 --data "$data" --steps 1000000 --log-steps 20 \
        --join "$first,$second" "${@:3}"
}

all()
{
    tail -n 5 "$folder"/serve* "$folder"/worker*
}

on host0 serve0 serve --listen "$first" --workers 3
on host1 serve1 serve --listen "$second"
worker host0 worker0
worker host1 worker1
worker host2 worker2
within grep -q '^epoch' "$folder/worker0" || fail "three hosts complete no step: $(all)"

ip netns exec "psring-$cluster-2" ip link set eth0 down
within grep -q 'generation 2: 2 workers' "$folder/serve0" || fail "two hosts do not continue: $(all)"
grep -q 'worker 2 on host2 has not given a sign of life' "$folder/worker1" ||
    fail "worker 1 does not name host2: $(all)"
# shellcheck disable=SC2154  # set by on()
! wait "$pid_worker2" || fail "a worker without a link ended with exit code 0: $(all)"
grep -q "the server at $first, .* has not given a sign of life" "$folder/worker2" ||
    fail "a worker without a link does not name the silent server: $(all)"

# The link is back, and a worker joins from host2. Then the second server is killed, which ends the job.
ip netns exec "psring-$cluster-2" ip link set eth0 up
worker host2 worker3
within grep -q 'generation 3: 3 workers' "$folder/serve0" || fail "the third host does not join again: $(all)"
within grep -q 'is now worker 2 of 3' "$folder/worker3" || fail "the third host is not the last: $(all)"
for process in $(ip netns pids "psring-$cluster-1"); do
    [[ $(tr '\0' ' ' <"/proc/$process/cmdline") != *" serve "* ]] || kill -KILL "$process"
done
for as in serve0 worker0 worker1 worker3; do
    pid=pid_$as
    ! wait "${!pid}" 2>/dev/null || fail "$as ended with exit code 0 without the second server: $(all)"
    grep -q 'server 1 on host1 has ended' "$folder/$as" || fail "$as does not name the second server: $(all)"
done
echo "elastic_network: servers and workers on three hosts; a cut link, a worker that joins again, a killed server"
