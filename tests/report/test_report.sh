#!/usr/bin/env bash
# test_report.sh: psring report makes one self-contained page of a run. The run here is synthetic; test_page.sh uses the
# page of a real run in a browser.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
dir=$folder/run
mkdir "$dir"

report()
{
    "$psring" report "$dir" >"$folder/output" 2>&1
}

# has PERL: runs PERL with the page as $_ and its data as $d.
has()
{
    perl -MJSON::PP -0777 -ne 'my ($json) = /<script type="application\/json" id="data">(.*?)<\/script>/s or die "no data";
        my $d = decode_json($json);
        sub rows { my $t = $d->{tables}{$_[0]} or return (); return @$t if ref $t eq "ARRAY"; map { my $r = $_; my %h; @h{@{$t->{columns}}} = @$r; \%h } @{$t->{rows}} }
        '"$1" "$dir/report.html" >"$folder/output" 2>&1
}

# refuses EXIT-CODE WORDS ARGUMENT...
refuses()
{
    local code=$1 words=$2 status=0
    shift 2
    "$psring" report "$@" >"$folder/output" 2>&1 || status=$?
    [[ $status == "$code" ]] && grep -q "$words" "$folder/output"
}
expect 'a folder is needed' refuses 2 'expected one folder'
expect 'one only' refuses 2 'expected one folder' "$dir" "$dir"
expect 'one that a run has left' refuses 1 'has no bench.csv' "$dir"
expect '--help' "$psring" report --help

# Two probes agree, one was disturbed: all rows are compared with their median. The ring has two starts.
cat >"$dir/bench.csv" <<'CSV'
backend,transport,device,network,workers,servers,placement,bytes,iters,time_us_median,time_us_median_low,time_us_median_high,link_bytes_per_s,efficiency,theory_time_us,link_source,mpi_algorithm,cpu_busy,wrong,further
ring,tcp,cpu,vcluster:800mbit,4,0,none,4799528,7,80000,79000,81000,100000000,0.9,71993,probe,,0.9,0,x
ps,zmq,cpu,vcluster:800mbit,4,1,dedicated,4799528,7,240000,239000,241000,50000000,0.6,383962,probe,,0.5,0,x
rhd,tcp,cpu,vcluster:800mbit,4,0,none,4799528,7,82000,81000,83000,100000000,0.88,71993,probe,,0.5,0,x
mpi,none,cpu,vcluster:800mbit,4,0,none,4799528,7,99000,98000,99900,,,,,segmented,0.5,0,x
mpi,none,cpu,vcluster:800mbit,4,0,none,4799528,7,99900,98000,99900,,,,,ring,0.5,0,x
ring,zmq,cpu,vcluster:800mbit,4,0,none,4799528,7,80000,79000,81000,100000000,0.9,71993,probe,,0.5,0,x
ring,tcp,cpu,vcluster:800mbit,4,0,none,4799528,7,80200,79000,82000,100000000,0.9,71993,probe,,0.5,0,x
ps,zmq,cpu,vcluster:800mbit,4,1,dedicated,4799528,7,241000,240000,242000,100000000,0.3,191981,probe,,0.5,0,x
ps,zmq,cpu,vcluster:800mbit,4,4,dedicated,4799528,7,56000,55000,57000,100000000,1.2,48000,probe,,0.5,0,x
ps,zmq,cpu,vcluster:800mbit,4,4,dedicated,4799528,7,56100,55000,57000,100000000,1.2,48000,probe,,0.5,0,x
CSV
expect 'of bench.csv alone' report
# shellcheck disable=SC2016 # perl's, here and below
expect 'its points are judged and typed, without variants, of MPI the fastest' has 'my @r = rows("bench");
    die "rows: " . encode_json(\@r) unless @r == 5 && $r[0]{backend} eq "ring" && $r[0]{bytes} == 4799528 && $r[0]{starts} == 2 && $r[0]{time_us_median} == 80100 &&
        $r[0]{state} eq "CPU-limited" && $r[1]{state} eq "exact" && $r[2]{state} eq "single start" && "@{$r[1]{series}}" eq "1" && $r[3]{who} eq "mpi segmented" && $r[4]{name} eq "W servers" && join(" ", map { $_->{doubtful} ? 1 : 0 } @r) eq "1 1 0 0 0" && $r[1]{unsteady} =~ /^its probe found/ && $d->{names}{4} eq "W servers" && !defined $r[3]{efficiency}'
