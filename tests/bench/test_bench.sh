#!/usr/bin/env bash
# test_bench.sh [--short]: psring bench and psring info as a user runs them: files, messages and exit codes. Finished
# rows stay when a rank is killed.
#
# --short: fewer MPI algorithms, and a published model only with ring and with one server. test_node_bytes.c checks the
# bytes of the other backends.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

fail()
{
    echo "test_bench: $*"
    cat "$folder/out" "$folder/err"
    exit 1
}

# ends CODE COMMAND...: runs the command, keeps its output, and checks its exit code.
ends()
{
    local expected=$1 code=0
    shift
    "$@" >"$folder/out" 2>"$folder/err" || code=$?
    [[ $code == "$expected" ]] || fail "$*: exit code $code, expected $expected"
}

says() { grep -qF -- "$2" "$folder/$1" || fail "$1: expected the text: $2"; }

# One rank, without mpirun. Sizes are rounded up to whole floats.
ends 0 "$psring" bench --backend none -b 1 -e 10 -f 2 -n 3 --csv "$folder/one.csv"
[[ $(cut -d, -f8 "$folder/one.csv" | tr '\n' ' ') == "bytes 4 8 " ]] || fail "sizes of one.csv"
says out "every element equals the exact sum"
says out "no per-node limit"
says out "one worker: nothing is sent"
ends 0 "$psring" bench --backend none --sizes 12,5,4096 -n 3 --csv "$folder/sizes.csv"
[[ $(cut -d, -f8 "$folder/sizes.csv" | tr '\n' ' ') == "bytes 12 8 4096 " ]] || fail "sizes of sizes.csv"

# bench appends rows and writes a complete JSON file. Labels come from the environment or the options.
run=("$lib/mpirun.sh" 3 "$psring" bench --backend ps -b 1k -e 1k -n 3 --probe off --csv "$folder/a.csv"
    --json "$folder/a.json")
PSRING_NETWORK=here PSRING_LINK_BITS=80e6 ends 0 "${run[@]}"
ends 0 "${run[@]}" --network there
[[ $(wc -l <"$folder/a.csv") == 3 ]] || fail "a.csv: expected a header and two rows"
[[ $(cut -d, -f4,16 "$folder/a.csv" | tr '\n' ' ') == "network,link_bytes_per_s here,10000000 there, " ]] ||
    fail "labels of a.csv"
for text in '"rows"' '"wrong":' '"min-bytes":' '"compiler":' '"cpu":' '"mpi parameters":' 'btl_tcp_if_include=lo'; do
    grep -qF "$text" "$folder/a.json" || fail "a.json has no $text"
done
# Both files have the same rows. Each column is a member with the same value. Unknown: empty in CSV, null in JSON.
# shellcheck disable=SC2016  # perl's
"$lib/mpirun.sh" 2 "$psring" bench --backend mpi -b 4 -e 2k -n 3 --csv "$folder/b.csv" --json "$folder/b.json" >/dev/null
perl -MJSON::PP -e '
    open my $csv, "<", $ARGV[0] or die; open my $file, "<", $ARGV[1] or die; local $/;
    my ($head, @lines) = map { [split /,/, $_, -1] } split /\n/, <$csv>;
    my $rows = decode_json(<$file>)->{rows};
    die "rows" if @$rows != @lines || !@lines;
    for my $i (0 .. $#lines) {
        die "members" if keys %{$rows->[$i]} != @$head;
        for my $c (0 .. $#$head) {
            my ($name, $cell, $member) = ($head->[$c], $lines[$i][$c], $rows->[$i]{$head->[$c]});
            my $same = defined $member ? $cell eq $member || $cell =~ /^[\d.e+-]+$/ && abs($cell - $member) <= 1e-8 * abs($member) : $cell eq "";
            die "row $i, $name: $cell" if !$same;
        }
    }' "$folder/b.csv" "$folder/b.json" || fail "b.csv and b.json differ"
[[ ! -e $folder/a.json.part ]] || fail "a.json.part was left"

# The link's rate is nominal or from the probe. link_source names the source. Probed rows have the nominal rate, too.
link() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { print $c["link_source"] ":" $c["nominal_link_bytes_per_s"] ":" ($c["link_bytes_per_s"] == 10000000) ":" \
        ($c["efficiency"] > 0) ":" $c["iters"] }' "$1"; }
[[ $(link "$folder/a.csv" | tr '\n' ' ') == "nominal:10000000:1:1:3 ::0:0:3 " ]] ||
    fail "link of a.csv: $(link "$folder/a.csv")"
