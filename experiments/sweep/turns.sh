# shellcheck shell=bash disable=SC2154,SC2034
# turns.sh: measurements by turns in one virtual cluster. For the compare_*.sh, which load script.sh before it and set
# `here`, `rate`, and `out` (a folder, or '' for a temporary one). Only a ratio within one run means something on a
# machine that others use.

# shellcheck source-path=SCRIPTDIR source=../cluster/namespaces.sh
. "$here/cluster/namespaces.sh"

failed=0 child='' temporary='' cluster=compare-$$

# shellcheck disable=SC2317  # called by a trap
turns_clean_up()
{
    trap '' INT TERM HUP
    [[ ! $child ]] || { kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
    "$here/vcluster.sh" down --name "$cluster" || true
    [[ ! $temporary ]] || rm -rf "$temporary"
}

# turns_raise HOSTS: the cluster, which goes with this script.
turns_raise()
{
    "$here/vcluster.sh" up --name "$cluster" --hosts "$1" --rate "$rate" --owner $$
}

# turns_begin HOSTS FILE...: raises the cluster, which goes with this script; then takes an earlier run's files out.
turns_begin()
{
    local hosts=$1 file refusal remedy
    shift
    ! namespaces_refused || die "needs the virtual cluster: $refusal; $remedy"
    [[ ! $out ]] || { take_folder "$out" && keep_foreign_files "$@" log.txt; }
    trap turns_clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap 'exit 129' HUP
    [[ $out ]] || { temporary=$(mktemp -d) && out=$temporary; }
    turns_raise "$hosts"
    for file in "$@"; do
        rm -f "$out/$file"
    done
    begin_log "$hosts hosts"
}

# turn WHAT COMMAND...: one measurement of 600 s at most; one that fails is told, and the others go on. turn_failed: it did.
turn()
{
    local what=$1 status=0
    shift
    timeout -k 10 600 "$@" >>"$out/log.txt" 2>&1 </dev/null &
    child=$!
    wait $child || status=$?
    child=''
    ((status != 124 && status != 137)) || echo "${0##*/}: ended after 600 s" >>"$out/log.txt"
    turn_failed=$((status != 0))
    ((status == 0)) || { failed=1 && echo "failed: $what: $(tail -n 1 "$out/log.txt")" >&2; }
}
