#!/usr/bin/env bash
# simulate.sh [OPTION...]: simulates one all-reduce with many workers. psring's code of ring, rhd, tree and parameter
# server runs unchanged in SimGrid instead of on a network.
#
# The first kind of platform has all hosts at one switch (2 to 1,024 workers, 1 to W servers). The second has racks,
# with links to each other that carry less than their hosts together. In the third, half of the hosts have slower links.
# In the fourth, one host has a slow link. The script checks results without contention against the closed forms of the
# model of cost (0.5%). With --against it checks results against measured rows (5%). A difference is WRONG, with exit
# status 1.
#
#   --quick             at most 16 workers; takes seconds
#   --out DIR           folder of the results (default: results-simulate)
#   --workers N         largest number of workers (default 1024)
#   --shape-workers N   workers on the other three platforms (default 64); divisible by --racks
#   --bytes N           size of the vector (default 4799528, the gradient of keras-cnn)
#   --rate BYTES        payload rate of a link each way, in bytes/s (default 23812500: 200 Mbit/s less headers)
#   --latency SECONDS   latency of a message (default 6e-5)
#   --cost-model FILE   a model.json (psring predict --fit): use its rate and latency, for each network and transport
#   --link NAME         use only NETWORK/TRANSPORT of the model
#   --racks N           (default 4)
#   --oversubscribed F  rates of a rack's hosts together / rate of its link to the other racks (default 4)
#   --slow F            rate of a slow link / rate of the others (default 0.5)
#   --against FILE      a bench.csv: simulate the same shapes and compare. Uses the rate of each row (of a nominal rate,
#                       the share that TCP carries), headers, and the token buckets of a virtual cluster. Leaves out rows
#                       that no link limited (loopback, busy CPUs), of unequal or long links (vcluster.sh --shape,
#                       --latency), and below 1 MB
#   --build DIR         build folder of psring-simulate (default: build-simulate)
#
# DIR gets simulate.csv with bench.csv's columns (network simulated:..., with --cost-model
# simulated:NETWORK/TRANSPORT/...; theory_time_us with the latencies), against.csv (measured and simulated),
# simulate-summary.txt (also printed) and simulate-log.txt. DIR may be the folder of a run: its files stay, and psring
# report DIR shows both. Needs SimGrid (setup.sh --simulate); without it the exit status is 77. A first build takes two
# minutes, all simulations about four.
set -euo pipefail
export LC_ALL=C # decimal points in every locale

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
    # Read --quick first, so that other options have the same effect before and after it.
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
    [[ ! $cost_model || ! $given =~ --(rate|latency)( |$) ]] || die "--${BASH_REMATCH[1]}: --cost-model contains it; omit one of them" 2
    [[ ! $link || $cost_model ]] || die "--link '$link' needs --cost-model FILE" 2
    [[ ! $cost_model || -r $cost_model ]] || die "--cost-model '$cost_model': cannot be read; expected a model.json (psring predict --fit)" 2
    [[ ! $against || -r $against ]] || die "--against '$against': cannot be read; expected a bench.csv" 2
}

# Writes a line per platform to $work/links: NETWORK/TRANSPORT/ or nothing, rate, latency.
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
# shellcheck disable=SC2016  # the end expands it
end_with '[[ ! $child ]] || kill -TERM "$child" 2>/dev/null || true; rm -rf "$work"'
build_program
find_links
replace_files "${results[@]}"
[[ ! $against ]] || simulate_measured
simulate_links
summarise
