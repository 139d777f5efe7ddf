#!/usr/bin/env bash
# refusals.sh [--table]: checks the errors with which psring refuses a command line, a file or a machine. Each error
# names the thing, what was found, and what was expected or what to do. The script prints the errors that lack a part,
# and fails. --table prints all errors with a column for each part. The script looks for words, so it finds missing
# parts, not bad ones.
set -euo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

# Self-test: a message of two parts, a message without a remedy, and a text made of macros.
proof=$(awk -f "$here/refusals.awk" <(cat <<'END'
#define ADVICE "; use another one"
return FAIL(STATUS_USAGE, "--rank %d: expected at least 0; give "
                          "another one", rank);
return FAIL(STATUS_INPUT, "%s: is a folder", path);
return FAIL(STATUS_INPUT, "%s: is a folder" ADVICE, path);
return FAIL(STATUS_INPUT, "%s: %s", path, why);
END
) | cut -f 2-5 | tr '\t\n' ' /')
[[ $proof == '1 1 1 1/1 1 0 0/1 1 0 1/' ]] || { echo "refusals: self-test: found $proof" >&2; exit 1; }

table=$(git ls-files common ring ps models experiments | grep -E '\.(c|cu)$' | xargs awk -f "$here/refusals.awk")
if [[ ${1-} == --table ]]; then
    printf 'place\tthing\tfound\texpected\tremedy\ttext\n%s\n' "$table"
    exit 0
fi
awk -F'\t' '
    !$2 || !$3 || (!$4 && !$5) {
        printf "refusals: %s: lacks%s: %s\n", $1, (!$2 ? " the thing" : "") (!$3 ? " what was found" : "") (!$4 && !$5 ? " what to do" : ""), $6
        bad = 1
    }
    END {
        printf "refusals: %d messages, %s\n", NR, bad ? "some of which lack a part" : "each with its parts"
        exit bad
    }' <<<"$table"
