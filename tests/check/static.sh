#!/usr/bin/env bash
# static.sh [--build DIR] [FILE...]: reads the C code with cppcheck and clang-tidy, and fails on a finding.
#
# Checks the files outside tests/ that a build compiles, without the CUDA device. .clang-tidy has clang-tidy's checks,
# with a reason for each one that is off. A comment with a reason suppresses a single finding in the line below it:
# NOLINTNEXTLINE(CHECK): REASON for clang-tidy, cppcheck-suppress ID ; REASON for cppcheck. Versions differ in what they
# find. The tree has no findings of clang-tidy 14 and cppcheck 2.10, which Debian 12 has.
#
#    --build DIR  take the compile commands and the generated header from this build folder (default: build)
#    FILE...      check only these files; paths from the root
#
# The script first tests itself on a made-up file with a fault for each tool.
set -euo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
cd "$(dirname "$0")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

die()
{
    echo "static.sh: $*" >&2
    exit 2
}

# commands ROOT FILE: prints the compile commands of the checked files as a database, one for each file. A file that the
# tests or libpsring compile again, with less in it, is checked as the program has it.
commands()
{
    awk -v root="$1/" -v only="$only" '
        /^ *"directory": / { directory = $0 }
        /^ *"command": / { command = $0 }
        /^ *"file": / {
            split($0, quoted, "\"")
            path = substr(quoted[4], length(root) + 1)
            if (index(quoted[4], root) != 1 || path !~ /^(common|ps|ring|models|experiments)\/.*\.c$/ || path ~ /\/cuda\// ||
                command ~ / -o tests\// || (only != "" && index(only, "\n" path "\n") == 0))
                next
            if (!(path in entry))
                paths[++n] = path
            entry[path] = directory "\n" command "\n" $0
        }
        END {
            for (i = 1; i <= n; i++)
                printf "%s{\n%s\n}", i == 1 ? "[\n" : ",\n", entry[paths[i]]
            print "\n]"
        }' "$2"
}

# run_cppcheck FOLDER: checks the files of the folder's database. readdir is safe between threads in glibc and musl.
run_cppcheck()
{
    cppcheck --project="$1/compile_commands.json" --enable=warning,performance,portability --inline-suppr \
        --library=gnu,posix,openssl,zlib --suppress=readdirCalled --quiet --error-exitcode=1 -j "$(nproc)" --template=gcc
}

# tidy_one FOLDER FILE: prints the findings in one file at once, because several run at the same time. Without clones
# and fp16: clang 14 does not know all of gcc's names for the features of a CPU.
tidy_one()
{
    local findings
    findings=$(clang-tidy -p "$1" --quiet --config-file=.clang-tidy --extra-arg=-Wno-error \
        --extra-arg=-UPSRING_TARGET_CLONES --extra-arg=-UPSRING_F16C "$2" 2>&1) && return 0
    sed '/^[0-9]* warnings* generated\.$/d' <<<"$findings"
    return 1
}
export -f tidy_one

# run_clang_tidy FOLDER: checks the files of the folder's database, the largest ones first.
run_clang_tidy()
{
    local files
    mapfile -t files < <(sed -nE 's/^ *"file": "(.*)"$/\1/p' "$1/compile_commands.json" | xargs -d '\n' ls -S)
    # shellcheck disable=SC2016 # the other shell expands it
    printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'tidy_one "$0" "$1"' "$1"
}

prove()
{
    local file=$scratch/proof/common/fault.c tool
    mkdir -p "$(dirname "$file")"
    cat >"$file" <<'END_OF_FILE'
#include <stdlib.h>
int *fault(int count);
int *fault(int count)
{
    int *made = malloc(4 * sizeof(int)), numbers[4];
    numbers[count] = 1;
    if (numbers[4] > 0)
        return NULL;
    return made;
}
END_OF_FILE
    cat >"$scratch/proof/all.json" <<END_OF_FILE
[
{
  "directory": "$scratch",
  "command": "cc -std=c11 -o fault.o -c $file",
  "file": "$file"
}
]
END_OF_FILE
    commands "$scratch/proof" "$scratch/proof/all.json" >"$scratch/proof/compile_commands.json"
    for tool in cppcheck clang_tidy; do
        ! "run_$tool" "$scratch/proof" >"$scratch/log" 2>&1 || die "self-test: $tool found no fault in $file"
        grep -q 'fault\.c:' "$scratch/log" || { cat "$scratch/log" >&2 && die "self-test: $tool did not run"; }
    done
}

build=build
only=
while (($#)); do
    case $1 in
    --build)
        (($# >= 2)) || die "--build needs a folder; see static.sh --help"
        build=$2
        shift
        ;;
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' tests/check/static.sh
        exit 0
        ;;
    -*) die "unknown option '$1'; see static.sh --help" ;;
    *) break ;;
    esac
    shift
done
for tool in cppcheck clang-tidy; do
    command -v $tool >/dev/null || die "found no $tool; experiments/setup.sh --ci installs it"
done
[[ -f $build/compile_commands.json ]] || die "found no $build/compile_commands.json; tests/run.sh makes a build"
prove
(($# == 0)) || only=$(printf '\n%s' "$@")$'\n'
commands "$PWD" "$build/compile_commands.json" >"$scratch/compile_commands.json"
count=$(grep -c '"file"' "$scratch/compile_commands.json") || die "found none of the files in $build/compile_commands.json"
failed=()
for tool in cppcheck clang_tidy; do
    started=$SECONDS
    "run_$tool" "$scratch" || failed+=("$tool")
    echo "static.sh: ${tool/_/-}: $count files in $((SECONDS - started)) s"
done
((${#failed[@]} == 0)) || { echo "static.sh: found faults, see above: ${failed[*]/_/-}" >&2 && exit 1; }
