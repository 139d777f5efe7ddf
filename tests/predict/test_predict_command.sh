#!/usr/bin/env bash
# test_predict_command.sh: psring predict fits and predicts rows of psring bench, and refuses bad options.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
cd "$folder"

# Rows of a network of 20 MB/s and 0.1 ms a step, to 9 digits: the ring with 2(W-1) a + 2(W-1)/W M/B, from four workers
# on.
rows()
{
    echo backend,transport,network,workers,servers,placement,bytes,time_us_median,nominal_link_bytes_per_s
    local workers bytes
    for workers in 4 5 6 7 8 9; do
        for bytes in 262144 1048576 2097152 4194304; do
            awk -v w="$workers" -v m="$bytes" 'BEGIN {
                printf "ring,tcp,net,%d,0,none,%d,%.3f,25000000\n", w, m, 1e6 * (2 * (w - 1) * 1e-4 + 2 * (w - 1) / w * m / 20e6) }'
        done
    done
}
rows >bench.csv

"$psring" predict --fit bench.csv --cost-model model.json --csv predict.csv >said
grep -q '^tcp over net: ' said || fail "no model of tcp over net: $(cat said)"
grep -q '^held out: [0-9]* rows, error 0.0' said || fail "exact rows are not predicted: $(grep '^held' said)"
[[ $(head -n 1 predict.csv) == backend,transport,mpi_algorithm,network,* ]] || fail "predict.csv: $(head -n 1 predict.csv)"
(($(wc -l <predict.csv) == 25)) || fail "predict.csv has $(wc -l <predict.csv) lines, not 25"
grep -q '"psring-model-2"' model.json || fail "model.json has no format"

# Statements name their rows. Below six they are no verdict.
"$psring" predict --fit bench.csv --hold-out workers=9 --map few_map.csv >few
grep -q '^held out: 4 rows, no verdict (fewer than 6), error ' few || fail "few rows: $(grep '^held' few)"
grep -q '^fitted: 20 rows, error ' few || fail "enough rows: $(grep '^fitted' few)"
grep -q '^  rows fitted: tcp 20$' few || fail "the rows of the map: $(tail -n 3 few)"

# A network of which too little is known has no map, in front of another one either.
rows | sed -n '1p;s/,net,/,other,/;2,6p' >little.csv
"$psring" predict --fit little.csv,bench.csv --map two_maps.csv >two
grep -q '^No winner map of other: no transport has 6 fitted rows$' two || fail "no reason: $(cat two)"
! grep '^Winner map of other' two || fail "a map without a model"
! cut -d, -f1 two_maps.csv | grep -qx other || fail "cells without a model"
grep -q '^Winner map of net,' two || fail "no map: $(cat two)"

# The rate of the links may be given with the later rows only.
rows | sed '2,$s/25000000$/0/; s/,tcp,/,zmq,/' >unrated.csv
"$psring" predict --fit unrated.csv,bench.csv --map rated_map.csv >rated
grep -q '^Winner map of net,' rated || fail "no map without the first rate: $(cat rated)"

# A folder is the same as the file in it.
mkdir folder
cp bench.csv folder
"$psring" predict --fit folder >from_folder
"$psring" predict --fit bench.csv | cmp - from_folder || fail "--fit folder and --fit bench.csv print different results"
rm folder/bench.csv
status=0
"$psring" predict --fit folder >out 2>err || status=$?
[[ $status == 1 && $(<err) == *'folder/bench.csv: cannot be read'* ]] || fail "a folder without rows: ended with $status, said $(cat err)"

# The cost of choosing by the model is 0 if zmq takes 1.2 times as long as tcp at every size.
grep -q '^choice, held out: no size at which several ways were measured' said || fail "a choice of one: $(grep '^choice' said)"
rows | sed 1d | sed 's/,tcp,/,zmq,/' | awk -F, -v OFS=, '{ $8 *= 1.2 } 1' | cat bench.csv - >two.csv
"$psring" predict --fit two.csv >said
grep -q '^choice, held out: [0-9]* cases, 0.00% slower than the fastest measured (geometric mean), worst 0.0%; ' said ||
    fail "tcp is not chosen: $(grep '^choice' said)"