# shellcheck disable=SC2016
expect 'one rate for all' has 'my @r = rows("bench");
    die "rate" unless $d->{link_bytes_per_s} == 100000000;
    die "disturbed" unless abs($r[1]{theory_time_us} - 191981) < 1e-6'
# shellcheck disable=SC2016
expect 'what is not there has no place' has 'die $1 if /<figure data-chart="(throughput|consistency|predict|simulate)"/ || /id="(animation)"/ || /<h2>(What was run)/; die "place" if /\{\{/'
# shellcheck disable=SC2016
expect 'models have the sizes of their gradients' has 'my %m = map { $_->[0] => $_->[1] } @{$d->{models}};
    die "sizes" unless $m{"keras-cnn"} == 4799528 && $m{resnet50} == 102228128 && $m{vgg16} == 553430176'

# All files, with words that would end an element or a line of a script.
odd="</script><script>alert(1)</script> a <b> & \"c\" $(printf '\xe2\x80\xa8')"
cp "$dir/bench.csv" "$folder/bench.csv"
network=${odd//\"/\"\"}
awk -F , -v OFS=, -v network="\"$network\"" 'NR > 1 { $4 = network } 1' "$folder/bench.csv" >"$dir/bench.csv"
in_json=${odd//\"/\\\"}
printf '{"command": "%s", "cores": 2, "list": [1]}\n' "$in_json" >"$dir/provenance.json"
echo '<svg xmlns="http://www.w3.org/2000/svg" id="x"></svg>' >"$dir/time_vs_workers.svg"
printf 'mode,straggler,seconds,target_reached\n%s,none,45,1\n' "</script>" >"$dir/consistency.csv"
printf 'backend,transport,use,error\nring,tcp,fitted,0.01\n' >"$dir/predict.csv"
printf '%s\n' backend,network,workers,wrong,worker_sent_bytes,theory_worker_sent_bytes ring,simulated:flat,1024,0,8,8 \
    ring,simulated:flat,512,2,8,8 ring,simulated:flat,256,0,8,9 >"$dir/simulate.csv"
echo '{"models": [{"transport": "tcp"}]}' >"$dir/model.json"
event() { printf '{"ph":"%s","pid":%s,"tid":1,"ts":%s,%s},\n' "$@"; }
{
    echo '{"displayTimeUnit":"ms","otherData":{"program":"psring"},"traceEvents":['
    for rank in 0 1; do
        event M $rank 0 '"name":"psring_rank","args":{"worker":true,"in_step":true}'
        event X $rank 5 '"dur":90,"name":"step","cat":"step","args":{"step":0}'
        event X $rank 100 '"dur":900,"name":"step","cat":"step","args":{"step":1}'
    done
    # Two messages of one pair with the same send time, one in the other direction, and one alone in the previous step.
    for message in "00 200 300 64" "01 201 400 32" "10 250 350 8" "03 10 20 4"; do
        read -r id sent received bytes <<<"$message"
        flow="\"id\":\"$id\",\"name\":\"message\",\"cat\":\"message\",\"args\":{\"bytes\":$bytes}"
        event s "${id:0:1}" "$sent" "$flow"
        event f "$((1 - ${id:0:1}))" "$received" "$flow"
    done
    echo '{"ph":"M","pid":0,"name":"psring_end","args":{}}]}'
} >"$dir/trace-ring.json"
expect 'of all files' report
expect 'simulations that are wrong are left out' grep -q 'simulate.csv: 2 rows left out' "$folder/output"
# shellcheck disable=SC2016
expect 'the page needs nothing else' has 'my %seen; my ($html) = /^(.*?)<script type/s;
    $seen{$1}++ while $html =~ /\bid="([^"]+)/g;
    die "id twice: $_" for grep { $seen{$_} > 1 } keys %seen;
    die "elsewhere" if /(src|href)=["\x27](?!data:)/ || /url\(/ || /import /;
    die "requests are allowed" unless /Content-Security-Policy" content="default-src .none.;/;
    die "no DOCTYPE" unless /^<!DOCTYPE html>/'
# shellcheck disable=SC2016
expect 'claim, answer and tables' has 'my ($claim) = /<section class="claim".*?>(.*?)<\/section>/s;
    die "claim: $claim" unless $claim =~ /The ring took 80\.1 ms.*<p>1 server: .*3\.00.*<p>W servers: .*0\.70/s;
    die "answer" unless /<li>1 server: 3\.00 times the ring.s time, without a verdict \(not steady\)/ && /<p>Theory: the ring/;
    die "tables" unless /1\. One all-reduce: time/'
# shellcheck disable=SC2016
expect 'predictions name their rows' has 'die "basis" unless /Fitted rows: tcp 1\. Held out, only predicted: 0\. No verdict rests on fewer than 6 rows\./'
# shellcheck disable=SC2016
expect 'no text becomes markup' has 'die "scripts" unless 2 == (() = /<script/g) && 2 == (() = /<\/script>/g);
    die "escapes" unless /&lt;script&gt;alert\(1\)&lt;\/script&gt; a &lt;b&gt; &amp; &quot;c&quot;/;
    die "json" if $json =~ /</ || $json =~ /\xe2\x80\xa8/; die "lost" unless (rows("consistency"))[0]{mode} eq "</script>"'
# shellcheck disable=SC2016
expect 'figures are pictures with words' has 'my ($alt, $n) = ("", 0);
    while (/<img src="data:image\/svg\+xml;base64,([A-Za-z0-9+\/=]+)" alt="([^"]+)">/g) { use MIME::Base64; $n++; die "picture" unless decode_base64($1) =~ /^<svg .*<\/svg>\n$/s }
    die "pictures: $n" unless $n == 1'
