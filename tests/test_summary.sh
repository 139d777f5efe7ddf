#!/usr/bin/env bash
# test_summary.sh: experiments/sweep/summary.sh and the figures say what the CSV files say. The files here
# are made up: two and four workers on links of 100 MB/s, an all-reduce of 4,799,528 bytes.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
dir=$folder/results
mkdir "$dir"

# The columns of the contract in another order and with one more, because they are found by name.
bench_header=network,backend,transport,device,workers,servers,placement,bytes,iters,further,time_us_min
bench_header+=,time_us_median,time_us_p95,time_us_max,algbw_bytes_per_s,busbw_bytes_per_s,link_bytes_per_s
bench_header+=,efficiency,worker_sent_bytes,worker_recv_bytes,server_sent_bytes,server_recv_bytes
bench_header+=,theory_worker_sent_bytes,theory_server_sent_bytes,wire_tx_bytes_max,wrong
bench_header+=,time_us_median_low,time_us_median_high,theory_time_us,nominal_link_bytes_per_s,link_source,mpi_algorithm,cpu_busy
bench_header+=,hosts,neighbours_apart,compress,compute_us_median,exposed_us_median,api,cpu_s_per_gb
bench_header+=,cpu_other,model_gradients,buckets,scaling_efficiency

# Of the median: LOW% and HIGH% of it. What the links are said to be, and how busy the CPUs. Compression, and the
# computation beside. The hosts, where workers share them. What all-reduces. Processor seconds for a GB.
api=comm low=99 high=101 nominal='' source='' busy=0.5 other='' compress=none compute=0 exposed='' hosts='' apart='' cpu=''

