#!/usr/bin/env bash
# test_run_scaling.sh PSRING_SWITCH: run_scaling.sh cleans up after every kind of end, and reports failures. A shell
# script takes the place of psring: it sleeps, fails, or writes rows. Skipped without namespaces.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
needs_namespaces
PSRING_SWITCH=$(realpath "$1")
export PSRING_SWITCH

sweep()
{
    "$root/experiments/run_scaling.sh" --quick --hosts 2 --sizes 65536 --no-train --out "$folder/out" \
        --psring "$folder/program" "$@" >"$folder/output" 2>&1
}

namespaces()
{
    ip netns list | awk -v prefix="psring-scaling-$1-" 'index($1, prefix) == 1' | wc -l
}

nothing_left()
{
    (($(namespaces "$1") == 0)) && ! pgrep -f "^sleep 4321.$$|$folder/program"
}

# The program records its command line and sleeps.
cat >"$folder/program" <<PROGRAM
#!/bin/sh
[ "\$1" = info ] || [ "\$2" = --help ] && exit 0
touch "$folder/runs"
exec sleep 4321.$$
PROGRAM
chmod +x "$folder/program"

for signal in INT TERM KILL; do
    rm -f "$folder/runs"
    sweep --hosts 1 &
    wait_for=$!
    # The script is the child of the function's subshell.
    within test -e "$folder/runs"
    pid=$(pgrep -P $wait_for -f run_scaling.sh)
    before=$(namespaces "$pid")
    kill -$signal "$pid"
    wait $wait_for
    status=$?
    result=ok
    within nothing_left "$pid" || result="something is left"
    ((before == 3 && status > 128)) || result="$before namespaces, exit $status"
    [[ ! -e /run/psring-vcluster/scaling-$pid ]] || result="the state is left"
    [[ $signal == KILL ]] || grep -q 'interrupted: .* has the finished measurements' "$folder/output" || result="it does not say so"
    verdict "$result" "SIG$signal leaves nothing"
done

printf '#!/bin/sh\necho "psring: error: broken on purpose" >&2\nexit 1\n' >"$folder/program"
sweep --hosts 1
status=$?
result=ok
((status == 1)) || result="exit $status"
grep -q 'error: broken on purpose' "$folder/output" || result="no message of the program"
grep -q 'nothing was measured' "$folder/output" || result="no message of its own"
verdict "$result" "a program that fails"

# A program that writes rows, and runs psring for reports. The probe of the ring's first start is disturbed. The first
# start of rhd fails half-way, and the probe of its second one is disturbed. A training of the ring fails after its first row.
cat >"$folder/program" <<PROGRAM
#!/bin/sh
[ "\$1" != report ] || exec "$psring" "\$@"
[ "\$1" = bench ] || [ "\$1" = train ] || exit 0
[ "\$OMPI_COMM_WORLD_RANK\$OMPI_COMM_WORLD_LOCAL_SIZE" != 12 ] || echo "\$3 \$OMPI_COMM_WORLD_SIZE \$(hostname)" >>"$folder/slots"
[ "\$OMPI_COMM_WORLD_RANK\$OMPI_COMM_WORLD_LOCAL_SIZE" = 01 ] || exit 0
command=\$1 backend=ring transport= servers=0 placement=none algorithm= link=1000000 bytes=65536 metrics= failing=
while [ \$# -gt 0 ]; do
    case \$1 in
    --backend) backend=\$2 ;;
    --transport) transport=\$2 ;;
    --servers) servers=\$2 ;;
    --placement) placement=\$2 ;;
    --mpi-algorithm) algorithm=\$2 ;;
    --csv) csv=\$2 ;;
    --metrics) metrics=\$2 ;;
    esac
    shift
done
if [ \$command = train ]; then
    [ "\$metrics" ] || exit 0
    echo backend,network,compute,workers,servers,placement,step,images,images_per_s,batch >"\$metrics"
    echo "\$backend,\$PSRING_NETWORK,paced:100,\$OMPI_COMM_WORLD_SIZE,\$servers,\$placement,5,640,900,64" >>"\$metrics"
    [ \$backend != ring ] || exit 1
    exit 0
fi
[ -n "\$transport" ] || case \$backend in ring | rhd) transport=tcp ;; *) transport=zmq ;; esac
[ \$backend\$transport != ringtcp ] || [ -e "$folder/once" ] || { link=700000 && touch "$folder/once"; }
[ \$backend\$transport != rhdtcp ] || [ -e "$folder/failed" ] || { touch "$folder/failed" && failing=true bytes=4096; }
[ \$backend\$transport\$failing != rhdtcp ] || [ -e "$folder/second" ] || { link=700000 && touch "$folder/second"; }
time=70000
[ \$backend\$servers != ps1 ] || time=140000
wrong=0
[ ! -e "$folder/wrong" ] || wrong=2
[ -e "\$csv" ] || echo backend,transport,network,workers,servers,placement,bytes,iters,time_us_median,time_us_median_low,time_us_median_high,algbw_bytes_per_s,link_bytes_per_s,link_source,mpi_algorithm,wrong >"\$csv"
echo "\$backend,\$transport,\$PSRING_NETWORK,2,\$servers,\$placement,\$bytes,7,\$time,\${time%000}000,\${time%000}900,1,\$link,probe,\$algorithm,\$wrong" >>"\$csv"
[ -z "\$failing" ] || exit 1
PROGRAM
sweep
status=$?
result=ok
grep -q 'not steady: ring, 2 workers: its probe found 5.6 Mbit/s; once more' "$folder/output" || result="no message about the disturbed probe"
[[ $(grep -c ,700000, "$folder/out/bench.csv") == 0 && $(grep -c '^ring,tcp.*,65536,.*,1000000,' "$folder/out/bench.csv") == 2 ]] ||
    result="the disturbed row is there, or not two starts: $(grep '^ring,tcp' "$folder/out/bench.csv")"
