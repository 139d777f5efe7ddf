# shellcheck shell=bash
# options.sh: what scripts with options have in common: they load it first.

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

# take_value "$@": of --some-name VALUE..., into $some_name. Which names there are, the caller knows.
take_value()
{
    (($# >= 2)) || die "$1 needs a value; see --help" 2
    local name=${1#--}
    declare -g "${name//-/_}=$2"
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
