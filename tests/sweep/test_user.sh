#!/usr/bin/env bash
# test_user.sh PSRING_SWITCH: vcluster.sh and run_scaling.sh for an ordinary user. A cluster in a user namespace leaves
# nothing after any kind of end. Without namespaces the scripts name the reason, and sweep and lessons use loopback. Root
# switches to such a user.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# The user may have no access to root's folders, so the test copies the scripts.
user=()
((EUID != 0)) || user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
tree=$folder/psring
mkdir "$tree"
cp -R "$root/experiments" "$root/plots" "$tree"
mkdir "$tree/build"
cp "$1" "$tree/build/psring_switch"
# The program records the network of a measurement, then sleeps or fails.
cat >"$folder/program" <<PROGRAM
#!/bin/sh
[ "\$1" = info ] || [ "\$1" = report ] || [ "\$2" = --help ] && exit 0
echo "\$PSRING_NETWORK" >>"$folder/networks"
[ ! -e "$folder/fails" ] || { echo "psring: error: broken on purpose" >&2 && exit 1; }
exec sleep 4322.$$
PROGRAM
chmod +x "$folder/program"
((EUID != 0)) || chown -R 65534:65534 "$folder"

first='' # of PATH
# as_user COMMAND...: execs the command as that user.
as_user()
{
    exec "${user[@]}" env "HOME=$folder" "TMPDIR=$folder" "PATH=$first$PATH" "$@"
}

# refusal_with NAME=VALUE...: prints the words of name_refusal with these kernel settings.
refusal_with()
{
    local setting
    rm -rf "$folder/sys"
    for setting; do
        mkdir -p "$folder/sys/$(dirname "${setting%=*}")"
        echo "${setting#*=}" >"$folder/sys/${setting%=*}"
    done
    (SYSCTL=$folder/sys && name_refusal "Operation not permitted" && echo "$refusal; $remedy")
}

names_setting() # SETTING=VALUE WORDS
{
    local words
    words=$(refusal_with "$1")
    [[ $words == *"$2"* && $words == *"sudo sysctl -w ${2%% *}="* ]] || { echo "$words" && return 1; }
}

expect "a kernel without user namespaces" names_setting user/max_user_namespaces=0 "user.max_user_namespaces is 0"
expect "a kernel with user namespaces only for root" names_setting kernel/unprivileged_userns_clone=0 \
    "kernel.unprivileged_userns_clone is 0"
expect "AppArmor restricts user namespaces" names_setting kernel/apparmor_restrict_unprivileged_userns=1 \
    "kernel.apparmor_restrict_unprivileged_userns is 1"

sweep()
{
    as_user "$tree/experiments/run_scaling.sh" --quick --hosts 1 --sizes 65536 --no-train --out "$folder/out" \
        --psring "$folder/program" >"$folder/output" 2>&1
}

# --- an unshare that fails, as under AppArmor ----------------------------------------------------------

mkdir "$folder/bin"
printf '#!/bin/sh\necho "unshare: write failed /proc/self/uid_map: Operation not permitted" >&2\nexit 1\n' >"$folder/bin/unshare"
chmod 755 "$folder/bin" "$folder/bin/unshare"
touch "$folder/fails"
first=$folder/bin:
(sweep)
loopback_instead()
{
    cat "$folder/output"
    grep 'no virtual cluster: .*Operation not permitted.*; run it as root' "$folder/output" &&
        grep 'network=loopback' "$folder/output" && [[ $(sort -u "$folder/networks") == loopback ]]
}
expect "without namespaces the sweep names the reason, and measures on loopback" loopback_instead
refused_in_words() # WORDS COMMAND...
{
    local words=$1 status=0
    shift
    (as_user "$@") >"$folder/output" 2>&1 || status=$?
    cat "$folder/output"
    ((status == 1)) && grep -e "$words.*Operation not permitted.*; run it as root" "$folder/output"
}
expect "vcluster.sh names the reason" refused_in_words "^vcluster.sh: " \
    "$tree/experiments/vcluster.sh" up --name user-$$ --hosts 2 --rate 50mbit
