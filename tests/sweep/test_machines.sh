#!/usr/bin/env bash
# test_machines.sh [--short]: run_scaling.sh --hosts, and the commands of CLUSTERS.md, over real ssh. The machines are
# hosts of a virtual cluster, and each runs an sshd. The test makes its keys and settings, and does not read the user's.
#
# --short: a sweep over two machines instead of three, and only with ring and ps. Exits 77 (skipped) without
# namespaces or sshd.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
dir=$folder
needs_namespaces
PATH=$PATH:/usr/sbin:/sbin
for tool in sshd ssh ssh-keygen; do
    command -v $tool >/dev/null || skip "needs sshd, ssh and ssh-keygen"
done
sshd=$(command -v sshd)

# --- four machines; the sweeps use three -----------------------------------------------------------------

cluster_up 4 100mbit
subnet=$("$vcluster" exec --name "$cluster" switch -- printenv PSRING_BIND_SUBNET)
address_of_host2=${subnet%0/24}3
sshd_of=()
mkdir "$dir/out" "$dir/run" "$dir/tmp"
cp "$psring" "$dir/run/psring"
printf '#!/bin/sh\nexit 1\n' >"$dir/other"
chmod +x "$dir/other"
for key in host user; do
    ssh-keygen -q -t ed25519 -N '' -f "$dir/$key"
done
# As root sshd switches to other users, which do not exist inside a user namespace. There sshd runs as the user who
# started the test.
login=root as_login=()
read -r _ uid count </proc/self/uid_map
if ((count == 1)); then
    login=$(id -nu "$uid")
    as_login=(unshare --user "--map-user=$uid" "--map-group=$(awk '{ print $2 }' /proc/self/gid_map)")
fi
cat >"$dir/ssh_config" <<CONFIG
Host *
    User $login
    IdentityFile $dir/user
    IdentitiesOnly yes
    UserKnownHostsFile /dev/null
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking no
    LogLevel ERROR
    BatchMode yes
    ConnectTimeout 5
    ServerAliveInterval 2
    ServerAliveCountMax 2
CONFIG
cat >"$dir/sshd_config" <<CONFIG
HostKey $dir/host
AuthorizedKeysFile $dir/user.pub
PermitRootLogin yes
PidFile none
StrictModes no
UsePAM no
UseDNS no
SetEnv ASAN_OPTIONS=$ASAN_OPTIONS TMPDIR=$dir/tmp
CONFIG
# Each machine has separate mounts. It does not see the folder of the results, and has its own /run, where sshd needs
# a folder. It has its own temporary files, because Open MPI's would collide. The test looks into the first machine's
# files.
# shellcheck disable=SC2016  # expanded on the host
for host in 0 1 2 3; do
    "$vcluster" exec --name "$cluster" host$host -- sh -c 'mount -t tmpfs none "$1/out" &&
        { [ "$2" = 0 ] || mount -t tmpfs none "$1/tmp"; } && mount -t tmpfs none /run && mkdir -m 755 /run/sshd &&
        echo 22 >/proc/sys/net/ipv4/ip_unprivileged_port_start && config=$1/sshd_config && shift 2 &&
        exec "$@" -D -e -f "$config"' \
        sh "$dir" $host "${as_login[@]}" "$sshd" >"$dir/sshd$host.log" 2>&1 </dev/null &
    sshd_of[host]=$! # vcluster.sh execs sshd
done

# on_switch COMMAND...: runs the command on the switch, which launches the sweep and is none of the four machines.
on_switch()
{
    "$vcluster" exec --name "$cluster" switch -- env -u PSRING_BIND_SUBNET -u PSRING_NETWORK -u PSRING_LINK_BITS \
        "OMPI_MCA_plm_rsh_agent=ssh -F $dir/ssh_config" "$@"
}

for host in 0 1 2 3; do
    within on_switch ssh -F "$dir/ssh_config" host$host true || fail "no sshd on host$host: $(cat "$dir/sshd$host.log")"
done

