#!/usr/bin/env bash
# prefix.sh [--data DIR] [OUT]: packs the dependencies of psring into one file, for a machine
# that has a GPU and a compiler but neither these packages nor a network.
#
#   experiments/gpu_check/prefix.sh gpu-prefix.tar.gz                         here (Debian, after setup.sh)
#   PSRING_PREFIX=gpu-prefix.tar.gz experiments/gpu_check.sh            there
#
# Takes from the installed packages: libraries with their dependencies and headers, Open MPI with its
# launcher, Criterion and pkg-config. The other machine must have the same or a newer C and C++ run-time.
# The result can be moved. DIR, a folder with MNIST, becomes data/. An OUT without .tar.gz is a new
# folder, which is not packed.
set -euo pipefail
export LC_ALL=C # decimal points and English messages in every locale

usage()
{
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
}

out=gpu-prefix.tar.gz
data=
while (($#)); do
    case $1 in
    --data)
        (($# >= 2)) || { echo "prefix.sh: --data needs a folder" >&2 && exit 2; }
        data=$2
        shift
        ;;
    -h | --help)
        usage
        exit 0
        ;;
    -*)
        echo "prefix.sh: unknown option '$1'; see prefix.sh --help" >&2
        exit 2
        ;;
    *) out=$1 ;;
    esac
    shift
done

HEADERS='libzmq3-dev libcjson-dev libcriterion-dev libopenblas-pthread-dev zlib1g-dev libssl-dev libopenmpi-dev'
LIBRARIES='zmq cjson criterion openblas z crypto ssl mpi'

for tool in dpkg-query ldd readelf pkgconf tar mpirun; do
    command -v $tool >/dev/null || {
        echo "prefix.sh: $tool is missing; run this on Debian, after experiments/setup.sh" >&2
        exit 1
    }
done
machine=$(gcc -print-multiarch)
system=/usr/lib/$machine
mpi=$system/openmpi

folder=$out
if [[ $out == *.tar.gz ]]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
elif [[ -d $folder && $(ls -A "$folder") ]]; then
    echo "prefix.sh: '$folder' has files, and this changes the libraries and programs in it; name a new folder" >&2
    exit 2
fi
mkdir -p "$folder"/{bin,include,lib/pkgconfig,lib/openmpi3,lib/pmix,share,etc}

# --- headers ---------------------------------------------------------------------------------------

# Debian keeps some headers in separate folders. Here -Iinclude finds all of them.
for package in $HEADERS; do
    dpkg-query -L "$package" 2>/dev/null || {
        echo "prefix.sh: $package is not installed; run experiments/setup.sh first" >&2
        exit 1
    }
done | sort -u | while read -r file; do
    [[ -f $file && $file == *.h ]] || continue
    case $file in
    "$mpi"/include/*) to=openmpi/${file#"$mpi"/include/} ;;
    /usr/include/"$machine"/openblas-pthread/*) to=${file##*/} ;;
    /usr/include/"$machine"/*) to=${file#/usr/include/"$machine"/} ;;
    /usr/include/*) to=${file#/usr/include/} ;;
    *) continue ;;
    esac
    mkdir -p "$(dirname "$folder/include/$to")"
    cp -L "$file" "$folder/include/$to"
done

# --- libraries -------------------------------------------------------------------------------------

# Libraries that every Linux machine with a compiler has. The machine must use these, not copies.
is_system()
{
    case $1 in
    libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | libutil.so.* | \
        libgcc_s.so.* | libstdc++.so.* | ld-linux* | linux-vdso*) return 0 ;;
    esac
    return 1
}

# Libraries for network hardware that the machine lacks, and plug-ins that would probe it. They are left out.
is_foreign()
{
    case $1 in
    *_ofi.so | *_openib.so | *_psm.so | *_psm2.so | *_ucx.so | *flux* | *slurm* | *romio* | *jsm*) return 0 ;;
    esac
    return 1
}

copy_needs() # FILE...: the shared libraries that they load, by the names they load them by
{
    ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
        while read -r name path; do
            is_system "$name" || [[ -e $folder/lib/$name ]] || cp -L "$path" "$folder/lib/$name"
        done
}

for library in $LIBRARIES; do
    file=$system/lib$library.so
    case $library in
    mpi) file=$mpi/lib/libmpi.so ;;
    openblas) file=$system/openblas-pthread/libopenblas.so ;;
    esac
    soname=$(objdump -p "$file" | awk '$1 == "SONAME" { print $2 }')
    cp -L "$file" "$folder/lib/$soname"
    [[ -e $folder/lib/lib$library.so ]] || ln -s "$soname" "$folder/lib/lib$library.so"
    copy_needs "$file"
done
for file in "$mpi"/lib/openmpi3/*.so; do
    is_foreign "${file##*/}" && continue
    cp -L "$file" "$folder/lib/openmpi3/"
    copy_needs "$file"
