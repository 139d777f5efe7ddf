# Sourced by ../parts.sh: measures speed. A part here fails if it cannot measure; an expected speed is only a goal.
# shellcheck shell=bash disable=SC2154

TURNS=3
SPEED_S=55 # a turn begins only if it would end before this, as long as the longest one so far
STEP=(--model keras-cnn --batch 128)

# Sets the peaks of $gpu: $fp32, $tf32 (FLOP/s), $bandwidth (bytes/s). Source: NVIDIA's data sheets, TF32 without
# sparsity. See models/measured.csv.
peaks()
{
    case $gpu in
    'NVIDIA H200,'*) fp32=67e12 tf32=494e12 bandwidth=4.8e12 ;;
    'NVIDIA H100 80GB HBM3,'*) fp32=67e12 tf32=494e12 bandwidth=3.35e12 ;;
    *) return 1 ;;
    esac
}

# --- images/s ----------------------------------------------------------------------------------------

# psring_rate MODE PRECISION: prints the rate of the epochs after the first, which has the warm-up. Tests do not count.
# MODE names the convolutions; default lets psring choose and records the choice in speed-PRECISION.txt.
psring_rate()
{
    local file=$out/speed-psring.csv option=()
    [[ $1 == default ]] || option=(--conv "$1")
    [[ $2 == FP32 ]] || option+=(--tf32)
    rm -f "$file"
    alone --device cuda "${STEP[@]}" --epochs 4 --metrics "$file" "${option[@]}" >/dev/null || return 1
    [[ $1 != default ]] || value_of "$file" convolutions >"$out/speed-$2.txt"
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "images_per_s") at = i; next } NR > 2 && at { print $at }' \
        "$file" | median
}

# pytorch_rate MODE PRECISION: asks the running PyTorch process.
pytorch_rate()
{
    local rate
    echo "$1 $2" >&"$ask" && read -r -t 30 rate <&"$answer" && echo "$rate"
}

# chosen PRECISION: prints the convolutions that psring chose.
chosen()
{
    cat "$out/speed-$1.txt"
}

# rate_of PROGRAM MODE PRECISION: prints the median of its turns.
rate_of()
{
    awk -F, -v key="$1,$2,$3" '$1 "," $2 "," $3 == key { print $5 }' "$out/speed.csv" | median
}

# Alternates between all programs, so that a change of the clock or of other load affects all of them.
speed()
{
    local turn program mode precision rate who contestants ask answer started=$EPOCHSECONDS turn_started longest=0 torch=
    contestants=('psring default FP32' 'psring default TF32')
    ! has_cudnn || contestants+=('psring own FP32' 'psring own TF32')
    mkfifo "$work/ask" "$work/answer" || return 1
    # The process does not hold the write end of its input, so it ends with this shell in every case.
    python3 -u experiments/gpu_check/pytorch.py --device cuda "${STEP[@]:2}" --steps 400 --turns \
        <"$work/ask" >"$work/answer" 2>"$out/pytorch.log" &
    exec {ask}>"$work/ask" {answer}<"$work/answer"
    if read -r -t 30 torch <&"$answer" && [[ $torch == ready* ]]; then
        contestants+=('pytorch eager FP32' 'pytorch graph FP32' 'pytorch eager TF32' 'pytorch graph TF32')
        torch=${torch#ready }
    else
        torch="none: $(tail -n 1 "$out/pytorch.log")"
    fi
    echo "PyTorch: $torch" | tee "$out/pytorch.txt"
    echo 'program,mode,precision,turn,images_per_s' >"$out/speed.csv"
    for ((turn = 1; turn <= TURNS; turn++)); do
        ((turn == 1 || EPOCHSECONDS - started + longest < SPEED_S)) || break
        turn_started=$EPOCHSECONDS
        for who in "${contestants[@]}"; do
            read -r program mode precision <<<"$who"
            case $program in
            psring) rate=$(psring_rate "$mode" "$precision") ;;
            pytorch) rate=$(pytorch_rate "$mode" "$precision") ;;
            esac
            echo "$who: ${rate:-failed}"
            [[ $rate =~ ^[0-9] ]] || { echo "detail turn $turn of $who failed: $(tail -n 1 "$out/pytorch.log")" && return 1; }
            echo "$program,$mode,$precision,$turn,$rate" >>"$out/speed.csv"
        done
        ((EPOCHSECONDS - turn_started <= longest)) || longest=$((EPOCHSECONDS - turn_started))
    done
    exec {ask}>&- {answer}<&-
    end_jobs
    say_speed
}

# Prints the comparison as a sentence, with the goal.
say_speed()
{
    local own eager graph precision said=
    for precision in FP32 TF32; do
        own=$(rate_of psring default $precision)
        eager=$(rate_of pytorch eager $precision)
        graph=$(rate_of pytorch graph $precision)
        said+="; $precision: psring $own"
        ! has_cudnn || said+=" (convolutions: $(chosen $precision)), $(rate_of psring own $precision) by its own convolutions"
        [[ $eager && $graph ]] || continue
        said+=", PyTorch eager $eager, with a CUDA graph $graph"
        goal "$precision: as fast as PyTorch, eager ($(awk -v a="$own" -v b="$eager" 'BEGIN { printf "%.2f", a / b }') of it)" "$own >= $eager"
    done
    # Without cuDNN psring is known to be slower.
    if ! has_cudnn; then
        echo "goal missed cuDNN computes the convolutions: $(dnn_info)"
    else
        goal "cuDNN computes the convolutions (psring chose $(chosen FP32))" "\"$(chosen FP32)\" ~ /^cudnn [0-9.]+\$/"
    fi
    echo "detail images/s, medians: ${said#; }; the last epochs kept the GPU busy $(
        value_of "$out/speed-psring.csv" gpu_utilization_mean) of the time (empty: not known)"
}

