# against.awk: writes measured and simulated times as CSV. Reads the lines of measured.awk, and one row of -v csv=FILE
# per line.
BEGIN {
    print "backend,placement,workers,servers,bytes,link_bytes_per_s,measured_us,simulated_us,error"
    getline line <csv
    n = split(line, names, ",")
    for (i = 1; i <= n; i++)
        column[names[i]] = i
}
{
    getline line <csv
    split(line, fields, ",")
    split("backend placement workers servers bytes", same, " ")
    for (i = 1; i <= 5; i++)
        if (fields[column[same[i]]] != $i) {
            printf "against.awk: %s: measured with %s %s, simulated with %s\n", $0, same[i], $i, fields[column[same[i]]] >"/dev/stderr"
            exit 1
        }
    simulated = fields[column["time_us_median"]]
    printf "%s,%s,%s,%s,%s,%s,%s,%s,%.5f\n", $1, $2, $3, $4, $5, $6, $7, simulated, simulated / $7 - 1
}
