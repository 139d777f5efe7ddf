# shellcheck shell=bash disable=SC2034
# child.sh: a command that a script waits for and that its traps can end, as $child. In the background, because bash acts
# on a signal only between foreground commands. And how scripts count in words.

# [log_to=FILE] wait_for_child COMMAND...: not all of the caller is redirected, as what a trap then said would be, too.
wait_for_child()
{
    local status=0
    if [[ ${log_to:-} ]]; then
        "$@" </dev/null >"$log_to" 2>&1 &
    else
        "$@" </dev/null &
    fi
    child=$!
    wait $child || status=$?
    child=''
    return $status
}

# counted N WORD: "1 worker", "4 workers".
counted()
{
    echo "$1 $2$( (($1 == 1)) || echo s)"
}
