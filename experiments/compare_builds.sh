#!/usr/bin/env bash
# compare_builds.sh [OPTION...] BEFORE AFTER: finds out whether all-reduces are slower with AFTER than with BEFORE.
#
# Both are build/psring of two source trees. The script alternates BEFORE and AFTER in every measurement of the
# sweep's bench part (ring, rhd, tree and ps; not MPI_Allreduce), in one virtual cluster and over loopback. On a shared
# machine only a ratio within one run is reliable. Prints a line for each size: the median of both, the ratio of the
# medians, and the ratio of the fastest rounds. "slower" means that both ratios exceed the limit: 1.01 if links limit,
# 1.03 if processors do (CPU-limited, or over loopback). Exits with 1 if a line is slower or a measurement failed.
# Needs network namespaces.
#
#   --rounds N       rounds (default and least: 6)
#   --hosts LIST     numbers of workers (default 4,8)
#   --rate RATE      rate of a host's link each way (default 200mbit)
#   --sizes LIST     bytes (default 65536,262144,1048576,4799528)
#   --iterations N   iterations of each size (default 5)
#   --only LIST      measure only these names of the sweep's plan, such as ring,ps-dedicated-4
#   --out DIR        folder of the rows and the log; replaces an earlier run's (default: a temporary
#                    folder, removed at the end)
set -euo pipefail
export LC_ALL=C # decimal points in every locale

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

rounds=6 hosts=4,8 rate=200mbit sizes=65536,262144,1048576,4799528 iterations=5 only='' out='' programs=()
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
[[ $rounds =~ ^([6-9]|[1-9][0-9]{1,2})$ && $iterations =~ ^[1-9][0-9]{0,2}$ ]] ||
    die "--rounds '$rounds' --iterations '$iterations': expected 6 to 999 rounds, 1 to 999 iterations" 2
[[ $hosts =~ ^[1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*$ && $sizes =~ ^[0-9]+(,[0-9]+)*$ ]] ||
    die "--hosts '$hosts' --sizes '$sizes': expected numbers with commas between, hosts from 1 to 100" 2
# Backends of the plan that one of the programs, an earlier version, does not have.
lacking=
for program in "${programs[@]}"; do
    known=$("$program" bench --help 2>/dev/null) || continue
    for name in "${WITHOUT_SERVERS[@]}"; do
        grep -qE -- "--backend .*\| $name( |\$)" <<<"$known" || lacking+=" $name "
    done
    grep -q -e --radix <<<"$known" || lacking+=" rhd-radix "
done
# Filters standard input, a name per line, for the names to be measured.
chosen()
{
    local name plain
    while read -r name; do
        plain=${name%%+*}
        [[ $name != mpi-* && $lacking != *" ${plain/%-radix-*/-radix} "* && (-z $only || ,$only, == *",$name,"*) ]] && echo "$name"
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

# both RANKS ITERATIONS SIZES ARGUMENT...: measures once with each program; `launcher` has the launcher.
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
    # Runs are short, because alternation improves the ratio more than many iterations do.
    for configuration in $(printf '%s\n' {ring,ring+zmq,ring+mpi,ps-dedicated-1,ps-colocated-2}{,,,} | chosen); do
        read -ra arguments < <(backend_arguments "$configuration")
        both "$(ranks_of "$configuration" 2)" $((20 * iterations)) "4,$sizes" "${arguments[@]}"
    done
done
awk -F , -v "CPU_LIMITED=$CPU_LIMITED" -f "$here/sweep/median.awk" -f "$here/sweep/compare_builds.awk" \
    "$out/before.csv" "$out/after.csv" || failed=1
exit $failed
