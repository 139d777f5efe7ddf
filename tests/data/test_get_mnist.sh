#!/usr/bin/env bash
# test_get_mnist.sh: experiments/get_mnist.sh without a network. Stand-ins replace curl, wget, pip and apt-get: they fail
# or serve files of a folder. Checks that need the real files are omitted, with a message, unless PSRING_DATA names a
# folder with MNIST.
set -euo pipefail

unset CDPATH # cd prints a folder that it finds there
root=$(cd "$(dirname "$0")/../.." && pwd)
mnist=${PSRING_DATA:+$(cd "$PSRING_DATA" && pwd)}
unset PSRING_DATA
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache
names=(train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte)

fail()
{
    echo "test_get_mnist: $*" >&2
    if [[ -f $folder/err ]]; then
        sed 's/^/  /' "$folder/err" >&2
    fi
    exit 1
}

# Runs the script with the stand-ins first in PATH. Sets $folder/out, $folder/err and $result.
get()
{
    result=0
    PATH=$folder/bin:$PATH "$root/experiments/get_mnist.sh" "$@" \
        >"$folder/out" 2>"$folder/err" || result=$?
}

expect() # RESULT WORDS-ON-STDERR
{
    ((result == $1)) || fail "exit code $result, expected $1"
    grep -qF -- "$2" "$folder/err" || fail "the messages do not contain '$2'"
}

# The cache contains these folders and nothing else, in particular no partial download.
expect_cache() # NAME...
{
    local found
    found=$(cd "$XDG_CACHE_HOME/psring" && find . -mindepth 1 -maxdepth 1 | sort | paste -sd ' ')
    [[ $found == "$*" ]] || fail "the cache holds '$found', expected '$*'"
}

stand_in() # NAME, script on stdin
{
    mkdir -p "$folder/bin"
    cat >"$folder/bin/$1"
    chmod +x "$folder/bin/$1"
}

for program in curl wget python3 apt-get sudo; do
    stand_in "$program" <<<'#!/bin/sh
exit 6'
done

get --nonsense
expect 2 "unknown argument '--nonsense'"
get --data
expect 2 "--data needs a folder"

if [[ ! -e /usr/share/datasets/fashion-mnist ]]; then
    get
    expect 1 "put MNIST's four files"
    [[ ! -s $folder/out ]] || fail "output on standard output"
    expect_cache
fi

mkdir "$folder/other"
for name in "${names[@]}"; do
    echo x >"$folder/other/$name"
done
get --data "$folder/other"
expect 0 "neither MNIST nor Fashion-MNIST; used as they are"
[[ $(<"$folder/out") == "$folder/other" ]] || fail "printed '$(<"$folder/out")'"
rm "$folder/other/${names[2]}"
get --data "$folder/other"
expect 1 "missing: ${names[2]} ("
PSRING_DATA=$folder/nowhere get
expect 1 "nowhere: missing: "
[[ ! -s $folder/out ]] || fail "the script printed other data than --data names"

# A transfer hangs: a signal ends it and the script, and no file is left.
stand_in curl <<<"#!/bin/sh
echo \$\$ >$folder/curl-pid
exec sleep 60"
for signal in TERM INT HUP; do
    rm -f "$folder/curl-pid"
    PATH=$folder/bin:$PATH env --default-signal=INT "$root/experiments/get_mnist.sh" \
        >"$folder/out" 2>"$folder/err" &
    script=$!
    for ((i = 0; i < 200; i++)); do
        [[ ! -s $folder/curl-pid ]] || break
        sleep 0.05
    done
    kill "-$signal" "$script"
    result=0
    wait "$script" || result=$?
    expect $((128 + $(kill -l "$signal"))) "interrupted; nothing was left behind"
    ! kill -0 "$(<"$folder/curl-pid")" 2>/dev/null || fail "curl still runs after SIG$signal"
    expect_cache
done

if [[ -z $mnist || ! -e $mnist/${names[0]}.gz ]]; then
    echo "test_get_mnist: PSRING_DATA does not name a folder with MNIST in gzip files; downloads are not tested"
    exit 0
fi

# The first mirror is down, then it serves damaged files. The second mirror works.
stand_in curl <<E2
#!/bin/sh
for argument; do
    [ "\$last" = -o ] && to=\$argument
    last=\$argument
done
echo "\$last" >>$folder/transfers
case \$last in
*ossci*) [ -e $folder/damaged ] || exit 22; head -c 1000 "$mnist/\${last##*/}" >"\$to" ;;
*) cat "$mnist/\${last##*/}" >"\$to" ;;
esac
E2
get
expect 0 "fetching MNIST"
cached=$XDG_CACHE_HOME/psring/mnist
[[ $(<"$folder/out") == "$cached" ]] || fail "printed '$(<"$folder/out")'"
for name in "${names[@]}"; do
    gzip -dc "$mnist/$name.gz" | cmp - "$cached/$name" || fail "$name differs"
done
expect_cache ./mnist
(($(wc -l <"$folder/transfers") == 5)) || fail "expected one failed transfer and four good ones"

rm "$folder/transfers"
get
((result == 0)) || fail "a second run fails"
[[ ! -e $folder/transfers ]] || fail "a second run downloads again"

touch "$folder/damaged"
echo x >>"$cached/${names[1]}"
get
expect 0 "not used"
gzip -dc "$mnist/${names[1]}.gz" | cmp - "$cached/${names[1]}" || fail "not repaired"
expect_cache ./mnist

# Two runs at the same time, from an empty cache.
rm -r "$XDG_CACHE_HOME"
pids=()
for i in 1 2; do
    PATH=$folder/bin:$PATH "$root/experiments/get_mnist.sh" >"$folder/out$i" 2>"$folder/err" &
    pids+=($!)
done
for pid in "${pids[@]}"; do
    wait "$pid" || fail "one of two simultaneous runs failed"
done
[[ $(<"$folder/out1") == "$cached" && $(<"$folder/out2") == "$cached" ]] || fail "two simultaneous runs differ"
for name in "${names[@]}"; do
    gzip -dc "$mnist/$name.gz" | cmp - "$cached/$name" || fail "$name differs after two simultaneous runs"
done
expect_cache ./mnist
echo "test_get_mnist: all passed"
