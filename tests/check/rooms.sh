#!/usr/bin/env bash
# rooms.sh [--figures] [ROOT]: checks the shape of the tree outside tests/. Prints a line for each violation and fails.
#
#   experiments -> ps | ring -> models -> common/comm -> common/{net,device,data,checkpoint} -> common/base
#
# - A file includes only files of its row or of a row to the right, by a path from the root.
# - ps and ring do not include each other, nor models. models names no backend.
# - Satellites are leaves: only experiments/psring.c, which lists the commands, includes a satellite from outside.
# - common/library (libpsring) uses ring and common/comm, but not ps, models, common/data and common/checkpoint. No
#   other folder includes it.
# - Only common/net/transport and experiments/simulate include the interface between transport.c and its implementations.
# - A folder has at least four files. A file has at most 800 lines.
# - At least two files include a header, besides its own .c. A struct's name occurs once.
#
# --figures prints the numbers of folders, files and lines instead. Without ROOT the script first tests itself on
# made-up files with each kind of violation.
set -euo pipefail

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")/../.." && pwd)
FOLDERS='^(\.ci|\.github|common)$' # may have fewer than four files

# sources ROOT: prints every file outside tests/, as a path from ROOT.
sources()
{
    local root=$1
    if [[ -e $root/.git ]]; then
        git -C "$root" ls-files -- . ':!tests'
    else
        (cd "$root" && find . -type f ! -path './build*' ! -path './tests/*' ! -path './.git/*' | sed 's|^\./||')
    fi | sort
}

