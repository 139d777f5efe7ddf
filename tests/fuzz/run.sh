#!/usr/bin/env bash
# run.sh [OPTION...] [TARGET...]: fuzzes the parsers of untrusted bytes with libFuzzer. Builds the targets with clang,
# AddressSanitizer and UndefinedBehaviorSanitizer, and runs one after the other. Without TARGET it runs all of them.
#
#    --seconds S  Run each target for S seconds, e.g. 3600 (default: 60 for all targets together).
#    --build DIR  Build in DIR (default: build-fuzz in the repository).
#    --list       Print the names of the targets, and end.
#    --live M     Instead attack running programs for M minutes (test_live.sh), also built with the sanitizers. Attacks
#                 with an elastic job's token come only after its first step, because such a process can take the job.
#
# fuzz_TARGET.c states what must hold for every input. corpus/TARGET has the first inputs. Inputs that reach new code
# are kept in DIR/grown/TARGET, and the next run starts from them, too.
#
# Prints a row for each target: the inputs run, inputs per second, features (parts of the code that were reached, with
# how often), and the result. A fault is a crash, a failed CHECK, a leak, an input that takes longer than 30 s, or more
# than 2 GB of memory. The exit code is then 1, and the row has the path of the input. To repeat the fault:
#
#    DIR/tests/fuzz/fuzz_TARGET PATH
#
# Then mend it, and add the input to corpus/TARGET: the test replay_TARGET runs it with every build. The variable
# CMAKE_C_COMPILER_LAUNCHER counts as in tests/run.sh.
set -euo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build-fuzz
seconds=
list=0
live=
targets=()
TOGETHER_S=60
INPUT_S=30 # a busy machine must not reach it
MEMORY_MB=2048

usage()
{
    echo "run.sh: $1; see run.sh --help" >&2
    exit 2
}

while (($#)); do
    case $1 in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --list) list=1 ;;
    --seconds | --build | --live)
        (($# >= 2)) || usage "$1 needs a value"
        case $1 in
        --seconds) seconds=$2 ;;
        --live) live=$2 ;;
        *) build=$(realpath -m "$2") ;;
        esac
        shift
        ;;
    -*) usage "found '$1', expected an option" ;;
    *)
        [[ -d $here/corpus/$1 && $1 != */* ]] || usage "found no target '$1', expected one of --list"
        targets+=("$1")
        ;;
    esac
    shift
done
((${#targets[@]} > 0)) || mapfile -t targets < <(cd "$here/corpus" && printf '%s\n' *)
[[ ${seconds:=$(((TOGETHER_S + ${#targets[@]} - 1) / ${#targets[@]}))} =~ ^[1-9][0-9]{0,6}$ ]] ||
    usage "--seconds: found '$seconds', expected a number of seconds"
[[ $live =~ ^([1-9][0-9]{0,3})?$ ]] || usage "--live: found '$live', expected a number of minutes"
if ((list)); then
    printf '%s\n' "${targets[@]}"
    exit 0
fi
command -v clang >/dev/null || usage "found no clang, which has libFuzzer; install clang"

scratch=$(mktemp -d)
fuzzer= # the process that runs

clean_up()
{
    [[ ! $fuzzer ]] || kill -KILL "$fuzzer" 2>/dev/null || true
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# build_all PROGRAM...: logs to $scratch/build, and prints the log if it fails.
build_all()
{
    {
        cmake -S "$root" -B "$build" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
            "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O1 -gline-tables-only" -DPSRING_CUDA=OFF \
            "-DPSRING_SANITIZE=address;undefined;fuzzer-no-link" &&
            cmake --build "$build" --target "$@"
    } >"$scratch/build" 2>&1 || {
        tail -n 30 "$scratch/build"
        echo "run.sh: the programs do not build in $build" >&2
        exit 1
    }
}

# value NAME: a number of libFuzzer's final statistics.
value()
{
    sed -n "s/^stat::$1: *//p" "$scratch/log"
}

# run_target NAME: fails if a fault was found.
run_target()
{
    local rc=0 features found result=ok
    mkdir -p "$build/grown/$1" "$build/faults"
    ASAN_OPTIONS=abort_on_error=0 "$build/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=$INPUT_S \
        -rss_limit_mb=$MEMORY_MB -print_final_stats=1 -artifact_prefix="$build/faults/$1-" \
        "$build/grown/$1" "$here/corpus/$1" >"$scratch/log" 2>&1 </dev/null &
    fuzzer=$!
    wait "$fuzzer" || rc=$?
    fuzzer=
    features=$(sed -n 's/^#[0-9].* ft: \([0-9]*\) .*/\1/p' "$scratch/log" | tail -n 1)
    if ((rc)); then
        found=$(sed -n 's/.*Test unit written to //p' "$scratch/log" | tail -n 1)
        result="FAULT: ${found:-no input was written}"
    fi
    printf '%-12s %12s %10s %9s  %s\n' "$1" "$(value number_of_executed_units)" "$(value average_exec_per_sec)" \
        "${features:--}" "$result"
    ((rc == 0)) || {
        grep -nE -m 1 -A 20 'CHECK failed|runtime error|ERROR: ' "$scratch/log" | sed 's/^/    /'
        return 1
    }
}

if [[ $live ]]; then
    build_all psring attack make_dataset
    PSRING=$build/psring MAKE_DATASET=$build/tests/make_dataset "$here/test_live.sh" "$build/tests/fuzz/attack" "$live"
    exit
fi
build_all "${targets[@]/#/fuzz_}"
faults=0
printf '%-12s %12s %10s %9s  %s\n' target inputs inputs/s features result
for target in "${targets[@]}"; do
    run_target "$target" || faults=$((faults + 1))
done
echo "run.sh: ${#targets[@]} targets, $seconds s each: $faults with a fault"
((faults == 0))
