# shellcheck shell=bash disable=SC2154
# again.sh: what run_scaling.sh, which loads it, measures again at the end of the sweep: measurements that
# something disturbed (psring report --unsteady says which), and only the first few, so that the sweep stays bounded.

AGAIN_MOST=3

measure_again()
{
    local configuration workers start reason index line again=() kinds=(bench second)
    mapfile -t again < <("$psring" report --unsteady "$out" 2>/dev/null | head -n $AGAIN_MOST)
    points=$((points + ${#again[@]}))
    for line in "${again[@]}"; do
        read -r configuration workers start reason <<<"$line"
        index=$(index_of "${kinds[start]:-none} $configuration $workers ")
        [[ $index ]] || continue
        say "not steady: $configuration, $(counted "$workers" worker): $reason; once more"
        rm -f "$out/again.csv" # of one that failed half-way
        measure_point "${plan[index]}" again.csv || machines_are_there || break
        replace_rows "${rows_of[index]}" "$out/bench.csv" "$out/again.csv"
    done
    rm -f "$out/again.csv"
}

# Lines of bench.csv; where there is none yet, as if its header were there.
count_rows()
{
    wc -l 2>/dev/null <"$out/bench.csv" || echo 1
}

# index_of START: of the point of the plan that starts so.
index_of()
{
    local index
    for index in "${!plan[@]}"; do
        [[ ${plan[index]} != "$1"* ]] || { echo "$index" && return; }
    done
}

# replace_rows "FIRST LAST" FILE NEW: these lines of FILE by the rows of NEW, if they are as many.
replace_rows()
{
    local first last
    read -r first last <<<"$1"
    [[ -s $3 ]] && (($(wc -l <"$3") - 1 == last - first + 1)) || return 0
    { head -n $((first - 1)) "$2" && tail -n +2 "$3" && tail -n +$((last + 1)) "$2"; } >"$2.part"
    mv "$2.part" "$2"
    rm -f "$3"
}
