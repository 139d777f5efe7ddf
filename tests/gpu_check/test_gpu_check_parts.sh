#!/usr/bin/env bash
# test_gpu_check_parts.sh: gpu_check.sh on a machine that appears to have a GPU. The tools that it calls are
# stand-ins, and $STANDIN names the one that misbehaves. The test runs the whole check, then each part alone. Above
# all it checks that a part which did not run does not pass. tests/emulation runs the check with psring itself.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=../lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
check=$root/experiments/gpu_check.sh
mkdir "$folder/bin" "$folder/data"
export FOLDER=$folder

# --- the stand-ins -----------------------------------------------------------------------------------

standin() # NAME: makes this program from the text on stdin
{
    { echo '#!/usr/bin/env bash' && cat; } >"$folder/bin/$1"
    chmod +x "$folder/bin/$1"
}

standin nvidia-smi <<'END'
case $* in
*query-gpu*) echo 'NVIDIA H200, 580.0, 1 MiB' ;;
*) echo '| NVIDIA-SMI 580.0    Driver Version: 580.0    CUDA Version: 13.0     |' ;;
esac
END
standin nvcc <<'END'
[[ $STANDIN == old-driver ]] && release=14.1 || release=13.0
echo "Cuda compilation tools, release $release, V$release.88"
END
# PyTorch: slower than psring in FP32, and faster with TF32.
standin python3 <<'END'
[[ $STANDIN != no-torch ]] || { echo "ModuleNotFoundError: No module named 'torch'" >&2; exit 1; }
[[ "$*" == *--turns* ]] || exit 1
echo $$ >"$FOLDER/pytorch"
echo ready 2.0
while read -r mode precision; do
    [[ $STANDIN != no-answer ]] || exit 1
    [[ $precision == TF32 ]] && echo 2000 || echo 900
done
END
standin pkg-config <<'END'
[[ $STANDIN != no-criterion || "$*" != *criterion* ]] || exit 1
[[ $1 != --modversion ]] || echo 1.0
END
standin mpicc <<'END'
exit 0
END
standin cc <<'END'
echo 'cc 1.0'
END
standin mpirun <<'END'
[[ "$*" != *started* ]] || {
    [[ $STANDIN != no-launcher ]] || { echo 'mpirun: error while loading shared libraries: libopen-rte.so.40' >&2; exit 127; }
    printf 'started\nstarted\n'
    exit
}
while (($#)) && [[ $1 != */psring ]]; do shift; done
[[ ! $1 ]] || exec "$@"
END
# Builds by copying.
standin cmake <<'END'
case "$*" in
--version) echo 'cmake version 3.25.1' ;;
--build*) ;;
*)
    printf '%s\n' "$@" >"$FOLDER/cmake.log"
    while [[ $1 != -B ]]; do shift; done
    mkdir -p "$2/tests/emulation"
    cp "$FOLDER/bin/psring-standin" "$2/psring"
    cp "$FOLDER/bin/compare" "$2/tests/compare_weights"
    [[ $STANDIN == no-test ]] || cp "$FOLDER/bin/ops" "$2/tests/emulation/cuda_ops"
    [[ $STANDIN == no-nccl ]] && found=NCCL_LIBRARY-NOTFOUND || found=/usr/lib/libnccl.so
    printf 'NCCL_LIBRARY:FILEPATH=%s\nNCCL_INCLUDE_DIR:PATH=/usr/include\n' $found >"$2/CMakeCache.txt"
    ;;
esac
END
standin ctest <<'END'
echo ' 1/2 Test #88: cuda_ops .........................   Passed    4.39 sec'
[[ $STANDIN != test-fails ]] ||
    { echo ' 2/2 Test #90: cuda_train .......................***Failed   0.01 sec'; echo 'cuda_train: failed: one step: gradients'; exit 8; }
