#!/usr/bin/env bash
# setup.sh [--simulate] [--ci]: installs the Debian packages that psring needs to build, run and plot.
#
# Asks dpkg for missing packages, so it ends at once if there are none. Option --simulate adds SimGrid, for
# simulate.sh. Option --ci adds SimGrid, and the packages of all tests and checks: among them openssh-server
# (Debian starts sshd), slurm-wlm (Debian starts munge), and chromium to open a report.
# Without apt it prints what to install and exits with 1.
# CUDA and NCCL are optional and not installed here. cmake uses them if it finds a toolkit with nvcc.
set -euo pipefail

usage()
{
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
}

# One line per package. | separates alternatives; the first one is installed.
PACKAGES='
build-essential
cmake
ninja-build
pkg-config|pkgconf
libzmq3-dev
libopenmpi-dev
openmpi-bin
libopenblas-dev|libopenblas-openmp-dev|libopenblas-pthread-dev|libopenblas-serial-dev
zlib1g-dev
libssl-dev
libcjson-dev
libcriterion-dev
gnuplot-nox|gnuplot-qt|gnuplot-x11
fonts-dejavu-core
iproute2
procps
git
curl
ca-certificates
'
SIMULATE_PACKAGES='
libsimgrid-dev
'
CI_PACKAGES='
clang-format
clang-tidy
cppcheck
shellcheck
valgrind
abigail-tools
openssh-server
slurm-wlm
chromium
spin
'
# With these .ci/run also runs the fuzz targets. Not every system has the second one; clang may contain it.
CI_OPTIONAL_PACKAGES='
clang
libclang-rt-dev
'

wanted=$PACKAGES
optional=
for argument in "$@"; do
    case $argument in
    --simulate) wanted+=$SIMULATE_PACKAGES ;;
    --ci)
        wanted+=$SIMULATE_PACKAGES$CI_PACKAGES
        optional=$CI_OPTIONAL_PACKAGES
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        echo "setup.sh: unknown argument '$argument'; expected --simulate, --ci or nothing" >&2
        exit 2
        ;;
    esac
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    {
        echo "setup.sh: this system has no apt, so nothing was installed. Install by hand what these"
        echo "Debian packages hold, then run cmake --preset release, which names whatever is missing:"
        # shellcheck disable=SC2086  # the list is meant to be split
        printf '  %s\n' $wanted | sed 's/|.*//'
    } >&2
    exit 1
fi

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null |
    sed -n 's/^installed //p')

missing=()
for line in $wanted; do
    if ! grep -qxE -- "${line//+/\\+}" <<<"$installed"; then
        missing+=("${line%%|*}")
    fi
done
# Those that the present lists of packages have. On a new system the lists may be empty: see below.
offered()
{
    for line in $optional; do
        if ! grep -qxF -- "$line" <<<"$installed" && apt-cache show "$line" >/dev/null 2>&1; then
            echo "$line"
        fi
    done
}
mapfile -t extra < <(offered)
if ((${#missing[@]} + ${#extra[@]} == 0)); then
    exit 0
fi

as_root=()
if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
        echo "setup.sh: missing: ${missing[*]} ${extra[*]}; run as root: apt-get install ${missing[*]} ${extra[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
apt_get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y)
"${apt_get[@]}" update >&2 || echo "setup.sh: apt-get update failed; trying the lists that are there" >&2
mapfile -t extra < <(offered)
missing+=("${extra[@]}")
((${#missing[@]} > 0)) || exit 0
echo "setup.sh: installing ${missing[*]}" >&2
if ! "${apt_get[@]}" install --no-install-recommends "${missing[@]}" >&2; then
    echo "setup.sh: apt-get could not install: ${missing[*]}; see its message above" >&2
    exit 1
fi
