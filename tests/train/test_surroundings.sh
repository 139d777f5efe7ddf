#!/usr/bin/env bash
# test_surroundings.sh SHIFT_CLOCK: psring gives the usual weights in unusual surroundings:
#    as a user other than root, who cannot write to the tree
#    in a folder whose name has spaces
#    on one core, and in 512 MB
#    where numbers have a decimal comma
#    while the wall clock jumps (the library SHIFT_CLOCK, preloaded)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
shift_clock=$1
common=(--model lenet --batch 8 --reduce-order ring --steps 12 --log-steps 3)

# usual WHAT FILE: the weights in FILE are those of the first run.
usual()
{
    local found
    found=$(sed -n 's/^weights sha256 //p' "$2")
    [[ $found == "$weights" ]] || fail "$1: weights '$found', expected $weights; $(cat "$2")"
}

# on_ranks WHAT RUNNER...: start two ranks over tcp, then over zmq, each by the command RUNNER.
on_ranks()
{
    local what=$1 transport
    shift
    for transport in tcp zmq; do
        rm -f "$folder/metrics.csv"
        "$lib/ranks.sh" 2 "$@" "$psring" train --data "$data" "${common[@]}" --backend ring --transport $transport \
            --metrics "$folder/metrics.csv" >"$folder/log" 2>&1 || fail "$what, $transport:"
        usual "$what, $transport" "$folder/log"
        same_rows "$what, $transport" "$folder/metrics.csv"
    done
}

# same_rows WHAT FILE: the metrics have as many cells in each row as in the header, and the losses of the first run.
same_rows()
{
    local losses
    awk -F, 'NR == 1 { cells = NF } NF != cells { exit 1 }' "$2" || fail "$1: rows of other lengths: $(cat "$2")"
    losses=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } { print $at["train_loss"] }' "$2")
    [[ $losses == "${usual_losses:=$losses}" ]] || fail "$1: losses $losses, expected $usual_losses"
}

train 0 "${common[@]}" --backend none --virtual-workers 2
on_ranks "the usual surroundings" env

# Another user: the tree and the data are root's, and HOME is a folder that does not exist. An ordinary user has no
# other user, but a tree without write permission.
odd="$folder/a tree; with \"spaces\" and 'quotes'"
mkdir -p "$odd/data set" "$odd/out put"
cp "$psring" "$odd/ps ring"
cp "$data"/* "$odd/data set"
chmod -R a+rX,a-w "$odd"
chmod a+rx "$folder"
chmod 777 "$odd/out put"
as_user=()
((EUID != 0)) || as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
(
    cd "$odd"
    "${as_user[@]}" env HOME=/nonexistent "./ps ring" train --data "data set" "${common[@]}" --backend none \
        --virtual-workers 2 --metrics "out put/metrics, of one.csv" --checkpoint "out put/check points"
) >"$folder/log" 2>&1 || fail "another user, a folder with spaces:"
usual "another user, a folder with spaces" "$folder/log"
[[ -s "$odd/out put/metrics, of one.csv" ]] || fail "no metrics in a folder with spaces:"
compgen -G "$odd/out put/check points/*.checkpoint" >/dev/null || fail "no checkpoint in a folder with spaces:"
code=0
(cd "$odd" && "${as_user[@]}" "./ps ring" train --data "data set" "${common[@]}" --backend none --virtual-workers 2 \
    --metrics metrics.csv) >"$folder/log" 2>&1 || code=$?
grep -q 'metrics.csv: .*Permission denied' "$folder/log" || code="$code without the reason"
[[ $code == 1 ]] || fail "metrics where nothing can be written: exit $code, expected 1:"
chmod -R u+w "$odd"

on_ranks "one core" taskset -c "$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')"

# The address space, which includes memory that is reserved and never used: a stricter limit than resident memory.
# Sanitizers reserve terabytes.
if ! nm "$psring" 2>/dev/null | grep -q __asan_init; then
    # shellcheck disable=SC2016 # the inner shell expands it
    on_ranks "512 MB" bash -c 'ulimit -v 524288; exec "$@"' _
fi

# A locale of this test, because none may be installed.
mkdir "$folder/locales"
localedef -i de_DE -f UTF-8 "$folder/locales/de_DE.UTF-8" >"$folder/log" 2>&1 || true # it warns of missing parts
german=(env "LOCPATH=$folder/locales" LC_ALL=de_DE.UTF-8)
[[ $("${german[@]}" bash -c 'printf %.1f 2') == 2,0 ]] || skip "localedef makes no locale with a decimal comma"
on_ranks "a decimal comma" "${german[@]}"
"${german[@]}" "$psring" bench --backend none --sizes 4096 -n 3 -w 1 --csv "$folder/bench.csv" >"$folder/log" 2>&1 ||
    fail "bench with a decimal comma:"
awk -F, 'NR == 1 { cells = NF } NF != cells { exit 1 }' "$folder/bench.csv" || fail "bench.csv: $(cat "$folder/bench.csv")"

on_ranks "a wall clock that jumps" env "LD_PRELOAD=$shift_clock"
echo "surroundings: the same weights"
