#!/usr/bin/env bash
# test_configure.sh CMAKE VARIABLE...: configures with a CUDA toolkit that CMake describes as it does from 3.31 on:
# several folders of headers, and a folder of libraries in which cuBLAS and NCCL are not.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib.sh
. "$(dirname "$0")/../lib.sh"
cmake=$1
mkdir "$folder/modules" "$folder/empty"
cat >"$folder/modules/FindCUDAToolkit.cmake" <<END
include(\${CMAKE_ROOT}/Modules/FindCUDAToolkit.cmake)
list(GET CUDAToolkit_INCLUDE_DIRS 0 first)
set(CUDAToolkit_INCLUDE_DIRS \${first} \${first}/cccl)
set(CUDAToolkit_LIBRARY_DIR $folder/empty)
END

# found NAME: CMake's variable names a file that exists.
found()
{
    local path
    path=$(sed -n "s/^$1:FILEPATH=//p" "$folder/build/CMakeCache.txt")
    [[ -f $path ]] || fail "$1 is '$path', which is no file"
    echo "$1: $path"
}

"$cmake" -S "$root" -B "$folder/build" -DCMAKE_MODULE_PATH="$folder/modules" -DPSRING_CUDA=ON \
    -DPSRING_TESTS=OFF >"$folder/log" 2>&1 || fail "CMake failed:"
found PSRING_CUBLAS_HEADER
for name in "${@:2}"; do
    found "$name"
done
