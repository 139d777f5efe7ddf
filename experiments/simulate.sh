#!/usr/bin/env bash
# simulate.sh [OPTION...]: one all-reduce at worker counts that nobody has at hand: psring's own ring, rhd and parameter
# server, as they are, in SimGrid instead of on a network.
#
# Four kinds of platform: all hosts at one switch (2 to 1,024 workers; 1 to W servers), racks whose links to each
# other carry less than their hosts together, hosts of which half have slower links, and one host with a slow link. What
# comes out is checked: where nothing contends, against the closed forms of the model of cost (0.5%), and with --against,
# against measured rows (5%); a difference is WRONG, and the exit status 1.
#
#   --quick             at most 16 workers; seconds
#   --out DIR           where results go (default: results-simulate)
#   --workers N         at most so many (default 1024)
#   --shape-workers N   on the other three platforms (default 64); divisible by --racks
#   --bytes N           of the vector (default 4799528, the gradient of keras-cnn)
#   --rate BYTES        what a link carries each way, of payload, in bytes/s (default 23812500: 200 Mbit/s less headers)
#   --latency SECONDS   of a message (default 6e-5)
#   --cost-model FILE   a model.json (psring predict --fit): both as fitted, all for each network and transport in it
#   --link NAME         of these, NETWORK/TRANSPORT alone
#   --racks N           (default 4)
#   --oversubscribed F  by how much a rack's hosts exceed its link to the others (default 4)
#   --slow F            the share of the rate that a slow link has (default 0.5)
#   --against FILE      a bench.csv: the same shapes are simulated, with each row's own rate (of a nominal one, what TCP carries) and, of
#                       a virtual cluster, its token buckets; with headers; and compared. Rows that a link did not limit (loopback, busy CPUs) are
#                       left out, those of links that are not all alike (vcluster.sh --shape), and those of less than 1 MB
#   --build DIR         psring-simulate is built there (default: build-simulate)
#
# DIR gets simulate.csv, with bench.csv's columns (network simulated:..., with --cost-model simulated:NETWORK/TRANSPORT/...;
# theory_time_us with the latencies), against.csv, measured beside simulated, and simulate-summary.txt, which is also printed, and
# simulate-log.txt; in the folder of a run nothing of the run is lost, and psring report DIR shows both. Needs SimGrid
# (setup.sh --simulate); without it the exit status is 77. A first build takes two minutes, all simulations some four.
set -euo pipefail
export LC_ALL=C # a point in numbers, whatever the user's language

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source-path=SCRIPTDIR source=sweep/constants.sh
. "$here/sweep/constants.sh"
# shellcheck source-path=SCRIPTDIR source=simulate/build.sh
. "$here/simulate/build.sh"
# shellcheck source-path=SCRIPTDIR source=simulate/simulations.sh
. "$here/simulate/simulations.sh"

heed_interrupts "$@"

parse_arguments()
{
    out=results-simulate workers=1024 shape_workers=64 bytes=$MODEL_BYTES rate=23812500 latency=6e-5
    racks=4 oversubscribed=4 slow=0.5 against='' cost_model='' link='' build=$root/build-simulate
    local given=''
    # First, so that it is the same before other options and after them.
    [[ " $* " != *' --quick '* ]] || workers=16 shape_workers=8
    while (($#)); do
        case $1 in
        --quick) ;;
        *)
            take_option "--out --workers --shape-workers --bytes --rate --latency --racks --oversubscribed --slow --against --build --cost-model --link" "$@"
            given+=" $1"
            shift
            ;;
        esac
        shift
    done
    local number
    for number in workers shape_workers bytes racks; do
        [[ ${!number} =~ ^[1-9][0-9]{0,9}$ ]] || die "--${number//_/-} '${!number}': expected a whole number from 1" 2
    done
    need_above_zero rate latency oversubscribed slow
    ((workers >= 2 && workers <= 1024)) || die "--workers '$workers': expected 2 to 1024" 2
    ((shape_workers % racks == 0 && shape_workers <= 1024)) ||
        die "--shape-workers '$shape_workers': expected at most 1024, and as many for each of $racks racks (--racks)" 2
    [[ ! $cost_model || ! $given =~ --(rate|latency)( |$) ]] || die "--${BASH_REMATCH[1]}: --cost-model has it; leave one of them out" 2
    [[ ! $link || $cost_model ]] || die "--link '$link': one of --cost-model; add that" 2
    [[ ! $cost_model || -r $cost_model ]] || die "--cost-model '$cost_model': cannot be read; expected a model.json (psring predict --fit)" 2
    [[ ! $against || -r $against ]] || die "--against '$against': cannot be read; expected a bench.csv" 2
}

# To $work/links, a line a platform: NETWORK/TRANSPORT/ or nothing, rate, latency.
find_links()
{
    [[ $cost_model ]] || {
        printf '\t%s\t%s\n' "$rate" "$latency" >"$work/links"
        return
    }
    "$build/psring-links" "$cost_model" >"$work/fitted" 2>"$work/log" || die "--cost-model: $(sed -n 's/^psring: error: //p' "$work/log")" 2
    awk -F '\t' -v OFS='\t' -v link="$link" 'link == "" || $1 == link { print $1 "/", $2, $3 }' "$work/fitted" >"$work/links"
    [[ -s $work/links ]] || die "--link '$link': not in '$cost_model', which has $(cut -f 1 "$work/fitted" | paste -sd ' ')" 2
}

command_line="$0 $*"
parse_arguments "$@"
take_folder "$out"
log_name=simulate-log.txt results=(simulate.csv against.csv simulate-summary.txt)
keep_foreign_files "${results[@]}" $log_name build.log
begin_log "$command_line"
work=$(mktemp -d)
child=''
trap '[[ ! $child ]] || kill -TERM "$child" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
build_program
find_links
replace_files "${results[@]}"
[[ ! $against ]] || simulate_measured
simulate_links
summarise
