# shellcheck shell=bash disable=SC2154,SC2034
# machines.sh: real machines in run_scaling.sh. Checks them before a measurement, fetches rows, and notices a lost
# machine.
#
# mpirun starts every command on a machine, by ssh, plm_rsh_agent or Slurm.

# names_of LIST: prints the machines of --hosts, separated by commas. LIST is one of:
#   NAME,NAME...   these names or addresses
#   @FILE          the first word of each line of a hostfile. Slots are ignored: a machine has a rank per GPU, or one
#   slurm          the machines of this Slurm job
names_of()
{
    local names
    case $1 in
    @*)
        [[ -r ${1#@} ]] || { say "--hosts '$1': cannot read the file '${1#@}'" && return 1; }
        names=$(awk '{ sub(/#.*/, "") } NF { sub(/:.*/, "", $1); print $1 }' "${1#@}")
        ;;
    slurm)
        [[ ${SLURM_JOB_NODELIST:-} ]] ||
            { say "--hosts slurm: SLURM_JOB_NODELIST is not set; run this inside salloc or sbatch" && return 1; }
        names=$(scontrol show hostnames "$SLURM_JOB_NODELIST") || return 1
        ;;
    *) echo "$1" && return ;;
    esac
    [[ $names ]] || { say "--hosts '$1': names no machine" && return 1; }
    paste -sd, <<<"$names"
}

ANSWER_S=20 # a machine without an answer by then counts as down

# on_machine HOST COMMAND...: runs it there. A new session makes ssh fail with a message instead of asking for a
# password.
on_machine()
{
    local host=$1 mpi=(mpirun -n 1 --host "$1" --bind-to none)
    shift
    ((EUID != 0)) || mpi+=(--allow-run-as-root)
    [[ -z ${PSRING_BIND_SUBNET:-} ]] || mpi+=(-x PSRING_BIND_SUBNET)
    setsid timeout -k 5 $ANSWER_S "${mpi[@]}" "$@" </dev/null
}

# asked HOST COMMAND...: runs it there, with its output in $answers/HOST. Open MPI's daemon of the run before can remove
# the folder of this run while it ends (open-mpi/ompi#8510). Nothing has started then, so the function tries again.
asked()
{
    local host=$1 tries status
    shift
    for ((tries = 0; tries < 3; tries++)); do
        status=0
        on_machine "$host" "$@" >"$answers/$host" 2>&1 || status=$?
        ((status != 0)) || break
        grep -qs 'mkdir was unable to create the desired directory' "$answers/$host" || break
    done
    return $status
}

# The check of a machine, with PROGRAM SHA256 COMMIT DATA. It prints every problem as a line "problem: ...".
# shellcheck disable=SC2016  # the shell on the machine expands it
CHECK_MACHINE='
program=$1 sum=$2 commit=$3 data=$4 problems=0
problem() { echo "problem: $*"; problems=1; }
if [ ! -x "$program" ]; then
    problem "has no program $program; the machines need this folder at the same path"
elif [ "$(sha256sum <"$program" | cut -c 1-64)" != "$sum" ]; then
    there=$("$program" info 2>/dev/null | sed -n "s/^ *commit  *//p")
    problem "has another program at $program: of commit ${there:-unknown}, here $commit; copy this one there"
fi
[ -z "$data" ] || [ -r "$data" ] || problem "has no folder $data with MNIST; --no-train does without"
[ $problems = 0 ] || exit 1
exec "$program" bench --probe only'

# reason_of FILE: prints why a run of mpirun failed, in at most three lines. It takes the messages of the check or the
# program. Without them it takes those of the launcher, or the first line of mpirun's explanation between dashes.
reason_of()
{
    awk '
        function keep(list, text) { if (count[list] < 3) said[list] = said[list] text "\n"; count[list]++ }
        /^-----/ { inside = !inside; fresh = inside; next }
        NF == 0 || /plm:rsh: Warning: setpgid|ORTE_ERROR_LOG|more process(es)? ha(s|ve) sent help message|orte_base_help_aggregate/ { next }
        sub(/^problem: /, "") { keep("problem", $0); next }
        /^psring: error: / { if (!seen[$0]++) keep("problem", $0); next }
        inside { if (fresh) keep("mpirun", $0); fresh = 0; next }
        !/^psring: / { keep("launcher", $0) }
        END {
            if (said["problem"] != "") printf "%s", said["problem"]
            else if (said["launcher"] != "") printf "%s", said["launcher"]
            else if (said["mpirun"] != "") printf "%s", said["mpirun"]
            else print "no message"
        }' "$1"
}

