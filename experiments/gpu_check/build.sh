# Sourced by ../parts.sh: tools, the build, the tests on the GPU, and the same under compute-sanitizer.
# shellcheck shell=bash disable=SC2154

# Checks the tools first, so that a missing tool is known before a build of a minute.
versions()
{
    local tool missing=() toolkit driver
    for tool in cmake ctest nvcc cc pkg-config mpirun; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    for tool in libzmq libcjson criterion; do
        "${PKG_CONFIG:-pkg-config}" --exists "$tool" 2>/dev/null || missing+=("$tool")
    done
    ((${#missing[@]} == 0)) || { echo "detail missing: ${missing[*]}" && return 1; }
    # A prefix from another machine may hold an mpirun that this machine cannot start.
    starts_ranks || return 1
    toolkit=$(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
    driver=$(nvidia-smi | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p')
    {
        echo "CUDA's toolkit: ${toolkit:-not known}; the driver is for CUDA ${driver:-not known}"
        cmake --version | head -1
        cc --version | head -1
        mpirun --version 2>&1 | head -1
        for tool in libzmq libcjson criterion; do
            echo "$tool $("${PKG_CONFIG:-pkg-config}" --modversion "$tool")"
        done
        for tool in ncu compute-sanitizer; do
            command -v $tool >/dev/null || echo "$tool: not found"
        done
    } | tee "$out/versions.txt"
    nvidia-smi
    if [[ $toolkit && $driver ]] && ((${toolkit%%.*} > ${driver%%.*})); then
        echo "detail the driver is for CUDA $driver, the toolkit is $toolkit: programs built with it cannot run" && return 1
    fi
    echo "detail CUDA ${toolkit:-not known}, driver for ${driver:-not known}, $(cmake --version | head -1)"
}

# starts_ranks: mpirun starts a process that prints a word.
starts_ranks()
{
    local root=() said
    ((EUID != 0)) || root=(--allow-run-as-root)
    said=$(timeout --kill-after=5 10 mpirun "${root[@]}" --oversubscribe -n 2 sh -c 'echo started' 2>&1) &&
        (($(grep -cx started <<<"$said") == 2)) && return
    echo "$said"
    echo "detail mpirun ($(command -v mpirun)) cannot start two processes: $(
        grep -m 1 -E 'error|cannot|not found|No such|unable' <<<"$said" || tail -n 1 <<<"$said" | cut -c1-150)"
    return 1
}

# cached NAME: whether CMake found this file.
cached()
{
    grep -qE "^$1:[A-Z]+=/" "$build/CMakeCache.txt"
}

configure()
{
    local with=(-DCMAKE_BUILD_TYPE=Release -DPSRING_CUDA=ON -DPSRING_TESTS=ON)
    ! command -v ninja >/dev/null || with+=(-G Ninja)
    # Without this, CMake may find another MPI than the one that starts the ranks.
    ! command -v mpicc >/dev/null || with+=("-DMPI_C_COMPILER=$(command -v mpicc)")
    with+=("-DMPIEXEC_EXECUTABLE=$(command -v mpirun)")
    cmake -S . -B "$build" "${with[@]}" || return 1
    if ! cached NCCL_LIBRARY || ! cached NCCL_INCLUDE_DIR; then
        echo "detail NCCL was not found: its header and its library, with CUDA's toolkit, in the system or of PyTorch" && return 1
    fi
    echo "detail $(sed -n 's/^NCCL_LIBRARY:[A-Z]*=//p' "$build/CMakeCache.txt")"
}

# Builds only the targets that the parts use.
build()
{
    cmake --build "$build" --target gpu_check_programs -j "$(nproc)" || return 1
    "$build/psring" info >"$out/info.txt" || return 1
    cat "$out/info.txt"
    grep -q '^  \[X\] nccl ' "$out/info.txt" ||
        { echo "detail no NCCL: $(sed -n 's/^  \[ \] nccl  *//p' "$out/info.txt")" && return 1; }
    grep -q '^  \[X\] cuda ' "$out/info.txt" ||
        { echo "detail no GPU: $(sed -n 's/^  \[ \] cuda  *//p' "$out/info.txt")" && return 1; }
    echo "detail $(sed -n 's/^  \[X\] nccl  */nccl /p' "$out/info.txt" | tail -1)"
}

# With a GPU no test has a reason to skip.
run_tests()
{
    local rc=0 log=$out/ctest.txt skipped reason
    ctest --test-dir "$build" -L '^gpu$' --output-on-failure --no-tests=error -j 10 --timeout 50 >"$log" || rc=1
    cat "$log"
    skipped=$(sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*Skipped.*/\1/p' "$log" | paste -sd' ')
    reason=$(grep -m 1 -oE '[a-z_]+: failed: .*' "$log" | cut -c1-150)
    echo "detail $(grep -c ' Passed ' "$log") passed, $(
        grep -cE '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log") failed, skipped: ${skipped:-none}${reason:+; first: $reason}"
    [[ $rc == 0 && ! $skipped ]]
}

# --- compute-sanitizer -------------------------------------------------------------------------------

# Runs one tool over the tests of operations, not over all tests: a training step takes minutes under it. A test
# requests too much memory on purpose, so memcheck must not report that error.
sanitize_with() # TOOL
{
    local test=$build/tests/emulation/cuda_ops log=$out/$1.log rc=0 options=()
    [[ $1 != memcheck ]] || options=(--report-api-errors no) # no other tool has it
    [[ -x $test ]] || { echo "$test is missing" && return 1; }
    compute-sanitizer --tool "$1" "${options[@]}" --error-exitcode 9 "$test" >"$log" 2>&1 || rc=$?
    ! grep -qi 'device not supported' "$log" || { echo "does not support this GPU" && return 77; }
    ((rc == 0)) || { echo "exit code $rc, see $1.log" && return 1; }
    grep -q '^cuda_ops: 0 failures' "$log" || { echo "ended before the test did, see $1.log" && return 1; }
    echo "found nothing"
}

# Runs the tools in parallel. racecheck checks shared memory only.
sanitize()
{
    local tool job jobs=() tools=(memcheck initcheck) rc=0 said=
    command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || { echo "detail compute-sanitizer is missing" && return 77; }
    ! grep -rq __shared__ --include='*.cu' common/device/cuda || tools+=(racecheck)
    for tool in "${tools[@]}"; do
        sanitize_with "$tool" >"$out/$tool.said" &
        jobs+=($!)
    done
    for tool in "${tools[@]}"; do
        job=0
        wait "${jobs[0]}" || job=$?
        jobs=("${jobs[@]:1}")
        said+=", $tool: $(cat "$out/$tool.said")"
        rm -f "$out/$tool.said"
        # A failure counts for more than a skip.
        ((job == 0 || rc == 1)) || rc=$((job == 77 ? 77 : 1))
    done
    echo "detail ${said#, }"
    return "$rc"
}

# sanitizer_ends PROCESS: waits for sanitize, which gpu_check.sh started in parallel with earlier parts.
sanitizer_ends()
{
    while kill -0 "$1" 2>/dev/null; do
        sleep 0.2
    done
    cat "$out/sanitizer-run.log"
    [[ -s $out/sanitizer.rc ]] || { echo "detail ended by itself, see sanitizer.log" && return 1; }
    return "$(cat "$out/sanitizer.rc")"
}