[[ $STANDIN != skips ]] || echo ' 2/2 Test #90: cuda_train .......................***Skipped   0.01 sec'
END
standin ops <<'END'
echo 'cuda_ops: 0 failures'
END
standin compute-sanitizer <<'END'
echo "$*" >>"$FOLDER/sanitizer.log"
echo '========= COMPUTE-SANITIZER'
case $STANDIN in
finds) [[ "$*" != *initcheck* ]] || { echo '========= Uninitialized __global__ memory read'; exit 9; } ;;
slow) sleep 1000 ;;
unsupported) echo '========= Error: Device not supported. Please refer to the documentation'; exit 255 ;;
does-not-run) echo '========= ERROR SUMMARY: 0 errors'; exit 0 ;;
esac
exec "${!#}"
END
# Two steps and the start of a third. Each step has 30 us of psring's kernels and 70 us of cuBLAS.
standin ncu <<'END'
while [[ $1 != --log-file ]]; do shift; done
exec >"$2"
echo '==PROF== Connected to process 1'
[[ $STANDIN != no-counters ]] || { echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; exit 1; }
echo '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
id=0
for kernel in fill gather_pixels lower sgemm gather_pixels lower sgemm gather_pixels lower; do
    case $kernel in
    sgemm) name='void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params, int)' ns='70,000' ;;
    *) name="void $kernel<4>(lowering, unsigned long, const vector<(int)4> *)" ns='15,000' ;;
    esac
    [[ $STANDIN != no-step || $kernel != gather_pixels ]] || name=other
    printf '"%d","1","%s","dram__bytes.sum","byte","3,000,000"\n' $id "$name"
    printf '"%d","1","%s","gpu__time_duration.sum","ns","%s"\n' $id "$name" $ns
    id=$((id + 1))
done
END
standin tar <<'END'
[[ $STANDIN != no-tar ]] || exit 1
exec "$(type -ap tar | sed -n 2p)" "$@"
END
# A checkpoint is one word.
standin compare <<'END'
[[ $STANDIN != no-number ]] || { echo 'relative -nan' && exit; }
[[ $(cat "$1") == "$(cat "$2")" ]] && echo 'relative 0' || echo 'relative 1e-07'
END
standin psring-standin <<'END'
value() # OPTION ARGUMENT...
{
    local option=$1
    shift
    while (($# > 1)); do [[ $1 != "$option" ]] || { echo "$2" && return; }; shift; done
}
# One of three ranks. Ranks 0 and 1 end when rank 2 is killed or stopped.
rank()
{
    local rank=$(value --rank "$@") peer=$FOLDER/peer.$(value --rendezvous "$@" | tr -dc 0-9)
    [[ $rank != 2 ]] || { echo $$ >"$peer"; while true; do sleep 0.1; done; }
    until [[ -s $peer ]]; do sleep 0.05; done
    printf 'step\n1\n2\n' >"$(value --metrics "$@")"
    while [[ $STANDIN == peers-go-on || $(ps -o stat= "$(cat "$peer")") == [SR]* ]]; do sleep 0.05; done
    [[ $STANDIN == peers-silent ]] || echo 'psring: error: rank 2 is gone'
    [[ $STANDIN != peers-well ]] || exit 0
    exit 1
}
case $1 in
info)
    [[ $STANDIN == no-gpu ]] && echo '  [ ] cuda   no GPU can be used' || echo '  [X] cuda   ready'
    echo '  [X] nccl   2.28.9'
    ;;
bench)
    file=$(value --csv "$@")
    [[ "$*" != *--layers* ]] || exec cp "$FOLDER/compute.csv" "$file"
    echo "\"nccl_algorithm\": \"$([[ $STANDIN == tree ]] && echo tree/ll || echo ring/simple)\"" >"$(value --json "$@")"
    ;;
train)
    [[ "$*" != *--rendezvous* ]] || rank "$@"
    backend=$(value --backend "$@") checkpoint=$(value --checkpoint "$@") metrics=$(value --metrics "$@")
    weights=equal
    case "$*" in *--compress* | *--tf32*) [[ $STANDIN == no-difference ]] || weights=other ;; esac
    [[ $STANDIN != slow ]] || { echo >"$FOLDER/trains" && sleep 1000; }
    case $STANDIN-$backend-$(value --cuda-graph "$@")-$(value --device "$@") in
    ps-differs-ps-* | rounding-mpi-* | graph-differs-none-off-* | cpu-differs-*-cpu) weights=other ;;
    esac
    if [[ "$*" == *--resume* ]]; then
        [[ $STANDIN == anew ]] || echo 'continues after step 3'
        [[ $STANDIN != resume-differs ]] || weights=other
    fi
    if [[ $checkpoint ]]; then
        mkdir -p "$checkpoint"
        early=$weights
        [[ $STANDIN-$backend != drifts-mpi ]] || weights=other
        echo $early >"$checkpoint/model.step-00000003.checkpoint"
        echo $weights >"$checkpoint/model.step-00000006.checkpoint"
    fi
    accuracy=test_accuracy reached=0.991
    [[ $STANDIN != no-column ]] || accuracy=accuracy
    [[ $STANDIN != learns-little ]] || reached=0.98
    [[ ! $metrics ]] || printf "images_per_s,$accuracy\n1,0.5\n1000,$reached\n1100,$reached\n" >"$metrics"
    echo "weights sha256 $weights"
    ;;
