# Sourced by gpu_check.sh: its parts, one function each. A part prints to its log; its last line
# "detail ..." is what the table says. 0: passed; 77: skipped, the detail says why; else: failed.
# Expects $build, $out, $data and $gpu.
# shellcheck shell=bash disable=SC2154

# --- the build ---------------------------------------------------------------------------------------

# What everything below is made with. A minute's build shall not be needed to see that one is missing.
versions()
{
    local tool missing=()
    for tool in cmake nvcc cc pkg-config mpirun; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    ((${#missing[@]} == 0)) || { echo "detail missing: ${missing[*]}" && return 1; }
    nvidia-smi
    cmake --version
    nvcc --version
    cc --version
    mpirun --version
    echo "detail CUDA $(nvcc --version | sed -n 's/.*release \([0-9.]*\).*/\1/p'), $(cmake --version | head -1)"
}

configure_and_build()
{
    local with=(-DCMAKE_BUILD_TYPE=Release -DPSRING_CUDA=ON -DPSRING_TESTS=ON)
    "${PKG_CONFIG:-pkg-config}" --exists criterion ||
        { echo "detail Criterion is missing: nothing could be tested" && return 1; }
    ! command -v ninja >/dev/null || with+=(-G Ninja)
    # Else CMake may find another MPI than the one that starts the ranks.
    ! command -v mpicc >/dev/null || with+=("-DMPI_C_COMPILER=$(command -v mpicc)")
    ! command -v mpirun >/dev/null || with+=("-DMPIEXEC_EXECUTABLE=$(command -v mpirun)")
    cmake -S . -B "$build" "${with[@]}" || return 1
    cmake --build "$build" -j "$(nproc)" || return 1
    "$build/psring" info >"$out/info.txt" || return 1
    cat "$out/info.txt"
    grep -q '^  \[X\] nccl ' "$out/info.txt" ||
        { echo "detail NCCL was not found: $(sed -n 's/^  \[ \] nccl  *//p' "$out/info.txt")" && return 1; }
    echo "detail $(sed -n 's/^  \[X\] nccl  */nccl /p' "$out/info.txt" | tail -1)"
}

# --- the tests ---------------------------------------------------------------------------------------

# With a GPU none of these has a reason to skip, but for a toolkit without NVTX.
run_tests()
{
    local rc=0 log=$out/ctest.txt skipped
    ctest --test-dir "$build" -R 'cuda|device|gpu|nccl|staging' --output-on-failure --no-tests=error \
        -j 4 --timeout 50 >"$log" || rc=1
    cat "$log"
    skipped=$(sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*: \([^ ]*\) .*\*\*\*Skipped.*/\1/p' "$log" |
        grep -vx cuda_ranges | paste -sd' ')
    echo "detail $(grep -c ' Passed ' "$log") passed, $(
        grep -cE '\*\*\*(Failed|Timeout|Exception|Not Run)' "$log") failed, skipped: ${skipped:-none}"
    [[ $rc == 0 && ! $skipped ]]
}

# One tool over the operations. Not over all tests: a step of training takes minutes under it. That
# an allocation is refused is part of the test, and no error to report.
sanitize_with() # TOOL
{
    local test=$build/tests/cuda/cuda_ops log=$out/$1.log rc=0
    [[ -x $test ]] || { echo "$test is missing" && return 1; }
    compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 "$test" >"$log" 2>&1 || rc=$?
    ! grep -qi 'device not supported' "$log" || { echo "does not support this GPU" && return 77; }
    ((rc == 0)) || { echo "exit code $rc, see $1.log" && return 1; }
    grep -q '^cuda_ops: 0 failures' "$log" || { echo "ended before the test did, see $1.log" && return 1; }
    echo "found nothing"
}

# Both tools side by side.
sanitize()
{
    local tool job jobs=() rc=0 said=
    command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || { echo "detail compute-sanitizer is missing" && return 77; }
    for tool in memcheck initcheck; do
        sanitize_with "$tool" >"$out/$tool.said" &
        jobs+=($!)
    done
    for tool in memcheck initcheck; do
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

# --- ranks on one GPU --------------------------------------------------------------------------------

# The results must be right; the times are those of time-slicing and are not shown.
launch() # RANKS COMMAND...
{
    local ranks=$1 root=()
    shift
    [[ $(id -u) != 0 ]] || root=(--allow-run-as-root)
    mpirun "${root[@]}" --oversubscribe --bind-to none --mca btl self,tcp --mca btl_tcp_if_include lo \
        --mca oob_tcp_if_include lo -n "$ranks" "$@"
}

bench_exact() # RANKS
{
    local algorithm
    launch "$1" "$build/psring" bench --backend nccl --device cuda --share-gpu -b 4 -e 4m -f 16 -n 5 -w 1 \
        --json "$out/nccl-$1.json" || return 1
    algorithm=$(sed -n 's/.*"nccl_algorithm":[[:space:]]*"\([^"]*\)".*/\1/p' "$out/nccl-$1.json" | sort -u | paste -sd' ')
    echo "detail every element exact; algorithm by NCCL's own log: ${algorithm:-not known}"
    [[ $algorithm == ring/simple ]]
}

# newest FOLDER: the checkpoint of the last step.
newest()
{
    printf '%s\n' "$1"/keras-cnn.step-*.checkpoint | tail -n 1
}

# apart NAME BOUND FOLDER-A FOLDER-B: says how far the weights are apart; fails beyond BOUND.
apart()
{
    local relative
    relative=$("$build/tests/compare_weights" "$(newest "$3")" "$(newest "$4")") || return 1
    relative=${relative#relative }
    echo "$1 against ring: $relative"
    [[ $relative =~ ^[0-9] ]] || { echo "that is no distance" && return 1; } # awk would compare it as a word
    said+=", $1 $relative"
    awk -v found="$relative" -v bound="$2" 'BEGIN { exit !(found <= bound) }'
}

# After few steps: rounding grows with them, and is then no sign of a mistake. The sums in the ring's
# order leave no room for any.
agree() # RANKS
{
    local ranks=$1 folder=$out/agree-$1 rc=0 said='' name
    local -A options=(
        [ring]='--backend ring'
        [nccl]='--backend nccl'
        [mpi]='--backend mpi'
        [ps]='--backend ps --servers 1 --placement colocated --reduce-order ring'
    )
    rm -rf "$folder"
    for name in ring nccl mpi ps; do
        # shellcheck disable=SC2086  # words
        launch "$ranks" "$build/psring" train ${options[$name]} --device cuda --share-gpu --model keras-cnn \
            --batch 32 --steps 5 --data "$data" --checkpoint "$folder/$name" || return 1
    done
    apart nccl 1e-6 "$folder/ring" "$folder/nccl" || rc=1
    apart mpi 1e-6 "$folder/ring" "$folder/mpi" || rc=1
    apart ps 0 "$folder/ring" "$folder/ps" || rc=1
    rm -rf "$folder"
    echo "detail apart from ring: ${said#, } (wanted 1e-6, 1e-6, 0)"
    return "$rc"
}

# --- training ----------------------------------------------------------------------------------------

value_of() # FILE COLUMN: in the last row
{
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } END { if (at) print $at }' "$1"
}

# The same run twice, and without a graph: one hash.
repeatable()
{
    local graph hash first=
    for graph in on on off; do
        hash=$("$build/psring" train --backend none --device cuda --model keras-cnn --batch 128 --steps 20 \
            --cuda-graph $graph --data "$data" | sed -n 's/^weights sha256 //p')
        echo "--cuda-graph $graph: $hash"
        [[ $hash ]] || { echo "detail --cuda-graph $graph: the run failed" && return 1; }
        first=${first:-$hash}
        [[ $hash == "$first" ]] || { echo "detail --cuda-graph $graph: other weights than before" && return 1; }
    done
    echo "detail twice with a graph and once without: weights ${first:0:12}"
}

train_to_accuracy()
{
    local file=$out/accuracy.csv accuracy rate
    rm -f "$file"
    "$build/psring" train --backend none --device cuda --model keras-cnn --batch 128 --epochs 12 \
        --data "$data" --metrics "$file" || return 1
    accuracy=$(value_of "$file" test_accuracy)
    rate=$(value_of "$file" images_per_s)
    echo "detail accuracy $accuracy after 12 epochs (wanted 0.99), $rate images/s"
    [[ $accuracy =~ ^[01] ]] || return 1
    awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.99) }'
}

# --- speed -------------------------------------------------------------------------------------------

# throughput NAME OPTION...: of the last epoch of three: the first one has the warm-up. Testing is not in it.
throughput()
{
    local file=$out/$1.csv rate
    shift
    rm -f "$file"
    "$build/psring" train --backend none --device cuda --model keras-cnn --batch 128 --epochs 3 \
        --data "$data" --metrics "$file" "$@" || return 1
    rate=$(value_of "$file" images_per_s)
    echo "detail $rate images/s; GPU busy $(value_of "$file" gpu_utilization) of the time, $(
        value_of "$file" gpu_memory_bytes) bytes in use (empty: not known)"
    [[ $rate =~ ^[0-9] ]]
}

