#!/usr/bin/env bash
# test_compare_builds.sh: compare_builds.sh compares the rows of two builds, and refuses wrong arguments.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
sweep=$root/experiments/sweep

# rows FILE NETWORK TIME...: appends a row for each of these median times.
rows()
{
    local file=$1 network=$2 time
    shift 2
    [[ -s $file ]] || echo "backend,network,transport,workers,servers,placement,bytes,time_us_median,compress,cpu_busy,wrong" >"$file"
    for time; do
        echo "ring,$network,zmq,4,0,none,65536,$time,none,${cpu_busy:-0.1},${wrong:-0}" >>"$file"
    done
}

# says STATUS PATTERN: compares the files `before` and `after` and checks exit code and output.
says()
{
    local status=0
    awk -F , -v CPU_LIMITED=0.85 -f "$sweep/median.awk" -f "$sweep/compare_builds.awk" \
        "$folder"/{before,after}.csv >"$folder/said" || status=$?
    ((status == $1)) || fail "exit $status, expected $1: $(cat "$folder/said")"
    grep -qE "$2" "$folder/said" || fail "expected '$2' in: $(cat "$folder/said")"
    rm -f "$folder"/*.csv
}

# refuses PATTERN ARGUMENT...
refuses()
{
    local pattern=$1 status=0
    shift
    "$root/experiments/compare_builds.sh" "$@" >"$folder/said" 2>&1 || status=$?
    ((status == 2)) || fail "$*: exit $status, expected 2"
    grep -q -- "$pattern" "$folder/said" || fail "$*: expected '$pattern' in: $(cat "$folder/said")"
}

# A build that is 2% slower is reported where links are the limit, but not over loopback. The median of an even number
# of times is the mean of the middle two.
rows "$folder/before.csv" vcluster:200mbit 100 104 102
rows "$folder/after.csv" vcluster:200mbit 106 102 104
says 1 ' 102\.0 +104\.0 +1\.020 +1\.020  slower$'
rows "$folder/before.csv" loopback 100 102
rows "$folder/after.csv" loopback 102 104
says 0 ' 101\.0 +103\.0 +1\.020 +1\.020$'
# It is not reported where processors are the limit.
cpu_busy=0.9 rows "$folder/before.csv" vcluster:200mbit 100
rows "$folder/after.csv" vcluster:200mbit 102
says 0 ' 1\.020 +1\.020$'
# A single disturbed round does not make a build slower.
rows "$folder/before.csv" vcluster:200mbit 100 100
rows "$folder/after.csv" vcluster:200mbit 100 200
says 0 ' 150\.0 +1\.500 +1\.000$'
# A build with wrong sums has no ratio, even if it is faster.
rows "$folder/before.csv" vcluster:200mbit 100
wrong=3 rows "$folder/after.csv" vcluster:200mbit 50
says 1 ' WRONG sums$'
# A row of only one of the builds is a failure.
rows "$folder/before.csv" vcluster:200mbit 100
rows "$folder/after.csv" loopback 100
says 1 'measured with one of them only$'

refuses 'needs two programs, found 1' /bin/true
refuses "--only 'rings': expected a name" --only ring,rings /bin/true /bin/true
refuses "'/nowhere' is not a program" /bin/true /nowhere
refuses "unknown argument '--turns'" --turns 3 /bin/true /bin/true
refuses "expected 6 to 999" --rounds 5 /bin/true /bin/true
refuses "expected numbers" --hosts 4,eight /bin/true /bin/true
refuses "hosts from 1 to 100" --hosts 0 /bin/true /bin/true