# --- compared with the shortest time -----------------------------------------------------------------

# estimate PRECISION FLOPS-PER-S [brief]: compares a step with the shortest possible time. The number of kernel launches
# comes from ncu, or else from a test.
estimate()
{
    local rate count
    rate=$(rate_of psring default "$1" 2>/dev/null)
    count=$(sed -n 's/^kernels a step: //p' "$out/kernels.txt" 2>/dev/null)
    [[ $count ]] || count=$(awk -F, '$1 == "step" { print $6 }' common/device/measured.csv)
    awk -v flops_per_s="$2" -v bytes_per_s="$bandwidth" -v kernels="$count" -v gap_us=1 -v brief="${3:-0}" \
        -v step_us="$(awk -v r="${rate:-0}" 'BEGIN { print (r > 0 ? 128e6 / r : 0) }')" \
        -f experiments/gpu_check/roofline.awk "$out/compute.csv"
}

# beside_own: prints each layer's us with psring's choice of convolutions and with psring's own. If neither is faster in
# all layers and passes, neither is the best choice.
beside_own()
{
    awk -F, '
        FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; file++; next }
        $at["layer"] == "sum" || $at["layer"] == "step" { next }
        { forward[file, $at["layer"]] = $at["forward_ms"]; backward[file, $at["layer"]] = $at["backward_ms"] }
        file == 1 { chosen = $at["convolutions"]; layer[++layers] = $at["layer"] }
        END {
            printf "us a pass, convolutions: %s, compared with own ones\n %-10s %12s %9s %12s %9s\n", chosen, "", "forward", "own", "backward", "own"
            for (i = 1; i <= layers; i++)
                printf " %-10s %12.1f %9.1f %12.1f %9.1f\n", layer[i], 1e3 * forward[1, layer[i]], 1e3 * forward[2, layer[i]],
                    1e3 * backward[1, layer[i]], 1e3 * backward[2, layer[i]]
        }' "$out/compute.csv" "$out/compute-own.csv"
}

roofline()
{
    local fp32 tf32 bandwidth said
    peaks || { echo "detail the peaks of this GPU are not known to speed.sh" && return 77; }
    rm -f "$out"/compute{,-own}.csv
    "$build/psring" bench --layers --device cuda --batch 128 --csv "$out/compute.csv" || return 1
    ! has_cudnn || "$build/psring" bench --layers --device cuda --batch 128 --conv own --csv "$out/compute-own.csv" || return 1
    {
        echo "FP32" && estimate FP32 "$fp32" && echo && echo "TF32 (the layers' measured times are those of FP32)" &&
            estimate TF32 "$tf32" && { ! has_cudnn || { echo && beside_own; }; }
    } >"$out/roofline.txt" || return 1
    cat "$out/roofline.txt"
    said=$(estimate FP32 "$fp32" brief)
    echo "detail FP32: $said; TF32: $(estimate TF32 "$tf32" brief)"
    [[ $said == *measured* && $said != *'not measured'* ]] || return 0
    said=${said##*measured * us, }
    goal "FP32: a step within 2 x of the least (${said%% *} x)" "${said%% *} <= 2"
}

# --- time by kernel ----------------------------------------------------------------------------------

# Measures time and bytes of each kernel by Nsight Compute, which runs kernels one after another.
kernels()
{
    local log=$out/ncu.csv rc=0 names
    command -v ncu >/dev/null || PATH=$PATH:/usr/local/cuda/bin
    command -v ncu >/dev/null || { echo "detail ncu (Nsight Compute) is missing" && return 77; }
    ncu --clock-control none --cache-control none --metrics gpu__time_duration.sum,dram__bytes.sum --print-units base --csv \
        --launch-skip 100 --launch-count 200 --log-file "$log" "$build/psring" train --backend none --device cuda --cuda-graph off \
        "${STEP[@]}" --steps 12 --data "$data" || rc=$?
    grep '==' "$log"
    if grep -qE 'ERR_NVGPUCTRPERM|LibraryNotLoaded|Failed to (initialize|prepare)' "$log"; then
        echo "detail ncu cannot read this GPU's counters: $(grep -E '==ERROR==' "$log" | head -1)" && return 77
    fi
    ((rc == 0)) || return 1
    names=$(grep -rhoE --include='*.cu' '__global__ void [a-z_0-9]+' common/device/cuda | sed 's/.* //' | paste -sd' ')
    awk -v own="$names" -v mark=gather_pixels -f experiments/gpu_check/kernels.awk "$log" >"$out/kernels.txt" || return 1
    cat "$out/kernels.txt"
    echo "detail $(sed -n 's/^all: //p' "$out/kernels.txt")"
}