# shellcheck disable=SC2016
expect 'all data' has 'die "tables" unless rows("predict") == 1 && rows("simulate") == 1 && (rows("simulate"))[0]{series}[0] == 10 && $d->{model}{models}[0]{transport} eq "tcp";
    for my $chart (qw(consistency predict simulate)) { die $chart unless /data-chart="$chart"/ }'
# The second message of a pair begins when the first has arrived. The clock starts with the first message.
# shellcheck disable=SC2016
expect 'the replay' has 'my $r = $d->{replays}; die "replays" unless @$r == 1 && $r->[0]{name} eq "ring" && $r->[0]{end_us} == 200;
    die encode_json($r) unless encode_json($r->[0]{messages}) eq "[[0,1,0,100,64,1],[0,1,100,200,32,1],[1,0,50,150,8,1]]"'

# gnuplot's figures and the page have the same colours.
# shellcheck disable=SC2016
expect 'one palette' bash -c 'for colour in $(grep "^array COLOUR" "$1/style.gp" | grep -o "#[0-9A-F]*"); do grep -q -- "--series-[0-9]*: $colour;" "$1/report/palette.css" || exit 1; done' - "$root/plots"

# Wrong sums: the page starts with that and shows no time, although the folder has figures and a model.
mkdir "$folder/wrong"
sed '2s/,0,x$/,3,x/' "$folder/bench.csv" >"$folder/wrong/bench.csv"
cp "$dir"/{time_vs_workers.svg,predict.csv,trace-ring.json,model.json} "$folder/wrong"
says_wrong()
{
    refuses 1 'the results are WRONG' "$folder/wrong" && refuses 1 'the results are WRONG' --text "$folder/wrong"
}
expect 'wrong sums end with 1' says_wrong
# shellcheck disable=SC2016
expect 'the page of a run with wrong sums shows no time' perl -MJSON::PP -0777 -ne 'my ($main) = /<main>(.*?)<\/main>/s or die "main"; my ($json) = /id="data">(.*?)<\/script>/s;
    die "opens with: " . substr($main, 0, 300) unless $main =~ /^\s*<p class="warning" id="loopback" hidden>[^\n]*\n<p class="warning wrong" role="alert">WRONG: 3 elements differ/;
    die "a time: $1" if $main =~ /(\d[\d.]* (?:ms|us|s)\b)/ || $main =~ /(faster|slower|<img|data-chart|calculator)/;
    my $t = decode_json($json); die "data: " . join " ", keys %{$t->{tables}} if %{$t->{tables}} || $t->{model} || $t->{replays}' "$folder/wrong/report.html"
no_figure()
{
    mkdir "$folder/drawn" && "$psring" report --figures "$folder/drawn" "$folder/wrong" && [[ ! -s $folder/drawn/points.txt && ! -s $folder/drawn/processors.txt ]]
}
expect 'no figure has its times' no_figure

