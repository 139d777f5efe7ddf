#!/usr/bin/env bash
# check_layers.sh [ROOT]: every #include of our own names a file of the same layer or one below.
#
#   experiments -> ps | ring -> models -> common/comm -> common/{net,device,data,obs} -> common/base
#
# Neighbours in a layer do not include each other (ps and ring above all), and models names no
# backend. Without ROOT it checks the repository, after proving on made-up files that it sees each
# kind of violation.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)

# check ROOT: prints a line for each violation; fails if there is one or nothing to check.
check()
{
    local root=$1 files
    files=$(cd "$root" && find common models ps ring experiments -name '*.[ch]' -o -name '*.cu' 2>/dev/null | sort)
    [[ $files ]] || { echo "check_layers: no sources under $root" && return 1; }
    # shellcheck disable=SC2086  # one word a file
    (cd "$root" && awk '
        # The folder that decides the layer: common/net for common/net/zmq.c, ps for ps/server.c.
        function folder(path, part, count) {
            count = split(path, part, "/")
            if (count == 1)
                return ""
            return part[1] == "common" && count > 2 ? part[1] "/" part[2] : part[1]
        }
        # The code of a line; remembers in in_comment whether a comment goes on after it.
        function without_comments(line, code, at) {
            code = ""
            while (line != "") {
                at = index(line, in_comment ? "*/" : "/*")
                if (!in_comment)
                    code = code " " (at ? substr(line, 1, at - 1) : line)
                if (!at)
                    break
                line = substr(line, at + 2)
                in_comment = !in_comment
            }
            sub(/\/\/.*/, "", code)
            return code
        }
        function violation(text) {
            printf "%s:%d: %s\n", FILENAME, FNR, text
            bad = 1
        }
        BEGIN {
            layer["common/base"] = 1
            layer["common/net"] = layer["common/device"] = layer["common/data"] = 2
            layer["common/obs"] = layer["common/checkpoint"] = 2
            layer["common/comm"] = 3
            layer["models"] = 4
            layer["ps"] = layer["ring"] = 5
            layer["experiments"] = 6
        }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split($0, quoted, "\"")
            from = folder(FILENAME)
            to = folder(quoted[2])
            if (!(from in layer))
                violation("the folder " from " has no layer; add it to tests/check_layers.sh")
            else if (to == "")
                violation("\"" quoted[2] "\" is not written from the root of the repository")
            else if (!(to in layer))
                violation("\"" quoted[2] "\" is in no layer that we know")
            else if (from != to && layer[to] >= layer[from])
                violation(from " includes \"" quoted[2] "\", which is not below it")
        }
        FNR == 1 { in_comment = 0 }
        folder(FILENAME) == "models" {
            code = without_comments($0)
            if (match(code, /(^|[^A-Za-z0-9_])(ps|ring|nccl|mpi|zmq|MPI)(_[A-Za-z0-9_]*)?([^A-Za-z0-9_]|$)/))
                violation("models names a backend: " substr(code, RSTART, RLENGTH))
        }
        END { exit bad }' $files)
}

# expect OUTCOME FILE LINE: what check says of a tree that holds FILE with that text.
expect()
{
    local outcome=$1 file=$2 line=$3 tree answer=ok
    tree=$(mktemp -d)
    mkdir -p "$tree/$(dirname "$file")"
    printf '%s\n' "$line" >"$tree/$file"
    check "$tree" >/dev/null || answer=violation
    rm -rf "$tree"
    [[ $answer == "$outcome" ]] || {
        echo "check_layers: self-test: $file with '$line' gave $answer, expected $outcome" >&2
        exit 1
    }
}

if (($# > 0)); then
    check "$1"
    exit
fi

expect ok ring/ring.c '#include "common/comm/comm.h"'
expect ok ring/ring.c '#include "ring/schedule.h"'
expect ok experiments/train/train.c '#include "ps/ps.h"'
expect ok models/net.c '#include "common/device/tensor.h"'
expect ok models/net.c '/* a comment may speak of the ring, ps and mpi */'
expect ok models/net.c $'/*\n   neither ps nor ring */ int a;\n/* mpi */'
expect ok models/net.c 'double string = spring + caps;'
expect violation ring/ring.c '#include "ps/server.h"'
expect violation ps/server.c '#include "ring/ring.h"'
expect violation ps/server.c '#include "experiments/train/train.h"'
expect violation models/net.c '#include "ring/ring.h"'
expect violation models/net.c '    ring_allreduce(gradient);'
expect violation models/net.c '    if (is("ring"))'
expect violation models/net.c $'/* a\n comment */ mpi_start();'
expect violation common/comm/comm.c '#include "models/net.h"'
expect violation common/net/zmq.c '#include "common/comm/comm.h"'
expect violation common/net/zmq.c '  #  include "common/obs/trace.h"'
expect violation common/base/log.c '#include "common/net/world.h"'
expect violation common/util.h '#include "common/base/log.h"'
expect violation ring/ring.c '#include "schedule.h"'
expect violation ring/ring.c '#include "vendor/other.h"'
if ! check "$here"; then
    echo "check_layers: see the layers in tests/check_layers.sh" >&2
    exit 1
fi
echo "check_layers: $(cd "$here" && find common models ps ring experiments -name '*.[ch]' | wc -l) files keep to their layers"
