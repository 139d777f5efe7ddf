#!/usr/bin/env bash
# test_probe.sh: the probe measures the throughput of the links of a virtual cluster. On a link with a tenth of the rate
# it finds a much lower rate. The host of an idle server does not change the rate, nor do two ranks behind one link.
# Skipped without namespaces.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
needs_namespaces

# probe RANKS-PER-HOST RANKS ARGUMENT...: prints the measured rate.
probe()
{
    local per_host=$1 ranks=$2
    shift 2
    rm -f "$folder/bench.csv"
    "$vcluster" run --name "$cluster" --ranks-per-host "$per_host" -n "$ranks" -- \
        "$psring" bench -b 4 -e 4 -n 1 -w 0 --csv "$folder/bench.csv" "$@" >"$folder/log" 2>&1 ||
        fail "psring bench $* failed:" >&2
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["link_source"] == "probe" && $c["nominal_link_bytes_per_s"] == nominal { print $c["link_bytes_per_s"] }' \
        nominal="$nominal" "$folder/bench.csv"
}

# alike A B: A and B differ by at most a third.
alike()
{
    awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0 && b > 0 && 3 * a < 4 * b && 3 * b < 4 * a) }'
}

# Other processes may disturb a probe, so the test has five tries.
cluster_up 3 40mbit
nominal=5000000
for try in 1 2 3 4 5; do
    alone=$(probe 1 2 --backend ring)
    idle=$(probe 1 3 --backend ps)
    shared=$(probe 2 6 --backend ring)
    echo "test_probe: try $try of 40mbit: two hosts $alone, a third one idle $idle, two ranks a host $shared bytes/s"
    ! alike "$alone" "$idle" || ! alike "$alone" "$shared" || ! alike "$alone" "$nominal" || break
    ((try < 5)) || fail "the rates (alone, third host idle, two ranks each) differ, or differ from $nominal"
done
cluster_up 3 4mbit
nominal=500000
slow=$(probe 1 2 --backend ring)
echo "test_probe: 4mbit: $slow bytes/s"
awk -v a="$alone" -v b="$slow" 'BEGIN { exit !(b > 0 && a > 3 * b) }' || fail "a tenth of the rate makes no difference"
