#!/usr/bin/env bash
# page.sh OUT: prints the page of a run of gpu_check.sh in Markdown, from the files of its parts in the folder OUT. The
# page names missing results.
set -euo pipefail
export LC_ALL=C
if (($# != 1)) || [[ ! -s $1/parts.txt || ! -s $1/run.txt || ! -e $1/goals.txt ]]; then
    echo "page.sh: takes the folder that gpu_check.sh has written to" >&2
    exit 2
fi
out=$1
IFS='|' read -r gpu commit time seconds limit finished <"$out/run.txt"

# counted RESULT: prints the number of parts with this result, and their names.
counted()
{
    awk -F'|' -v result="$1" '$2 == result { n++; names = names (n > 1 ? ", " : "") $1 }
        END { print n + 0 (n ? " (" names ")" : "") }' "$out/parts.txt"
}

# field_of PART NUMBER: prints a field of the part's line. 2 is the result, 6 the detail.
field_of()
{
    awk -F'|' -v name="$1" -v field="$2" '$1 == name { print $field }' "$out/parts.txt"
}

# block FILE PART: prints the file, or why it is missing.
block()
{
    if [[ -s $out/$1 ]]; then
        # shellcheck disable=SC2016  # Markdown's
        printf '```\n%s\n```\n' "$(cat "$out/$1")"
    else
        echo "Not measured: $(field_of "$2" 6)."
    fi
}

verdict()
{
    local all passed skipped
    all=$(wc -l <"$out/parts.txt")
    passed=$(grep -c '^[^|]*|passed|' "$out/parts.txt") || true
    skipped=$(grep -c '^[^|]*|skipped|' "$out/parts.txt") || true
    if [[ ! $finished ]]; then
        echo "**Unfinished**: the check ended after $all parts (the last is $(tail -n 1 "$out/parts.txt" | cut -d '|' -f 1));" \
            "$passed passed; failed: $(counted failed); skipped: $(counted skipped)."
    elif ((passed == all)); then
        echo "**Passed**: all $all parts."
    elif ((passed + skipped == all)); then
        echo "**Passed**, but not all of it: of $all parts $passed passed; skipped: $(counted skipped)."
    else
        echo "**Failed**: of $all parts $passed passed; failed: $(counted failed); had no time: $(counted 'no time');" \
            "not run: $(counted 'not run'); skipped: $(counted skipped)."
    fi
    if [[ -s $out/goals.txt ]]; then
        echo "Goals of speed: $(grep -c '^met' "$out/goals.txt") of $(wc -l <"$out/goals.txt") met."
    fi
}

# Prints the median rate of each program, and its ratio to PyTorch with a CUDA graph.
rates()
{
    if [[ ! -s $out/speed.csv ]] || (($(wc -l <"$out/speed.csv") < 2)); then
        echo "Not measured: $(field_of speed 6)."
        return
    fi
    awk -F, 'NR > 1 { print $1 "," $3 "," $2 "," $5 }' "$out/speed.csv" | sort -t, -k2,2 -k1,1 -k3,3 -k4,4g | awk -F, '
        function close_group(    middle) {
            if (!n)
                return
            middle = (value[int((n + 1) / 2)] + value[int(n / 2) + 1]) / 2
            name[++rows] = label
            precision[rows] = now
            rate[rows] = middle
            low[rows] = value[1]
            high[rows] = value[n]
            turns[rows] = n
            if (label == "PyTorch, graph")
                graph[now] = middle
            n = 0
        }
        $1 "," $2 "," $3 != key {
            close_group()
            key = $1 "," $2 "," $3
            now = $2
            label = $1 == "pytorch" ? "PyTorch, " $3 : "psring"
        }
        { value[++n] = $4 }
        END {
            close_group()
            print "| | precision | images/s | us a step | lowest to highest | turns | of PyTorch with a graph |"
            print "| --- | --- | ---: | ---: | --- | ---: | ---: |"
            for (i = 1; i <= rows; i++)
                printf "| %s | %s | %.0f | %.1f | %.0f to %.0f | %d | %s |\n", name[i], precision[i], rate[i], 128e6 / rate[i],
                    low[i], high[i], turns[i], graph[precision[i]] ? sprintf("%.2f", rate[i] / graph[precision[i]]) : "-"
        }'
}

cat <<PAGE
# psring on a GPU: ${gpu%%,*}

$(verdict)

Commit $commit, $time, $seconds of $limit s. GPU, driver, memory: $gpu.

## What was run

The most important parts come first. "No time" and "not run" count as failed. No part with several ranks measures time, because the ranks share one GPU.

| part | what it shows | result | s | of | |
| --- | --- | --- | ---: | ---: | --- |
$(awk -F'|' '{ printf "| %s | %s | %s | %s | %s | %s |\n", $1, $5, $2 == "passed" ? $2 : "**" $2 "**", $3, $4, $6 }' "$out/parts.txt")

## Images/s

One process, keras-cnn, batch 128, SGD with momentum, data on the GPU. The programs alternate.
PyTorch: $(sed -n 's/^PyTorch: //p' "$out/pytorch.txt" 2>/dev/null || true). psring: rate of an epoch without tests; steps are CUDA graphs.

$(rates)

$(sed 's/^met /- met: /; s/^missed /- **missed**: /' "$out/goals.txt")

## Each layer compared with its shortest time

The shortest time is the longer of two: FLOPs at the data sheet's peak, and bytes at the memory's rate. Layers are measured one by
one, with a wait of the host for each, so their sum exceeds a step.

$(block roofline.txt roofline)

## Time by kernel

$(block kernels.txt kernels)

## NCCL

- 2 ranks: $(field_of nccl-2 2); $(field_of nccl-2 6)
- 4 ranks: $(field_of nccl-4 2); $(field_of nccl-4 6)

For NCCL each rank is a separate host (\`NCCL_HOSTID\`), so ranks communicate through sockets.

## What one GPU cannot show

- NCCL between GPUs: NVLink, PCIe, GPUDirect and InfiniBand, its bandwidth and latency, the order of its rings.
- A GPU for each rank: which one a rank takes, peer access, several devices at once.
- Overlap of computation and averaging, scaling, and all times of several ranks: here they share one GPU by time-slicing.
- An MPI library that is CUDA-aware, unless this one is: gradients went through pinned host memory.
- Other GPUs than this one, and other versions than these:

$(block versions.txt versions)

$([[ ! -s $out/info.txt ]] || block info.txt build)
PAGE
