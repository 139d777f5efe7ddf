# shellcheck shell=bash disable=SC2154,SC2034
# Lesson 6: four workers. The last one computes four times as long. Measures the cost of waiting for it.
need_data
network=loopback
modes=(bsp backup ssp:3 async)
mode_options()
{
    case $1 in
    bsp) ;;
    backup) echo --backup-workers 1 ;;
    *) echo --sync "$1" ;;
    esac
}
for mode in "${modes[@]}"; do
    read -ra options < <(mode_options "$mode") || true
    ranks 5 train --backend ps --transport zmq --servers 1 --data "$data" --model lenet --batch 32 --steps 150 --lr 0.2 --momentum 0 \
        --threads 1 --seed 1 --straggler 3:4 --compute real:25 "${options[@]}" --metrics "$out/train.csv"
done

of() { value "$out/train.csv" "$1" "$2"; }
percent() { awk -v share="$1" 'BEGIN { printf "%.1f%%", 100 * share }'; }
echo "Measured"
printf '  %-8s %12s %10s %24s %10s\n' "" "images/s" "times bsp" "staleness, mean (most)" accuracy
for row in 1 2 3 4; do
    rate[row]=$(of images_per_s $row)
    staleness='-'
    [[ ! $(of staleness_mean $row) || $row == 1 ]] || staleness="$(printf %.1f "$(of staleness_mean $row)") ($(of staleness_max $row))"
    printf '  %-8s %12.0f %10s %24s %10s\n' "${modes[row - 1]}" "${rate[row]}" "$(times "${rate[row]}" "${rate[1]}")" \
        "$staleness" "$(percent "$(of test_accuracy $row)")"
done
echo "So"
holds_in_time "$(times "${rate[2]}" "${rate[1]}")" ">" 1.5 "a step that does not wait for the slowest makes 1.5 times the images of bsp, and more"
holds_in_time "$(times "${rate[3]}" "${rate[1]}")" ">" 1.5 "ssp:3 does, too"
holds_in_time "$(times "${rate[4]}" "${rate[1]}")" ">" 1.5 "and async"
holds "$(of staleness_max 3)" "<" 4 "no gradient of ssp:3 is more than 3 steps old"
