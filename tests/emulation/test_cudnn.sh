#!/usr/bin/env bash
# test_cudnn.sh CUDNN_FOLDER: which convolutions a run uses. The stand-in for cuDNN (cudnn.cu) in CUDNN_FOLDER is
# absent, correct, wrong, or fails.
set -euo pipefail
test_images=200
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
cudnn=$1
calls=$folder/calls
export EMULATED_CUDNN_LOG=$calls LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
without=$LD_LIBRARY_PATH
with=$cudnn${without:+:$without}
options=(--backend none --device cuda --model lenet --batch 8 --steps 5)

# Checks of the last run's output. convolves WHAT EXPECTED: it names these convolutions. says WHAT WORDS: it prints
# the words once. silent WHAT: it contains no complaint.
convolves()
{
    grep -qx "convolutions: $2" "$folder/log" || fail "$1: no 'convolutions: $2' in:"
    echo "$1: convolutions: $2"
}

says()
{
    (($(grep -c -e "$2" "$folder/log") == 1)) || fail "$1: expected '$2' once in:"
}

silent()
{
    ! grep -e 'psring.*--conv' "$folder/log" || fail "$1: a message about --conv:"
}

same() # WHAT EXPECTED: check the weights of the last run
{
    [[ $weights == "$2" ]] || fail "$1: weights '$weights', expected '$2':"
}

# refused WHAT WORDS OPTION...: the run ends with one error, which contains the words and a remedy.
refused()
{
    local what=$1 words=$2
    shift 2
    ! "$psring" train --data "$data" "${options[@]}" "$@" >"$folder/log" 2>&1 || fail "$what: was not refused:"
    says "$what" "$words"
    says "$what" 'use --conv own'
    echo "$what: refused"
}

column() # NAME: print its value in the last row of train.csv
{
    awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } END { print $at }' "$folder/train.csv"
}

# --- no cuDNN ----------------------------------------------------------------------------------------

train 0 --conv own "${options[@]}"
own=$weights
convolves "own" own
silent "own"
train 0 --metrics "$folder/train.csv" "${options[@]}"
convolves "no cuDNN" own
says "no cuDNN" 'conv auto: no cuDNN can be used: neither libemulated_cudnn.so.9 nor .* was found .*LD_LIBRARY_PATH'
same "no cuDNN" "$own"
[[ $(column convolutions) == own ]] || fail "no cuDNN: the row says '$(column convolutions)'"
refused "no cuDNN" 'conv cudnn: no cuDNN can be used: neither' --conv cudnn
"$psring" info >"$folder/log" 2>&1
grep -q 'cudnn  *not used: neither libemulated_cudnn.so.9 nor ' "$folder/log" || fail "info does not report the missing cuDNN:"
[[ ! -e $calls ]] || fail "cuDNN was called: $(head -1 "$calls")"

# --- a correct cuDNN ---------------------------------------------------------------------------------

LD_LIBRARY_PATH=$with
"$psring" info >"$folder/log" 2>&1
grep -q "cudnn  *9.19.0, built with CUDA [0-9.]*: $cudnn/libemulated_cudnn.so.9" "$folder/log" ||
    fail "info does not report the library's path:"

# Both shapes are compared and used, and the difference is printed. Only the deterministic FMA algorithm (math 3) runs.
rm -f "$folder/train.csv"
train 0 --metrics "$folder/train.csv" --cuda-graph off "${options[@]}"
convolves "auto" 'cudnn 9.19.0'
silent "auto"
[[ $(column convolutions) == 'cudnn 9.19.0' ]] || fail "auto: the row says '$(column convolutions)'"
for shape in '28 x 28 x 1, 5 x 5 to 6' '14 x 14 x 6, 5 x 5 to 16'; do
    for batch in 100 8; do
        says "auto" "cuDNN 9.19.0: convolution $shape filters, $batch images: forward IMPLICIT_PRECOMP_GEMM, .* input ALGO_1, .* weights ALGO_1, 0.0 MiB of workspace; .* by [0-9.]*e-[0-9]* of its size (allowed 1e-04)"
    done
