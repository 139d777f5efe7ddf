# shellcheck shell=bash disable=SC2154
# Lesson 3: which rank sends which chunk to which rank, and when.
trace_ring

echo "Exact"
sort -k 1n -k 3n "$out/ring.txt" | awk -v workers="$RING_WORKERS" '
    BEGIN { for (r = 0; r < workers; r++) head = head sprintf("  %14s", "rank " r " gets"); printf "  %-23s%s\n", "step", head }
    { chunk[$1, $3] = $2; from[$1, $3] = $4 }
    END {
        for (step = 0; step < 2 * (workers - 1); step++) {
            printf "  %d %-21s", step, step < workers - 1 ? "adds (reduce-scatter)" : "keeps (all-gather)"
            for (r = 0; r < workers; r++)
                printf "  %14s", "chunk " chunk[step, r] " from " from[step, r]
            printf "\n"
        }
    }'
echo "Measured"
awk -v workers="$RING_WORKERS" -v width=72 '
    { start[NR] = $5; end[NR] = $6; chunk[NR] = $2; to[NR] = $3; step[NR] = $1; if ($6 > last) last = $6 }
    END {
        printf "  which chunk each rank is receiving, from 0 to %.0f ms (a dot: none)\n", last
        for (r = 0; r < workers; r++) {
            text = ""
            for (column = 0; column < width; column++) {
                at = (column + 0.5) / width * last
                letter = "."
                for (i = 1; i <= NR; i++)
                    if (to[i] == r && start[i] <= at && at < end[i])
                        letter = chunk[i]
                text = text letter
            }
            printf "  rank %d  %s\n", r, text
        }
    }' "$out/ring.txt"
last_add=$(awk -v workers="$RING_WORKERS" '$1 < workers - 1 && $6 > last { last = $6 } END { print last }' "$out/ring.txt")
last_keep=$(awk '$6 > last { last = $6 } END { print last }' "$out/ring.txt")
printf '  the last sum is there after %.0f ms, the last copy of it after %.0f ms\n' "$last_add" "$last_keep"
echo "So"
holds "$(awk -v workers="$RING_WORKERS" '$4 == ($3 + workers - 1) % workers' "$out/ring.txt" | wc -l)" = "$(wc -l <"$out/ring.txt")" \
    "every rank receives from the one before it, and from no other"
holds "$(cut -d ' ' -f 1,2 "$out/ring.txt" | sort -u | wc -l)" = "$(wc -l <"$out/ring.txt")" \
    "in one step no two ranks receive the same chunk: all links are busy, each with another"
