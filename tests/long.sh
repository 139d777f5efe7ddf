#!/usr/bin/env bash
# long.sh [--only PATTERN] [--build DIR] [--out DIR] [--list]: runs the trials that take too long for the suite. Run it
# before a release.
#
# The suite (run.sh) has a short form of each trial. Here they are complete: all fault and resume trials, 200 survivals,
# all lessons, every world size to 15, and a failure at every call into emulated CUDA. The trials run in sequence, and
# a failed one does not stop the others. Each prints a line: name, seconds, result. The exit code is 1 if a trial failed.
#
#    --only PATTERN  run the trials whose name matches the extended regular expression
#    --build DIR     test the programs of this build folder (default: build them in build/)
#    --out DIR       keep the table (long.csv) and the output of each trial there (default: a new folder in /tmp)
#    --list          print the names of the trials
set -uo pipefail
export LC_ALL=C

LIMIT_S=5400 # a trial that takes longer has failed
unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

# Name and command of each trial. EMULATED: the script tests psring with emulated CUDA. Words such as TIMELINE name
# programs in the build folder (`programs`, below). FOLDER is a folder in --out. Tests without --short read
# PSRING_TEST_LONG.
export PSRING_TEST_LONG=1
trials=(
    'faults          faults/fault_trials.sh'
    'survival        elastic/test_survival.sh 200'
    'resume          faults/resume_trials.sh 10'
    'lessons         lessons/test_lessons.sh'
    'homework        lessons/test_homework.sh HOMEWORK'
    'worlds          comm/test_bytes.sh 15'
    'cuda_faults     EMULATED emulation/test_faults.sh'
    'nccl_faults     EMULATED emulation/test_nccl_faults.sh'
    'machines        sweep/test_machines.sh'
    'hierarchical    ring/test_hierarchical.sh'
    'train           train/test_train.sh'
    'data            train/test_data.sh'
    'stop            train/test_stop.sh'
    'equality        train/test_equality.sh'
    'failures        faults/test_failures.sh'
    'stalls          faults/test_stalls.sh'
    'consistency     ps/test_consistency.sh'
    'timeline        trace/test_timeline.sh TIMELINE'
    'without_mpi     net/test_without_mpi.sh FOLDER -G Ninja -DCMAKE_BUILD_TYPE=Release'
    'satellites      options/test_without_satellites.sh FOLDER -G Ninja -DCMAKE_BUILD_TYPE=Release'
    'simulate        simulate/test_simulate.sh FOLDER -DCMAKE_BUILD_TYPE=Release'
    'strangers       faults/test_strangers.sh STRANGERS'
    'live            fuzz/test_live.sh ATTACK 10'
    'often           OFTEN'
    'wire_bytes      bench/test_wire_bytes.sh'
    'bench           bench/test_bench.sh'
    'page            report/test_page.sh COSTS'
    'process         net/test_process.sh'
    'unlike          lib/mpirun.sh 9 LIBRARY all'
    'allreduce       ALLREDUCE'
    'compressed      COMPRESSED'
    'residual        RESIDUAL'
    'updates         UPDATES'
    'node_bytes      NODE_BYTES'
    'compare_itself  report/compare_itself.sh'
)

die()
{
    echo "long.sh: $*" >&2
    exit 2
}

only=. build='' out='' list=0
while (($#)); do
    case $1 in
    --only | --build | --out)
        (($# >= 2)) || die "$1 needs a value; see long.sh --help"
        printf -v "${1#--}" '%s' "$2"
        shift
        ;;
    --list) list=1 ;;
    -h | --help)
        sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    *) die "unknown argument '$1'; see long.sh --help" ;;
    esac
    shift
done

[[ ! $build ]] || build=$(realpath "$build")
[[ ! $out ]] || out=$(realpath -m "$out")
chosen=()
for trial in "${trials[@]}"; do
    [[ ! ${trial%% *} =~ $only ]] || chosen+=("$trial")
done
((${#chosen[@]} > 0)) || die "--only $only: no trial has such a name; see long.sh --list"
if ((list)); then
    printf '%s\n' "${chosen[@]%% *}"
    exit 0
fi

session=0 # of the running trial
end_trial()
{
    local round
    ((session)) || return 0
    pkill -TERM -s "$session"
    for ((round = 0; round < 300; round++)); do # a trial removes its clusters
        pgrep -s "$session" >/dev/null || break
        sleep 0.1
    done
    pkill -KILL -s "$session"
    session=0
}
trap end_trial EXIT
trap 'echo "long.sh: interrupted: $out has the finished trials" >&2; exit 130' INT
trap 'echo "long.sh: ended by a signal: $out has the finished trials" >&2; exit 143' TERM HUP

cd "$root" || exit 1
if [[ ! $build ]]; then
    build=$root/build
    experiments/setup.sh || echo "long.sh: continues with the installed packages" >&2
    cmake --preset release >/dev/null && cmake --build --preset release || exit 1
fi
[[ -x $build/psring ]] || die "--build $build: no psring there, expected a build folder; build it or omit --build"
[[ $out ]] || out=$(mktemp -d /tmp/psring-long-XXXXXX)
mkdir -p "$out" || exit 1
table=$out/long.csv
echo trial,seconds,result >"$table"
printf '%-16s %8s  %s\n' trial seconds result

declare -A programs=([TIMELINE]=tests/check_timeline
    [STRANGERS]=tests/strangers [HOMEWORK]=psring_homework [COSTS]=tests/print_costs [LIBRARY]=tests/mpi_library
    [ALLREDUCE]=tests/test_allreduce [COMPRESSED]=tests/test_compressed [RESIDUAL]=tests/test_residual
    [UPDATES]=tests/test_updates [NODE_BYTES]=tests/test_node_bytes [ATTACK]=tests/fuzz/attack
    [OFTEN]=tests/psring_often)
failed=0
for trial in "${chosen[@]}"; do
    read -ra command <<<"$trial"
    name=${command[0]} started=$SECONDS status=0 result=passed lacking=''
    export PSRING=$build/psring MAKE_DATASET=$build/tests/make_dataset
    if [[ ${command[1]} == EMULATED ]]; then
        PSRING=$build/tests/emulation/psring_emulated
        command=("$name" "${command[@]:2}")
    fi
    [[ -x $PSRING ]] || lacking=$PSRING
    for ((i = 1; i < ${#command[@]}; i++)); do
        [[ ${command[i]} != FOLDER ]] || command[i]=$out/$name
        program=${programs[${command[i]}]:-}
        [[ $program ]] || continue
        command[i]=$build/$program
        [[ -x $build/$program ]] || lacking=$program
    done
    if [[ $lacking ]]; then
        result="skipped: the build has no $lacking"
    else
        [[ ${command[1]} == /* ]] || command[1]=$here/${command[1]}
        setsid timeout --kill-after=60 $LIMIT_S "${command[@]:1}" >"$out/$name.log" 2>&1 </dev/null &
        session=$!
        wait $session || status=$?
        end_trial
        case $status in
        0) ;;
        77) result="skipped: $(tail -n 1 "$out/$name.log")" ;;
        124 | 137) result="FAILED: not done within $LIMIT_S s" ;;
        *) result="FAILED with $status: see $out/$name.log" ;;
        esac
    fi
    [[ $result != FAILED* ]] || failed=$((failed + 1))
    echo "$name,$((SECONDS - started)),\"${result//\"/\'}\"" >>"$table"
    printf '%-16s %8d  %s\n' "$name" $((SECONDS - started)) "$result"
done
echo "long.sh: ${#chosen[@]} trials, $failed failed; the table is in $table"
((failed == 0))
