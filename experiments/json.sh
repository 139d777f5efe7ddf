# shellcheck shell=bash
# json.sh: for scripts that write JSON.

# json_string TEXT: prints a JSON string, without the control characters that JSON forbids.
json_string()
{
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//$'\t'/\\t}
    printf '"%s"' "${text//[$'\001'-$'\037']/}"
}
