#!/usr/bin/env bash
# mutants.sh [OPTION...]: does the suite find faults? Applies the seeded faults of tests/mutants/faults.txt, one at
# a time, to a copy of the working tree. Builds the copy, runs the suite, and reports the test that found the fault.
#
#    --suite "ARGUMENTS"  Run the tests that ctest selects with these arguments (default: "-L quick").
#    --named              Run only the tests of the suite that a fault names. (--suite "" --named: of any label.)
#    --only REGEX         Apply only the faults whose name or area matches.
#    --list               Print name, area and description of each fault, and end.
#    --out FILE           Write a table as CSV: fault,area,old,found_by,seconds,description.
#    --tree DIR           Test a copy of this tree instead (e.g. of an older commit).
#    --folder DIR         Keep copy and build folder in DIR. Later runs build incrementally there.
#    --limit SECONDS      End a test after this time (default: 120). The fault then counts as found.
#
# The suite must pass without a fault first. A fault is an error if its text does not occur exactly once, or if the tree
# does not build with it. The exit code is 1 if a fault is an error or if more than one in twenty is not found.
# PSRING_CUDA, CMAKE_C_COMPILER_LAUNCHER and PSRING_DATA count as in tests/run.sh (PSRING_CUDA is OFF by default).
set -uo pipefail
export LC_ALL=C

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
tree=$(dirname "$here")
faults=$here/mutants/faults.txt
suite=(-L quick)
named=0
only=.
list=0
out=
folder=
limit_s=120
BUILD_LIMIT_S=3000 # of the first build; a machine may be busy
SUITE_LIMIT_S=3000

usage()
{
    echo "mutants.sh: $1; see mutants.sh --help" >&2
    exit 2
}

while (($#)); do
    case $1 in
    -h | --help)
        sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    --named) named=1 ;;
    --list) list=1 ;;
    --suite | --only | --out | --tree | --folder | --limit)
        (($# >= 2)) || usage "$1 needs a value"
        case $1 in
        --suite) read -ra suite <<<"$2" ;;
        --only) only=$2 ;;
        --out) out=$(realpath -m "$2") ;;
        --tree) tree=$(realpath "$2") || usage "--tree: found no folder '$2'" ;;
        --folder) folder=$(realpath -m "$2") ;;
        --limit) limit_s=$2 ;;
        esac
        shift
        ;;
    *) usage "found '$1', expected an option" ;;
    esac
    shift
done
[[ $limit_s =~ ^[1-9][0-9]*$ ]] || usage "--limit: found '$limit_s', expected a number of seconds"

# -------- the faults: a block each, from "fault NAME" to "end" ------------------------------------------------------

names=()
declare -A area what file try old was is

