#!/usr/bin/env bash
# lesson.sh N [OPTION...]: a lesson's experiment: at most two minutes on two cores. Its text is N_*.md beside this file.
#
#   1  one process: the average of four small gradients is the gradient of the large batch
#   2  the server's link is the bottleneck
#   3  the ring step by step, drawn from its own trace
#   4  six sends, not three: why N-1 steps do not suffice
#   5  spare servers until the parameter server wins
#   6  stragglers and stale gradients
#
#   --data DIR         folder with the four files of MNIST (default: see get_mnist.sh)
#   --psring PROGRAM   (default: build/psring of this tree)
#   --out DIR          keep the results there (default: keep nothing); replaces the results of an earlier lesson only
#
# Lessons 2 to 5 raise a virtual cluster with a limit on every host's link and take it down again. If the system allows
# this user no network namespaces, they name the reason and measure on loopback, which has no limit. Bytes are right
# there, and times do not show the effect.
#
# What is the same on every machine is under "Exact", as it stands in the text; under "Measured" is what this run took;
# under "So" are the sentences that the lesson is about, each with whether it holds here. The exit status is 0 only if all
# hold, and 3 if none fails but of times, for which a busy machine may be the reason.
set -euo pipefail
export LC_ALL=C

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
    trap '' INT TERM HUP
    [[ ! $child ]] || { kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
    [[ ! $cluster ]] || "$here/vcluster.sh" down --name "$cluster" || true
    [[ ! $temporary ]] || rm -rf "$temporary"
}

# --- what the lessons are made of ------------------------------------------------------------------------

# hosts N RATE: a cluster of so many hosts, or loopback.
hosts()
{
    max_workers=$((($1 + 1) / 2)) rate=$2 # raise_network raises two hosts for each
    raise_network 2>"$out/last.txt" || { cat "$out/last.txt" >&2 && die "no virtual cluster; what was said stands above"; }
    cat "$out/last.txt" >>"$out/log.txt"
    [[ $network != loopback ]] || cat "$out/last.txt" >&2 # why, and what to do
    echo "network=$network"
}

# ranks N COMMAND...: psring with so many ranks, a host each; its words go to last.txt.
ranks()
{
    local count=$1 status=0
    shift
    log_to=$out/last.txt launch "$count" "$psring" "$@" || status=$?
    cat "$out/last.txt" >>"$out/log.txt"
    ((status == 0)) || { tail -n 5 "$out/last.txt" >&2 && die "psring $1 failed; what it said stands above"; }
}

# value FILE COLUMN [ROW]: of a CSV file, by the column's name; of the last row, unless told. Nothing if it is not there.
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

# times A B: "2.01"; nothing if that is no number.
times()
{
    awk -v a="$1" -v b="$2" 'BEGIN { if (a == a + 0 && b == b + 0 && b > 0) printf "%.2f", a / b }'
}

# holds A RELATION B SENTENCE: prints the sentence, and whether it holds; with < or > what is no number does not.
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

# holds_in_time ...: the same of times, which others on the machine can disturb. They cannot make them no numbers.
holds_in_time()
{
    local before=$untrue
    holds "$@"
    ! awk -v a="$1" -v b="$3" 'BEGIN { exit !(a == a + 0 && b == b + 0) }' || disturbed=$((disturbed + untrue - before))
}

# holds_where_links_limit ...: the same, where a node has a limit of its own.
holds_where_links_limit()
{
    if [[ $network == loopback ]]; then echo "  not to be seen on loopback:  $4"; else holds_in_time "$@"; fi
}

need_data()
{
    data=$("$here/get_mnist.sh" ${data:+--data "$data"}) || die "no data; --data DIR names a folder that has it"
}

parse_arguments "$@"
# What launch.sh wants to know.
real_hosts='' shape=flat placing=() limit_s=100 cluster='' child='' link_bits=0 max_workers=0 network=loopback
cores=$(nproc) temporary='' untrue=0 disturbed=0
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
[[ $out ]] || { temporary=$(mktemp -d) && out=$temporary; }
take_folder "$out"
replace_files bench.csv train.csv trace.json ring.txt log.txt last.txt
begin_log "$lesson"
# shellcheck source=/dev/null
. "$lessons"/"$lesson"_*.sh
((untrue == disturbed)) || die "$((untrue - disturbed)) of the lesson's sentences do not hold here, and ought to everywhere"
((untrue == 0)) || die "$untrue of the lesson's sentences do not hold here: is the machine busy?" 3
