#!/usr/bin/env bash
# test_compare_transports.sh: compare_transports.sh makes a table of rows, and refuses wrong arguments.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
sweep=$root/experiments/sweep

# row BACKEND TRANSPORT ALGORITHM BYTES TIME
row()
{
    echo "$1,$2,none,0,2,$4,$5,$3" >>"$folder/rows.csv"
}

# says STATUS COLUMNS: makes the table with these columns and checks the exit code.
says()
{
    local status=0
    awk -F , -v "columns=$2" -f "$sweep/median.awk" -f "$sweep/compare_transports.awk" \
        "$folder/limits.csv" "$folder/rows.csv" >"$folder/said" || status=$?
    ((status == $1)) || fail "exit $status, expected $1: $(cat "$folder/said")"
}

expect_line()
{
    grep -qE "$1" "$folder/said" || fail "expected '$1' in: $(cat "$folder/said")"
}

refuses()
{
    local pattern=$1 status=0
    shift
    "$root/experiments/compare_transports.sh" "$@" >"$folder/said" 2>&1 || status=$?
    ((status == 2)) || fail "$*: exit $status, expected 2"
    grep -q -- "$pattern" "$folder/said" || fail "$*: expected '$pattern' in: $(cat "$folder/said")"
}

printf '%s\n' tcp_rtt_us,stream_bytes_per_s 20,2e9 16,1e9 17,3e9 >"$folder/limits.csv"
echo backend,transport,placement,servers,workers,bytes,time_us_median,mpi_algorithm >"$folder/rows.csv"
for time in 30 10 20; do
    row ring tcp '' 4 "$time"
    row ring zmq '' 4 $((time * 5))
done
row rhd tcp '' 4 15 # "tcp / mpi" takes the fastest of each
row tree tcp '' 4 14
row mpi '' default 4 60
row mpi '' ring 4 30
says 0 'ring+zmq ring+tcp rhd+tcp mpi-default mpi-ring'
expect_line '^4 bytes .* there and back: 17\.0 us; .* 2000\.0 MB/s each$'
expect_line '^2 workers; us +ring[+]zmq +ring[+]tcp +rhd[+]tcp +mpi-default +mpi-ring +tcp / mpi +fastest$'
expect_line '^ +4 +100\.0 +20\.0 +15\.0 +60\.0 +30\.0 +0\.50 +0\.33$'
# Older programs call the column tcp_rtt_us socket_round_trip_us.
sed -i '1s/tcp_rtt_us/socket_round_trip_us/' "$folder/limits.csv"
says 0 'ring+zmq ring+tcp rhd+tcp mpi-default mpi-ring'
expect_line '^4 bytes .* there and back: 17\.0 us; .* 2000\.0 MB/s each$'
says 0 'ring+tcp rhd+tcp tree+tcp mpi-ring'
expect_line '^ +4 +20\.0 +15\.0 +14\.0 +30\.0 +0\.47 +0\.33$'
# A column without rows is a failure.
says 1 'ring+tcp mpi-segmented'
expect_line '^ +4 +20\.0 +- *$'

# Wrong sums are a failure, and their times are in no ratio.
sed '1s/$/,wrong/; 2,$s/$/,0/; /^rhd/s/0$/3/' "$folder/rows.csv" >"$folder/kept"
cp "$folder/rows.csv" "$folder/right"
mv "$folder/kept" "$folder/rows.csv"
says 1 'ring+zmq ring+tcp rhd+tcp mpi-default mpi-ring'
expect_line '^ +4 +100\.0 +20\.0 +WRONG +60\.0 +30\.0 +0\.67 +0\.33$'
mv "$folder/right" "$folder/rows.csv"

# Rows without the machine's limits are a failure.
: >"$folder/limits.csv"
says 1 'ring+tcp'
expect_line "^the machine's own limits could not be measured\$"
expect_line '^ +4 +20\.0 *$'

refuses "--only 'ring': expected of ring+zmq" --psring /bin/true --only ring
refuses "'/nowhere' is not a program" --psring /nowhere
refuses "unknown argument 'more'" more
refuses "expected numbers" --psring /bin/true --hosts two
refuses "hosts from 2 to 199" --psring /bin/true --hosts 2,08
