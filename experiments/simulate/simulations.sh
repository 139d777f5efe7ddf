# shellcheck shell=bash disable=SC2154
# simulations.sh: the simulations of simulate.sh, which loads this file. Flat and other platforms, measured rows, the
# summary.

# -------- simulations ---------------------------------------------------------------------------

# platform NAME=VALUE...: writes a platform of $hosts hosts to $work/platform.xml; see simulate/platform.awk.
platform()
{
    local setting settings=()
    for setting in hosts="$hosts" rate="$rate" latency="$latency" header="${header:-0}" burst="${burst:-0}" racks=1 \
        core=0 oversubscribed=1 slow= slow_factor=1 "$@"; do
        settings+=(-v "$setting")
    done
    awk "${settings[@]}" -f "$here/simulate/platform.awk" >"$work/platform.xml"
}

# ranks COUNT [interleaved]: writes the host of each rank: consecutive, or with neighbours in different racks.
ranks()
{
    awk -v ranks="$1" -v racks="$([[ ${2:-} ]] && echo "$racks" || echo 1)" \
        'BEGIN { for (r = 0; r < ranks; r++) print "h" r % racks * (ranks / racks) + int(r / racks) }' >"$work/hosts"
}

of='' # name of the fitted link of --cost-model, followed by /

# simulate NETWORK CSV OPTION...: simulates on $work/platform.xml, with ranks as in $work/hosts. If $limit is set, it
# limits the seconds.
simulate()
{
    local network=$of$1 csv=$2 command
    shift 2
    command=(${limit:+timeout "$limit"} smpirun -np "$(wc -l <"$work/hosts")" -platform "$work/platform.xml" -hostfile "$work/hosts"
        --cfg=smpi/simulate-computation:no --cfg=smpi/wtime:0 --cfg=smpi/privatization:no
        --log=root.thresh:critical
        "$build/psring-simulate" --network "simulated:$network" --csv "$csv"
        --link-rate "$(awk -v rate="$rate" 'BEGIN { printf "%.17g", 8 * rate }')" "$@")
    log_to=$work/log wait_for_child "${command[@]}" || {
        cat "$work/log" >&2
        die "simulated:$network: psring-simulate $* failed: see above"
    }
    cat "$work/log" >>"$out/$log_name"
    sed -n "s/^# this machine: \([0-9.]*\) .*/\1\t&/p" "$work/log" |
        sed "s|# this machine|$network, $(wc -l <"$work/hosts") ranks, $*|" >>"$work/costs"
}

# The closed forms describe one message a step. With segments, the latency of a step overlaps with other segments; that
# is simulated, but not checked.
ring=(--backend ring --segment-bytes 1g)
rhd=(--backend rhd --segment-bytes 1g)

# served SERVERS: prints the options of ps. 32 chunks a shard, because psring would cut far more if many workers share a
# link, and they would take hours. Four chunks travel at a time, so none waits for an answer, as in the closed form.
served()
{
    awk -v bytes="$bytes" -v servers="$1" 'BEGIN {
        chunk = int(bytes / servers / 32)
        print "--servers", servers, "--push-window 4 --segment-bytes", chunk < 4 ? 4 : chunk
    }'
}

# flat HOSTS OPTION...: simulates with all hosts at one switch.
flat()
{
    local hosts=$1
    shift
    platform
    ranks "$hosts"
    simulate "${network:-flat}" "$out/simulate.csv" --sizes "$bytes" "$@"
}

RACK_HOSTS=8 # at each lower switch of a tree of switches

# in_switch WORKERS: one server where the workers' links meet. Its own link is a thousand times as fast as all of theirs.
# in_switch WORKERS FACTOR: the same at the root of a tree of switches, with racks oversubscribed by FACTOR.
in_switch()
{
    local hosts=$(($1 + 1)) tree=() options
    read -ra options < <(served 1)
    [[ ! ${2:-} ]] || tree=(core=1 racks=$(($1 / RACK_HOSTS)) oversubscribed="$2") options+=(--racks "$RACK_HOSTS:$2")
    platform slow="$1" slow_factor=$((1000 * $1)) "${tree[@]}"
    ranks "$hosts"
    simulate "${2:+tree-of-switches-}${2:-flat}${2:+:1}" "$out/simulate.csv" --sizes "$bytes" --backend ps --placement switch "${options[@]}"
}

simulate_flat()
{
    local w servers factor options
    for ((w = 2; w <= workers; w *= 2)); do
        say "${of}flat, $w workers"
        flat "$w" "${ring[@]}"
        flat "$w" "${rhd[@]}"
        # With fewer segments, the filling of the trees is a long part that the closed form only estimates.
        ((w > 16)) || flat "$w" --backend tree --segment-bytes $((bytes / 2048 < 4 ? 4 : bytes / 2048))
        # More pairs of a worker and a server take minutes.
        for servers in $(printf '%d\n' 1 $((w / 4)) $((w / 2)) "$w" | sort -un); do
            ((servers > 0 && servers * w <= 16384)) || continue
            read -ra options < <(served "$servers")
            flat $((w + servers)) --backend ps --placement dedicated "${options[@]}"
            ((servers < w)) || flat "$w" --backend ps --placement colocated "${options[@]}"
        done
        in_switch "$w"
    done
    for factor in $(printf '%s\n' 1 "$oversubscribed" | sort -u); do
        for ((w = 2 * RACK_HOSTS; w <= workers; w *= 2)); do
            in_switch "$w" "$factor"
        done
    done
    for ((w = 2; w <= workers; w *= 2)); do
        network=flat-in-segments flat "$w" --backend ring
        network=flat-in-segments flat "$w" --backend tree
    done
}