[[ ! -e $folder/out/again.csv ]] || result="again.csv is left"
grep -q "^network=" "$folder/out/summary.txt" && ! grep -q "^Not steady" "$folder/out/summary.txt" || result="the summary"
verdict "$result" "a disturbed start is repeated"

result=ok
[[ $(grep -c 'not steady: rhd, 2 workers' "$folder/output") == 1 && $(grep -c '^rhd,tcp.*,65536,.*,1000000,' "$folder/out/bench.csv") == 1 ]] ||
    result="$(grep 'not steady' "$folder/output"): $(grep '^rhd' "$folder/out/bench.csv")"
verdict "$result" "a disturbed start is repeated, even if the other one failed half-way"

result=ok
grep -q '  - 1 server: slower than the ring, 2.00 (' "$folder/out/summary.txt" || result=$(cat "$folder/out/summary.txt")
[[ $(grep -c '^ps,zmq.*,1,dedicated,65536' "$folder/out/bench.csv") == 2 ]] || result="not two starts of one server"
verdict "$result" "the answer rests on two starts"

result=ok
((status == 1)) || result="exit $status"
! grep -q '^ring' "$folder/out/train.csv" && grep -q '^ps' "$folder/out/train.csv" || result=$(cat "$folder/out/train.csv")
[[ ! -e $folder/out/training.csv ]] || result="training.csv is left"
grep -q '^INCOMPLETE: ' "$folder/out/summary.txt" || result="the summary has no INCOMPLETE"
verdict "$result" "a training that failed midway leaves no row"

result=ok
[[ $(paste -s -d , "$folder/slots") == "hierarchical 8 host0,ring 8 host0,ring 8 host1" ]] || result=$(cat "$folder/slots")
verdict "$result" "two ranks on each host, neighbours or not"

# A stand-in for mpirun starts only the first rank, which writes the rows. The sweep above has tested the real mpirun.
mkdir "$folder/bin"
cat >"$folder/bin/mpirun" <<LAUNCHER
#!/bin/sh
while [ \$# -gt 0 ] && [ "\$1" != "$folder/program" ]; do
    [ "\$1" != -x ] || export "\$2"
    shift
done
[ \$# -eq 0 ] || OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=1 exec "\$@"
LAUNCHER
chmod +x "$folder/bin/mpirun"
touch "$folder/wrong"
PATH=$folder/bin:$PATH sweep --shape racks:1x4mbit
result=ok
grep -q '^vcluster:200mbit/racks:1x4mbit$' <(tail -n +2 "$folder/out/bench.csv" | cut -d , -f 3 | sort -u) || result="the network of the rows"
grep -q '^The cluster has a shape, racks:1x4mbit\. ' "$folder/out/summary.txt" || result="the summary does not name the shape"
verdict "$result" "a cluster with a shape"
if { : <>/dev/net/tun; } 2>/dev/null; then
    PATH=$folder/bin:$PATH sweep --latency 2.0
    result=ok
    grep -q '^vcluster:200mbit+2ms$' <(tail -n +2 "$folder/out/bench.csv" | cut -d , -f 3 | sort -u) || result="the network of the rows"
    grep -q 'is up: .*, round trips of 2 ms$' "$folder/output" || result="the cluster"
    verdict "$result" "a cluster with a latency"
fi
result=ok
[[ $(sed -n 2p "$folder/out/summary.txt") == 'WRONG: '* ]] && ! grep -qE ' (ms|s)\b|faster' "$folder/out/summary.txt" || result=$(cat "$folder/out/summary.txt")
[[ -z $(find "$folder/out" -name 'time_*.svg') ]] || result="figures"
verdict "$result" "a run with wrong sums has no times"

result=ok
"$root/experiments/run_scaling.sh" --help | tail -n 1 | grep -q 'was right\.$' || result=$("$root/experiments/run_scaling.sh" --help | tail -n 1)
verdict "$result" "--help to its last line"

for arguments in "--limit x" "--hosts a,a" "--hosts a;b" "--rate 200" "--shape racks:4" "--hosts a,b --shape host1:1mbit" "--latency 10s" "--hosts a,b --latency 10" "--latency 10 --shape racks:1x4mbit" "--hosts 0" "--hosts 2,,4" "--sizes 1k" "--steps x" "--out" "--fast"; do
    # shellcheck disable=SC2086  # an option and its value
    sweep $arguments
    status=$?
    result=ok
    ((status == 2)) || result="exit $status"
    verdict "$result" "bad usage '$arguments'"
done

all_passed
