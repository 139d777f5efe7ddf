# shellcheck shell=bash disable=SC2034
# script.sh: what the scripts in experiments/ share: messages and options, interrupts, a child that traps can end, and the
# folder of the results.

say()
{
    echo "${0##*/}: $*" >&2
}

# die WORDS [EXIT-STATUS]
die()
{
    say "$1"
    exit "${2:-1}"
}

# The comment that the script begins with.
usage()
{
    awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"
}

# take_option NAMES "$@": prints --help and ends, or puts the value of --some-name VALUE... into $some_name. NAMES: the names
# that have a value. The caller shifts the value, and then the name.
take_option()
{
    case $2 in
    -h | --help)
        usage
        exit 0
        ;;
    esac
    [[ " $1 " == *" $2 "* ]] || die "unknown argument '$2'; see --help" 2
    (($# >= 3)) || die "$2 needs a value; see --help" 2
    local name=${2#--}
    declare -g "${name//-/_}=$3"
}

# need_program: $psring is one; makes its path absolute.
need_program()
{
    [[ -x $psring && ! -d $psring ]] || die "'$psring' is not a program; build it first (README.md), or name one with --psring" 2
    psring=$(realpath "$psring")
}

# need_above_zero NAME...: each of these variables is a number above 0, or the script ends.
need_above_zero()
{
    local name
    for name in "$@"; do
        awk -v x="${!name}" 'BEGIN { exit !(x ~ /^[0-9.]+(e[-+]?[0-9]+)?$/ && x > 0) }' ||
            die "--${name//_/-} '${!name}': expected a number above 0, e.g. 6e-5" 2
    done
}

# --- interrupts -------------------------------------------------------------------------------------

# heed_interrupts "$@": with the script's own arguments, before it does anything. A shell that was started in the
# background ignores SIGINT, and bash cannot trap what it ignores: such a script starts over with the default action.
heed_interrupts()
{
    (($(sed -n 's/^SigIgn:\t*/0x/p' /proc/self/status 2>/dev/null || echo 0) & 2)) || return 0
    exec env --default-signal=INT "$BASH" "$0" "$@"
}

# --- a child ----------------------------------------------------------------------------------------

# A command that a script waits for and that its traps can end, as $child. In the background, because bash acts on a signal
# only between foreground commands.
# [log_to=FILE] wait_for_child COMMAND...: not all of the caller is redirected, as what a trap then said would be, too.
wait_for_child()
{
    local status=0
    if [[ ${log_to:-} ]]; then
        "$@" </dev/null >"$log_to" 2>&1 &
    else
        "$@" </dev/null &
    fi
    child=$!
    wait $child || status=$?
    child=''
    return $status
}

# counted N WORD: "1 worker", "4 workers".
counted()
{
    echo "$1 $2$( (($1 == 1)) || echo s)"
}

# --- the folder of the results ----------------------------------------------------------------------

# take_folder DIR: makes it, sets `out` to its full path, and keeps other runs out of it while this script runs. The lock
# is on the folder itself, so it leaves no file. A process that outlives the script holds it, because it may still write;
# vcluster.sh closes descriptor 8 where it starts a process that does not.
take_folder()
{
    mkdir -p "$1" || die "cannot make the folder '$1'; name another one with --out"
    out=$(cd "$1" && pwd) || die "cannot enter the folder '$1'; name another one with --out"
    [[ -w $out ]] || die "cannot write into the folder '$out'; name another one with --out"
    lock_folder "$out" --out 8
}

# lock_folder DIR OPTION DESCRIPTOR: ends the script if another one has locked the folder, which OPTION named.
lock_folder()
{
    local status=0
    command -v flock >/dev/null || return 0
    eval "exec $3<\"\$1\"" || die "cannot read the folder '$1'; name another one with $2"
    flock -n -E 75 "$3" || status=$? # another status: a file system without locks
    ((status != 75)) || die "another run uses '$1'; wait for its end, or name another folder with $2"
}

log_name=log.txt # a script that leaves its results beside those of others sets another name

# keep_foreign_files FILE...: ends the script if one of these, which it replaces, is in $out and another program wrote it.
# The script's log begins with its name; see begin_log.
keep_foreign_files()
{
    local file first=''
    [[ ! -e $out/$log_name ]] || IFS= read -r first <"$out/$log_name" || true
    [[ $first != "== ${0##*/}"* ]] || return 0
    for file; do
        [[ ! -e $out/$file ]] ||
            die "'$out' has a file $file, which ${0##*/} did not write; it would replace it: name another folder with --out"
    done
}

# replace_files FILE...: keep_foreign_files, then removes them.
replace_files()
{
    keep_foreign_files "$@"
    (cd "$out" && rm -f -- "$@")
}

begin_log() # ARGUMENT...
{
    echo "== ${0##*/} $*" >"$out/$log_name"
}
