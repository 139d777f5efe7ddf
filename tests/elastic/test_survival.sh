#!/usr/bin/env bash
# test_survival.sh [TRIALS [PROGRAM]]: psring train --elastic on four hosts of a virtual cluster. A rank is killed, stopped
# or cut off in the middle of the training. The others end it, with the bits of a run that the rank left after the same
# step. A stopped rank may return after their end; it must not end the training, too. The program psring_shrink trains
# with libpsring. Its ranks check that each step has the exact sum of its members.
#
# Without TRIALS: one trial of each kind with ring and rhd. With TRIALS: that many trials. Kind, rank and moment are
# random. PROGRAM is train or psring_shrink; by default they take turns. Prints a row for each trial: program, backend,
# fault, rank, step after which the others continued, seconds from the fault to their agreement. With TRIALS the script
# fails at the end if they took longer than the time-out + 2 s in any trial. A busy machine can cause that. Exits 77
# (skipped) without namespaces.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
needs_namespaces
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
trials=${1:-0} TIMEOUT_S=2 late=0
read -ra programs <<<"${2:-train psring_shrink}"
cluster_up 4 1gbit
subnet=$("$vcluster" exec --name "$cluster" switch -- printenv PSRING_BIND_SUBNET)
common=(--elastic --model mlp --batch 8 --steps 120 --data "$data" --timeout "$TIMEOUT_S")
declare -A references=()
pids=()

rows()
{
    tail -n 6 "$folder"/rank.*
}

start() # PROGRAM BACKEND PORT
{
    local rank command
    rm -f "$folder"/rank.*
    pids=()
    for rank in 0 1 2 3; do
        : >"$folder/rank.$rank"
        command=("$psring" train --backend "$2" --rendezvous "tcp://${subnet%0/24}1:$3" --rank "$rank" --world-size 4
            --compute real:25 --log-steps 10 "${common[@]}")
        [[ $1 == train ]] || command=(env "PSRING_TEST_RANK=$rank tcp://${subnet%0/24}1:$3 $2"
            "$(dirname "$psring")/tests/psring_shrink" --filter shrink/a_rank_on_a_host)
        timeout --kill-after=5 120 "$vcluster" exec --name "$cluster" "host$rank" -- "${command[@]}" \
            >"$folder/rank.$rank" 2>&1 &
        pids+=($!)
    done
    within grep -qE '^(epoch|step 10$)' "$folder/rank.0" || fail "no step: $(rows)"
}

psring_of() # RANK
{
    local pid
    for pid in $(ip netns pids "psring-$cluster-$1"); do
        [[ $(<"/proc/$pid/comm") != psring* ]] || echo "$pid"
    done | tail -n 1 # Criterion's program has the rank as a child
}

inflict() # FAULT RANK
{
    case $1 in
    killed) kill -KILL "$(psring_of "$2")" ;;
    stopped | returned) kill -STOP "$(psring_of "$2")" ;;
    cut) ip netns exec "psring-$cluster-$2" ip link set eth0 down ;;
    esac
}

continued()
{
    grep -q 'workers continue after step' "$folder"/rank.*
}

# names_lost LOST RANK: this rank reports once that the lost one is lost, and no error or loss of another rank.
names_lost()
{
    local end=''
    (($2 < $1)) || end=", this one as worker $(($2 - 1))"
    [[ $(grep -c ' is lost or has left' "$folder/rank.$2") == 1 ]] && ! grep 'error:' "$folder/rank.$2" &&
        grep -q 'failed to average: looks for those that are left' "$folder/rank.$2" &&
        grep -Eq "worker $1 on [^ ]+ is lost or has left: 3 workers continue after step [0-9]+$end\$" "$folder/rank.$2"
}

