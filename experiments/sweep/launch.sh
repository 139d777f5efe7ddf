# shellcheck shell=bash disable=SC2154,SC2034
# launch.sh: builds the network for run_scaling.sh and starts ranks on it.

# shellcheck source-path=SCRIPTDIR source=../cluster/namespaces.sh
. "$here/cluster/namespaces.sh"
# shellcheck source-path=SCRIPTDIR source=../cluster/shape.sh
. "$here/cluster/shape.sh"

raise_network()
{
    local refusal remedy
    cluster='' has_switch='' # whether servers can run where the hosts' links meet
    if [[ $real_hosts ]]; then
        network=hosts${rate:+:$rate}
        has_switch=${switch_host:-}
    elif ! namespaces_refused; then
        cluster=scaling-$$
        network=$(network_label)
        [[ $shape != flat ]] || has_switch=yes
        # As many hosts for dedicated servers as for workers. --owner removes the cluster even after a SIGKILL.
        "$here/vcluster.sh" up --name "$cluster" --hosts $((2 * max_workers)) --rate "$rate" --shape "$shape" \
            ${latency:+--latency "$latency"} --owner $$
    elif [[ $shape != flat || $latency ]]; then
        die "--shape and --latency need the virtual cluster: $refusal; $remedy"
    else
        network=loopback
        link_bits=0
        say "no virtual cluster: $refusal; $remedy"
        say "network=loopback: links have no limit there, so topology effects do not show"
    fi
}

# [log_to=FILE] launch RANKS COMMAND...: starts one rank per host of the network; see wait_for_child.
launch()
{
    # TCP for every backend. By default Open MPI alone would use shared memory within a machine.
    local ranks=$1 bound=() names server mpi=(mpirun -n "$1" --bind-to none --oversubscribe --mca pml ob1
        --mca btl "self,tcp")
    shift
    ((EUID != 0)) || mpi+=(--allow-run-as-root)
    ((ranks <= cores)) || [[ $real_hosts ]] || mpi+=(--mca mpi_yield_when_idle 1)
    if [[ $cluster && ! ${on_gpus:-} ]]; then
        mpi=("$here/vcluster.sh" run --name "$cluster" -n "$ranks" "${placing[@]}" --)
    elif [[ $real_hosts ]]; then
        # psring's last line names the failure, and mpirun does not wait for a lost host.
        mpi+=(--quiet --mca oob_tcp_keepalive_time 4 --mca oob_tcp_keepalive_intvl 2
            --mca oob_tcp_keepalive_probes 3)
        if [[ ${on_gpus:-} ]]; then # host by host
            mpi+=(--host "${real_hosts//,/:$gpus,}:$gpus" --map-by slot)
        elif [[ ${placing[0]:-} == --in-switch ]]; then
            # A host for each worker, then the one of the servers. By node, mpirun's own host would get rank 0.
            names=$(cut -d , -f "1-$((ranks - placing[1]))" <<<"$real_hosts")
            for ((server = 0; server < placing[1]; server++)); do
                names+=,$switch_host
            done
            mpi+=(--host "$names" --map-by seq)
        else
            mpi+=(--host "$real_hosts" --map-by node)
        fi
        mpi+=(-x "PSRING_NETWORK=$network" -x "PSRING_LINK_BITS=$link_bits")
        [[ -z ${PSRING_BIND_SUBNET:-} ]] ||
            mpi+=(-x PSRING_BIND_SUBNET --mca btl_tcp_if_include "$PSRING_BIND_SUBNET")
    else
        mpi+=(-x PSRING_NETWORK=loopback --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo)
    fi
    ! command -v timeout >/dev/null || bound=(timeout -k 10 "${limit_s:-60}")
    wait_for_child "${bound[@]}" "${mpi[@]}" "$@"
}
