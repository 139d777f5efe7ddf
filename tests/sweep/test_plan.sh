#!/usr/bin/env bash
# test_plan.sh: the measurements that run_scaling.sh plans, and constants that scripts share with psring.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# The plan starts each configuration that the answer compares twice, with the most workers that fit.
# seconds_of MODE MACHINES WORKERS...: prints the second starts.
seconds_of()
{
    (
        # shellcheck disable=SC2034,SC2030  # plan.sh reads them
        mode=$1 real_hosts=$2 machines=() workers_list=("${@:3}") max_workers=${*: -1} cluster='' train='' asked_sizes='' link_bits=200000000
        # shellcheck disable=SC2034,SC2030
        sizes=(65536 4799528) quick_size=4799528 published_s=0 train_workers=4
        # shellcheck disable=SC2206  # a name each
        machines=($2)
        # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/constants.sh
        . "$root/experiments/sweep/constants.sh"
        # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/plan.sh
        . "$root/experiments/sweep/plan.sh"
        gpu_points() { :; }
        choose_points
        printf '%s\n' "${plan[@]}" | sed -n 's/^second //p'
    )
}
for mode in quick default full; do
    said=$(seconds_of $mode '' 1 2 4 | sort | paste -sd ';')
    expected='mpi-default 4 4799528;mpi-rabenseifner 4 4799528;mpi-ring 4 4799528;mpi-segmented 4 4799528;ps-colocated-1 4 4799528;ps-colocated-4 4 4799528;ps-dedicated-1 4 65536,4799528;ps-dedicated-4 4 4799528;ps-mixed-2 4 4799528;rhd 4 4799528;rhd-radix-4 4 4799528;ring 4 65536,4799528;tree 4 4799528'
    [[ $mode != quick ]] ||
        expected='mpi-default 4 4799528;ps-colocated-4 4 4799528;ps-dedicated-1 4 65536,4799528;ps-dedicated-4 4 4799528;ps-mixed-2 4 4799528;rhd 4 4799528;ring 4 65536,4799528'
    expect "second starts of the $mode sweep are '$said'" test "$said" = "$expected"
done
# With five machines dedicated servers need fewer workers. The ring has two starts with that number, too.
said=$(seconds_of default 'a b c d e' 1 2 4 5 | sort | paste -sd ';')
expected='mpi-default 5 4799528;mpi-rabenseifner 5 4799528;mpi-ring 5 4799528;mpi-segmented 5 4799528;ps-colocated-1 5 4799528;ps-colocated-5 5 4799528;ps-dedicated-1 4 65536,4799528;ps-dedicated-2 2 4799528;ps-mixed-1 2 4799528;rhd 5 4799528;rhd-radix-4 4 4799528;ring 2 4799528;ring 4 65536,4799528;ring 5 4799528;tree 5 4799528'
expect "second starts on five machines are '$said'" test "$said" = "$expected"

# A server in the switch needs none of the five machines.
said=$(has_switch=further seconds_of default 'a b c d e' 1 2 4 5 | sort | paste -sd ';')
expected=${expected/rhd 5/ps-switch-1 5 4799528;rhd 5}
expect "second starts with a machine in the switch are '$said'" test "$said" = "$expected"

# with_latency MS COMMAND...: calls a function of the plan. For a ring of four, 2 W ways of 50 ms are 0.4 s, for each of
# 11 iterations, twice, and four times in the limit.
with_latency()
(
    # shellcheck disable=SC2034,SC2030  # plan.sh reads them
    latency=$1 link_bits=200000000 shared_bits=0 probed_bits=0 warmup=1 iterations=0
    # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/constants.sh
    . "$root/experiments/sweep/constants.sh"
    # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/plan.sh
    . "$root/experiments/sweep/plan.sh"
    PACED_MS=100 "${@:2}"
)
expect "the limit without a latency" test "$(with_latency '' limit_of bench 4 65536)" = 141
expect "the limit with 100 ms" test "$(with_latency 100 limit_of bench 4 65536)" = 177
expect "a model's gradients without a latency" test "$(with_latency '' published_seconds ring 4 102228128)" = "50 3 1"
expect "a model's gradients with 100 ms" test "$(with_latency 100 published_seconds ring 4 102228128)" = "52 3 1"

# Rank 0's machine needs a folder for rows. A folder that cannot be made ends the sweep with a message. Something else
# that the machine prints is no folder, and is not removed.
without_folder()
(
    # shellcheck disable=SC2034,SC2030  # machines.sh reads them
    machines=(a b) real_hosts=a,b psring=/bin/true out=$folder link_bits=0 data_arguments=()
    # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/script.sh
    . "$root/experiments/sweep/script.sh"
    # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/machines.sh
    . "$root/experiments/sweep/machines.sh"
    ask_machines() { :; }
    # shellcheck disable=SC2154  # the caller sets it
    launch() { : >"$log_to"; }
    on_machine()
    {
        echo "$*" >>"$folder/asked"
        [[ $2 != mktemp ]] || { echo /etc && return 1; }
    }
    # shellcheck disable=SC2034  # machines.sh reads it
    there='' answers=''
    trap forget_machines EXIT
    set -e
    check_machines
)
without_folder >"$folder/output" 2>&1
expect "the machine without a folder for rows is named" grep -q 'a: no place for rows' "$folder/output"
expect "nothing else is removed" test "$(grep -c 'mktemp\|rm -rf' "$folder/asked")" = 1