# reference BACKEND RANK STEP: the weights of a run that the rank leaves after this step: $expected.
reference()
{
    local rank leaves bad=0 others=()
    expected=${references[$1 $2 $3]:-}
    [[ -z $expected ]] || return 0
    for rank in 0 1 2 3; do
        leaves=()
        ((rank != $2)) || leaves=(--leave-after "$3")
        timeout --kill-after=5 120 "$vcluster" exec --name "$cluster" "host$rank" -- "$psring" train --backend "$1" \
            --rendezvous "tcp://${subnet%0/24}1:29500" --rank "$rank" --world-size 4 "${common[@]}" "${leaves[@]}" \
            >"$folder/reference.$rank" 2>&1 &
        others+=($!)
    done
    for rank in 0 1 2 3; do
        wait "${others[rank]}" || bad=1
    done
    ((bad == 0)) || fail "the reference: $(tail -n 5 "$folder"/reference.*)"
    grep -q "left after step $3;" "$folder/reference.$2" || fail "the reference: $(tail -n 5 "$folder"/reference.*)"
    expected=$(cat "$folder"/reference.* | sed -n 's/^weights sha256 //p' | tail -n 1)
    references[$1 $2 $3]=$expected
}

trial() # PROGRAM BACKEND FAULT RANK
{
    local rank step code begun ended fault=$3 lost=$4
    start "$1" "$2" "$((29600 + RANDOM % 1000))"
    pause "0.$((RANDOM % 4))"
    begun=${EPOCHREALTIME/./}
    inflict "$fault" "$lost"
    within continued || fail "$*: the others do not continue: $(rows)"
    ended=${EPOCHREALTIME/./}
    for rank in 0 1 2 3; do
        code=0
        ((rank != lost)) || continue
        wait "${pids[rank]}" || code=$?
        ((code == 0)) || fail "$*: rank $rank ended with $code: $(rows)"
        [[ $1 != train ]] || names_lost "$lost" "$rank" ||
            fail "$*: rank $rank does not name rank $lost alone: $(rows)"
    done
    [[ $fault != stopped ]] || kill -KILL "$(psring_of "$lost")"
    [[ $fault != returned ]] || kill -CONT "$(psring_of "$lost")"
    code=0
    wait "${pids[lost]}" 2>/dev/null || code=$? # one that is cut off gives up some time later
    [[ $fault != cut ]] || ip netns exec "psring-$cluster-$lost" ip link set eth0 up
    ((code != 0)) || fail "$*: a lost rank ended with 0: $(rows)"
    [[ $fault == killed || $fault == stopped ]] ||
        grep -q 'found too few ranks\|have continued without' "$folder/rank.$lost" ||
        fail "$*: the lost rank does not know it: $(rows)"
    step=$(cat "$folder"/rank.* | sed -nE 's/.*workers continue after step ([0-9]+).*/\1/p' | sort -u | head -n 1)
    if [[ $1 == train ]]; then
        [[ $fault != cut ]] || (($(grep -c 'error:' "$folder/rank.$lost") > 1)) ||
            fail "$*: the lost rank does not print how its world failed: $(rows)"
        # A rank may be lost after the last step, and the others then test and report again.
        found=$(cat "$folder"/rank.* | sed -n 's/^weights sha256 //p' | tail -n 1)
        reference "$2" "$lost" "$step"
        [[ $found == "$expected" ]] || fail "$*: weights $found, expected $expected: $(rows)"
    fi
    ((ended - begun <= (TIMEOUT_S + 2) * 1000000)) || late=$((late + 1))
    printf '%s %s %s %d %d %d.%03d\n' "$@" "$step" $(((ended - begun) / 1000000)) $(((ended - begun) / 1000 % 1000))
}

faults=(killed stopped returned cut) backends=(ring rhd)
echo "program backend fault rank step seconds"
if ((trials == 0)); then
    trial train ring killed 0
    trial train ring returned 2
    trial train ring cut 0
    trial train rhd killed 3
    trial train rhd stopped 0
    trial train rhd cut 1
    trial psring_shrink ring cut 2
fi
for ((number = 0; number < trials; number++)); do
    trial "${programs[number % ${#programs[@]}]}" "${backends[RANDOM % 2]}" "${faults[RANDOM % 4]}" $((RANDOM % 4))
done
((trials == 0 || late == 0)) || fail "in $late of $trials trials the others continued after more than $((TIMEOUT_S + 2)) s"
echo "survival: the others continue without a rank, with the bits of a run that it left"
