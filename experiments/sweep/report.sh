#!/usr/bin/env bash
# report.sh DIR: DIR/report.html from what run_scaling.sh left there: the answer in words, the tables, the
# figures, and what was run on what, in one page that needs nothing else.
set -euo pipefail

case ${1:-} in
-h | --help)
    sed -n '2,3s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
# shellcheck source-path=SCRIPTDIR source=constants.sh
. "$(dirname "$0")/constants.sh"
dir=${1:?report.sh: expected the folder of a run}
[[ -s $dir/summary.txt ]] || { echo "report.sh: $dir/summary.txt is missing; is this the folder of a run?" >&2 && exit 1; }

escape()
{
    sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g'
}

# The lines of the summary above "The answer", those below it, and those from the first table on.
head_lines() { sed -n '2,/^The answer$/p' "$dir/summary.txt" | sed '/^The answer$/d; /^$/d'; }
answer_lines() { sed -n '/^The answer$/,/^1\. /p' "$dir/summary.txt" | sed '/^The answer$/d; /^1\. /d'; }
table_lines() { sed -n '/^1\. /,$p' "$dir/summary.txt"; }

# Lines that start with a dash are a list; all others run together to a paragraph.
words()
{
    escape | awk '
        function leave(what) { if (in_ == what) return; if (in_ != "") print "</" in_ ">"; in_ = what; if (what != "") print "<" what ">" }
        /^ *$/ { leave(""); next }
        /^ *- / { leave("ul"); sub(/^ *- /, ""); print "<li>" $0 "</li>"; next }
        { leave("p"); sub(/^ */, ""); print }
        END { leave("") }'
}

# figure NAME CAPTION: its SVG; names inside it get the figure's own prefix, because they must differ on a page.
figure()
{
    [[ -s $dir/$1.svg ]] || return 0
    echo "<figure id=\"$1\">"
    sed -n '/<svg/,$p' "$dir/$1.svg" |
        sed -E "s/ (width|height)=\"[0-9]+\"( [^>]*viewBox)/\2/; s/(id=['\"])/\1$1-/g; s/(href=['\"]#)/\1$1-/g; s/url\(#/url(#$1-/g" |
        sed -E '1,6s/^( *)(width|height)="[0-9]+" (width|height)="[0-9]+"$//; 1,6s/ (width|height)="[0-9]+"//g'
    echo "<figcaption>$2</figcaption></figure>"
}

provenance()
{
    if [[ -s $dir/provenance.json ]]; then escape <"$dir/provenance.json"; else echo "provenance.json is missing"; fi
}

{
    cat <<'HTML'
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>psring: parameter server against ring all-reduce</title>
<style>
body { font: 16px/1.5 sans-serif; color: #222; background: #fff; max-width: 1100px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.2rem; margin-top: 2rem; }
pre { font: 13px/1.4 monospace; overflow-x: auto; background: #f6f6f6; padding: .75rem; }
li { margin-bottom: .4rem; }
figure { margin: 1.5rem 0; overflow-x: auto; }
figure svg { width: 100%; min-width: 560px; height: auto; }
figcaption { color: #555; font-size: .9rem; }
</style>
</head>
<body>
<h1>Parameter server against ring all-reduce</h1>
HTML
    head_lines | escape | sed '1s/^/<p>/; s/$/<br>/; $s/<br>$/<\/p>/'
    echo "<h2>The answer</h2>"
    answer_lines | words
    echo "<h2>Figures</h2>"
    echo "<p>Dashed: theory, from bytes and the rate of the links alone. A circle in a series' colour: there the CPUs were more than ${CPU_LIMITED#0.}% busy, and the time may be theirs, not the network's. MPI_Allreduce's busy share is spinning, that is waiting, not work.</p>"
    figure time_vs_workers "Time of one all-reduce against the number of workers."
    figure efficiency_vs_workers "The least time that any all-reduce among the workers could take, over the time taken: of the workers' links (above; servers of their own bring further links, so more than 100% is possible) and of all machines' (below)."
    figure time_vs_size "Time of one all-reduce against the size of the message."
    figure efficiency_vs_size "Efficiency against the size of the message. A short message may take less time than its bytes at the link's rate: a virtual link lets the first 32 kB or more through at once."
    figure bytes_per_node "Payload that one node sends, counted by the transport; lines: theory."
    figure cpu_vs_size "Processor time that all ranks spend on a GB of messages, over each transport; both axes logarithmic. It is what communication takes away from computing; a wait that spins counts."
    figure throughput "Training with a timed wait in place of computation."
    echo "<h2>Tables</h2>"
    echo "<pre>"
    table_lines | escape
    echo "</pre>"
    echo "<h2>What was run on what</h2>"
    echo "<details><summary>provenance.json</summary><pre>"
    provenance
    echo "</pre></details>"
    echo "</body>"
    echo "</html>"
} >"$dir/report.html.part"
mv "$dir/report.html.part" "$dir/report.html"