# check ROOT
check()
{
    local root=$1
    # shellcheck disable=SC2016  # the program is awk's
    (cd "$root" && sources "$root" | FOLDERS=$FOLDERS xargs awk '
        function folder(path) { return sub(/\/[^\/]*$/, "", path) ? path : "." }
        function satellite(path) {
            return match(path, /^experiments\/(report|trace|predict|elastic|simulate|gpu_check|lessons)\//) ? substr(path, 1, RLENGTH) : ""
        }
        function row(path) {
            if (path ~ /^experiments\//) return 6
            if (path ~ /^(ps|ring|common\/library)\//) return 5
            if (path ~ /^models\//) return 4
            if (path ~ /^common\/comm\//) return 3
            if (path ~ /^common\/(net|device|data|trace|checkpoint)\//) return 2
            if (path ~ /^common\/base\//) return 1
            return path == "common/psring.h" ? 1 : 0
        }
        function never(from, to) {
            if (to ~ /^common\/library\//) return from !~ /^common\/library\//
            if (to == "common/psring.h") return from !~ /^(common\/library|experiments\/bench)\//
            if (to == "common/net/transport/transport_impl.h") return from !~ /^common\/net\/transport\// && from !~ /^experiments\/simulate\//
            if (from ~ /^ps\//) return to ~ /^(ring|models)\//
            if (from ~ /^ring\//) return to ~ /^(ps|models)\// || (to ~ /^common\/device\// && from !~ /^ring\/baselines\//)
            if (from ~ /^common\/library\//) return to ~ /^(ps|models|common\/(data|checkpoint))\//
            return 0
        }
        function violation(text) { print text; bad = 1 }
        function included(from, to, place) {
            if (!row(to))
                violation(place ": \"" to "\" is in no row; write the path from the root of the tree")
            else if (row(to) > row(from) || never(from, to))
                violation(place ": " folder(from) " must not include \"" to "\"")
            else if (satellite(to) && satellite(to) != satellite(from) && from != "experiments/psring.c")
                violation(place ": \"" to "\" belongs to a satellite, and satellites are leaves")
            if (to != substr(from, 1, length(from) - 1) "h" && !((to, from) in user)) {
                user[to, from]
                users[to]++
            }
        }
        BEGIN {
            for (i = 1; i < ARGC; i++)
                count[folder(ARGV[i])]++
        }
        FNR == 1 {
            in_comment = 0
            code = FILENAME ~ /\.(c|h|cu|cpp)$/
            if (FILENAME ~ /\.h$/)
                header[FILENAME]
        }
        FNR == 801 && FILENAME ~ /\.(c|h|cu|sh|awk|py|gp|html|js|md)$/ { violation(FILENAME ": more than 800 lines: cut the file by subject") }
        !code { next }
        /^[ \t]*#[ \t]*include[ \t]*<(common|models|ps|ring|experiments)\// { violation(FILENAME ":" FNR ": found angle brackets, expected quotes") }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split($0, quoted, "\"")
            if (quoted[2] !~ /^experiments\/bench\/commit\.h$/ && FILENAME !~ /minimal/)
                included(FILENAME, quoted[2], FILENAME ":" FNR)
        }
        /^struct [a-z_0-9]+ \{/ && $2 !~ /_impl$/ {
            if ($2 in struct)
                violation(FILENAME ":" FNR ": struct " $2 " exists in " struct[$2] ", too")
            struct[$2] = FILENAME
        }
        FILENAME ~ /^models\// {
            line = $0
            while (in_comment ? sub(/^.*\*\//, "", line) : sub(/\/\*.*\*\//, "", line))
                in_comment = 0
            if (in_comment)
                next
            in_comment = sub(/\/\*.*/, "", line)
            sub(/\/\/.*/, "", line)
            if (match(line, /(^|[^A-Za-z0-9_])(ps|ring|nccl|mpi|zmq|MPI)(_[A-Za-z0-9_]*)?([^A-Za-z0-9_]|$)/))
                violation(FILENAME ":" FNR ": models names a backend: " substr(line, RSTART, RLENGTH))
        }
        END {
            for (path in count)
                if (count[path] < 4 && path !~ ENVIRON["FOLDERS"])
                    violation(path ": a folder of " count[path] " files, expected 4: move them to the folder above")
            for (path in header)
                if (users[path] < 2 && path != "common/psring.h")
                    violation(path ": a header with " users[path] + 0 " user, expected 2: fold it into its user")
            exit bad
        }')
}

figures()
{
    local root=$1
    sources "$root" | awk '{ files++; if (!sub(/\/[^\/]*$/, "")) $0 = "."; folders[$0]++ }
        END { for (f in folders) { n++; small += folders[f] < 4 } printf "folders %d\nfolders below four files %d\nfiles %d\n", n, small, files }'
    (cd "$root" && sources "$root" | grep '\.c$' | xargs wc -l | grep -v ' total$' | sort -n | awk '{ n[NR] = $1 } END { print "median lines of a C file", n[int((NR + 1) / 2)] }')
    check "$root" | awk '/: a header with/ { one++ } /: struct .* exists in/ && !($3 in names) { names[$3]; twice++ } END { printf "headers with one user %d\nstruct names used twice %d\n", one, twice }' || true
    # shellcheck disable=SC2016  # the program is awk's
    (cd "$root" && sources "$root" | grep -E '\.(c|h|cu|cpp|js|sh|awk|gp|py)$' | xargs awk '
        FNR == 1 { c = FILENAME ~ /\.(c|h|cu|cpp|js)$/; in_comment = 0 }
        {
            line = $0
            if (c) {
                while (in_comment ? sub(/^.*\*\//, "", line) : sub(/\/\*[^*]*(\*[^\/][^*]*)*\*\//, "", line))
                    in_comment = 0
                if (in_comment)
                    next
                in_comment = sub(/\/\*.*/, "", line)
                sub(/^[ \t]*\/\/.*/, "", line)
            } else
                sub(/^[ \t]*#.*/, "", line)
            lines += line ~ /[^ \t]/
        }
        END { print "lines of code without blanks and comments", lines }')
}

# expect OUTCOME FILE LINE...: checks a tree whose only fault can be FILE with this text.
expect()
{
    local outcome=$1 file=$2 tree answer=ok
    shift 2
    tree=$(mktemp -d)
    mkdir -p "$tree/$(dirname "$file")"
    touch "$tree/$(dirname "$file")/"{1,2,3}.txt
    printf '%s\n' "$@" >"$tree/$file"
    (FOLDERS='^(\.|common|.*/user)$' && check "$tree") >/dev/null || answer=violation
    rm -rf "$tree"
    [[ $answer == "$outcome" ]] || {
        echo "rooms: self-test: $file with '$*': found $answer, expected $outcome" >&2
        exit 1
    }
}

if [[ ${1:-} == --figures ]]; then
    figures "$(cd "${2:-$here}" && pwd)"
    exit
elif (($# > 0)); then
    check "$(cd "$1" && pwd)"
    exit
fi

expect ok ring/ring.c '#include "common/comm/comm.h"'
expect ok ring/baselines/nccl.c '#include "common/device/device.h"'
expect ok models/net.c '/* a comment may name the ring, ps and mpi */'
expect ok models/net.c '/*' '   neither ps nor ring */ int a;' '/* mpi */'
expect ok models/net.c 'double string = spring + caps;'
expect ok experiments/psring.c '#include "experiments/report/report.h"'
expect ok experiments/report/page.c '#include "experiments/report/report.h"'
expect ok experiments/bench/connect.c '#include "common/psring.h"'
expect violation ring/ring.c '#include "ps/ps.h"'
expect violation ring/ring.c '#include "schedule.h"'
expect violation ring/ring.c '#include <ps/ps.h>'
expect violation ring/ring.c '#include "common/device/device.h"'
expect violation ring/ring.c '#include "common/net/transport/transport_impl.h"'
expect violation ps/server.c '  #  include "models/net.h"'
expect violation ps/server.c '#include "experiments/train/train.h"'
expect violation common/library/psring.c '#include "ps/ps.h"'
expect violation common/comm/comm.c '#include "models/net.h"'
expect violation common/comm/comm.c '#include "common/psring.h"'
expect violation common/net/world.c '#include "common/comm/comm.h"'
expect violation common/base/csv.c '#include "common/net/world.h"'
expect violation experiments/train/train.c '#include "experiments/report/report.h"'
expect violation experiments/predict/fit.c '#include "experiments/report/report.h"'
expect violation models/net.c '    ring_allreduce(gradient);'
expect violation models/net.c '/* a' ' comment */ mpi_start();'
expect violation ring/ring.h 'int a_header_without_users;'
expect violation ring/ring.c 'struct ring {' '};' 'struct ring {' '};'
expect violation ring/user/ring.c "$(seq -f 'int a%g;' 801)"
FOLDERS_OF_TEST=$(mktemp -d)
mkdir "$FOLDERS_OF_TEST/ps" && touch "$FOLDERS_OF_TEST/ps/ps.c"
! FOLDERS='^\.$' check "$FOLDERS_OF_TEST" >/dev/null || { echo "rooms: self-test: a folder of one file passed" >&2 && exit 1; }
rm -rf "$FOLDERS_OF_TEST"
check "$here" || { echo "rooms: the rules are at the head of tests/check/rooms.sh" >&2 && exit 1; }
echo "rooms: $(sources "$here" | wc -l) files keep the rules"
