#!/usr/bin/env bash
# papers.sh [OPTION...]: published comparisons of all-reduce and parameter server, simulated: psring's own ring and parameter server
# in SimGrid, the gradients of the published networks, the links of the published clusters; published beside simulated.
#
#   Horovod (Sergeev, Del Balso 2018, arXiv 1802.05799): what 16 and 512 GPUs make of one GPU's rate, by TCP and RDMA.
#   BytePS (Jiang et al., OSDI 2020): 256 GPUs, all-reduce and parameter servers, with spare CPU machines.
#
# What the publications leave open is a line of the table; rates and latencies are options. A sign or an order that comes out otherwise than
# published is WRONG, and the exit status 1; of the most GPUs, an efficiency that differs by more than 5 points is simulated again
# with each assumption changed, which shows what moves it.
#
#   --quick               16 GPUs of Horovod's, 8 machines of BytePS's; a minute
#   --out DIR             where results go (default: results-papers)
#   --tcp-rate BYTES      what TCP makes of 25 Gbit/s, bytes/s of payload (default 1.7e9)
#   --rdma-rate BYTES     and RDMA (default 2.9e9)
#   --slow-rate BYTES     what TCP makes of BytePS's 20 Gbit/s (default 2.3e9)
#   --tcp-latency SECONDS of a message (default 25e-6)
#   --rdma-latency SECONDS (default 5e-6)
#   --v100 FACTOR         a V100's images/s, as a multiple of a P100's (default 1.69)
#   --build DIR           psring-simulate is built there (default: build-simulate)
#
# DIR gets papers.csv, with bench.csv's columns, and papers.txt, which is also printed. All takes 10 minutes of one core at
# most, and each simulation 5 minutes or it fails; a first build two more. Needs SimGrid (setup.sh --simulate); without it the
# exit status is 77.
set -euo pipefail
export LC_ALL=C # a point in numbers, whatever the user's language

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source-path=SCRIPTDIR source=simulate/papers.sh
. "$here/simulate/papers.sh"
heed_interrupts "$@"
papers_main "$@"
