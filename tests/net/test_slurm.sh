#!/usr/bin/env bash
# test_slurm.sh: psring on Slurm, started by srun and by experiments/train.sbatch. The cluster is four slurmd and a
# slurmctld on this machine, with a private folder, ports and settings. Exits 77 (skipped) without Slurm, or if srun
# has no PMIx.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
PATH=$PATH:/usr/sbin:/sbin
for tool in slurmctld slurmd srun sbatch scontrol scancel squeue; do
    command -v $tool >/dev/null || skip "needs $tool (Debian: slurm-wlm)"
done

# --- four machines and their controller ---------------------------------------------------------------

# free_ports COUNT: print the first of COUNT successive ports at which no process listens, below the ephemeral range.
free_ports()
{
    local first port busy
    for _ in {1..50}; do
        first=$((20000 + RANDOM % 12000)) busy=0
        for ((port = first; port < first + $1; port++)); do
            ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || busy=1
        done
        ((busy)) || { echo "$first" && return; }
    done
    return 1
}

slurm=$folder/slurm
mkdir -p "$slurm/state" "$slurm"/{spool,tmp}.n{0..3}
first=$(free_ports 5)
cat >"$slurm/slurm.conf" <<CONFIG
ClusterName=$name-$$
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$first
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/none
CredType=cred/none
AuthInfo=cred_expire=5
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool.%n
TmpFS=$slurm/tmp.%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0
KillWait=2
NodeName=n[0-3] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=[$((first + 1))-$((first + 4))] CPUs=1
PartitionName=all Nodes=n[0-3] Default=YES MaxTime=INFINITE State=UP
CONFIG
echo 'CgroupPlugin=cgroup/v1' >"$slurm/cgroup.conf"
unset "${!SLURM_@}" # set if this test itself runs in a Slurm job
export SLURM_CONF=$slurm/slurm.conf
[[ $(srun --mpi=list 2>&1) == *pmix* ]] || skip "needs srun --mpi=pmix"
# Over loopback, more ranks than cores. PSRING_SLURM_TEST marks every process of the cluster for end_cluster.
export OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
export SLURM_PMIX_FENCE=tree # as in train.sbatch
export PSRING_SLURM_TEST=$slurm

# end_cluster: end every process of the cluster, by its id.
end_cluster()
{
    local file
    timeout 20 scancel --user "$(id -un)" || true
    for _ in 1 2 3; do # the next pass finds processes that started meanwhile
        for file in /proc/[0-9]*/environ; do
            if tr '\0' '\n' <"$file" 2>/dev/null | grep -qxF "PSRING_SLURM_TEST=$slurm"; then
                file=${file#/proc/} file=${file%/environ}
                [[ $file == "$$" || $file == "$BASHPID" ]] || kill -KILL "$file" || true
            fi
        done
        sleep 0.1
    done
}
at_end end_cluster

slurmctld -D -c -f "$SLURM_CONF" >"$slurm/slurmctld.out" 2>&1 &
for node in n0 n1 n2 n3; do
    slurmd -D -N $node -f "$SLURM_CONF" >"$slurm/$node.out" 2>&1 &
done
all_idle() { [[ $(timeout 10 sinfo -h -t idle -o %D) == 4 ]]; }
within all_idle || fail "the cluster is not up: $(tail -n 3 "$slurm"/*.log)"

# --- srun -------------------------------------------------------------------------------------------------

# on_four COMMAND...: run psring with four ranks, one on each machine.
on_four()
{
    timeout --kill-after=5 120 srun -K --mpi=pmix -N 4 --ntasks-per-node=1 "$psring" "$@" >"$folder/log" 2>&1 ||
        fail "srun psring $*:"
}

on_four bench --backend ring -e 64k -n 5 --csv "$folder/bench.csv"
grep -q ', 4 workers,' "$folder/log" || fail "bench: not four workers:"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    $c["workers"] != 4 || $c["wrong"] != 0 { bad = 1 }
    END { exit bad || NR < 3 }' "$folder/bench.csv" || fail "bench: $(cat "$folder/bench.csv")"

# The paced step leaves time for the signals, and leaves the processors to other tests.
common=(--backend ring --model lenet --batch 10 --data "$data" --steps 120 --compute real:20)
train 4 "${common[@]}" # under mpirun, without interruption
whole=$weights
on_four train "${common[@]}"
grep -qx "weights sha256 $whole" "$folder/log" || fail "srun: expected the weights of mpirun, $whole:"

# A rank that fails ends all ranks.
code=0
timeout --kill-after=5 60 srun -K --mpi=pmix -N 4 --ntasks-per-node=1 "$psring" train --backend ring --data "$folder/none" \
    >"$folder/log" 2>&1 || code=$?
((code != 0 && code != 124 && code != 137)) || fail "no data: exit $code:"
grep -q "$folder/none" "$folder/log" || fail "no data: the error does not name the folder:"

# --- sbatch: stopped, requeued, continued -----------------------------------------------------------------

has_saved() { compgen -G "$folder/saved/*.checkpoint" >/dev/null; }
is_done() { [[ -z $(timeout 10 squeue -h -j "$job" -o %T 2>/dev/null) ]] || timeout 10 squeue -h -j "$job" -o %T | grep -qE 'COMPLETED|FAILED|CANCELLED|TIMEOUT'; }

# submit OPTION...: start experiments/train.sbatch on four machines as $job; its output goes to $folder/log.
submit()
{
    : >"$folder/log"
    rm -rf "$folder/saved"
    job=$(PSRING=$psring timeout 30 sbatch --parsable -N 4 -o "$folder/log" "$root/experiments/train.sbatch" \
        "${common[@]}" --checkpoint "$folder/saved" --checkpoint-steps 10 "$@")
}

for try in 1 2 3 4 5; do # again if the job ended before the signal came
    submit
    within has_saved || fail "sbatch: nothing is saved:"
    timeout 30 scancel -b -s USR1 "$job" || true
    within is_done || fail "sbatch: does not end: $(squeue):"
    grep -q '^stopped by SIGUSR1 after step' "$folder/log" && break
    ((try < 5)) || fail "sbatch: no 'stopped by SIGUSR1':"
done
grep -q 'there yet, starts from step 0' "$folder/log" || fail "sbatch: did not start from step 0:"
grep -q '^continues after step' "$folder/log" || fail "sbatch: was not continued:"
grep -qx "weights sha256 $whole" "$folder/log" || fail "sbatch, stopped and continued: expected the weights $whole:"
[[ $(timeout 10 scontrol show job "$job") == *JobState=COMPLETED*Restarts=1* ]] ||
    fail "sbatch: $(scontrol show job "$job")"

# A job whose training fails, or that is cancelled, is not requeued.
submit --lr 1e12 --optimizer sgd
within is_done || fail "a training that diverges does not end:"
[[ $(timeout 10 scontrol show job "$job") == *JobState=FAILED*Restarts=0* ]] ||
    fail "a training that fails: $(scontrol show job "$job")"
submit --steps 100000
within has_saved || fail "sbatch: nothing is saved:"
timeout 30 scancel "$job"
within is_done || fail "scancel: the job continues:"
[[ $(timeout 10 scontrol show job "$job") == *JobState=CANCELLED*Restarts=0* ]] ||
    fail "scancel: $(scontrol show job "$job")"
echo "slurm: by srun and by sbatch, stopped and continued, the weights of mpirun"
