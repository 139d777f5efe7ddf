# refusals.awk: reads C files and writes each error with which psring refuses a command line, a file or a machine:
# FILE:LINE<TAB>THING<TAB>FOUND<TAB>EXPECTED<TAB>REMEDY<TAB>TEXT. A column is 1 if the text has that part. A text that only
# passes on another message ("%s: %s") is left out, because the other message is judged where it is made.

# The adjacent string literals at the beginning of `rest`, as one text. A name between them is a macro.
function literals(rest, text) {
    text = ""
    for (;;) {
        sub(/^[ \t\n\\]+/, "", rest)
        if (match(rest, /^"([^"\\]|\\.)*"/))
            text = text substr(rest, 2, RLENGTH - 2)
        else if (match(rest, /^(PRI[a-zX0-9]+)/))
            text = text "d"
        else if (match(rest, /^[A-Z][A-Z_]+/))
            text = text (rest ~ /^[A-Z_]+[ \t\n]*[",)}]/ ? text_of[substr(rest, 1, RLENGTH)] : "")
        else
            return text
        rest = substr(rest, RLENGTH + 1)
    }
}

function line_at(before) {
    return gsub(/\n/, "\n", before) + 1
}

# judge: writes the row of a text. generated: the caller of the message adds the thing and what was found.
function judge(text, line, generated, thing, found, expected, remedy) {
    if (text == "" || text ~ /^[-%a-z ]*: %s$/ && text !~ /cannot/)
        return
    thing = generated || text ~ /^(--|%s|'%s'|[a-z_]+:)/ || text ~ /^[^;,]*: / || text ~ /%/
    found = generated || text ~ /%|found| is | are | has | was | came | cannot | not | no |without|needs|[0-9]|omitted|sums /
    expected = text ~ /expected|at most|at least|needs|only|must|takes|one of|same|there is |instead/
    remedy = text ~ /(^|[:;,(] ?|or |and |to )(use|configure|begin|add|give|leave|omit|start|run|set|install|build|choose|name|free|make|lower|raise|take|put|write|try|end|remove|delete|move|download|fetch|update|report|record|measure|let|pass|wait|check|do|see|change|average|train|please|call|create|keep|show|rebuild|unset|close|mount|bind|increase|reduce|allow|upgrade|pin|map|submit|request|fit|compare|look|turn|draw|say|continue|repeat|resume)[ s]|lists/
    printf "%s:%d\t%d\t%d\t%d\t%d\t%s\n", FILENAME, line, thing, found, expected, remedy, text
}

BEGIN { RS = "\001" }
{
    # Macros that hold a text.
    rest = $0
    while (match(rest, /#define [A-Z_]+[ \t\\\n]+"/)) {
        name = substr(rest, RSTART + 8)
        sub(/[ \t\\\n].*/, "", name)
        rest = substr(rest, RSTART + RLENGTH - 1)
        text_of[name] = literals(rest)
    }
    rest = $0
    done = 0
    while (match(rest, /FAIL\([ \n]*STATUS_(USAGE|INPUT|UNSUPPORTED),[ \n]*/)) {
        line = line_at(substr($0, 1, done + RSTART))
        done += RSTART + RLENGTH - 1
        rest = substr(rest, RSTART + RLENGTH)
        judge(literals(rest), line, 0)
    }
    rest = $0
    done = 0
    while (match(rest, /(NEEDS|EXCLUDES), "[a-z0-9-]+", (NULL|"[^"]*"),[ \n]*/)) {
        line = line_at(substr($0, 1, done + RSTART))
        done += RSTART + RLENGTH - 1
        rest = substr(rest, RSTART + RLENGTH)
        judge(literals(rest), line, 1)
    }
}
