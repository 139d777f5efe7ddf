#!/usr/bin/env bash
# check_sizes.sh [ROOT]: no source file outside tests/ has more than 800 lines.
#
# A file is one subject. The limit catches a file that has grown into two; it is no reason to cut one in two.
set -euo pipefail

FILE_LINES=800

cd "${1:-$(dirname "$0")/..}"
find common models ps ring experiments plots -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.sh' -o -name '*.awk' -o -name '*.py' \
    -o -name '*.gp' -o -name '*.html' -o -name '*.js' \) -print0 | sort -z | xargs -0 awk -v file_lines=$FILE_LINES '
    FNR == 1 { files++ }
    { lines[FILENAME]++ }
    END {
        for (name in lines)
            if (lines[name] > file_lines) {
                printf "%s: %d lines, at most %d: cut the file by subject\n", name, lines[name], file_lines
                bad = 1
            }
        if (!bad)
            printf "check_sizes: %d files fit\n", files
        exit bad || !files
    }'
