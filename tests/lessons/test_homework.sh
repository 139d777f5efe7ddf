#!/usr/bin/env bash
# test_homework.sh JUDGE [--short]: the judge gives each solution in homework/ the right verdict within 60 s, and
# leaves no process. A solution is the skeleton with a file of homework/ in place of the student's lines. The first
# line of a wrong solution contains the expected verdict. --short: every third solution.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

judge=$(realpath "$1")
homework=$root/experiments/lessons/homework.sh
export TMPDIR=$folder # for solution.so, which left() looks for

# build BODY FILE: writes the skeleton with BODY in place of the student's lines.
build()
{
    awk -v body="$1" -v common="$here/homework/common.inc" '
        function insert(file, line) { while ((getline line <file) > 0) print line; close(file) }
        /^ \* Afterwards `data`/ { print " */"; insert(common); print "/*" }
        /Your code/ { skips = 1; insert(body) }
        !skips { print }
        /\(void\)workers/ { skips = 0 }' "$root/experiments/lessons/homework.c" >"$2"
    sed -i 's/#include <stdlib.h>/&\n#include <string.h>/' "$2"
}

# verdict FILE OPTION...: runs the judge and returns its exit code. Its output is in $folder/said.
verdict()
{
    "$homework" check --judge "$judge" "$@" >"$folder/said" 2>&1
}

# is_wrong SENTENCE: the last verdict contains this sentence.
is_wrong()
{
    [[ $status == 1 ]] && head -n 1 "$folder/said" | grep -q "^Wrong: .*$1"
}

# Prints the judge and the processes that it has started.
left()
{
    pgrep -f "^$judge check $folder" || true
}

# --- the solutions ---------------------------------------------------------------------------------------------

slow='endless_loop|endless_sends'
count=0
for body in "$here"/homework/{right,wrong}_*.inc; do
    solution=$(basename "$body" .inc) before=$SECONDS begin=$EPOCHREALTIME
    ((!short)) || [[ $solution == wrong_two_exchanged ]] || { ((count++ % 3 == 0)) && [[ ! $solution =~ $slow ]]; } || continue
    build "$body" "$folder/$solution.c"
    status=0
    verdict "$folder/$solution.c" || status=$?
    echo "$(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%5.1f s", b - a }')  $solution: $(head -n 1 "$folder/said")"
    ((SECONDS - before <= 60)) || fail "$solution: the verdict took $((SECONDS - before)) s, more than 60 s"
    if [[ $solution == right_* ]]; then
        [[ $status == 0 && $(head -n 1 "$folder/said") == "Right: "* ]] || fail "$solution: exit $status: $(cat "$folder/said")"
    else
        sentence=$(sed -n '1s|^/\* Wrong: \(.*\) \*/$|\1|p' "$body")
        [[ $sentence ]] || fail "$solution: its first line has no sentence"
        is_wrong "$sentence" || fail "$solution: exit $status, expected '$sentence': $(cat "$folder/said")"
    fi
done

# --- the skeleton, and files without a solution ----------------------------------------------------------------

"$homework" new "$folder/mine.c" >"$folder/said" || fail "new: $(cat "$folder/said")"
status=0
verdict "$folder/mine.c" || status=$?
is_wrong 'no worker sent anything, and all vectors are unchanged' ||
    fail "the skeleton: exit $status: $(cat "$folder/said")"
grep -qxF "$(head -n 1 "$folder/said")" "$root/experiments/lessons/7_your_own.md" ||
    fail "7_your_own.md does not contain the verdict on the skeleton: $(cat "$folder/said")"
sed -i 's/backend_homework/backend_mine/' "$folder/mine.c"
status=0
verdict "$folder/mine.c" || status=$?
is_wrong 'It has no .const struct backend backend_homework' ||
    fail "no backend_homework: exit $status: $(cat "$folder/said")"
cp "$folder/mine.c" "$folder/kept.c"
for arguments in "" "check" "check $folder/none.c" "new $folder/mine.c" "mark $folder/mine.c" "check --fast $folder/mine.c" \
    "check --judge /nowhere $folder/mine.c"; do
    status=0
    # shellcheck disable=SC2086  # an option and its value
    "$homework" $arguments >/dev/null 2>"$folder/said" || status=$?
    [[ $status == 2 && $(wc -l <"$folder/said") == 1 ]] || fail "bad usage '$arguments': exit $status: $(cat "$folder/said")"
done
for variable in TMPDIR=/nowhere CC=/nowhere; do
    status=0
    env "$variable" "$homework" check --judge "$judge" "$folder/mine.c" >/dev/null 2>"$folder/said" || status=$?
    [[ $status == 2 && $(wc -l <"$folder/said") == 1 ]] || fail "$variable: exit $status: $(cat "$folder/said")"
