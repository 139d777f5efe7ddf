#!/usr/bin/env bash
# words.sh [--list N] [PATH...]: measures how plain the texts of the tree are. Prints the flags per 1,000 words of each
# folder, and fails above the limits. A flag is a reason to read a sentence twice (words.awk has the lists):
#
#    inverted   the sentence begins with an inverted clause
#    who?       it names no actor
#    idiom      it contains an idiom
#    long       it has more than 28 words
#    chain      it is a chain of clauses
#
#    --list N   print the N worst sentences, too
#    PATH...    only these files or folders, without the limits
#
# The script first tests itself on made-up texts with each kind of flag.
set -euo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
TREE_MOST=2.5
FOLDER_MOST=4
README_MOST=1.5
README_LINES=120
MARKDOWN_WORDS=24000

# sentences FILE...: prints a row for each sentence, with its flags.
sentences()
{
    awk -f "$here/words.awk" "$@"
}

prove()
{
    local folder
    folder=$(mktemp -d)
    # shellcheck disable=SC2064  # expand the folder's name now
    trap "rm -rf '$folder'" RETURN
    cat >"$folder/a.c" <<'END'
/* Of the ranks the first one counts. A rank sends
 * and nobody answers it.
 *
 * It goes on with the next chunk.
 */
int a; // One, two; three: four; five: six.
const char *b = "Of a string that is no option nothing is said";
END
    cat >"$folder/b.md" <<'END'
# Heading

This sentence has far more words than a reader can hold, because it adds one clause to another, and then it adds
one more clause, until the beginning is forgotten.

    of code nothing is said
- Each rank sends `so many; of: its; own` bytes. Every other rank is told.

| Which cell is meant by the words here | short |
END
    cp "$folder/a.c" "$folder/config_table.c"
    local got
    got=$(cd "$folder" && sentences a.c b.md config_table.c | awk -F'\t' '$4 > 0 { print $2 ":" $5 }')
    diff <(cat <<'END'
a.c:1: inverted
a.c:1: who?
a.c:4: idiom
a.c:6: chain
b.md:3: long
b.md:7: who?
b.md:9: inverted
config_table.c:1: inverted
config_table.c:1: who?
config_table.c:4: idiom
config_table.c:6: chain
config_table.c:7: inverted who?
END
    ) - <<<"$got" || {
        echo "words: self-test: the flags above differ (<: expected, >: found)" >&2
        return 1
    }
}

list=0
if [[ ${1-} == --list ]]; then
    list=${2:?--list needs a number}
    shift 2
fi
[[ ${1-} != --help && ${1-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }
prove

cd "$root"
files() { git ls-files -- "$@" | grep -E '\.(md|c|h|cu|cuh|cc|cpp|js|sh|awk|cmake|gp)$|CMakeLists\.txt$'; }
mapfile -t paths < <(files "$@")
((${#paths[@]} > 0)) || { echo "words: no text in $*" >&2; exit 2; }
table=$(sentences "${paths[@]}")
((list == 0)) || awk -F'\t' '$4 > 0 { print $4 "\t" $2 ":" $5 ": " $6 }' <<<"$table" | sort -rn | cut -f 2- | head -n "$list"
readme=$(sentences README.md | awk -F'\t' '{ w += $3; f += $4 } END { print 1000 * f / w }')
markdown=$(git ls-files -z '*.md' | xargs -0 cat | wc -w)
lines=$(wc -l <README.md)
whole=$((${#} == 0))
awk -F'\t' -v tree="$TREE_MOST" -v most="$FOLDER_MOST" -v readme="$readme" -v readme_most="$README_MOST" \
    -v lines="$lines" -v lines_most="$README_LINES" -v markdown="$markdown" -v markdown_most="$MARKDOWN_WORDS" -v whole="$whole" '
    function over(what, found, limit) {
        if (whole && found > limit) {
            printf "words: %s: found %s, expected at most %s; tests/check/words.sh --list 50 shows sentences\n", what, found, limit
            bad = 1
        }
    }
    { words[$1] += $3; flags[$1] += $4; all_words += $3; all_flags += $4 }
    END {
        for (folder in words) {
            rate = sprintf("%.1f", 1000 * flags[folder] / words[folder])
            printf "%-34s %7d words %6s flags per 1,000\n", folder, words[folder], rate | "sort"
            rates[folder] = rate
        }
        close("sort")
        rate = sprintf("%.1f", 1000 * all_flags / all_words)
        printf "%-34s %7d words %6s flags per 1,000; Markdown %d words; README.md %d lines, %.1f flags\n", "all", all_words, rate,
            markdown, lines, readme
        for (folder in rates)
            over(folder " (flags per 1,000 words)", rates[folder] + 0, most)
        over("the tree (flags per 1,000 words)", rate + 0, tree)
        over("README.md (flags per 1,000 words)", readme + 0, readme_most)
        over("README.md (lines)", lines + 0, lines_most)
        over("all Markdown (words)", markdown + 0, markdown_most)
        exit bad
    }' <<<"$table"
