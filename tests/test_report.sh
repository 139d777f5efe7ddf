#!/usr/bin/env bash
# test_report.sh PSRING: psring report makes of what a run has left one page that needs nothing else. The run here is
# made up; test_page.sh uses the page of a real one in a browser.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
psring=$1
dir=$folder/run
mkdir "$dir"

report()
{
    "$psring" report "$dir" >"$folder/output" 2>&1
}

# has PERL: of the page as $_ and its data as $d.
has()
{
    perl -MJSON::PP -0777 -ne 'my ($json) = /<script type="application\/json" id="data">(.*?)<\/script>/s or die "no data";
        my $d = decode_json($json);
        sub rows { my $t = $d->{tables}{$_[0]} or return (); map { my $r = $_; my %h; @h{@{$t->{columns}}} = @$r; \%h } @{$t->{rows}} }
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

# Two probes agree, one was disturbed: all rows are held against their median.
cat >"$dir/bench.csv" <<'CSV'
backend,transport,device,network,workers,servers,placement,bytes,time_us_median,link_bytes_per_s,efficiency,theory_time_us,link_source,mpi_algorithm,further
ring,tcp,cpu,vcluster:800mbit,4,0,none,4799528,80000,100000000,0.9,71993,probe,,x
ps,zmq,cpu,vcluster:800mbit,4,1,dedicated,4799528,240000,50000000,0.6,383962,probe,,x
rhd,tcp,cpu,vcluster:800mbit,4,0,none,4799528,82000,100000000,0.88,71993,probe,,x
mpi,none,cpu,vcluster:800mbit,4,0,none,4799528,99000,,,,,segmented,x
CSV
expect 'of bench.csv alone' report
# shellcheck disable=SC2016 # perl's, here and below
expect 'its rows are typed' has 'my @r = rows("bench");
    die "rows" unless @r == 4 && $r[0]{backend} eq "ring" && $r[0]{bytes} == 4799528 && !defined $r[3]{efficiency} && $r[3]{mpi_algorithm} eq "segmented";
    die "types" unless $json =~ /"ring","tcp","cpu","vcluster:800mbit",4,0,"none",4799528,80000,null,null,71993,/;
    die "a column that nothing draws" if exists $r[0]{further}'
# shellcheck disable=SC2016
expect 'one rate for all' has 'my @r = rows("bench");
    die "rate" unless $d->{link_bytes_per_s} == 100000000 && $r[0]{efficiency} == 0.9;
    die "disturbed" unless abs($r[1]{efficiency} - 0.3) < 1e-9 && abs($r[1]{theory_time_us} - 191981) < 1e-6'
# shellcheck disable=SC2016
expect 'what is not there has no place' has 'die $1 if /<figure data-chart="(throughput|consistency|predict|simulate)"/ || /id="(animation)"/ || /<h2>(Tables|What was run)/; die "place" if /\{\{/'
# shellcheck disable=SC2016
expect 'models have the sizes of their gradients' has 'my %m = map { $_->[0] => $_->[1] } @{$d->{models}};
    die "sizes" unless $m{"keras-cnn"} == 4799528 && $m{resnet50} == 102228128 && $m{vgg16} == 553430176'

# Everything, with words that would end an element or a line of a script.
odd="</script><script>alert(1)</script> a <b> & \"c\" $(printf '\xe2\x80\xa8')"
printf '%s\n' 'psring: parameter server against ring all-reduce' "network=$odd" '' 'The answer' '' '  4 workers. The ring took 80 ms, 90%' \
    '  of the best.' '  - One parameter server on a machine of its own: slower than the ring, 3.00 times its time.' \
    '  - As many servers as workers: faster than the ring, 0.70 times its time.' '  Theory: so.' '' '1. One all-reduce' '   a < b' >"$dir/summary.txt"
in_json=${odd//\"/\\\"}
printf '{"command": "%s", "cores": 2, "list": [1]}\n' "$in_json" >"$dir/provenance.json"
echo '<svg xmlns="http://www.w3.org/2000/svg" id="x"></svg>' >"$dir/time_vs_workers.svg"
printf 'mode,straggler,seconds\n%s,none,45\n' "</script>" >"$dir/consistency.csv"
printf 'backend,use,error\nring,fitted,0.01\n' >"$dir/predict.csv"
printf 'backend,network,workers\nring,simulated:flat,1024\n' >"$dir/simulate.csv"
echo '{"models": [{"transport": "tcp"}]}' >"$dir/model.json"
event() { printf '{"ph":"%s","pid":%s,"tid":1,"ts":%s,%s},\n' "$@"; }
{
    echo '{"displayTimeUnit":"ms","otherData":{"program":"psring"},"traceEvents":['
    for rank in 0 1; do
        event M $rank 0 '"name":"psring_rank","args":{"worker":true,"in_step":true}'
        event X $rank 5 '"dur":90,"name":"step","cat":"step","args":{"step":0}'
        event X $rank 100 '"dur":900,"name":"step","cat":"step","args":{"step":1}'
    done
    # Two messages of one pair, handed over together; one the other way; one alone in the step before.
    for message in "00 200 300 64" "01 201 400 32" "10 250 350 8" "03 10 20 4"; do
        read -r id sent received bytes <<<"$message"
        flow="\"id\":\"$id\",\"name\":\"message\",\"cat\":\"message\",\"args\":{\"bytes\":$bytes}"
        event s "${id:0:1}" "$sent" "$flow"
        event f "$((1 - ${id:0:1}))" "$received" "$flow"
    done
    echo '{"ph":"M","pid":0,"name":"psring_end","args":{}}]}'
} >"$dir/trace-ring.json"
expect 'of all files' report
# shellcheck disable=SC2016
expect 'the page needs nothing else' has 'my %seen; my ($html) = /^(.*?)<script type/s;
    $seen{$1}++ while $html =~ /\bid="([^"]+)/g;
    die "id twice: $_" for grep { $seen{$_} > 1 } keys %seen;
    die "elsewhere" if /(src|href)=["\x27](?!data:)/ || /url\(/ || /import /;
    die "requests are allowed" unless /Content-Security-Policy" content="default-src .none.;/;
    die "no DOCTYPE" unless /^<!DOCTYPE html>/'
# shellcheck disable=SC2016
expect 'claim, answer and tables' has 'my ($claim) = /<section class="claim".*?>(.*?)<\/section>/s;
    die "claim: $claim" unless $claim =~ /The ring took 80 ms.*<p>One parameter server.*3\.00.*<p>As many servers.*0\.70/s;
    die "answer" unless /<li>One parameter server on a machine of its own: slower/ && /<p>Theory: so\./;
    die "tables" unless /1\. One all-reduce\n   a &lt; b/'
# shellcheck disable=SC2016
expect 'no text becomes markup' has 'die "scripts" unless 2 == (() = /<script/g) && 2 == (() = /<\/script>/g);
    die "escapes" unless /&lt;script&gt;alert\(1\)&lt;\/script&gt; a &lt;b&gt; &amp; &quot;c&quot;/;
    die "json" if $json =~ /</ || $json =~ /\xe2\x80\xa8/; die "lost" unless (rows("consistency"))[0]{mode} eq "</script>"'
# shellcheck disable=SC2016
expect 'figures are pictures with words' has 'my ($alt, $n) = ("", 0);
    while (/<img src="data:image\/svg\+xml;base64,([A-Za-z0-9+\/=]+)" alt="([^"]+)">/g) { use MIME::Base64; $n++; die "picture" unless decode_base64($1) =~ /^<svg .*<\/svg>\n$/s }
    die "pictures: $n" unless $n == 1'