PSRING_LINK_BITS=80e6 ends 0 "$lib/ranks.sh" 3 "$psring" bench --backend ring -b 1k -e 1k -n 3 --csv "$folder/p.csv"
says out "measured by TCP streams in this run; nominal: 80"
ends 0 "$lib/ranks.sh" 3 "$psring" bench --backend ps -b 1k -e 1k -n 3 --probe on --csv "$folder/p.csv"
[[ $(link "$folder/p.csv" | tr '\n' ' ') == "probe:10000000:0:1:3 probe::0:1:3 " ]] ||
    fail "link of p.csv: $(link "$folder/p.csv")"

# With --baselines the machine's limits are above the table and in every row.
ends 0 "$lib/ranks.sh" 3 "$psring" bench --backend ps -b 4 -e 8 -f 2 -n 3 --baselines --csv "$folder/l.csv"
says out "# memory, one core"
says out "of c = a + b"
says out "DEALER to ROUTER and back"
says out "on a plain socket, there and back"
says out "# plain TCP"
says out "# a server on plain sockets, with 2 workers"
limits=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { print ($c["memory_add_bytes_per_s"] > 0) ($c["memory_reduce_bytes_per_s"] > 0) ($c["zmq_rtt_us"] > 0) \
        ($c["tcp_rtt_us"] > 0) ($c["tcp_server_us"] > 0) ($c["stream_bytes_per_s"] > 0) ($c["link_bytes_per_s"] == "") }' "$folder/l.csv" | tr '\n' ' ')
[[ $limits == "1111111 1111111 " ]] || fail "limits of l.csv: $limits"

# column FILE NAME: prints the cells of the column.
column() { awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } { printf "%s ", $c[name] }' "$1"; }

# p99 stands next to p95, in the table and in every row.
ends 0 "$lib/ranks.sh" 2 "$psring" bench --backend ring --sizes 4,4096 -n 9 --csv "$folder/q.csv"
grep -qE '^# .* 95% interval +p95 +p99 ' "$folder/out" || fail "no p95 and p99 in the table"
order=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { printf "%d", ($c["time_us_p95"] <= $c["time_us_p99"] && $c["time_us_p99"] <= $c["time_us_max"] && $c["time_us_p99"] > 0) }' "$folder/q.csv")
[[ $order == 11 ]] || fail "p95, p99 and max are not in order: $order"
[[ $(column "$folder/q.csv" skew_ms) == "0 0 " ]] || fail "skew_ms without a skew"

# Back to back, the operations of a series have no barrier between, and every sum is checked.
rm -f "$folder/series.csv"
ends 0 "$lib/ranks.sh" 3 "$psring" bench --backend ps --sizes 4,65536 -n 3 --back-to-back --csv "$folder/series.csv"
says out "iterations follow each other without a barrier"
says out "every element equals the exact sum"
[[ $(column "$folder/series.csv" series_iters) == "10 10 " && $(column "$folder/series.csv" iters) == "30 30 " ]] ||
    fail "series of $(column "$folder/series.csv" series_iters) operations, in all $(column "$folder/series.csv" iters)"
[[ $(column "$folder/q.csv" series_iters) == "1 1 " ]] || fail "series without --back-to-back"
ends 2 "$psring" bench --backend ring --sizes 4 --back-to-back --skew 5

# With --skew ranks start at different times. The measured time begins with the last start, so it is far below the skew.
# This holds with and without a clock that all ranks share. Other processes may delay most rounds of a run: it has five
# tries. If the time began with the start of rank 0, most rounds of the odd number of ranks would be long in each try.
for ranks in 2 $((2 * $(nproc) + 1)); do
    for try in 1 2 3 4 5; do
        rm -f "$folder/skew.csv"
        ends 0 "$lib/ranks.sh" "$ranks" "$psring" bench --backend ring --sizes 4 -n 3 -w 0 --skew 700 --csv "$folder/skew.csv"
        us=$(column "$folder/skew.csv" time_us_median)
        ! awk -v us="$us" 'BEGIN { exit !(us < 200e3) }' || break
        ((try < 5)) || fail "$ranks ranks: the time contains the wait for late ranks: $us us"
    done
    says out "each worker starts up to 700 ms late"
    [[ $(column "$folder/skew.csv" skew_ms) == "700 " ]] || fail "skew_ms of $ranks ranks"
