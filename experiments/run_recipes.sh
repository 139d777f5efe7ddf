#!/usr/bin/env bash
# Trains keras-cnn on MNIST by the recipes of psring train --recipe list, as models/measured.csv has it: by the ring, by
# a parameter server and by one process that plays all workers, and says what each reached.
set -euo pipefail
export LC_ALL=C # a point in numbers, whatever the user's language

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
heed_interrupts "$@"

usage()
{
    cat <<'EOF'
usage: run_recipes.sh [--data DIR] [--out DIR] [--only RECIPE] [--psring FILE]

Trains by each recipe of psring train --recipe list, with the number of workers that it is for: by --backend ring, by
--backend ps with one server and, where it can be played, by one process with --virtual-workers; all with
--reduce-order ring, so that the weights must be the same bit for bit. Some 7 million images: hours on few cores.

  --data DIR      MNIST; else PSRING_DATA, else get_mnist.sh finds or fetches it
  --out DIR       where recipes.csv (a row an epoch) and a log for each run are left [recipes]; an earlier run's
                  recipes.csv is replaced
  --only RECIPE   this one
  --psring FILE   the program [build/psring]

Ends with 1 where a run reaches less than it must, or ends with other weights.
EOF
}

die()
{
    echo "run_recipes: $1" >&2
    exit 1
}

# shellcheck disable=SC2317  # called by a trap
clean_up()
{
    trap '' INT TERM HUP
    [[ ! $child ]] || { kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null; } || true
}

child=''
psring=$here/../build/psring
out=recipes only='' data=${PSRING_DATA:-}
while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --data | --out | --only | --psring)
        (($# > 1)) || { echo "run_recipes: $1: a value is missing; see --help" >&2; exit 2; }
        declare "${1#--}=$2"
        shift 2
        ;;
    *) echo "run_recipes: $1: not an option; see --help" >&2; exit 2 ;;
    esac
done
[[ -n $data ]] || data=$("$here/get_mnist.sh")
take_folder "$out"
rm -f "$out/recipes.csv"
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
launch=(mpirun --oversubscribe --bind-to none --mca btl 'self,tcp')
((EUID != 0)) || launch+=(--allow-run-as-root)
failed=0 found=0

# run RECIPE WORKERS LEAST BACKEND: a line of the table; LEAST: percent of the test images.
run()
{
    local recipe=$1 workers=$2 least=$3 backend=$4 log="$out/$1-$4.log" ranks=$2 options=()
    local command=("${launch[@]}")
    case $backend in
    ps) ranks=$((workers + 1)) ;;
    none) command=() options=(--virtual-workers "$workers") ;;
    esac
    [[ $backend == none ]] || command+=(-n "$ranks")
    if ! log_to=$log wait_for_child "${command[@]}" "$psring" train --recipe "$recipe" --backend "$backend" --reduce-order ring \
        --data "$data" --metrics "$out/recipes.csv" "${options[@]}"; then
        printf '%-14s %-5s failed: %s\n' "$recipe" "$backend" "$(grep -m 1 error "$log" || tail -n 1 "$log")"
        failed=1
        return
    fi
    local accuracy weights verdict=''
    accuracy=$(sed -n 's/^test accuracy \(.*\)% after.*/\1/p' "$log")
    weights=$(sed -n 's/^weights sha256 //p' "$log")
    : "${expected:=$weights}"
    [[ $weights == "$expected" ]] || { verdict=' OTHER WEIGHTS' failed=1; }
    awk -v a="$accuracy" -v least="$least" 'BEGIN { exit !(a >= least) }' || { verdict+=' TOO LOW' failed=1; }
    printf '%-14s %-5s %7d %11s %8s  %.12s%s\n' "$recipe" "$backend" "$workers" "$accuracy" "$least" "$weights" "$verdict"
}

# recipe NAME WORKERS LEAST BACKEND...
recipe()
{
    local name=$1 workers=$2 least=$3 backend expected=''
    shift 3
    [[ -z $only || $only == "$name" ]] || return 0
    found=1
    for backend in "$@"; do
        run "$name" "$workers" "$least" "$backend"
    done
}

printf '%-14s %-5s %7s %11s %8s  %s\n' recipe backend workers accuracy 'at least' weights
recipe keras-horovod 4 99.0 ring ps
recipe large-batch 8 99.2 ring ps none
recipe lars-8192 8 98.5 ring ps none
((found)) || { echo "run_recipes: --only $only: no such recipe; $psring train --recipe list names them" >&2; exit 2; }
exit $failed