esac
END
# A step of 128 images has 6.7 GFLOP, which take 100 us on an H200.
cat >"$folder/compute.csv" <<'END'
model,device,batch,layer,forward_ms,forward_flops,forward_bytes,backward_ms,backward_flops,backward_bytes
mlp,cuda,128,dense1,0.25,2680000000,1,0.5,4020000000,1
mlp,cuda,128,sum,0.25,2680000000,1,0.5,4020000000,1
mlp,cuda,128,step,0.7,6700000000,2,,,
END

# --- the whole ---------------------------------------------------------------------------------------

# Folders are relative to the caller's folder, which is not the tree.
cd "$folder"

# [DATA=] checked STANDIN EXIT-CODE LINE...: runs the whole check, with data or without. Checks the exit code and the
# lines of output (extended regular expressions).
checked()
{
    local standin=$1 expected=$2 rc=0 line
    shift 2
    rm -rf "$folder/out" "$folder/build" "$folder/sanitizer.log"
    STANDIN=$standin PATH=$folder/bin:$PATH PSRING_PREFIX='' "$check" --data "${DATA-data}" --out out --build build \
        >"$folder/log" 2>&1 || rc=$?
    ((rc == expected)) || fail "$standin: exit code $rc, expected $expected:"
    for line; do
        grep -qE "^ *$line" "$folder/log" || fail "$standin: no '$line' in:"
    done
}

# shown LINE...: the page has these lines.
shown()
{
    cp "$folder/out/gpu_check.md" "$folder/log"
    for line; do
        grep -qE -- "$line" "$folder/log" || fail "the page has no '$line':"
    done
}

# The check refuses an --out folder with other files.
mkdir taken
touch taken/mine
! PATH=$folder/bin:$PATH "$check" --data data --out taken --build build >"$folder/log" 2>&1 ||
    fail "--out with other files: exit code 0, expected an error:"
[[ $(ls -A taken) == mine ]] || fail "--out with other files: now has $(ls -A taken):"
grep -q "taken' has other files than an earlier check's" "$folder/log" || fail "--out with other files: wrong error:"

