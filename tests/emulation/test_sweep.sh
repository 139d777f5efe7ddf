#!/usr/bin/env bash
# test_sweep.sh: run_scaling.sh finds GPUs, measures NCCL between them next to the other backends, and reports it in a
# table. It runs with two emulated GPUs and a stand-in for NCCL.
set -euo pipefail
test_images=100
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"

# The user's own settings of NCCL's log would hide the algorithm: run_scaling.sh must override them.
NCCL_DEBUG=WARN NCCL_DEBUG_SUBSYS=INIT NCCL_DEBUG_FILE=$folder/nccl.log \
    EMULATED_GPUS=0000:3b:00.0,0000:5e:00.0 "$root/experiments/run_scaling.sh" --quick --hosts 1 --sizes 65536 \
    --data "$data" --steps 2 --psring "$psring" --out "$folder/out" >"$folder/log" 2>&1 || fail "two GPUs:"
awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["device"] == "cuda" && $at["workers"] == 2 && $at["wrong"] == 0 && $at["network"] != "time-slicing" {
        rows[$at["backend"] " " ($at["backend"] == "nccl" ? $at["nccl_algorithm"] : $at["placement"])]++
    }
    END {
        split("nccl ring/simple,nccl tree/simple,ring none,ps colocated,ps dedicated,mpi none", expected, ",")
        for (i in expected)
            if (rows[expected[i]] != 1) {
                print "rows of " expected[i] ": " rows[expected[i]] + 0
                bad = 1
            }
        exit bad
    }' "$folder/out/bench.csv" || fail "bench.csv: $(cut -d, -f1-12 "$folder/out/bench.csv")"
grep -qE '^ +2 +65.5 kB( +[0-9.]+ (us|ms)[*+]?){6} +-$' "$folder/out/summary.txt" || fail "the summary has no table: $(cat "$folder/out/summary.txt")"
for backend in nccl ring 'W in workers'; do
    grep -qE "^  $backend +2 GPUs: [0-9.]+% after" "$folder/out/summary.txt" ||
        fail "no training by $backend: $(cat "$folder/out/summary.txt")"
done
# Rows of nccl without an algorithm are in neither of its two columns.
mkdir "$folder/unknown"
sed 's/ring\/simple//; s/tree\/simple//' "$folder/out/bench.csv" >"$folder/unknown/bench.csv"
cp "$folder/out/train.csv" "$folder/unknown"
"$psring" report --text "$folder/unknown" >"$folder/unknown.txt" || fail "a summary without algorithms:"
grep -qE '^ +2 +65.5 kB +- +-( +[0-9.]+ (us|ms)[*+]?){4} +-$' "$folder/unknown.txt" || fail "not known: $(cat "$folder/unknown.txt")"
grep -q '^  Not shown: 2 of nccl with an unknown algorithm' "$folder/unknown.txt" || fail "not known: $(cat "$folder/unknown.txt")"
# One GPU: two ranks share it, and only sums are measured.
EMULATED_GPUS=0000:3b:00.0 "$root/experiments/run_scaling.sh" --quick --hosts 1 --sizes 65536 --no-train \
    --psring "$psring" --out "$folder/one" >"$folder/log" 2>&1 || fail "one GPU:"
[[ $(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["device"] == "cuda" { print $at["network"], $at["wrong"], $at["workers"] }' "$folder/one/bench.csv" | sort | uniq -c |
    xargs) == '5 time-slicing 0 2' ]] || fail "one GPU: $(cut -d, -f1-12 "$folder/one/bench.csv")"
grep -q '^  [0-9]* elements were averaged .* by nccl (ring/simple), nccl (tree/simple), ring, ps, mpi\.$' "$folder/one/summary.txt" ||
    fail "one GPU: $(cat "$folder/one/summary.txt")"
! grep -q 'Between GPUs' "$folder/one/summary.txt" || fail "one GPU: its times are shown: $(cat "$folder/one/summary.txt")"
# No row of a GPU is in the tables of hosts.
grep -qE '^  (1 server|ring) +1 worker: ' "$folder/out/summary.txt" || fail "no training on CPUs: $(cat "$folder/out/summary.txt")"
! grep -q 'INCOMPLETE' "$folder/out/summary.txt" || fail "incomplete:"

# shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/gpus.sh
. "$root/experiments/sweep/gpus.sh"

# counted GPUS MACHINES MODE EXPECTED: compare the numbers of ranks that gpu_counts chooses.
counted()
{
    local gpus=$1 gpu_machines=$2 mode=$3 found
    found=$(gpu_counts | paste -sd' ')
    [[ $found == "$4" ]] || fail "$gpus GPUs, $gpu_machines machines, $mode: '$found', expected '$4'"
}
counted 0 1 full ''
counted 1 1 full ''
counted 2 1 default 2
counted 6 1 default '2 4 6'
counted 8 2 default '2 4 8 16'
counted 8 2 quick 16
counted 1 4 default 4
gpus=1 gpu_machines=1 sizes=(4) train=yes mode=full
[[ $(gpu_points | grep -cv '^gpu-shared [a-z0-9-]* 2 4$') == 0 ]] || fail "one GPU: $(gpu_points)"
[[ $(gpu_points | wc -l) == 5 ]] || fail "one GPU: $(gpu_points)"
gpus=2 gpu_machines=2 sizes=(4 8) train=''
[[ $(gpu_points | grep -c '^gpu hierarchical 4 4,8$') == 1 ]] || fail "two machines: $(gpu_points)"
# Machines by name, by a hostfile and by Slurm; then the GPUs of all machines.
# shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/machines.sh
. "$root/experiments/sweep/machines.sh"
say()
{
    echo "$*"
}
scontrol() # a stand-in for `scontrol show hostnames LIST`
{
    [[ $1 == show && $2 == hostnames && $3 == 'n[0-1]' ]] && printf 'n0\nn1\n'
}
printf '# two\na slots=8 # GPUs\n\n b:4\n' >"$folder/hosts"
[[ $(names_of a,b) == a,b && $(names_of '') == '' && $(names_of 1,2) == 1,2 ]] || fail "names_of changed a list of names"
found=$(names_of "@$folder/hosts")
[[ $found == a,b ]] || fail "a hostfile: '$found'"
found=$(SLURM_JOB_NODELIST='n[0-1]' names_of slurm)
[[ $found == n0,n1 ]] || fail "slurm: '$found'"
found=$(SLURM_JOB_NODELIST='' names_of slurm) && fail "slurm without a job: '$found'"
[[ $found == *salloc* ]] || fail "slurm without a job prints '$found'"
found=$(names_of "@$folder/none") && fail "no hostfile: '$found'"
for reason in 's/nccl/none/' 's/cuda   ready/cuda   no driver/' 's/gpu 0/cpu 0/'; do
    found=$(printf '  [X] nccl  x\n  [X] cuda   ready\n      gpu 0   a\n' | sed "$reason" | count_gpus)
    [[ $found == 0 ]] || fail "$reason: $found GPUs"
done
echo "sweep: five backends on two GPUs, trained by three"