# Rows that processors limited are scored separately. Here they take 1.25 times the time of the links.
rows | awk -F, -v OFS=, 'NR == 1 { print $0, "cpu_busy"; next } { busy = $4 == 5; $8 *= busy ? 1.25 : 1; print $0, busy ? 0.9 : 0.5 }' >busy.csv
"$psring" predict --fit busy.csv --hold-out workers=5,workers=6 >said
grep -q '^held out, CPUs busy up to 85%: 4 rows, no verdict (fewer than 6), error 0.0' said || fail "rows that links limited: $(grep '^held' said)"
grep -q '^held out, CPUs busier than that: 4 rows, no verdict (fewer than 6), error 20.0' said || fail "rows that processors limited: $(grep '^held' said)"

# Runs of a point are one row. Three runs take 0.9, 1 and 1.2 times as long; the middle one counts.
rows | awk -F, -v OFS=, 'NR == 1 { print; next } { t = $8; $8 = 0.9 * t; print; $8 = 1.2 * t; print; $8 = t; print }' >runs.csv
"$psring" predict --fit runs.csv --csv joined.csv >said
grep -q '^of several runs: 24 rows, medians of 72 runs; runs of a row differ by 15.3%' said || fail "runs: $(grep '^of several' said)"
grep -q '^held out: [0-9]* rows, error 0.0' said || fail "the middle run is not predicted: $(grep '^held' said)"
(($(wc -l <joined.csv) == 25)) || fail "predict.csv of runs has $(wc -l <joined.csv) lines, not 25"

# Rows whose ranks started apart are not fitted.
rows | awk -F, 'NR == 1 { print $0 ",skew_ms"; next } { print $0 ",0"; sub(/,tcp,/, ",zmq,"); print $0 ",5" }' >skewed.csv
"$psring" predict --fit skewed.csv >said
grep -q '^not used: 24 rows: its ranks started at different times$' said || fail "rows with a skew: $(grep '^not used' said)"

# A forecast from the file: 16 workers, 2 * 15 * 0.1 ms + 2 * 15/16 * 2^23 / 20 MB/s = 789.4 ms.
"$psring" predict --cost-model model.json --workers 16 --sizes 8388608 >said
awk '$1 == 8388608 && $2 == "ring" { found = 1; off = $3 / 789.4 - 1; exit !(off < 0.002 && off > -0.002) } END { if (!found) exit 1 }' said ||
    fail "the ring of 16 workers: $(grep ring said)"
grep -q 'outside: 1.78 times the most workers fitted (9), 2 times the most bytes' said || fail "no words about the case outside the fit"
"$psring" predict --cost-model model.json --workers 16 --rate 2gbit --sizes 8388608 >fast
awk 'FNR == NR && $2 == "ring" && !slow { slow = $3 } FNR != NR && $2 == "ring" && !fast { fast = $3 } END { exit !(fast < slow / 8) }' said fast ||
    fail "a link ten times as fast: $(grep -m 1 ring said) $(grep -m 1 ring fast)"

# In racks of four at 4:1 an uplink is as fast as a link, and carries what one rank of a ring sends. At 8:1 it is half
# as fast.
"$psring" predict --cost-model model.json --workers 16 --racks 4:8 --sizes 8388608 >racks
awk '$1 == 8388608 && $2 == "ring" { found = 1; off = $3 / 1575.9 - 1; exit !(off < 0.002 && off > -0.002) } END { if (!found) exit 1 }' racks ||
    fail "the ring of 16 workers in racks at 8:1: $(grep ring racks)"

# The map of 3 wirings (10, 6 and 5 numbers of workers), 4 round trips, 10 sizes and 3 sets of machines. With the longest
# vector the ring of 4 needs 1.5 * 2^28 / 20 MB/s, and servers on 4 further machines two thirds of that.
echo old >map.csv
"$psring" predict --cost-model model.json --map map.csv >said
(($(wc -l <map.csv) == 1 + (10 + 6 + 5) * 4 * 10 * 3)) || fail "the map has $(wc -l <map.csv) lines"
awk -F, '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    $at["way"] == "" { empty++ }
    $at["predicted_us"] > 1.03 * $at["ring_us"] { slower++ }
    $at["wiring"] != "flat" || $at["added_rtt_ms"] > 0 || $at["bytes"] != 268435456 || $at["workers"] != 4 { next }
    $at["machines"] == "workers alone" { alone = $at["way"]; off = $at["predicted_us"] / 20132659 - 1 }
    $at["machines"] == "as many spare machines" { spare = $at["way"] }
    $at["machines"] == "a server in the switch" { in_switch = $at["way"] }
    END { exit !(!empty && !slower && alone == "ring" && off < 0.002 && off > -0.002 && spare == "ps dedicated 4" && in_switch == "ps switch 1") }' map.csv ||
    fail "the map's cells: $(grep 'flat,.*,0,4,268435456' map.csv)"
