#!/usr/bin/env bash
# test_gpu_check_parts.sh: gpu_check.sh as a whole on a machine that is made to look as if it had a
# GPU. The tools that it calls are stand-ins; $STANDIN says which of them misbehaves. What must come
# of each is checked, and above all that nothing passes which did not run.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
check=$root/experiments/gpu_check.sh
mkdir "$folder/bin" "$folder/data"
export FOLDER=$folder

# --- the stand-ins -----------------------------------------------------------------------------------

standin() # NAME: its text on stdin
{
    { echo '#!/usr/bin/env bash' && cat; } >"$folder/bin/$1"
    chmod +x "$folder/bin/$1"
}

standin nvidia-smi <<'END'
echo 'NVIDIA Stand-in, 580.0, 1 MiB'
END
standin nvcc <<'END'
echo 'Cuda compilation tools, release 13.0, V13.0.88'
END
standin python3 <<'END'
exit 1
END
standin pkg-config <<'END'
exit 0
END
standin mpicc <<'END'
exit 0
END
standin cc <<'END'
echo 'cc 1.0'
END
standin mpirun <<'END'
while (($#)) && [[ $1 != */psring ]]; do shift; done
[[ ! $1 ]] || exec "$@"
END
# Builds by copying.
standin cmake <<'END'
case "$*" in
--version) echo 'cmake version 3.25.1' ;;
--build*) ;;
*)
    printf '%s\n' "$@" >"$FOLDER/cmake.log"
    while [[ $1 != -B ]]; do shift; done
    mkdir -p "$2/tests/cuda"
    cp "$FOLDER/bin/psring-standin" "$2/psring"
    cp "$FOLDER/bin/compare" "$2/tests/compare_weights"
    [[ $STANDIN == no-test ]] || cp "$FOLDER/bin/ops" "$2/tests/cuda/cuda_ops"
    ;;
esac
END
standin ctest <<'END'
echo ' 1/2 Test #88: cuda_ops .........................   Passed    4.39 sec'
echo ' 3/3 Test #91: cuda_ranges ......................***Skipped   0.01 sec'
[[ $STANDIN != skips ]] || echo ' 2/2 Test #90: cuda_train .......................***Skipped   0.01 sec'
END
standin ops <<'END'
echo 'cuda_ops: 0 failures'
END
standin compute-sanitizer <<'END'
echo "$*" >>"$FOLDER/sanitizer.log"
echo '========= COMPUTE-SANITIZER'
case $STANDIN in
finds) [[ "$*" != *initcheck* ]] || { echo '========= Uninitialized __global__ memory read'; exit 9; } ;;
unsupported) echo '========= Error: Device not supported. Please refer to the documentation'; exit 255 ;;
does-not-run) echo '========= ERROR SUMMARY: 0 errors'; exit 0 ;;
esac
exec "${!#}"
END
# Checkpoints are a word; NAME of --backend NAME is in the folder's name.
standin compare <<'END'
[[ $STANDIN != no-number ]] || { echo 'relative -nan' && exit; }
[[ $(cat "$1") == "$(cat "$2")" ]] && echo 'relative 0' || echo 'relative 1e-07'
END
standin psring-standin <<'END'
value() # OPTION ARGUMENT...
{
    local option=$1
    shift
    while (($# > 1)); do [[ $1 != "$option" ]] || { echo "$2" && return; }; shift; done
}
case $1 in
info) [[ $STANDIN == no-nccl ]] && echo '  [ ] nccl   this build has no NCCL' || echo '  [X] nccl   2.28.9' ;;
bench) echo '"nccl_algorithm": "ring/simple"' >"$(value --json "$@")" ;;
train)
    backend=$(value --backend "$@") checkpoint=$(value --checkpoint "$@") metrics=$(value --metrics "$@")
    weights=equal
    [[ $STANDIN-$backend != ps-differs-ps && $STANDIN-$backend != rounding-mpi ]] || weights=other
    [[ $STANDIN-$(value --cuda-graph "$@") != graph-differs-off ]] || weights=other
    [[ ! $checkpoint ]] || { mkdir -p "$checkpoint" && echo $weights >"$checkpoint/keras-cnn.step-00000001.checkpoint"; }
    accuracy=test_accuracy
    [[ $STANDIN != no-column ]] || accuracy=accuracy
    [[ ! $metrics ]] || printf 'images_per_s,%s\n1000,0.991\n' $accuracy >"$metrics"
    echo "weights sha256 $weights"
    ;;