# bench_row NETWORK LINK BACKEND TRANSPORT WORKERS PLACEMENT TIME_US SENT SERVER_SENT WRONG [THEORY_US [SERVERS]]
# With backend mpi-ALGORITHM, the column mpi_algorithm says so.
bench_row()
{
    local servers=${12:-0} algorithm=''
    [[ $6 == none ]] || servers=${12:-1}
    [[ $3 != mpi-* ]] || algorithm=${3#mpi-}
    echo "$1,${3%%-*},$4,cpu,$5,$servers,$6,4799528,7,x,$7,$7,$7,$7,1,1,$2,${2:+0.75},$8,$8,$9,$9,$8,$9,1,${10},$(($7 * low / 100)),$(($7 * high / 100)),${2:+${11:-}},$nominal,$source,$algorithm,$busy,$hosts,$apart,$compress,$compute,$exposed,$api,$cpu,$other"
}

# write_results NETWORK LINK WRONG
write_results()
{
    {
        echo "$bench_header"
        bench_row "$1" "$2" ps zmq 4 dedicated 240000 4799528 19198112 0 191981
        bench_row "$1" "$2" ps zmq 4 colocated 150000 4799528 14398584 0 143986
        bench_row "$1" "$2" ps zmq 4 dedicated 52000 4799528 4799528 0 47995 4
        bench_row "$1" "$2" ps zmq 4 colocated 80500 3599648 3599646 0 71993 4
        bench_row "$1" "$2" ps zmq 4 mixed 60000 4799528 4799528 0 57594 2
        bench_row "$1" "$2" ring mpi 4 none 80000 7199296 0 "$3" 71993
        bench_row "$1" "$2" rhd mpi 4 none 82000 7199296 0 0 71993
        bench_row "$1" "$2" mpi-default none 4 none 130000 "" "" 0
        bench_row "$1" "$2" mpi-segmented none 4 none 99000 "" "" 0
        bench_row "$1" "$2" mpi-ring none 4 none 99500 "" "" 0
        bench_row "$1" "$2" ps zmq 2 dedicated 98000 4799528 9599056 0 95991
        bench_row "$1" "$2" ring mpi 2 none 49000 4799528 0 0 47995
        # Through libpsring, and a GPU's turns: not to be seen.
        api=library bench_row "$1" "$2" ps zmq 4 dedicated 7 4799528 19198112 0 191981
        bench_row time-slicing "$2" ring mpi 4 none 7 7199296 0 0 71993
        bench_row time-slicing "$2" ps zmq 4 dedicated 7 4799528 19198112 0 191981
    } >"$dir/bench.csv"
    {
        echo "backend,transport,device,network,compute,workers,servers,placement,sync,model,dataset,epoch,step,images,seconds,images_per_s,step_ms_median,compute_ms_median,comm_ms_median,exposed_comm_ms_median,train_loss,test_loss,test_accuracy,weights_sha256,batch"
        echo "ring,mpi,cpu,$1,paced:50,1,0,none,bsp,keras-cnn,none,1,9,576,1,1280,50,50,0,0,,,,,64"
        echo "ring,mpi,cpu,$1,paced:50,4,0,none,bsp,keras-cnn,none,1,9,2304,1,1969,130,50,80,80,,,,,64"
        echo "ps,zmq,cpu,$1,real,4,1,dedicated,bsp,keras-cnn,mnist,1,100,25600,90,284,900,1,1,1,0.2,0.09,0.9712,$4,64"
        echo "ps,zmq,cpu,$1,real,4,1,dedicated,bsp,keras-cnn,mnist,2,200,51200,181,284,900,1,1,1,0.1,0.05,0.9853,abc,64"
        echo "ring,mpi,cuda,time-slicing,paced:50,4,0,none,bsp,keras-cnn,none,1,9,2304,1,77777,130,50,80,80,,,,,64"
        echo "ring,mpi,cpu,$1,real,4,0,none,bsp,keras-cnn,mnist,2,200,51200,120,427,600,1,1,1,0.1,0.05,0.9853,abc,64"
    } >"$dir/train.csv"
}

summary()
{
    "$root/experiments/sweep/summary.sh" "$dir" cores=2 failures="${1:-0}" >"$dir/summary.txt"
}

# says [not] PATTERN
says()
{
    local expected=0 rc=0
    [[ $1 != not ]] || { expected=1 && shift; }
    grep -qE -- "$1" "$dir/summary.txt" || rc=$?
    expect "$( ((expected == 0)) || echo not) '$1' in:
$(sed 's/^/    /' "$dir/summary.txt")" test $rc = $expected
}

# draws TEXT: each figure is drawn, in all forms, and its title holds the text.
draws()
{
    local figure figures='throughput time_vs_size time_vs_workers bytes_per_node'
    [[ $1 == *loopback* ]] || figures+=' efficiency_vs_size efficiency_vs_workers'
    for figure in $figures; do
        expect "the figure $figure with '$1'" draws_one "$figure" "$1"
    done
}

# draws_one FIGURE TEXT
draws_one()
{
    rm -f "$dir/$1".*
    "$root/plots/draw.sh" "$dir" "$1" 2>/dev/null && grep -q -e "$2" "$dir/$1.svg" && [[ -s $dir/$1.png ]] && head -c 5 "$dir/$1.pdf" | grep -q %PDF-
}

write_results vcluster:800mbit 100000000 0 abd
# draws_same COMMAND...: the command, which changes the rows, changes no figure.
draws_same()
{
    draw_all >"$dir/drawn" && "$@" && draw_all | cmp -s - "$dir/drawn"
}
draw_all()
{
    rm -f "$dir"/*.svg
    "$root/plots/draw.sh" "$dir" && cat "$dir"/*.svg
}
expect 'figures leave out ranks that take turns on one GPU' draws_same sed -i '/time-slicing/d' "$dir"/{bench,train}.csv
write_results vcluster:800mbit 100000000 0 abd
summary
says not 'further transport|Beside a computation'
says '^network=vcluster:800mbit: 800 Mbit/s \(100\.0 MB/s\) each way'
says '^ +4 +4\.8 MB +240 ms +52\.0 ms +80\.5 ms +60\.0 ms +80\.0 ms +82\.0 ms +99\.0 ms +3\.00 +2\.67 +75\.0%$'
says '^ +ps dedicated 4 +52\.0 ms +51\.5 ms-52\.5 ms +48\.0 ms +0\.65 \(0\.64 to 0\.66\) +75\.0% +8 +37\.5%$'
says '^ +ps mixed 2 +60\.0 ms .* 75\.0% +6 +50\.0%$'
says '^ +ps colocated 4 +80\.5 ms .* no difference +75\.0% +4 +75\.0%$'
says '^ +mpi default +130 ms '
says '^  4 workers, a message of 4\.8 MB, this network\. The ring took 80\.0 ms, 75\.0% of the best'
says 'on a machine of its own: slower than the ring, 3\.00 \(2\.94 to 3\.06\) times its time; theory: 2\.67\.$'
says 'on 4 further machines: faster than the ring, 0\.65 \(0\.64 to 0\.66\) times its time; theory: 0\.67\.$'
says 'on the same machines: no difference from the ring was measured; theory: 1\.00\.$'
says 'fastest of its algorithms here \(segmented\): slower than the ring, 1\.24'
says 'one server was nowhere measurably faster'

says '^ +2 +4\.8 MB +98\.0 ms +- +- +- +49\.0 ms +- +- +2\.00 +2\.00 +75\.0%$'
says ' 4 +7,199,296 \| 7,199,296 +4,799,528 \| 4,799,528 +19,198,112 \| 19,198,112$'
says 'every count equals theory'
says '^ +4 +- +- +- +1,969 +- +5,120$'
says 'ps dedicated 1 +4 workers: 98\.53% after 51,200 images of mnist'
says 'same weights, bit for bit'
says 'Checked: all 100,790,088 elements'
says ': 800 Mbit/s .* each way for each host, nominal$'
says 'about 96% is what'
says not 'WRONG|INCOMPLETE|loopback|CPU-limited'
draws vcluster:800mbit
# Bars stand beside each other: those on the axis, seven with the four of 4 workers, overlap nowhere.
# shellcheck disable=SC2016 # perl's
expect 'bars overlap, or are not seven' perl -ne '
    push @bars, [$1, $3] if /<polygon.*points = .([\d.]+),([\d.]+) ([\d.]+),/ && $2 > 200;
    END {
        @bars = sort { $a->[0] <=> $b->[0] } @bars;
        exit 1 if @bars != 7 || grep { $bars[$_ - 1][1] > $bars[$_][0] } 1 .. 6;
    }' "$dir/bytes_per_node.svg"

write_results vcluster:800mbit 100000000 3 abd
sed -i '/real,4,0,none/s/abc/abe/; /real/s/0\.9853/0.9800/' "$dir/train.csv"
sed -i '/,ring,/s/,7199296,7199296,0,0,7199296/,7199300,7199296,0,0,7199296/' "$dir/bench.csv"
summary 2
says 'WRONG: 3 elements'
says 'INCOMPLETE: 2 measurements'
says '1 count over all sizes differs from theory'
says 'weights differ by rounding'
says not 'bit for bit|equals theory'

# Added in the ring's order, all else alike, two trainings must end with the same weights.
sed -i '1s/$/,reduce_order/; 2,$s/$/,ring/' "$dir/train.csv"
summary
says '^WRONG: two trainings that must end with the same weights'
says '  WRONG: both added the same gradients in the same order'
says not 'by rounding'
sed -i '/real,4,0,none/s/,51200,/,51264,/' "$dir/train.csv"
summary
says 'by rounding'

# What limits each training, as its row says.
says not 'What limits each'
sed -i '1s/$/,limit,limit_rank/; /,cpu,.*,paced:50,4,/s/$/,rank,2/' "$dir/train.csv"
summary
says 'What limits each'
says '^ *4 +- +- +- +rank 2 +-$'

# Measured links: the nominal rate is shown too; 240 and 80 ms are CPU-limited.
nominal=104000000 source=probe busy=0.851
write_results vcluster:832mbit 100000000 0 abd
sed -i '/,cpu,2,/s/,0\.851,/,0.85,/; s/,99000,1,1,100000000/,99000,1,1,98000000/' "$dir/bench.csv"
summary
says ': 832 Mbit/s \(104\.0 MB/s\) each way for each host$'
says '^measured in the same runs, .*: 800\.0 Mbit/s \(100\.00 MB/s\), the median of 784\.0 to 800\.0 Mbit/s$'
says '^ +4 +4\.8 MB +240 ms\* +52\.0 ms\* +80\.5 ms\* +60\.0 ms\* +80\.0 ms\* +82\.0 ms\* +99\.0 ms\* +3\.00 +2\.67 +75\.0%$'
says 'on a machine of its own: .*; CPU-limited\*\.$'
says '^ +2 +4\.8 MB +98\.0 ms +- +- +- +49\.0 ms +- +- +2\.00 +2\.00 +75\.0%$'
says '\* CPU-limited: the processors were more than 85% busy'
says "MPI_Allreduce's busy share is spinning"
says not 'other work'
says 'links that carry what TCP streams reached'
says not 'about 96%|had no probe'
sed -i '2s/,probe,/,nominal,/' "$dir/bench.csv"
summary
says '^1 of 12 measurements had no probe'
# Without what other processes do they would not be so busy.
busy=0.95 other=0.2
write_results vcluster:832mbit 100000000 0 abd
summary
says '^ +4 +4\.8 MB +240 ms\+ +52\.0 ms\+ '
says 'on a machine of its own: .*; the machine was busy with other work\+\.$'
says '^  \+ the machine was busy with other work: '
says not 'CPU-limited'
busy=0.5 other=''

# One probe was disturbed: theory and efficiency are all probes', so no figure changes.
write_results vcluster:832mbit 100000000 0 abd
expect "figures leave out a row's own probe" draws_same \
    sed -i '/,ps,zmq,cpu,4,1,dedicated,/{s/,100000000,0.75/,66000000,1.136364/; s/,191981,/,290880,/}' "$dir/bench.csv"
# So was the measurement beside it: nothing of the answer rests on them.
write_results vcluster:832mbit 100000000 0 abd
sed -i '/,ps,zmq,cpu,4,1,dedicated,/{s/240000/270000/g; s/,100000000,/,66000000,/; s/,191981,/,290880,/}' "$dir/bench.csv"
summary
says '^Not steady: ps dedicated 1, 4 workers, 4\.8 MB: its probe found 528\.0 Mbit/s$'
says '^measured in the same runs, .*: 800\.0 Mbit/s .*, the median of 528\.0 to 800\.0 Mbit/s$'
says '^ +4 +4\.8 MB +270 ms .* +3\.38 +2\.67 +75\.0%$'
says 'on a machine of its own: slower than the ring, 2\.00 .*; theory: 2\.00; with 2 workers \(with 4 not steady\)\.$'
says 'on 4 further machines: faster than the ring, 0\.65 '
says not '3\.3[78] \(3\..*theory|4\.04'
again()
{
    "$root/experiments/sweep/summary.sh" "$dir" only=unsteady >"$dir/again.txt"
    expect "to be measured again: '$(cat "$dir/again.txt")', expected '$1'" \
        test "$(cut -d ' ' -f 1-2 "$dir/again.txt" | paste -sd ';')" = "$1"
}
again 'ps-dedicated-1 4'
# Nothing steady is left of one server: said, and the ring with less time than its bytes take.
sed -i '/,ps,zmq,cpu,2,1,dedicated,/s/,97020,98980,/,70000,98980,/' "$dir/bench.csv"
summary
says 'on a machine of its own: .* times its time; theory: 2\.67; no steady measurement\.$'
sed -i '/,ring,mpi,cpu,4,/s/80000/60000/g' "$dir/bench.csv"
summary
says 'The ring took 60\.0 ms \(not steady: less time than its bytes take\)'
again 'ring 4;ps-dedicated-1 4;ps-dedicated-1 2'
# All that scatter are named, however many.
awk -F , -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i } NR > 1 { $column["time_us_median_high"] *= 2 } 1' \
    "$dir/bench.csv" >"$dir/scattered" && mv "$dir/scattered" "$dir/bench.csv"
summary
expect "more than five are named" test "$(grep -c '^Not steady: .*its iterations scatter$' "$dir/summary.txt")" -gt 5
nominal='' source='' busy=''

# A further transport and compressed messages: tables of their own, and nothing else changes.
write_results vcluster:800mbit 100000000 0 abd
summary
cp "$dir/summary.txt" "$dir/before.txt"
add_variants()
{
    bench_row vcluster:800mbit 100000000 ring zmq 4 none 60000 7199296 0 0 71993
    compress=fp16 bench_row vcluster:800mbit 100000000 ring mpi 4 none 40800 3599648 0 0 35996
    compress=fp16 bench_row vcluster:800mbit 100000000 ring zmq 4 none 40000 3599648 0 0 35996
    bench_row vcluster:800mbit 100000000 ps mpi 4 dedicated 241000 4799528 19198112 0 191981
} >>"$dir/bench.csv"
expect 'figures leave out variants' draws_same add_variants
summary
says '^ +ring, over zmq +4 +4\.8 MB +60\.0 ms +80\.0 ms +0\.75 \(0\.74 to 0\.77\) +1\.00$'
says '^ +ring, fp16 +4 +4\.8 MB +40\.8 ms +80\.0 ms +0\.51 \(0\.50 to 0\.52\) +0\.50$'
says '^ +ring, over zmq, fp16 +4 +4\.8 MB +40\.0 ms +80\.0 ms '
says '^ +ps dedicated 1, over mpi +4 +4\.8 MB +241 ms +240 ms +no difference +1\.00$'
says 'Checked: all 134,386,784 elements'
plain_tables() { sed '/^Checked/d; /^5\. /,$d' "$1"; }
expect 'variants leave the other tables' \
    diff <(plain_tables "$dir/before.txt") <(plain_tables "$dir/summary.txt")
sed -i 's/,fp16,0,,comm,,$/,fp16,40800,8160,comm,,/' "$dir/bench.csv"
summary
says '^ +ring, fp16 +4 +4\.8 MB +40\.8 ms +8\.2 ms +80\.0%$'

# What the processors were asked for: a table and a figure, of the transports beside each other; without the
# column there are none.
says not 'Processor seconds'
expect 'no figure of processor seconds that are not known' test ! -e "$dir/cpu_vs_size.svg"
cpu=1.25
write_results vcluster:800mbit 100000000 0 abd
cpu=2.5
add_variants
cpu=0.875 bench_row vcluster:800mbit 100000000 ring tcp 4 none 60000 7199296 0 0 71993 >>"$dir/bench.csv"
cpu=1234.5 bench_row vcluster:800mbit 100000000 ps tcp 4 dedicated 60000 7199296 0 0 71993 >>"$dir/bench.csv"
summary
says '^5\. Processor seconds of all ranks for a GB of messages, 4 workers$'
says '^ +4\.8 MB +1\.25 +2\.5 +1234 +2\.5 +1\.25 +0\.875 +1\.25$'
expect 'variants leave the other tables, processor seconds as well' \
    diff <(plain_tables "$dir/before.txt") <(plain_tables "$dir/summary.txt")
expect 'the figure cpu_vs_size' draws_one cpu_vs_size 'of all ranks for a GB of messages (4 workers)'
expect 'all transports are in its key' \
    test "$(grep -o '>over [a-z]*<' "$dir/cpu_vs_size.svg" | sort | uniq -c | tr -s ' \n' ' ')" = ' 2 >over mpi< 2 >over tcp< 2 >over zmq< '
cpu=''

# Workers that share hosts: a table of their own, and nothing else changes.
write_results vcluster:800mbit 100000000 0 abd
add_slots()
{
    hosts=4 apart=4 bench_row vcluster:800mbit 100000000 hierarchical tcp 8 none 73000 3599648 0 0 71993
    hosts=4 apart=4 bench_row vcluster:800mbit 100000000 ring mpi 8 none 85000 8399176 0 0 83992
    hosts=4 apart=8 bench_row vcluster:800mbit 100000000 ring mpi 8 none 171000 8399176 0 0 167983
} >>"$dir/bench.csv"
expect 'figures leave out workers that share hosts' draws_same add_slots
summary
says '^ +hierarchical, 8 on 4 hosts +4\.8 MB +73\.0 ms +72\.3 ms-73\.7 ms +72\.0 ms +1\.01$'
says '^ +ring, 8 on 4 hosts +4\.8 MB +85\.0 ms .* +84\.0 ms +1\.01$'
says '^ +ring, 8 on 4 hosts, worst order +4\.8 MB +171 ms +169 ms-173 ms +168 ms +1\.02$'
expect 'workers that share hosts leave the other tables' \
    diff <(plain_tables "$dir/before.txt") <(plain_tables "$dir/summary.txt")

# They alone, on hosts with unequal numbers of them, and in an order that is neither the best nor the worst.
write_results vcluster:800mbit 100000000 0 abd
{
    echo "$bench_header"
    hosts=2 apart=2 bench_row vcluster:800mbit 100000000 ring tcp 5 none 77000 7679244 0 0 76792
    hosts=2 apart=4 bench_row vcluster:800mbit 100000000 ring tcp 5 none 154000 7679244 0 0 153584
} >"$dir/bench.csv"
summary
says '^ +ring, 5 on 2 hosts +4\.8 MB +77\.0 ms .* +76\.8 ms +1\.00$'
says '^ +ring, 5 on 2 hosts, 4 neighbours apart +4\.8 MB +154 ms .* +154 ms +1\.00$'

# Wide intervals: 240 and 80 ms touch, 98 and 49 ms do not, so only those make a ratio.
low=67 high=201
write_results vcluster:800mbit 100000000 0 abd
sed -i '/,ps,zmq,cpu,2,/s/,[0-9]*,[0-9]*,95991,/,98000,98000,95991,/; /,ring,mpi,cpu,2,/s/,[0-9]*,[0-9]*,47995,/,49000,97999,47995,/' "$dir/bench.csv"
summary
says '^ +4 +4\.8 MB +240 ms .* 99\.0 ms +no difference +2\.67 +75\.0%$'
says '^ +2 +4\.8 MB +98\.0 ms +- +- +- +49\.0 ms +- +- +2\.00 +2\.00 +75\.0%$'
says '^ +4\.8 MB +240 ms .* 99\.0 ms +segmented +no difference$'
says 'on a machine of its own: no difference from the ring was measured; theory: 2\.67'
says not '3\.00'
low=99 high=101

# Intervals that nearly touch: as many digits as show that they do not.
write_results vcluster:800mbit 100000000 0 abd
sed -i '/,ps,zmq,cpu,4,4,colocated,/{s/80500/81000/g; s/,79695,81305,/,80810,81305,/}' "$dir/bench.csv"
summary
says 'on the same machines: slower than the ring, 1\.0125 \(1\.0001 to 1\.0266\) times its time'

write_results loopback "" 0 abd
summary
says '^network=loopback: no per-node limit, topology effects do not show'
says '^ +4 +4\.8 MB +240 ms .* 99\.0 ms +3\.00 +- +-$'
says not 'theory:'
draws 'network=loopback: no per-node limit, topology effects do not show'

write_results vcluster:800mbit 100000000 0 abd

# Names are no part of a command: of the folder with the results, nor of the one with the scripts.
odd="$dir/it's \$(touch gone) \`touch gone\` \"quoted\""
mkdir -p "$odd/tree/experiments" "$odd/results"
cp -r "$root/plots" "$odd/tree"
cp -r "$root/experiments/sweep" "$odd/tree/experiments"
cp "$dir"/{bench,train}.csv "$odd/results"
reports_odd()
{
    "$odd/tree/plots/draw.sh" "$odd/results" && [[ $(find "$odd/results" -name '*.svg' | wc -l) == 6 ]] &&
        "$odd/tree/experiments/sweep/summary.sh" "$odd/results" cores=2 failures=0 >"$odd/results/summary.txt" &&
        [[ ! -e gone && ! -e $odd/results/gone ]]
}
expect 'names with quotes, dollars and spaces' reports_odd

# Numbers are read and written with a point, whatever the user's language: each program is told so.
for line in "awk experiments/sweep/summary.sh $dir" "gnuplot plots/draw.sh $dir throughput" "awk experiments/vcluster.sh rate 2.5gbit"; do
    read -r program command <<<"$line"
    mkdir -p "$folder/$program"
    # shellcheck disable=SC2016  # expanded when it is called
    printf '#!/bin/sh\necho "language $LC_ALL"\n' >"$folder/$program/$program"
    chmod +x "$folder/$program/$program"
    # shellcheck disable=SC2086  # words
    said=$(PATH=$folder/$program:$PATH LC_ALL=de_DE.UTF-8 "$root"/$command 2>&1 | grep -v setlocale | sort -u)
    expect "$command: $program has '$said'" test "${said%.UTF-8}" = 'language C'
done

# Published models' gradients have a table of their own, and are in no other; what there was no time for is named.
write_results vcluster:1gbit 100000000 0 abc
summary
cp "$dir/summary.txt" "$folder/without"
{
    compute=100000 exposed=250000 bench_row vcluster:1gbit 100000000 ring mpi 4 none 300000 153342192 0 0 287000 |
        sed 's/4799528,7/102228128,7/; s/$/,resnet50,28,0.285714/'
} >>"$dir/bench.csv"
"$root/experiments/sweep/summary.sh" "$dir" cores=2 failures=0 \
    too_long='ring 4 bert-large 243;ps-dedicated-1 4 bert-large 646;ring 4 gpt2 99;ring 4 vgg16 6.7GB' >"$dir/summary.txt"
says '^  resnet50 +ring +4 +102.2 MB +28 +300 ms +287 ms +100 ms +250 ms +28.6%$'
says '^  not measured, it would take too long: bert-large: ring 243 s, ps dedicated 1 646 s$'
says '^  not measured, it would take too long: gpt2: ring 99 s$'
says '^  not measured, it needs more memory than there is: vgg16: ring 6.7 GB$'
differ=$(diff <(sed "s/^[0-9]*\. //" "$folder/without") <(sed "s/^[0-9]*\. //" "$dir/summary.txt") | grep "^<" | grep -v "elements of the timed" || true)
expect "the other tables are as they were, but: $differ" test -z "$differ"

# Which of them a sweep has time for follows from the links.
plan_of()
{
    (
        # shellcheck disable=SC2034  # plan.sh reads them
        mode=default link_bits=$1 max_workers=8 published_s=120
        # shellcheck source-path=SCRIPTDIR source=../experiments/sweep/plan.sh
        . "$root/experiments/sweep/plan.sh"
        # shellcheck source-path=SCRIPTDIR source=../experiments/sweep/constants.sh
        . "$root/experiments/sweep/constants.sh"
        published_points
    )
}
expect "a plan at 200 Mbit/s" test "$(plan_of 200000000 | cut -d ' ' -f 1 | sort | uniq -c | xargs)" = '7 published 5 too-long'
wanted() # TEXT
{
    echo "$1" >"$folder/said"
    bash -c '. "$0" && memory_wanted "$1"' "$root/experiments/sweep/plan.sh" "$folder/said"
}
expect "what bench says of memory" test "$(wanted 'psring: error: --model-gradients vgg16: 8 ranks on the machine of a need about 5.5 GB, and 3.1 GB are free there; start fewer')" = 5.5
expect "bench says so" grep -q 'need about %.1f GB, and "' "$root/experiments/bench/bench_model.c"
expect "another error is none of memory" test -z "$(wanted 'psring: error: something else')"
expect "a plan at 10 Gbit/s" test "$(plan_of 10000000000 | cut -d ' ' -f 1 | sort | uniq -c | xargs)" = '12 published'
for model in resnet50:25557032 vgg16:138357544 gpt2:124439808 bert-large:336226108; do
    expect "the bytes of $model" grep -q "${model%:*} $((4 * ${model#*:}))[ ']" "$root/experiments/sweep/constants.sh"
    expect "the parameters of $model" grep -q "parameters, ${model#*:})" "$root/tests/test_published.c"
done

# A string of provenance.json is one, whatever a name of the user's has in it.
# shellcheck source-path=SCRIPTDIR source=../experiments/json.sh
. "$root/experiments/json.sh"
said=$(json_string $'a\nb\t\r"\\')
expect "json_string says $said" test "$said" = '"ab\t\"\\"'

# Numbers that scripts repeat are psring's own.
expect 'HEADER_BYTES of constants.sh is MESSAGE_HEADER_BYTES of message.h' grep -q \
    "MESSAGE_HEADER_BYTES = $(sed -n 's/^HEADER_BYTES=\([0-9]*\).*/\1/p' "$root/experiments/sweep/constants.sh")," \
    "$root/common/net/transport/message.h"
expect 'CPU_LIMITED of constants.sh is CPU_SHARE_LIMITED of cpu_share.h' grep -q \
    "CPU_SHARE_LIMITED $(sed -n 's/^CPU_LIMITED=\([0-9.]*\).*/\1/p' "$root/experiments/sweep/constants.sh")$" \
    "$root/experiments/measure/cpu_share.h"
expect 'CPU_OTHER of constants.sh is CPU_SHARE_OTHER of cpu_share.h' grep -q \
    "CPU_SHARE_OTHER $(sed -n 's/^CPU_OTHER=\([0-9.]*\).*/\1/p' "$root/experiments/sweep/constants.sh")$" \
    "$root/experiments/measure/cpu_share.h"

all_passed