done
! grep -v 'algorithm 1 math 3$' "$calls" || fail "auto: another algorithm or arithmetic"
for pass in forward data filter; do
    grep -q "^$pass images 100 " "$calls" || fail "auto: no $pass of the comparison in $(sort "$calls" | uniq -c)"
    grep -q "^$pass images 8 " "$calls" || fail "auto: no $pass of training"
done
taken=$weights
# Training uses cuDNN in all five steps, after the comparison. The first layer's gradient by its input is not needed.
compared=6 step=5 # passes of two shapes
plain=$(grep -c 'images 8 ' "$calls")
((plain == compared + 5 * step)) || fail "auto: $plain passes of batches of 8, expected $compared to compare and $step in each of 5 steps"

# With --conv cudnn and a recorded graph the bits stay the same. cuDNN is called in two steps; the graph repeats them.
rm "$calls"
train 0 --conv cudnn --cuda-graph on "${options[@]}"
convolves "recorded" 'cudnn 9.19.0'
same "recorded" "$taken"
recorded=$(grep -c 'images 8 ' "$calls")
((recorded == compared + 2 * step)) || fail "recorded: $recorded passes of batches of 8, expected $compared and $step twice"

# Two ranks give the weights of one process that plays two workers.
train 0 --virtual-workers 2 --reduce-order ring "${options[@]}"
two=$weights
train 2 "${options[@]/none/ring}" --share-gpu --reduce-order ring
convolves "two ranks" 'cudnn 9.19.0'
says "two ranks" 'worker 1: cuDNN 9.19.0: convolution 28 x 28 x 1, .* 100 images'
same "two ranks" "$two"

# Training reaches the accuracy of psring's own convolutions.
accuracy()
{
    rm -f "$folder/train.csv"
    train 0 --backend none --device cuda --model lenet --batch 32 --epochs 1 --metrics "$folder/train.csv" "$@"
    column test_accuracy
}
by_own=$(accuracy --conv own) by_dnn=$(accuracy --conv cudnn)
awk -v own="$by_own" -v dnn="$by_dnn" 'BEGIN { exit !(own > 0.5 && dnn - own < 0.02 && own - dnn < 0.02) }' ||
    fail "accuracy $by_own by own convolutions, $by_dnn by cuDNN's"
echo "accuracy: $by_own by own convolutions, $by_dnn by cuDNN's"

# A timing names its convolutions. A run that is resumed with different convolutions prints a warning.
"$psring" bench --layers --device cuda --model lenet --batch 4 --iters 1 --warmup 0 --conv cudnn \
    --csv "$folder/compute.csv" >"$folder/log" 2>&1 || fail "bench --layers:"
says "bench --layers" 'device cuda, convolutions cudnn 9.19.0,'
[[ $(tail -1 "$folder/compute.csv") == *,'cudnn 9.19.0' ]] || fail "bench --layers: $(tail -1 "$folder/compute.csv")"
train 0 --checkpoint "$folder/checkpoint" "${options[@]}"
train 0 --checkpoint "$folder/checkpoint" --resume=extend --conv own "${options[@]/5/6}"
says "resumed" 'device is cuda with cudnn 9.19.0 there and cuda here'

# With --tf32 the algorithm for tensor cores is used, and a larger difference is allowed.
rm "$calls"
train 0 --tf32 "${options[@]}"
convolves "tf32" 'cudnn 9.19.0'
grep -q 'e-0[34] of its size (allowed 1e-02)' "$folder/log" || fail "tf32: the difference is not that of TF32:"
! grep -v 'algorithm 5 math 1$' "$calls" || fail "tf32: another algorithm or arithmetic"

# --- a wrong cuDNN -----------------------------------------------------------------------------------

# not_taken WORDS-FOR-IT MESSAGE...: with auto the run uses psring's kernels and prints the reason.
not_taken()
{
    local words=$1 message
    shift
    export EMULATED_CUDNN=$words
    train 0 "${options[@]}"
    convolves "$words" own
    same "$words" "$own"
    for message; do
        grep -q -e "conv auto: $message" "$folder/log" || fail "$words: no '$message' in:"
    done
}

