# shellcheck shell=bash disable=SC2154
# provenance.sh: writes the programs and machines of a run to provenance.json, for run_scaling.sh.

# json_string TEXT: prints a JSON string, without the control characters that JSON forbids.
json_string()
{
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//$'\t'/\\t}
    printf '"%s"' "${text//[$'\001'-$'\037']/}"
}

json_member()
{
    printf '  "%s": %s,\n' "$1" "$(json_string "$2")"
}

# Prints an array with each line as a string.
json_lines()
{
    local line members=''
    while read -r line; do
        [[ ! $line ]] || members+="${members:+, }$(json_string "$line")"
    done <<<"$1"
    printf '[%s],\n' "$members"
}

# Prints Open MPI's parameters as a rank sees them.
mca_parameters()
{
    local line members=''
    while IFS='=' read -r name line; do
        members+="${members:+, }$(json_string "${name#OMPI_MCA_}"): $(json_string "$line")"
    done < <(launch 1 sh -c 'env' 2>/dev/null | grep -E '^OMPI_MCA_(btl|pml|coll|mpi_yield|oob_tcp_if)' | sort)
    printf '{%s},\n' "$members"
}

# Prints the kernel's TCP settings. Runs on a host of the ranks, because each host has separate settings.
# shellcheck disable=SC2016  # the shell on the host expands it
PRINT_TCP='cd /proc/sys/net/ipv4 && for name in tcp_congestion_control tcp_rmem tcp_wmem tcp_timestamps tcp_sack; do
    [ ! -r $name ] || echo $name $(cat $name)
done'

tcp_settings()
{
    local members='' name value
    while read -r name value; do
        members+="${members:+, }$(json_string "$name"): $(json_string "$value")"
    done < <(launch 1 sh -c "$PRINT_TCP" 2>/dev/null)
    printf '{%s},\n' "$members"
}

# commit_of TREE: prints its commit, and whether sources differ from it. New sources count; new results and data do not.
commit_of()
{
    local commit
    commit=$(git -C "$1" rev-parse HEAD 2>/dev/null) || { echo unknown && return; }
    [[ -z $(git -C "$1" status --porcelain --untracked-files=no) &&
        -z $(git -C "$1" ls-files --others --exclude-standard -- '*.[ch]' '*.cu' '*.sh' '*.awk' '*.cmake' '*/CMakeLists.txt') ]] ||
        commit+=", with changes"
    echo "$commit"
}

# `provenance_facts` has further members as lines that end with a comma; psring report reads them.
write_provenance()
{
    local commit zmq
    commit=$(commit_of "$root")
    zmq=$(pkg-config --modversion libzmq 2>/dev/null || echo unknown)
    # Run on a host of the cluster, which has separate TCP settings.
    local on_host=(launch 1)
    [[ $cluster ]] || on_host=()
    "${on_host[@]}" "$psring" info --json "$out/info.json" >>"$out/log.txt" 2>&1 ||
        echo null >"$out/info.json"
    {
        echo "{"
        json_member date "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
        json_member command "$command_line"
        json_member commit "$commit"
        json_member system "$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\).*/\1/p' /etc/os-release 2>/dev/null)"
        json_member kernel "$(uname -srm)"
        json_member cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)"
        printf '  "cores": %d,\n' "$cores"
        json_member network "$network"
        printf '  "machines": '
        json_lines "$machines_table"
        printf '  "link_bits_per_s": %d,\n' "$link_bits"
        json_member compiler "$(cc --version 2>/dev/null | head -n 1)"
        json_member gnuplot "$(gnuplot --version 2>/dev/null)"
        printf '  "mca": '
        mca_parameters
        json_member mpi "$(mpirun --version 2>/dev/null | head -n 1)"
        json_member zmq "$zmq"
        printf '  "sysctl": '
        tcp_settings
        printf '  "seconds": %d,\n  "failures": %d,\n' $((SECONDS - started)) "$failures"
        printf '%s' "${provenance_facts:-}"
        echo '  "measurements": ['
        local index
        for ((index = 0; index < ${#commands[@]}; index++)); do
            printf '    %s%s\n' "$(json_string "${commands[index]}")" \
                "$( ((index + 1 == ${#commands[@]})) || echo ,)"
        done
        echo '  ],'
        printf '  "info": '
        cat "$out/info.json" 2>/dev/null || echo null
        echo "}"
    } >"$out/provenance.json"
    rm -f "$out/info.json"
}
