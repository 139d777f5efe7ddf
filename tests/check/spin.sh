#!/usr/bin/env bash
# spin.sh [MODEL...]: checks the models of the protocols, tests/*/*.pml, with Spin. Prints states, depth, memory and
# time of each search. The first comment of a model names the searches, with the model's parameters:
#
#    run: PARAMETERS           no property is violated, and no process waits for ever
#    ends: PARAMETERS          no run goes on for ever
#    fault NAME: PARAMETERS    a fault in the model violates the property NAME (endless, deadlock, or a variable)
#
# Fails on an error, on a search that was cut short, on a fault that Spin does not find, and on a statement that no run
# reaches. Spin lists no statements inside a d_step; the faults show that its assertions are reached. Each search may
# use 1 GB. KEEP=FOLDER keeps Spin's output and trails there.
set -euo pipefail

unset CDPATH # cd prints a folder that it finds there
root=$(cd "$(dirname "$0")/../.." && pwd)
MEMORY_MB=1024
DEPTH=1000000
command -v spin >/dev/null || { echo "spin: skipped: needs Spin; setup.sh --ci installs it" && exit 77; }
[[ ${1-} != --help && ${1-} != -h ]] || { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0; }

models=("$@")
(($#)) || mapfile -t models < <(cd "$root" && ls tests/*/*.pml)
folder=${KEEP:-}
if [[ $folder ]]; then
    mkdir -p "$folder"
else
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
folder=$(cd "$folder" && pwd)
bad=0

complain()
{
    echo "spin: $*"
    bad=1
}

# search MODEL NAME KIND PARAMETER...: compiles and runs one search. The output is in $folder/NAME/out.
search()
{
    local model=$1 kind=$3 place=$folder/$2 options=(-O2 -DSAFETY) arguments=()
    shift 3
    [[ $kind != ends ]] || { options=(-O2 -DNP) && arguments=(-l); }
    [[ $kind != fault ]] || options=(-O0 -DSAFETY) # it soon ends, so the compilation takes longer
    # Spin's partial order reduction does not hold for a process that can be stopped.
    ! grep -q 'provided (' "$model" || options+=(-DNOREDUCE)
    mkdir -p "$place"
    cd "$place"
    spin -a "$@" "$model" >spin.log || { cat spin.log && complain "$model: Spin does not accept it" && return 1; }
    rm -f pan out # of an earlier run, with KEEP
    cc -w -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=$MEMORY_MB "${options[@]}" -o pan pan.c ||
        { complain "$1: cc cannot compile what Spin wrote" && return 1; }
    ./pan -m$DEPTH -w22 "${arguments[@]}" >out || true
    cd "$root"
}

# numbers NAME: states, depth, memory and time of a search.
numbers()
{
    awk '/depth reached/ { for (i = 1; i < NF; i++) if ($i == "reached") depth = $(i + 1) + 0 }
        /states, stored/ { states = $1 }
        /total actual memory/ { mb = $1 }
        /elapsed time/ { s = $4 }
        END { printf "%9d states, depth %4d, %4.0f MB, %5.1f s", states, depth, mb, s }' "$folder/$1/out"
}

# unreached NAME: the statements that a search did not reach.
unreached()
{
    awk '/^unreached in/ { process = $3 == "proctype" ? $4 : "" }
        /^\t[^(]/ && process && !/"-end-"/ { sub(/^\t.*\//, ""); print process ": " $0 }' "$folder/$1/out" | sort -u
}

check()
{
    local model=$1 base kind property parameters name count=0 line runs=()
    base=$(basename "$model" .pml)
    while IFS= read -r line; do
        kind=${line%%:*}
        read -ra parameters <<<"${line#*: }"
        property=
        [[ $kind != fault* ]] || { property=${kind#fault } && kind=fault; }
        name=$base-$((++count))
        [[ $property != endless ]] || kind=ends
        search "$root/$model" "$name" "$kind" "${parameters[@]}" || return 0
        printf '%-10s %s  %s%s\n' "$base" "$(numbers "$name")" "${line%%:*}: " "${parameters[*]}"
        judge "$model" "$name" "$property" "${parameters[*]}"
        [[ $kind != run ]] || runs+=("$name")
    done < <(sed -nE '1,/\*\//s/^ \* ((run|ends|fault [a-z_]+): .*)/\1/p' "$root/$model")
    ((${#runs[@]} > 0)) || complain "$model: its first comment names no run"
    for name in "${runs[@]}"; do unreached "$name"; done | sort | uniq -c |
        awk -v runs="${#runs[@]}" '$1 == runs' | sed "s|^ *[0-9]*|spin: $model: no run reaches|" >"$folder/unreached"
    [[ ! -s $folder/unreached ]] || { cat "$folder/unreached" && bad=1; }
}

# judge MODEL NAME PROPERTY PARAMETERS: what a search has found. Without PROPERTY it must be nothing.
judge()
{
    local out=$folder/$2/out found
    case $3 in
    deadlock) found='invalid end state' ;;
    endless) found='non-progress cycle' ;;
    *) found="assertion violated .*\\b$3\\b" ;;
    esac
    if ! grep -q 'errors: ' "$out"; then
        tail -5 "$out"
        complain "$1: $4: the search did not end"
    elif [[ $3 ]]; then
        grep -qE "^pan:1: $found" "$out" || { grep '^pan:1' "$out" || true; complain "$1: $4: Spin does not find $3"; }
    elif ! grep -q 'errors: 0' "$out"; then
        complain "$1: $4: $(grep -m 1 '^pan:1' "$out")"
    elif grep -qE 'max search depth too small|MEMLIM bound|Search not completed|out of memory' "$out"; then
        complain "$1: $4: the search was cut short"
    fi
}

for model in "${models[@]}"; do
    [[ -r $root/$model ]] || { echo "spin: $model: expected a file, as a path from the repository" >&2 && exit 2; }
    check "$model"
done
((bad == 0)) || exit 1
echo "spin: ${#models[@]} models, each with its properties"