expect "sweep_model.sh names the reason" refused_in_words "^sweep_model.sh: needs the virtual cluster: " \
    "$tree/experiments/sweep_model.sh" --psring "$folder/program" --out "$folder/model"
lesson()
{
    (as_user "$tree/experiments/lessons/lesson.sh" 2 --psring "$folder/program" --out "$folder/lesson") >"$folder/output" 2>&1
    cat "$folder/output"
    grep 'no virtual cluster: .*Operation not permitted.*; run it as root' "$folder/output" &&
        grep -x 'network=loopback' "$folder/output"
}
expect "a lesson names the reason, and runs on loopback" lesson
rm "$folder/fails" "$folder/networks"
first=''

# --- with namespaces --------------------------------------------------------------------------------------

# shellcheck disable=SC2016  # expanded by the shell that runs it
refusal=$(as_user "$BASH" -c '. "$1" && ! namespaces_refused || echo "$refusal; $remedy"' refused "$tree/experiments/cluster/namespaces.sh")
[[ ! $refusal ]] || skip "needs user namespaces: $refusal"

vcluster=$tree/experiments/vcluster.sh
on_cluster() # COMMAND ARGUMENT...
{
    local command=$1
    shift
    (as_user "$vcluster" "$command" --name user-$$ "$@")
}
at_end on_cluster down

prints() # TEXT COMMAND...
{
    local output wanted=$1
    shift
    output=$("$@") || return 1
    [[ $output == "$wanted" ]] || { echo "printed '$output', expected '$wanted'" && return 1; }
}

expect "up" on_cluster up --hosts 2 --rate 50mbit
expect "status" on_cluster status
ranks_on_hosts()
{
    on_cluster run -n 2 -- sh -c "touch $folder/file.\$(hostname) && echo \$(hostname) \$PSRING_NETWORK" | sort | xargs
}
expect "ranks run on hosts, and their files belong to the user" prints "host0 vcluster:50mbit host1 vcluster:50mbit" ranks_on_hosts
expect "the owner of a file is the user" prints "$(stat -c %u "$folder/program")" stat -c %u "$folder/file.host0"
exits_with()
{
    local wanted=$1 status=0
    shift
    "$@" || status=$?
    ((status == wanted))
}
expect "an exit status passes through" exits_with 7 on_cluster exec host1 -- sh -c 'exit 7'
# A latency needs TAP devices. Some systems reserve /dev/net/tun for root.
with_latency()
{
    on_cluster up --hosts 2 --rate 50mbit --latency 3 >"$folder/output" 2>&1 || { cat "$folder/output" && return 1; }
    grep 'round trips of 3 ms' "$folder/output" && on_cluster status
}
without_taps()
{
    ! with_latency && grep "^psring switch: error: /dev/net/tun: .*; a latency needs it" "$folder/output"
}
if (as_user "$BASH" -c ': <>/dev/net/tun') 2>/dev/null; then
    expect "up with a latency" with_latency
elif [[ -e /dev/net/tun ]]; then
    expect "the reason for no latency" without_taps
fi
expect "down" on_cluster down
expect "nothing is left" exits_with 1 pgrep -f "^psring-vcluster-holder user-$$ "
expect "status without a cluster fails" exits_with 1 on_cluster status

nothing_left()
{
    ! pgrep -f "^sleep 4322.$$|^psring-vcluster-holder scaling-$1 |$folder/program"
}

at_work()
{
    [[ -s $folder/networks ]]
}

for signal in INT TERM HUP KILL; do
    rm -f "$folder/networks"
    sweep &
    pid=$! # the shell execs the script
    within at_work
    kill -$signal $pid
    wait $pid
    status=$?
    result=ok
    within nothing_left $pid || result="something is left"
    ((status > 128)) || result="exit $status"
    [[ $(sort -u "$folder/networks") == vcluster:200mbit ]] || result="network $(sort -u "$folder/networks")"
    [[ $signal == KILL ]] || grep -q 'interrupted: .* has the finished measurements' "$folder/output" || result="it does not say so"
    verdict "$result" "SIG$signal leaves nothing"
done

all_passed
