#!/usr/bin/env bash
# lesson.sh N [OPTION...]: runs the experiment of lesson N in at most two minutes on two cores. N_*.md explains it.
#
#   1  one process: the average of four small gradients is the gradient of the large batch
#   2  the server's link is the bottleneck
#   3  the ring step by step, drawn from a trace
#   4  six sends, not three: why N-1 steps do not suffice
#   5  spare servers until the parameter server wins
#   6  stragglers and stale gradients
#
#   --data DIR         folder with the four files of MNIST (default: see get_mnist.sh)
#   --psring PROGRAM   (default: build/psring of this tree)
#   --out DIR          keep the results there (default: keep nothing). Replaces only results of an earlier lesson
#
# Lessons 2 to 5 build a virtual cluster with a limit on every host's link and remove it afterwards. If the system forbids
# network namespaces to this user, they print the reason and measure on loopback, which has no limit. Bytes are right
# there, but times do not show the effect.
#
# Lines under "Exact" are equal on every machine and in the text. Lines under "Measured" are from this run. "So" lists the
# lesson's conclusions and whether each holds here. The exit status is 0 if all hold. It is 3 if only conclusions about
# times fail, because a busy machine can be the reason.
set -euo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
lessons=$(cd "$(dirname "$0")" && pwd)
here=$(dirname "$lessons")
# shellcheck source-path=SCRIPTDIR source=../sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source-path=SCRIPTDIR source=../sweep/launch.sh
. "$here/sweep/launch.sh"

heed_interrupts "$@"

parse_arguments()
{
    lesson='' data='' psring=$(dirname "$here")/build/psring out=''
    while (($#)); do
        case $1 in
        [1-6])
            [[ ! $lesson ]] || die "one lesson at a time; found $lesson and $1" 2
            lesson=$1
            ;;
        [!-]*) die "found '$1', expected a lesson from 1 to 6; see --help" 2 ;;
        *)
            take_option "--data --psring --out" "$@"
            shift
            ;;
        esac
        shift
    done
    [[ $lesson ]] || die "expected a lesson from 1 to 6; see --help" 2
    need_program
}

# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    end_child
    [[ ! $cluster ]] || "$here/vcluster.sh" down --name "$cluster" || true
    [[ ! $temporary ]] || rm -rf "$temporary"
}

# --- functions of the lessons ----------------------------------------------------------------------------

# hosts N RATE: builds a cluster of N hosts, or chooses loopback.
hosts()
{
    max_workers=$((($1 + 1) / 2)) rate=$2 # raise_network raises two hosts for each
    raise_network 2>"$out/last.txt" || { cat "$out/last.txt" >&2 && die "no virtual cluster; the messages above give the reason"; }
    cat "$out/last.txt" >>"$out/log.txt"
    [[ $network != loopback ]] || cat "$out/last.txt" >&2 # why, and what to do
    echo "network=$network"
}

# ranks N COMMAND...: runs psring with N ranks on N hosts; its output goes to last.txt.
ranks()
{
    local count=$1 status=0
    shift
    log_to=$out/last.txt launch "$count" "$psring" "$@" || status=$?
    cat "$out/last.txt" >>"$out/log.txt"
    ((status == 0)) || { tail -n 5 "$out/last.txt" >&2 && die "psring $1 failed; its last messages are above"; }
}

# value FILE COLUMN [ROW]: prints a value of a CSV file, from the last row by default. Prints nothing if it is missing.
value()
{
    awk -F , -v name="$2" -v row="${3:-0}" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next }
        at && (!row || NR == row + 1) { found = $at } END { print found }' "$1"
}

# ms_of MICROSECONDS
ms_of()
{
    awk -v us="$1" 'BEGIN { printf "%.1f", us / 1e3 }'
}

# times A B: prints A / B as "2.01"; nothing if either is not a number.
times()
{
    awk -v a="$1" -v b="$2" 'BEGIN { if (a == a + 0 && b == b + 0 && b > 0) printf "%.2f", a / b }'
}

# holds A RELATION B SENTENCE: prints the sentence, and whether it holds. < and > need numbers on both sides.
holds()
{
    if awk -v a="$1" -v b="$3" -v relation="$2" 'BEGIN {
        exit !(relation == "=" ? a == b : a == a + 0 && b == b + 0 && (relation == "<" ? a < b : a > b)) }'; then
        echo "  holds:  $4"
    else
        echo "  NOT SO: $4"
        untrue=$((untrue + 1))
    fi
}

# holds_in_time ...: the same for times. Other work on the machine can falsify times, but not make them missing.
holds_in_time()
{
    local before=$untrue
    holds "$@"
    ! awk -v a="$1" -v b="$3" 'BEGIN { exit !(a == a + 0 && b == b + 0) }' || disturbed=$((disturbed + untrue - before))
}

# holds_where_links_limit ...: the same, but only if hosts have limited links.
holds_where_links_limit()
{
    if [[ $network == loopback ]]; then echo "  not to be seen on loopback:  $4"; else holds_in_time "$@"; fi
}

# Lessons 3 and 4 look at one all-reduce of four workers, from the trace of a short training.
RING_WORKERS=4

# Writes trace.json and ring.txt. ring.txt has a line for each receive of the last step's first bucket, ordered by end:
# STEP CHUNK TO FROM START_MS END_MS. Times count from the earliest start.
trace_ring()
{
    hosts $RING_WORKERS 20mbit
    ranks $RING_WORKERS train --backend ring --transport tcp --model lenet --compute paced:20 --steps 3 --bucket-mb 100 \
        --timeline "$out/trace.json"
    awk -F '[:,{}]' '
        function of(name, i) { for (i = 1; i < NF; i++) if ($i == "\"" name "\"") return $(i + 1) + 0; return -1 }
        /"name":"(reduce-scatter|all-gather)"/ && of("bucket") == 0 {
            key = of("pid") " " of("step")
            line[key] = of("step") " " of("chunk") " " of("pid") " " of("from") # the last training step stays
            start[key] = of("ts")
            end[key] = start[key] + of("dur")
        }
        END {
            for (key in start)
                if (least == "" || start[key] < least)
                    least = start[key]
            for (key in start)
                printf "%s %.2f %.2f\n", line[key], (start[key] - least) / 1e3, (end[key] - least) / 1e3
        }' "$out/trace.json" | sort -k 6n >"$out/ring.txt"
    [[ $(wc -l <"$out/ring.txt") == $((RING_WORKERS * 2 * (RING_WORKERS - 1))) ]] ||
        die "the trace has $(wc -l <"$out/ring.txt") receives, expected $((RING_WORKERS * 2 * (RING_WORKERS - 1)))"
}

need_data()
{
    data=$("$here/get_mnist.sh" ${data:+--data "$data"}) || die "no data set found; name its folder with --data DIR"
}

parse_arguments "$@"
# Variables that launch.sh reads.
real_hosts='' shape=flat latency='' placing=() limit_s=100 cluster='' child='' link_bits=0 max_workers=0 network=loopback
cores=$(nproc) temporary='' untrue=0 disturbed=0
end_with clean_up
[[ $out ]] || temporary=$(mktemp -d) || die "no folder for temporary files"
out=${out:-$temporary}
take_folder "$out"
replace_files bench.csv train.csv trace.json ring.txt log.txt last.txt
begin_log "$lesson"
# shellcheck source=/dev/null
. "$lessons"/"$lesson"_*.sh
((untrue == disturbed)) || die "$((untrue - disturbed)) of the lesson's sentences do not hold here, but must hold on every machine"
((untrue == 0)) || die "$untrue of the lesson's sentences do not hold here; repeat on a quiet machine" 3
