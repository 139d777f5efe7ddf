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

# psring_rate PRECISION: prints the rate of the epochs after the first, which has the warm-up. Tests do not count.
psring_rate()
{
    local file=$out/speed-psring.csv option=()
    [[ $1 == FP32 ]] || option=(--tf32)
    rm -f "$file"
    alone --device cuda "${STEP[@]}" --epochs 4 --metrics "$file" "${option[@]}" >/dev/null || return 1
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "images_per_s") at = i; next } NR > 2 && at { print $at }' \
        "$file" | median
}

# pytorch_rate MODE PRECISION: asks the running PyTorch process.
pytorch_rate()
{
    local rate
    echo "$1 $2" >&"$ask" && read -r -t 30 rate <&"$answer" && echo "$rate"
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
    contestants=('psring graph FP32' 'psring graph TF32')
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
            psring) rate=$(psring_rate "$precision") ;;
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
        own=$(rate_of psring graph $precision)
        eager=$(rate_of pytorch eager $precision)
        graph=$(rate_of pytorch graph $precision)
        said+="; $precision: psring $own"
        [[ $eager && $graph ]] || continue
        said+=", PyTorch eager $eager, with a CUDA graph $graph"
        goal "$precision: as fast as PyTorch with a CUDA graph ($(awk -v a="$own" -v b="$graph" 'BEGIN { printf "%.2f", a / b }') of it)" "$own >= $graph"
    done
    echo "detail images/s, medians: ${said#; }; the last epochs kept the GPU busy $(
        value_of "$out/speed-psring.csv" gpu_utilization_mean) of the time (empty: not known)"
}

# --- compared with the shortest time -----------------------------------------------------------------

# estimate PRECISION FLOPS-PER-S [brief]: compares a step with the shortest possible time. The number of kernel launches
# comes from ncu, or else from a test.
estimate()
{
    local rate count
    rate=$(rate_of psring graph "$1" 2>/dev/null)
    count=$(sed -n 's/^kernels a step: //p' "$out/kernels.txt" 2>/dev/null)
    [[ $count ]] || count=$(awk -F, '$1 == "step" { print $6 }' common/device/measured.csv)
    awk -v flops_per_s="$2" -v bytes_per_s="$bandwidth" -v kernels="$count" -v gap_us=1 -v brief="${3:-0}" \
        -v step_us="$(awk -v r="${rate:-0}" 'BEGIN { print (r > 0 ? 128e6 / r : 0) }')" \
        -f experiments/gpu_check/roofline.awk "$out/compute.csv"
}

roofline()
{
    local fp32 tf32 bandwidth said
    peaks || { echo "detail the peaks of this GPU are not known to speed.sh" && return 77; }
    rm -f "$out/compute.csv"
    "$build/psring" bench --layers --device cuda --batch 128 --csv "$out/compute.csv" || return 1
    {
        echo "FP32" && estimate FP32 "$fp32" && echo && echo "TF32 (the layers' measured times are those of FP32)" &&
            estimate TF32 "$tf32"
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
