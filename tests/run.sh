#!/usr/bin/env bash
# run.sh [--preset NAME] [--programs LIST] [CTEST-ARGUMENT...]: builds psring and runs its tests.
#
# Installs missing packages, configures, builds and runs ctest. The exit code is not 0 if anything fails. Further
# arguments go to ctest: tests/run.sh -L quick, tests/run.sh -R ring.
#
#    --preset NAME    a preset of CMakePresets.json: release (default), debug, asan or tsan
#    --programs LIST  build only these programs, separated by spaces, for tests that need no others
#
# Environment: PSRING_WERROR=ON makes warnings errors. PSRING_CUDA=ON or OFF overrides the search for CUDA.
set -euo pipefail

unset CDPATH # cd prints a folder that it finds there
cd "$(dirname "$0")/.."

preset=release
programs=()
while (($#)); do
    case $1 in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' tests/run.sh
        exit 0
        ;;
    --preset | --programs)
        (($# >= 2)) || { echo "run.sh: $1 needs a value; see run.sh --help" >&2 && exit 2; }
        if [[ $1 == --preset ]]; then
            preset=$2
        else
            read -ra programs <<<"$2"
        fi
        shift 2
        ;;
    *) break ;;
    esac
done

# Without apt the packages may still be installed. cmake names the missing ones.
experiments/setup.sh || echo "run.sh: continues with the installed packages" >&2

cmake --preset "$preset" -DPSRING_WERROR="${PSRING_WERROR:-OFF}" \
    -DPSRING_CUDA="${PSRING_CUDA:-AUTO}" >/dev/null
cmake --build --preset "$preset" ${programs:+--target "${programs[@]}"}
ctest --preset "$preset" --output-on-failure "$@"
