# Sourced by ../../gpu_check.sh: runs its parts in the background, because bash handles a signal only while it waits.
# Each part has a process group, so that none of its processes remains.
# shellcheck shell=bash disable=SC2034,SC2154

# start_group SECONDS LOG COMMANDS [ARGUMENT...]: bash loads parts.sh and runs COMMANDS for at most SECONDS. $group is
# its process. SIGINT is reset, because the shell's jobs and their children would ignore it.
start_group()
{
    env --default-signal=INT,QUIT timeout --kill-after=5 "$1" bash -c ". experiments/gpu_check/parts.sh; $3" part "${@:4}" \
        >"$2" 2>&1 </dev/null &
    group=$!
}

# Whether a process of the group runs. Zombies do not count.
group_runs() # PROCESS
{
    kill -0 -- "-$1" 2>/dev/null && ps -e -o pgid=,stat= | awk -v group="$1" '$1 == group && $2 !~ /^Z/ { n++ } END { exit !n }'
}

# end_groups PROCESS...: ends groups of start_group, which may have ended already. timeout passes the signal on to its
# group. A process that needs longer, such as an mpirun that ends its ranks first, has 5 s.
end_groups()
{
    local process deadline
    for process; do
        ! jobs -rp | grep -qx "$process" || kill -TERM "$process" 2>/dev/null
    done
    deadline=$((EPOCHSECONDS + 5))
    for process; do
        wait "$process" 2>/dev/null
        while group_runs "$process" && ((EPOCHSECONDS < deadline)); do
            sleep 0.1
        done
        ! kill -0 -- "-$process" 2>/dev/null || kill -KILL -- "-$process" 2>/dev/null
    done
    return 0
}

# At every exit: ends the running part and the group in parallel, and removes the part's folder.
# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    trap '' INT TERM HUP
    # shellcheck disable=SC2086  # none is no word
    end_groups $group $beside
    [[ ! $work ]] || rm -rf "$work"
}
end_with clean_up