done
for option in --overlap "--require-efficiency 0.9" "--model-gradients resnet50"; do
    # shellcheck disable=SC2086  # an option and its value
    ends 2 "$psring" bench --backend none --skew 5 $option
    says err "--skew 5: found ${option%% *}"
done

# --require-efficiency: bench fails if a row is below the efficiency, or if its efficiency is unknown.
run=("$lib/ranks.sh" 3 "$psring" bench --backend ring -b 4 -e 8 -f 2 -n 3)
ends 0 "${run[@]}" --link-rate 80 --require-efficiency 0.9 --probe off
ends 1 "${run[@]}" --link-rate 100gbit --require-efficiency 0.9 --probe off
says out "every element equals the exact sum"
says err "--require-efficiency 0.9: 2 of 2 rows are below it, the lowest with 0.000 at"
ends 1 "${run[@]}" --require-efficiency 0.9
says err "--require-efficiency 0.9: the efficiency of 2 of 2 rows is not known; it takes two workers"
ends 2 "${run[@]}" --require-efficiency 0.9 --probe only
says err "--require-efficiency 0.9: found --probe only"

# Processor seconds per GB are above 0 for each backend, transport and placement. bench prints them and writes them in
# every row.
for arguments in "ring --transport tcp" "ring --transport mpi" "ps --transport zmq" "ps --placement colocated" mpi; do
    starter=ranks.sh
    [[ $arguments != *mpi ]] || starter=mpirun.sh
    # shellcheck disable=SC2086  # words
    ends 0 "$lib/$starter" 3 "$psring" bench --backend $arguments -b 4 -e 256k -f 65536 -n 3 --csv "$folder/cpu.csv"
    says out "CPU s per GB: processor seconds of all ranks"
done
seconds=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { printf "%d", ($c["cpu_s_per_gb"] > 0) }' "$folder/cpu.csv")
[[ $seconds == 1111111111 ]] || fail "cpu_s_per_gb of cpu.csv: $seconds"

# Overlap. Without --overlap compute_us is 0 and the whole time is exposed.
ends 0 "$lib/ranks.sh" 3 "$psring" bench --backend ring -b 4k -e 64k -f 16 -n 5 --overlap --csv "$folder/o.csv"
says out "exposed: what the same all-reduce adds to a computation"
ends 0 "$lib/ranks.sh" 3 "$psring" bench --backend ps -b 4k -e 4k -n 5 --overlap --csv "$folder/o.csv"
ends 0 "$lib/mpirun.sh" 2 "$psring" bench --backend mpi -b 4k -e 4k -n 5 --csv "$folder/o.csv"
hidden=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { time = $c["time_us_median"]; compute = $c["compute_us_median"]; exposed = $c["exposed_us_median"]
      print (compute == time && compute > 0) (exposed >= 0) (compute == 0 && exposed == time) }' "$folder/o.csv" | tr '\n' ' ')
[[ $hidden == "110 110 110 011 " ]] || fail "compute and exposed of o.csv: $hidden"

# --via-library writes two rows for each size, one by the comm and one by libpsring, with the same bytes.
for backend in ring rhd tree hierarchical; do
    ends 0 "$lib/ranks.sh" 3 "$psring" bench --backend $backend -b 4 -e 40k -f 100 -n 5 --via-library --csv "$folder/y.csv"
    says out "# 3 sizes; every element equals the exact sum; bytes are as in theory"
done
ends 0 "$lib/ranks.sh" 2 "$psring" bench --backend ring --transport zmq -b 4k -e 4k -n 5 --via-library --overlap --csv "$folder/y.csv"
apis=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { row = $c["backend"] $c["transport"] $c["bytes"] "/" $c["worker_sent_bytes"]
      if ($c["interface"] == "comm") was = row; else if ($c["interface"] == "library" && row == was) pairs++; else bad++ }
    END { print pairs, bad + 0 }' "$folder/y.csv")
[[ $apis == "13 0" ]] || fail "rows of libpsring in y.csv: $apis"
ends 2 "$psring" bench --backend ps --servers 1 --via-library
says err "--via-library"
ends 2 "$psring" bench --backend ring --transport mpi --via-library
says err "ranks meet without it"