esac
END

# --- the runs ----------------------------------------------------------------------------------------

# checked STANDIN EXIT-CODE LINE...: the exit code, and lines of the table (extended regular expressions).
# Names of folders are the caller's, who is not among the sources.
cd "$folder"
checked()
{
    local standin=$1 expected=$2 rc=0 line
    shift 2
    rm -rf "$folder/out" "$folder/build" "$folder/sanitizer.log"
    STANDIN=$standin PATH=$folder/bin:$PATH PSRING_PREFIX='' "$check" --data data --out out --build build \
        >"$folder/log" 2>&1 || rc=$?
    ((rc == expected)) || fail "$standin: exit code $rc, expected $expected:"
    for line; do
        grep -qE "^$line" "$folder/log" || fail "$standin: no '$line' in:"
    done
}

ok=('versions +passed' 'build +passed .* nccl 2.28.9' 'tests +passed' 'agree-2 +passed' 'agree-4 +passed'
    'repeatable +passed' 'accuracy +passed' 'throughput +passed' 'roofline +skipped' 'pytorch +skipped')
checked well 0 "${ok[@]}" 'sanitizer +passed .*memcheck: found nothing, initcheck: found nothing' \
    'nccl-2 +passed .*ring/simple' 'nccl-4 +passed'
[[ $(grep -c -- "--report-api-errors no --error-exitcode 9 $folder/build/tests/cuda/cuda_ops\$" "$folder/sanitizer.log") == 2 ]] ||
    fail "compute-sanitizer was called with: $(cat "$folder/sanitizer.log")"
grep -qx -- "-DMPI_C_COMPILER=$folder/bin/mpicc" "$folder/cmake.log" ||
    fail "CMake may take another MPI: $(cat "$folder/cmake.log")"
tar -tzf "$folder/out/gpu_check.tar.gz" >"$folder/log"
for name in gpu_check.json gpu_check.txt build.log sanitizer.log memcheck.log accuracy.csv; do
    grep -qx "./$name" "$folder/log" || fail "no $name in the archive:"
done

checked no-nccl 1 'build +failed .*NCCL was not found: this build has no NCCL'
checked skips 1 'tests +failed .*skipped: cuda_train'
checked no-test 1 'sanitizer +failed .*cuda_ops is missing'
checked finds 1 'sanitizer +failed .*memcheck: found nothing, initcheck: exit code 9'
checked does-not-run 1 'sanitizer +failed .*ended before the test did'
checked unsupported 0 'sanitizer +skipped .*does not support this GPU'
checked rounding 0 'agree-2 +passed .*mpi 1e-07'
checked ps-differs 1 'agree-2 +failed .*ps 1e-07'
checked no-number 1 'agree-2 +failed'
checked no-column 1 'accuracy +failed'
checked graph-differs 1 'repeatable +failed .*--cuda-graph off: other weights'
# The shell's clock as if all of the time but a little was over.
SECONDS=557 checked well 1 'versions +failed .*no time left'

limits=$(grep -o '\bpart [a-z0-9-]* [0-9]\+' "$check" | sed 's/.* //' | paste -sd+)
limit=$(sed -n 's/^LIMIT_S=\([0-9]*\).*/\1/p' "$check")
((limits <= limit)) || fail "the parts' limits, $limits s, add up to more than the $limit s that there are"
