# shellcheck shell=bash disable=SC2034
# folder.sh: the folder of a script's results. The script has its own die().

# take_folder DIR: makes it, sets `out` to its full path, and keeps other runs out of it while this script runs. The lock
# is on the folder itself, so it leaves no file. A process that outlives the script holds it, because it may still write;
# vcluster.sh closes descriptor 8 where it starts a process that does not.
take_folder()
{
    local status=0
    mkdir -p "$1" || die "cannot make the folder '$1'; name another one with --out"
    out=$(cd "$1" && pwd) || die "cannot enter the folder '$1'; name another one with --out"
    [[ -w $out ]] || die "cannot write into the folder '$out'; name another one with --out"
    command -v flock >/dev/null || return 0
    exec 8<"$out" || die "cannot read the folder '$out'; name another one with --out"
    flock -n -E 75 8 || status=$? # another status: a file system without locks
    ((status != 75)) || die "another run uses '$out'; wait for its end, or name another folder with --out"
}

# keep_foreign_files FILE...: ends the script if one of these, which it replaces, is in $out and another program wrote it.
# The script's log.txt begins with its name; see begin_log.
keep_foreign_files()
{
    local file first=''
    [[ ! -e $out/log.txt ]] || IFS= read -r first <"$out/log.txt" || true
    [[ $first != "== ${0##*/}"* ]] || return 0
    for file; do
        [[ ! -e $out/$file ]] ||
            die "'$out' has a file $file, which ${0##*/} did not write; it would replace it: name another folder with --out"
    done
}

begin_log() # ARGUMENT...
{
    echo "== ${0##*/} $*" >"$out/log.txt"
}
