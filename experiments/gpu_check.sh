#!/usr/bin/env bash
# gpu_check.sh [--data DIR] [--out DIR] [--build DIR]: everything that takes a GPU, in 8 minutes.
#
# Builds psring with CUDA, runs the tests that need a GPU (once more under compute-sanitizer), trains
# keras-cnn to accuracy, compares its images/s with PyTorch's where python3 has it and with what the
# GPU could do at most (experiments/gpu/roofline.awk), and has 2 to 4 ranks on one GPU average by nccl, ps
# and ring, which must agree. Leaves OUT/gpu_check.json, the table that it prints as
# OUT/gpu_check.txt, and a log of each part. Ends with 0 if every part that ran passed, 1 if one
# failed, 77 without a GPU.
#
# It uses what it finds and fetches nothing. PSRING_PREFIX may name what experiments/gpu/prefix.sh
# collected on another machine (the file or the unpacked folder): libraries, Open MPI, MNIST.
# shellcheck disable=SC2317  # parts are called by a shell of their own
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
LIMIT_S=470 # in all

data=${PSRING_DATA:-}
out=gpu_check
build='build-gpu'
while (($#)); do
    case $1 in
    --data | --out | --build)
        (($# >= 2)) || { echo "gpu_check.sh: $1 needs a folder" >&2 && exit 2; }
        printf -v "${1#--}" %s "$2"
        shift
        ;;
    -h | --help)
        sed -n '2,12s/^# \{0,1\}//p' experiments/gpu_check.sh
        exit 0
        ;;
    *)
        echo "gpu_check.sh: unknown argument '$1'; see gpu_check.sh --help" >&2
        exit 2
        ;;
    esac
    shift
done

gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -1)
if [[ ! $gpu || $gpu != *,* ]]; then
    echo "gpu_check.sh: no GPU on this machine (nvidia-smi names none); run it where there is one" >&2
    exit 77
fi

mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
mkdir -p "$build" || exit 1
build=$(cd "$build" && pwd)

# --- what was brought along --------------------------------------------------------------------------

if [[ -f ${PSRING_PREFIX:-} ]]; then
    mkdir -p "$build/prefix"
    tar -C "$build/prefix" -xzf "$PSRING_PREFIX" || exit 1
    PSRING_PREFIX=$build/prefix
fi
if [[ ${PSRING_PREFIX:-} ]]; then
    PSRING_PREFIX=$(cd "$PSRING_PREFIX" && pwd) || exit 1
    # shellcheck source=/dev/null
    . "$PSRING_PREFIX/env.sh" || exit 1
    [[ $data || ! -d $PSRING_PREFIX/data ]] || data=$PSRING_PREFIX/data
fi
[[ $data || ! -d ../shared/data/mnist ]] || data=../shared/data/mnist
[[ $data || ! -d shared/data/mnist ]] || data=shared/data/mnist
# Where compilers are that no PATH names.
command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin

# --- parts, and what comes of them -------------------------------------------------------------------

results=() # NAME|RESULT|SECONDS|DETAIL
failed=0

record() # NAME RESULT SECONDS DETAIL
{
    results+=("$1|$2|$3|${4//|//}")
    printf '%-24s %-7s %5s s  %s\n' "$1" "$2" "$3" "$4" | tee -a "$out/gpu_check.txt"
    [[ $2 != failed ]] || failed=1
}

skip() # NAME WHY
{
    record "$1" skipped 0 "$2"
}

# part NAME LIMIT-S COMMAND...: its output is the log; its last line "detail ..." is what is told.
part()
{
    local name=$1 limit=$2 left=$((LIMIT_S - SECONDS)) started=$SECONDS rc=0 detail
    shift 2
    if ((left < 5)); then
        skip "$name" "no time left of $LIMIT_S s"
        return 1
    fi
    ((limit < left)) || limit=$left
    timeout --kill-after=5 "$limit" bash -c '"$@"' part "$@" >"$out/$name.log" 2>&1 || rc=$?
    detail=$(sed -n 's/^detail //p' "$out/$name.log" | tail -1)
    case $rc in
    0) record "$name" passed $((SECONDS - started)) "$detail" ;;
    77) record "$name" skipped $((SECONDS - started)) "$detail" ;;
    124 | 137) record "$name" failed $((SECONDS - started)) "not done within $limit s; see $name.log" ;;
    *) record "$name" failed $((SECONDS - started)) "exit code $rc: ${detail:-$(grep -v '^$' "$out/$name.log" | tail -1 | cut -c1-150)}" ;;
    esac
    ((rc == 0))
}

configure_and_build()
{
    local tests=ON generator=()
    command -v cmake >/dev/null || { echo "detail cmake is missing" && return 1; }
    ! command -v ninja >/dev/null || generator=(-G Ninja)
    "${PKG_CONFIG:-pkg-config}" --exists criterion || tests=OFF
    cmake -S . -B "$build" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release -DPSRING_CUDA=ON -DPSRING_TESTS="$tests" ||
        return 1
    cmake --build "$build" -j "$(nproc)" || return 1
    "$build/psring" info || return 1
    echo "detail $("$build/psring" info | sed -n 's/^  \[X\] nccl  */nccl /p' | tail -1)"
}

