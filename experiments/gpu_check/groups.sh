# Sourced by ../../gpu_check.sh: its parts run in the background, because bash acts on a signal only while it waits, and
# each in a process group of its own, of which nothing shall stay.
# shellcheck shell=bash disable=SC2034,SC2154

# start_group SECONDS LOG COMMANDS [ARGUMENT...]: bash runs COMMANDS after parts.sh, for so long. Its process is $group.
# SIGINT is set back because the shell has its jobs ignore it, and with them all that they start.
start_group()
{
    env --default-signal=INT,QUIT timeout --kill-after=5 "$1" bash -c ". experiments/gpu_check/parts.sh; $3" part "${@:4}" \
        >"$2" 2>&1 </dev/null &
    group=$!
}

# Whether some of a group runs. What no process 1 has waited for does not.
group_runs() # PROCESS
{
    kill -0 -- "-$1" 2>/dev/null && ps -e -o pgid=,stat= | awk -v group="$1" '$1 == group && $2 !~ /^Z/ { n++ } END { exit !n }'
}

# end_groups PROCESS...: of start_group, which may have ended by themselves. timeout passes the signal on to its group.
# What then goes on, such as an mpirun that ends its ranks first, has 5 s.
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

# However the script ends: the part that runs, what runs beside it, and the part's folder.
# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    trap '' INT TERM HUP
    # shellcheck disable=SC2086  # none is no word
    end_groups $group $beside
    [[ ! $work ]] || rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
