# shellcheck shell=bash disable=SC2154
# Lesson 2: one server against the ring, with two, four and eight workers.
hosts 9 100mbit
bytes=1199880
workers=(2 4 8)
for w in "${workers[@]}"; do
    ranks $((w + 1)) bench --backend ps --transport tcp --servers 1 --sizes $bytes -n 5 -w 1 --csv "$out/bench.csv"
    ranks "$w" bench --backend ring --transport tcp --sizes $bytes -n 5 -w 1 --csv "$out/bench.csv"
done

of() { value "$out/bench.csv" "$1" $((2 * index + $2)); } # COLUMN 1 (server) | 2 (ring)
echo "Exact"
printf '  %7s %26s %26s\n' workers "one server sends" "a worker of the ring sends"
for index in 0 1 2; do
    printf '  %7d %20d bytes %20d bytes\n' "${workers[index]}" "$(of server_sent_bytes 1)" "$(of worker_sent_bytes 2)"
done
echo "Measured"
printf '  %7s %12s %12s %14s\n' workers "one server" "ring" "server / ring"
for index in 0 1 2; do
    server[index]=$(of time_us_median 1) ring[index]=$(of time_us_median 2)
    printf '  %7d %9s ms %9s ms %14s\n' "${workers[index]}" "$(ms_of "${server[index]}")" "$(ms_of "${ring[index]}")" \
        "$(times "${server[index]}" "${ring[index]}")"
done
echo "So"
holds_where_links_limit "$(times "${server[2]}" "${server[0]}")" ">" 3 "with four times the workers, one server takes more than three times as long"
holds_where_links_limit "$(times "${ring[2]}" "${ring[0]}")" "<" 2.2 "the ring less than 2.2 times"
holds_where_links_limit "$(times "${server[2]}" "${ring[2]}")" ">" 3 "with eight workers the server takes more than three times as long as the ring"
