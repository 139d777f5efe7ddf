#!/usr/bin/env bash
# test_probe.sh PSRING: in a virtual cluster, the probe finds what the links carry, with both ranks of a
# host behind one link, and an idle server's host takes part too. Exits 77 (skipped) without root or
# namespaces.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
psring=$1
name=probe-$$
if ((EUID != 0)) || ! unshare --net true 2>/dev/null || ! command -v ip tc mpirun >/dev/null; then
    echo "test_probe: skipped: needs root, network namespaces, ip, tc and mpirun"
    exit 77
fi
export ASAN_OPTIONS=detect_leaks=0 # Open MPI keeps what it allocates
dir=$(mktemp -d)
trap '"$root/experiments/vcluster.sh" down --name $name >/dev/null 2>&1; rm -rf "$dir"' EXIT
"$root/experiments/vcluster.sh" up --name $name --hosts 3 --rate 40mbit --owner $$ >/dev/null

# finds RANKS-PER-HOST RANKS ARGUMENT...: 40 Mbit/s less headers and what a busy machine makes of it.
finds()
{
    local per_host=$1 ranks=$2
    shift 2
    rm -f "$dir/bench.csv"
    "$root/experiments/vcluster.sh" run --name $name --ranks-per-host "$per_host" -n "$ranks" -- \
        "$psring" bench -b 4 -e 4 -n 1 -w 0 --csv "$dir/bench.csv" "$@" >"$dir/out" 2>&1 ||
        { cat "$dir/out" && exit 1; }
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        { rate = $c["link_bytes_per_s"]; good = rate > 0.85 * 5e6 && rate < 0.975 * 5e6 }
        $c["link_source"] == "probe" && $c["nominal_link_bytes_per_s"] == 5000000 && good { found++ }
        { print "test_probe: " rate " bytes/s of 5000000 nominal, by " $c["link_source"] }
        END { exit found != 1 }' "$dir/bench.csv" || { echo "test_probe: FAILED: $*" && exit 1; }
}

finds 1 2 --backend ring
finds 1 3 --backend ps
finds 2 6 --backend ring

# Every host, its address and interface, and the one that it streams to.
"$root/experiments/vcluster.sh" run --name $name -n 3 -- "$psring" bench --probe only >"$dir/hosts" 2>"$dir/out" ||
    { cat "$dir/out" && exit 1; }
for host in 0 1 2; do
    grep -qE "^ +host$host +10\.77\.[0-9]+\.$((host + 1)) +eth0 +[0-9]+ +[-+][0-9.]+ +[0-9a-z-]+ +[0-9.]+ Mbit/s to host$(((host + 1) % 3))$" "$dir/hosts" ||
        { echo "test_probe: FAILED: --probe only says of host$host:" && cat "$dir/hosts" && exit 1; }
done
