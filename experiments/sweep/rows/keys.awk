# keys.awk: measurements have keys: configuration, workers and bytes. What follows from a key, and lists in order.

# Part 1 of a key is its configuration, 2 the workers, 3 the bytes.
function part_of(key, which, part) {
    split(key, part, SUBSEP)
    return part[which]
}

function configuration(backend, placement, servers, algorithm) {
    if (backend == "mpi")
        return "mpi " (algorithm == "" ? "default" : algorithm)
    return backend == "ps" ? "ps " placement " " servers : backend
}

# The measurement that a column of the tables shows: ps1 and psW, servers on machines of their own;
# inW, in all workers; mixed, W/2 spare ones as well; mpi, the fastest algorithm.
function key_of(column, workers, bytes, who) {
    if (column == "mpi")
        return ((workers, bytes) in fastest) ? fastest[workers, bytes] : ""
    who = column == "ps1" ? "ps dedicated 1" : column == "psW" ? "ps dedicated " workers : \
        column == "in1" ? "ps colocated 1" : column == "inW" ? "ps colocated " workers : \
        column == "mixed" ? "ps mixed " int(workers / 2) : column
    return who SUBSEP workers SUBSEP bytes
}

# The same over `transport`, its own or a further one.
function key_over(column, transport, workers, bytes, key, who, word) {
    key = key_of(column, workers, bytes)
    who = part_of(key, 1)
    split(who, word, " ")
    return transport == own_transport[word[1]] ? key : who ", over " transport SUBSEP workers SUBSEP bytes
}

# With how many workers transports are compared: the most that went over a further one; else the most.
function compared_workers(i, w, list, count) {
    for (i = 1; i <= variants; i++)
        if (part_of(varied[i], 1) ~ /, over [a-z]+$/ && part_of(varied[i], 2) + 0 > w + 0)
            w = part_of(varied[i], 2)
    if (w)
        return w
    count = sorted(bench_workers, list)
    return count ? list[count] : 0
}

# The model's gradient if it was measured with so many workers, else the largest message that was.
function focus(workers, count, list, i) {
    if ((workers, model_bytes) in sizes_of)
        return model_bytes
    count = sorted(sizes, list)
    for (i = count; i > 0; i--)
        if ((workers, list[i]) in sizes_of)
            return list[i]
    return 0
}

# Did the processors limit it?
function limits(key) {
    return busy[key] != "" && busy[key] > CPU_LIMITED && !disturbed(key)
}

# Did other processes keep them busy, without which they would not have been the limit?
function disturbed(key) {
    return busy[key] > CPU_LIMITED && other[key] != "" && other[key] >= CPU_OTHER && busy[key] - other[key] <= CPU_LIMITED
}

# Of all machines that a measurement takes, the servers' own among them.
function efficiency_a_machine(key) {
    return efficiency[key] == "" ? "" : efficiency[key] * part_of(key, 2) / machines_of[key]
}

# Sorts list[1..count] by value[item], ascending.
function sort_by(value, list, count, i, j, swap) {
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && value[list[j]] + 0 < value[list[j - 1]] + 0; j--) {
            swap = list[j]
            list[j] = list[j - 1]
            list[j - 1] = swap
        }
}

# The numbers that `set` has as its indices, ascending.
function sorted(set, list, item, count, value) {
    count = 0
    for (item in set)
        list[++count] = value[item + 0] = item + 0
    sort_by(value, list, count)
    return count
}
