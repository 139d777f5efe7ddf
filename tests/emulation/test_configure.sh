#!/usr/bin/env bash
# test_configure.sh CMAKE VARIABLE...: configures with a CUDA toolkit as CMake describes it from 3.31 on. The toolkit has
# several folders of headers, and a folder of libraries without cuBLAS and NCCL.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
cmake=$1
mkdir "$folder/modules" "$folder/empty"
cat >"$folder/modules/FindCUDAToolkit.cmake" <<END
include(\${CMAKE_ROOT}/Modules/FindCUDAToolkit.cmake)
list(GET CUDAToolkit_INCLUDE_DIRS 0 first)
set(CUDAToolkit_INCLUDE_DIRS \${first} \${first}/cccl)
set(CUDAToolkit_LIBRARY_DIR $folder/empty)
END

# found NAME: check that CMake's variable names an existing file.
found()
{
    local path
    path=$(sed -n "s/^$1:FILEPATH=//p" "$folder/build/CMakeCache.txt")
    [[ -f $path ]] || fail "$1 is '$path', which is not a file"
    echo "$1: $path"
}

"$cmake" -S "$root" -B "$folder/build" -DCMAKE_MODULE_PATH="$folder/modules" -DPSRING_CUDA=ON \
    -DPSRING_TESTS=OFF >"$folder/log" 2>&1 || fail "CMake failed:"
found PSRING_CUBLAS_HEADER
for name in "${@:2}"; do
    found "$name"
done

# --- libraries of Python wheels, if the toolkit has none of them --------------------------------------------

# wheel PACKAGE FILE...: create the files in the package's folder, in pip's layout.
wheel()
{
    local package=$folder/site/nvidia/$1 file
    shift
    for file; do
        mkdir -p "$package/$(dirname "$file")"
        touch "$package/$file"
    done
}

in_wheels() # NAME: check that CMake's variable names a file or folder of a wheel
{
    local path
    path=$(sed -nE "s/^$1:(FILE)?PATH=//p" "$folder/build/CMakeCache.txt")
    [[ $path == "$folder/site/nvidia/"* && -e $path ]] || fail "$1 is '$path', which is not in a wheel:"
    echo "$1: ${path#"$folder/site/"}"
}

cat >>"$folder/modules/FindCUDAToolkit.cmake" <<END
set(CUDAToolkit_INCLUDE_DIRS $folder/empty)
set(CUDAToolkit_BIN_DIR $folder/empty/bin)
END
major=$(sed -n 's/^PSRING_CUBLAS_LIBRARY:.*\.so\.\([0-9]*\)$/\1/p' "$folder/build/CMakeCache.txt")
[[ $major ]] || major=13
# One wheel with all libraries, then one wheel for each library.
for layout in together apart; do
    rm -rf "$folder/site" "$folder/build"
    if [[ $layout == together ]]; then
        wheel "cu$major" include/cublas_v2.h "lib/libcublas.so.$major" include/nccl.h lib/libnccl.so.2
    else
        wheel cublas include/cublas_v2.h "lib/libcublas.so.$major"
        wheel nccl include/nccl.h lib/libnccl.so.2
    fi
    PYTHONPATH=$folder/site "$cmake" -S "$root" -B "$folder/build" -DCMAKE_MODULE_PATH="$folder/modules" \
        -DPSRING_CUDA=ON -DPSRING_TESTS=OFF >"$folder/log" 2>&1 || fail "CMake failed with wheels $layout:"
    for name in PSRING_CUBLAS_HEADER PSRING_CUBLAS_LIBRARY NCCL_INCLUDE_DIR NCCL_LIBRARY; do
        in_wheels $name
    done
done
