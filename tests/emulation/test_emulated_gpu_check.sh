#!/usr/bin/env bash
# test_emulated_gpu_check.sh COMPARE_WEIGHTS CUDA_TEST...: runs the whole of gpu_check.sh with the emulated
# device, smaller models and less data. A second run has a test that hangs until no time is left. Stand-ins: the
# build tools, nvidia-smi, compute-sanitizer, PyTorch (missing) and ncu (which cannot read counters).
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
compare_weights=$1
tests=("${@:2}")
check=$root/experiments/gpu_check.sh
data=$folder/less-data
mkdir "$data" "$folder/bin" "$folder/built" "$folder/built/tests" "$folder/built/tests/emulation"
"$make_dataset" "$data" 800 100
export FOLDER=$folder EMULATED=$psring

standin() # FILE: create it; the text comes from stdin
{
    { echo '#!/usr/bin/env bash' && cat; } >"$folder/$1"
    chmod +x "$folder/$1"
}

standin bin/nvidia-smi <<'END'
echo 'NVIDIA H200, 580.0, 1 MiB'
END
standin bin/nvcc <<'END'
echo 'Cuda compilation tools, release 13.0, V13.0.88'
END
standin bin/python3 <<'END'
echo "ModuleNotFoundError: No module named 'torch'" >&2
exit 1
END
standin bin/compute-sanitizer <<'END'
exec "${!#}"
END
standin bin/ncu <<'END'
while [[ $1 != --log-file ]]; do shift; done
echo '==ERROR== Failed to initialize the profiler: LibraryNotLoaded' >"$2"
exit 1
END
# The parts' limits are for a GPU. A busy machine without one gets more time.
standin bin/timeout <<'END'
exec "$(type -ap timeout | sed -n 2p)" "$1" $(($2 * STRETCH)) "${@:3}"
END
standin bin/ctest <<'END'
arguments=()
while (($#)); do
    [[ $1 == --timeout ]] && arguments+=("$1" $(($2 * STRETCH))) && shift || arguments+=("$1")
    shift
done
exec "$(type -ap ctest | sed -n 2p)" "${arguments[@]}"
END
standin bin/cmake <<'END'
case "$*" in
--version) echo 'cmake version 3.25.1' ;;
--build*) ;;
*)
    while [[ $1 != -B ]]; do shift; done
    cp -r "$FOLDER/built/." "$2"
    ;;
esac
END
# Runs that take minutes on a GPU machine take seconds here.
standin built/psring <<'END'
arguments=()
while (($#)); do
    case "$1 ${2:-}" in
    '--model keras-cnn') arguments+=(--model lenet) && shift ;;
    '--batch 128' | '--batch 129') arguments+=(--batch $(($2 - 108))) && shift ;;
    '--epochs 12') arguments+=(--epochs 4) && shift ;;
    '--epochs 4') arguments+=(--epochs 2) && shift ;;
    '--layers '*) arguments+=(--layers --model lenet) ;;
    *) arguments+=("$1") ;;
    esac
    shift
done
exec "$EMULATED" "${arguments[@]}"
END
ln -s "$compare_weights" "$folder/built/tests/compare_weights"
printf 'NCCL_LIBRARY:FILEPATH=/usr/lib/libnccl.so\nNCCL_INCLUDE_DIR:PATH=/usr/include\n' >"$folder/built/CMakeCache.txt"
for test in "${tests[@]}"; do
    echo "add_test($(basename "$test") \"$test\")"
    echo "set_tests_properties($(basename "$test") PROPERTIES LABELS gpu)"
done >"$folder/built/CTestTestfile.cmake"
standin built/tests/emulation/cuda_ops <<'END'
echo 'cuda_ops: 0 failures'
END

# checked EXIT-CODE LINE...: run the whole check, compare its exit code and find the lines (regular expressions).
checked()
{
    local expected=$1 rc=0 line
    shift
    rm -rf "$folder/out" "$folder/build"
    STRETCH=$STRETCH PATH=$folder/bin:$PATH PSRING_PREFIX='' "$check" --data "$data" --out "$folder/out" --build "$folder/build" \
        >"$folder/log" 2>&1 || rc=$?
    ((rc == expected)) || fail "exit code $rc, expected $expected: $(tail -n 30 "$folder/out"/*.log)"
    for line; do
        grep -qE "^$line" "$folder/log" || fail "no '$line' in:"
    done
}

STRETCH=5 checked 0 'build +passed .*nccl [0-9.]+' 'tests +passed .*, 0 failed, skipped: none' \
    'tf32 +passed .*from FP32 [0-9.]+e-[0-9]+ \(wanted up to 1e-3, but not 0\), accuracy (0\.99|1)' 'kernels +skipped .*LibraryNotLoaded' \
    'speed +passed .*FP32: psring [0-9.]+; TF32: psring [0-9.]+'
cat "$folder/log"
cp "$folder/out/gpu_check.md" "$folder/log"
for line in '^\*\*Passed\*\*, but not all of it: of 18 parts 17 passed; skipped: 1 \(kernels\)\.$' '^\| psring \| TF32 \| [0-9]+ ' '^ conv1 ' '^- 2 ranks: passed; .*ring/simple' \
    '^\| peers .* killed: the others ended within [0-9.]+ s, stopped: the others ended within'; do
    grep -qE "$line" "$folder/log" || fail "the page does not contain '$line':"
done

# A test hangs when only 30 s of the time are left.
printf 'add_test(cuda_hangs sleep 100000)\nset_tests_properties(cuda_hangs PROPERTIES LABELS gpu)\n' >"$folder/built/CTestTestfile.cmake"
STRETCH=1 SECONDS=530 checked 1 'build +passed' 'tests +failed +[0-9]+ s  not done within [0-9]+ s; see tests.log' \
    'repeatable +no time .*no time left of 560 s' 'roofline +no time'
cp "$folder/out/gpu_check.md" "$folder/log"
grep -qE '^\*\*Failed\*\*: of 18 parts 3 passed; failed: 1 \(tests\); had no time: 14 \(repeatable, .*roofline\)' "$folder/log" ||
    fail "the page does not report the failed test and the parts without time:"
echo "the page reports a test that hangs"