# Two runs; the first is of a version without the column hosts. Rows are faster, have overlapping intervals, no
# intervals, one start, or exist in one run only.
mkdir "$folder/before" "$folder/after"
header=backend,transport,workers,servers,placement,bytes,iters,time_us_median,time_us_median_low,time_us_median_high
# runs FOLDER HEADER END ROW...: each row twice, but those that begin with "once ", the second 0.1 us later.
runs()
{
    local to=$1/bench.csv start row
    echo "$2" >"$to"
    for start in 0 0.1; do
        for row in "${@:4}"; do
            [[ $row != once* || $start == 0 ]] || continue
            awk -F , -v OFS=, -v later=$start -v end="$3" '{ $8 += later; print $0 end }' <<<"${row#once }"
        done
    done >>"$to"
}
runs "$folder/before" "$header" '' 'ring,tcp,4,0,none,1000,7,100,99,101' 'rhd,tcp,4,0,none,1000,7,100,90,110' 'ps,zmq,4,1,dedicated,1000,7,300,,' \
    'once ps,zmq,4,2,dedicated,1000,7,300,299,301' 'ps,zmq,4,3,dedicated,1000,5,300,299,301' 'ring,tcp,8,0,none,1000,7,9,8,10'
runs "$folder/after" "$header,hosts" ,4 'ring,tcp,4,0,none,1000,7,80,79,81' 'rhd,tcp,4,0,none,1000,7,105,95,115' 'ps,zmq,4,1,dedicated,1000,7,270,,' \
    'once ps,zmq,4,2,dedicated,1000,7,240,239,241' 'ps,zmq,4,3,dedicated,1000,5,200,199,201' 'ring,tcp,2,0,none,1000,7,9,8,10'
