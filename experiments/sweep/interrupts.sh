# shellcheck shell=bash
# interrupts.sh: for scripts that clean up when they are interrupted, however they were started.

# heed_interrupts "$@": with the script's own arguments, before it does anything. A shell that was started in the
# background ignores SIGINT, and bash cannot trap what it ignores: such a script starts over with the default action.
heed_interrupts()
{
    (($(sed -n 's/^SigIgn:\t*/0x/p' /proc/self/status 2>/dev/null || echo 0) & 2)) || return 0
    exec env --default-signal=INT "$BASH" "$0" "$@"
}
