#!/usr/bin/env bash
# run_consistency.sh [OPTION...]: measures the cost of waiting for other workers. Trains to a target accuracy with each
# kind of consistency: bulk-synchronous (bsp), a backup worker, ssp:1, ssp:3, ssp:8, async, and the ring. Does so with
# equal workers, and with one that computes four times as long.
#
# All runs are on this machine, over loopback, with one dedicated server (the ring has none). The kinds alternate for
# each seed. A step computes and then waits until --step-ms have passed since its start (psring train --compute real:MS).
# Therefore workers that share cores are equally fast, the slow one is slow by its factor, and the script compares
# waiting, not cores. Times are those of steps, without tests. Between tests, each --test-steps, workers do not meet. The
# learning rate decays towards the end of --epochs, equally for all.
#
#   --quick            a few seconds: few steps of two workers, a low target, one seed; only a trial
#   --out DIR          folder of the results (default: results-DATE-TIME); replaces an earlier run's
#   --workers N        (default 4); the last one is the slow one
#   --factor F         factor of the slow worker's computing time (default 4)
#   --target PERCENT   accuracy on the test set (default 98.5)
#   --seeds LIST       (default 1,2,3)
#   --model MODEL      (default lenet, which needs little of --step-ms)
#   --epochs N         largest number of epochs (default 3)
#   --batch N          images a step, per worker (default 32)
#   --lr RATE          for all (default 0.2)
#   --momentum M       for all (default 0, because stale gradients act as momentum; with 0.9 ssp and async miss the
#                      target; see README.md)
#   --step-ms MS       computation of a step (default 40)
#   --test-steps N     tests every N steps (default 50)
#   --data DIR         folder with the four files of MNIST (default: see get_mnist.sh)
#   --psring PROGRAM   (default: build/psring of this tree)
#   --limit SECONDS    time limit of a run; a longer run is ended, and missed the target (default 1200)
#
# DIR gets consistency.csv (a row per run), summary.txt (tables and ranking, also printed), consistency.svg, .png and
# .pdf, report.html, provenance.json and log.txt. The exit status is 0 if every run ended normally. A run that did not
# reach the target also counts as ended; the summary names it.
set -euo pipefail
export LC_ALL=C # decimal points in every locale

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/provenance.sh
. "$here/sweep/provenance.sh"

heed_interrupts "$@"

parse_arguments()
{
    command_line="$0 $*"
    out='' workers=4 factor=4 target=98.5 seeds=1,2,3 model=lenet epochs=3 batch=32 lr=0.2 momentum=0 step_ms=40 test_steps=50 steps=0
    limit=1200 quick=0 data='' psring=$root/build/psring
    # Read --quick first, so that other options have the same effect before and after it.
    [[ " $* " != *' --quick '* ]] ||
        quick=1 workers=2 target=60 seeds=1 epochs=1 batch=10 step_ms=4 test_steps=10 steps=30 limit=120
    while (($#)); do
        case $1 in
        --quick) ;;
        *)
            take_option "--out --workers --factor --target --seeds --model --epochs --batch --lr --momentum --step-ms --test-steps --data --psring --limit" "$@"
            shift
            ;;
        esac
        shift
    done
    local number
    for number in workers epochs batch test_steps limit; do
        [[ ${!number} =~ ^[1-9][0-9]{0,5}$ ]] || die "--${number//_/-} '${!number}': expected a number from 1" 2
    done
    for number in factor target lr momentum step_ms; do
        [[ ${!number} =~ ^[0-9]{1,6}(\.[0-9]{1,6})?$ ]] || die "--${number//_/-} '${!number}': expected a number, e.g. 4.5" 2
    done
    ((workers >= 2 && workers <= 99)) || die "--workers '$workers': expected 2 to 99" 2
    [[ $seeds =~ ^[0-9]{1,9}(,[0-9]{1,9})*$ ]] || die "--seeds '$seeds': expected numbers with commas between" 2
    [[ -z $(tr , '\n' <<<"$seeds" | sort | uniq -d) ]] || die "--seeds '$seeds': one is there twice" 2
    need_program
}

# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    end_child
    rm -f "$out/run.csv" "$out/run.txt"
}

# shellcheck disable=SC2317  # called by a trap
interrupted() # EXIT-CODE
{
    trap '' INT TERM HUP
    say "interrupted: $out has the rows of the runs that had ended; there is no summary of them"
    exit "$1"
}

# [log_to=FILE] launch RANKS COMMAND...: runs for at most --limit. It runs in the background, because bash handles a
# signal only between foreground commands. If setpriv exists, a SIGKILL of this script also ends it.
launch()
{
    local bound=(timeout -k 10 "$limit") mpi=(mpirun -n "$1" --bind-to none --oversubscribe --mca pml ob1
        --mca btl 'self,tcp' --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo --mca mpi_yield_when_idle 1)
    shift
    ((EUID != 0)) || mpi+=(--allow-run-as-root)
    mpi+=(-x PSRING_NETWORK=loopback)
    ! command -v setpriv >/dev/null || bound=(setpriv --pdeathsig TERM "${bound[@]}")
    wait_for_child "${bound[@]}" "${mpi[@]}" "$@"
}