# It refuses a --build folder with other files, and one that another check uses.
refuses_build() # WORDS
{
    ! PATH=$folder/bin:$PATH "$check" --data data --out out --build taken >"$folder/log" 2>&1 ||
        fail "--build with other files: exit code 0, expected an error:"
    grep -q "$1" "$folder/log" || fail "--build with other files: expected '$1' in:"
}
mkdir taken/gpu_check
refuses_build "taken' has files, and no earlier check made it"
[[ $(echo taken/*) == 'taken/gpu_check taken/mine' && ! -e out ]] ||
    fail "--build with other files: now has $(ls -A taken):"
mkdir taken/gpu_check.parts
exec {lock}<taken
flock "$lock"
refuses_build "another run uses '$folder/taken'; .* with --build"
exec {lock}<&-

all='versions configure build tests repeatable models nccl-2 nccl-4 agree-2 agree-4 accuracy tf32 resume sanitizer peers speed kernels roofline'
checked well 0 'tf32 +passed +[0-9]+ s  from FP32 1e-07' 'goal met FP32: as fast as PyTorch with a CUDA graph \(1\.17' \
    'goal missed TF32: as fast as PyTorch with a CUDA graph \(0\.53' 'goal missed FP32: a step within 2 x' \
    'build +passed .*nccl 2\.28\.9$' \
    'kernels .*all: |kernels .* 3 kernels take 100\.0 us a step and move 9\.0 MB; most: cuBLAS, 70%' \
    'peers .*killed: the others ended within .*stopped: the others'
[[ $(awk -F'|' '$2 == "passed" { print $1 }' "$folder/build/gpu_check.parts/parts.txt" | paste -sd' ') == "$all" ]] ||
    fail "expected that all parts pass, in order:"
[[ $(grep -cxE -- "--tool (memcheck --report-api-errors no|initcheck) --error-exitcode 9 $folder/build/tests/emulation/cuda_ops" "$folder/sanitizer.log") == 2 ]] ||
    fail "compute-sanitizer was called with: $(cat "$folder/sanitizer.log")"
grep -qx -- "-DMPI_C_COMPILER=$folder/bin/mpicc" "$folder/cmake.log" ||
    fail "CMake could find another MPI: $(cat "$folder/cmake.log")"
shown '^# psring on a GPU: NVIDIA H200$' '^\*\*Passed\*\*: all 18 parts\.$' '^Goals of speed: 1 of 3 met\.$' \
    '^\| psring \| FP32 \| 1050 \| 121904\.8 \| 1050 to 1050 \| 3 \| 1\.17 \|$' \
    '^\| PyTorch, graph \| TF32 \| 2000 .* \| 1\.00 \|$' \
    '^- \*\*missed\*\*: TF32: as fast' '^ dense1 ' '^ lower  +1\.0 +15\.00 +15\.0% +3\.00 +200$' '^- 4 ranks: passed; .*ring/simple$' 'NVLink'
perl -MJSON::PP -0ne '
    my $all = decode_json($_);
    die "parts\n" unless @{$all->{parts}} == 18 && $all->{parts}[0]{what} eq "tools and libraries are there";
    die "goals\n" unless @{$all->{goals}} == 3 && $all->{goals}[0]{met} && !$all->{goals}[1]{met} && $all->{passed};' \
    "$folder/out/gpu_check.json" 2>"$folder/log" || fail "gpu_check.json: $(cat "$folder/out/gpu_check.json")"
tar -tzf "$folder/out/gpu_check.tar.gz" >"$folder/log"
for name in gpu_check.{json,md} {build,sanitizer,memcheck}.log {accuracy,speed,compute}.csv {roofline,kernels,parts,info}.txt killed.0.log; do
    grep -qx "./$name" "$folder/log" || fail "no $name in the archive:"
done

[[ $(cd "$folder/out" && echo *) == 'gpu_check.json gpu_check.md gpu_check.tar.gz' ]] ||
    fail "the results are $(ls "$folder/out"):"

# The check names a launcher that cannot start before it builds.
checked no-launcher 1 'versions +failed .*mpirun .* cannot start two processes: .*loading shared libraries' 'build +not run'

# Without a build no part runs, and the page reports that.
checked no-nccl 1 'configure +failed .*NCCL was not found' 'build +not run .*needs configure' 'roofline +not run'
shown '^\*\*Failed\*\*: of 18 parts 1 passed; failed: 1 \(configure\); had no time: 0; not run: 16 \(build, .*roofline\)' '^Not measured: needs configure, which did not pass\.$'

# Almost no time is left, by the shell's clock.
SECONDS=557 checked well 1 'versions +no time' 'build +not run'
limits=$(grep -o '\bpart [a-z0-9-]* [0-9]\+' "$check" | sed 's/.* //' | paste -sd+)
limit=$(sed -n 's/^LIMIT_S=\([0-9]*\).*/\1/p' "$check")
((limits <= limit)) || fail "the limits of all parts add up to $limits s, expected at most LIMIT_S ($limit s)"
DATA='' checked no-tar 1 'roofline +passed' # faster: most parts need data
grep -q '"passed": false,' "$folder/out/gpu_check.json" ||
    fail "without an archive the check must fail: $(cat "$folder/out/gpu_check.json")"
echo "the whole: $all"

# interrupted SIGNAL EXIT-CODE: signals the check while a part and the sanitizer run.
interrupted()
{
    local rc=0 process started left
    rm -rf "$folder/out" "$folder/build" "$folder/trains"
    STANDIN=slow PATH=$folder/bin:$PATH PSRING_PREFIX='' "$check" --data data --out out --build build >"$folder/log" 2>&1 &
    process=$!
    for ((started = SECONDS; SECONDS - started < GUARD_S; )); do
        [[ ! -e $folder/trains ]] || break
        sleep 0.1
    done
    [[ -e $folder/trains ]] || fail "no part has begun:"
    within pgrep -f "$folder/bin/compute-sanitizer" || fail "the sanitizer does not run at the same time:"
    kill -"$1" "$process" # the part sleeps for 1,000 s
    wait "$process" || rc=$?
    ((rc == $2)) || fail "SIG$1: exit code $rc, expected $2:"
    left=$(pgrep -af "$folder/" || true)
    [[ ! $left ]] || fail "SIG$1: processes still run: $left"
    left=$(find "$folder/build" -name 'part.*')
    [[ ! $left ]] || fail "SIG$1: files are left: $left"
    echo "SIG$1 ends the check and all its processes"
}
interrupted TERM 143
interrupted INT 130

# --- part by part ------------------------------------------------------------------------------------

export build=$folder/build out=$folder/out data=$folder/data work=$folder/work gpu='NVIDIA H200, 580.0, 1 MiB'
cd "$root"

# [LIMIT=] ends STANDIN EXIT-CODE DETAIL FUNCTION [ARGUMENT...]: runs the function of a part in a new build folder.
# Checks its exit code and its last detail. LIMIT replaces PEER_LIMIT_S.
ends()
{
    local standin=$1 expected=$2 words=$3 rc=0
    shift 3
    rm -rf "$build" "$out" "$work"
    mkdir "$build" "$out" "$work"
    # shellcheck disable=SC2016  # the other shell's
    STANDIN=$standin PATH=$folder/bin:$PATH timeout 60 bash -c '. experiments/gpu_check/parts.sh
        [[ $1 == versions || $1 == configure ]] || configure >/dev/null
        [[ $1 != speed && $1 != run_tests ]] || build >/dev/null
        PEER_LIMIT_S=${LIMIT:-$PEER_LIMIT_S}
        "$@"' part "$@" >"$folder/log" 2>&1 || rc=$?
    ((rc == expected)) || fail "$standin: exit code $rc, expected $expected:"
    [[ ! $words ]] || sed -n 's/^detail //p' "$folder/log" | tail -1 | grep -qE -- "$words" ||
        fail "$standin: no '$words' in the last detail:"
    echo "$standin: $(sed -n 's/^detail //p' "$folder/log" | tail -1)"
}

ends no-criterion 1 '^missing: criterion$' versions
ends old-driver 1 'driver is for CUDA 13.0, the toolkit is 14.1' versions
ends no-gpu 1 'no GPU: no GPU can be used' build
ends skips 1 'skipped: cuda_train' run_tests
ends test-fails 1 '1 passed, 1 failed, skipped: none; first: cuda_train: failed: one step: gradients' run_tests
ends no-test 1 'cuda_ops is missing' sanitize
ends finds 1 'memcheck: found nothing, initcheck: exit code 9' sanitize
ends does-not-run 1 'ended before the test did' sanitize
ends unsupported 77 'does not support this GPU' sanitize
ends tree 1 'tree/ll' bench_exact 2
ends rounding 0 'mpi 1e-07' agree 2
ends drifts 0 'mpi 0,' agree 2
ends ps-differs 1 'ps 1e-07' agree 2
ends no-number 1 '' agree 2
ends no-difference 1 'fp16 0 ' agree 2 fp16
ends no-difference 1 'from FP32 0 ' tf32
ends cpu-differs 0 'wide-cnn of 7 1e-07' models
ends graph-differs 1 '--cuda-graph off: other weights' repeatable
ends resume-differs 1 'weights other, without a break equal' resume
ends anew 1 'did not go on after step 3' resume
ends no-column 1 'accuracy  after' accuracy
ends learns-little 1 'accuracy 0.98 ' accuracy
ends peers-silent 1 'killed: the others ended within .* s, and said nothing' peer_gone
ends peers-well 1 'killed: rank 1 ended well' peer_gone
LIMIT=1 ends peers-go-on 1 'stopped: rank 1 still runs after 1 s' peer_gone
[[ ! $(pgrep -f "$build/psring") ]] || fail "ranks still run: $(pgrep -af "$build/psring")"
ends no-torch 0 'FP32: psring 1050; TF32: psring 1050;' speed
ends no-answer 1 'turn 1 of pytorch eager FP32 failed' speed
! kill -0 "$(cat "$folder/pytorch")" 2>/dev/null || fail "PyTorch still runs"
ends well 0 'FP32: psring 1050, PyTorch eager 900' speed
ends no-counters 77 'ERR_NVGPUCTRPERM' kernels
ends no-step 1 '' kernels
gpu='NVIDIA Other, 580.0, 1 MiB' ends well 77 'the peaks of this GPU are not known' roofline
