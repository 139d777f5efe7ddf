# shellcheck shell=bash
# train_lib.sh: what the tests of psring train share; they source it first: $psring and $make_dataset, the
# first two arguments, $short, which is 1 where the third one is --short, else 0, and made-up data in $data.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
psring=$1
make_dataset=$2
short=0
# shellcheck disable=SC2034 # for those that have a short way
[[ ${3:-} != --short ]] || short=1

# Small, so that loading and testing take no time, and there on every machine.
data=$folder/data
mkdir "$data"
"$make_dataset" "$data" 2000 300

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

has_checkpoint()
{
    compgen -G "$folder/checkpoint/lenet.step-*.checkpoint" >/dev/null || is_over
}

has_ended()
{
    ! kill -0 "$session" 2>/dev/null
}
