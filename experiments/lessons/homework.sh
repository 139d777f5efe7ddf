#!/usr/bin/env bash
# homework.sh new FILE | check [OPTION...] FILE: homework for students. They write an all-reduce (7_your_own.md).
#
#   new FILE           Write the skeleton of a solution into FILE. An existing file is not replaced.
#   check FILE         Judge the solution in FILE: sums, bytes and steps, for 2 to 8 workers and several lengths. One
#                      sentence names what is wrong. This takes 60 s at most.
#
#   --time             Time a right solution and psring's ring: 4 workers average 4.8 MB in a virtual cluster.
#   --log              Print what a wrong solution printed.
#   --judge PROGRAM    The judge. Default: build/psring_homework of this tree.
#
# The exit status is 0 if the solution is right, 1 if it is wrong, 2 if the command line has a mistake, and 3 if the
# judge cannot tell: it ran out of time, started no process, or was ended. Then check again on a quiet machine. If the
# system forbids network namespaces to this user, --time measures on loopback and prints the reason.
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

COMPILE_S=15
# The judge sees the solution's calls of these functions.
watched=(slot_init slot_fini send sent wait_sent flush post wait wait_any)

parse_arguments()
{
    action='' file='' judge=$(dirname "$here")/build/psring_homework with_time=0 log=()
    while (($#)); do
        case $1 in
        --time) with_time=1 ;;
        --log) log=(--log) ;;
        [!-]*)
            if [[ ! $action ]]; then
                action=$1
            elif [[ ! $file ]]; then
                file=$1
            else
                die "one file at a time; found '$file' and '$1'" 2
            fi
            ;;
        *)
            take_option "--judge" "$@"
            shift
            ;;
        esac
        shift
    done
    [[ $action == new || $action == check ]] || die "found '$action', expected new or check; see --help" 2
    [[ $file ]] || die "$action needs a file; see --help" 2
}

# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    trap '' QUIT
    end_child
    [[ ! $cluster ]] || "$here/vcluster.sh" down --name "$cluster" || true
    [[ ! $out ]] || rm -rf "$out"
}

write_skeleton()
{
    (set -o noclobber && cat "$lessons/homework.c" >"$file") 2>/dev/null ||
        die "cannot write '$file': it exists already, or its folder cannot be written" 2
    echo "$file: fill in allreduce, then run $0 check $file"
}

# Makes $out/solution.so of $file, or prints the first error.
compile()
{
    local options=() name error
    for name in "${watched[@]}"; do
        options+=("-Wl,--wrap=transport_$name")
    done
    # shellcheck disable=SC2016  # the other shell expands it
    wait_for_child timeout -k 1 $COMPILE_S bash -c 'ulimit -v 4194304 && exec "$@"' compile "${CC:-cc}" -shared -fPIC -std=c11 -D_GNU_SOURCE -O2 -g -ffp-contract=off \
        -I "$(dirname "$here")" -Wl,-Bsymbolic "${options[@]}" -o "$out/solution.so" -x c "$file" 2>"$out/errors" ||
        {
            error=$(grep -m 1 -E ': (fatal )?error: |: undefined ' "$out/errors" || tail -n 1 "$out/errors")
            echo "Wrong: It does not compile: ${error:-the compiler did not end within $COMPILE_S s}"
            exit 1
        }
}

# column FILE NAME: the values of a column of a CSV file.
column()
{
    awk -F , -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i; next } at { print $at }' "$1"
}

# Alternates between both, three starts each, so that other work on the machine disturbs both equally.
measure()
{
    local backend start status theory
    max_workers=2 rate=200mbit # raise_network raises two hosts for each
    raise_network 2>"$out/last.txt" || { cat "$out/last.txt" >&2 && die "no virtual cluster; see the lines above"; }
    [[ $network != loopback ]] || cat "$out/last.txt" >&2
    for start in 1 2 3; do
        for backend in homework ring; do
            status=0
            log_to=$out/last.txt launch 4 "$judge" bench "$out/solution.so" --backend "$backend" --transport tcp \
                --sizes 4800000 -n 3 -w 1 --timeout 20 --csv "$out/$backend.csv" || status=$?
            ((status == 0)) || { tail -n 5 "$out/last.txt" >&2 && die "start $start of $backend failed; see the lines above"; }
        done
    done
    theory=$(column "$out/ring.csv" theory_time_us | tail -n 1)
    printf '\nTime of an all-reduce of 4.8 MB by 4 workers, network=%s; three starts each\n' "$network"
    printf '  %-10s %10s   %10s   %s\n' "" median theory "time / theory"
    for backend in homework ring; do
        column "$out/$backend.csv" time_us_median | sort -g | awk -v name="$backend" -v theory="$theory" '
            { time[NR] = $1 }
            END {
                middle = time[int((NR + 1) / 2)]
                printf "  %-10s %7.1f ms   ", name, middle / 1e3
                if (theory == theory + 0 && theory > 0)
                    printf "%7.1f ms   %.2f\n", theory / 1e3, middle / theory
                else
                    printf "%10s   not known\n", "-"
            }'
    done
}

parse_arguments "$@"
# For launch.sh:
real_hosts='' shape=flat latency='' placing=() limit_s=60 cluster='' child='' link_bits=0 max_workers=0 network=loopback
cores=$(nproc) out=''
end_with clean_up
trap 'exit 131' QUIT
if [[ $action == new ]]; then
    write_skeleton
    exit
fi
[[ -r $file && ! -d $file ]] || die "cannot read '$file'" 2
[[ -x $judge && ! -d $judge ]] ||
    die "'$judge' is not a program; build the target psring_homework first, or name one with --judge" 2
judge=$(realpath "$judge")
command -v "${CC:-cc}" >/dev/null || die "'${CC:-cc}' is not a command; install a C compiler, or name one in CC" 2
out=$(mktemp -d 2>/dev/null) || die "cannot make a folder in '${TMPDIR:-/tmp}'; name another one in TMPDIR" 2
compile
status=0
wait_for_child "$judge" check "$out/solution.so" "${log[@]}" || status=$?
((status <= 3)) || die "the judge ended with exit status $status and gave no verdict; look for kill in '$file'" 3
((status == 0)) || exit "$status"
((!with_time)) || measure
