#!/usr/bin/env bash
# test_usage.sh NVML_FOLDER CHECK_TIMELINE: the GPU's memory and utilization in the rows of --metrics and in `psring
# info`, with a stand-in for NVML (nvml.c) in NVML_FOLDER.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
nvml=$1
check_timeline=$2

# rows WHAT EXPECTED OPTION...: compare the two columns in all rows of a run of four steps. The run prints no
# warning.
rows()
{
    local what=$1 expected=$2 found
    shift 2
    rm -f "$folder/train.csv"
    train 0 --backend none --model lenet --batch 8 --steps 4 --log-steps 2 \
        --metrics "$folder/train.csv" "$@"
    ! grep '^psring: ' "$folder/log" || fail "$what: unexpected message"
    found=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
                     NR > 1 { printf "%s,%s ", $at["gpu_memory_bytes"], $at["gpu_utilization"] }' "$folder/train.csv")
    [[ $found == "$expected " ]] || fail "$what: '$found', expected '$expected '"
    echo "$what: $found"
}

# info WHAT EXPECTED...: check what `psring info` prints about the devices.
info()
{
    local what=$1
    shift
    "$psring" info >"$folder/log" 2>&1
    for expected; do
        grep -qF -- "$expected" "$folder/log" || fail "$what: no '$expected':"
    done
}

export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
without=$LD_LIBRARY_PATH
rows "no library" ', ,' --device cuda
info "no library" 'driver for CUDA'
LD_LIBRARY_PATH=$nvml${without:+:$without}
rows "GPU" '149385216001,0.4 149385216001,0.41' --device cuda
rows "CPU" ', ,' --device cpu
info "GPU" 'driver 580.12.34 for CUDA' '139.1 GiB in use'
for failing in init gpu; do
    NVML_STANDIN=$failing rows "no $failing" ', ,' --device cuda
done
NVML_STANDIN=memory rows "no memory" ',0.4 ,0.41' --device cuda
NVML_STANDIN=utilization rows "no utilization" '149385216001, 149385216001,' --device cuda
NVML_STANDIN=init info "no init" 'driver for CUDA'

# Over time: a thread samples every 100 ms. A second of steps has samples, which alternate between 85 and 5 percent.
rm -f "$folder/train.csv"
unset NVML_STANDIN
"$lib/mpirun.sh" 2 "$psring" train --backend ring --device cuda --share-gpu --model lenet --compute paced:500 --batch 8 \
    --steps 4 --log-steps 2 --metrics "$folder/train.csv" --timeline "$folder/timeline.json" >"$folder/log" 2>&1 ||
    fail "over time:"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { mean = $at["gpu_utilization_mean"]; idle = $at["gpu_idle_share"]; off = mean - (0.85 - 0.8 * idle)
      if (mean == "" || idle == "" || off > 1e-6 || off < -1e-6) bad = 1 }
    END { exit bad || NR != 3 }' "$folder/train.csv" || fail "over time: $(cat "$folder/train.csv")"
"$check_timeline" "$folder/timeline.json" >"$folder/log" || fail "over time: not a timeline:"
for rank in 0 1; do
    grep '"pid":'$rank, "$folder/timeline.json" >"$folder/log"
    for sample in '"GPU busy","args":{"%":85.0}' '"GPU busy","args":{"%":5.0}' '"GPU memory","args":{"MiB":142464.8}'; do
        grep -qF "\"name\":$sample" "$folder/log" || fail "rank $rank: no $sample in the timeline"
    done
done
NVML_STANDIN=utilization
export NVML_STANDIN
rows "no utilization over time" '149385216001, 149385216001,' --device cuda
[[ $(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { print $at["gpu_utilization_mean"] $at["gpu_idle_share"] "." }' "$folder/train.csv" | sort -u) == . ]] ||
    fail "no utilization over time: $(cat "$folder/train.csv")"
