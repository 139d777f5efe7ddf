#!/usr/bin/env bash
# test_folder.sh: a folder of results takes one run at a time. A second run of any script ends with one message. No
# script removes a file of another program. An interrupted run_recipes.sh ends.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
scripts=$root/experiments

mkdir "$folder/out" "$folder/data"
for file in train-{images-idx3,labels-idx1}-ubyte t10k-{images-idx3,labels-idx1}-ubyte; do
    touch "$folder/data/$file"
done
# A stand-in for psring train that writes a row. With $folder/sleeps it creates $folder/runs and sleeps.
cat >"$folder/program" <<PROGRAM
#!/bin/sh
[ ! -e "$folder/sleeps" ] || { touch "$folder/runs" && exec sleep 4323.$$; }
[ "\${OMPI_COMM_WORLD_RANK:-0}" = 0 ] || exit 0
while [ \$# -gt 0 ]; do
    [ "\$1" != --metrics ] || echo row >>"\$2"
    shift
done
echo "test accuracy 99.9% after"
echo "weights sha256 0"
PROGRAM
chmod +x "$folder/program"

# --- two runs ---------------------------------------------------------------------------------------------

# refused PATTERN COMMAND...: exit 1 and one line with this pattern. The files in the folder stay.
refused()
{
    local pattern=$1 status=0
    shift
    echo mine >"$folder/out/bench.csv"
    "$@" --out "$folder/out" >"$folder/output" 2>&1 || status=$?
    cat "$folder/output"
    [[ $status == 1 && $(grep -vc '^get_mnist' "$folder/output") == 1 && $(<"$folder/out/bench.csv") == mine ]] || return 1
    grep -e "$pattern" "$folder/output"
}

has_data=$root/experiments/get_mnist.sh
"$has_data" --data "$folder/data" >/dev/null 2>&1 || has_data=''
commands=("run_scaling.sh --quick --no-train --psring $folder/program" "simulate.sh --quick" "papers.sh --quick"
    "run_recipes.sh --data $folder/data --psring $folder/program" "lessons/lesson.sh 2 --psring $folder/program")
[[ ! $has_data ]] || commands+=("run_consistency.sh --quick --psring $folder/program --data $folder/data")
refusal='' remedy=''
namespaces_refused || commands+=("sweep_model.sh --psring $folder/program" "compare_transports.sh --psring $folder/program"
    "compare_builds.sh $folder/program $folder/program")
for command in "${commands[@]}"; do
    read -ra words <<<"$command"
    exec {lock}<"$folder/out"
    flock "$lock"
    expect "a second run of ${words[0]}" refused "another run uses '$folder/out'" "$scripts/${words[0]}" "${words[@]:1}"
    exec {lock}<&-
done

# --- files of others ----------------------------------------------------------------------------------------

expect "a lesson keeps a file that it did not write" refused "has a file bench.csv, which lesson.sh did not write" \
    "$scripts/lessons/lesson.sh" 2 --psring "$folder/program"
expect "run_scaling.sh keeps a file that it did not write" refused "has a file bench.csv, which run_scaling.sh did not write" \
    "$scripts/run_scaling.sh" --quick --no-train --psring "$folder/program"
if [[ ! $refusal ]]; then
    expect "sweep_model.sh keeps a file that it did not write" refused "has a file bench.csv, which sweep_model.sh did not write" \
        "$scripts/sweep_model.sh" --psring "$folder/program"
fi

# shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/script.sh
. "$scripts/sweep/script.sh"
die() { echo "$1" && exit 1; }
replaces_its_own()
{
    local out=$folder/out
    begin_log 1
    (keep_foreign_files bench.csv log.txt)
}
expect "an earlier run's files are replaced" replaces_its_own

# --- recipes --------------------------------------------------------------------------------------------------

# keeps FILE COMMAND...: the command refuses a folder with only this file.
keeps()
{
    local file=$1 status=0
    shift
    mkdir -p "$folder/one" && echo mine >"$folder/one/$file"
    "$@" --out "$folder/one" >"$folder/output" 2>&1 || status=$?
    cat "$folder/output"
    ((status == 1)) && grep -q "has a file $file, which ${1##*/} did not write" "$folder/output" && [[ $(<"$folder/one/$file") == mine ]] &&
        rm -r "$folder/one"
}
for trial in "time_vs_size.svg run_scaling.sh --quick --no-train --psring $folder/program" \
    "trace-ring.json run_scaling.sh --quick --no-train --psring $folder/program" "ring.txt lessons/lesson.sh 2 --psring $folder/program" \
    "recipes.csv run_recipes.sh --data $folder/data --psring $folder/program" "simulate.csv simulate.sh --quick" "build.log simulate.sh --quick" \
    "papers.txt papers.sh --quick" ${has_data:+"consistency.pdf run_consistency.sh --quick --psring $folder/program --data $folder/data"}; do
    read -r file script arguments <<<"$trial"
    # shellcheck disable=SC2086  # options and their values
    expect "$script keeps $file" keeps "$file" "$scripts/$script" $arguments
done

recipes()
{
    "$scripts/run_recipes.sh" --data "$folder/data" --psring "$folder/program" --out "$folder/recipes" --only keras-horovod "$@"
}

rows_of_one_run()
{
    recipes && [[ $(wc -l <"$folder/recipes/recipes.csv") == 2 ]]
}
expect "recipes" rows_of_one_run
expect "recipes again leave the rows of one run" rows_of_one_run

# recipes_end STATUS WORDS OPTION...: run_recipes.sh ends with this exit code and prints these words.
recipes_end()
{
    local status=0
    recipes "${@:3}" >"$folder/output" 2>&1 || status=$?
    cat "$folder/output"
    ((status == $1)) && grep -q -e "$2" "$folder/output"
}
no_such() { recipes_end 2 "$1" "${@:2}" && [[ $(wc -l <"$folder/recipes/recipes.csv") == 2 ]]; }
expect "an unknown recipe leaves the rows" no_such "--only 'lars': no such recipe" --only lars
expect "a missing program leaves the rows" no_such "is not a program" --psring /nowhere
sed '/^echo "weights/d' "$folder/program" >"$folder/weightless"
chmod +x "$folder/weightless"
expect "runs without weights fail" recipes_end 1 ' NO WEIGHTS$' --psring "$folder/weightless"

no_program()
{
    ! pgrep -f "^sleep 4323.$$" >/dev/null
}

touch "$folder/sleeps"
for signal in INT:130 TERM:143 HUP:129; do
    rm -f "$folder/runs"
    "$scripts/run_recipes.sh" --data "$folder/data" --psring "$folder/program" --out "$folder/recipes" >"$folder/output" 2>&1 &
    pid=$!
    within test -e "$folder/runs"
    kill "-${signal%:*}" $pid
    wait $pid
    status=$?
    result=ok
    ((status == ${signal#*:})) || result="exit $status"
    within no_program || result="a rank is left"
    verdict "$result" "SIG${signal%:*} ends the recipes"
done
rm "$folder/sleeps"

# A cmake that sleeps.
mkdir "$folder/bin"
printf '#!/bin/sh\ntouch "%s/runs"\nexec sleep 4323.%s\n' "$folder" $$ >"$folder/bin/cmake"
cp "$folder/bin/cmake" "$folder/bin/smpicc"
cp "$folder/bin/cmake" "$folder/bin/smpirun"
chmod +x "$folder/bin"/*
rm -f "$folder/runs"
PATH=$folder/bin:$PATH "$scripts/simulate.sh" --quick --out "$folder/simulate" --build "$folder/build" >"$folder/output" 2>&1 &
pid=$!
within test -e "$folder/runs"
kill -HUP $pid
wait $pid
status=$?
result=ok
((status == 129)) || result="exit $status"
verdict "$result" "SIGHUP ends a simulation with 129"

# --- limits before a build, and the commit ---------------------------------------------------------------------

for command in "run_scaling.sh --hosts 2,101" "compare_transports.sh --hosts 200 --psring $folder/program" \
    "compare_builds.sh --hosts 101 $folder/program $folder/program"; do
    read -ra words <<<"$command"
    status=0
    "$scripts/${words[0]}" "${words[@]:1}" --out "$folder/limits" >"$folder/output" 2>&1 || status=$?
    result=ok
    [[ $status == 2 && ! -e $folder/limits ]] || result="exit $status"
    grep -q -- '--hosts .*at most' "$folder/output" || result="no word of --hosts"
    verdict "$result" "more hosts than the cluster has: ${words[0]}"
done

# With the user's CDPATH, where cd prints the folder.
helps() { (cd "$root" && CDPATH=$root "experiments/$1" --help); }
for script in run_scaling.sh run_consistency.sh run_recipes.sh simulate.sh papers.sh compare_builds.sh compare_transports.sh \
    sweep_model.sh lessons/lesson.sh; do
    expect "$script with CDPATH" helps "$script"
done

# shellcheck source-path=SCRIPTDIR source=../../experiments/sweep/provenance.sh
. "$scripts/sweep/provenance.sh"
tree=$folder/tree
git init -q "$tree"
echo a >"$tree/a.c"
git -C "$tree" add a.c
git -C "$tree" -c user.name=a -c user.email=a commit -q -m a
mkdir "$tree/out"
touch "$tree/out/bench.csv"
is_changed() { [[ $(commit_of "$tree") == *", with changes" ]]; }
is_not_changed() { [[ $(commit_of "$tree") =~ ^[0-9a-f]{40}$ ]]; }
expect "results in the tree do not count as changes" is_not_changed
touch "$tree/b.c"
expect "a new source counts as a change" is_changed
rm "$tree/b.c"
echo b >"$tree/a.c"
expect "a changed source counts as a change" is_changed

all_passed
