# shellcheck shell=bash disable=SC2034
# namespaces.sh: finds out whether this user may create network namespaces. Root may, and an ordinary user may inside a
# user namespace, unless the kernel or a security module forbids it. For vcluster.sh and the scripts that build
# clusters.

PATH=$PATH:/usr/sbin:/sbin # an ordinary user's PATH often lacks the folders of tc, bridge and sysctl
SYSCTL=/proc/sys           # a test sets another folder

# The namespaces of an ordinary user, who becomes root in them. All processes end when unshare or the first process ends.
NEW_NAMESPACES=(unshare --user --map-root-user --net --mount --pid --fork --kill-child)
# The first command in new namespaces. It mounts /run for the names of network namespaces, and /proc for the new process
# numbers. MPI names files in /dev/shm after user and process numbers, which repeat in other namespaces.
PREPARE_NAMESPACES='mount -t tmpfs none /run && mount -t proc proc /proc && ip link set lo up &&
    { [ ! -d /dev/shm ] || mount -t tmpfs none /dev/shm; }'

# Returns 0 if this user cannot make network namespaces. Sets `refusal` (the reason) and `remedy`.
namespaces_refused()
{
    local error
    refusal='' remedy=''
    if [[ $(uname -s) != Linux ]]; then
        refusal="needs Linux's network namespaces; this is $(uname -s)" remedy="run it on Linux"
    elif ! command -v unshare >/dev/null || ! command -v ip >/dev/null; then
        refusal="unshare or ip is missing" remedy="run experiments/setup.sh"
    elif ((EUID == 0)); then
        error=$(unshare --net true 2>&1) && return 1
        refusal="this kernel or container allows no network namespaces (${error##*: })"
        remedy="a container needs --privileged"
    else
        error=$("${NEW_NAMESPACES[@]}" sh -c "$PREPARE_NAMESPACES" 2>&1) && return 1
        name_refusal "${error##*: }"
    fi
}

# name_refusal ERROR: finds the setting that forbids user namespaces to an ordinary user; else uses the error itself.
name_refusal()
{
    remedy="run it as root"
    if [[ $(cat "$SYSCTL/user/max_user_namespaces" 2>/dev/null) == 0 ]]; then
        refusal="this kernel allows no user namespaces (user.max_user_namespaces is 0)"
        remedy+=", or allow them: sudo sysctl -w user.max_user_namespaces=10000"
    elif [[ $(cat "$SYSCTL/kernel/unprivileged_userns_clone" 2>/dev/null) == 0 ]]; then
        refusal="this kernel allows user namespaces to root only (kernel.unprivileged_userns_clone is 0)"
        remedy+=", or allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1"
    elif [[ $(cat "$SYSCTL/kernel/apparmor_restrict_unprivileged_userns" 2>/dev/null) == 1 ]]; then
        refusal="AppArmor restricts user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)"
        remedy+=", or allow them: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
    else
        refusal="this kernel or container allows an ordinary user no user namespaces (${1:-no message})"
        remedy+="; a container needs --privileged"
    fi
}

# in_new_namespaces COMMAND...: replaces this shell, for an ordinary user. The command runs as root of the namespaces.
in_new_namespaces()
{
    # Open MPI names its folder in /tmp after the user, here root. Outside the namespaces that folder belongs to the
    # real root.
    export OMPI_MCA_orte_tmpdir_base=/run
    # No exec here: orphaned processes become children of the first process, which must wait for them.
    exec "${NEW_NAMESPACES[@]}" "$BASH" -c "$PREPARE_NAMESPACES"' && "$@"; exit $?' psring-namespaces "$@"
}
