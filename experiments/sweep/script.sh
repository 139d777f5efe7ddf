# shellcheck shell=bash disable=SC2034
# script.sh: shared by the scripts in experiments/: messages and options, interrupts, a child that traps can end, and
# the folder of results.

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

# Prints the comment at the head of the script.
usage()
{
    awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"
}

# take_option NAMES "$@": prints --help and exits, or stores the value of --some-name VALUE... in $some_name. NAMES
# lists the options that have a value. The caller shifts the value and the name.
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

# need_program: checks that $psring is a program, and makes its path absolute.
need_program()
{
    [[ -x $psring && ! -d $psring ]] || die "'$psring' is not a program; build psring (README.md), or give --psring PROGRAM" 2
    psring=$(realpath "$psring")
}

# need_above_zero NAME...: ends the script unless each of these variables is a number above 0.
need_above_zero()
{
    local name
    for name in "$@"; do
        awk -v x="${!name}" 'BEGIN { exit !(x ~ /^[0-9.]+(e[-+]?[0-9]+)?$/ && x > 0) }' ||
            die "--${name//_/-} '${!name}': expected a number above 0, e.g. 6e-5" 2
    done
}

# --- interrupts -------------------------------------------------------------------------------------

# heed_interrupts "$@": call it first, with the script's arguments. A shell started in the background ignores SIGINT,
# and bash cannot trap an ignored signal. This function then restarts the script with the default action.
heed_interrupts()
{
    (($(sed -n 's/^SigIgn:\t*/0x/p' /proc/self/status 2>/dev/null || echo 0) & 2)) || return 0
    exec env --default-signal=INT "$BASH" "$0" "$@"
}

# end_with COMMANDS [FUNCTION]: the script runs these commands at its end. A signal ends it by FUNCTION EXIT-STATUS,
# which is `exit` by default.
# shellcheck disable=SC2064  # both are known now
end_with()
{
    trap "$1" EXIT
    trap "${2:-exit} 130" INT
    trap "${2:-exit} 143" TERM
    trap "${2:-exit} 129" HUP
}

# --- a child ----------------------------------------------------------------------------------------

# [log_to=FILE] wait_for_child COMMAND...: runs a command that traps can end as $child. It runs in the background,
# because bash handles a signal only between foreground commands. With log_to, only the command is redirected. Messages
# of a trap still reach the terminal.
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

# end_child: for a trap. Ends $child, if it runs; from then on signals are ignored.
end_child()
{
    trap '' INT TERM HUP
    [[ ! $child ]] || { kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
}

# counted N WORD: "1 worker", "4 workers".
counted()
{
    echo "$1 $2$( (($1 == 1)) || echo s)"
}

# --- the folder of the results ----------------------------------------------------------------------

# take_folder DIR: creates the folder, sets `out` to its full path, and locks out other runs while this script runs. The
# lock is on the folder, so it leaves no file. A process that outlives the script keeps the lock, because it may still
# write. vcluster.sh closes descriptor 8 for processes that do not write.
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

log_name=log.txt # a script that shares its folder with other scripts sets another name

# keep_foreign_files FILE...: call it before replacing these files. Ends the script if one of them is in $out and
# another program wrote it. A log that begins with the script's name proves that this script did (begin_log).
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
