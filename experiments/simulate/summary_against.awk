# summary_against.awk: prints against.csv as a table. Fails if a row is off by more than 5%.
BEGIN {
    FS = ","
    print "\nSimulated compared with measured (WRONG: off by more than 5%), ms:\n"
    printf "  %-8s %-10s %7s %7s %10s %10s %10s %8s\n", "backend", "placement", "workers", "servers", "bytes", "measured", "simulated", "error"
}
NR > 1 {
    bad = $9 > 0.05 || $9 < -0.05
    wrong += bad
    printf "  %-8s %-10s %7d %7d %10d %10.2f %10.2f %7.2f%%%s\n", $1, $2, $3, $4, $5, $7 / 1e3, $8 / 1e3, 100 * $9, bad ? " WRONG" : ""
}
END {
    printf "\n%d of %d rows within 5%%.\n", NR - 1 - wrong, NR - 1
    exit wrong > 0 || NR < 2
}