# [in_racks=HOSTS:FACTOR] shapes NETWORK PLATFORM-SETTING...: simulates on a platform that is not flat. With in_racks
# the closed form has the racks.
shapes()
{
    local network=$1 w=$shape_workers hosts=$shape_workers options
    shift
    say "$of$network, $w workers"
    platform "$@"
    ranks "$w" ${interleaved:+yes}
    local sizes=(--sizes "$bytes" ${in_racks:+--racks "$in_racks"})
    simulate "$network" "$out/simulate.csv" "${sizes[@]}" --backend ring
    simulate "$network" "$out/simulate.csv" "${sizes[@]}" --backend rhd
    simulate "$network" "$out/simulate.csv" "${sizes[@]}" --backend tree
    ((w > 64)) || {
        read -ra options < <(served "$w")
        simulate "$network" "$out/simulate.csv" "${sizes[@]}" --backend ps --placement colocated "${options[@]}"
    }
}

simulate_shapes()
{
    local per=$((shape_workers / racks)) interleaved=''
    in_racks=$per:$oversubscribed shapes "racks-${racks}x$per-$oversubscribed:1" racks="$racks" oversubscribed="$oversubscribed"
    interleaved=yes
    shapes "racks-${racks}x$per-$oversubscribed:1-interleaved" racks="$racks" oversubscribed="$oversubscribed"
    interleaved=''
    shapes "half-at-$slow" slow="0-$((shape_workers / 2 - 1))" slow_factor="$slow"
    shapes "one-at-$slow" slow=0 slow_factor="$slow"
}

simulate_links()
{
    while IFS='|' read -r of rate latency; do
        simulate_flat
        simulate_shapes
    done < <(tr '\t' '|' <"$work/links")
}

# -------- compared with measured rows -----------------------------------------------------------

simulate_measured()
{
    local backend placement w servers size rate burst header=$HEADER_BYTES nominal=$rate hosts options
    awk -v "CPU_LIMITED=$CPU_LIMITED" -v "PAYLOAD_SHARE=$PAYLOAD_SHARE" -v "BUCKET_BYTES=$BUCKET_BYTES" \
        -f "$here/simulate/measured.awk" "$against" >"$work/measured"
    [[ -s $work/measured ]] ||
        die "--against '$against': no row of ring, rhd, tree or ps with 2 to 8 workers, at least 1 MB, limited by equal links"
    say "against $(wc -l <"$work/measured") rows of $against"
    while read -r backend placement w servers size rate _ burst; do
        hosts=$w options=(--backend "$backend")
        [[ $placement != @(dedicated|mixed) ]] || hosts=$((w + servers))
        [[ $backend != ps ]] || options+=(--placement "$placement" --servers "$servers")
        platform
        ranks "$hosts"
        simulate measured "$work/measured.csv" --sizes "$size" "${options[@]}"
    done <"$work/measured"
    rate=$nominal
    awk -v csv="$work/measured.csv" -f "$here/simulate/against.awk" "$work/measured" >"$out/against.csv"
}

# -------- the summary ---------------------------------------------------------------------------

summarise()
{
    local wrong=0
    {
        echo "One all-reduce of $bytes bytes, simulated; links, bytes/s each way and seconds per message:"
        awk -F '\t' '{ sub("/$", "", $1); printf "  %s%.8g, %.3g\n", $1 == "" ? "" : $1 ": ", $2, $3 }' "$work/links"
        awk -v links="$work/links" -f "$here/simulate/summary.awk" "$out/simulate.csv" || wrong=1
        if [[ $against ]]; then
            # The table of against.csv. Fails if a row is off by more than 5%.
            awk '
                BEGIN {
                    FS = ","
                    print "\nSimulated compared with measured, ms:\n"
                    printf "  %-8s %-10s %7s %7s %10s %10s %10s %8s\n", "backend", "placement", "workers", "servers", "bytes", "measured", "simulated", "error"
                }
                NR > 1 {
                    bad = $9 > 0.05 || $9 < -0.05
                    wrong += bad
                    printf "  %-8s %-10s %7d %7d %10d %10.2f %10.2f %7.2f%%%s\n", $1, $2, $3, $4, $5, $7 / 1e3, $8 / 1e3, 100 * $9, bad ? " WRONG" : ""
                }
                END {
                    printf "\n%d of %d rows within 5%%.\n", NR - 1 - wrong, NR - 1
                    exit wrong > 0 || NR < 2
                }' "$out/against.csv" || wrong=1
        fi
        echo
        echo "Cost of the largest simulations on this machine:"
        sort -rn "$work/costs" | awk -F '\t' 'NR <= 4 { print "  " $2 }'
    } >"$out/simulate-summary.txt"
    cat "$out/simulate-summary.txt"
    return $wrong
}
