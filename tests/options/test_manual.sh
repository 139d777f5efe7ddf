#!/usr/bin/env bash
# test_manual.sh BUILD: the manual page and the completion have every option of --help. The program
# man prints no warning. Bash completes commands, options, words and files. CMake installs all of it.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
build=$1

"$psring" --manual >"$folder/psring.1"
"$psring" --completion >"$folder/completion"
cmp "$folder/psring.1" "$build/psring.1" || fail "psring.1 of the build differs from psring --manual"
cmp "$folder/completion" "$build/psring.bash" || fail "psring.bash of the build differs from psring --completion"

# --- every option of the table --------------------------------------------------------------------------

mapfile -t commands < <("$psring" --help | sed -nE 's/^  ([a-z]+) +[A-Z].*/\1/p')
((${#commands[@]} >= 3)) || fail "--help: expected at least 3 commands, found: ${commands[*]}"
for command in "${commands[@]}"; do
    page=$(sed -n "/^\.SS psring $command /,/^\.S[SH] /p" "$folder/psring.1" | sed 's/\\-/-/g')
    [[ $page ]] || fail "the manual has no psring $command"
    help=$("$psring" "$command" --help)
    [[ $help == "usage: psring $command [OPTION...]"* ]] || continue # a command with other arguments
    mapfile -t options < <(sed -nE 's/^  (-., )? *--([a-z0-9-]+).*/\2/p' <<<"$help" | grep -vx help)
    for option in "${options[@]}"; do
        grep -qE "^\\\\fB(-.\\\\fR, \\\\fB)?--$option\\\\fR" <<<"$page" || fail "the manual of psring $command has no --$option"
        grep -qE "^    '${command} '\*\).* --${option}[ ']" "$folder/completion" || fail "the completion of psring $command has no --$option"
    done
    echo "psring $command: ${#options[@]} options"
done

# --- help, and near misses --------------------------------------------------------------------------------

for command in "${commands[@]}"; do
    cmp <("$psring" help "$command") <("$psring" "$command" --help) ||
        fail "psring help $command differs from psring $command --help"
done
cmp <("$psring" help) <("$psring" --help) || fail "psring help differs from psring --help"
for wrong in '--versoin: no such option (did you mean --version?)' 'hlep: no such command (did you mean help?)' \
    'trian: no such command (did you mean train?)'; do
    status=0
    said=$("$psring" "${wrong%%:*}" 2>&1) || status=$?
    [[ $status == 2 && $said == *"$wrong"* ]] || fail "psring ${wrong%%:*}: exit code $status, printed $said"
done
status=0
said=$("$psring" help trian 2>&1) || status=$?
[[ $status == 2 && $said == *'trian: no such command (did you mean train?)'* ]] ||
    fail "psring help trian: exit code $status, printed $said"

if command -v man >/dev/null && man --warnings --version >/dev/null 2>&1; then
    said=$(MANROFFSEQ='' man --warnings -E UTF-8 -l "$folder/psring.1" 2>&1 >"$folder/page")
    [[ -z $said ]] || fail "man: $said"
    grep -q 'weights\|gradients' "$folder/page" || fail "man: the page is empty"
fi

# --- completion in bash -----------------------------------------------------------------------------------

# shellcheck disable=SC1091
. "$folder/completion"
declare -A complete_by=([psring]=_psring [mpirun]=_psring_launched [srun]=_psring_launched)
[[ $(complete -p mpirun) == *'-F _psring_launched mpirun' ]] || fail "no completion after mpirun: $(complete -p mpirun)"
[[ $(complete -p psring) == *'-F _psring psring' ]] || fail "no completion of psring: $(complete -p psring)"

# completes "WORDS OF THE LINE" EXPECTED...: checks the completions of the last word, which may be empty.
completes()
{
    local line=$1
    shift
    # shellcheck disable=SC2206  # words of a line
    COMP_WORDS=($line)
    [[ $line != *' ' ]] || COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    "${complete_by[${COMP_WORDS[0]}]}"
    [[ "${COMPREPLY[*]}" == "$*" ]] || fail "'$line' is completed to '${COMPREPLY[*]}', expected '$*'"
}

completes 'psring trai' train
completes 'psring --ver' --version
completes 'psring help tra' train trace
completes 'psring train --bucket' --bucket-mb
completes 'psring train --placement ' dedicated colocated mixed switch
completes 'psring train --placement c' colocated
completes 'psring train --placement = m' mixed
completes 'psring train --placement = ' dedicated colocated mixed switch
completes 'psring train --resume --backend ri' ring
completes 'psring train --resume = m' must
completes 'psring train --resume=ex' --resume=extend
completes 'psring train --sync ' bsp ssp: async
completes 'psring predict --hold-out ' auto none
completes 'psring train --sync a' async
completes 'psring train --recipe la' large-batch lars-8192
completes 'psring trace --' --step --help
completes 'psring bench --epoc'
completes 'mpirun -n 2 build/psring train --placement c' colocated
completes 'srun psring trai' train
completes 'mpirun -n'
completes 'psring bench -e '
completes 'psring train --steps '
completes 'psring unknown --'
mkdir "$folder/empty place" && cd "$folder/empty place"
mkdir some && touch 'a file' some/other
completes 'psring bench --csv a' 'a file'
completes 'psring train --data s' some
completes 'psring trace a' 'a file'

# --- installed --------------------------------------------------------------------------------------------

cmake --install "$build" --prefix "$folder/prefix" >"$folder/log" 2>&1 || fail "cmake --install:"
for file in share/man/man1/psring.1 share/bash-completion/completions/psring bin/psring; do
    [[ -s $folder/prefix/$file ]] || fail "$file is not installed"
done
[[ $("$folder/prefix/bin/psring" --version) == "$("$psring" --version)" ]] || fail "the installed psring does not start"
echo "manual: every option is in the manual page and in the completion"
