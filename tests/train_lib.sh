# Sourced by the tests of psring train: $psring, $make_dataset, a scratch folder, and what they share.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=$(basename "$0" .sh)
psring=$1
make_dataset=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# What the tests set by themselves, and what would print on the terminal.
unset PSRING_NETWORK PSRING_LINK_BITS PSRING_BIND_SUBNET
export ASAN_OPTIONS=detect_leaks=0 # Open MPI keeps what it allocates

# Made-up images: small, so that loading and testing take no time, and there on every machine.
data=$folder/data
mkdir "$data"
"$make_dataset" "$data" 2000 300

fail()
{
    echo "$name: $*"
    [[ ! -s $folder/log ]] || sed 's/^/    /' "$folder/log"
    exit 1
}

# train RANKS OPTION...: runs to the end; its output is in $folder/log, the weights' sum in $weights.
train()
{
    local ranks=$1
    shift
    local launch=("$here/mpirun.sh" "$ranks")
    ((ranks > 0)) || launch=()
    if ! "${launch[@]}" "$psring" train --data "$data" "$@" >"$folder/log" 2>&1; then
        fail "psring train $* on $ranks ranks failed:"
    fi
    weights=$(sed -n 's/^weights sha256 //p' "$folder/log")
    [[ $weights =~ ^[0-9a-f]{64}$ ]] || fail "psring train $*: no sum of the weights in:"
}
