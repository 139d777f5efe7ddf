# shellcheck shell=bash disable=SC2154
# user.sh: vcluster.sh for an ordinary user.
#
# Each cluster has a separate user namespace, in which the user is root. Its first process only waits. Later calls find
# it by the cluster's name in its command line, enter the namespace and run vcluster.sh there.

HOLDER=psring-vcluster-holder

# holders [NAME]: prints a line with PID and name for each cluster of this user.
holders()
{
    pgrep -u "$EUID" -a -f "^$HOLDER ${1:-[a-z0-9-]+} " | awk '!seen[$3]++ { print $1, $3 }' || true
}

holder_of()
{
    holders "$1" | cut -d ' ' -f 1
}

# Starts the holder of the new cluster `name` and prints its PID. The holder outlives this script.
hold()
{
    local holder keeper deadline=$((SECONDS + 30))
    # shellcheck disable=SC2016  # expanded by the shell that runs it
    setsid "${NEW_NAMESPACES[@]}" "$BASH" -c "$PREPARE_NAMESPACES"' && exec -a "$1" "$0" -c "sleep infinity & wait"' \
        "$BASH" "$HOLDER $name" </dev/null &>/dev/null 8<&- 9<&- &
    keeper=$!
    until holder=$(holder_of "$name") && [[ $holder ]]; do
        ((SECONDS < deadline)) && kill -0 $keeper 2>/dev/null && sleep 0.02 && continue
        die "the namespaces for '$name' did not start within 30 s; try again"
    done
    echo "$holder"
}

# inside HOLDER ARGUMENT...: runs vcluster.sh in the namespaces, waits for it, and passes signals on. nsenter ignores
# signals, because it would end before its child.
inside()
{
    local holder=$1 entered status signal
    shift
    env --ignore-signal=INT,TERM,HUP setpriv --pdeathsig KILL \
        nsenter --preserve-credentials --user --mount --net --pid --target "$holder" \
        env --default-signal=INT,QUIT,TERM,HUP --chdir="$PWD" setpriv --pdeathsig TERM \
        "$BASH" "$(realpath "$0")" "$@" <&0 9<&- &
    entered=$!
    for signal in INT TERM HUP; do
        # shellcheck disable=SC2064  # $entered as it is now
        trap "pass_on $signal $entered" $signal
    done
    while :; do
        status=0
        wait $entered || status=$?
        kill -0 $entered 2>/dev/null || break
    done
    trap - INT TERM HUP
    return $status
}

pass_on() # SIGNAL PID-OF-NSENTER
{
    until pkill "-$1" -P "$2" || ! kill -0 "$2" 2>/dev/null; do
        sleep 0.01
    done
}

# Ends the first process, and with it all processes of the namespaces and the namespaces themselves.
let_go() # HOLDER NAME
{
    inside "$1" down --name "$2" || true
    kill -KILL "$1" 2>/dev/null || true
    while kill -0 "$1" 2>/dev/null && [[ $(ps -o state= -p "$1") != Z ]]; do
        sleep 0.02
    done
}

# Called by require_namespaces: runs `command` in the user's namespaces, and exits.
as_ordinary_user()
{
    local holder='' made='' status=0 argument before='' words=()
    case $command in
    up)
        for argument in "${arguments[@]}"; do # the owner has no number inside
            [[ $argument == --owner || $before == --owner ]] || words+=("$argument")
            before=$argument
        done
        lock
        holder=$(holder_of "$name")
        if [[ ! $holder ]]; then
            ! namespaces_refused || die "$refusal; $remedy"
            holder=$(hold)
            made=yes
        fi
        [[ -z $owner ]] || watch_owner "$owner" "$holder"
        inside "$holder" "${words[@]}" || status=$?
        [[ ! $made || $status == 0 ]] || let_go "$holder" "$name"
        ;;
    down)
        lock
        while read -r holder argument; do
            [[ $only && $only != "$holder" ]] || let_go "$holder" "$argument"
        done < <(if [[ $all ]]; then holders; else holders "$name"; fi)
        ;;
    status)
        ((${#arguments[@]} == 1)) || require_holder
        holder=$(holders)
        [[ $holder ]] || die "$NO_CLUSTER"
        while read -r holder argument; do
            ((${#arguments[@]} > 1)) && [[ $argument != "$name" ]] || inside "$holder" status --name "$argument" || status=1
        done <<<"$holder"
        ;;
    *)
        require_holder
        inside "$holder" "${arguments[@]}" || status=$?
        ;;
    esac
    exit $status
}

require_holder()
{
    holder=$(holder_of "$name")
    [[ $holder ]] || die "$(no_such_cluster)"
}