grep -q '^Winner map of net, .* cells$' said || fail "no words about the map: $(cat said)"

# Paced steps with one bucket of 4.8 MB: 100 ms, then the whole ring of 4, 0.6 + 1.5 * 4799528 / 20e3 = 360.6 ms.
{
    echo backend,transport,network,compute,workers,servers,placement,sync,model,step_ms_median,bucket_mb
    echo ring,tcp,net,paced:100,4,0,none,bsp,keras-cnn,460.6,0
    echo ring,tcp,net,real,4,0,none,bsp,keras-cnn,460.6,0
} >train.csv
"$psring" predict --cost-model model.json --train train.csv >said
grep -q '^steps: 1 rows, no verdict (fewer than 6), error 0.[01].*; *1 not used\|^steps: 1 rows, no verdict (fewer than 6), error 0.[01].* 1 not used' said || fail "the step: $(cat said)"
# Three runs of the step, one shorter and one longer, are one row.
{
    cat train.csv
    echo ring,tcp,net,paced:100,4,0,none,bsp,keras-cnn,430.1,0
    echo ring,tcp,net,paced:100,4,0,none,bsp,keras-cnn,790.1,0
} >three.csv
"$psring" predict --cost-model model.json --train three.csv >said
grep -q '^steps: 1 rows, medians of 3, no verdict (fewer than 6), error 0.[01].* 1 not used' said || fail "three runs of a step: $(sed -n '/^Steps/,$p' said)"
# A step of the tree takes as long as its forecast.
"$psring" predict --cost-model model.json --workers 4 --sizes 4799528 >said
{
    head -n 1 train.csv
    awk '$1 == 4799528 && $2 == "tree" { printf "tree,tcp,net,paced:100,4,0,none,bsp,keras-cnn,%s,0\n", $3 + 100 }' said
} >tree.csv
"$psring" predict --cost-model model.json --train tree.csv >said
grep -q '^steps: 1 rows, no verdict (fewer than 6), error 0.[01]' said || fail "a step of the tree: $(cat tree.csv) $(sed -n '/^Steps/,$p' said)"
# A step whose gradients were in a GPU's memory is no step of this model.
awk '{ print $0 (NR == 1 ? ",device" : ",cuda") }' train.csv >device.csv
"$psring" predict --cost-model model.json --train device.csv >said
grep -q '^steps: no row with several workers and a fitted model; 2 not used' said || fail "a step on GPUs: $(sed -n '/^Steps/,$p' said)"
# A virtual cluster of half the rate, without a fit: 0.6 + 1.5 * 4799528 / 10e3 = 720.5 ms plus 100.
sed 's/,net,/,vcluster:200mbit,/' bench.csv >vcluster.csv
{
    echo "$(head -n 1 train.csv),nominal_link_bytes_per_s"
    echo ring,tcp,vcluster:100mbit,paced:100,4,0,none,bsp,keras-cnn,820.5,0,12500000
    echo ring,tcp,vcluster:100mbit,paced:100,4,0,none,bsp,keras-cnn,820.5,0,
    echo ring,tcp,vcluster:100mbit/racks,paced:100,4,0,none,bsp,keras-cnn,820.5,0,12500000
    echo ring,tcp,vcluster:100mbit+50ms,paced:100,4,0,none,bsp,keras-cnn,820.5,0,12500000
} >half.csv
"$psring" predict --fit vcluster.csv --train half.csv >said
grep -q '^steps: 1 rows, no verdict (fewer than 6), error 0.[01].* 3 not used' said || fail "a step at half the rate: $(sed -n '/^Steps/,$p' said)"
grep -q '^ring .*(outside: .*0.5 times the rate fitted' said || fail "half the rate is not outside: $(grep '^ring ' said)"
"$psring" predict --cost-model model.json --workers 4 --model keras-cnn --compute-ms 100 --batch 64 --bucket-mb 0 >said
awk '/^ring / && / 460\./ && /361\.|360\./ { found = 1 } END { exit !found }' <(sed -n '/^Training/,$p' said) || fail "training: $(sed -n '/^Training/,$p' said)"

"$psring" predict --cost-model model.json --workers 4 --spare 4 --model keras-cnn --compute-ms 100 --cost-per-hour 2 >said
grep -q '^Advice for keras-cnn on 4 workers and 4 spare machines, from net:' said || fail "no advice: $(cat said)"
grep -qE '  (fastest|chosen) .* over tcp, .*buckets? .* machines, ' said || fail "nothing is chosen: $(cat said)"
grep -q '^Training keras-cnn (4.8 MB of gradients in [0-9]* buckets\?, --bucket-mb 4), ' said || fail "the table's buckets: $(cat said)"
grep -q '^  buckets    tried: 1, 2, 4, 8, 16, 25 MB and one bucket; the training table has --bucket-mb 4 only' said ||
    fail "the advice's buckets: $(cat said)"

