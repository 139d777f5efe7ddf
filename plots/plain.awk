# plain.awk: bench.csv without what figures do not draw: ranks that take turns on one GPU, compressed
# messages, and the transports that a backend was not seen with first.
BEGIN { FS = "," }

NR == 1 {
    for (i = 1; i <= NF; i++)
        column[$i] = i
    print
    next
}

function field(name) {
    return column[name] ? $column[name] : ""
}

field("network") == "time-slicing" || (field("compress") != "" && field("compress") != "none") { next }

!(field("backend") in transport) { transport[field("backend")] = field("transport") }

field("transport") == transport[field("backend")]
