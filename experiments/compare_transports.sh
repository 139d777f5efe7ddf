#!/usr/bin/env bash
# compare_transports.sh [OPTION...]: compares each transport with MPI_Allreduce and with the machine's limits.
#
# The script runs in one virtual cluster, by default without a limit on its links. It alternates between psring's
# all-reduces over each transport, one server over each transport, and each algorithm of MPI_Allreduce. For each number
# of workers and each size it prints the median of all rounds in us. The column "tcp / mpi" divides the fastest of ring,
# rhd and tree over tcp by the fastest algorithm of MPI_Allreduce, "fastest" does so for the fastest rounds. The head has the
# machine's limits from the same run: the round trip of 4 bytes on a plain socket, and the rate of two opposite TCP
# streams. If links have no limit, processors are the limit, so use an idle machine. Needs network namespaces.
#
#   --rate RATE      rate of a host's link each way, or none (default none)
#   --hosts LIST     numbers of workers (default 2,4)
#   --rounds N       rounds (default 5)
#   --sizes LIST     bytes (default 4,1024,16384,65536,262144,1048576,4799528,26214400,67108864)
#   --iterations N   iterations of each size in each round (default 0: as bench chooses)
#   --only LIST      measure only these columns, such as ring+tcp,mpi-ring,ps-dedicated-1+zmq (default: all)
#   --pin            bind rank r to core r (modulo the number of cores), so that the kernel's choice has no influence
#   --psring FILE    the program (default: build/psring of this tree)
#   --out DIR        folder of the rows and the log; replaces an earlier run's (default: a temporary folder, removed)
set -euo pipefail
export LC_ALL=C # decimal points in every locale

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=experiments/sweep/plan.sh
. "$here/sweep/plan.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source=experiments/sweep/turns.sh
. "$here/sweep/turns.sh"

heed_interrupts "$@"

rate=none hosts=2,4 rounds=5 iterations=0 only='' pin='' psring=$here/../build/psring out=''
sizes=4,1024,16384,65536,262144,1048576,4799528,26214400,67108864
while (($#)); do
    case $1 in
    --pin) pin=yes ;;
    *)
        take_option "--rate --hosts --rounds --sizes --iterations --only --psring --out" "$@"
        shift
        ;;
    esac
    shift
done
need_program
[[ $rounds =~ ^[1-9][0-9]{0,2}$ && $iterations =~ ^[0-9]{1,4}$ ]] ||
    die "--rounds '$rounds' --iterations '$iterations': expected 1 to 999, and 0 to 9999" 2
[[ $hosts =~ ^[1-9][0-9]{0,2}(,[1-9][0-9]{0,2})*$ && ! ,$hosts, == *,1,* && $sizes =~ ^[0-9]+(,[0-9]+)*$ ]] ||
    die "--hosts '$hosts' --sizes '$sizes': expected numbers with commas between, hosts from 2 to 199" 2

# The measurements, in the order of the columns.
compared=(ring+zmq ring+mpi ring+tcp rhd+tcp tree+tcp mpi-default mpi-ring mpi-segmented mpi-rabenseifner
    ps-dedicated-1+zmq ps-dedicated-1+mpi ps-dedicated-1+tcp)
if [[ $only ]]; then
    for name in ${only//,/ }; do
        printf '%s\n' "${compared[@]}" | grep -x -- "$name" >/dev/null ||
            die "--only '$name': expected of ${compared[*]}" 2
    done
    IFS=, read -ra compared <<<"$only"
fi

largest=$(tr ',' '\n' <<<"$hosts" | sort -n | tail -n 1)
((largest <= 199)) || die "--hosts '$hosts': expected at most 199, because the cluster has 200 hosts at most" 2
turns_begin $((largest + 1)) rows.csv limits.csv
program=("$psring")
# shellcheck disable=SC2016  # expanded by the rank's shell
[[ ! $pin ]] || program=(sh -c 'exec taskset -c $((OMPI_COMM_WORLD_RANK % $(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc))) "$@"' pin "$psring")
for ((round = 1; round <= rounds; round++)); do
    turn limits "$here/vcluster.sh" run --name "$cluster" -n 2 -- "${program[@]}" bench --baselines --probe on \
        --sizes 4 -n 1 --csv "$out/limits.csv"
    for workers in ${hosts//,/ }; do
        echo "compare_transports.sh: [$SECONDS s] round $round of $rounds, $workers workers" >&2
        for name in "${compared[@]}"; do
            read -ra arguments < <(backend_arguments "$name")
            turn "$name W=$workers" "$here/vcluster.sh" run --name "$cluster" -n "$(ranks_of "$name" "$workers")" -- \
                "${program[@]}" bench "${arguments[@]}" --probe off --sizes "$sizes" -n "$iterations" --csv "$out/rows.csv"
        done
    done
done
touch "$out/limits.csv" "$out/rows.csv" # missing if every turn failed
awk -F , -v "columns=${compared[*]}" -f "$here/sweep/median.awk" \
    -f "$here/sweep/compare_transports.awk" "$out/limits.csv" "$out/rows.csv" || failed=1
exit $failed
