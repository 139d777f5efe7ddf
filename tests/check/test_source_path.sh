#!/usr/bin/env bash
# test_source_path.sh CMAKE GENERATOR: the sources build in a folder whose name has a space, an apostrophe and a dollar.
# Builds a target that runs the project's commands, and one library.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
cmake=$1 generator=$2
source="$folder/someone's \$HOME"
mkdir "$source"
cp -r "$root"/{CMakeLists.txt,common,experiments,models,plots,ps,ring,tests} "$source"
if ! "$cmake" -S "$source" -B "$source/build" -G "$generator" -DCMAKE_BUILD_TYPE=Debug -DPSRING_TESTS=OFF >"$folder/log" 2>&1 ||
    ! "$cmake" --build "$source/build" --target psring_commit psring_base >>"$folder/log" 2>&1; then
    fail "psring does not build in $source:"
fi
grep -q '^#define PSRING_COMMIT ' "$source/build/generated/experiments/bench/commit.h"

# shellcheck disable=SC2016 # the other shell expands it
bash -c '. "$1/tests/lib/lib.sh" && at_end touch "$1/ended"' bash "$source"
[[ -e $source/ended ]] || fail "at_end does not run its command in $source"

# The preset's suppressions for ThreadSanitizer are one file name, also with these characters.
preset=$(sed -n 's/^ *"TSAN_OPTIONS": "\(.*\)"$/\1/p' "$root/CMakePresets.json" | sed 's/\\"/"/g')
[[ $preset ]] || fail "CMakePresets.json sets no TSAN_OPTIONS"
if echo 'int main(void) { return 0; }' | cc -fsanitize=thread -x c -o "$folder/program" - 2>"$folder/log"; then
    # shellcheck disable=SC2016 # CMake expands it
    TSAN_OPTIONS=${preset//'${sourceDir}'/$source} "$folder/program" >"$folder/log" 2>&1 || true
    ! grep -qE 'in TSAN_OPTIONS|suppressions' "$folder/log" || fail "ThreadSanitizer does not find the suppressions:"
fi
echo "test_source_path: passed"
