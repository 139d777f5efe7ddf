#!/usr/bin/env bash
# test_figures.sh: plots/draw.sh draws every figure in all formats from the files of psring report. Rows whose times
# must not be shown have no effect. The rows are synthetic: two and four workers on links of 100 MB/s.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
dir=$folder/results
mkdir "$dir"

# row BACKEND TRANSPORT WORKERS SERVERS PLACEMENT BYTES TIME_US THEORY_US SENT SERVER_SENT [ALGORITHM]
network=vcluster:800mbit link=100000000 wrong=0 device=cpu
row()
{
    echo "$network,$1,$2,$device,$3,$4,$5,$6,7,$7,$(($7 * 99 / 100)),$(($7 * 101 / 100)),${link:+$8},${link:+0.75},$link,$9,$9,${10},${10},$wrong,${11:-},1.25,0.5"
}
write_results()
{
    local bytes
    {
        echo network,backend,transport,device,workers,servers,placement,bytes,iters,time_us_median,time_us_median_low,time_us_median_high,theory_time_us,efficiency,link_bytes_per_s,worker_sent_bytes,theory_worker_sent_bytes,server_sent_bytes,theory_server_sent_bytes,wrong,mpi_algorithm,cpu_s_per_gb,cpu_busy
        for bytes in 65536 4799528; do
            row ps zmq 4 1 dedicated $bytes $((bytes / 20)) $((bytes / 25)) $bytes $((4 * bytes))
            row ps zmq 4 4 dedicated $bytes $((bytes / 92)) $((bytes / 100)) $bytes $bytes
            row ps zmq 4 4 colocated $bytes $((bytes / 60)) $((bytes / 66)) $bytes $bytes
            row ps zmq 4 2 mixed $bytes $((bytes / 80)) $((bytes / 83)) $bytes $bytes
            row ring tcp 4 0 none $bytes $((bytes / 60)) $((bytes / 66)) $((bytes * 3 / 2)) ''
            row ring zmq 4 0 none $bytes $((bytes / 58)) $((bytes / 66)) $((bytes * 3 / 2)) ''
            row ring mpi 4 0 none $bytes $((bytes / 57)) $((bytes / 66)) $((bytes * 3 / 2)) ''
            row ps mpi 4 1 dedicated $bytes $((bytes / 21)) $((bytes / 25)) $bytes $((4 * bytes))
            row ps tcp 4 1 dedicated $bytes $((bytes / 22)) $((bytes / 25)) $bytes $((4 * bytes))
            row mpi none 4 0 none $bytes $((bytes / 36)) '' '' '' default
            row mpi none 4 0 none $bytes $((bytes / 48)) '' '' '' segmented
        done
        row ps zmq 2 1 dedicated 4799528 98000 95991 4799528 9599056
        row ring tcp 2 0 none 4799528 49000 47995 4799528 ''
    } >"$dir/bench.csv"
    {
        echo backend,network,device,compute,workers,servers,placement,step,images,images_per_s,batch
        echo "ring,$network,cpu,paced:50,1,0,none,9,576,1280,64"
        echo "ring,$network,cpu,paced:50,4,0,none,9,2304,1969,64"
        echo "ps,$network,cpu,paced:50,4,1,dedicated,9,2304,900,64"
    } >"$dir/train.csv"
    printf '%s\n' 'mode,straggler,seed,workers,model,batch,compute,network,target_accuracy,target_reached,seconds,images_per_s' \
        "bsp,none,1,4,lenet,32,real:40,$network,0.985,1,45,320" "bsp,3:4,1,4,lenet,32,real:40,$network,0.985,0,90,90" \
        "async,3:4,1,4,lenet,32,real:40,$network,0.985,1,40,320" >"$dir/consistency.csv"
}