# Rows come from the first machine once each, also if it answers only the third time, and none if it never does.
fetched_rows()
(
    set -e
    # shellcheck disable=SC2034,SC2030  # machines.sh reads them
    machines=(a) out=$folder/rows there=$folder/there
    mkdir -p "$out" "$there"
    # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/script.sh
    . "$root/experiments/sweep/script.sh"
    # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/machines.sh
    . "$root/experiments/sweep/machines.sh"
    on_machine()
    {
        shift
        "$@"
        ((--refusals < 0)) # the answer is lost on its way
    }
    printf '%s\n' head one two >"$there/1.bench.csv"
    printf '%s\n' head three >"$there/2.bench.csv"
    printf '%s\n' head four >"$there/3.bench.csv"
    refusals=2 && fetch_rows "$there/1.bench.csv"
    refusals=3 && ! fetch_rows "$there/2.bench.csv"
    refusals=0 && fetch_rows "$there/3.bench.csv" && fetch_rows "$there/4.bench.csv"
    ls "$out"
)
expect "fetched rows" test "$(fetched_rows 2>"$folder/said" | xargs)" = "bench.csv log.txt"
expect "the refusal" grep -q 'cannot fetch its rows in .*2.bench.csv' "$folder/said"
expect "rows that came" test "$(xargs <"$folder/rows/bench.csv")" = "head one two four"

# The default sweep leaves out sizes that need too much time, unless the user chose them. The tables' size stays.
sizes_in_time() # MODE ASKED CONFIGURATION LIST
{
    # shellcheck disable=SC2034  # plan.sh reads them
    mode=$1 asked_sizes=$2 quick_size=4799528 with_latency '' in_time "$3" 8 "$4"
}
expect "one server's time" test "$(sizes_in_time default '' ps-dedicated-1 4096,4799528,26214400)" = 4096,4799528
expect "the ring's time" test "$(sizes_in_time default '' ring 4799528,26214400)" = 4799528,26214400
expect "a variant's time" test "$(sizes_in_time default '' ps-dedicated-1+tcp 4799528,26214400)" = 4799528
expect "the tables' size" test "$(sizes_in_time default '' ps-colocated-1 4096,4799528)" = 4096,4799528
expect "chosen sizes" test "$(sizes_in_time default 26214400 ps-dedicated-1 4096,26214400)" = 4096,26214400
expect "the time of the full sweep" test "$(sizes_in_time full '' ps-dedicated-1 4096,26214400)" = 4096,26214400

# The rate of the links decides which published models a sweep has time for.
plan_of()
{
    (
        # shellcheck disable=SC2034  # plan.sh reads them
        mode=default link_bits=$1 max_workers=8 published_s=120
        # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/plan.sh
        . "$root/experiments/sweep/plan.sh"
        # shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/constants.sh
        . "$root/experiments/sweep/constants.sh"
        published_points
    )
}
expect "a plan at 200 Mbit/s" test "$(plan_of 200000000 | cut -d ' ' -f 1 | sort | uniq -c | xargs)" = '7 published 5 too-long'
wanted() # TEXT
{
    echo "$1" >"$folder/said"
    bash -c '. "$0" && memory_wanted "$1"' "$root/experiments/sweep/plan.sh" "$folder/said"
}
expect "the GB in the memory error of bench" test "$(wanted 'psring: error: --model-gradients vgg16: 8 ranks on the machine of a need about 5.5 GB, and 3.1 GB are free there; start fewer')" = 5.5
expect "the memory error in the source of bench" grep -q 'need about %.1f GB, and "' "$root/experiments/bench/model_gradients.c"
expect "another error is not about memory" test -z "$(wanted 'psring: error: something else')"
expect "a plan at 10 Gbit/s" test "$(plan_of 10000000000 | cut -d ' ' -f 1 | sort | uniq -c | xargs)" = '12 published'
for model in resnet50:25557032 vgg16:138357544 gpt2:124439808 bert-large:336226108; do
    expect "the bytes of $model" grep -q "${model%:*} $((4 * ${model#*:}))[ ']" "$root/experiments/sweep/constants.sh"
    expect "the parameters of $model" grep -q "parameters, ${model#*:})" "$root/tests/models/test_published.c"
done

# json_string quotes every character that a name can have.
# shellcheck source=/dev/null
. "$root/experiments/sweep/provenance.sh"
said=$(json_string $'a\nb\t\r"\\')
expect "json_string says $said" test "$said" = '"ab\t\"\\"'

# Constants in scripts equal those in psring.
expect 'HEADER_BYTES of constants.sh is MESSAGE_HEADER_BYTES of message.h' grep -q \
    "MESSAGE_HEADER_BYTES = $(sed -n 's/^HEADER_BYTES=\([0-9]*\).*/\1/p' "$root/experiments/sweep/constants.sh")," \
    "$root/common/net/transport/message.h"
expect 'MODEL_BYTES of constants.sh is RESULTS_MODEL_BYTES of results.h' grep -q \
    "RESULTS_MODEL_BYTES = $(sed -n 's/^MODEL_BYTES=\([0-9]*\).*/\1/p' "$root/experiments/sweep/constants.sh") " \
    "$root/experiments/bench/results.h"
expect 'CPU_LIMITED of constants.sh is CPU_SHARE_LIMITED of cpu_watch.h' grep -q \
    "CPU_SHARE_LIMITED $(sed -n 's/^CPU_LIMITED=\([0-9.]*\).*/\1/p' "$root/experiments/sweep/constants.sh")$" \
    "$root/common/net/cpu_watch.h"

all_passed