# The gradients of a published model, in buckets: the total bytes equal theory, and a step computes for the given time.
run=("$psring" bench --model-gradients resnet50 -n 1 -w 1 --csv "$folder/m.csv")
ends 0 "$lib/ranks.sh" 3 "${run[@]}" --backend ring --compute-ms 30 --json "$folder/m.json"
says out "gradients of resnet50: 25557032 numbers in 161 tensors, 28 buckets; a step computes (waits) for 30 ms"
says out "1 size; every element equals the exact sum; bytes are as in theory"
says out "ms; scaling efficiency "
grep -qF '"compute-ms":' "$folder/m.json" || fail "m.json has no compute-ms"
ends 0 "$lib/ranks.sh" 3 "${run[@]}" --backend ps --compute-ms 30 --bucket-mb 0
if ((!short)); then
    ends 0 "$lib/ranks.sh" 3 "${run[@]}" --backend ps --servers 2 --placement colocated --compute-ms 0 --bucket-mb 25
    ends 0 "$lib/mpirun.sh" 2 "${run[@]}" --backend mpi --compute-ms 30
    ends 0 "$lib/ranks.sh" 2 "${run[@]}" --backend ring --compute-ms 30 --compress fp16
fi
model=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { compute = $c["compute_us_median"]; efficiency = compute / (compute + $c["exposed_us_median"])
      off = $c["scaling_efficiency"] - efficiency; backward = compute ? $c["backward_us"] / compute : 0
      print $c["model_gradients"], $c["bytes"], $c["buckets"], $c["wrong"], $c["worker_sent_bytes"], $c["server_sent_bytes"],
          compute, sprintf("%.3f", backward), (off < 1e-6 && off > -1e-6) }' "$folder/m.csv")