# sweep [VARIABLE=VALUE...] HOSTS [ARGUMENT...]: runs run_scaling.sh over these machines.
sweep()
{
    local settings=()
    while [[ $1 == *=* ]]; do
        settings+=("$1") && shift
    done
    local hosts=$1
    shift
    rm -rf "${dir:?}/out"/*
    on_switch env "${settings[@]}" "$root/experiments/run_scaling.sh" --quick --no-train --sizes 4096 --hosts "$hosts" \
        --psring "$dir/run/psring" --out "$dir/out" "$@" >"$dir/output" 2>&1
}

# refused WHAT PATTERN...: exit 1, no measurement, every pattern in the output, and no boilerplate of Open MPI.
refused()
{
    local what=$1 result=ok pattern
    shift
    ((status == 1)) || result="exit $status"
    [[ ! -e $dir/out/bench.csv && ! -e $dir/out/train.csv ]] || result="found rows, expected no measurement"
    for pattern; do
        grep -qE -- "$pattern" "$dir/output" || result="no '$pattern'"
    done
    ! grep -qE -- '-----|ORTE|gnuplot|non-numeric' "$dir/output" || result="boilerplate"
    verdict "$result" "$what"
}

# --- the commands of CLUSTERS.md, with a hostfile ---------------------------------------------------------

printf 'host%d slots=1\n' 0 1 2 3 >"$dir/hosts"

# of_page BEGINNING: prints the command of experiments/CLUSTERS.md with this beginning, on one line.
of_page()
{
    sed -n "/^    $1/,/[^\\\\]\$/p" "$root/experiments/CLUSTERS.md" | sed 's/\\$//' | tr -s '\n ' ' '
}

# on_four COMMAND: runs the command in psring's folder. Four ranks must time every size, without a wrong sum.
on_four()
{
    local result=ok
    rm -f "$dir/bench.csv"
    mkdir -p "$dir/build"
    cp "$psring" "$dir/build/psring"
    (cd "$dir" && on_switch env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 bash -c "$1" \
        >"$dir/output" 2>&1) || result="exit $?"
    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
        $c["workers"] != 4 || $c["network"] != "4-hosts" || $c["wrong"] != 0 { bad = 1 }
        END { exit bad || NR < 3 }' "$dir/bench.csv" || result="bench.csv: $(cat "$dir/bench.csv")"
    verdict "$result" "$1"
}

plain=$(of_page 'mpirun --hostfile')
plain="${plain/10.0.0.0\/24/$subnet} -e 16k -n 5"
on_four "$plain"
careful=$(of_page 'mpirun --quiet')
on_four "${careful/--hostfile hosts .../${plain/mpirun/}}"

# --- a server where the links meet, even on the launching machine --------------------------------------

# shellcheck disable=SC2016  # expanded there
found=$(on_switch bash -c 'here=$1 real_hosts=host1,host0,host2 switch_host=switch placing=(--in-switch 1) cluster="" cores=1
    network=net link_bits=0
    . "$here/sweep/launch.sh"
    wait_for_child() { "$@"; }
    launch 3 sh -c "echo \$OMPI_COMM_WORLD_RANK\$(hostname)"' bash "$root/experiments" 2>"$folder/warnings" | sort | xargs)
result=ok
# On a busy machine mpirun warns that its child runs before mpirun has set the child's process group.
[[ $found == "0host1 1host0 2switch" ]] || result="found $found, $(cat "$folder/warnings")"
verdict "$result" "the last rank is in the switch, where mpirun runs"

# --- errors before any measurement -------------------------------------------------------------------------

sweep host0,nohost,host1,host9
status=$?
refused "unknown machines" ' nohost: .*resolve' ' host9: .*resolve'
sweep host0,host1 --switch-host host9
status=$?
refused "an unknown machine for the switch" ' host9: .*resolve'

nsenter -t "${sshd_of[1]}" -m mount --bind "$dir/other" "$dir/run/psring"
nsenter -t "${sshd_of[2]}" -m mount --bind /dev/null "$dir/run/psring"
sweep host0,host1,host2
status=$?
refused "another program, and none" ' host1: has another program at .*commit' ' host2: has no program '
nsenter -t "${sshd_of[1]}" -m umount "$dir/run/psring"
nsenter -t "${sshd_of[2]}" -m umount "$dir/run/psring"

ip -n "psring-$cluster-0" address add 10.99.0.1/24 dev eth0
ip -n "psring-$cluster-1" address add 10.99.0.2/24 dev eth0
sweep PSRING_BIND_SUBNET=10.99.0.0/24 host0,host1,host2
status=$?
refused "a machine without the network" " host2: no IPv4 address in 10.99.0.0/24 .*$address_of_host2"
ip -n "psring-$cluster-0" address delete 10.99.0.1/24 dev eth0
ip -n "psring-$cluster-1" address delete 10.99.0.2/24 dev eth0

# --- a sweep; a leftover Open MPI daemon hinders its first run ---------------------------------------------

mkdir "$dir/bin"
skipped='none' # measurements left out, as patterns of their command lines
((!short)) || skipped='*"--backend rhd "*|*"--backend mpi "*'
cat >"$dir/bin/mpirun" <<LAUNCHER
#!/bin/sh
case "\$*" in
$skipped) touch "$dir/skipped" && exit ;;
*" fetch "*) ! rm "$dir/skipped" 2>/dev/null || exit 0 ;; # its rows
esac
! mkdir "$dir/hindered" 2>/dev/null || { echo 'A call to mkdir was unable to create the desired directory:' >&2 && exit 1; }
exec "$(command -v mpirun)" "\$@"
LAUNCHER
chmod +x "$dir/bin/mpirun"
swept=3
((!short)) || swept=2
sweep "PATH=$dir/bin:$PATH" "$(seq -f host%g -s , 0 $((swept - 1)))"
status=$?
result=ok
((status == 0)) || result="exit $status"
[[ -d $dir/hindered ]] || result="the first mpirun was not hindered"
for ((next = 0; next < swept; next++)); do
    grep -qE " host$(((next + swept - 1) % swept)) .* [0-9.]+ Mbit/s to host$next$" "$dir/output" || result="no rate of the link to host$next"
done
verdict "$result" "a sweep over $swept machines"
result=ok
progress=$(grep -oE '\[[0-9]+/[0-9]+,' "$dir/output" | tail -n 1 | tr -d '[,')
[[ $progress && ${progress%/*} == "${progress#*/}" ]] || result="progress ended at $progress"
verdict "$result" "progress counts to its own total"
shapes=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) c[$i] = i; next }
    { print $c["backend"] ":" $c["transport"] ":" $c["placement"] ":" $c["servers"] ":" $c["workers"] }' "$dir/out/bench.csv")
