# shellcheck shell=bash disable=SC2154
# model_points.sh: what sweep_model.sh measures, which loads it: all of its lists together, in a mixed order.

servers_of()
{
    if [[ $servers == all ]]; then
        seq 1 "$1"
    else
        printf '%d\n' 1 $(($1 / 2)) "$1" | sort -nu
    fi
}

# mixed: the lines of standard input in another order, by a generator of awk's own so that it is the same everywhere.
mixed()
{
    awk '{ seed = (seed * 1103 + 12347) % 1000003; printf "%07d %s\n", seed, $0 }' | sort | cut -d ' ' -f 2-
}

# times_of SIZE: what takes milliseconds is measured so often: where processes wait for a core, a tenth of a second is luck.
times_of()
{
    (($1 > 262144)) || printf '%s\n' '-n 100'
}

# points: CONFIGURATION WORKERS SIZE, one a line.
points()
{
    local w s t size
    for w in ${workers//,/ }; do
        for t in ${transports//,/ }; do
            for size in ${sizes//,/ }; do
                printf '%s %s %s\n' "ring+$t" "$w" "$size" "rhd+$t" "$w" "$size"
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
                for name in ring rhd ps-dedicated-1 "ps-dedicated-$w" "ps-colocated-$w" "ps-mixed-$((w / 2))"; do
                    for t in ${transports//,/ }; do
                        printf '%s %s %s %s\n' "$name+$t" "$w" "$model" "$ms"
                    done
                done
            done
        done
    done | mixed
}