compares()
{
    "$psring" compare "$folder/before" "$folder/after" >"$folder/output" 2>&1 &&
        grep -qE '^ring over tcp +4 +1000 +2, 2 +100\.0 +80\.0   0\.800 \(0\.7[78][0-9] to 0\.8[12][0-9]\), faster$' "$folder/output" &&
        grep -qE '^rhd over tcp +4 +1000 +2, 2 +100\.0 +105\.0   no difference$' "$folder/output" &&
        grep -qE '^ps over zmq, 1 dedicated .* \(0\.900\), no verdict: fewer than six iterations$' "$folder/output" &&
        grep -qE '^ps over zmq, 2 dedicated .* 1, 1 +300\.0 +240\.0   \(0\.800\), no verdict: only one start$' "$folder/output" &&
        grep -qE '^ps over zmq, 3 dedicated .* no verdict: fewer than six iterations$' "$folder/output" &&
        grep -q '^5 all-reduces are in both: 1 faster, 0 slower, 1 without a difference, 3 without a verdict. Geometric mean of the ratios: 0.8' "$folder/output"
}
expect 'two runs compared' compares
# shellcheck disable=SC2016
expect 'as a page' perl -MJSON::PP -0777 -ne 'my ($json) = /<script type="application\/json" id="data">(.*?)<\/script>/s or die "no data"; my $p = decode_json($json)->{pairs};
    die "pairs" unless @$p == 5 && $p->[0]{differs} && !$p->[1]{differs} && !defined $p->[2]{low} && !$p->[3]{differs};
    die "words" unless /rhd over tcp +4 +1000 +2, 2 +100\.0 +105\.0   no difference/ && !/\{\{/' "$folder/after/compare.html"
# Wrong sums and a busy machine: a program that adds nothing is fast.
mkdir "$folder/broken"
sed '1s/$/,wrong,cpu_busy,cpu_other/; 2s/$/,1000,0.5,0/; 3s/$/,0,0.9,0.01/; 4,$s/$/,0,0.95,0.3/' "$folder/after/bench.csv" >"$folder/broken/bench.csv"
tells_wrong()
{
    local status=0
    "$psring" compare "$folder/before" "$folder/broken" >"$folder/output" 2>&1 || status=$?
    ((status == 1)) && grep -qE '^ring over tcp +4 +1000 +2, 2 +100\.0 +-   WRONG sums$' "$folder/output" &&
        grep -q '^WRONG: sums of 1 all-reduce are not exact\. 5 all-reduces are in both: 0 faster, ' "$folder/output" &&
        grep -q '^rhd over tcp .*; CPU-limited' "$folder/output" && grep -q '^ps over zmq, 1 .*; the machine was busy with other work$' "$folder/output" &&
        grep -q 'WRONG: sums of 1 all-reduce' "$folder/broken/compare.html" && ! grep -q 'faster$' "$folder/output"
}
expect 'wrong sums are compared with nothing' tells_wrong
# A wrong row that only one run has, before or after, and then one that is all a run has.
mkdir "$folder/alone"
sed '1s/$/,wrong/; 2,$s/$/,0/; s/^\(ring,tcp,2,.*\),0$/\1,9/' "$folder/after/bench.csv" >"$folder/alone/bench.csv"
wrong_alone() # BEFORE AFTER WHERE
{
    local status=0
    "$psring" compare "$1" "$2" >"$folder/output" 2>&1 || status=$?
    ((status == 1)) && (($(grep -c 'WRONG sums' "$folder/output") == 2)) && grep -q '^WRONG: sums of 1 all-reduce ' "$folder/output" &&
        grep -qE "^ring over tcp.* 2 +1000 .* WRONG sums $3, not compared$" "$folder/output"
}
expect 'wrong sums that are only in the run after' wrong_alone "$folder/before" "$folder/alone" after
expect 'wrong sums that are only in the run before' wrong_alone "$folder/alone" "$folder/before" before
sed -i '/^ring,tcp,2,\|^backend/!d' "$folder/alone/bench.csv"
expect 'wrong sums, and nothing in common' wrong_alone "$folder/before" "$folder/alone" after
same_folder_only()
{
    local status=0
    "$psring" compare "$folder/before" >"$folder/output" 2>&1 || status=$?
    ((status == 2)) && grep -q 'expected two folders' "$folder/output"
}
expect 'two folders are needed' same_folder_only
# Two networks, two orders of neighbours, and a difference that three digits would hide. Then the order of the first run
# is unknown, so two rows of the other run match.
mkdir "$folder/one" "$folder/two"
ordered=$header,hosts,inter_host_hops,network
runs "$folder/one" "$ordered" '' 'ring,tcp,8,0,none,1000,7,1000,999.9,1000.1,4,4,net-a' 'ring,tcp,8,0,none,1000,7,2000,1990,2010,4,8,net-a' \
    'ring,tcp,4,0,none,1000,7,500,490,510,4,4,net-a'
runs "$folder/two" "$ordered" '' 'ring,tcp,8,0,none,1000,7,1010,1008,1012,4,4,net-b' 'ring,tcp,8,0,none,1000,7,2200,2190,2210,4,8,net-b' \
    'ring,tcp,4,0,none,1000,7,500,490,510,4,4,net-b'
compares_networks()
{
    "$psring" compare "$folder/one" "$folder/two" >"$folder/output" 2>&1 &&
        grep -q '^Different networks: before net-a; after net-b\. ' "$folder/output" &&
        grep -qE '^ring over tcp, 4 hosts +8 +1000 +2, 2 .* 1\.010 \(1\.00[0-9]+ to 1\.01[0-9]+\), slower$' "$folder/output" &&
        grep -qE '^ring over tcp, 4 hosts, worst order +8 +1000 +2, 2 .* 1\.100 \(.*\), slower$' "$folder/output" &&
        grep -q '^3 all-reduces are in both: 0 faster, 2 slower, 1 without' "$folder/output" &&
        grep -q 'Different networks: before net-a' "$folder/two/compare.html"
}
expect 'two networks, two orders' compares_networks
cut -d, -f1-11,13 "$folder/one/bench.csv" | sed 's/net-a/net-b/' >"$folder/unordered" && mv "$folder/unordered" "$folder/one/bench.csv"
leaves_out()
{
    "$psring" compare "$folder/one" "$folder/two" >"$folder/output" 2>&1 && ! grep -q '^Different networks' "$folder/output" &&
        grep -q '^1 all-reduce is in both: .* Left out: 2 that only one run distinguishes' "$folder/output"
}
expect 'what one run does not tell apart' leaves_out
# A skew is part of the configuration. In a run of a version without the column all ranks started together.
mkdir "$folder/together" "$folder/apart"
runs "$folder/together" "$header" '' 'ring,tcp,4,0,none,1000,7,100,99,101'
runs "$folder/apart" "$header,skew_ms" ',5' 'ring,tcp,4,0,none,1000,7,80,79,81'
none_apart()
{
    ! "$psring" compare "$folder/together" "$folder/apart" >"$folder/output" 2>&1 && grep -q 'no common all-reduce of one kind and size' "$folder/output" &&
        "$psring" compare "$folder/apart" "$folder/apart" >"$folder/output" 2>&1 && grep -q '^ring over tcp, skew 5 ms ' "$folder/output" &&
        sed 's/,5$/,0/' "$folder/apart/bench.csv" >"$folder/alike" && mv "$folder/alike" "$folder/apart/bench.csv" &&
        "$psring" compare "$folder/together" "$folder/apart" >"$folder/output" 2>&1 && grep -q '^1 all-reduce is in both' "$folder/output"
}
expect 'ranks that started apart' none_apart
# A series without barriers and a radix are part of it, too.
differs() # COLUMN VALUE WORDS
{
    local run=$folder/$1
    mkdir "$run"
    runs "$run" "$header,$1" ",$2" 'ring,tcp,4,0,none,1000,7,80,79,81'
    ! "$psring" compare "$folder/together" "$run" >"$folder/output" 2>&1 && grep -q 'no common all-reduce of one kind and size' "$folder/output" &&
        "$psring" compare "$run" "$run" >"$folder/output" 2>&1 && grep -q "^ring over tcp, $3 " "$folder/output"
}
expect 'operations back to back' differs series_iters 10 'back to back'
expect 'another radix' differs radix 4 'radix 4'
sed -i '3,$d; 2s/ring/mpi/' "$folder/after/bench.csv"
nothing_in_common()
{
    ! "$psring" compare "$folder/before" "$folder/after" >"$folder/output" 2>&1 && grep -q 'no common all-reduce of one kind and size' "$folder/output"
}
expect 'nothing in common' nothing_in_common

echo 'ring,tcp' >>"$dir/bench.csv"
expect 'a row that is cut off' refuses 1 'line 12 has 2 fields, expected 20' "$dir"
sed -i '$d' "$dir/bench.csv"
# A file that a failed run has truncated costs its part of the page, with a warning that names it.
without()
{
    local file=$1 text=$2 kept
    kept=$(cat "$dir/$file" && echo .)
    printf '%s' "$text" >"$dir/$file"
    rm -f "$dir/report.html"
    report && grep -q "$file: damaged or cut off; the report is without" "$folder/output" && has "$3" || return 1
    printf '%s' "${kept%.}" >"$dir/$file"
}
# shellcheck disable=SC2016
no_facts='die if /<h2>What was run/; die "bench" unless rows("bench") == 5'
expect 'a provenance.json that is none' without provenance.json '{' "$no_facts"
expect 'a provenance.json of numbers' without provenance.json '[1, "two"]' "$no_facts"
# shellcheck disable=SC2016
expect 'a model.json that is cut off' without model.json '{"models": [' 'die if exists $d->{model}'
# shellcheck disable=SC2016
expect 'a model.json that is a list' without model.json '[1]' 'die if exists $d->{model}'
# shellcheck disable=SC2016
expect 'an empty recording' without trace-ring.json '' 'die if exists $d->{replays} || /id="animation"/'
# shellcheck disable=SC2016
expect 'a recording that is cut off' without trace-ring.json "$(head -c 900 "$dir/trace-ring.json")" 'die if exists $d->{replays}'
# shellcheck disable=SC2016
expect 'a predict.csv that is cut off' without predict.csv $'backend,use,error\nring,fit' 'die if rows("predict") || /data-chart="predict"/'
expect 'with all of them again' report
# shellcheck disable=SC2016
expect 'all is there' has 'die unless exists $d->{replays} && exists $d->{model} && rows("predict") && /<h2>What was run/'

# A page that cannot be written leaves no partial file.
nothing_half()
{
    rm "$dir/report.html"
    mkdir "$dir/report.html"
    refuses 1 'report.html: cannot be written' "$dir" && [[ ! -e $dir/report.html.part ]] && rmdir "$dir/report.html"
}
expect 'what cannot be written leaves nothing' nothing_half

all_passed
