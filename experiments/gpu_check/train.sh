# Sourced by ../parts.sh: training in one process.
# shellcheck shell=bash disable=SC2154

# alone OPTION...: trains in one process.
alone()
{
    "$build/psring" train --backend none --data "$data" "$@"
}

# weights_of OPTION...: prints the checksum of the weights at the end of a run.
weights_of()
{
    local said
    said=$(alone --device cuda "$@") || return 1
    sed -n 's/^weights sha256 //p' <<<"$said"
}

# Trains twice with a graph and once without: the hashes must be equal.
repeatable()
{
    local graph hash first=
    for graph in on on off; do
        hash=$(weights_of --model keras-cnn --batch 128 --steps 20 --cuda-graph $graph)
        echo "--cuda-graph $graph: $hash"
        [[ $hash ]] || { echo "detail --cuda-graph $graph: the run failed" && return 1; }
        first=${first:-$hash}
        [[ $hash == "$first" ]] || { echo "detail --cuda-graph $graph: other weights than before" && return 1; }
    done
    echo "detail twice with a graph and once without: weights ${first:0:12}"
}

# Trains every model on GPU and CPU, with batches that no tile divides. The tests compare the CPU's operations with
# double precision.
models()
{
    local model batch device threads rc=0 said='' folder
    while read -r model batch; do
        folder=$work/$model-$batch
        mkdir "$folder" || return 1
        for device in cpu cuda; do
            threads=1
            [[ $device == cuda ]] || threads=0
            alone --device $device --threads $threads --model "$model" --batch "$batch" --steps 3 --checkpoint "$folder/$device" ||
                { echo "detail $model, batch $batch, on $device: the run failed" && return 1; }
        done
        apart "$model of $batch" 0 1e-5 "$folder/cpu" "$folder/cuda" || rc=1
    done <<<'keras-cnn 129
keras-cnn 31
lenet 1
lenet 13
mlp 37
wide-cnn 7'
    echo "detail apart from the CPU: ${said#, } (wanted 1e-5)"
    return "$rc"
}

# A run resumed after three of six steps must reach the weights of an uninterrupted run, bit for bit.
resume()
{
    local whole rest folder=$work options=(--model keras-cnn --batch 31 --steps 6)
    options+=(--checkpoint "$folder" --checkpoint-steps 3 --keep-checkpoints 2)
    whole=$(weights_of "${options[@]}") || { echo "detail the run failed" && return 1; }
    rm -f "$(newest "$folder")"
    echo "left: $(newest "$folder")"
    rest=$(alone --device cuda "${options[@]}" --resume=must) || { echo "detail it did not go on" && return 1; }
    echo "$rest"
    grep -q '^continues after step 3' <<<"$rest" || { echo "detail it did not go on after step 3" && return 1; }
    rest=$(sed -n 's/^weights sha256 //p' <<<"$rest")
    [[ $whole && $rest == "$whole" ]] || { echo "detail weights ${rest:0:12}, without a break ${whole:0:12}" && return 1; }
    echo "detail after step 3 to the bit: weights ${whole:0:12}"
}

# reaches NAME OPTION...: requires 99% of the test images after the twelve epochs of Keras.
reaches()
{
    local file=$out/$1.csv accuracy
    shift
    rm -f "$file"
    alone --device cuda --model keras-cnn --batch 128 --epochs 12 --metrics "$file" "$@" || return 1
    accuracy=$(value_of "$file" test_accuracy)
    said+=", accuracy $accuracy after 12 epochs (wanted 0.99)"
    [[ $accuracy =~ ^[01] ]] || return 1
    awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.99) }'
}

accuracy()
{
    local said='' rc=0
    reaches accuracy || rc=1
    echo "detail ${said#, }"
    return "$rc"
}

# TF32 products have ten bits of mantissa. The weights must differ from FP32 (else psring did not use tensor cores), but
# only a little.
tf32()
{
    local said='' rc=0 folder=$work
    alone --device cuda --model keras-cnn --batch 128 --steps 5 --checkpoint "$folder/fp32" || return 1
    alone --device cuda --model keras-cnn --batch 128 --steps 5 --checkpoint "$folder/tf32" --tf32 || return 1
    apart "from FP32" 1e-9 1e-3 "$folder/fp32" "$folder/tf32" || rc=1
    said+=" (wanted up to 1e-3, but not 0)"
    reaches tf32 --tf32 || rc=1
    echo "detail ${said#, }"
    return "$rc"
}
