#!/usr/bin/env bash
# papers.sh [OPTION...]: simulates published comparisons of all-reduce and parameter server, and prints both results.
# psring's ring and parameter server run in SimGrid, with the gradients of the published networks and the links of the
# clusters.
#
#   Horovod (Sergeev, Del Balso 2018, arXiv 1802.05799): efficiency of 16 and 512 GPUs, by TCP and RDMA.
#   BytePS (Jiang et al., OSDI 2020): 256 GPUs, all-reduce and parameter servers, with spare CPU machines.
#
# The table lists assumptions that the publications leave open; rates and latencies are options. A sign or an order that
# differs from the publication is WRONG, with exit status 1. If the efficiency of the most GPUs differs by more than 5
# points, the script simulates it again with each assumption changed, which shows the influence of each.
#
#   --quick               only 16 GPUs of Horovod and 8 machines of BytePS; a minute
#   --out DIR             folder of the results (default: results-papers)
#   --tcp-rate BYTES      payload rate of TCP on 25 Gbit/s, bytes/s (default 1.7e9)
#   --rdma-rate BYTES     payload rate of RDMA (default 2.9e9)
#   --slow-rate BYTES     payload rate of TCP on BytePS's 20 Gbit/s (default 2.3e9)
#   --tcp-latency SECONDS latency of a message (default 25e-6)
#   --rdma-latency SECONDS the same by RDMA (default 5e-6)
#   --v100 FACTOR         a V100's images/s, as a multiple of a P100's (default 1.69)
#   --build DIR           build folder of psring-simulate (default: build-simulate)
#
# DIR gets papers.csv, with bench.csv's columns, and papers.txt, which is also printed. Everything takes at most 10
# minutes of one core; a first build takes two more. A simulation fails after 5 minutes. Needs SimGrid (setup.sh
# --simulate); without it the exit status is 77.
set -euo pipefail
export LC_ALL=C # decimal points in every locale

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
# shellcheck source-path=SCRIPTDIR source=simulate/papers.sh
. "$here/simulate/papers.sh"
heed_interrupts "$@"
papers_main "$@"