otherwise='cuDNN 9.19.0 computes the convolution 28 x 28 x 1, .* differently from psring: its'
not_taken wrong-forward "$otherwise outputs differs by [0-9.e+-]* of its size (allowed 1e-04)"
not_taken wrong-data "$otherwise gradient by the input differs"
not_taken wrong-filter "$otherwise gradient by the weights differs"
not_taken unwritten "$otherwise .* differs by inf"
not_taken tf32 "$otherwise .* differs by [0-9.]*e-0[34] of its size"
not_taken random 'cuDNN 9.19.0, convolution .*: cuDNN names 6 algorithms for the forward: 0 are deterministic'
for pass in forward data filter; do
    not_taken fail-$pass 'cuDNN 9.19.0 fails at the convolution 28 x 28 x 1, .*: cudnnConvolution.*: EMULATED_ERROR'
done
not_taken no-create 'no cuDNN can be used: .*libemulated_cudnn.so.9, version 9.19.0, cannot be started (EMULATED_NOT_INITIALIZED)'
refused "no handle" 'conv cudnn: no cuDNN can be used: .* cannot be started' --conv cudnn
EMULATED_CUDNN=random refused "nothing deterministic" 'algorithms for the forward: 0 are deterministic and in float32' --conv cudnn
EMULATED_CUDNN=fail-data refused "a pass that fails" 'fails at the convolution' --conv cudnn

# With --conv cudnn a cuDNN with different results is used, with a warning.
export EMULATED_CUDNN=wrong-data
train 0 --conv cudnn "${options[@]}"
convolves "asked for" 'cudnn 9.19.0'
grep -q 'conv cudnn: .*; --conv auto would not use it' "$folder/log" || fail "asked for: no warning in:"

# Each batch size is compared before it is used. Here only batches of 8 are wrong.
export EMULATED_CUDNN=odd-8
train 0 "${options[@]}" --metrics "$folder/odd.csv"
convolves "a wrong size" 'cudnn 9.19.0 and own'
same "a wrong size" "$own"
says "a wrong size" "computes the convolution 28 x 28 x 1, .* 8 images differently from psring: its outputs differs"
[[ $(tail -1 "$folder/odd.csv") == *,'cudnn 9.19.0 and own' ]] || fail "a wrong size: $(tail -1 "$folder/odd.csv")"

# Ranks that use different convolutions are reported.
train 2 "${options[@]/none/ring}" --share-gpu --conv auto
! grep "this worker's device" "$folder/log" || fail "two equal ranks were reported as different:"
launcher=mpirun EMULATED_CUDNN=wrong-forward EMULATED_CUDNN_RANK=1 train 2 "${options[@]/none/ring}" --share-gpu
says "two kinds" "worker 1: .*device is cuda, but worker 0's is cuda with cudnn 9.19.0"

# Batches that need more workspace than is available use psring's convolutions; with --conv cudnn they are an error.
export EMULATED_CUDNN=grows
train 0 "${options[@]}"
same "more workspace" "$own"
says "more workspace" 'to 16 filters, 8 images: IMPLICIT_PRECOMP_GEMM cannot be done in [0-9]* bytes of'
refused "more workspace" '5 x 5 to 6 filters, 8 images: IMPLICIT_PRECOMP_GEMM cannot' --conv cudnn
unset EMULATED_CUDNN

toolkit=$("$psring" info 2>/dev/null | sed -n 's/.*cudnn .* built with CUDA \([0-9]*\)\..*/\1/p')
EMULATED_CUDNN_CUDA=$((toolkit + 1)) not_taken '' \
    "no cuDNN can be used: .*libemulated_cudnn.so.9 is built for CUDA $((toolkit + 1)), and this psring for CUDA $toolkit;"
EMULATED_CUDNN_VERSION=8700 not_taken '' 'no cuDNN can be used: .* is version 8.7.0, and 8.9 or 9 is needed'
mkdir "$folder/parts"
cp -a "$cudnn/." "$folder/parts"
rm "$folder/parts/libemulated_cudnn_ops.so.9"
LD_LIBRARY_PATH=$folder/parts${without:+:$without}
not_taken '' 'no cuDNN can be used: .*/parts/libemulated_cudnn.so.9 lacks one of its parts in the same folder (.*_ops'
rm "$folder/parts/libemulated_cudnn_graph.so.9"
not_taken '' 'no cuDNN can be used: .*/parts/libemulated_cudnn.so.9 lacks one of its parts in the same folder (.*_graph'