# Training also reports what is outside the fit: larger buckets and more workers.
"$psring" predict --cost-model model.json --workers 16 --model vgg16 --compute-ms 100 --batch 64 --bucket-mb 0 >said
sed -n '/^Training/,/^Advice/p' said | grep -q '^ring .*(outside: 1.78 times the most workers fitted (9), 132 times the most bytes' ||
    fail "outside, training: $(sed -n '/^Training/,$p' said)"
grep -q '^  based on .*outside what was fitted: 1.78 times the most workers fitted (9), .*bytes fitted' said || fail "outside, advice: $(grep 'based on' said)"

# The constants of MPI_Allreduce's algorithms do not predict psring's ways.
rows | sed 's/^ring,tcp,/mpi,none,/' >mpi.csv
"$psring" predict --fit mpi.csv --cost-model mpi.json >said
status=0
"$psring" predict --cost-model mpi.json --workers 4 >said 2>&1 || status=$?
[[ $status == 1 && $(wc -l <said) == 1 && $(<said) == *"no fitted model is of a psring transport"* ]] || fail "a forecast by MPI_Allreduce: $(cat said)"
sed 1d mpi.csv | cat bench.csv - >both.csv
"$psring" predict --fit both.csv --workers 4 >said
[[ $(grep '^4 workers, ' said) == '4 workers, tcp as over net: '* && $(grep -c '^4 workers, ' said) == 1 ]] || fail "forecasts: $(grep '^4 workers' said)"

# Impossible numbers in a train.csv, and one without its sync mode.
for change in 's/,4,0,/,1e9,0,/' 's/,4,0,/,4,1e17,/' 's/,sync,/,sunk,/'; do
    status=0
    sed "$change" train.csv >broken.csv
    "$psring" predict --cost-model model.json --train broken.csv >out 2>err || status=$?
    [[ $status == 1 && $(wc -l <err) == 1 ]] || fail "train.csv with $change: ended with $status, said $(cat err)"
done

# A sweep that cannot begin (no root, or a bad rate) keeps the rows of an earlier sweep.
mkdir sweep
cp bench.csv model.json sweep
! "$root/experiments/sweep_model.sh" --rate nonsense --psring "$psring" --out sweep >said 2>&1 || fail "sweep_model.sh --rate nonsense: $(cat said)"
{ cmp bench.csv sweep/bench.csv && cmp model.json sweep/model.json; } ||
    fail "sweep_model.sh has removed an earlier run's rows: $(cat said)"

# A model that cannot be written leaves the earlier file intact.
cp model.json whole.json
mkdir model.json.part
status=0
"$psring" predict --fit bench.csv --cost-model model.json >out 2>err || status=$?
[[ $status == 1 && $(<err) == *'model.json: cannot be written'* ]] || fail "a model that cannot be written: ended with $status, said $(cat err)"
cmp model.json whole.json || fail "a model that cannot be written: the earlier one is gone"
rmdir model.json.part

refused()
{
    local status=0 words=$1
    shift
    "$psring" predict "$@" >out 2>err || status=$?
    ((status == 2)) || fail "predict $*: ended with $status, not 2"
    [[ $(wc -l <err) == 1 && $(<err) == *"$words"* ]] || fail "predict $*: said $(cat err)"
}
refused 'needs measurements or a model'
refused 'no prediction is asked for' --cost-model model.json
refused 'add --fit' --cost-model model.json --workers 4 --csv x.csv
refused 'expected at least 2 workers' --cost-model model.json --workers 1
refused 'the time that each computes' --cost-model model.json --workers 4 --model keras-cnn
refused 'no such model' --cost-model model.json --workers 4 --model alexnet --compute-ms 100
refused 'expected at least 2 workers' --fit bench.csv --rate 1e9
refused "found 'workers='" --fit bench.csv --hold-out workers=
refused "found 'a,b'" --cost-model model.json --workers 4 --sizes a,b

status=0
head -n 3 bench.csv >short.csv
"$psring" predict --fit short.csv >out 2>err || status=$?
[[ $status == 1 && $(wc -l <err) == 1 && $(<err) == *'2 rows'* ]] || fail "two rows: ended with $status, said $(cat err)"