run_tests()
{
    local rc=0 log=$out/ctest.txt
    [[ -f $build/tests/CTestTestfile.cmake ]] || { echo "detail no Criterion, so no tests were built" && return 77; }
    ctest --test-dir "$build" -R 'cuda|device|gpu|nccl|staging' --output-on-failure -j 4 --timeout 90 >"$log" || rc=1
    cat "$log"
    echo "detail $(grep -c ' Passed ' "$log") passed, $(grep -c '\*\*\*Skipped' "$log") skipped, $(
        grep -cE '\*\*\*(Failed|Timeout|Exception)' "$log") failed"
    return "$rc"
}

sanitize() # TOOL: the tests of CUDA once more, watched
{
    local test found=0
    command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || { echo "detail compute-sanitizer is missing" && return 77; }
    for test in "$build"/tests/*cuda*; do
        [[ -f $test && -x $test ]] || continue
        found=1
        compute-sanitizer --tool "$1" --target-processes all --error-exitcode 9 "$test" || return 1
    done
    ((found)) || { echo "detail no tests of CUDA were built" && return 77; }
    echo "detail $1 found nothing"
}

value_of() # FILE COLUMN: in the last row
{
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } END { print $at }' "$1"
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
    awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.99) }'
}

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

# Ranks on one GPU: the results must be right; their times are those of time-slicing and not shown.
launch() # RANKS COMMAND...
{
    local ranks=$1 root=()
    shift
    command -v mpirun >/dev/null || { echo "detail mpirun is missing" && exit 77; }
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

agree() # RANKS: after 100 steps
{
    local ranks=$1 backend options folder tool=$build/tests/compare_weights worst=0 relative
    [[ -x $tool ]] || { echo "detail no Criterion, so compare_weights was not built" && return 77; }
    for backend in ring nccl ps mpi; do
        folder=$out/agree-$ranks-$backend
        options=(--backend "$backend")
        [[ $backend != ps ]] || options+=(--servers 1 --placement colocated)
        rm -rf "$folder"
        launch "$ranks" "$build/psring" train "${options[@]}" --device cuda --share-gpu --model keras-cnn \
            --batch 32 --steps 100 --data "$data" --checkpoint "$folder" || return 1
        relative=$("$tool" "$out/agree-$ranks-ring/keras-cnn.checkpoint" "$folder/keras-cnn.checkpoint") || return 1
        echo "$backend against ring: $relative"
        worst=$(awk -v a="$worst" -v b="${relative#relative }" 'BEGIN { print (b > a ? b : a) }')
    done
    rm -rf "$out"/agree-"$ranks"-*
    echo "detail nccl, ps, mpi against ring: at most $worst apart (wanted 1e-5)"
    awk -v w="$worst" 'BEGIN { exit !(w <= 1e-5) }'
}

export build out data gpu
export -f configure_and_build run_tests sanitize value_of train_to_accuracy throughput estimate roofline pytorch launch \
    bench_exact agree

# --- the check ---------------------------------------------------------------------------------------

echo "GPU: $gpu" | tee "$out/gpu_check.txt"
if part build 180 configure_and_build; then
    part tests 90 run_tests
    if [[ $data ]]; then
        part throughput 40 throughput throughput && {
            part roofline 40 roofline
            part pytorch 70 pytorch
        }
        part accuracy 60 train_to_accuracy
    else
        skip throughput "no MNIST; give --data DIR" && skip accuracy "no MNIST; give --data DIR"
    fi
    for ranks in 2 4; do
        part "nccl-$ranks" 60 bench_exact $ranks
        if [[ $data ]]; then
            part "agree-$ranks" 90 agree $ranks
        else
            skip "agree-$ranks" "no MNIST; give --data DIR"
        fi
    done
    part memcheck 60 sanitize memcheck
    part racecheck 60 sanitize racecheck
fi

# --- JSON --------------------------------------------------------------------------------------------

quote()
{
    printf '"%s"' "$(printf %s "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"
}

{
    printf '{\n  "gpu": %s,\n  "commit": %s,\n  "time": %s,\n  "seconds": %d,\n  "passed": %s,\n  "parts": [' \
        "$(quote "$gpu")" "$(quote "$(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)")" \
        "$(quote "$(date -u +%FT%TZ)")" "$SECONDS" "$( ((failed)) && echo false || echo true)"
    comma=
    for result in "${results[@]}"; do
        IFS='|' read -r name outcome seconds detail <<<"$result"
        printf '%s\n    {"name": %s, "result": %s, "seconds": %d, "detail": %s}' "$comma" "$(quote "$name")" \
            "$(quote "$outcome")" "$seconds" "$(quote "$detail")"
        comma=,
    done
    printf '\n  ]\n}\n'
} >"$out/gpu_check.json"
echo "$SECONDS s; results in $out" | tee -a "$out/gpu_check.txt"
exit $failed
