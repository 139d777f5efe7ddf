# shellcheck shell=bash
# lib.sh: shared by test_*.sh, which source it first. $psring and $make_dataset are the programs under test: PSRING and
# MAKE_DATASET of the environment, or those of build/. $here is the test's folder, $lib that of lib.sh, $root the
# repository, $name the test. $folder is an empty folder. It is removed at the end, after the commands of at_end().
# $short is 1 if the last argument is --short, as in the suite, and otherwise 0, as in long.sh.
# shellcheck disable=SC2034 # used by tests that need them
{
    unset CDPATH # cd prints a folder that it finds there
    lib=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
    root=$(cd "$lib/../.." && pwd)
    here=$(cd "$(dirname "$0")" && pwd)
    psring=$(realpath -m "${PSRING:-$root/build/psring}")
    make_dataset=$(realpath -m "${MAKE_DATASET:-$root/build/tests/make_dataset}")
}
name=$(basename "$0" .sh)
arguments_of_test=("$@")
folder=$(mktemp -d) || exit 1
GUARD_S=400 # limit of a wait for an event: only ends a test that hangs, so it is long
session=0   # of launch(); 0: none
ends=()
short=0
# shellcheck disable=SC2034 # used by tests that have a short form
[[ ${*: -1} != --short ]] || short=1
# Unset the caller's variables that would change the runs.
unset PSRING_NETWORK PSRING_LINK_BITS PSRING_RACKS PSRING_BIND_SUBNET RANK WORLD_SIZE MASTER_ADDR MASTER_PORT
export PSRING_TOKEN=test # for elastic jobs: no test writes into the home folder
export ASAN_OPTIONS=detect_leaks=0 # Open MPI does not free what it allocates

# at_end COMMAND...: run it when the test ends; the last one runs first. A command that execs loses the test's status.
at_end()
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
# set -e ends a test without a word, for instance if the process that it wants to kill has ended.
trap '[[ $- != *e* ]] || echo "$name: line $LINENO failed: $BASH_COMMAND"' ERR

# fail WORDS...: end the test, and show the output of the last command.
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

# pause SECONDS: sleep without starting a process. No process writes to this pipe.
exec {silent_pipe}<> <(:)
pause()
{
    read -rt "$1" -u "$silent_pipe" || true
}

# within COMMAND...: call it until it succeeds. After 1 s, call it half as often, because most commands start processes.
within()
{
    local deadline=$((SECONDS + GUARD_S)) called=0 pause_s=0.05
    until "$@" >/dev/null 2>&1; do
        ((SECONDS <= deadline)) || { echo "$name: did not succeed within $GUARD_S s: $*" && return 1; }
        pause "$pause_s"
        ((++called < 20)) || pause_s=0.1
    done
}

# --- a command and all processes that it starts -----------------------------------------------------

# launch COMMAND...: start it in a new session, by which all its processes can be found later. Its output goes to
# $folder/log.
launch()
{
    : >"$folder/log" # now, not only after the command has started
    setsid env --default-signal=INT "$@" >"$folder/log" 2>&1 &
    session=$!
    local of=''
    # Wait until setsid has made the session, the sixth word of stat.
    while kill -0 $session 2>/dev/null; do
        read -r _ _ _ _ _ of _ 2>/dev/null <"/proc/$session/stat" || true
        [[ $of != "$session" ]] || break
        pause 0.01
    done
}

# ps reads all of /proc, so it runs only after the first process of the session has ended. A zombie has ended. On some
# systems the first process leaves it there for a second.
is_over()
{
    # shellcheck disable=SC2009 # not every pgrep can select by state
    ! kill -0 "$session" 2>/dev/null && ! ps -s "$session" -o stat= | grep '^[^Z]' >/dev/null
}

# expect_end WHAT EXIT-CODE WORDS: the launched command ends completely, with this exit code ("failure": any but 0)
# and these words.
expect_end()
{
    local what=$1 expected=$2 words=$3 rc=0
    within is_over || fail "$what: these processes still run: $(pgrep -s "$session" -l | tr '\n' ' '):"
    wait "$session" || rc=$?
    session=0
    case $expected in
    failure) ((rc != 0)) || fail "$what: exit code 0:" ;;
    *) ((rc == expected)) || fail "$what: exit code $rc, expected $expected:" ;;
    esac
    grep -q -e "$words" "$folder/log" || fail "$what: no '$words' in:"
}

# said WORDS: the launched command has printed the words, or has ended.
said()
{
    grep -q -e "$1" "$folder/log" || is_over
}

# wait_for WHAT WORDS: wait until the launched command prints the words.
wait_for()
{
    within said "$2" || fail "$1: no '$2' after $GUARD_S s in:"
    grep -q -e "$2" "$folder/log" || fail "$1: ended without '$2':"
}

# --- tests that continue after a failure --------------------------------------------------------------

passed=0
failed=0

# expect WHAT COMMAND...: the command succeeds, or WHAT has failed, and its output is shown.
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

# verdict RESULT WHAT: RESULT is ok or the error; then $folder/output is shown.
verdict()
{
    expect "$2: $1" is_ok "$1"
}

is_ok()
{
    [[ $1 == ok ]] || { cat "$folder/output" && return 1; }
}

# Prints the result; the test's last command.
all_passed()
{
    echo "$name: $passed passed, $failed failed"
    ((failed == 0))
}

# --- a virtual cluster ------------------------------------------------------------------------------

vcluster=$root/experiments/vcluster.sh

# shellcheck source-path=SCRIPTDIR source=../../experiments/cluster/namespaces.sh
. "$root/experiments/cluster/namespaces.sh"

# An ordinary user's test starts again inside a user namespace, because it must look into the cluster itself.
needs_namespaces()
{
    local tool refusal remedy
    for tool in ip tc mpirun unshare; do
        command -v $tool >/dev/null || skip "needs $tool"
    done
    ! namespaces_refused || skip "needs network namespaces: $refusal; $remedy"
    ((EUID == 0)) || { rm -rf "$folder" && in_new_namespaces "$BASH" "$0" "${arguments_of_test[@]}"; }
}

# cluster_up HOSTS RATE: start the test's cluster, $cluster. A second call changes it.
cluster_up()
{
    cluster=${name#test_}-$$
    cluster=${cluster//_/-}
    at_end "$vcluster" down --name "$cluster"
    "$vcluster" up --name "$cluster" --hosts "$1" --rate "$2" --owner $$ >"$folder/log" 2>&1 ||
        fail "no cluster of $1 hosts:"
}

# last_line FILE: print the last line of an ended run. It skips training's progress, which mpirun forwards through a
# different pipe than errors, and Open MPI's messages about broken connections, "[host1][...". Both may come at the end,
# and two hosts' messages may share lines.
last_line()
{
    grep -v -e '^epoch' -e '^\[' -e '^mca_btl_' -e '^$' "$1" | tail -n 1
}
