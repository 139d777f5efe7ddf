# shellcheck shell=bash disable=SC2154
# model_points.sh: the measurements of sweep_model.sh, all lists together in a mixed order until the time is over.

servers_of()
{
    if [[ $servers == all ]]; then
        seq 1 "$1"
    else
        printf '%d\n' 1 $(($1 / 2)) "$1" | sort -nu
    fi
}

# mixed: shuffles the lines of standard input. Its generator is part of the awk code, so the order is the same
# everywhere.
mixed()
{
    awk '{ seed = (seed * 1103 + 12347) % 1000003; printf "%07d %s\n", seed, $0 }' | sort | cut -d ' ' -f 2-
}

# times_of SIZE: the iterations of a run. Operations of milliseconds need many, because processes wait for cores at
# random. Operations of seconds need few, because links behave alike each time.
times_of()
{
    if (($1 <= 262144)); then
        echo -w 2 -n 100
    elif (($1 > 16777216)); then
        echo -w 1 -n 3
    else
        echo -w 2
    fi
}

# runs_of SIZE: the runs of a point, each with new processes, because the contention for cores differs between runs.
runs_of()
{
    (($1 > 262144)) && echo 1 || echo "$runs"
}

# points: CONFIGURATION WORKERS SIZE, one a line.
points()
{
    local w s t size name
    for w in ${workers//,/ }; do
        for t in ${transports//,/ }; do
            for size in ${sizes//,/ }; do
                for name in "${WITHOUT_SERVERS[@]}"; do
                    echo "$name+$t $w $size"
                done
                for s in $(servers_of "$w"); do
                    printf '%s %s %s\n' "ps-dedicated-$s+$t" "$w" "$size" "ps-colocated-$s+$t" "$w" "$size" \
                        "ps-mixed-$s+$t" "$w" "$size"
                done
            done
        done
    done | mixed
}

# step_points: CONFIGURATION WORKERS MODEL MS, one a line.
step_points()
{
    local w model ms name t
    for w in ${workers//,/ }; do
        for model in ${models//,/ }; do
            for ms in 30 100; do
                for name in "${WITHOUT_SERVERS[@]}" ps-dedicated-1 "ps-dedicated-$w" "ps-colocated-$w" "ps-mixed-$((w / 2))"; do
                    for t in ${transports//,/ }; do
                        printf '%s %s %s %s\n' "$name+$t" "$w" "$model" "$ms"
                    done
                done
            done
        done
    done | mixed
}

# measure_points: measures the all-reduces of `plan`; `begun` counts them.
measure_points()
{
    local point name w size i
    begun=0
    for point in "${plan[@]}"; do
        ((SECONDS < 60 * minutes)) || break
        read -r name w size <<<"$point"
        ((begun++ % 20)) || say "[$SECONDS s] point $begun of ${#plan[@]}, of $minutes minutes at most"
        read -ra arguments < <(backend_arguments "$name")
        read -ra times < <(times_of "$size")
        for ((i = $(runs_of "$size"); i > 0; i--)); do
            turn "$name W=$w $size bytes" "$here/vcluster.sh" run --name "$cluster" -n "$(ranks_of "$name" "$w")" -- \
                "$psring" bench "${arguments[@]}" --probe off --sizes "$size" "${times[@]}" --csv "$out/bench.csv"
            ((!turn_failed)) || break
        done
    done
}

# measure_steps RATE END: starts points of the mixed `plan` until END. Each rate continues where the last one ended.
measure_steps()
{
    local name w model ms i
    rate=$1
    "$here/vcluster.sh" down --name "$cluster"
    turns_raise $((2 * largest))
    while ((SECONDS < $2 && step < ${#plan[@]})); do
        read -r name w model ms <<<"${plan[step++]}"
        read -ra arguments < <(backend_arguments "$name")
        for ((i = runs; i > 0; i--)); do
            turn "$name W=$w steps of $model at $rate" "$here/vcluster.sh" run --name "$cluster" -n "$(ranks_of "$name" "$w")" -- \
                "$psring" train "${arguments[@]}" --model "$model" --compute "paced:$ms" --batch 1 --steps 15 \
                --metrics "$out/train.csv"
            ((!turn_failed)) || break
        done
    done
}
