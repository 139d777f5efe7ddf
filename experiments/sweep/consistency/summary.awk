# summary.awk: after modes.awk, the tables, and which was first. -v seeds=N that were asked for; -v look=1: too few
# steps for an answer.

# As many digits as a ratio of two of them needs.
function seconds(time)
{
    return is_never(time) ? "never" : sprintf(time < 1 ? "%.3f" : time < 10 ? "%.2f" : "%.1f", time)
}

function range_of(m, slow)
{
    return runs[m, slow] < 2 ? seconds(time_of(m, slow, 0.5)) : sprintf("%s (%s-%s)", seconds(time_of(m, slow, 0.5)), \
        seconds(time_of(m, slow, 0)), seconds(time_of(m, slow, 1)))
}

function print_table(slow, i, m, bsp, rate)
{
    bsp = part_of(rates["bsp", slow], 0.5)
    printf "%-7s %9s %6s  %-22s %-8s %-10s %6s\n", "mode", "images/s", "x bsp", "s to " target "%", "reached", "staleness", "lost %"
    for (i = 1; i <= count; i++) {
        m = modes[i]
        if (!runs[m, slow])
            continue
        rate = part_of(rates[m, slow], 0.5)
        printf "%-7s %9.0f %6s  %-22s %-8s %-10s %6.1f\n", m, rate, (bsp > 0 ? sprintf("%.2f", rate / bsp) : "-"), \
            range_of(m, slow), reached[m, slow] + 0 "/" runs[m, slow], \
            most[m, slow] == "" ? "-" : sprintf("%.2f, %d", part_of(staleness[m, slow], 0.5), part_of(most[m, slow], 1)), \
            part_of(lost[m, slow], 0.5)
    }
}

# The best but `other`.
function best_of(slow, other, i, best)
{
    for (i = 1; i <= count; i++)
        if (runs[modes[i], slow] && modes[i] != other && !is_never(time_of(modes[i], slow, 0.5)) && \
            (best == "" || time_of(modes[i], slow, 0.5) < time_of(best, slow, 0.5)))
            best = modes[i]
    return best
}

function compared(m, slow, best)
{
    return sprintf("%s took %s s, %.2f times as long", m, seconds(time_of(m, slow, 0.5)), \
        time_of(m, slow, 0.5) / time_of(best, slow, 0.5))
}

function answer(slow, words, best, second, text, i, m)
{
    best = best_of(slow, "")
    if (best == "")
        return words ": none reached " target "% with more than half of the seeds."
    second = best_of(slow, best)
    text = sprintf("%s: %s was first to %s%%, after %s s", words, best, target, seconds(time_of(best, slow, 0.5)))
    if (second != "")
        text = text "; " compared(second, slow, best)
    if (best != "bsp" && second != "bsp" && runs["bsp", slow] && !is_never(time_of("bsp", slow, 0.5)))
        text = text ", " compared("bsp", slow, best)
    text = text "."
    if (second != "" && (seeds < 2 || time_of(second, slow, 0) <= time_of(best, slow, 1)))
        text = text sprintf(" That %s was before %s is %s.", best, second, seeds < 2 ? "of one seed only" : \
            "no more than the seeds differ")
    for (i = 1; i <= count; i++) {
        m = modes[i]
        if (reached[m, slow] < runs[m, slow])
            text = text sprintf(" %s did not reach it with %d of %d seeds (%.2f%% at best).", m, \
                runs[m, slow] - reached[m, slow], runs[m, slow], part_of(accuracies[m, slow], 1))
    }
    return text
}

END {
    print facts "; one dedicated server but for the ring; network=loopback. Medians of " seeds " seed" (seeds == 1 ? "" : "s") \
        ", ranges in brackets."
    print "Staleness: steps of the slowest other worker that parameters lacked, mean and most. Lost: steps that a late worker"
    print "left out, or whose gradients came too late."
    if (0 in cases) {
        print "\nAll workers alike:"
        print_table(0)
    }
    if (1 in cases) {
        split(straggler, parts, ":")
        printf "\nOne slow: worker %s computes %s times as long:\n", parts[1], parts[2]
        print_table(1)
    }
    print ""
    if (part_of(compute_ms, 1) > 1.25 * step_ms)
        printf "The cores were short: a step computed for up to %.0f ms instead of %s; give more --step-ms, or fewer workers.\n", \
            part_of(compute_ms, 1), step_ms
    if (look)
        print "--quick: some steps towards a low target. This shows what the script leaves; for an answer run it without."
    if (0 in cases)
        print answer(0, "All workers alike")
    if (1 in cases)
        print answer(1, "One slow worker")
}
