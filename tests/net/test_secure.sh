#!/usr/bin/env bash
# test_secure.sh PROGRAM: with --secure, training ends with the same weights as without, over each protected transport.
# A rank or a worker without the keys is refused, both sides print the reason, and the job continues. PROGRAM, a test
# of libpsring, passes with keys, too.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/ranks_lib.sh
. "$lib/ranks_lib.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT PSRING_SECURE
common=(--model lenet --batch 8 --steps 10)
keys=$folder/keys others=$folder/others
ranks_host=127.0.0.1

# exits CODE WORDS COMMAND...
exits()
{
    local expected=$1 words=$2 code=0
    shift 2
    "$@" >"$folder/log" 2>&1 || code=$?
    ((code == expected)) || fail "$*: exit $code, expected $expected:"
    grep -q -e "$words" "$folder/log" || fail "$*: no '$words' in:"
}

# has FILE WORDS
has()
{
    grep -q -e "$2" "$folder/$1" || fail "$1: no '$2': $(cat "$folder/$1")"
}

exits 0 "$keys" "$psring" keys "$keys"
exits 0 "$others" "$psring" keys "$others"
exits 2 'never overwritten' "$psring" keys "$keys"
exits 2 'psring keys DIR' "$psring" bench --secure "$folder/none"
exits 2 'use --transport zmq or tcp' "$psring" bench --secure "$keys" --transport mpi
exits 2 'NCCL sends in the clear' "$psring" bench --secure "$keys" --backend nccl
exits 2 '--probe sends in the clear' "$psring" bench --secure "$keys" --probe on
exits 2 'MPI has started this process' env OMPI_COMM_WORLD_RANK=0 PSRING_SECURE="$keys" "$psring" bench

# same RANKS OPTION...: the weights do not depend on --secure.
same()
{
    local count=$1 plain rank secure
    shift
    for secure in '' "$keys"; do
        PSRING_SECURE=$secure ranks "$count" train --data "$data" "${common[@]}" "$@" ||
            fail "$*, keys '$secure': $(cat "$folder"/rank.*)"
        weights=$(sed -n 's/^weights sha256 //p' "$folder/rank.0")
        [[ $secure ]] || plain=$weights
    done
    [[ $weights && $weights == "$plain" ]] || fail "$*: weights $weights with --secure, $plain without"
    for ((rank = 1; rank < count; rank++)); do
        [[ ! -s $folder/rank.$rank ]] || fail "$*: rank $rank printed: $(cat "$folder/rank.$rank")"
    done
}

same 3 --backend ring --transport tcp
same 7 --backend rhd --transport tcp # more peers than poll(2) gets
same 3 --backend ps --servers 3 --placement colocated --transport tcp
same 3 --backend ring --transport zmq
same 4 --backend ps --transport zmq
if grep -q '^0\{31\}1 .* lo$' /proc/net/if_inet6; then
    ranks_host='[::1]'
    same 3 --backend ring --transport tcp --subnet ::1/128
    same 3 --backend ring --transport zmq --subnet ::1/128
fi

# A host's policy without the algorithms of these keys has no effect.
cat >"$folder/policy" <<END
openssl_conf = openssl
[openssl]
ssl_conf = ssl
[ssl]
system_default = policy
[policy]
Groups = P-521
SignatureAlgorithms = RSA+SHA256
END
OPENSSL_CONF=$folder/policy same 2 --backend ring --transport tcp

# listens PORT: whether a process listens there.
listens()
{
    awk -v "port=:$(printf %04X "$1")" 'substr($2, 9) == port && $4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp
}

# meet KEYS-OF-RANK-0 KEYS-OF-RANK-1 FIRST: both ranks fail, rank FIRST first.
meet()
{
    local rank port code pids=() secure=("$@") limits=()
    local early_s=$((3 + 3 * ($3 == 0))) # rank 1 must reach rank 0 before rank 0 ends
    limits[$3]=$early_s limits[1 - $3]=$((2 * early_s))
    port=$(free_port)
    for rank in 0 1; do
        PSRING_SECURE=${secure[rank]} timeout --kill-after=5 120 "$psring" bench --startup-timeout "${limits[rank]}" \
            --rendezvous "tcp://127.0.0.1:$port" --rank $rank --world-size 2 >"$folder/rank.$rank" 2>&1 &
        pids+=($!)
        within listens "$port" || fail "rank 0 does not listen: $(cat "$folder"/rank.*)"
    done
    for rank in 0 1; do
        code=0
        wait "${pids[rank]}" || code=$?
        ((code == 1)) || fail "rank $rank of different keys: exit $code: $(cat "$folder"/rank.*)"
    done
}

meet "$keys" '' 1
has rank.0 'does not use TLS'
has rank.1 'with --secure on one side only'
meet '' "$keys" 1
has rank.0 'uses TLS (--secure)'
has rank.1 'with --secure on one side only'
for first in 0 1; do
    meet "$keys" "$others" "$first"
    has rank.0 'has other keys'
    has rank.1 'had other keys'
done

# serve NAME KEYS: start a server; its address and its process.
serve()
{
    address=tcp://$ranks_host:$(free_port)
    PSRING_SECURE=$2 timeout --kill-after=5 240 "$psring" serve --listen "$address" --timeout 20 >"$folder/$1" 2>&1 &
    server=$!
    within grep -q listens "$folder/$1" || fail "no server: $(cat "$folder/$1")"
}

# An elastic job refuses such workers and continues.
serve serve "$keys"
join=("$psring" train --data "$data" --backend ps "${common[@]}" --timeout 20 --join "$address")
exits 1 'the same --secure folder' "${join[@]}"
exits 1 'the same --secure folder' "${join[@]}" --secure "$others"
exits 0 '^weights sha256' env PSRING_SECURE="$keys" "${join[@]}"
wait "$server" || fail "the server: $(cat "$folder/serve")"
has serve 'does not use TLS'
rm -rf "$folder/serve"

# unlike KEYS WORDS: a job ends if its second server has these keys. The worker and the first server print the reason.
unlike()
{
    local first second peer
    serve second "$1"
    second=$address peer=$server
    serve first "$keys"
    first=$server
    exits 1 "$2" "$psring" train --data "$data" --backend ps "${common[@]}" --secure "$keys" --join "$address,$second"
    wait "$first" && fail 'the first server ended with 0'
    has first "$2"
    kill "$peer"
    wait "$peer" || true
    rm -f "$folder/first" "$folder/second"
}

unlike "$others" 'the server has other keys'
unlike '' 'only one of the two uses --secure'

# Lost ranks, fork() and all operations of libpsring.
for program in "$@"; do
    PSRING_SECURE=$keys "$program" --color=never >"$folder/log" 2>&1 || fail "$(basename "$program") with keys:"
done
