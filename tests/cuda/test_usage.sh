#!/usr/bin/env bash
# test_usage.sh PSRING_EMULATED MAKE_DATASET NVML_FOLDER: what the rows of --metrics and `psring info`
# say of a GPU's memory and of how busy it is, by a stand-in for NVML (nvml.c) in NVML_FOLDER.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../train_lib.sh
. "$(dirname "$0")/../train_lib.sh"
nvml=$3

# rows WHAT EXPECTED OPTION...: the two columns of all rows of a run of four steps; nobody complains.
rows()
{
    local what=$1 expected=$2 found
    shift 2
    rm -f "$folder/train.csv"
    train 0 --backend none --model lenet --batch 8 --steps 4 --log-steps 2 --metrics "$folder/train.csv" "$@"
    ! grep '^psring: ' "$folder/log" || fail "$what: complains"
    found=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
                     NR > 1 { printf "%s,%s ", $at["gpu_memory_bytes"], $at["gpu_utilization"] }' "$folder/train.csv")
    [[ $found == "$expected " ]] || fail "$what: '$found', expected '$expected '"
    echo "$what: $found"
}

# info WHAT EXPECTED...: is said of the devices.
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
