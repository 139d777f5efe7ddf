#!/usr/bin/env bash
# test_install.sh SOURCE PLAIN BUILD [CMAKE-OPTION...]: libpsring as others have it: without MPI from the build folder
# PLAIN, and built by itself with MPI (in the folder BUILD, which is kept), installed, and used by a C and a C++ program
# that see nothing but what was installed.
set -euo pipefail
source=$1 plain=$2 build=$3
shift 3
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
unset OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK SLURM_PROCID
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"

fail()
{
    echo "install: $*"
    tail -n 20 "$folder"/log "$folder"/said.* 2>/dev/null || true
    exit 1
}

# quietly WHAT COMMAND...: what it prints is shown only if it fails.
quietly()
{
    local what=$1
    shift
    "$@" >"$folder/log" 2>&1 || fail "$what failed"
}

# by_rendezvous PROGRAM W: on W ranks, each a process of its own, told as torchrun tells it.
by_rendezvous()
{
    local rank pids=() port
    port=$(free_port)
    for ((rank = $2 - 1; rank >= 0; rank--)); do
        RANK=$rank WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            timeout --kill-after=5 100 "$1" >"$folder/said.$rank" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || fail "$1 on $2 ranks by rendezvous"
    done
    grep -qxF "$2 ranks: w[7] = $(expected "$2"), expected $(expected "$2")" "$folder/said.0" || fail "$1: the result"
}

expected()
{
    awk -v size="$1" 'BEGIN { printf "%.3f", 7 + (size - 1) / 2 }'
}

# install_library NAME BUILD: installs that build's in $folder/NAME, sets $prefix and $library.
install_library()
{
    local name=$1 found
    prefix=$folder/$name
    quietly "installing" cmake --install "$2" --prefix "$prefix" --component libpsring
    library=$(find "$prefix" -name libpsring.so)
    found=$(cd "$prefix" && find . -name '*.h')
    [[ $found == ./include/psring.h ]] || fail "headers: $found"
    [[ $(find "$prefix" -type f | wc -l) == 6 ]] || fail "files: $(find "$prefix" -type f)"
    ! nm -D --defined-only "$library" | grep -v ' psring_[a-z_]*$' || fail "it shows more than psring_*"
    [[ $(grep -o '\bpsring_[a-z_]*(' "$prefix/include/psring.h" | sort -u | tr -d '(') == \
        $(nm -D --defined-only "$library" | awk '{ print $3 }' | sort -u) ]] || fail "it does not show what the header has"
    readelf -d "$library" | grep -q 'SONAME.*libpsring\.so\.0\.1\]' || fail "the name to link with"
}

# needed: the libraries that it names itself, not what those need.
needed()
{
    readelf -d "$library" | grep NEEDED
}

# build_examples: in $folder/NAME-examples, by CMake's package; and minimal.c by pkg-config.
build_examples()
{
    local pc
    examples=$prefix-examples
    quietly "find_package" cmake -S "$here/installed" -B "$examples" "$@" -DCMAKE_PREFIX_PATH="$prefix" \
        -DEXAMPLES="$source/experiments"
    quietly "building the examples" cmake --build "$examples"
    pc=$(dirname "$(find "$prefix" -name psring.pc)")
    [[ $(PKG_CONFIG_PATH=$pc pkg-config --modversion psring) == 0.1.0 ]] || fail "pkg-config's version"
    # shellcheck disable=SC2046  # words
    quietly "pkg-config" "${CC:-cc}" -std=c11 -Wall -Werror -o "$examples/by_pkg_config" "$source/experiments/minimal.c" \
        $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs psring) -Wl,-rpath,"$(dirname "$library")"
}

(($(wc -l <"$source/experiments/minimal.c") <= 45)) || fail "minimal.c is not minimal"

install_library plain "$plain"
! needed | grep -vE 'libzmq\.|libc\.|libm\.|libpthread\.|ld-linux|san\.' || fail "it needs what it should not"
build_examples "$@"
for program in minimal minimal_cpp by_pkg_config; do
    by_rendezvous "$examples/$program" 3
    [[ $("$examples/$program") == "1 ranks: w[7] = 7.000, expected 7.000" ]] || fail "$program alone"
done
! OMPI_COMM_WORLD_RANK=0 "$examples/minimal" >"$folder/log" 2>&1 || fail "a launcher of MPI went unnoticed"
grep -q '^minimal: an MPI launcher has started this process, and this libpsring was built without MPI' "$folder/log" ||
    fail "what it says of a launcher"
lacking=()
command -v valgrind >/dev/null || lacking+=(valgrind)
command -v abidiff >/dev/null || lacking+=(abidiff)
if [[ ${lacking[*]} != *valgrind* ]]; then
    for program in minimal minimal_cpp; do
        printf '#!/bin/sh\nexec valgrind --quiet --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all %s\n' \
            "--error-exitcode=9 $examples/$program" >"$examples/checked"
        chmod +x "$examples/checked"
        by_rendezvous "$examples/checked" 2
    done
fi
cp "$library" "$folder/libpsring.plain.so"

quietly "configuring" cmake -S "$source" -B "$build" -DPSRING_PROGRAM=OFF -DPSRING_LIBRARY_MPI=ON "$@"
quietly "building" cmake --build "$build"
install_library mpi "$build"
needed | grep -q libmpi || fail "it has no MPI"
build_examples "$@" -DWITH_MPI=ON
by_rendezvous "$examples/minimal" 2
for program in minimal minimal_cpp; do
    quietly "$program by mpirun" "$lib/mpirun.sh" 3 "$examples/$program"
    grep -qxF "3 ranks: w[7] = 8.000, expected 8.000" "$folder/log" || fail "$program by mpirun: the result"
done
quietly "an MPI of the library's" "$lib/mpirun.sh" 2 "$examples/own_mpi" without
grep -qF "MPI has been finalised, and cannot be started again in this process" "$folder/log" || fail "a second init"
if [[ ${lacking[*]} != *abidiff* ]]; then
    # With what debugging information says of types, if there is any: only of those in the installed header.
    headers=$prefix/include
    quietly "abidiff of two builds" abidiff --drop-private-types --headers-dir1 "$headers" --headers-dir2 "$headers" \
        "$folder/libpsring.plain.so" "$library"
fi
for level in '' funneled; do
    # shellcheck disable=SC2086  # none, or a word
    quietly "own_mpi $level" "$lib/mpirun.sh" 3 "$examples/own_mpi" $level
    grep -qxF "3 ranks, and MPI goes on" "$folder/log" || fail "own_mpi: the result"
done
if ((${#lacking[@]} > 0)); then
    echo "install: skipped: no ${lacking[*]} here (experiments/setup.sh --ci installs it); all else has passed"
    exit 77
fi
echo "install: built, installed and used, with MPI and without"