# The options of each kind, by name. All but the ring have one more rank, the server. All use one transport.
modes=(bsp backup ssp:1 ssp:3 ssp:8 async ring)
mode_options()
{
    case $1 in
    ring) echo --backend ring --transport zmq ;;
    bsp) echo --backend ps --transport zmq ;;
    backup) echo --backend ps --transport zmq --backup-workers 1 ;;
    *) echo --backend ps --transport zmq --sync "$1" ;;
    esac
}

# train MODE STRAGGLER SEED: makes a run and writes its row.
train()
{
    local mode=$1 straggler=$2 seed=$3 ranks=$workers status=0 options begun
    read -ra options < <(mode_options "$mode")
    [[ $mode == ring ]] || ranks=$((workers + 1))
    [[ $straggler == none ]] || options+=(--straggler "$straggler")
    options+=(--model "$model" --data "$data" --batch "$batch" --lr "$lr" --momentum "$momentum" --epochs "$epochs"
        --steps "$steps" --seed "$seed" --threads 1 --compute "real:$step_ms" --target-accuracy "$target" --log-steps "$test_steps")
    done_runs=$((done_runs + 1))
    say "[$done_runs/$runs, $((SECONDS - started)) s] $mode, straggler $straggler, seed $seed"
    commands+=("$mode, straggler $straggler, seed $seed: $(printf '%q ' "$psring" train "${options[@]}")")
    rm -f "$out/run.csv"
    begun=$SECONDS
    log_to=$out/run.txt launch "$ranks" "$psring" train "${options[@]}" --metrics "$out/run.csv" || status=$?
    { echo "== $mode, straggler $straggler, seed $seed" && cat "$out/run.txt"; } >>"$out/log.txt"
    if ((status)); then
        failures=$((failures + 1))
        say "failed: $mode, straggler $straggler, seed $seed: exit $status: $(grep -m 1 error "$out/run.txt" || tail -n 1 "$out/run.txt")"
        # mpirun ends with 137, too, when a rank was killed.
        if ((status == 124 || (status == 137 && SECONDS - begun >= limit))) &&
            (($(wc -l 2>/dev/null <"$out/run.csv" || echo 0) > 1)); then
            say "it was ended after $limit s, the limit of a run, and counts as one that missed the target"
        else
            failed+=("$mode, straggler $straggler, seed $seed")
            return 0
        fi
    fi
    awk -F , -v mode="$mode" -v header="$([[ -s $out/consistency.csv ]] || echo 1)" \
        -f "$here/sweep/consistency_row.awk" "$out/run.csv" >>"$out/consistency.csv"
}

# Records failed runs and --quick for psring report.
note_facts()
{
    provenance_facts=$(
        printf '  "quick": %d,\n  "failed": ' "$quick"
        json_lines "$(printf '%s\n' "${failed[@]}")"
    )$'\n'
}

parse_arguments "$@"
data=$("$here/get_mnist.sh" ${data:+--data "$data"}) || exit 1
take_folder "${out:-results-$(date +%Y%m%d-%H%M%S)}"
replace_files consistency.{csv,svg,png,pdf} {summary,log}.txt report.html provenance.json run.csv run.txt info.json
begin_log "$command_line"
started=$SECONDS failures=0 done_runs=0 child='' commands=() failed=()
# Variables that provenance.sh reads, as in run_scaling.sh.
# shellcheck disable=SC2034
cluster='' network=loopback link_bits=0 machines_table='' cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
IFS=, read -ra seed_list <<<"$seeds"
runs=$((2 * ${#modes[@]} * ${#seed_list[@]}))
end_with clean_up interrupted
for seed in "${seed_list[@]}"; do
    for straggler in none $((workers - 1)):"$factor"; do
        for mode in "${modes[@]}"; do
            train "$mode" "$straggler" "$seed"
        done
    done
done
[[ -s $out/consistency.csv ]] || die "no run came to its end; see $out/log.txt"
note_facts
write_provenance
"$psring" report --text "$out" >"$out/summary.txt" || failures=$((failures + 1))
cat "$out/summary.txt"
"$root/plots/draw.sh" --psring "$psring" "$out" consistency >>"$out/log.txt" || failures=$((failures + 1))
"$psring" report "$out" >>"$out/log.txt" || failures=$((failures + 1))
say "done in $((SECONDS - started)) s; results are in $out"
((failures == 0)) || die "$(counted "$failures" step) (runs, figure, report) failed; $out/log.txt has their messages"
