#!/usr/bin/env bash
# test_auto_command.sh: psring bench and train with --backend auto print and use their choice, on all ranks alike, and
# refuse bad options.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
cd "$folder"

# Rows of a network of 20 MB/s and 0.1 ms a step: the ring with 2(W-1) steps, and as many servers as workers with two.
{
    echo backend,transport,network,workers,servers,placement,bytes,time_us_median,nominal_link_bytes_per_s
    for workers in 4 5 6 7 8; do
        for bytes in 4096 65536 1048576 4194304; do
            awk -v w="$workers" -v m="$bytes" 'BEGIN {
                link = 2 * (w - 1) / w * m / 20e6
                printf "ring,tcp,net,%d,0,none,%d,%.3f,25000000\n", w, m, 1e6 * (2 * (w - 1) * 1e-4 + link)
                printf "ps,tcp,net,%d,%d,dedicated,%d,%.3f,25000000\n", w, w, m, 1e6 * (2e-4 + link) }'
        done
    done
} >bench.csv
"$psring" predict --fit bench.csv --hold-out none --cost-model model.json >said || fail "no model: $(cat said)"

auto=(--backend auto --cost-model model.json --network net)
run() # RANKS COMMAND... [: -n RANKS COMMAND...]
{
    local starter=ranks.sh
    [[ " $* " != *' : '* ]] || starter=mpirun.sh # only mpirun.sh starts two commands
    "$lib/$starter" "$@" >out 2>err || fail "$*: $(cat out err)"
}

# Two sizes: each has a line, and a row with the choice.
run 4 "$psring" bench "${auto[@]}" --sizes 64,4194304 -n 2 -w 1 --probe off --csv rows.csv
(($(grep -c '^# auto: [0-9]* bytes: .* over tcp, predicted to take .*; based on 40 rows over net and tcp' out) == 2)) ||
    fail "two sizes: $(grep auto out)"
mapfile -t said < <(sed -n 's/^# auto: \([0-9]*\) bytes: \([a-z]*\).* over \([a-z]*\), predicted.*/\2,\3,\1/p' out)
mapfile -t rows < <(awk -F, 'NR > 1 { print $1 "," $2 "," $8 }' rows.csv)
[[ ${said[*]} == "${rows[*]}" && ${#rows[@]} == 2 ]] || fail "chosen: ${said[*]}; measured: ${rows[*]}"

# The error of such choices, if rows were held out.
(($(grep -c '^# auto: .*no held-out cases' out) == 1)) || fail "nothing was held out: $(grep auto out)"
sed 's/"cases":[^,]*/"cases": 12/; s/"slower_mean":[^,]*/"slower_mean": 0.0131/; s/"slower_worst":[^,]*/"slower_worst": 0.2/' model.json >told.json
run 2 "$psring" bench --backend auto --cost-model told.json --network net --sizes 64,4096 -n 2 -w 1 --probe off
(($(grep -c '^# auto: in 12 cases held out of the fit its choices were 1.3% slower .* at worst 20.0%$' out) == 1)) ||
    fail "12 cases were held out: $(grep auto out)"

# Ranks reserved for servers run servers.
run 4 "$psring" bench "${auto[@]}" --servers 2 --placement dedicated --sizes 4096 -n 2 -w 1 --probe off --csv servers.csv
[[ $(awk -F, 'NR > 1 { print $1, $2, $5, $6, $7 }' servers.csv) == "ps tcp 2 2 dedicated" ]] || fail "servers: $(tail -n 1 servers.csv)"
for servers in '' '--servers 1'; do # the default is one
    # shellcheck disable=SC2086  # words of options
    run 4 "$psring" bench "${auto[@]}" $servers --placement switch --sizes 4096 -n 2 -w 1 --probe off --csv switch.csv
done
[[ $(awk -F, 'NR > 1 { print $1, $2, $5, $6, $7 }' switch.csv | uniq) == "ps tcp 3 1 switch" ]] || fail "in the switch: $(cat switch.csv)"

# Only rank 0 needs the file.
run 1 "$psring" bench "${auto[@]}" --sizes 4096 -n 2 -w 1 --probe off : \
    -n 2 "$psring" bench --backend auto --cost-model nowhere.json --network net --sizes 4096 -n 2 -w 1 --probe off

# Training: the choice includes the bucket size if the computation time is known.
run 4 "$psring" train "${auto[@]}" --compute paced:20 --steps 3 --metrics train.csv
grep -q '^auto: .* over tcp in .*, predicted to take .* ms a step \[' out || fail "paced: $(cat out)"
chosen=$(sed -n 's/^auto: \([a-z]*\).* over \([a-z]*\) in .*, predicted.*/\1,\2/p' out)
[[ $(tail -n 1 train.csv) == "$chosen,"* ]] || fail "training: said $chosen, is $(tail -n 1 train.csv)"
mkdir data
"$make_dataset" data 64 32 >/dev/null
run 2 "$psring" train "${auto[@]}" --data data --steps 2 --model mlp
grep -q '^auto: .* ms a step (communication only) \[.*; outside of what was fitted: below the fewest workers fitted (4)' out || fail "two workers: $(cat out)"

# Without MPI no choice uses it, even if it is the only fitted transport.
sed 's/"tcp"/"mpi"/' model.json >mpi.json
ranks 3 bench --backend auto --cost-model mpi.json --network net --sizes 4096 -n 2 -w 1 --probe off || fail "by rendezvous: $(cat rank.0)"
grep -q '^# auto: 4096 bytes: .* over tcp, .* over net and mpi, the nearest model for tcp, which has no fitted rows' rank.0 ||
    fail "by rendezvous: $(grep auto rank.0)"

"$psring" bench "${auto[@]}" --sizes 64 -n 2 >out || fail "one rank: $(cat out)"
grep -q '^# auto: one worker, which has nothing to average' out || fail "one rank: $(cat out)"

# refused WORDS OPTION...: all ranks exit with 2, and one prints the reason.
refused()
{
    local status=0 words=$1
    shift
    "$lib/mpirun.sh" 2 "$psring" bench "$@" --sizes 64 >out 2>err || status=$?
    ((status == 2)) || fail "$*: ended with $status: $(cat out err)"
    [[ $(grep -c '^psring' err) == 1 && $(<err) == *"$words"* ]] || fail "$*: expected '$words', said $(cat err)"
}
refused 'needs a fitted model' --backend auto
refused 'only --backend auto uses it' --backend ring --cost-model model.json
refused 'No such file' --backend auto --cost-model nowhere.json --network net
refused 'expected a model.json' --backend auto --cost-model bench.csv --network net
refused 'no transport was fitted for the network loopback, only for net' --backend auto --cost-model model.json
refused 'leaves no worker' "${auto[@]}" --servers 2
