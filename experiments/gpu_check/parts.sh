# Sourced by gpu_check.sh: its parts, one function each, and shared functions. A part prints to its log. The last line
# "detail ..." is its text in the table. A line "goal met ..." or "goal missed ..." reports an expected speed, which
# never makes a part fail. The status is 0 if it passed, 77 if it was skipped (the detail gives the reason), else it
# failed. Expects $build, $out, $data, $gpu, and $work, an empty folder that is removed after the part.
# shellcheck shell=bash disable=SC2154

for file in build ranks train speed; do
    # shellcheck disable=SC1090  # experiments/gpu_check/*.sh
    . "experiments/gpu_check/$file.sh"
done
unset file

# end_jobs: ends the processes that the part started and did not wait for.
end_jobs()
{
    local left
    left=$(jobs -rp)
    # shellcheck disable=SC2086  # words
    [[ ! $left ]] || kill -KILL $left 2>/dev/null
    wait 2>/dev/null
}
trap end_jobs EXIT

# value_of FILE COLUMN: prints the value in the last row.
value_of()
{
    awk -F, -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } END { if (at) print $at }' "$1"
}

# newest FOLDER: prints the checkpoint of the last step.
newest()
{
    printf '%s\n' "$1"/*.checkpoint | sort | tail -n 1
}

# oldest FOLDER: prints the checkpoint of the first step.
oldest()
{
    printf '%s\n' "$1"/*.checkpoint | sort | head -n 1
}

# apart NAME LEAST BOUND FOLDER-A FOLDER-B [newest|oldest]: prints the distance of the weights and appends it to $said.
# Fails outside LEAST to BOUND.
apart()
{
    local relative
    relative=$("$build/tests/compare_weights" "$("${6:-newest}" "$4")" "$("${6:-newest}" "$5")") || return 1
    relative=${relative#relative }
    echo "$1: $relative apart, wanted $2 to $3"
    [[ $relative =~ ^[0-9] ]] || { echo "that is no distance" && return 1; } # awk would compare it as a word
    said+=", $1 $relative"
    awk -v found="$relative" -v least="$2" -v bound="$3" 'BEGIN { exit !(least <= found && found <= bound) }'
}

# goal WORDS CONDITION: prints whether a speed was reached. CONDITION is an awk expression.
goal()
{
    awk "BEGIN { exit !($2) }" && echo "goal met $1" || echo "goal missed $1"
}

# median: prints the median of the numbers in the lines of stdin; nothing without numbers.
median()
{
    sort -g | awk '{ value[NR] = $1 }
        END { if (NR) printf "%.0f\n", (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 }'
}
