#!/usr/bin/env bash
# coverage.sh [CTEST-ARGUMENT...]: measures which lines of the C code the tests run.
#
# Builds in build-coverage/ without CUDA, runs the tests, and prints the line coverage of common, ps, ring and models.
# Fails if one of them is below 85%, or if a test fails. The list of the files with the most missed lines follows. By
# default it runs the tests labelled quick or network, because those of libpsring are processes (network). CI does not
# run it: it builds everything again, and takes about ten minutes on two cores.
#
# gcov counts. It adds up all programs, and all targets that compile a file. A process that a signal or _exit ends writes
# no counts. Headers with code count, too. Code for CUDA is not built, so it does not count (tests/emulation tests it).
set -euo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
cd "$(dirname "$0")/../.."
LEAST=85
FILES=15
build="build-coverage"

if [[ ${1-} == -h || ${1-} == --help ]]; then
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' tests/check/coverage.sh
    exit 0
fi
(($# > 0)) || set -- -L '^(quick|network)$'

# Without clones for several vector widths, whose lines gcov could not tell apart. Threads count atomically.
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DPSRING_CUDA=OFF -DPSRING_COMPILER_HAS_TARGET_CLONES=OFF \
    -DCMAKE_C_FLAGS="-Og --coverage -fprofile-update=atomic" >/dev/null
cmake --build $build
find $build -name '*.gcda' -delete
failed=0
ctest --test-dir $build --output-on-failure -j 10 "$@" || failed=1

# A line counts as run if any object has run it. gcov writes "COUNT:LINE:SOURCE": - is no code, ##### did not run.
find $build -name '*.gcno' -print0 | xargs -0 gcov --stdout --source-prefix "$PWD" --relative-only 2>/dev/null |
    awk -F: -v least=$LEAST -v most_files=$FILES '
        $2 + 0 == 0 && $3 == "Source" { file = $4; counts = file ~ /^(common|ps|ring|models)\// }
        !counts || $2 + 0 == 0 || $1 ~ /^ *-$/ { next }
        { line = file ":" $2 + 0; ran[line] = ran[line] || $1 !~ /[#=]/ }
        END {
            for (line in ran) {
                split(line, part, ":")
                folder = part[1]
                sub(/\/.*/, "", folder)
                lines[folder]++
                run[folder] += ran[line]
                missed[part[1]] += !ran[line]
            }
            for (folder in lines) {
                share = 100 * run[folder] / lines[folder]
                printf "%-8s %6d of %6d lines run: %.1f%%%s\n", folder, run[folder], lines[folder], share,
                    share < least ? ", expected at least " least "%" : "" | "sort"
                bad = bad || share < least
            }
            close("sort")
            for (file in missed)
                printf "%5d lines missed in %s\n", missed[file], file | ("sort -rn | head -n " most_files)
            exit bad || length(lines) < 4
        }' || failed=1
exit $failed
