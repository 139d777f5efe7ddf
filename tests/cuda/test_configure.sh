#!/usr/bin/env bash
# test_configure.sh CMAKE VARIABLE...: configures with a CUDA toolkit that CMake describes as it does from 3.31 on:
# several folders of headers, and a folder of libraries in which cuBLAS and NCCL are not.
set -euo pipefail
cmake=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/modules" "$scratch/empty"
cat >"$scratch/modules/FindCUDAToolkit.cmake" <<END
include(\${CMAKE_ROOT}/Modules/FindCUDAToolkit.cmake)
list(GET CUDAToolkit_INCLUDE_DIRS 0 first)
set(CUDAToolkit_INCLUDE_DIRS \${first} \${first}/cccl)
set(CUDAToolkit_LIBRARY_DIR $scratch/empty)
END

fail()
{
    echo "test_configure: $*" >&2
    tail -n 20 "$scratch/log" >&2
    exit 1
}

# found NAME: CMake's variable names a file that exists.
found()
{
    local path
    path=$(sed -n "s/^$1:FILEPATH=//p" "$scratch/build/CMakeCache.txt")
    [[ -f $path ]] || fail "$1 is '$path', which is no file"
    echo "$1: $path"
}

"$cmake" -S "$source" -B "$scratch/build" -DCMAKE_MODULE_PATH="$scratch/modules" -DPSRING_CUDA=ON \
    -DPSRING_TESTS=OFF >"$scratch/log" 2>&1 || fail "CMake failed:"
found PSRING_CUBLAS_HEADER
for name in "${@:2}"; do
    found "$name"
done