read_faults()
{
    local line name='' into='' number=0
    while IFS= read -r line; do
        number=$((number + 1))
        case $line in
        end) into='' name='' ;;
        was | is) into=$line ;;
        *)
            if [[ $into ]]; then
                if [[ $into == was ]]; then was[$name]+=$line$'\n'; else is[$name]+=$line$'\n'; fi
            elif [[ $line == fault\ * ]]; then
                name=${line#fault }
                names+=("$name")
                was[$name]='' is[$name]='' area[$name]='' what[$name]='' file[$name]='' try[$name]='' old[$name]=''
            elif [[ $line =~ ^(area|what|file|try|old)\ (.*)$ ]]; then
                case ${BASH_REMATCH[1]} in
                area) area[$name]=${BASH_REMATCH[2]} ;;
                what) what[$name]=${BASH_REMATCH[2]} ;;
                file) file[$name]=${BASH_REMATCH[2]} ;;
                try) try[$name]=${BASH_REMATCH[2]} ;;
                old) old[$name]=${BASH_REMATCH[2]} ;;
                esac
            elif [[ $line && $line != \#* ]]; then
                echo "mutants.sh: $faults:$number: found '$line', expected fault, area, what, file, try, old, was, is or end" >&2
                exit 2
            fi
            ;;
        esac
    done <"$faults"
}

read_faults
chosen=()
for name in "${names[@]}"; do
    if [[ $name =~ $only || ${area[$name]} =~ $only ]]; then
        chosen+=("$name")
    fi
done
((${#chosen[@]} > 0)) || usage "--only: found '$only', expected a name or an area of --list"
if ((list)); then
    for name in "${chosen[@]}"; do
        printf '%-24s %-14s %s\n' "$name" "${area[$name]}" "${what[$name]}"
    done
    exit 0
fi

# -------- the copy, its build and its tests -------------------------------------------------------------------------

scratch=$(mktemp -d)
[[ $folder ]] || folder=$scratch
copy=$folder/tree
mine=$folder/psring-mutants # marks a folder of this script, which may replace its tree
[[ ! -e $copy || -e $mine ]] || usage "--folder: found another tree in '$copy', expected an empty folder or one of mutants.sh"
mkdir -p "$folder" && touch "$mine" || exit 1
build=$copy/build
session=0 # of the running command; 0: none
mutated=  # the file of the copy that has a fault now
content=  # its content without the fault

clean_up()
{
    local tries
    if ((session)); then
        pkill -TERM -s $session
        for ((tries = 0; tries < 50; tries++)); do
            pgrep -s $session >/dev/null || break
            sleep 0.1
        done
        pkill -KILL -s $session
    fi
    restore
    rm -rf "$scratch"
}

restore()
{
    [[ ! $mutated ]] || printf %s "$content" >"$mutated"
    mutated=
}

trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# run LIMIT-S COMMAND...: runs the command in a new session, so that clean_up finds its processes. Output: $scratch/log.
run()
{
    local rc=0
    setsid timeout --kill-after=10 "$@" >"$scratch/log" 2>&1 </dev/null &
    session=$!
    wait $session || rc=$?
    pkill -KILL -s $session # processes that a test left
    session=0
    return $rc
}

# Equal files stay untouched, so their objects are not built again.
make_copy()
{
    local path
    local -A wanted
    mkdir -p "$copy"
    cd "$tree" || exit 1
    while IFS= read -rd '' path; do
        [[ -f $path ]] || continue
        wanted[$path]=1
        if ! cmp -s "./$path" "$copy/$path"; then
            mkdir -p "$copy/$(dirname "$path")"
            cp --preserve=mode "./$path" "$copy/$path"
        fi
    done < <(git ls-files -z --cached --others --exclude-standard)
    cd "$copy" || exit 1
    while IFS= read -rd '' path; do
        [[ ${wanted[${path#./}]-} ]] || rm "$path"
    done < <(find . \( -path ./build -o -path ./.git \) -prune -o -type f -print0)
    git init -q . # tested scripts ask git for the tree's files
    git add -A
}

configure()
{
    CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1 run 600 cmake --preset release -DPSRING_CUDA="${PSRING_CUDA:-OFF}"
}

# build_all [TARGET...]: the whole copy, or these targets.
build_all()
{
    CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1 \
        run $BUILD_LIMIT_S cmake --build "$build" ${1:+--target "$@"} || return 1
    # A fault can make a test wait for ever: shorten the time-outs.
    find "$build" -name CTestTestfile.cmake -exec sed -i -E "s/TIMEOUT \"[0-9]+\"/TIMEOUT \"$limit_s\"/" {} +
}

# programs_of REGEX: prints the programs that these tests run, as targets.
programs_of()
{
    local program
    ctest --test-dir "$build" -N -V "${suite[@]}" -R "$1" 2>/dev/null | grep -oE "\"?$build/[^\" ]+" | tr -d '"' |
        sort -u | while read -r program; do
        [[ ! -f $program || ! -x $program ]] || echo "${program#"$build"/}"
    done
}

# test_it CTEST-ARGUMENT...: sets $finder to the first test that failed. Fails if ctest could not run the tests.
test_it()
{
    finder=
    run $SUITE_LIMIT_S ctest --test-dir "$build" --no-tests=ignore --stop-on-failure "$@" && return 0
    finder=$(sed -nE '/^The following tests FAILED:/,$s/^\t *[0-9]+ - (\S+) \((.*)\).*/\1 \2/p' "$scratch/log" |
        grep -v ' Not Run' | head -n 1)
    [[ $finder == *\ Timeout ]] || finder=${finder%% *} # keep Timeout: a slow machine can cause it
    [[ $finder ]]
}

show_log()
{
    tail -n 30 "$scratch/log" | sed 's/^/    /'
}

# -------- one fault -------------------------------------------------------------------------------------------------

# find_place NAME: sets $place to the only file with the fault's text, or sets $problem.
find_place()
{
    place='' places=0
    find_in "$1" < <(find . -path ./build -prune -o -name "${file[$1]}" -type f -print0)
    ((places > 0)) || # the text may have moved to another file
        find_in "$1" < <(grep -rlZF --exclude-dir=build --exclude-dir=.git --exclude=faults.txt \
            -e "${was[$1]%%$'\n'*}" .)
    problem=
    ((places == 1)) || problem="its text occurs $places times, expected once"
}

# find_in NAME: adds to $places how often the files of the input have the fault's text.
find_in()
{
    local candidate after text=${was[$1]}
    while IFS= read -rd '' candidate; do
        IFS= read -rd '' content <"$candidate"
        after=${content#*"$text"}
        [[ $after != "$content" ]] || continue
        place=$candidate
        places=$((places + 1))
        [[ $after != *"$text"* ]] || places=$((places + 1))
    done
}

apply()
{
    local text=${was[$1]}
    find_place "$1"
    [[ ! $problem ]] || return 1
    IFS= read -rd '' content <"$place"
    mutated=$place
    printf %s "${content%%"$text"*}${is[$1]}${content#*"$text"}" >"$place"
}

# try_fault NAME: sets $finder; fails with $problem if the fault is an error.
try_fault()
{
    local targets=() tests="^(${try[$1]})\$"
    finder='' problem=''
    apply "$1" || return 1
    if [[ ${try[$1]} ]]; then
        mapfile -t targets < <(programs_of "$tests")
        if ((${#targets[@]} > 0)) && ! build_all "${targets[@]}"; then
            problem="the tree does not build with it"
            return 1
        fi
        test_it "${suite[@]}" -R "$tests" || { problem="ctest failed"; return 1; }
        [[ ! $finder ]] || return 0
    fi
    ((!named)) || return 0
    build_all || { problem="the tree does not build with it"; return 1; }
    test_it "${suite[@]}" -j 10 || { problem="ctest failed"; return 1; }
}

# -------- all of them -----------------------------------------------------------------------------------------------

echo "mutants.sh: ${#chosen[@]} faults; building a copy of $tree"
make_copy
configure || { show_log && echo "mutants.sh: the copy cannot be configured" && exit 1; }
build_all || { show_log && echo "mutants.sh: the copy does not build without a fault" && exit 1; }
if ((named)); then
    test_it "${suite[@]}" -j 10 -R "^($(for name in "${chosen[@]}"; do printf '%s|' "${try[$name]}"; done))\$"
else
    test_it "${suite[@]}" -j 10
fi || { show_log && echo "mutants.sh: ctest failed without a fault" && exit 1; }
[[ ! $finder ]] || { show_log && echo "mutants.sh: $finder fails without a fault" && exit 1; }

found=0 missed=0 errors=0
[[ ! $out ]] || echo "fault,area,old,found_by,seconds,description" >"$out"
for name in "${chosen[@]}"; do
    started=$SECONDS
    if ! try_fault "$name"; then
        errors=$((errors + 1))
        result=ERROR
        [[ $problem == its\ text* ]] || show_log
        finder="error: $problem"
    elif [[ $finder ]]; then
        found=$((found + 1))
        result=found
    else
        missed=$((missed + 1))
        result=MISSED
    fi
    restore
    seconds=$((SECONDS - started))
    printf '%-6s %-24s %4d s  %-24s %s\n' $result "$name" $seconds "${finder:--}" "${what[$name]}"
    [[ ! $out ]] ||
        printf '%s,%s,%s,%s,%d,"%s"\n' "$name" "${area[$name]}" "${old[$name]}" "$finder" $seconds "${what[$name]}" >>"$out"
done
echo "mutants.sh: ${#chosen[@]} faults: $found found, $missed missed, $errors errors"
((errors == 0 && missed * 20 <= ${#chosen[@]}))
