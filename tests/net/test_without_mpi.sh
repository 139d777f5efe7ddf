#!/usr/bin/env bash
# test_without_mpi.sh [BUILD [CMAKE-OPTION...]]: psring without MPI reports what it lacks, measures and trains. The
# test uses PSRING, which is linked from the objects of the other programs, without MPI. With BUILD (a folder) CMake
# builds everything there without MPI instead.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
unset OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK SLURM_PROCID
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"

fail()
{
    echo "without_mpi: $*"
    tail -n 20 "$folder"/log "$folder"/rank.* 2>/dev/null || true
    exit 1
}

# says WORDS COMMAND...: the command must fail and print one line, which contains the words.
says()
{
    local words=$1
    shift
    ! "$@" >"$folder/log" 2>&1 || fail "$* ended well, expected '$words'"
    (($(wc -l <"$folder/log") == 1)) || fail "$* printed no line or more than one"
    grep -qF -- "$words" "$folder/log" || fail "$*: the line does not contain '$words'"
}

if (($# > 0)); then
    cmake -S "$root" -B "$1" -DPSRING_MPI=OFF -DPSRING_CUDA=OFF "${@:2}" >"$folder/log" 2>&1 || fail "cmake failed"
    cmake --build "$1" --target psring >"$folder/log" 2>&1 || fail "the build failed"
    psring=$1/psring
fi

! ldd "$psring" | grep -i 'libmpi' || fail "psring is linked with MPI"
"$psring" info >"$folder/log" || fail "info failed"
(($(grep -c '\[ \] mpi .*this build has no MPI' "$folder/log") == 3)) ||
    fail "info does not list the backend, transport and library as missing"
says "--backend mpi: this build has no MPI" "$psring" bench --backend mpi
says "--transport mpi: this build has no MPI" "$psring" bench --transport mpi
says "an MPI launcher has started this process" env OMPI_COMM_WORLD_RANK=0 "$psring" bench

"$psring" bench --backend none -e 4k >"$folder/log" 2>&1 || fail "bench alone failed"
ranks 3 bench -e 64k -n 5 -w 1 || fail "bench on three ranks failed"
grep -q 'every element equals the exact sum; bytes are as in theory' "$folder/rank.0" || fail "bench reported wrong sums or bytes"

mkdir "$folder/data"
"$make_dataset" "$folder/data" 600 100
ranks 3 train --data "$folder/data" --model lenet --batch 8 --steps 10 || fail "train on three ranks failed"
grep -qE '^weights sha256 [0-9a-f]{64}$' "$folder/rank.0" || fail "train left no weights"
echo "without_mpi: built, measured and trained"
