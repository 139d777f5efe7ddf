#!/usr/bin/env bash
# test_roofline.sh: the least time of a step, from numbers that are easy to check by hand.
set -euo pipefail
unset CDPATH # cd prints a folder that it finds there
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# At 1 TFLOP/s and 1 TB/s: 100 MFLOP take 100 us, 40 MB take 40 us. The first run in the file does not count.
cat >"$folder/compute.csv" <<'CSV'
model,device,batch,layer,forward_ms,forward_flops,forward_bytes,backward_ms,backward_flops,backward_bytes
mlp,cpu,8,dense1,1,7e9,7e9,1,7e9,7e9
mlp,cpu,8,sum,1,7e9,7e9,1,7e9,7e9
mlp,cpu,8,step,1,7e9,7e9,,,
mlp,cuda,16,dense1,0.25,100000000,40000000,0.5,100000000,150000000
mlp,cuda,16,loss,0.01,,,,,
mlp,cuda,16,optimizer,,,,0.07,,50000000
mlp,cuda,16,sum,0.26,100000000,40000000,0.57,100000000,200000000
mlp,cuda,16,step,0.7,200000000,240000000,,,
CSV

fail()
{
    echo "test_roofline: $*" >&2
    cat "$folder/out" >&2
    exit 1
}

roofline() # OPTION...
{
    awk -v flops_per_s=1e12 -v bytes_per_s=1e12 "$@" -f "$root/experiments/gpu_check/roofline.awk" "$folder/compute.csv" \
        >"$folder/out" 2>&1
}

says() # PATTERN
{
    grep -qE -e "$1" "$folder/out" || fail "no line '$1' in:"
}

roofline -v kernels=10 -v gap_us=2 -v step_us=640
says '^# roofline: mlp, batch 16, at 1\.0 TFLOP/s and 1\.00 TB/s'
says '^ dense1 +100\.0 +40\.00 +100\.0f +250\.0 +100\.0 +150\.00 +150\.0b +500\.0$'
says '^ loss +- +- +- +10\.0 +- +- +- +-$'
says '^ optimizer .* 0\.0 +50\.00 +50\.0b +70\.0$'
says '^# least: forward 100\.0 us, backward and optimizer 200\.0 us; 10 kernels, 2\.0 us apart: 20\.0 us$'
says '^estimate 320\.0 us a step \(300\.0 in kernels\), 50000 images/s; measured 640\.0 us, 2\.00 x that, 2\.13 x the kernels. alone$'
(($(grep -c dense1 "$folder/out") == 1)) || fail "expected only the last run:"

roofline -v brief=1
says '^estimate 300\.0 us a step \(300\.0 in kernels\), 53333 images/s; not measured$'
(($(wc -l <"$folder/out") == 1)) || fail "brief: expected one line:"

! roofline -v flops_per_s=0 || fail "accepted a peak of 0:"
says 'takes a file of bench --layers'
sed -i '2,$d' "$folder/compute.csv"
! roofline || fail "accepted a file without a run:"
says 'no run in the file'
