#!/usr/bin/env bash
# sweep_model.sh [OPTION...]: measures all-reduces in one virtual cluster and fits psring predict to them. Then it
# measures training steps in clusters of several rates, without fitting, and compares them with the predictions of the
# fit.
#
# For each number of workers W it measures ring, rhd, tree, and the parameter server with S servers, dedicated,
# colocated and mixed, over each transport, at each size. The points are shuffled, always in the same way, so that the
# measured points are a fair sample. All points with the default options would take more than 6 hours; --minutes limits
# the time. Steps have W workers by ring, rhd, tree and servers, with a wait of 30 or 100 ms instead of computation, for
# each model. Use an idle machine. Needs network namespaces (vcluster.sh --help).
#
#   --minutes N      minutes of all-reduces: no point begins later (default 20)
#   --step-minutes N minutes of training steps; 0: none (default 6)
#   --workers LIST   numbers of workers (default 2,3,4,5,6,7,8)
#   --servers LIST   all: 1 to W; some: 1, W/2 and W (default all)
#   --transports L   (default zmq,mpi,tcp)
#   --sizes LIST     bytes (default 65536,262144,1048576,4799528,25600000)
#   --runs N         runs of each point of up to 256 KB, and of steps, because these differ between runs. Their median
#                    counts (default 3)
#   --rate RATE      rate of a host's link each way (default 200mbit)
#   --step-rates L   rates of the clusters for steps (default 100mbit,200mbit,400mbit)
#   --models LIST    models of the steps (default lenet,mlp,keras-cnn)
#   --psring FILE    the program (default: build/psring of this tree)
#   --out DIR        folder of bench.csv, train.csv, model.json, predict.csv, predict.txt and the log; replaces an
#                    earlier run's (default: ./model)
set -euo pipefail
export LC_ALL=C # decimal points in every locale

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=experiments/sweep/plan.sh
. "$here/sweep/plan.sh"
# shellcheck source=experiments/sweep/model_points.sh
. "$here/sweep/model_points.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source=experiments/sweep/turns.sh
. "$here/sweep/turns.sh"

heed_interrupts "$@"

cluster=predict-$$
minutes=20 step_minutes=6 workers=2,3,4,5,6,7,8 servers=all transports=zmq,mpi,tcp rate=200mbit runs=3 psring=$here/../build/psring
out=model
sizes=65536,262144,1048576,4799528,25600000 step_rates=100mbit,200mbit,400mbit models=lenet,mlp,keras-cnn
while (($#)); do
    case $1 in
    *)
        take_option "--minutes --step-minutes --step-rates --models --workers --servers --transports --sizes --runs --rate --psring --out" "$@"
        shift
        ;;
    esac
    shift
done
need_program
[[ $minutes =~ ^[1-9][0-9]{0,3}$ && $step_minutes =~ ^[0-9]{1,4}$ && ($servers == all || $servers == some) ]] ||
    die "--minutes '$minutes' --step-minutes '$step_minutes' --servers '$servers': expected 1 to 9999, 0 to 9999, and all or some" 2
[[ $runs =~ ^[1-9][0-9]?$ ]] || die "--runs '$runs': expected 1 to 99" 2
[[ $workers =~ ^[1-9][0-9]?(,[1-9][0-9]?)*$ && ! ,$workers, == *,1,* && $sizes =~ ^[1-9][0-9]*(,[1-9][0-9]*)*$ ]] ||
    die "--workers '$workers' --sizes '$sizes': expected numbers with commas between, workers from 2 to 99" 2
[[ $transports =~ ^(zmq|mpi|tcp)(,(zmq|mpi|tcp))*$ ]] || die "--transports '$transports': expected of zmq,mpi,tcp" 2

[[ $models =~ ^(lenet|mlp|keras-cnn|wide-cnn)(,(lenet|mlp|keras-cnn|wide-cnn))*$ ]] ||
    die "--models '$models': expected of lenet,mlp,keras-cnn,wide-cnn" 2
IFS=, read -ra rates <<<"$step_rates"
for one in "$rate" "${rates[@]}"; do
    "$here/vcluster.sh" rate "$one" >/dev/null || die "--rate '$rate' --step-rates '$step_rates': expected rates such as 100mbit, with commas between" 2
done

largest=$(tr ',' '\n' <<<"$workers" | sort -n | tail -n 1)
turns_begin $((2 * largest)) bench.csv train.csv model.json predict.csv predict.txt # W workers and W dedicated servers
mapfile -t plan < <(points)
measure_points
say "$begun of ${#plan[@]} points in $SECONDS s"
mapfile -t plan < <(step_points)
begun=$SECONDS step=0
for i in "${!rates[@]}"; do
    ((step_minutes == 0)) || measure_steps "${rates[i]}" $((begun + 60 * step_minutes * (i + 1) / ${#rates[@]}))
done
((step_minutes == 0)) || say "$step of ${#plan[@]} steps in $((SECONDS - begun)) s"
turns_clean_up
trap - EXIT INT TERM HUP # turns_clean_up leaves signals ignored
trained=()
[[ ! -s $out/train.csv ]] || trained=(--train "$out/train.csv")
"$psring" predict --fit "$out/bench.csv" --cost-model "$out/model.json" --csv "$out/predict.csv" "${trained[@]}" |
    tee "$out/predict.txt" || failed=1
exit $failed
