# Sourced by ../../gpu_check.sh: the page's data, as JSON.
# shellcheck shell=bash disable=SC2154

# shellcheck source=experiments/sweep/provenance.sh
. experiments/sweep/provenance.sh

# data_of true|false: prints whether the whole check passed, with the parts and the goals of $out.
data_of()
{
    local comma='' name result seconds limit what detail met words
    printf '{\n  "gpu": %s,\n  "commit": %s,\n  "time": %s,\n  "seconds": %d,\n  "passed": %s,\n  "parts": [' \
        "$(json_string "$gpu")" "$(json_string "$commit")" "$(json_string "$time")" "$SECONDS" "$1"
    while IFS='|' read -r name result seconds limit what detail; do
        printf '%s\n    {"name": %s, "what": %s, "result": %s, "seconds": %d, "limit_s": %d, "detail": %s}' "$comma" \
            "$(json_string "$name")" "$(json_string "$what")" "$(json_string "$result")" "$seconds" "$limit" "$(json_string "$detail")"
        comma=,
    done <"$out/parts.txt"
    printf '\n  ],\n  "goals": ['
    comma=
    while read -r met words; do
        printf '%s\n    {"met": %s, "goal": %s}' "$comma" "$([[ $met == met ]] && echo true || echo false)" "$(json_string "$words")"
        comma=,
    done <"$out/goals.txt"
    printf '\n  ]\n}\n'
}
