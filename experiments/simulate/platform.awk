# platform.awk: writes a platform for SimGrid to standard output. -v options:
#
#   hosts           number of hosts: h0, h1, ...
#   rate            bytes/s of a host's link, each way (B)
#   latency         seconds of a message (a); the transport of psring-simulate adds it
#   burst           bytes that an idle link lets through before its rate applies; 0: none
#   header          bytes added to each message; 0: none, as in the closed forms
#   racks           switches with equal numbers of consecutive hosts; 1: all hosts at one
#   core            so many of the last hosts are outside the racks, where the racks' links meet
#   oversubscribed  rate of a rack's hosts together / rate of its link to the other racks
#   slow            hosts whose links have `slow_factor` of the rate: "FIRST-LAST" or "HOST"; "": none
#   slow_factor
#
# Each link has separate directions and no latency. SimGrid would add a latency to each message of a queue.
function number(value) {
    return sprintf("%.17g", value)
}
function link(id, bytes_per_s) {
    printf "    <link id=\"%s\" bandwidth=\"%sBps\" latency=\"0\" sharing_policy=\"SPLITDUPLEX\"/>\n", id, number(bytes_per_s)
}
function rack(r, first, end, h) {
    printf "  <zone id=\"rack%d\" routing=\"Cluster\">\n", r
    for (h = first; h < end; h++) {
        printf "    <host id=\"h%d\" speed=\"1Gf\"><prop id=\"latency\" value=\"%s\"/><prop id=\"header\" value=\"%s\"/><prop id=\"burst\" value=\"%s\"/></host>\n", h, number(latency), number(header), number(burst)
        link("l" h, rate * (h >= slow_first && h <= slow_last ? slow_factor : 1))
        printf "    <host_link id=\"h%d\" up=\"l%d_UP\" down=\"l%d_DOWN\"/>\n", h, h, h
    }
    printf "    <router id=\"switch%d\"/>\n  </zone>\n", r
}
BEGIN {
    slow_first = -1
    slow_last = -2
    if (slow != "") {
        count = split(slow, range, "-")
        slow_first = range[1] + 0
        slow_last = range[count] + 0
    }
    print "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">"
    print " <zone id=\"cluster\" routing=\"Full\">"
    hosts -= core
    for (r = 0; r < racks; r++)
        rack(r, int(r * hosts / racks), int((r + 1) * hosts / racks))
    for (r = 0; r < racks && racks + core > 1; r++)
        link("up" r, rate * hosts / racks / oversubscribed)
    if (core > 0) {
        rack(racks, hosts, hosts + core)
        link("up" racks, 1000 * rate * hosts)
    }
    if (racks + core > 1) {
        zones = racks + (core > 0)
        for (r = 0; r < zones; r++)
            for (to = 0; to < zones; to++)
                if (to != r)
                    printf "  <zoneRoute src=\"rack%d\" dst=\"rack%d\" gw_src=\"switch%d\" gw_dst=\"switch%d\" symmetrical=\"NO\"><link_ctn id=\"up%d\" direction=\"UP\"/><link_ctn id=\"up%d\" direction=\"DOWN\"/></zoneRoute>\n", r, to, r, to, r, to
    }
    print " </zone>\n</platform>"
}
