#!/usr/bin/env bash
# test_install.sh SOURCE PLAIN BUILD [CMAKE-OPTION...]: installs and uses libpsring: without MPI from the build folder
# PLAIN, and built with MPI in the folder BUILD, which is kept. A C and a C++ program use only what was installed.
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

# quietly WHAT COMMAND...: run the command; its output is shown only if it fails.
quietly()
{
    local what=$1
    shift
    "$@" >"$folder/log" 2>&1 || fail "$what failed"
}

# by_rendezvous PROGRAM W: run it on W ranks, each a process, with torchrun's environment variables.
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
        wait "$pid" || fail "$1 on $2 ranks by rendezvous failed"
    done
    grep -qxF "$2 ranks: w[7] = $(expected "$2"), expected $(expected "$2")" "$folder/said.0" || fail "$1: wrong result"
}

expected()
{
    awk -v size="$1" 'BEGIN { printf "%.3f", 7 + (size - 1) / 2 }'
}

# install_library NAME BUILD: install that build in $folder/NAME; sets $prefix and $library.
install_library()
{
    local name=$1 found
    prefix=$folder/$name
    quietly "installing" cmake --install "$2" --prefix "$prefix" --component libpsring
    library=$(find "$prefix" -name libpsring.so)
    found=$(cd "$prefix" && find . -name '*.h')
    [[ $found == ./include/psring.h ]] || fail "headers: $found"
    [[ $(find "$prefix" -type f | wc -l) == 6 ]] || fail "files: $(find "$prefix" -type f)"
    ! nm -D --defined-only "$library" | grep -v ' psring_[a-z_]*$' || fail "the library exports more than psring_*"
    [[ $(grep -o '\bpsring_[a-z_]*(' "$prefix/include/psring.h" | sort -u | tr -d '(') == \
        $(nm -D --defined-only "$library" | awk '{ print $3 }' | sort -u) ]] || fail "the library's exports differ from the header"
    readelf -d "$library" | grep -q 'SONAME.*libpsring\.so\.0\.1\]' || fail "the SONAME is not libpsring.so.0.1"
}

# needed: print the libraries that it names itself, not those that these need.
needed()
{
    readelf -d "$library" | grep NEEDED
}

# build_examples: build with CMake's package in $folder/NAME-examples, and minimal.c with pkg-config.
build_examples()
{
    local pc
    examples=$prefix-examples
    quietly "find_package" cmake -S "$here/installed" -B "$examples" "$@" -DCMAKE_PREFIX_PATH="$prefix" \
        -DEXAMPLES="$source/experiments"
    quietly "building the examples" cmake --build "$examples"
    pc=$(dirname "$(find "$prefix" -name psring.pc)")
    [[ $(PKG_CONFIG_PATH=$pc pkg-config --modversion psring) == 0.1.0 ]] || fail "pkg-config reports another version than 0.1.0"
    # shellcheck disable=SC2046  # words
    quietly "pkg-config" "${CC:-cc}" -std=c11 -Wall -Werror -o "$examples/by_pkg_config" "$source/experiments/minimal.c" \
        $(PKG_CONFIG_PATH=$pc pkg-config --cflags --libs psring) -Wl,-rpath,"$(dirname "$library")"
}

(($(wc -l <"$source/experiments/minimal.c") <= 45)) || fail "minimal.c has more than 45 lines"

install_library plain "$plain"
! needed | grep -vE 'libzmq\.|libssl\.|libcrypto\.|libc\.|libm\.|libpthread\.|ld-linux|san\.' || fail "the library needs an unexpected library"
build_examples "$@"
for program in minimal minimal_cpp by_pkg_config; do
    by_rendezvous "$examples/$program" 3
    [[ $("$examples/$program") == "1 ranks: w[7] = 7.000, expected 7.000" ]] || fail "$program alone: wrong result"
done
! OMPI_COMM_WORLD_RANK=0 "$examples/minimal" >"$folder/log" 2>&1 || fail "an MPI launcher was not noticed"
grep -q '^minimal: an MPI launcher has started this process, and this libpsring was built without MPI' "$folder/log" ||
    fail "the error does not name the launcher"
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
needed | grep -q libmpi || fail "the library is not linked with MPI"
build_examples "$@" -DWITH_MPI=ON
by_rendezvous "$examples/minimal" 2
for program in minimal minimal_cpp; do
    quietly "$program by mpirun" "$lib/mpirun.sh" 3 "$examples/$program"
    grep -qxF "3 ranks: w[7] = 8.000, expected 8.000" "$folder/log" || fail "$program by mpirun: wrong result"
done
quietly "MPI started by the library" "$lib/mpirun.sh" 2 "$examples/own_mpi" without
grep -qF "MPI has been finalised, and cannot be started again in this process" "$folder/log" || fail "a second psring_init: no error about MPI"
if [[ ${lacking[*]} != *abidiff* ]]; then
    # Without private types: if there is debugging information, only types of the installed header are compared.
    headers=$prefix/include
    quietly "abidiff of two builds" abidiff --drop-private-types --headers-dir1 "$headers" --headers-dir2 "$headers" \
        "$folder/libpsring.plain.so" "$library"
fi
for level in '' funneled; do
    # shellcheck disable=SC2086  # none, or a word
    quietly "own_mpi $level" "$lib/mpirun.sh" 3 "$examples/own_mpi" $level
    grep -qxF "3 ranks, and MPI still works" "$folder/log" || fail "own_mpi: wrong result"
done
if ((${#lacking[@]} > 0)); then
    echo "install: skipped: no ${lacking[*]} here (experiments/setup.sh --ci installs it); all other checks passed"
    exit 77
fi
echo "install: built, installed and used, with MPI and without"
