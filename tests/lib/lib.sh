# shellcheck shell=bash
# lib.sh: what test_*.sh share; they source it first. $psring and $make_dataset are the programs under test: PSRING and
# MAKE_DATASET of the environment, or those of build/. $here is the folder of the test, $lib that of lib.sh, $root the repository, $name the test,
# $folder an empty folder that is gone at the end, together with what at_end() was given. $short is 1 where the last
# argument is --short, as in the suite, and else 0, as in long.sh.
# shellcheck disable=SC2034 # for those that need them
{
    lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    root=$(cd "$lib/../.." && pwd)
    here=$(cd "$(dirname "$0")" && pwd)
    psring=$(realpath -m "${PSRING:-$root/build/psring}")
    make_dataset=$(realpath -m "${MAKE_DATASET:-$root/build/tests/make_dataset}")
}
name=$(basename "$0" .sh)
arguments_of_test=("$@")
folder=$(mktemp -d)
GUARD_S=400 # until something must have happened: only guards against hanging, so a busy machine may take long
session=0   # of launch(); 0: nothing runs
ends=()
short=0
# shellcheck disable=SC2034 # for those that have a short form
[[ ${*: -1} != --short ]] || short=1
# What the tests set by themselves, and what would print on the terminal.
unset PSRING_NETWORK PSRING_LINK_BITS PSRING_BIND_SUBNET RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
export PSRING_TOKEN=test # of elastic jobs: no test writes into the home folder
export ASAN_OPTIONS=detect_leaks=0 # Open MPI keeps what it allocates

at_end() # COMMAND...: is run when the test ends, the last one first
{
    ends=("$(printf '%q ' "$@")" "${ends[@]}")
}

end_test()
{
    local command
    ((session == 0)) || pkill -KILL -s "$session" || true
    for command in "${ends[@]}"; do
        eval "$command" >/dev/null 2>&1 || true
    done
    rm -rf "$folder"
}
trap end_test EXIT

# fail WORDS...: ends the test, showing what the last command said.
fail()
{
    echo "$name: $*"
    [[ ! -s $folder/log ]] || sed 's/^/    /' "$folder/log"
    exit 1
}

skip()
{
    echo "$name: skipped: $*"
    exit 77
}

# pause SECONDS: sleeps without starting a process. No process writes to this pipe.
exec {silent_pipe}<> <(:)
pause()
{
    read -rt "$1" -u "$silent_pipe" || true
}

# within COMMAND...: calls it until it succeeds. After 1 s it calls it half as often, because most commands start processes.
within()
{
    local deadline=$((SECONDS + GUARD_S)) called=0 pause_s=0.05
    until "$@" >/dev/null 2>&1; do
        ((SECONDS <= deadline)) || { echo "$name: not within $GUARD_S s: $*" && return 1; }
        pause "$pause_s"
        ((++called < 20)) || pause_s=0.1
    done
}

# --- a command and all processes that it starts -----------------------------------------------------

# launch COMMAND...: in a session of its own, by which all its processes can be found again. What it says is
# in $folder/log.
launch()
{
    : >"$folder/log" # now, not once the command has been started
    setsid env --default-signal=INT "$@" >"$folder/log" 2>&1 &
    session=$!
    local of=''
    # Until setsid has made the session, the sixth word of stat.
    while kill -0 $session 2>/dev/null; do
        read -r _ _ _ _ _ of _ 2>/dev/null <"/proc/$session/stat" || true
        [[ $of != "$session" ]] || break
        pause 0.01
    done
}

# ps reads all of /proc, so it runs only once the first process of the session has ended. A zombie has ended. Some systems'
# first process leaves it there for a second.
is_over()
{
    # shellcheck disable=SC2009 # not every pgrep selects by state
    ! kill -0 "$session" 2>/dev/null && ! ps -s "$session" -o stat= | grep '^[^Z]' >/dev/null
}

# expect_end WHAT EXIT-CODE WORDS: what was launched ends completely, with that exit code ("failure": any but
# 0) and those words.
expect_end()
{
    local what=$1 expected=$2 words=$3 rc=0
    within is_over || fail "$what: there is still $(pgrep -s "$session" -l | tr '\n' ' '):"
    wait "$session" || rc=$?
    session=0
    case $expected in
    failure) ((rc != 0)) || fail "$what: exit code 0:" ;;
    *) ((rc == expected)) || fail "$what: exit code $rc, expected $expected:" ;;
    esac
    grep -q -e "$words" "$folder/log" || fail "$what: no '$words' in:"
}

# said WORDS: what was launched has said so, or has ended without.
said()
{
    grep -q -e "$1" "$folder/log" || is_over
}

# wait_for WHAT WORDS: until what was launched says so.
wait_for()
{
    within said "$2" || fail "$1: no '$2' after $GUARD_S s in:"
    grep -q -e "$2" "$folder/log" || fail "$1: ended without '$2':"
}

# --- tests that go on after a failure ---------------------------------------------------------------

passed=0
failed=0

# expect WHAT COMMAND...: the command succeeds, or WHAT has failed, as it says.
expect()
{
    if "${@:2}" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        sed 's/^/    /' "$folder/log"
    fi
}

# verdict RESULT WHAT: RESULT is ok, or what is wrong, as $folder/output shows.
verdict()
{
    expect "$2: $1" is_ok "$1"
}

is_ok()
{
    [[ $1 == ok ]] || { cat "$folder/output" && return 1; }
}

# The test's last command.
all_passed()
{
    echo "$name: $passed passed, $failed failed"
    ((failed == 0))
}

# --- a virtual cluster ------------------------------------------------------------------------------

vcluster=$root/experiments/vcluster.sh

# shellcheck source-path=SCRIPTDIR source=../../experiments/cluster/namespaces.sh
. "$root/experiments/cluster/namespaces.sh"

# An ordinary user's test starts over inside a user namespace, because it looks into the cluster by its own means.
needs_namespaces()
{
    local tool refusal remedy
    for tool in ip tc mpirun unshare; do
        command -v $tool >/dev/null || skip "needs $tool"
    done
    ! namespaces_refused || skip "needs network namespaces: $refusal; $remedy"
    ((EUID == 0)) || { rm -rf "$folder" && in_new_namespaces "$BASH" "$0" "${arguments_of_test[@]}"; }
}

# cluster_up HOSTS RATE: the test's own cluster, $cluster; raised anew, it is changed.
cluster_up()
{
    cluster=${name#test_}-$$
    cluster=${cluster//_/-}
    at_end "$vcluster" down --name "$cluster"
    "$vcluster" up --name "$cluster" --hosts "$1" --rate "$2" --owner $$ >"$folder/log" 2>&1 ||
        fail "no cluster of $1 hosts:"
}

# last_line FILE: of a run that has ended, but for training's progress, which mpirun forwards by another pipe than errors,
# and what Open MPI itself says of connections that broke, "[host1][...": each may come at the very end.
last_line()
{
    grep -v -e '^epoch' -e '^\[' -e '^$' "$1" | tail -n 1
}
