#!/usr/bin/env bash
# check_layers.sh [ROOT]: every #include of our own names a file of the same folder or one below.
#
#   experiments -> ps | ring -> models -> common/comm -> common/{net,device,data,obs,checkpoint} -> common/base
#
# Within experiments: simulate -> fit | bench; psring.c -> manual | report | auto -> predict -> fit | bench | compute | elastic -> train -> measure | step -> config; within ring: halving | hierarchical | vendor -> ring;
# within common/device: cpu | cuda -> cuda/kernels | cuda/cudnn -> device; within common/net:
#
#   transport/{zmq,mpi,tcp} | simulated -> transport -> world -> rendezvous -> socket
#   lifeline -> world
#   membership -> socket
#
# common/library, what libpsring has of its own, stands on ring and common/comm, and nobody on it.
# One transport is no other's business, nor that of anything above common/net.
#
# The subcommands (experiments/{train,elastic,bench,compute,step,measure,config}) use the collectives by the headers in `interface` below and no
# other of common/comm, common/net, ps and ring; and experiments/config/backends.c, the one list of backends, by theirs.
# Neighbours do not include each other (ps and ring above all). models names no backend. libpsring needs no
# models, and devices only where buckets lie in one's memory: common/comm (staging) and ring/vendor (NCCL), which
# it does without. Without ROOT it checks the repository, after proving on
# made-up files that it sees each kind of violation.
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
        # common/net/world for common/net/world/mpi.c.
        function folder(path) {
            return sub(/\/[^\/]*$/, "", path) ? path : ""
        }
        # What a folder may include besides its own files.
        function may(from, folders, list, count, i) {
            known[from]
            count = split(folders, list, " ")
            for (i = 1; i <= count; i++)
                allowed[from, list[i]]
        }
        # "FOLDER: NAME..." as files of a set.
        function headers(set, text, list, count, i) {
            count = split(text, list, /:? /)
            for (i = 2; i <= count; i++)
                set[list[1] "/" list[i] ".h"]
        }
        # Whether a subcommand may include a header of the collectives.
        function offered(from, header) {
            if (from !~ /^experiments\/(train|elastic|bench|compute|step|measure|config)$/ || header !~ /^(common\/(comm|net)|ps|ring)\//)
                return 1
            return FILENAME == "experiments/config/backends.c" ? header in registry : header in interface
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
            may("common/base", "")
            may("common/net/socket", "common/base")
            may("common/net/rendezvous", "common/base common/net/socket")
            world = "common/base common/net/socket common/net/world"
            may("common/net/world", world " common/net/rendezvous")
            may("common/net/lifeline", world)
            may("common/net/membership", "common/base common/net/socket")
            may("common/net/transport", world " common/obs")
            may("common/net/transport/zmq", world " common/net/transport")
            may("common/net/transport/mpi", world " common/net/transport")
            may("common/net/transport/tcp", world " common/net/transport")
            may("common/net/simulated", world " common/net/transport")
            may("common/base/simulated", "common/base")
            net = "common/net/world common/net/transport"
            may("common/device", "common/base")
            may("common/device/cpu", "common/base common/device")
            may("common/device/cuda/kernels", "common/base common/device")
            may("common/device/cuda/cudnn", "common/base common/device")
            may("common/device/cuda", "common/base common/device common/device/cuda/kernels common/device/cuda/cudnn")
            may("common/data", "common/base common/obs")
            may("common/obs", "common/base")
            may("common/checkpoint", "common/base")
            may("common/comm/elements", "common/base common/device " net)
            comm = "common/comm common/comm/elements common/comm/state common/comm/updates"
            may("common/comm/updates", "common/base common/obs " comm " " net)
            may("common/comm", "common/base common/device common/obs " comm " " net)
            may("common/comm/state", "common/base " comm " " net)
            collective = "common/base common/obs " comm " " net
            may("ps", collective)
            may("ring", collective)
            may("ring/halving", collective " ring")
            may("ring/hierarchical", collective " ring")
            may("ring/vendor", collective " ring common/device common/device/cuda")
            may("common", "") # psring.h
            may("common/library", "common common/base ring ring/halving ring/hierarchical " comm " " net)
            common = collective " common/device common/data common/checkpoint"
            may("models", common)
            launch = "common/net/socket common/net/rendezvous common/net/lifeline common/net/membership common/device/cpu"
            below = common " " launch " models ps ring ring/halving ring/hierarchical ring/vendor experiments/config"
            may("experiments/gpu", "common/base common/device common/net/world")
            may("experiments/config", below " experiments/gpu experiments/job experiments/recipes")
            may("experiments/job", below)
            may("experiments/recipes", below)
            may("experiments/manual", below)
            may("experiments/measure", below)
            may("experiments/rows", "common/base experiments/measure")
            may("experiments/step", below " experiments/measure") # cpu_share
            may("experiments/compute", below " experiments/measure")
            may("experiments/interrupt", "")
            may("experiments/fit", below " experiments/measure experiments/rows")
            may("experiments/predict", below " experiments/fit experiments/measure experiments/rows")
            may("experiments/bench", below " experiments/measure experiments/step")
            may("experiments/auto", below " experiments/fit experiments/predict experiments/bench")
            may("experiments/train", below " experiments/measure experiments/step experiments/timeline experiments/trace")
            may("experiments/elastic", below " experiments/step experiments/timeline experiments/trace experiments/train")
            may("experiments/report", below " experiments/measure experiments/trace experiments/rows")
            may("experiments/trace", below " experiments/measure") # cpu_share
            may("experiments/timeline", below " experiments/trace")
            may("experiments/simulate", below " experiments/fit experiments/bench common/net/simulated")
            # common/psring.h is for those who have nothing else, and for those who measure what they get.
            allowed["experiments/bench", "common"]
            headers(interface, "common/comm: backend bucket bucket_order comm comm_options cost reduce")
            headers(interface, "common/comm/elements: compress reduction")
            headers(interface, "common/comm/state: state")
            headers(interface, "common/comm/updates: consistency updates")
            headers(interface, "common/net/world: launcher pin topology world")
            headers(interface, "common/net/socket: address listener stream")
            headers(interface, "common/net/rendezvous: rendezvous")
            headers(interface, "common/net/membership: coordinator member")
            headers(interface, "ring/vendor: library nccl") # what is asked of MPI and NCCL
            headers(registry, "common/comm: backend none")
            headers(registry, "ps: ps")
            headers(registry, "ring: ring")
            headers(registry, "ring/halving: halving")
            headers(registry, "ring/hierarchical: hierarchical")
            headers(registry, "ring/vendor: library nccl")
            may("experiments", below " experiments/manual experiments/measure experiments/step experiments/bench experiments/compute experiments/trace experiments/train experiments/elastic experiments/predict experiments/report experiments/auto experiments/interrupt")
        }
        /^[ \t]*#[ \t]*include[ \t]*<(common|models|ps|ring|experiments)\// { violation("a file of ours in angle brackets") }
        /^[ \t]*#[ \t]*include[ \t]*"/ {
            split($0, quoted, "\"")
            from = folder(FILENAME)
            to = folder(quoted[2])
            if (!(from in known))
                violation("the folder " from " has no layer; add it to tests/check_layers.sh")
            else if (to == "")
                violation("\"" quoted[2] "\" is not written from the root of the repository")
            else if (!(to in known))
                violation("\"" quoted[2] "\" is in no layer that we know")
            else if (from != to && !((from, to) in allowed))
                violation(from " includes \"" quoted[2] "\", which is not below it")
            else if (from != to && !offered(from, quoted[2]))
                violation(from " includes \"" quoted[2] "\", which is no part of the interface that it has")
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
expect violation common/net/world/world.c '#include "common/comm/comm.h"'
expect violation common/net/world/world.c '  #  include "common/obs/trace.h"'
expect violation common/base/log.c '#include "common/net/world/world.h"'
expect ok common/net/transport/transport.c '#include "common/net/world/world.h"'
expect ok common/net/transport/zmq/zmq.c '#include "common/net/transport/transport.h"'
expect violation common/net/transport/transport.c '#include "common/net/transport/zmq/zmq_impl.h"'
expect violation common/net/transport/mpi/mpi.c '#include "common/net/transport/zmq/zmq_impl.h"'
expect violation common/net/world/world.c '#include "common/net/transport/message.h"'
expect violation common/net/world/world.c '#include "common/net/lifeline/lifeline.h"'
expect violation common/net/socket/stream.c '#include "common/net/world/world.h"'
expect violation ring/ring.c '#include "common/net/transport/mpi/endpoint.h"'
expect violation ring/ring.c '#include "common/net/socket/stream.h"'
expect ok common/device/cuda/conv.c '#include "common/device/ops.h"'
expect violation common/device/device.c '#include "common/device/cpu/cpu.h"'
expect violation common/device/cuda/kernels/step.cu '#include "common/device/cuda/cuda_device.h"'
expect violation common/device/cuda/cudnn/cudnn.c '#include "common/device/cuda/cuda_device.h"'
expect violation models/net.c '#include "common/device/cpu/team.h"'
expect violation common/util.h '#include "common/base/log.h"'
expect violation ring/ring.c '#include "schedule.h"'
expect violation ring/ring.c '#include <ps/server.h>'
expect ok ring/ring.c '#include <stdio.h>'
expect violation ring/ring.c '#include "vendor/other.h"'
expect ok ring/halving/halving.c '#include "ring/schedule.h"'
expect ok ring/hierarchical/hierarchical.c '#include "ring/ring.h"'
expect violation ring/ring.c '#include "ring/hierarchical/shared.h"'
expect ok ring/vendor/nccl.c '#include "common/device/cuda/cuda.h"'
expect violation ring/ring.c '#include "ring/halving/halving.h"'
expect ok common/library/engine.c '#include "ring/halving/halving.h"'
expect violation common/library/engine.c '#include "ps/ps.h"'
expect violation common/library/engine.c '#include "common/net/lifeline/lifeline.h"'
expect violation common/comm/comm.c '#include "common/psring.h"'
expect violation ring/vendor/nccl.c '#include "ring/halving/halving.h"'
expect violation ring/ring.c '#include "common/device/device.h"'
expect violation ps/server.c '#include "models/net.h"'
expect ok experiments/psring.c '#include "experiments/train/train.h"'
expect ok experiments/bench/bench.c '#include "experiments/measure/probe.h"'
expect violation experiments/bench/bench.c '#include "experiments/train/train.h"'
expect violation experiments/train/train.c '#include "experiments/bench/bench.h"'
expect ok experiments/train/train.c '#include "common/comm/comm.h"'
expect violation experiments/train/train.c '#include "common/comm/codec.h"'
expect violation experiments/train/train.c '#include "ps/ps.h"'
expect violation experiments/bench/bench.c '#include "ring/ring.h"'
expect violation experiments/bench/bench.c '#include "ring/schedule.h"'
expect violation experiments/config/launch.c '#include "common/net/transport/transport.h"'
expect violation experiments/measure/wire.c '#include "common/net/transport/message.h"'
expect ok experiments/config/backends.c '#include "ring/ring.h"'
expect violation experiments/config/backends.c '#include "ring/schedule.h"'
expect ok experiments/bench/bench_connect.c '#include "common/psring.h"'
expect violation experiments/train/train.c '#include "common/psring.h"'
expect violation experiments/measure/probe.c '#include "experiments/bench/bench.h"'
expect violation experiments/config/config.c '#include "experiments/measure/info.h"'
expect violation experiments/unheard/of.c '#include "common/base/log.h"'
if ! check "$here"; then
    echo "check_layers: see the layers in tests/check_layers.sh" >&2
    exit 1
fi
echo "check_layers: $(cd "$here" && find common models ps ring experiments -name '*.[ch]' | wc -l) files keep to their layers"
