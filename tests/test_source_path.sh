#!/usr/bin/env bash
# test_source_path.sh CMAKE GENERATOR: the sources build in a folder whose name has a space, an apostrophe and a
# dollar. Builds what runs commands of ours, and one library.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cmake=$1 generator=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
source="$dir/someone's \$HOME"
mkdir "$source"
cp -r "$root"/{CMakeLists.txt,common,experiments,models,plots,ps,ring,tests} "$source"
if ! "$cmake" -S "$source" -B "$source/build" -G "$generator" -DCMAKE_BUILD_TYPE=Debug -DPSRING_TESTS=OFF >"$dir/out" 2>&1 ||
    ! "$cmake" --build "$source/build" --target psring_commit psring_base >>"$dir/out" 2>&1; then
    tail -n 20 "$dir/out"
    echo "test_source_path: FAILED: it does not build in $source"
    exit 1
fi
grep -q '^#define PSRING_COMMIT ' "$source/build/generated/experiments/measure/commit.h"
echo "test_source_path: passed"
