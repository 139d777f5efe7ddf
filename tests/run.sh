#!/usr/bin/env bash
# run.sh [--preset NAME] [--programs LIST] [CTEST-ARGUMENT...]: everything the tests need, then the tests.
#
# Installs what is missing, configures, builds and runs ctest; ends non-zero if anything fails.
# NAME is one of CMakePresets.json: release (default), debug, asan, tsan. LIST: only these programs
# are built, for tests that need no other; words with spaces between. In the environment:
# PSRING_WERROR=ON makes warnings errors, PSRING_CUDA=ON or OFF overrules what is found. Further
# arguments go to ctest: tests/run.sh -L quick, tests/run.sh -R ring.
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

# Where apt is missing, what is needed may be there all the same: cmake names what is not.
experiments/setup.sh || echo "run.sh: going on with what is installed" >&2

cmake --preset "$preset" -DPSRING_WERROR="${PSRING_WERROR:-OFF}" \
    -DPSRING_CUDA="${PSRING_CUDA:-AUTO}" >/dev/null
cmake --build --preset "$preset" ${programs:+--target "${programs[@]}"}
ctest --preset "$preset" --output-on-failure "$@"
