# shellcheck shell=bash disable=SC2154
# Lesson 4: the ranks whose gradients are in each chunk of each rank, after three steps and after six, from the trace.
trace_ring

# Replays the steps in order. A rank receives the chunk that the rank before it had at the start of the step.
contributions()
{
    sort -k 1n "$out/ring.txt" | awk -v workers="$RING_WORKERS" -v steps="$1" '
        function merged(a, b, r, text) {
            for (r = 0; r < workers; r++)
                text = text (index(a b, r) ? r : "")
            return text
        }
        function settle(key) { for (key in fresh) have[key] = fresh[key]; split("", fresh) }
        BEGIN { for (r = 0; r < workers; r++) for (c = 0; c < workers; c++) have[r, c] = r "" }
        $1 >= steps { exit }
        $1 != step { settle(); step = $1 }
        { fresh[$3, $2] = step < workers - 1 ? merged(have[$3, $2], have[$4, $2]) : have[$4, $2] }
        END {
            settle()
            for (r = 0; r < workers; r++) {
                printf "  rank %d:", r
                for (c = 0; c < workers; c++) {
                    printf "  %4s", have[r, c]
                    complete += length(have[r, c]) == workers
                }
                printf "\n"
            }
            printf "  %d of %d chunks are complete\n", complete, workers * workers
        }'
}

echo "Exact"
for steps in 0 3 6; do
    echo "  after $steps steps: whose gradients are in chunk 0, 1, 2, 3"
    contributions $steps
done
echo "Measured"
for steps in 3 6; do
    printf '  the last rank has done %d steps after %.0f ms\n' $steps \
        "$(awk -v steps=$steps '$1 < steps && $6 > last { last = $6 } END { print last }' "$out/ring.txt")"
done
echo "So"
holds "$(contributions 3 | tail -n 1)" = "  4 of 16 chunks are complete" "after three steps every sum is complete, each on one rank only"
holds "$(contributions 6 | tail -n 1)" = "  16 of 16 chunks are complete" "after six all ranks have all of them"
