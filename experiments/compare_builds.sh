#!/usr/bin/env bash
# compare_builds.sh [OPTION...] BEFORE AFTER: are all-reduces slower with the program AFTER than with BEFORE?
#
# Both are build/psring of two source trees. In one virtual cluster, and over loopback, every measurement of
# the sweep's bench part (ring, rhd and ps; MPI_Allreduce is not ours) is made with BEFORE and AFTER by turns,
# because only a ratio within one run means something on a machine that others use. Prints a line for each
# size: the median of both, the ratio of the medians and that of the fastest rounds. "slower": both ratios are
# above the limit, 1.01 where links limit, 1.03 where processors do (CPU-limited, or over loopback). Exits 1 if
# a line says so, or if something failed. Needs network namespaces.
#
#   --rounds N       turns (default 3)
#   --hosts LIST     numbers of workers (default 4,8)
#   --rate RATE      of a host's link each way (default 200mbit)
#   --sizes LIST     bytes (default 65536,262144,1048576,4799528)
#   --iterations N   of each size (default 5)
#   --only LIST      such as ring,ps-dedicated-4: these alone, as the plan of the sweep names them
#   --out DIR        where the rows and the log go, in place of an earlier run's (default: a temporary
#                    folder, removed at the end)
set -euo pipefail
export LC_ALL=C # a point in numbers, whatever the user's language

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=experiments/sweep/plan.sh
. "$here/sweep/plan.sh"
# shellcheck source=experiments/sweep/constants.sh
. "$here/sweep/constants.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source=experiments/sweep/turns.sh
. "$here/sweep/turns.sh"

heed_interrupts "$@"

rounds=3 hosts=4,8 rate=200mbit sizes=65536,262144,1048576,4799528 iterations=5 only='' out='' programs=()
while (($#)); do
    case $1 in
    -*)
        take_option "--rounds --hosts --rate --sizes --iterations --only --out" "$@"
        shift
        ;;
    *) programs+=("$1") ;;
    esac
    shift
done
((${#programs[@]} == 2)) || die "needs two programs, found ${#programs[@]}; see --help" 2
for program in "${programs[@]}"; do
    [[ -x $program && ! -d $program ]] || die "'$program' is not a program; expected build/psring of a source tree" 2
done
[[ $rounds =~ ^[1-9][0-9]{0,2}$ && $iterations =~ ^[1-9][0-9]{0,2}$ ]] ||
    die "--rounds '$rounds' --iterations '$iterations': expected 1 to 999" 2
[[ $hosts =~ ^[1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*$ && $sizes =~ ^[0-9]+(,[0-9]+)*$ ]] ||
    die "--hosts '$hosts' --sizes '$sizes': expected numbers with commas between, hosts from 1 to 100" 2
# Those of standard input, a word a line, that are to be measured.
chosen()
{
    local name
    while read -r name; do
        [[ $name != mpi-* && (-z $only || ,$only, == *",$name,"*) ]] && echo "$name"
    done
    return 0
}

mode=full # of the plan: with all variants
for name in ${only//,/ }; do
    for workers in ${hosts//,/ }; do
        configurations "$workers" && variants "$workers"
    done | grep -x -- "$name" >/dev/null || die "--only '$name': expected a name of the sweep's plan, such as ring or ps-dedicated-1" 2
done
declare -A psring=([before]=$(realpath "${programs[0]}") [after]=$(realpath "${programs[1]}"))
largest=$(tr ',' '\n' <<<"$hosts" | sort -n | tail -n 1)
((largest <= 100)) || die "--hosts '$hosts': expected at most 100, because the cluster has 200 hosts at most" 2

# both RANKS ITERATIONS SIZES ARGUMENT...: one measurement with each program; the launcher is in `launcher`.
both()
{
    local ranks=$1 iterations=$2 list=$3 which
    shift 3
    turns=$((turns + 1))
    for which in $( ((turns % 2)) && echo before after || echo after before); do
        turn "$which $*" "${launcher[@]}" -n "$ranks" "${separator[@]}" "${psring[$which]}" bench "$@" --sizes "$list" \
            -n "$iterations" -w 2 --csv "$out/$which.csv"
    done
}

turns_begin $((2 * largest)) before.csv after.csv
turns=0
for ((round = 1; round <= rounds; round++)); do
    for workers in ${hosts//,/ }; do
        echo "compare_builds.sh: [$SECONDS s] round $round of $rounds, $workers workers" >&2
        launcher=("$here/vcluster.sh" run --name "$cluster") separator=(--)
        for configuration in $({ configurations "$workers" && variants "$workers"; } | chosen); do
            read -ra arguments < <(backend_arguments "$configuration")
            both "$(ranks_of "$configuration" "$workers")" "$iterations" "$sizes" "${arguments[@]}"
        done
    done
    launcher=(mpirun --allow-run-as-root --oversubscribe --bind-to none --mca pml ob1 --mca btl "self,tcp"
        --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo -x PSRING_NETWORK=loopback) separator=()
    # Short runs: how two of them lie beside each other decides more than many iterations of one.
    for configuration in $(printf '%s\n' {ring,ring+zmq,ring+mpi,ps-dedicated-1,ps-colocated-2}{,,,} | chosen); do
        read -ra arguments < <(backend_arguments "$configuration")
        both "$(ranks_of "$configuration" 2)" $((20 * iterations)) "4,$sizes" "${arguments[@]}"
    done
done
awk -F , -v "CPU_LIMITED=$CPU_LIMITED" -f "$here/sweep/median.awk" -f "$here/sweep/compare_builds.awk" \
    "$out/before.csv" "$out/after.csv" || failed=1
exit $failed
