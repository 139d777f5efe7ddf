# points.awk: after modes.awk, for plots/consistency.gp: modes.txt, a line for each kind of consistency, twice what is alike
# and then what is with one slow: images/s; seconds to the target, their least and most, -1: never. NaN: not measured.
# consistency_facts.gp: what is on top.

function number(time)
{
    return is_never(time) ? -1 : time
}

function put_case(m, slow)
{
    if (!runs[m, slow])
        return " NaN NaN NaN NaN"
    return sprintf(" %s %s %s %s", part_of(rates[m, slow], 0.5), number(time_of(m, slow, 0.5)), \
        number(time_of(m, slow, 0)), number(time_of(m, slow, 1)))
}

END {
    for (i = 1; i <= count; i++)
        print modes[i] put_case(modes[i], 0) put_case(modes[i], 1) >"modes.txt"
    split(straggler, parts, ":")
    printf "SLOW = '%s times as long'\nTARGET = '%s'\nFACTS = '%s'\n", parts[2], target, facts "; network=loopback" >"consistency_facts.gp"
}
