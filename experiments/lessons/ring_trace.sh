# shellcheck shell=bash disable=SC2154
# ring_trace.sh: for lessons 3 and 4, one all-reduce of four workers from the trace of a short training.
RING_WORKERS=4

# Writes trace.json and ring.txt. ring.txt has a line for each receive of the last step's first bucket, ordered by end:
# STEP CHUNK TO FROM START_MS END_MS. Times count from the earliest start.
trace_ring()
{
    hosts $RING_WORKERS 20mbit
    ranks $RING_WORKERS train --backend ring --transport tcp --model lenet --compute paced:20 --steps 3 --bucket-mb 100 \
        --timeline "$out/trace.json"
    awk -F '[:,{}]' '
        function of(name, i) { for (i = 1; i < NF; i++) if ($i == "\"" name "\"") return $(i + 1) + 0; return -1 }
        /"name":"(reduce-scatter|all-gather)"/ && of("bucket") == 0 {
            key = of("pid") " " of("step")
            line[key] = of("step") " " of("chunk") " " of("pid") " " of("from") # the last training step stays
            start[key] = of("ts")
            end[key] = start[key] + of("dur")
        }
        END {
            for (key in start)
                if (least == "" || start[key] < least)
                    least = start[key]
            for (key in start)
                printf "%s %.2f %.2f\n", line[key], (start[key] - least) / 1e3, (end[key] - least) / 1e3
        }' "$out/trace.json" | sort -k 6n >"$out/ring.txt"
    [[ $(wc -l <"$out/ring.txt") == $((RING_WORKERS * 2 * (RING_WORKERS - 1))) ]] ||
        die "the trace has $(wc -l <"$out/ring.txt") receives, expected $((RING_WORKERS * 2 * (RING_WORKERS - 1)))"
}