result=ok
expected=(ring:tcp:none:0:2 "ring:zmq:none:0:$swept" "ring:mpi:none:0:$swept" "ps:zmq:colocated:$swept:$swept")
((short)) || expected+=(ring:tcp:none:0:3 ps:zmq:dedicated:1:2 ps:zmq:mixed:1:2)
for shape in "${expected[@]}"; do
    grep -qxF "$shape" <<<"$shapes" || result="no row of $shape"
done
[[ $(grep -c '^backend' "$dir/out/bench.csv") == 1 && $(grep -c '^backend' "$dir/out/train.csv") == 1 ]] || result="headers"
! compgen -G "$dir/tmp/psring-scaling.*" >/dev/null || result="rows are left on the first machine"
verdict "$result" "the launching machine gets the rows"
result=ok
if ((short)); then
    grep -qE '^  2 workers: 3 machines for 1 server; 4 for W servers; 3 for W in workers \+ W/2' "$dir/out/summary.txt" || result="2 workers"
else
    grep -qE '^  2 workers: 4 machines for W servers$' "$dir/out/summary.txt" || result="2 workers"
    grep -qE '^  3 workers: 4 machines for 1 server; 5 for 2 servers; 6 for W servers; 4 for W in workers \+ W/2;' "$dir/out/summary.txt" ||
        result="3 workers"
    grep -qE '^  - 1 server: .*3 workers would need 4 machines' "$dir/out/summary.txt" || result="the answer"
fi
verdict "$result" "the summary lists what was left out"

# --- a machine that is lost ------------------------------------------------------------------------------

rm -f "$dir/output"
sweep host0,host1,host2 --limit 20 &
sweep=$!
is_at_work() { grep -q '\[3/' "$dir/output" || ! kill -0 $sweep; }
within is_at_work
ip -n "psring-$cluster-1" link set eth0 down
wait $sweep
status=$?
result=ok
((status == 1)) || result="exit $status"
grep -qE '^run_scaling.sh: host1: .' "$dir/output" || result="host1 is not named"
! grep -qE '^run_scaling.sh: host[02]: ' "$dir/output" || result="another machine is named"
grep -qE 'the sweep ends here: [0-9]+ measurements? not made' "$dir/output" || result="the sweep continued"
grep -q '^INCOMPLETE' "$dir/out/summary.txt" || result="no summary of what was measured"
verdict "$result" "a machine is lost during the sweep"

all_passed
