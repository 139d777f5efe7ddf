#!/usr/bin/env bash
# test_nccl_faults.sh [--short]: ranks average with NCCL's stand-in (nccl.c), and one rank fails. The other ranks report
# it once and end with a failure. --short: fewer allocations fail.
set -euo pipefail
test_images=100
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
options=(train --backend nccl --device cuda --model lenet --batch 8 --steps 20 --bucket-mb 0.05 --data "$data"
    --timeout 3 --startup-timeout 4)
export EMULATED_GPUS=0000:3b:00.0,0000:5e:00.0,0000:86:00.0

# fails WHAT RANKS FAULT WORDS [OPTION...]: at least one rank prints the words, no rank prints them twice, and no rank
# has a result. The first rank that fails may end the others before they print the words.
fails()
{
    local what=$1 world=$2 fault=$3 words=$4 start=$SECONDS rank said=0
    shift 4
    rm -f "$folder"/rank.*
    ! EMULATED_NCCL_FAULT=$fault ranks "$world" "${options[@]}" "$@" || fail "$what: all ranks ended with 0: $(cat "$folder"/rank.*)"
    for ((rank = 0; rank < world; rank++)); do
        ! grep -q '^weights sha256' "$folder/rank.$rank" || fail "$what: rank $rank has a result: $(cat "$folder/rank.$rank")"
        case $(grep -c -e "error: .*$words" "$folder/rank.$rank") in
        0) ;;
        1) said=$((said + 1)) ;;
        *) fail "$what: rank $rank reports it more than once: $(cat "$folder/rank.$rank")" ;;
        esac
    done
    ((said > 0)) || fail "$what: no rank prints '$words': $(head -n 20 "$folder"/rank.*)"
    echo "$what: $((SECONDS - start)) s, reported by $said of $world: $(cat "$folder"/rank.* | grep -m1 -e "$words" | cut -c1-110)"
}

EMULATED_NCCL_FAULT='' ranks 3 "${options[@]}" || fail "without a failure: $(cat "$folder"/rank.*)"
[[ $(sed -n 's/^weights sha256 //p' "$folder/rank.0") ]] || fail "without a failure: no weights: $(cat "$folder/rank.0")"
echo "three ranks: $(grep '^weights' "$folder/rank.0")"
EMULATED_NCCL_FAULT='' ranks 2 "${options[@]}" || fail "two ranks: $(cat "$folder"/rank.*)"
two=$(grep '^weights sha256' "$folder/rank.0") || fail "two ranks: no weights: $(cat "$folder/rank.0")"
EMULATED_LATE=3 ranks 2 "${options[@]}" || fail "late events: $(cat "$folder"/rank.*)"
grep -qxF "$two" "$folder/rank.0" || fail "late events: other weights than '$two': $(cat "$folder/rank.0")"

fails "a peer that never joins" 3 join:1:0 "joining the other GPUs: no GPU's answer within 3 s"
fails "a peer that stalls" 3 stall:2:9 "an all-reduce: no GPU's answer within 3 s"
fails "an error that comes later" 2 error:1:9 '\(an all-reduce\|ncclAllReduce\): NCCL: an error of the stand-in'
fails "what NCCL refuses" 2 refuse:1:9 'ncclAllReduce: NCCL: invalid usage'
fails "a peer that dies" 3 die:2:9 'rank 2 on .* has ended in the middle of the run'
EMULATED_GPUS=0000:3b:00.0 NCCL_HOSTID=one fails "two ranks on one GPU" 2 '' 'joining the other GPUs: NCCL: invalid usage' --share-gpu
EMULATED_GPUS=0000:3b:00.0 ranks 2 "${options[@]}" --share-gpu || fail "each rank on a separate host: $(cat "$folder"/rank.*)"

# One rank's CUDA runs out of memory at each allocation in turn (--short: at some): that rank reports it, and the others
# do not wait.
cat >"$folder/one" <<'END'
#!/usr/bin/env bash
[[ " $* " != *" --rank 1 "* ]] || export EMULATED_FAIL=$FAIL_ONE
exec "$PSRING" "$@"
END
chmod +x "$folder/one"
export PSRING=$psring FAIL_ONE EMULATED_REACHED=$folder/reached
psring=$folder/one
# shellcheck disable=SC2154 # lib.sh sets short
for ((at = 1; at < 500; at += short ? 13 : 1)); do
    rm -f "$folder"/rank.* "$EMULATED_REACHED"
    FAIL_ONE=alloc:$at
    ! ranks 2 "${options[@]}" || break
    (($(grep -c 'error: .*cudaErrorMemoryAllocation' "$folder/rank.1") == 1)) || fail "allocation $at: $(cat "$folder/rank.1")"
    ! grep -q '^weights sha256' "$folder"/rank.* || fail "allocation $at: a result despite the failure: $(cat "$folder"/rank.*)"
done
[[ ! -e $EMULATED_REACHED ]] || fail "allocation $at: failed, but all ranks ended with 0: $(cat "$folder"/rank.*)"
((at > 40)) || fail "only $at allocations of one rank have failed: $(cat "$folder"/rank.*)"
grep -q '^weights sha256' "$folder/rank.0" || fail "allocation $at: neither a failure nor a result: $(cat "$folder"/rank.*)"
echo "one rank without memory: at allocations up to $at"
