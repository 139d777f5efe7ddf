# shellcheck shell=bash
# json.sh: what scripts that write JSON load.

# json_string TEXT: without the control characters that it may not hold.
json_string()
{
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//$'\t'/\\t}
    printf '"%s"' "${text//[$'\001'-$'\037']/}"
}
