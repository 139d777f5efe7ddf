# shellcheck shell=bash disable=SC2154,SC2034
# turns.sh: alternating measurements in one virtual cluster, for compare_*.sh. They load script.sh first and set `here`,
# `rate`, and `out` (a folder, or '' for a temporary one). On a shared machine only ratios within one run are reliable.

# shellcheck source-path=SCRIPTDIR source=../cluster/namespaces.sh
. "$here/cluster/namespaces.sh"

failed=0 child='' temporary='' cluster=compare-$$

# shellcheck disable=SC2317  # called by a trap
turns_clean_up()
{
    end_child
    "$here/vcluster.sh" down --name "$cluster" || true
    [[ ! $temporary ]] || rm -rf "$temporary"
}

# turns_raise HOSTS: builds the cluster, which ends with this script.
turns_raise()
{
    "$here/vcluster.sh" up --name "$cluster" --hosts "$1" --rate "$rate" --owner $$
}

# turns_begin HOSTS FILE...: builds the cluster, then removes an earlier run's files.
turns_begin()
{
    local hosts=$1 file refusal remedy
    shift
    ! namespaces_refused || die "needs the virtual cluster: $refusal; $remedy"
    [[ ! $out ]] || { take_folder "$out" && keep_foreign_files "$@" log.txt; }
    end_with turns_clean_up
    [[ $out ]] || temporary=$(mktemp -d) || die "no folder for temporary files"
    out=${out:-$temporary}
    turns_raise "$hosts"
    for file in "$@"; do
        rm -f "$out/$file"
    done
    begin_log "$hosts hosts"
}

# turn WHAT COMMAND...: runs one measurement for at most 600 s. Reports a failure and sets turn_failed; the caller
# continues.
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
