# shellcheck shell=bash disable=SC2154,SC2034
# Lesson 5: four workers, and one to four more machines as servers, or one server in the switch.
hosts 8 100mbit
bytes=4799520
ranks 4 bench --backend ring --transport tcp --sizes $bytes -n 3 -w 1 --csv "$out/bench.csv"
for servers in 1 2 3 4; do
    ranks $((4 + servers)) bench --backend ps --transport tcp --servers $servers --sizes $bytes -n 3 -w 1 --csv "$out/bench.csv"
done
ranks 4 bench --backend ps --transport tcp --servers 4 --placement colocated --sizes $bytes -n 3 -w 1 --csv "$out/bench.csv"
placing=(--in-switch 1)
ranks 5 bench --backend ps --transport tcp --servers 1 --placement switch --sizes $bytes -n 3 -w 1 --csv "$out/bench.csv"
placing=()

of() { value "$out/bench.csv" "$1" "$2"; }
echo "Exact"
printf '  %-22s %8s %20s %20s\n' "" machines "a worker sends" "a server sends"
printf '  %-22s %8d %14d bytes %20s\n' "ring" 4 "$(of worker_sent_bytes 1)" "-"
for servers in 1 2 3 4; do
    printf '  %-22s %8d %14d bytes %14d bytes\n' "$servers $( ((servers == 1)) && echo server || echo servers)" $((4 + servers)) \
        "$(of worker_sent_bytes $((1 + servers)))" "$(of server_sent_bytes $((1 + servers)))"
done
echo "Measured"
for row in 1 2 3 4 5 6 7; do time[row]=$(of time_us_median $row); done
printf '  %-22s %9s ms\n' "ring" "$(ms_of "${time[1]}")"
for servers in 1 2 3 4; do
    printf '  %-22s %9s ms %8s of the ring\n' "$servers $( ((servers == 1)) && echo server || echo servers)" \
        "$(ms_of "${time[1 + servers]}")" "$(times "${time[1 + servers]}" "${time[1]}")"
done
printf '  %-22s %9s ms %8s of the ring\n' "4, inside the workers" "$(ms_of "${time[6]}")" "$(times "${time[6]}" "${time[1]}")"
printf '  %-22s %9s ms %8s of the ring\n' "1, in the switch" "$(ms_of "${time[7]}")" "$(times "${time[7]}" "${time[1]}")"
echo "So"
holds_where_links_limit "${time[2]}" ">" "${time[1]}" "one server is slower than the ring"
holds_where_links_limit "${time[5]}" "<" "${time[1]}" "four servers on separate machines are faster than the ring"
holds_where_links_limit "$(times "${time[6]}" "${time[1]}")" ">" 0.95 "four servers inside the workers are not"
holds_where_links_limit "${time[7]}" "<" "${time[1]}" "one server in the switch is faster than the ring"