# estimate NAME FLOPS: a step of throughput's run NAME against the least it can take.
estimate()
{
    awk -v flops_per_s="$2" -v bytes_per_s="$bandwidth" -v kernels=45 -v gap_us=1 -v brief="${3:-0}" \
        -v step_us="$(awk -v r="$(value_of "$out/$1.csv" images_per_s)" 'BEGIN { print 128e6 / r }')" \
        -f experiments/gpu/roofline.awk "$out/compute.csv"
}

# The peaks are NVIDIA's, of its data sheets: FP32, TF32 without sparsity, memory. See models/README.md.
roofline()
{
    local fp32 tf32 bandwidth said
    case $gpu in
    'NVIDIA H200,'*) fp32=67e12 tf32=494e12 bandwidth=4.8e12 ;;
    'NVIDIA H100 80GB HBM3,'*) fp32=67e12 tf32=494e12 bandwidth=3.35e12 ;;
    *) echo "detail the peaks of this GPU are not written down here" && return 77 ;;
    esac
    rm -f "$out/compute.csv"
    "$build/psring" bench --compute --device cuda --batch 128 --csv "$out/compute.csv" || return 1
    throughput throughput-tf32 --tf32 || return 1
    estimate throughput "$fp32" && estimate throughput-tf32 "$tf32" || return 1
    said=$(estimate throughput "$fp32" brief)
    echo "detail $said; with TF32 $(estimate throughput-tf32 "$tf32" brief)"
    awk -v x="${said##*measured }" 'BEGIN { split(x, word, " "); exit !(word[3] > 0 && word[3] <= 2) }'
}

pytorch()
{
    local eager graph rate
    python3 -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>/dev/null ||
        { echo "detail python3 has no PyTorch that sees the GPU" && return 77; }
    python3 experiments/gpu/pytorch.py --device cuda --batch 128 --steps 400 >"$out/pytorch.txt" || return 1
    cat "$out/pytorch.txt"
    eager=$(sed -n 's/^eager //p' "$out/pytorch.txt")
    graph=$(sed -n 's/^graph //p' "$out/pytorch.txt")
    rate=$(value_of "$out/throughput.csv" images_per_s)
    awk -v e="$eager" -v g="$graph" -v r="$rate" 'BEGIN {
        printf "detail eager %d, graph %d images/s; psring is %.2f x eager, %.2f x graph\n", e, g, r / e, r / g
        exit !(r >= e) }'
}