# In a ring of three, a worker sends 2/3 of the elements twice: 136304171 bytes, and a little more because three does
# not divide all buckets. With two colocated servers for three workers, one worker sends to two remote servers.
expected='resnet50 102228128 28 0 136304212 0 30000 0.663 1
resnet50 102228128 1 0 102228128 204456256 30000 0.663 1
resnet50 102228128 5 0 102228128 102228128 0 0.000 1
resnet50 102228128 28 0   30000 0.663 1
resnet50 102228128 28 0 51114064 0 30000 0.663 1'
((!short)) || expected=$(head -n 2 <<<"$expected")
[[ $model == "$expected" ]] || fail "m.csv: $model"
[[ $(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next } { print $c["model_gradients"] $c["buckets"] $c["scaling_efficiency"] "." }' \
    "$folder/o.csv" | sort -u) == . ]] || fail "o.csv: found values in the model's columns, expected none"
ends 2 "$psring" bench --model-gradients resnet50 -e 1m
says err "--max-bytes: --model-gradients resnet50 exchanges all gradients of the model at once"
ends 2 "$psring" bench --bucket-mb 1
says err "--bucket-mb: bench uses it only with --model-gradients"
# More ranks than the memory allows: bench refuses before it allocates.
ranks=$(awk '/^MemAvailable/ { print int($2 / (336226108 * 4 * 1.25 / 1024)) + 2 }' /proc/meminfo)
if ((ranks <= 32)); then
    ends 1 "$lib/ranks.sh" "$ranks" "$psring" bench --model-gradients bert-large --timeout 120 --startup-timeout 200
    says err "--model-gradients bert-large: $ranks ranks on the machine of $(hostname) need about"
fi

# --layers: one row for each layer, then sum and step, and a complete JSON file.
ends 0 "$lib/ranks.sh" 2 "$psring" bench --layers --model lenet --batch 8 -n 2 -w 1 \
    --csv "$folder/c.csv" --json "$folder/c.json"
says out "images/s, all ranks together"
[[ $(cut -d, -f7 "$folder/c.csv" | tr '\n' ' ') == "layer conv1 conv2 dense1 dense2 dense3 loss optimizer sum step " ]] ||
    fail "layers of c.csv: $(cut -d, -f7 "$folder/c.csv" | tr '\n' ' ')"
for text in '"compute":' '"images_per_s":' '"layers":' '"of_sgemm":' '"compiler":'; do
    grep -qF "$text" "$folder/c.json" || fail "c.json has no $text"
done

# Without -n bench chooses the number of iterations by time, the same on all ranks.
ends 0 "$lib/ranks.sh" 3 "$psring" bench --backend ps -b 4 -e 4 --csv "$folder/i.csv"
iterations=$(link "$folder/i.csv")
((${iterations##*:} >= 20 && ${iterations##*:} <= 1000)) || fail "iterations: $iterations"

# MPI_Allreduce uses the algorithm of --mpi-algorithm or of the environment. bench detects a library that uses another.
algorithms=(ring segmented default rabenseifner)
algorithms=("${algorithms[@]:short * 2}")
for algorithm in "${algorithms[@]}"; do
    ends 0 "$lib/mpirun.sh" 3 "$psring" bench --backend mpi --mpi-algorithm "$algorithm" -b 1m -e 1m -n 2 \
        --csv "$folder/mpi.csv"
    says out "# psring bench: mpi, algorithm $algorithm, transport none"
done
OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_allreduce_algorithm=3 \
    ends 0 "$lib/mpirun.sh" 2 "$psring" bench --backend mpi -b 1k -e 1k -n 2 --csv "$folder/mpi.csv"
ends 0 "$lib/mpirun.sh" 2 "$psring" bench --backend ring -b 1k -e 1k -n 2 --csv "$folder/mpi.csv"
found=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { printf "%s %s,", $c["backend"], $c["mpi_algorithm"] }' "$folder/mpi.csv")
[[ $found == "$(printf 'mpi %s,' "${algorithms[@]}")mpi recursive-doubling,ring ," ]] ||
    fail "algorithms of mpi.csv: $found"
OMPI_MCA_coll=^tuned ends 1 "$lib/mpirun.sh" 2 "$psring" bench --backend mpi --mpi-algorithm ring -b 1k -e 1k -n 2
says err "--mpi-algorithm ring: this MPI library uses default instead"

# Impossible requests: one error, before any measurement.
ends 2 "$psring" bench --backend none -b 8k -e 4k
says err "-e 4096"
says_once() { (($(grep -cF -- "$2" "$folder/$1") == 1)) || fail "$1: expected this text once: $2"; }
ends 2 "$lib/mpirun.sh" 2 "$psring" bench --backend none
says_once err "averages nothing, and 2 processes were started"
ends 2 "$lib/mpirun.sh" 2 "$psring" bench --backend ps --servers 3 --placement colocated
says_once err "at most one server per worker"
ends 2 "$lib/mpirun.sh" 2 "$psring" bench --json -
says_once err "--json -"
ends 1 "$psring" bench --backend none --csv /nowhere/x.csv
says err "/nowhere/x.csv"
for command in info "bench --backend none -e 1k" --help --manual --version; do
    # shellcheck disable=SC2086  # several words
    ! "$psring" $command >/dev/full 2>"$folder/err" || fail "a full disk: $command: exit code 0, expected an error"
    says err "standard output"
done
echo "other,columns" >"$folder/other.csv"
ends 1 "$psring" bench --backend none --csv "$folder/other.csv"
[[ $(cat "$folder/other.csv") == "other,columns" ]] || fail "other.csv: bench changed a file with other columns"

# A rank is killed during a long sweep: all ranks end, and the finished rows remain.
# shellcheck disable=SC2016  # expanded by every rank
"$lib/mpirun.sh" 3 bash -c 'echo $$ >"$0/pid.$OMPI_COMM_WORLD_RANK"; exec "$@"' "$folder" \
    "$psring" bench --backend ring -b 4 -e 256m -f 2 -n 2000 -w 0 --csv "$folder/k.csv" \
    --timeout 5 >"$folder/out" 2>"$folder/err" &
job=$!
has_rows() { (($(wc -l <"$folder/k.csv") >= 3)); }
within has_rows || fail "no rows of the long sweep"
kill -KILL "$(<"$folder/pid.2")"
code=0
wait "$job" || code=$?
[[ $code != 0 && $code != 124 ]] || fail "a killed rank: exit code $code, expected an error other than 124"
[[ $(sed -n 2,3p "$folder/k.csv" | cut -d, -f8 | xargs) == "4 8" && $(tail -c 1 "$folder/k.csv") == "" ]] ||
    fail "a killed rank: finished rows are missing"
is_gone() { ! kill -0 "$1"; }
for rank in 0 1; do
    within is_gone "$(<"$folder/pid.$rank")" || fail "rank $rank still runs after the killed one"
done

# info prints a table for readers, or only JSON for programs.
ends 0 "$psring" info --json "$folder/info.json"
says out "[X] ring"
grep -qF '"backends"' "$folder/info.json" || fail "info.json has no backends"
mkdir "$folder/"$'caf\xe9'
ends 0 env "PSRING_DATA=$folder/"$'caf\xe9' "$psring" info --json "$folder/latin.json"
iconv -f UTF-8 -t UTF-8 "$folder/latin.json" >/dev/null || fail "info --json is no UTF-8 with a path in Latin-1"
ends 0 "$psring" info --json -
[[ $(head -c 1 "$folder/out") == "{" && $(tail -n 1 "$folder/out") == "}" ]] ||
    fail "info --json - prints more than JSON"
echo "test_bench: files, messages and exit codes are right"
