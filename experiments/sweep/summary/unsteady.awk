# unsteady.awk: the measurements that something disturbed, for a reader and for run_scaling.sh.

# The words that run_scaling.sh has for it: CONFIGURATION WORKERS.
function plan_name(key, who) {
    who = part_of(key, 1)
    gsub(/, over |, /, "+", who)
    gsub(/ /, "-", who)
    return who " " part_of(key, 2)
}

# Those to be measured again, a line each: with the most workers first, of these the ring first.
function list_unsteady(key, seen, name, sort) {
    sort = "sort -k1,1nr -k2,2nr | cut -d ' ' -f 3-"
    for (key in unsteady) {
        if (key in in_slots)
            continue
        name = plan_name(key)
        if (!seen[name]++)
            print part_of(key, 2), part_of(key, 1) == "ring", name, unsteady[key] | sort
    }
    close(sort)
}

function print_unsteady(key, sort) {
    fflush() # sort writes after what stands here already
    sort = "sort -V"
    for (key in unsteady)
        printf "Not steady: %s, %s, %s: %s\n", part_of(key, 1), counted(part_of(key, 2), "worker"), size_text(part_of(key, 3)), unsteady[key] | sort
    close(sort)
}
