#!/usr/bin/env bash
# Trains keras-cnn on MNIST by the recipes of psring train --recipe list, as in models/measured.csv, and prints the
# accuracy of each. Backends: the ring, a parameter server, and one process with virtual workers.
set -euo pipefail
export LC_ALL=C # decimal points in every locale

unset CDPATH # cd prints a folder that it finds there
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=sweep/script.sh
. "$here/sweep/script.sh"
heed_interrupts "$@"

usage()
{
    cat <<'EOF'
usage: run_recipes.sh [--data DIR] [--out DIR] [--only RECIPE] [--psring FILE]

Trains by each recipe of psring train --recipe list, with the recipe's number of workers. Each recipe runs by --backend
ring, by --backend ps with one server and, except keras-horovod, by one process with --virtual-workers. All runs have
--reduce-order ring, so the weights must be equal bit for bit. The runs train on about 7 million images: hours on few
cores.

  --data DIR      folder of MNIST (default: PSRING_DATA, else get_mnist.sh finds or downloads it)
  --out DIR       folder of recipes.csv (a row per epoch) and of a log for each run (default: recipes); replaces an
                  earlier run's files
  --only RECIPE   run only this recipe
  --psring FILE   the program (default: build/psring of this tree)

Exits with 1 if a run reaches less than its recipe must, or ends with other weights.
EOF
}

# For each recipe: its number of workers, the accuracy that it must reach (percent of the test images), and the backends
# that train it.
recipes=("keras-horovod 4 99.0 ring ps" "large-batch 8 99.2 ring ps none" "lars-8192 8 98.5 ring ps none")

child='' psring=$here/../build/psring command_line="$0 $*"
out=recipes only='' data=${PSRING_DATA:-}
while (($# > 0)); do
    take_option "--data --out --only --psring" "$@"
    shift 2
done
chosen=()
for recipe in "${recipes[@]}"; do
    [[ $only && ${recipe%% *} != "$only" ]] || chosen+=("$recipe")
done
((${#chosen[@]})) || die "--only '$only': no such recipe; expected one of ${recipes[*]%% *}" 2
need_program
[[ -n $data ]] || data=$("$here/get_mnist.sh")
take_folder "$out"
files=(recipes.csv log.txt)
for recipe in "${chosen[@]}"; do
    read -r name _ _ backends <<<"$recipe"
    for backend in $backends; do
        files+=("$name-$backend.log")
    done
done
replace_files "${files[@]}"
begin_log "$command_line"
end_with end_child
launch=(mpirun --oversubscribe --bind-to none --mca btl 'self,tcp')
((EUID != 0)) || launch+=(--allow-run-as-root)
failed=0

# run RECIPE WORKERS LEAST BACKEND: makes a line of the table. LEAST is a percentage of the test images.
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
    [[ $weights ]] || { verdict=' NO WEIGHTS' failed=1; }
    [[ $weights == "$expected" ]] || { verdict+=' OTHER WEIGHTS' failed=1; }
    awk -v a="$accuracy" -v least="$least" 'BEGIN { exit !(a >= least) }' || { verdict+=' TOO LOW' failed=1; }
    printf '%-14s %-5s %7d %11s %8s  %.12s%s\n' "$recipe" "$backend" "$workers" "$accuracy" "$least" "$weights" "$verdict"
}

printf '%-14s %-5s %7s %11s %8s  %s\n' recipe backend workers accuracy 'at least' weights
for recipe in "${chosen[@]}"; do
    read -r name workers least backends <<<"$recipe"
    expected=''
    for backend in $backends; do
        run "$name" "$workers" "$least" "$backend"
    done
done
exit $failed
