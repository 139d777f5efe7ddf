# roofline.awk: the shortest possible time of a training step on a GPU, from the counts of psring bench --layers.
#
#   psring bench --layers --batch 128 --csv compute.csv       (any device: the counts are equal)
#   awk -v flops_per_s=67e12 -v bytes_per_s=4.8e12 -v kernels=27 -v gap_us=1 -f roofline.awk compute.csv
#
# The least time of a layer's pass is the larger of FLOPs / flops_per_s and bytes / bytes_per_s, marked f or b. Each
# kernel adds a gap of gap_us. Their number is in common/device/measured.csv. The option -v step_us=T compares the
# measured time of a whole step with the sum. If the file is from a GPU, it prints the measured times of layers. These
# include a wait of the host for every pass. The option -v brief=1 prints only the last line.

BEGIN {
    FS = ","
}

NR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    if (!("forward_flops" in column) || flops_per_s <= 0 || bytes_per_s <= 0) {
        print "roofline.awk: takes a file of bench --layers --csv, flops_per_s and bytes_per_s" > "/dev/stderr"
        bad = 1
        exit 2
    }
    next
}

function field(name) {
    return $column[name]
}

function show(text) {
    if (!brief)
        print text
}

# Prints one pass, and adds its least time to sum_us and to pass_us[pass].
function least(pass,    flops, bytes, flops_us, bytes_us, us, took) {
    flops = field(pass "_flops")
    bytes = field(pass "_bytes")
    us = field(pass "_ms") * 1e3
    took = field("device") == "cuda" && us > 0 ? sprintf("%.1f", us) : "-"
    flops_us = flops / flops_per_s * 1e6
    bytes_us = bytes / bytes_per_s * 1e6
    us = flops_us > bytes_us ? flops_us : bytes_us
    pass_us[pass] += us
    sum_us += us
    if (us == 0)
        return sprintf(" %9s %8s %9s  %10s", "-", "-", "-", took)
    return sprintf(" %9.1f %8.2f %8.1f%s  %10s", flops / 1e6, bytes / 1e6, us, flops_us > bytes_us ? "f" : "b",
        took)
}

# A file may hold several runs: the last one counts.
field("layer") != "sum" && field("layer") != "step" {
    if (done) {
        lines = 0
        done = sum_us = pass_us["forward"] = pass_us["backward"] = 0
    }
    model = field("model")
    batch = field("batch")
    line[++lines] = sprintf(" %-10s", field("layer")) least("forward") least("backward")
    next
}

{
    done = 1
}

END {
    if (bad)
        exit 2
    if (!done) {
        print "roofline.awk: no run in the file" > "/dev/stderr"
        exit 2
    }
    show(sprintf("# roofline: %s, batch %d, at %.1f TFLOP/s and %.2f TB/s; f, b: FLOPs or bytes decide", model, batch,
        flops_per_s / 1e12, bytes_per_s / 1e12))
    head = sprintf(" %9s %8s %9s  %10s", "MFLOP", "MB", "least us", "measured")
    show(sprintf("#%-10s", "") sprintf(" %39s %39s", "forward", "backward"))
    show(sprintf("#%-10s", "layer") head head)
    for (i = 1; i <= lines; i++)
        show(line[i])
    step = sum_us + kernels * gap_us
    show(sprintf("# least: forward %.1f us, backward and optimizer %.1f us; %d kernels, %.1f us apart: %.1f us",
        pass_us["forward"], pass_us["backward"], kernels, gap_us, kernels * gap_us))
    measured = "not measured"
    if (step_us > 0)
        measured = sprintf("measured %.1f us, %.2f x that, %.2f x the kernels' alone", step_us, step_us / step,
            step_us / sum_us)
    printf "estimate %.1f us a step (%.1f in kernels), %d images/s; %s\n", step, sum_us, batch / step * 1e6, measured
}
