# shellcheck shell=bash
# train_lib.sh: shared by the tests of psring train, which source it first. It writes made-up data to $data.
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# The data are small, so that loading and testing take little time, and need no download. Tests of emulated devices,
# which take longer for an image, set $test_images before.
data=$folder/data
mkdir "$data"
"$make_dataset" "$data" 2000 "${test_images:-300}"

# train_ranks RANKS OPTION...: psring train in one process if RANKS is 0, otherwise on ranks that meet by rendezvous.
# mpirun starts the ranks if the options ask for MPI or $launcher is mpirun; this takes a second longer. The exit code
# is not 0 if a rank failed. The output of all ranks goes to $folder/log.
launcher=ranks
train_ranks()
{
    local ranks=$1 launch=()
    shift
    if ((ranks > 0)); then
        launch=("$lib/$launcher.sh" "$ranks")
        [[ ! " $* " =~ \ --(backend|transport)\ mpi\  ]] || launch=("$lib/mpirun.sh" "$ranks")
    fi
    "${launch[@]}" "$psring" train --data "$data" "$@" >"$folder/log" 2>&1
}

# train RANKS OPTION...: train to the end. The output goes to $folder/log, the sum of the weights to $weights.
train()
{
    train_ranks "$@" || fail "psring train ${*:2} on $1 ranks failed:"
    weights=$(sed -n 's/^weights sha256 //p' "$folder/log")
    [[ $weights =~ ^[0-9a-f]{64}$ ]] || fail "psring train ${*:2}: no sum of the weights in:"
}

has_checkpoint()
{
    compgen -G "$folder/checkpoint/lenet.step-*.checkpoint" >/dev/null || is_over
}

has_ended()
{
    ! kill -0 "$session" 2>/dev/null
}
