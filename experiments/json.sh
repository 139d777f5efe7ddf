# shellcheck shell=bash
# json.sh: what scripts that write JSON load.

# json_string TEXT: without the control characters that it may not hold.
json_string()
{
    printf '"%s"' "$(tr -d '\000-\010\012-\037' <<<"$1" | sed 's/\\/\\\\/g; s/"/\\"/g; s/\t/\\t/g')"
}