done
cmp -s "$folder/mine.c" "$folder/kept.c" || fail "new replaced an existing file"

# --- no process remains ----------------------------------------------------------------------------------------

# The solution starts a process in another session.
printf '%s\n' '#include <unistd.h>' >"$folder/forks.c"
printf '%s\n' 'if (me == 0 && fork() == 0) {' '    setsid();' '    execlp("sleep", "sleep", "98765.4", (char *)0);' '}' >"$folder/forks.inc"
build "$folder/forks.inc" "$folder/body.c"
cat "$folder/body.c" >>"$folder/forks.c"
verdict "$folder/forks.c" && fail "a solution that does not average got Right: $(cat "$folder/said")"
! pgrep -f '^sleep 98765.4' >/dev/null || fail "a process of the solution still runs"

# The solution starts processes in a loop, each in a session of its own.
cat "$folder/forks.c" >"$folder/loop.c"
sed -i 's/if (me == 0 && fork() == 0) {/for (int i = 0; me == 0 \&\& i < 1000; i++) if (fork() == 0) {/' "$folder/loop.c"
status=0 before=$SECONDS
verdict "$folder/loop.c" || status=$?
((SECONDS - before <= 60)) || fail "forks in a loop: the verdict took $((SECONDS - before)) s, more than 60 s"
is_wrong '' || fail "forks in a loop: exit $status: $(cat "$folder/said")"
grep -q '^The solution started processes and left [0-9]*. The judge has ended them.$' "$folder/said" ||
    fail "forks in a loop are not named: $(cat "$folder/said")"
! pgrep -f '^sleep 98765.4' >/dev/null || fail "a process of the solution that forks in a loop still runs"

# A solution that does what psring does not expect of it. Each line: a name, the verdict, and the statements.
while IFS='|' read -r solution sentence statements; do
    printf '%s\n' '#include <signal.h>' '#include <unistd.h>' >"$folder/$solution.c"
    printf '%s\n' "$statements" 'for (;;) pause();' >"$folder/$solution.inc"
    build "$folder/$solution.inc" "$folder/body.c"
    cat "$folder/body.c" >>"$folder/$solution.c"
    status=0
    timeout -k 5 60 "$homework" check --judge "$judge" "$folder/$solution.c" >"$folder/said" 2>&1 || status=$?
    if [[ $solution == kills_* ]]; then
        [[ $status == 3 ]] && grep -q "$sentence" "$folder/said"
    else
        is_wrong "$sentence"
    fi || fail "$solution: exit $status, expected '$sentence': $(cat "$folder/said")"
    [[ ! $(left) ]] || fail "$solution: processes remain: $(left)"
done <<'END'
closes|the solution closed descriptors that it did not open|for (int fd = 3; fd < 100; fd++) close(fd);
leaves_its_group|the all-reduce did not end within the limit of time|setpgid(0, getpgid(getppid())); alarm(0);
kills_the_judge|the judge ended with exit status 143 and gave no verdict|kill(getppid(), SIGTERM);
END

# A signal during an endless loop. Background processes ignore SIGQUIT.
for signal in INT TERM HUP QUIT; do
    build "$here/homework/wrong_endless_loop.inc" "$folder/endless.c"
    env --default-signal=QUIT "$homework" check --judge "$judge" "$folder/endless.c" >/dev/null 2>&1 &
    pid=$!
    within pgrep -f "^$judge check $folder"
    kill -"$signal" $pid
    status=0
    wait $pid || status=$?
    ((status > 128)) || fail "SIG$signal: exit code $status, expected more than 128"
    [[ ! $(left) ]] || fail "after SIG$signal processes remain: $(left)"
    ! compgen -G "$folder/tmp.*" >/dev/null || fail "SIG$signal left a folder: $(ls -d "$folder"/tmp.*)"
done

# --- limits ------------------------------------------------------------------------------------------------------

# The user's limit of a stack is more than the memory of a trial.
build "$here/homework/right_ring.inc" "$folder/ring.c"
(ulimit -s 1000000 2>/dev/null; verdict "$folder/ring.c") || fail "with large stacks: $(cat "$folder/said")"

# Each trial ends within its limit, but all trials together do not.
if ((!short)); then
    printf '%s\n' '#include <unistd.h>' | cat - "$folder/ring.c" >"$folder/slow.c"
    sed -i 's/^    self->bucket = bucket;/&\n    usleep(bucket == 0 ? 3000000 : 0);/' "$folder/slow.c"
    status=0
    verdict "$folder/slow.c" || status=$?
    [[ $status == 3 && $(head -n 1 "$folder/said") == "The judge ran out of time: "* ]] ||
        fail "slow trials: exit $status: $(cat "$folder/said")"
fi
echo "test_homework: all verdicts are right"
