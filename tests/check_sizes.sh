#!/usr/bin/env bash
# check_sizes.sh [ROOT]: no folder outside tests/ holds more than 2,500 lines, one in experiments/ with the
# folders in it; no file holds more than 400. Who looks for something must be able to see all of a room.
set -euo pipefail

FOLDER_LINES=2500
FILE_LINES=400

cd "${1:-$(dirname "$0")/..}"
find common models ps ring experiments plots -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.sh' -o -name '*.awk' -o -name '*.py' \
    -o -name '*.gp' -o -name '*.html' \) -print0 | sort -z | xargs -0 awk -v folder_lines=$FOLDER_LINES -v file_lines=$FILE_LINES '
    FNR == 1 {
        depth = split(FILENAME, part, "/")
        folder = FILENAME
        sub(/\/[^\/]*$/, "", folder)
        if (part[1] == "experiments" && depth > 2)
            folder = part[1] "/" part[2]
        files++
    }
    { inside[folder]++; long[FILENAME]++ }
    END {
        for (name in inside)
            if (inside[name] > folder_lines) {
                printf "%s: %d lines, at most %d: cut the folder by purpose\n", name, inside[name], folder_lines
                bad = 1
            }
        for (name in long)
            if (long[name] > file_lines) {
                printf "%s: %d lines, at most %d: cut the file by purpose\n", name, long[name], file_lines
                bad = 1
            }
        if (!bad)
            printf "check_sizes: %d files fit\n", files
        exit bad || !files
    }'
