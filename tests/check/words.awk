# words.awk: reads source files and Markdown, and writes a row for each sentence with the reasons to read it twice:
# FOLDER<TAB>FILE:LINE<TAB>WORDS<TAB>FLAGS<TAB>REASONS<TAB>SENTENCE. FLAGS is 0 for a plain sentence.
# Texts are comments, Markdown paragraphs, list items, table cells, and string literals of option tables.

function folder_of(path, parts, n) {
    n = split(path, parts, "/")
    return n == 1 ? "." : n == 2 ? parts[1] : parts[1] "/" parts[2]
}

# Writes the row of a sentence whose passage began on line `line`.
function judge(sentence, line, words, count, why, flags, lower) {
    gsub(/^[ \t]+|[ \t]+$/, "", sentence)
    count = split(sentence, words, /[ \t]+/)
    if (count < 4)
        return
    lower = " " tolower(sentence) " "
    gsub(/[^a-z' -]/, " ", lower) # "stand-in" is one word
    gsub(/ +/, " ", lower)
    if (sentence ~ /^(Of|Where|Who|What|Which|Whoever|So|Nor|Left|Such|Beside)[ ,]/ && sentence !~ /\?$/) {
        why = why " inverted"; flags++
    }
    if (lower ~ / (nobody|somebody|whoever|whatever|who does|who is|told|tells|says so|is said|are said|they say) /) {
        why = why " who?"; flags++
    }
    if (lower ~ / (beside|goes on|go on|went on|by turns|held against|hold against|as it is|as they are|so many|so long|of its own|of their own|at hand|lest|by itself|anew|in the midst|once more|has a say|stand in|stands in|stand for|stands for) /) {
        why = why " idiom"; flags++
    }
    if (count > 28) {
        why = why " long"; flags++
    }
    if (gsub(/[;:] /, "&", sentence) >= 3) {
        why = why " chain"; flags++
    }
    printf "%s\t%s:%d\t%d\t%d\t%s\t%s\n", folder, FILENAME, line, count, flags, why, substr(sentence, 1, 200)
}

# Splits a passage into sentences: a paragraph, a cell, or the text of a comment.
function passage(text, line, at, from) {
    gsub(/`[^`]*`/, "X", text)
    while (match(text, /\[[^\]]*\]\([^)]*\)/)) {
        from = substr(text, RSTART + 1, RLENGTH - 1)
        sub(/\]\(.*/, "", from)
        text = substr(text, 1, RSTART - 1) from substr(text, RSTART + RLENGTH)
    }
    while (match(text, /[.!?][ \t]+[A-Z"(`*]/)) {
        judge(substr(text, 1, RSTART), line)
        text = substr(text, RSTART + RLENGTH - 1)
    }
    judge(text, line)
}

function add(text) {
    if (held == "")
        held_line = FNR
    held = held == "" ? text : held " " text
}

function flush() {
    if (held != "")
        passage(held, held_line)
    held = ""
}

function flush_string() {
    if (literal != "" && split(literal, unused, /[ \t]+/) > 5)
        passage(literal, literal_line)
    literal = ""
}

# Adds a line of a comment, without its leading star.
function comment(text) {
    if (text ~ /^[ \t]*\*?   /) # preformatted
        flush()
    else {
        sub(/^[ \t*]+/, "", text)
        sub(/[ \t]+$/, "", text)
        if (text == "" || text ~ /^-+/)
            flush()
        else
            add(text)
    }
}

function markdown(line, cells, n, i) {
    if (line ~ /^```/) {
        fenced = !fenced
        flush()
    } else if (fenced || line ~ /^(    |#)/ || line ~ /^[ \t]*$/)
        flush()
    else if (line ~ /^\|/) {
        flush()
        n = split(line, cells, "|")
        for (i = 2; i < n; i++) {
            if (split(cells[i], unused, /[ \t]+/) > 7)
                passage(cells[i] ".", FNR)
        }
    } else {
        if (line ~ /^[ \t]*([-*]|[0-9]+\.)[ \t]/) {
            flush()
            sub(/^[ \t]*([-*]|[0-9]+\.)[ \t]+/, "", line)
        }
        sub(/^[ \t]+/, "", line)
        add(line)
    }
}

# Reads C and similar languages. State between lines: inside (a comment), literal (adjacent strings so far).
function code(line, at, rest) {
    rest = line
    while (rest != "" || inside) {
        if (inside) {
            at = index(rest, "*/")
            comment(at ? substr(rest, 1, at - 1) : rest)
            if (!at)
                return
            flush()
            inside = 0
            rest = substr(rest, at + 2)
        } else if (match(rest, /^[ \t]+/))
            rest = substr(rest, RLENGTH + 1)
        else if (substr(rest, 1, 2) == "/*") {
            inside = 1
            rest = substr(rest, 3)
        } else if (substr(rest, 1, 2) == "//") {
            comment(substr(rest, 3))
            return
        } else if (match(rest, /^"([^"\\]|\\.)*"/)) {
            if (literal == "")
                literal_line = FNR
            literal = literal substr(rest, 2, RLENGTH - 2)
            rest = substr(rest, RLENGTH + 1)
        } else if (match(rest, /^'([^'\\]|\\.)*'/)) {
            literal = ""
            rest = substr(rest, RLENGTH + 1)
        } else {
            if (options)
                flush_string()
            literal = ""
            match(rest, /^([A-Za-z0-9_]+|.)/)
            rest = substr(rest, RLENGTH + 1)
        }
    }
}

function script(line) {
    if (line ~ /^[ \t]*#/ && line !~ /^#!/) {
        sub(/^[ \t]*#/, "", line)
        if (line ~ /^[ \t]*$/)
            flush()
        else if (line !~ /^    /) {
            sub(/^[ \t]+/, "", line)
            add(line)
        }
    } else
        flush()
}

FNR == 1 {
    flush()
    inside = fenced = 0
    literal = ""
    folder = folder_of(FILENAME)
    kind = FILENAME ~ /\.md$/ ? "markdown" : FILENAME ~ /\.(c|h|cu|cuh|cc|cpp|js)$/ ? "code" : "script"
    options = FILENAME ~ /config_table|option|command|psring/
}
kind == "markdown" { markdown($0) }
kind == "code" { code($0); if (!inside && $0 !~ /^[ \t]*\/\//) flush() }
kind == "script" { script($0) }
END { flush() }
