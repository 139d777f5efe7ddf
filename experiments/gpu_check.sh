#!/usr/bin/env bash
# gpu_check.sh [--data DIR] [--out DIR] [--build DIR]: runs everything that needs a GPU, in 10 minutes.
#
# Builds psring with CUDA and NCCL. Runs the tests that need a GPU, and again under compute-sanitizer. Compares every
# model with the CPU. Compares nccl, ps, mpi and ring with 2 and 4 ranks on one GPU. Trains keras-cnn to accuracy,
# resumes from a checkpoint, and kills a rank. Then it measures images/s alternating with PyTorch (if python3 has it),
# each layer compared with the GPU's peak, and the time by kernel. Writes OUT/gpu_check.md (the page to read),
# OUT/gpu_check.json, and OUT/gpu_check.tar.gz (also with the log of each part). It writes all three after every part,
# so a killed check leaves them. Exit status: 0 if every part passed or had a reason to be skipped, 1 if a part failed
# or had no time left, 77 without a GPU. A missed goal of speed is reported, but is not a failure.
#
# BUILD (build-gpu) must be new, or an earlier check's. The script downloads nothing. PSRING_PREFIX may name the file or
# the unpacked folder of experiments/gpu_check/prefix.sh from another machine, with libraries, Open MPI and MNIST.
set -uo pipefail
export LC_ALL=C # decimal points and English messages in every locale
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$(dirname "$0")/sweep/script.sh"
heed_interrupts "$@"

die()
{
    echo "gpu_check.sh: $*" >&2
    exit 1
}

LIMIT_S=560 # in all; the parts' limits add up to it

# absolute NAME: prints the absolute path of a file, before the script changes the folder.
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
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "gpu_check.sh: unknown argument '$1'; see gpu_check.sh --help" >&2
        exit 2
        ;;
    esac
    shift
done

unset CDPATH # cd prints a folder that it finds there
cd "$(dirname "$0")/.." || exit 1
gpu=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -1)
if [[ ! $gpu || $gpu != *,* ]]; then
    echo "gpu_check.sh: no GPU on this machine (nvidia-smi lists none); run it on a machine with a GPU" >&2
    exit 77
fi

if [[ -d $out && $(find "$out" -mindepth 1 -maxdepth 1 ! -name 'gpu_check.*') ]]; then
    echo "gpu_check.sh: --out '$out' has other files than an earlier check's; name a new folder" >&2
    exit 2
fi
if [[ -d $build && ! -d $build/gpu_check.parts && $(ls -A "$build") ]]; then
    echo "gpu_check.sh: --build '$build' has files, and no earlier check made it; name a new folder" >&2
    exit 2
fi
take_folder "$out"
results=$out
mkdir -p "$build" || exit 1
build=$(cd "$build" && pwd)
lock_folder "$build" --build 9
out=$build/gpu_check.parts # the parts' files; the results are the page, its data and the archive only
rm -rf "$out"
mkdir "$out" || exit 1

# --- the prefix from another machine -----------------------------------------------------------------

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
# Adds folders of compilers that PATH lacks.
command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin

# --- parts and their results -------------------------------------------------------------------------

failed=0
stop=   # why no further part can run
group=  # the process of the running part
beside= # the process of sanitize_beside
work=   # an empty folder for the part
# shellcheck source=experiments/gpu_check/groups.sh
. experiments/gpu_check/groups.sh
# shellcheck source=experiments/gpu_check/data.sh
. experiments/gpu_check/data.sh

record() # NAME RESULT SECONDS LIMIT-S WHAT DETAIL
{
    printf '%s|%s|%s|%s|%s|%s\n' "$1" "$2" "$3" "$4" "$5" "${6//|//}" >>"$out/parts.txt"
    printf '%-12s %-8s %4s s  %s\n' "$1" "$2" "$3" "$6"
    [[ $2 == passed || $2 == skipped ]] || failed=1
    [[ $2 == 'not run' || $2 == 'no time' ]] || write_page # the parts that follow do not run either; the last page has them
}

# Called after every part that ran, so that a killed check leaves a page of its results.
write_page()
{
    local passed=false
    printf '%s|%s|%s|%s|%s|%s\n' "$gpu" "$commit" "$time" "$SECONDS" "$LIMIT_S" "$finished" >"$out/run.txt"
    experiments/gpu_check/page.sh "$out" >"$out/gpu_check.md" || failed=1
    [[ ! $finished ]] || ((failed)) || passed=true
    if ! { data_of $passed >"$out/gpu_check.json" &&
        tar -C "$out" --exclude='./part.*' -czf "$build/gpu_check.tar.gz" . && mv "$build/gpu_check.tar.gz" "$results/"; }; then
        failed=1
        data_of false >"$out/gpu_check.json"
    fi
    cp "$out/gpu_check.md" "$out/gpu_check.json" "$results/" || failed=1
}