# ask_machines COMMAND...: runs it at once on all machines, and on that of --switch-host. Prints each problem with the
# machine's name; fails if there is one.
ask_machines()
{
    local host line status wrong=0 children=() all=("${machines[@]}" ${switch_host:+"$switch_host"})
    answers=$(mktemp -d) || die "no folder for the machines' answers"
    for host in "${all[@]}"; do
        {
            status=0
            asked "$host" "$@" || status=$?
            echo $status >"$answers/$host.status"
        } &
        children+=($!)
        ((${#children[@]} % 16)) || wait "${children[@]}"
    done
    wait "${children[@]}"
    for host in "${all[@]}"; do
        status=$(cat "$answers/$host.status" 2>/dev/null || echo 1)
        ((status != 0)) || continue
        wrong=1
        if ((status == 124 || status == 137)); then
            say "$host: no answer within $ANSWER_S s; check that it is up and can reach this machine"
        else
            reason_of "$answers/$host" | sed 's/^psring: error: //' | while read -r line; do say "$host: $line"; done
        fi
        cat "$answers/$host" >>"$out/log.txt"
    done
    rm -rf "$answers" && answers=''
    return $wrong
}

# Checks all machines before a measurement. Sets `machines_table` (machines and links) and `probed_bits` (the slowest
# link's rate in bit/s; 0: not known).
check_machines()
{
    local sum commit
    say "checking ${#machines[@]} machines: $real_hosts${switch_host:+, and $switch_host}"
    sum=$(sha256sum <"$psring")
    commit=$("$psring" info 2>/dev/null | sed -n 's/^ *commit  *//p')
    ask_machines sh -c "$CHECK_MACHINE" check "$psring" "${sum%% *}" "${commit:-unknown}" "${data_arguments[1]:-}" ||
        die "nothing was measured: see the lines above"
    if ! log_to=$out/last.txt launch ${#machines[@]} "$psring" bench --probe only --timeout 10; then
        cat "$out/last.txt" >>"$out/log.txt"
        reason_of "$out/last.txt" >&2
        rm -f "$out/last.txt"
        die "nothing was measured: each machine answers, but together they fail, as above; if they have several networks, choose one, such as PSRING_BIND_SUBNET=10.0.0.0/24"
    fi
    machines_table=$(grep -E '^(#|  )' "$out/last.txt" || true)
    { sed -n '/^psring: warning:/p' "$out/last.txt" && echo "$machines_table"; } | tee -a "$out/log.txt" >&2
    rm -f "$out/last.txt"
    warn_of_machines
    probed_bits=$(awk '/Mbit\/s to/ { rate = $7 * 1e6; if (!least || rate < least) least = rate }
        END { printf "%.0f", least }' <<<"$machines_table")
    there=$(on_machine "${machines[0]}" mktemp -d -t psring-scaling.XXXXXX 2>>"$out/log.txt" | tail -n 1) || true
    if [[ $there != /*/psring-scaling.* ]]; then
        there='' # something else that was printed there: forget_machines must not remove it
        die "${machines[0]}: no place for rows, because mktemp -d failed; check its folder for temporary files"
    fi
}

# Warns about properties that distort results but need not stop a sweep.
warn_of_machines()
{
    local line
    awk -v nominal="$link_bits" '
        /^#/ { next }
        $5 > 1 || $5 < -1 { printf "warning: the clock of %s is %.1f s %s\n", $1, $5 < 0 ? -$5 : $5, ($5 > 0 ? "ahead" : "behind") }
        /Mbit\/s to/ { rate[$1] = $7; next_of[$1] = $NF; if ($7 > most) most = $7 }
        END {
            for (host in rate)
                if (rate[host] < 0.9 * most)
                    printf "warning: %s to %s carries %.1f Mbit/s, other links up to %.1f: the slowest sets the pace of all\n",
                        host, next_of[host], rate[host], most
            if (nominal > 0 && most * 1e6 > 1.02 * nominal)
                printf "warning: --rate says %.1f Mbit/s, but a link carries %.1f\n", nominal / 1e6, most
        }' <<<"$machines_table" | while read -r line; do say "$line"; done
}

# fetch_rows FILE: adds rank 0's rows in FILE, $there/NUMBER.NAME on the first machine, to $out/NAME. It changes nothing
# there, so it can try again. Fails if it cannot.
fetch_rows()
{
    local tries first=1 name=${1##*/}
    name=${name#*.}
    for ((tries = 0; tries < 3; tries++)); do
        # shellcheck disable=SC2016  # the shell on the machine expands it
        ! on_machine "${machines[0]}" sh -c '[ ! -e "$1" ] || cat "$1"' fetch "$1" >"$out/part.csv" 2>>"$out/log.txt" || break
    done
    ((tries < 3)) || say "${machines[0]}: cannot fetch its rows in $1"
    if ((tries < 3)) && [[ -s $out/part.csv ]]; then
        [[ ! -s $out/$name ]] || first=2 # without the header
        tail -n +$first "$out/part.csv" >>"$out/$name"
    fi
    rm -f "$out/part.csv"
    ((tries < 3))
}

forget_machines()
{
    [[ ! $answers ]] || rm -rf "$answers"
    [[ ! $there ]] || on_machine "${machines[0]}" rm -rf "$there" >/dev/null 2>&1 || true
}