draw()
{
    rm -f "$dir"/*.{svg,png,pdf}
    "$root/plots/draw.sh" --psring "$psring" "$dir" "$@" >"$folder/output" 2>&1
}

# draws TEXT FIGURE...: each figure exists in all formats and contains TEXT.
draws()
{
    local text=$1 figure
    shift
    draw "$@" || return
    for figure; do
        if ! { grep -q -e "$text" "$dir/$figure.svg" && [[ -s $dir/$figure.png ]] && head -c 5 "$dir/$figure.pdf" | grep -q %PDF-; }; then
            echo "$figure" >"$folder/output" && return 1
        fi
    done
}

# data_same COMMAND...: the command changes rows, but not the data of gnuplot.
data_same()
{
    mkdir "$folder"/{before,after}
    "$psring" report --figures "$folder/before" "$dir" && "$@" && "$psring" report --figures "$folder/after" "$dir" &&
        [[ -s $folder/after/points.txt && -s $folder/after/modes.txt ]] && diff -r "$folder/before" "$folder/after" >"$folder/output"
}

write_results
mapfile -t figures < <("$root/plots/draw.sh" --list)
expect 'there are nine figures' test ${#figures[@]} = 9
{
    echo network,link_bytes_per_s,wiring,machines,added_rtt_ms,workers,bytes,way,fitted
    echo vcluster:800mbit,1e8,flat,workers alone,0,4,4194304,ring,1
    echo vcluster:800mbit,1e8,flat,a server in the switch,10,4,4194304,ps switch 1,0
} >"$dir/winner_map.csv"
expect 'every figure, with its network' draws vcluster:800mbit "${figures[@]}"
expect 'all transports are in the key of processor time' \
    test "$(grep -o '>over [a-z]*<' "$dir/cpu_vs_size.svg" | sort | uniq -c | tr -s ' \n' ' ')" = ' 2 >over mpi< 2 >over tcp< 2 >over zmq< '
# Bars stand next to each other: those on the axis, seven with the four of 4 workers, overlap nowhere.
# shellcheck disable=SC2016 # perl's
expect 'bars overlap, or are not seven' perl -ne '
    push @bars, [$1, $3] if /<polygon.*points = .([\d.]+),([\d.]+) ([\d.]+),/ && $2 > 200;
    END {
        @bars = sort { $a->[0] <=> $b->[0] } @bars;
        exit 1 if @bars != 7 || grep { $bars[$_ - 1][1] > $bars[$_][0] } 1 .. 6;
    }' "$dir/bytes_per_node.svg"

# A point that may not show the network has a cross in the figures, and the key explains it.
crosses() # NUMBER
{
    "$psring" report --figures "$folder" "$dir" && [[ $(awk '$15 == 1' "$folder/points.txt" | wc -l) == "$1" ]] && draw efficiency_vs_workers time_vs_size &&
        [[ $(grep -c '>CPU-limited, disturbed or not steady<' "$dir/efficiency_vs_workers.svg") == $(($1 > 0)) && $(grep -c '>CPU-limited, disturbed or not steady<' "$dir/time_vs_size.svg") == $(($1 > 0)) ]]
}
expect 'no point has a cross' crosses 0
sed -i.sound '/,ring,tcp,cpu,4,.*,4799528,/s/0\.5$/0.9/' "$dir/bench.csv"
expect 'a CPU-limited point has a cross' crosses 1
mv "$dir/bench.csv.sound" "$dir/bench.csv"

# The axis contains a wide interval, here to 9 s.
wide_interval()
{
    sed -i.narrow -E '/,ring,tcp,cpu,4,.*,4799528,/s/,7,([0-9]+),([0-9]+),[0-9]+,/,7,\1,\2,9000000,/' "$dir/bench.csv" && draw time_vs_workers time_vs_size &&
        grep -q '> *9000<' "$dir/time_vs_workers.svg"
}
expect 'an interval stays in its panel' wide_interval
mv "$dir/bench.csv.narrow" "$dir/bench.csv"

# Rows without a place in figures: ranks took turns on a GPU.
turns()
{
    { network=time-slicing device=cuda row ring tcp 4 0 none 4799528 7 7 7 '' && network=time-slicing row ps zmq 4 1 dedicated 4799528 7 7 7 7; } >>"$dir/bench.csv"
    echo 'ring,time-slicing,cuda,paced:50,4,0,none,9,2304,77777,64' >>"$dir/train.csv"
}
expect 'figures leave out ranks that take turns on one GPU' data_same turns
wrong=1
expect 'a run with wrong sums' write_results
no_figure()
{
    # shellcheck disable=SC2119 # no figure is named
    draw && [[ -z $(find "$dir" -name '*.svg') ]]
}
expect 'has no figures' no_figure
rm "$dir/consistency.csv"
wrong=0 network=loopback link=''
write_results
expect 'on loopback' draws 'network=loopback: no per-node limit, topology effects do not show' throughput time_vs_workers

# Names of folders with results or scripts are never part of a shell command.
odd="$folder/it's \$(touch gone) \`touch gone\` \"quoted\""
mkdir -p "$odd/tree/experiments" "$odd/results"
cp -r "$root/plots" "$odd/tree"
cp -r "$root/experiments/sweep" "$odd/tree/experiments"
cp "$dir"/*.csv "$odd/results"
draws_odd()
{
    "$odd/tree/plots/draw.sh" --psring "$psring" "$odd/results" time_vs_workers consistency >"$folder/output" 2>&1 &&
        [[ -s $odd/results/consistency.svg && -s $odd/results/time_vs_workers.svg && ! -e gone && ! -e $odd/results/gone ]]
}
expect 'names with quotes, dollars and spaces' draws_odd

# gnuplot uses a decimal point in every language.
mkdir "$folder/bin"
# shellcheck disable=SC2016  # expanded when it is called
printf '#!/bin/sh\necho "language $LC_ALL"\n' >"$folder/bin/gnuplot"
chmod +x "$folder/bin/gnuplot"
said=$(PATH=$folder/bin:$PATH LC_ALL=de_DE.UTF-8 "$root/plots/draw.sh" --psring "$psring" "$dir" throughput 2>&1 | grep -v setlocale | sort -u)
expect "gnuplot has '$said'" test "${said%.UTF-8}" = 'language C'
# shellcheck disable=SC2016 # the inner shell's
expect 'a program is needed' bash -c '! "$0" --psring /nowhere "$1" 2>"$2"' "$root/plots/draw.sh" "$dir" "$folder/output"
all_passed
