# shellcheck shell=bash disable=SC2154
# run.sh: the commands run and exec of vcluster.sh.

# Prints the environment variables that describe the network to programs on the hosts.
environment_of_hosts()
{
    printf '%s\n' "PSRING_NETWORK=$(network_label)" "PSRING_LINK_BITS=$rate_bits" \
        "PSRING_BIND_SUBNET=$subnet.0/24"
    # Racks are ranks in a row, and their uplinks are compared with equal links.
    ((rack_hosts == 0 || ${#host_bits[@]} > 0)) || [[ ${map_by:-slot} != slot ]] ||
        awk -v ranks=$((rack_hosts * ${ranks_per_host:-1})) -v "links=$((rack_hosts * rate_bits))" -v "uplink=$rack_bits" \
            'BEGIN { if (links >= uplink) printf "PSRING_RACKS=%d:%.6g\n", ranks, links / uplink }'
}

# Runs inside `ip netns exec`, which provides separate mounts. Replaces the machine's host names by the cluster's, and
# sets the hostname.
# shellcheck disable=SC2016  # expanded by the shell that runs it
ENTER='mount --bind "$0" /etc/hosts && hostname "$1" && shift && exec "$@"'

exec_on_host()
{
    [[ ${1:-} == --name && $# -ge 2 ]] && set_name "$2" && shift 2
    local host=${1:-}
    shift || true
    [[ ${1:-} == --name && $# -ge 2 ]] && set_name "$2" && shift 2
    [[ ${1:-} == -- ]] && shift
    (($# > 0)) || bad_usage "exec: expected HOST -- COMMAND..."
    require_namespaces
    require_cluster
    [[ $host == switch ]] || host=${host#host}
    [[ $host == switch ]] || { [[ $host =~ ^(0|[1-9][0-9]{0,2})$ ]] && ((host < hosts)); } ||
        die "exec: '$name' has no host '$host'; expected host0 to host$((hosts - 1)), or switch"
    local label=host$host
    [[ $host != switch ]] || label=switch
    local variables
    mapfile -t variables < <(environment_of_hosts)
    exec ip netns exec "$(namespace_of "$host")" unshare --uts \
        env "${variables[@]}" sh -c "$ENTER" "$STATE/$name/hosts" "$label" "$@"
}

# The first process of the run's process namespace. When it ends, the kernel ends every process of the run, on all
# hosts. mpirun's words go to the file $1. Else they would follow psring's last line, which names the rank that failed.
# shellcheck disable=SC2016  # expanded by the shell that runs it
RUN_INIT='
trap "[ -z \$child ] || kill -TERM \$child" TERM
words=$1
shift
OPAL_OUTPUT_STDERR_FD=3 "$@" <&0 3>"$words" &
child=$!
while :; do
    status=0
    wait $child || status=$?
    kill -0 $child 2>/dev/null || break
done
exit $status'

# Replaces ssh: HOST COMMAND, where a shell parses COMMAND.
write_agent()
{
    cat >"$run_directory/agent" <<AGENT
host=\$1
shift
exec 3>&-
unset OPAL_OUTPUT_STDERR_FD
exec ip netns exec psring-$name-\${host#host} unshare --uts \\
    sh -c '$ENTER' $STATE/$name/hosts "\$host" sh -c "\$*"
AGENT
    # mpirun's daemons start every rank through this script, which records the start in a file.
    cat >"$run_directory/begin" <<BEGIN
: >$run_directory/rank.\$OMPI_COMM_WORLD_RANK
exec "\$@"
BEGIN
}

# Ends the run, prints the reason and exits with CODE.
stop_run() # CODE WORDS...
{
    trap '' INT TERM HUP
    local init code=$1
    shift
    init=$(pgrep -P "$run_pid" || true)
    if [[ $init ]]; then
        kill -TERM "$init" 2>/dev/null || true
        local deadline=$((SECONDS + GRACE_S))
        while ((SECONDS < deadline)) && kill -0 "$run_pid" 2>/dev/null; do
            sleep 0.1
        done
    fi
    kill -KILL "$run_pid" 2>/dev/null || true # and with it everything in its process namespace
    wait "$run_pid" 2>/dev/null || true
    rm -rf "$run_directory"
    echo "vcluster.sh: $*; its processes are gone" >&2
    exit "$code"
}

has_begun()
{
    (($(compgen -G "$run_directory/rank.*" | wc -l) >= ranks))
}

first_rank_on()
{
    [[ $map_by == node ]] && echo "$1" || echo $(($1 * ranks_per_host))
}

# Prints the visible reason why mpirun does not start the ranks.
find_hindrance()
{
    local host first
    for ((host = 0; host * ranks_per_host < on_hosts; host++)); do
        first="rank $(first_rank_on $host) on host$host"
        if ! host_answers "$host" 5; then
            echo "$first cannot, its host does not answer" && return
        elif [[ ! $(ip netns pids "$(namespace_of $host)") ]]; then
            echo "$first cannot, mpirun's daemon has ended there" && return
        fi
    done
    echo "all hosts answer"
}

# Bounds the start: mpirun would wait forever for a daemon that does not call back, even for one that has ended.
wait_until_begun()
{
    local deadline=$((SECONDS + launch_timeout))
    until has_begun || ! kill -0 "$run_pid" 2>/dev/null; do
        if ((SECONDS >= deadline)); then
            print_words >&2
            stop_run 1 "the ranks have not begun within $launch_timeout s: $(find_hindrance)"
        fi
        sleep 0.1
    done
}

run()
{
    local ranks='' ranks_per_host='' map_by=slot in_switch=0 launch_timeout=60 extra=()
    while (($# > 0)); do
        case $1 in
        --)
            shift
            break
            ;;
        -n | --name | --ranks-per-host | --map-by | --in-switch | --launch-timeout | -x)
            (($# >= 2)) || bad_usage "$1 needs a value"
            case $1 in
            -n) ranks=$2 ;;
            --name) set_name "$2" ;;
            --ranks-per-host) ranks_per_host=$2 ;;
            --map-by) map_by=$2 ;;
            --in-switch) in_switch=$2 ;;
            --launch-timeout) launch_timeout=$2 ;;
            -x) extra+=(-x "$2") ;;
            esac
            shift 2
            ;;
        --mca)
            (($# >= 3)) || bad_usage "--mca needs a key and a value"
            extra+=(--mca "$2" "$3")
            shift 3
            ;;
        *) bad_usage "run: unknown argument '$1'; is there a -- before the command?" ;;
        esac
    done
    [[ $ranks =~ ^[1-9][0-9]{0,3}$ ]] || bad_usage "run: -n '$ranks': expected a number of ranks"
    [[ $launch_timeout =~ ^[1-9][0-9]{0,4}$ ]] ||
        bad_usage "run: --launch-timeout '$launch_timeout': expected seconds"
    (($# > 0)) || bad_usage "run: expected -- COMMAND..."
    require_namespaces
    require_cluster
    command -v mpirun >/dev/null || die "mpirun is missing; run experiments/setup.sh"
    [[ $map_by == slot || $map_by == node ]] || bad_usage "run: --map-by '$map_by': expected slot or node"
    { [[ $in_switch =~ ^(0|[1-9][0-9]{0,3})$ ]] && ((in_switch < ranks)); } ||
        bad_usage "run: --in-switch '$in_switch': expected fewer ranks than -n $ranks, and one worker at least"
    [[ $map_by == slot ]] || ((in_switch == 0)) || bad_usage "run: --in-switch needs --map-by slot, the default"
    local on_hosts=$((ranks - in_switch))
    ((slots == 1)) || ranks_per_host=${ranks_per_host:-$slots}
    if [[ -z $ranks_per_host ]]; then
        ranks_per_host=$(((on_hosts + hosts - 1) / hosts))
        ((ranks_per_host == 1)) ||
            echo "vcluster.sh: $on_hosts ranks on $hosts hosts: up to $ranks_per_host ranks share a link" >&2
    fi
    [[ $ranks_per_host =~ ^[1-9][0-9]{0,3}$ ]] ||
        bad_usage "run: --ranks-per-host '$ranks_per_host': expected a number"
    ((on_hosts <= hosts * ranks_per_host)) ||
        die "run: $on_hosts ranks do not fit on $hosts hosts with $ranks_per_host a host; create more hosts, or increase --ranks-per-host"

    local run_directory run_pid
    run_directory=$(mktemp -d "$STATE/$name/run.XXXXXX")
    : >"$run_directory/mpirun"
    write_agent
    start_mpirun "$@" &
    run_pid=$!
    trap 'stop_run 130 the run was interrupted' INT
    trap 'stop_run 143 the run was interrupted' TERM
    trap 'stop_run 129 the run was interrupted' HUP
    wait_until_begun
    local status=0
    wait $run_pid || status=$?
    report_end "$1" $status >&2
    rm -rf "$run_directory"
    return $status
}

# Prints mpirun's words. One warning is about a race with our agent, and harmless.
print_words()
{
    grep -Ev '^-*$|Warning: setpgid' "$run_directory/mpirun" || true
}

# Prints which rank mpirun has lost. The other ranks do not know it before they have met. If nothing in mpirun's words is
# such an end or a rank's own error, this prints them.
report_end() # COMMAND STATUS
{
    local words=$run_directory/mpirun host
    sed -n 's/^mpirun noticed that process rank \(.*\) with PID .* on node \(.*\) exited on \(signal .*\)\.$/vcluster.sh: rank \1 on \2 was ended by \3/p' "$words"
    while read -r host; do
        echo "vcluster.sh: rank $(first_rank_on "$host") on host$host is lost, its host does not answer"
    done < <(sed -n 's/^ *Remote daemon:.* on node host//p' "$words")
    if ! compgen -G "$run_directory/rank.*" >/dev/null; then
        echo "vcluster.sh: mpirun could not start $1:"
        print_words
    elif [[ ${extra[*]} == *_verbose* ]] ||
        { (($2 != 0)) && ! grep -qE 'Exit code:|MPI_ABORT was invoked|exited on signal|Remote daemon:' "$words"; }; then
        print_words
    fi
}

# Becomes mpirun, in a new session and process namespace. Ends with this script, even after a SIGKILL.
start_mpirun()
{
    local used_hosts=$(((on_hosts + ranks_per_host - 1) / ranks_per_host)) host list='' rank where
    for ((host = 0; host < used_hosts; host++)); do
        list+=${list:+,}host$host:$ranks_per_host
    done
    where=(--host "$list" --map-by "$map_by")
    if ((in_switch > 0)); then
        # mpirun itself runs in the switch, and would place rank 0 there. A list with a line for each rank fixes all.
        for ((rank = 0; rank < ranks; rank++)); do
            ((rank < on_hosts)) && echo "host$((rank / ranks_per_host))" || echo switch
        done >"$run_directory/ranks"
        where=(--hostfile "$run_directory/ranks" --map-by seq)
    fi
    # shellcheck disable=SC2054  # the commas are mpirun's
    local mpi=(mpirun -n "$ranks" "${where[@]}" --bind-to none --oversubscribe
        --allow-run-as-root
        --mca plm rsh --mca plm_rsh_agent "/bin/sh $run_directory/agent" --mca plm_rsh_no_tree_spawn 1
        --mca orte_tmpdir_base "$run_directory" --mca orte_fork_agent "/bin/sh $run_directory/begin"
        --mca pml ob1 --mca btl self,tcp
        --mca btl_tcp_if_include "$subnet.0/24" --mca oob_tcp_if_include "$subnet.0/24"
        # mpirun gives up a silent host in 4 + 3 x 2 s, not in two hours.
        --mca oob_tcp_keepalive_time 4 --mca oob_tcp_keepalive_intvl 2 --mca oob_tcp_keepalive_probes 3)
    # Ranks that spin while they wait would take cores from working ranks. nproc obeys OpenMP's variables, which do not
    # describe the number of cores.
    ((ranks <= $(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc))) || mpi+=(--mca mpi_yield_when_idle 1)
    local variables variable
    mapfile -t variables < <(environment_of_hosts)
    for variable in "${variables[@]}"; do
        mpi+=(-x "$variable")
    done
    trap - INT TERM HUP
    exec setpriv --pdeathsig KILL setsid ip netns exec "$(namespace_of switch)" \
        unshare --uts --pid --fork --kill-child --mount-proc \
        sh -c "$ENTER" "$STATE/$name/hosts" switch \
        "$BASH" -c "$RUN_INIT" vcluster-run "$run_directory/mpirun" "${mpi[@]}" "${extra[@]}" "$@" <&0
}

