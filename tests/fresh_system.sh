#!/usr/bin/env bash
# fresh_system.sh [CTEST-ARGUMENT...]: runs tests/run.sh on a minimal Debian with git and a shell, in a temporary
# folder. Tests the last commit. Needs root, debootstrap and 4 GB in /tmp. Takes about 20 minutes, so no test runs it.
# Passes PSRING_DATA on.
set -euo pipefail

SUITE=bookworm
LIMIT_S=5400

unset CDPATH # cd prints a folder that it finds there
root=$(cd "$(dirname "$0")/.." && pwd)
((EUID == 0)) || { echo "fresh_system.sh: needs root, for debootstrap and chroot" >&2 && exit 1; }
command -v debootstrap >/dev/null || { echo "fresh_system.sh: apt-get install debootstrap" >&2 && exit 1; }
# Separate mounts: they do not reach the machine, and end with the processes that see them.
if [[ ! ${PSRING_FRESH_MOUNTS:-} ]]; then
    exec env PSRING_FRESH_MOUNTS=own unshare --mount --propagation slave "$BASH" "$0" "$@"
fi
unset PSRING_FRESH_MOUNTS
system=$(mktemp -d /tmp/psring-fresh-XXXXXX)
mounts=("$system") # `ip netns exec` needs / to be a mount
chmod 755 "$system"
mount --bind "$system" "$system"

# in_background COMMAND...: runs it in the background, because bash handles a signal only after a foreground command.
child=''
in_background()
{
    local status=0
    "$@" &
    child=$!
    wait $child || status=$?
    child=''
    return $status
}

# signal_inside SIGNAL: signals all processes whose root is the folder. Fails if there are none.
signal_inside()
{
    local process any=1
    for process in /proc/[0-9]*; do
        [[ $(readlink "$process/root" 2>/dev/null) == "$system" ]] || continue
        any=0
        kill "-$1" "${process##*/}" 2>/dev/null || true
    done
    return $any
}

end_processes()
{
    local signal=TERM round
    for ((round = 0; round < 300; round++)); do
        signal_inside $signal || break
        signal=0 # after 20 s: KILL
        ((round < 200)) || signal=KILL
        sleep 0.1
    done
    [[ ! $child ]] || { kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
}

# Unmounts first: no mount of this machine may be in the folder when it is removed.
remove()
{
    local i
    trap '' INT TERM HUP
    end_processes
    for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do
        umount -R "${mounts[i]}" || umount -Rl "${mounts[i]}"
    done
    ! grep -q " ${system}[ /]" /proc/mounts || { echo "fresh_system.sh: $system still has mounts, so it is left" >&2 && exit 1; }
    rm -rf --one-file-system "$system"
}
trap remove EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

bind() # FOLDER...: mounts these folders of this machine in the system
{
    local folder
    for folder; do
        mkdir -p "$system$folder"
        mount --rbind "$folder" "$system$folder"
        mount --make-rslave "$system$folder"
        mounts+=("$system$folder")
    done
}

in_background debootstrap --variant=minbase --include=git,ca-certificates $SUITE "$system" >/dev/null
# The network settings of this machine.
cp -L /etc/resolv.conf /etc/hosts "$system/etc/"
cp -r /etc/apt/apt.conf.d /etc/apt/auth.conf.d /etc/apt/sources.list.d "$system/etc/apt/"
rm -f "$system/etc/apt/apt.conf.d/"*docker*
bind /proc /sys /dev
mkdir -p "$system/run" && mount -t tmpfs none "$system/run" && mounts+=("$system/run")
data=()
[[ -z ${PSRING_DATA:-} ]] || { bind "$PSRING_DATA" && data=("PSRING_DATA=$PSRING_DATA"); }
git clone -q --no-hardlinks "$root" "$system/psring"
in_background timeout --kill-after=20 $LIMIT_S chroot "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    TERM="${TERM:-dumb}" "${data[@]}" /psring/tests/run.sh "$@"