# shellcheck disable=SC2016
expect 'all data' has 'die "tables" unless rows("predict") == 1 && rows("simulate") == 1 && $d->{model}{models}[0]{transport} eq "tcp";
    for my $chart (qw(consistency predict simulate)) { die $chart unless /data-chart="$chart"/ }'
# The second of a pair begins when the first has arrived; the clock begins with the first.
# shellcheck disable=SC2016
expect 'the replay' has 'my $r = $d->{replays}; die "replays" unless @$r == 1 && $r->[0]{name} eq "ring" && $r->[0]{end_us} == 200;
    die encode_json($r) unless encode_json($r->[0]{messages}) eq "[[0,1,0,100,64,1],[0,1,100,200,32,1],[1,0,50,150,8,1]]"'

# The colours of gnuplot's figures are the page's.
# shellcheck disable=SC2016 # the inner shell's
expect 'one palette' bash -c 'for colour in $(grep "^array COLOUR" "$1/style.gp" | grep -o "#[0-9A-F]*"); do grep -q -- "--series-[0-9]*: $colour;" "$1/report/palette.css" || exit 1; done' - "$root/plots"

# Two runs, the first of a version without the column hosts: 20% less time, intervals that overlap, a row without intervals, and one that is in one run only.
mkdir "$folder/before" "$folder/after"
header=backend,transport,workers,servers,placement,bytes,time_us_median,time_us_median_low,time_us_median_high
printf '%s\n' "$header" 'ring,tcp,4,0,none,1000,100,99,101' 'rhd,tcp,4,0,none,1000,100,90,110' 'ps,zmq,4,1,dedicated,1000,300,,' 'ps,zmq,4,2,dedicated,1000,300,299,' 'ring,tcp,8,0,none,1000,9,8,10' >"$folder/before/bench.csv"
printf '%s\n' "$header,hosts" 'ring,tcp,4,0,none,1000,80,79,81,4' 'rhd,tcp,4,0,none,1000,105,95,115,4' 'ps,zmq,4,1,dedicated,1000,270,,,4' 'ps,zmq,4,2,dedicated,1000,240,,260,4' 'ring,tcp,2,0,none,1000,9,8,10,2' >"$folder/after/bench.csv"
compares()
{
    "$psring" compare "$folder/before" "$folder/after" >"$folder/output" 2>&1 &&
        grep -qE '^ring over tcp +4 +1000 +100.0 +80.0   0.800 \(0.782 to 0.818\)$' "$folder/output" &&
        grep -qE '^rhd over tcp +4 +1000 +100.0 +105.0   no difference$' "$folder/output" &&
        grep -qE '^ps over zmq, 1 dedicated +4 +1000 +300.0 +270.0   0.900$' "$folder/output" &&
        grep -qE '^ps over zmq, 2 dedicated +4 +1000 +300.0 +240.0   0.800$' "$folder/output" &&
        grep -q '^4 all-reduces are in both: 1 faster, 0 slower, 1 without a difference, 2 without intervals. Geometric mean of the ratios: 0.882$' "$folder/output"
}
expect 'two runs compared' compares
# shellcheck disable=SC2016
expect 'as a page' perl -MJSON::PP -0777 -ne 'my ($json) = /<script type="application\/json" id="data">(.*?)<\/script>/s or die "no data"; my $p = decode_json($json)->{pairs};
    die "pairs" unless @$p == 4 && $p->[0]{differs} && !$p->[1]{differs} && !defined $p->[2]{low} && abs($p->[0]{high} - 81 / 99) < 1e-9;
    die "words" unless /rhd over tcp +4 +1000 +100\.0 +105\.0   no difference/ && !/\{\{/' "$folder/after/compare.html"
same_folder_only()
{
    local status=0
    "$psring" compare "$folder/before" >"$folder/output" 2>&1 || status=$?
    ((status == 2)) && grep -q 'expected two folders' "$folder/output"
}
expect 'two folders are needed' same_folder_only
# Two networks; neighbours in two orders; a difference that three digits would not show. Then the first run's order is
# not known: which of the other's two rows is the same?
mkdir "$folder/one" "$folder/two"
printf '%s\n' "$header,hosts,neighbours_apart,network" 'ring,tcp,8,0,none,1000,100,99.99,100.01,4,4,net-a' 'ring,tcp,8,0,none,1000,200,199,201,4,8,net-a' \
    'ring,tcp,4,0,none,1000,50,49,51,4,4,net-a' >"$folder/one/bench.csv"
printf '%s\n' "$header,hosts,neighbours_apart,network" 'ring,tcp,8,0,none,1000,9,9,9,4,8,net-b' 'ring,tcp,8,0,none,1000,101,100.03,102,4,4,net-b' \
    'ring,tcp,8,0,none,1000,220,219,221,4,8,net-b' 'ring,tcp,4,0,none,1000,50,49,51,4,4,net-b' >"$folder/two/bench.csv"
compares_networks()
{
    "$psring" compare "$folder/one" "$folder/two" >"$folder/output" 2>&1 &&
        grep -q '^Different networks: before net-a; after net-b\. ' "$folder/output" &&
        grep -qE '^ring over tcp, 4 hosts +8 +1000 +100.0 +101.0   1.0100 \(1.0002 to 1.0201\)$' "$folder/output" &&
        grep -qE '^ring over tcp, 4 hosts, worst order +8 +1000 +200.0 +220.0   1.100 \(1.090 to 1.111\)$' "$folder/output" &&
        grep -q '^3 all-reduces are in both: 0 faster, 2 slower, 1 without' "$folder/output" &&
        grep -q 'Different networks: before net-a' "$folder/two/compare.html"
}
expect 'two networks, two orders' compares_networks
cut -d, -f1-10,12 "$folder/one/bench.csv" | sed 's/net-a/net-b/' >"$folder/unordered" && mv "$folder/unordered" "$folder/one/bench.csv"
leaves_out()
{
    "$psring" compare "$folder/one" "$folder/two" >"$folder/output" 2>&1 && ! grep -q '^Different networks' "$folder/output" &&
        grep -q '^1 all-reduce is in both: .* Left out: 2 of which one run has several kinds' "$folder/output"
}
expect 'what one run does not tell apart' leaves_out
sed -i '3,$d; 2s/ring/mpi/' "$folder/after/bench.csv"
nothing_in_common()
{
    ! "$psring" compare "$folder/before" "$folder/after" >"$folder/output" 2>&1 && grep -q 'no all-reduce of one kind and size is in both' "$folder/output"
}
expect 'nothing in common' nothing_in_common

echo 'ring,tcp' >>"$dir/bench.csv"
expect 'a row that is cut off' refuses 1 'line 6 has 2 fields, expected 15' "$dir"
sed -i '$d' "$dir/bench.csv"
# What a failed run has cut off costs its part of the page, with a warning that names it.
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
no_facts='die if /<h2>What was run/; die "bench" unless rows("bench") == 4'
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

# A page that cannot be written is not half there.
nothing_half()
{
    rm "$dir/report.html"
    mkdir "$dir/report.html"
    refuses 1 'report.html: cannot be written' "$dir" && [[ ! -e $dir/report.html.part ]] && rmdir "$dir/report.html"
}
expect 'what cannot be written leaves nothing' nothing_half

# Links that differ: one rate for as many machines, of hosts that workers share, too; rows of no series give none.
header=backend,transport,device,network,workers,servers,placement,bytes,hosts,link_bytes_per_s,efficiency,theory_time_us,link_source,api
for network in hosts:lan vcluster:800mbit/racks:2x400mbit vcluster:800mbit; do
    printf '%s\n' "$header" "ring,tcp,cpu,$network,2,0,none,4000,2,100,0.5,1000,probe,comm" "ring,tcp,cpu,$network,4,0,none,4000,4,50,0.5,1000,probe,comm" \
        "ring,tcp,cpu,$network,8,0,none,4000,4,40,0.5,1000,probe,comm" "ps,tcp,cpu,$network,2,2,dedicated,4000,2,60,0.5,1000,probe,comm" \
        "ring,tcp,cpu,$network,2,0,none,4000,2,10,0.5,1000,probe,library" "ring,tcp,cpu,$network,2,0,none,4000,2,20,0.5,1000,given,comm" >"$dir/bench.csv"
    report || true
    # 100 and 50, 40, 60 (four machines), or all of them.
    case $network in
    vcluster:800mbit) efficiencies='[0.9090909, 0.4545455, 0.3636364, 0.5454545, 0.5, 0.1818182]' ;;
    *) efficiencies='[0.5, 0.5, 0.4, 0.6, 0.5, 0.1]' ;;
    esac
    # shellcheck disable=SC2016
    expect "the rates of $network" has 'my @r = rows("bench"); my @e = @{'"$efficiencies"'};
        for (0 .. 5) { die "row $_: $r[$_]{efficiency}" unless abs($r[$_]{efficiency} - $e[$_]) < 1e-6 }'
done
all_passed