done
if [[ -d $system/pmix2/lib/pmix ]]; then
    cp -L "$system"/pmix2/lib/pmix/*.so "$folder/lib/pmix/"
    copy_needs "$folder"/lib/pmix/*.so
fi

# Some libraries name folders of this machine (DT_RUNPATH), and the loader then searches only those. This
# function replaces the entry by a meaningless one (DT_DEBUG), so that the program's own search path applies
# to everything that it loads.
forget_runpath() # FILE
{
    local start index
    start=$(readelf -dW "$1" | sed -n 's/^Dynamic section at offset \(0x[0-9a-f]*\) .*/\1/p')
    index=$(readelf -dW "$1" | awk '/^ *0x/ { if ($2 ~ /^\((RUNPATH|RPATH)\)$/) { print n + 0; exit } n++ }')
    [[ ! $index ]] ||
        printf '\x15\0\0\0\0\0\0\0' |
        dd of="$1" bs=1 seek=$((start + 16 * index)) conv=notrunc status=none
}
chmod -R u+w "$folder/lib"
find "$folder/lib" -type f -name '*.so*' | while read -r file; do
    forget_runpath "$file"
done

# --- programs --------------------------------------------------------------------------------------

for program in orterun orted; do
    cp -L "$(command -v $program)" "$folder/bin/$program.bin"
    copy_needs "$folder/bin/$program.bin"
done
cp -L "$(command -v pkgconf)" "$folder/bin/pkgconf.bin"
copy_needs "$folder/bin/pkgconf.bin"
cp -rL /usr/share/openmpi "$folder/share/openmpi"
for help in /usr/share/pmix* "$system"/pmix2/share/pmix; do
    [[ ! -d $help ]] || cp -rL "$help" "$folder/share/pmix"
done
[[ ! -d /etc/openmpi ]] || cp -rL /etc/openmpi "$folder/etc/openmpi"

# The shell and the programs below source this file. It sets all paths relative to its folder.
cat >"$folder/env.sh" <<'END'
# shellcheck shell=sh
# PSRING_PREFIX=the folder of this file; . "$PSRING_PREFIX/env.sh"
export OPAL_PREFIX="$PSRING_PREFIX" OPAL_EXEC_PREFIX="$PSRING_PREFIX"
export OPAL_BINDIR="$PSRING_PREFIX/bin" OPAL_SBINDIR="$PSRING_PREFIX/bin"
export OPAL_LIBDIR="$PSRING_PREFIX/lib" OPAL_PKGLIBDIR="$PSRING_PREFIX/lib/openmpi3"
export OPAL_DATADIR="$PSRING_PREFIX/share" OPAL_DATAROOTDIR="$PSRING_PREFIX/share"
export OPAL_PKGDATADIR="$PSRING_PREFIX/share/openmpi" OPAL_SYSCONFDIR="$PSRING_PREFIX/etc/openmpi"
export PMIX_INSTALL_PREFIX="$PSRING_PREFIX" PMIX_PREFIX="$PSRING_PREFIX" PMIX_PKGLIBDIR="$PSRING_PREFIX/lib/pmix"
export PMIX_LIBDIR="$PSRING_PREFIX/lib" PMIX_PKGDATADIR="$PSRING_PREFIX/share/pmix" PMIX_DATADIR="$PSRING_PREFIX/share"
export PMIX_EXEC_PREFIX="$PSRING_PREFIX" PMIX_BINDIR="$PSRING_PREFIX/bin" PMIX_SYSCONFDIR="$PSRING_PREFIX/etc/openmpi"
export PKG_CONFIG="$PSRING_PREFIX/bin/pkg-config" PKG_CONFIG_LIBDIR="$PSRING_PREFIX/lib/pkgconfig"
export CMAKE_PREFIX_PATH="$PSRING_PREFIX" OPENSSL_ROOT_DIR="$PSRING_PREFIX"
export PATH="$PSRING_PREFIX/bin:$PATH"
# DT_RPATH, not DT_RUNPATH, because it also applies to the dependencies of the libraries.
export LDFLAGS="-Wl,--disable-new-dtags,-rpath,$PSRING_PREFIX/lib,-rpath-link,$PSRING_PREFIX/lib"
END

