#!/usr/bin/env bash
# test_absent.sh CMAKE CTEST: ctest reports a test that a build cannot have as skipped, also with special characters in
# its reason.
set -euo pipefail
cmake=$1 ctest=$2
unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cat >"$folder/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(absent LANGUAGES NONE)
enable_testing()
include("$here/../psring_test.cmake")
psring_absent_test(odd "the toolkit's folder has (no) & \\"such\\" thing")
END
"$cmake" -S "$folder" -B "$folder/build" >"$folder/log" 2>&1 || { cat "$folder/log" && exit 1; }
"$ctest" --test-dir "$folder/build" -V >"$folder/log" 2>&1 || { cat "$folder/log" && exit 1; }
for words in "odd: skipped: the toolkit's folder has (no) & \"such\" thing" '1 - odd (Skipped)'; do
    grep -qF -- "$words" "$folder/log" || { cat "$folder/log" && echo "test_absent: expected '$words'" && exit 1; }
done
echo "test_absent: passed"