# part NAME LIMIT-S WHAT COMMAND...: runs a function of parts.sh, which describes the output of a part.
part()
{
    local name=$1 limit=$2 what=$3 left=$((LIMIT_S - SECONDS)) started=$SECONDS rc=0 log=$out/$1.log detail result
    shift 3
    rm -f "$log"
    if [[ $stop ]]; then
        record "$name" 'not run' 0 "$limit" "$what" "$stop"
        return 1
    elif [[ ! $data && ${needs:-} == data ]]; then
        record "$name" skipped 0 "$limit" "$what" "no MNIST; give --data DIR"
        return 1
    elif ((left < 5)); then
        record "$name" 'no time' 0 "$limit" "$what" "no time left of $LIMIT_S s"
        return 1
    fi
    work=$(mktemp -d "$out/part.XXXXXX") || exit 1
    # shellcheck disable=SC2016  # the other shell's
    start_group $((limit < left ? limit : left)) "$log" '"$@"' "$@"
    wait "$group" || rc=$?
    end_groups "$group"
    group=
    rm -rf "$work"
    work=
    detail=$(sed -n 's/^detail //p' "$log" | tail -1)
    case $rc in
    0) result=passed ;;
    77) result=skipped ;;
    124 | 137) result=failed detail="not done within $((limit < left ? limit : left)) s; see $name.log" ;;
    *) result=failed detail="exit code $rc: ${detail:-$(grep -v '^$' "$log" | tail -1 | cut -c1-150)}" ;;
    esac
    record "$name" $result $((SECONDS - started)) "$limit" "$what" "$detail"
    sed -n 's/^goal //p' "$log" | tee -a "$out/goals.txt" | sed 's/^/             goal /'
    ((rc == 0))
}

# compute-sanitizer takes minutes, so it runs in parallel with the next parts, until a part waits for it. Those parts
# must not measure time.
sanitize_beside()
{
    [[ ! $stop ]] || return 0
    rm -f "$out/sanitizer.rc"
    # shellcheck disable=SC2016  # the other shell's
    start_group $((LIMIT_S > SECONDS ? LIMIT_S - SECONDS : 1)) "$out/sanitizer-run.log" 'sanitize; echo $? >"$out/sanitizer.rc"'
    beside=$group group=
}

# --- the check ---------------------------------------------------------------------------------------

# The most important parts come first.
export build out data gpu work
rm -f "$results"/gpu_check.{md,json,tar.gz}
commit=$(git describe --always --dirty --exclude='*' 2>/dev/null || echo unknown)
time=$(date -u +%FT%TZ)
finished='' # not yet
: | tee "$out/goals.txt" >"$out/parts.txt"
echo "GPU: $gpu"
part versions 8 "tools and libraries are there" versions || stop="needs versions, which did not pass"
part configure 25 "CMake finds CUDA and NCCL" configure || stop="${stop:-needs configure, which did not pass}"
part build 80 "it compiles, and sees the GPU" build || stop="${stop:-needs build, which did not pass}"
part tests 45 "each operation, and training, against the CPU's; errors; memory" run_tests
sanitize_beside
needs=data part repeatable 15 "the same run ends with the same bits, with and without a CUDA graph" repeatable
needs=data part models 35 "every model, with odd batches, against the CPU" models
part nccl-2 15 "NCCL's sums between 2 ranks, element by element" bench_exact 2
part nccl-4 20 "NCCL's sums between 4 ranks, element by element" bench_exact 4
needs=data part agree-2 30 "2 ranks train to one result by ring, nccl, mpi and ps, as one process does; ring in fp16" agree 2 fp16
needs=data part agree-4 35 "4 ranks train to one result by ring, nccl, mpi and ps, as one process does" agree 4
needs=data part accuracy 25 "12 epochs of keras-cnn reach 99%" accuracy
needs=data part tf32 30 "TF32 computes nearly the same, and reaches 99%, too" tf32
needs=data part resume 12 "a checkpoint is continued to the same bits" resume
part sanitizer 40 "compute-sanitizer over the operations" sanitizer_ends "$beside"
# shellcheck disable=SC2086  # none is no word
end_groups $beside # nothing may run in parallel with the next parts
beside=
needs=data part peers 40 "a rank is killed, another one stops: the others end by themselves, and say why" peer_gone
needs=data part speed 60 "images/s, alternating with PyTorch" speed
needs=data part kernels 25 "time by kernel" kernels
part roofline 20 "each layer compared with its shortest time" roofline

finished=yes
write_page
echo "$SECONDS s; read $results/gpu_check.md; gpu_check.tar.gz has all files"
exit $failed