wrapper() # NAME PROGRAM: starts bin/PROGRAM with the libraries of this folder, and the ranks too
{
    cat >"$folder/bin/$1" <<END
#!/bin/sh
PSRING_PREFIX=\$(unset CDPATH && cd "\$(dirname "\$0")/.." && pwd) || exit 1
. "\$PSRING_PREFIX/env.sh"
LD_LIBRARY_PATH=\$PSRING_PREFIX/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "\$PSRING_PREFIX/bin/$2" "\$@"
END
    chmod +x "$folder/bin/$1"
}
wrapper mpirun orterun.bin
wrapper orted orted.bin
wrapper pkg-config pkgconf.bin

# Replaces Open MPI's mpicc, whose settings name Debian's folders. It answers the questions of CMake.
cat >"$folder/bin/mpicc" <<END
#!/bin/sh
prefix=\$(unset CDPATH && cd "\$(dirname "\$0")/.." && pwd) || exit 1
compile="-I\$prefix/include/openmpi"
link="-L\$prefix/lib -Wl,-rpath,\$prefix/lib -Wl,-rpath-link,\$prefix/lib -lmpi"
case \$1 in
-showme:compile | --showme:compile) echo "\$compile" ;;
-showme:link | --showme:link) echo "\$link" ;;
-showme:incdirs | --showme:incdirs) echo "\$prefix/include/openmpi" ;;
-showme:libdirs | --showme:libdirs) echo "\$prefix/lib" ;;
-showme:libs | --showme:libs) echo mpi ;;
-showme:version | --showme:version) echo "mpicc: $(mpirun --version | head -1 | tr -d '()') (Language: C)" ;;
-showme* | --showme*) echo "cc \$compile \$link" ;;
*) exec "\${CC:-cc}" \$compile "\$@" \$link ;;
esac
END
chmod +x "$folder/bin/mpicc"

for module in libzmq:zmq libcjson:cjson criterion:criterion openblas:openblas; do
    name=${module%%:*}
    include="\${prefix}/include"
    [[ $name != libcjson ]] || include+=/cjson
    cat >"$folder/lib/pkgconfig/$name.pc" <<END
prefix=\${pcfiledir}/../..
Name: $name
Description: $name, brought along
Version: $(pkgconf --modversion "$name")
Cflags: -I$include
Libs: -L\${prefix}/lib -l${module##*:}
END
done

if [[ $data ]]; then
    mkdir "$folder/data"
    cp -L "$data"/*ubyte* "$folder/data/"
    chmod -R u+w "$folder/data"
fi

if [[ $out == *.tar.gz ]]; then
    tar -C "$folder" -czf "$out.part" .
    mv "$out.part" "$out"
fi
echo "prefix.sh: $out: $(du -sh "$out" | cut -f1) (unpacked $(du -sh "$folder" | cut -f1))" >&2
