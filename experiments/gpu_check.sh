#!/usr/bin/env bash
# gpu_check.sh [--data DIR] [--out DIR] [--build DIR]: everything that takes a GPU, in 10 minutes.
#
# Builds psring with CUDA and NCCL, runs the tests that need a GPU (once more under compute-sanitizer),
# has 2 and 4 ranks on one GPU average by nccl, ps, mpi and ring, which must agree, and trains keras-cnn
# to accuracy. Then speed: images/s beside PyTorch's where python3 has it, and beside what the GPU could
# do at most (experiments/gpu/roofline.awk). Leaves OUT/gpu_check.json, the table that it prints as
# OUT/gpu_check.txt, a log of each part, and all of it in OUT/gpu_check.tar.gz. Ends with 0 if every
# part passed or had a reason to be skipped, 1 if one failed or had no time left, 77 without a GPU.
#
# It uses what it finds and fetches nothing. PSRING_PREFIX may name what experiments/gpu/prefix.sh
# collected on another machine (the file or the unpacked folder): libraries, Open MPI, MNIST.
set -uo pipefail
export LC_ALL=C # a point in numbers, and messages as they are looked for, whatever the user's language

LIMIT_S=560 # in all; the parts' limits add up to it

# absolute NAME: of a file as the caller sees it, before this goes to the sources.
absolute()
{
    [[ ! $1 || $1 == /* ]] && echo "$1" || echo "$PWD/$1"
}

data=$(absolute "${PSRING_DATA:-}")
PSRING_PREFIX=$(absolute "${PSRING_PREFIX:-}")
out=gpu_check
build='build-gpu'
while (($#)); do
    case $1 in
    --data | --out | --build)
        (($# >= 2)) || { echo "gpu_check.sh: $1 needs a folder" >&2 && exit 2; }
        printf -v "${1#--}" %s "$(absolute "$2")"
        shift
        ;;
    -h | --help)
        sed -n '2,13s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "gpu_check.sh: unknown argument '$1'; see gpu_check.sh --help" >&2
        exit 2
        ;;
    esac
    shift
done

cd "$(dirname "$0")/.." || exit 1
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

if [[ -f $PSRING_PREFIX ]]; then
    mkdir -p "$build/prefix"
    tar -C "$build/prefix" -xzf "$PSRING_PREFIX" || exit 1
    PSRING_PREFIX=$build/prefix
fi
if [[ $PSRING_PREFIX ]]; then
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
        record "$name" failed 0 "no time left of $LIMIT_S s"
        return 1
    fi
    ((limit < left)) || limit=$left
    timeout --kill-after=5 "$limit" bash -c '. experiments/gpu/parts.sh; "$@"' part "$@" >"$out/$name.log" 2>&1 || rc=$?
    detail=$(sed -n 's/^detail //p' "$out/$name.log" | tail -1)
    case $rc in
    0) record "$name" passed $((SECONDS - started)) "$detail" ;;
    77) record "$name" skipped $((SECONDS - started)) "$detail" ;;
    124 | 137) record "$name" failed $((SECONDS - started)) "not done within $limit s; see $name.log" ;;
    *) record "$name" failed $((SECONDS - started)) "exit code $rc: ${detail:-$(grep -v '^$' "$out/$name.log" | tail -1 | cut -c1-150)}" ;;
    esac
    ((rc == 0))
}

# --- the check ---------------------------------------------------------------------------------------

export build out data gpu
echo "GPU: $gpu" | tee "$out/gpu_check.txt"
if part versions 10 versions && part build 120 configure_and_build; then
    part tests 60 run_tests
    part sanitizer 120 sanitize
    part nccl-2 20 bench_exact 2
    part nccl-4 25 bench_exact 4
    if [[ $data ]]; then
        part agree-2 30 agree 2
        part agree-4 40 agree 4
        part repeatable 20 repeatable
        part accuracy 35 train_to_accuracy
        part throughput 20 throughput throughput && {
            part roofline 20 roofline
            part pytorch 40 pytorch
        }
    else
        for name in agree-2 agree-4 repeatable accuracy throughput; do
            skip $name "no MNIST; give --data DIR"
        done
    fi
fi

# --- JSON --------------------------------------------------------------------------------------------

. experiments/json.sh
{
    printf '{\n  "gpu": %s,\n  "commit": %s,\n  "time": %s,\n  "seconds": %d,\n  "passed": %s,\n  "parts": [' \
        "$(json_string "$gpu")" "$(json_string "$(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)")" \
        "$(json_string "$(date -u +%FT%TZ)")" "$SECONDS" "$( ((failed)) && echo false || echo true)"
    comma=
    for result in "${results[@]}"; do
        IFS='|' read -r name outcome seconds detail <<<"$result"
        printf '%s\n    {"name": %s, "result": %s, "seconds": %d, "detail": %s}' "$comma" "$(json_string "$name")" \
            "$(json_string "$outcome")" "$seconds" "$(json_string "$detail")"
        comma=,
    done
    printf '\n  ]\n}\n'
} >"$out/gpu_check.json"
echo "$SECONDS s; results in $out, all of them in gpu_check.tar.gz" | tee -a "$out/gpu_check.txt"
tar -C "$out" --exclude=gpu_check.tar.gz -czf "$build/gpu_check.tar.gz" . &&
    mv "$build/gpu_check.tar.gz" "$out/" || failed=1
exit $failed
