#!/usr/bin/env bash
# test_page.sh MAKE-DATASET PRINT-COSTS [--short | FOLDER]: a small run's report in headless Chromium. Every chart has
# its data. The replay plays to its end. Sliders change the numbers. The formulas equal the program's. The page has no error
# and makes no request.
#
# --short: a narrow and a wide window. With FOLDER, which then holds a run, it writes screenshots there. Skipped without
# Chromium.
set -uo pipefail

# shellcheck source-path=SCRIPTDIR source=../lib/train_lib.sh
. "$(dirname "$0")/../lib/train_lib.sh"
print_costs=$1 shots=''
((short)) || shots=${2:-}
widths=(390 1280 2560)
browser=$(command -v chromium || command -v chromium-browser) || skip "no Chromium, which the page is used in; setup.sh --ci installs it"

# browse PAGE OPTION...: prints the final document of the page. Complaints of the browser itself are ignored.
browse()
{
    local page=$1
    shift
    timeout 120 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
        --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$folder/profile" --virtual-time-budget=20000 "$@" "file://$page" 2>"$folder/browser"
}

# A run of four workers over loopback, as run_scaling.sh would leave it.
small_run()
{
    local shape ranks
    run=$folder/run
    mkdir "$run"
    for shape in "2 ring" "4 ring" "3 ps --servers 1 --placement dedicated" "5 ps --servers 1 --placement dedicated" \
        "4 ps --servers 4 --placement colocated"; do
        read -ra shape <<<"$shape"
        ranks=${shape[0]}
        "$lib/ranks.sh" "$ranks" "$psring" bench --backend "${shape[@]:1}" --sizes 65536,1048576 -n 3 -w 1 --csv "$run/bench.csv" \
            --link-rate 25000000 >"$folder/log" 2>&1 || fail "psring bench --backend ${shape[*]:1}:"
    done
    for shape in "4 ring" "5 ps --servers 1 --placement dedicated"; do
        read -ra shape <<<"$shape"
        "$lib/ranks.sh" "${shape[0]}" "$psring" train --backend "${shape[@]:1}" --model lenet --compute paced:5 --steps 3 --metrics "$run/train.csv" \
            --timeline "$run/trace-${shape[1]}.json" --timeline-steps 2:3 >"$folder/log" 2>&1 || fail "psring train --backend ${shape[*]:1}:"
    done
    # Files of other commands, two rows each.
    printf '%s\n' 'backend,transport,network,workers,servers,placement,bytes,use,measured_us,predicted_us,predicted_us_low,predicted_us_high,error,within' \
        'ring,tcp,loopback,4,0,none,65536,held-out,1000,1010,950,1070,0.01,1' 'ps,zmq,loopback,4,1,dedicated,65536,fitted,2000,1980,1900,2100,-0.01,1' >"$run/predict.csv"
    printf '%s\n' 'backend,transport,network,workers,servers,placement,bytes,time_us_median,theory_time_us' 'ring,mpi,simulated:flat,2,0,none,65536,100,99' \
        'ring,mpi,simulated:flat,1024,0,none,65536,900,890' >"$run/simulate.csv"
    printf '%s\n' 'mode,straggler,seed,target_accuracy,target_reached,seconds,images_per_s' 'bsp,none,1,0.98,1,45,2552' 'async,none,1,0.98,1,40,2854' \
        'bsp,3:4,1,0.98,1,150,760' 'async,3:4,1,0.98,1,48,2300' >"$run/consistency.csv"
    echo '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>' >"$run/time_vs_workers.svg"
    printf '{"command": "x </script><script>wrongs.push(1)</script>"}' >"$run/provenance.json"
}

if [[ $shots ]]; then
    run=$(cd "$shots" && pwd)
else
    small_run
fi
"$psring" report "$run" >"$folder/log" 2>&1 || fail "psring report:"

# The page with scripts that watch and use it.
{
    sed "/<head>/q" "$run/report.html"
    echo "<script>" && cat "$here/page/watch.js" && echo "</script>"
    sed "1,/<head>/d; /<\/body>/,\$d" "$run/report.html"
    [[ ! $shots ]] || echo "<script>window.partial = true</script>"
    echo "<script>const EXPECTED = ['time_vs_workers', 'time_vs_size', 'bytes_per_node', 'throughput', 'step_parts', 'consistency', 'predict', 'simulate', 'calculator'].filter(name => !window.partial || window.psring.charts[name]), COSTS = "
    "$print_costs"
    echo ";" && cat "$here/page/use.js" && echo "</script></body></html>"
} >"$folder/page.html"
for width in "${widths[@]:0:3 - short}"; do
    browse "$folder/page.html" --window-size="$width",900 --dump-dom >"$folder/document"
    sed -n '/<pre id="used">/,/<\/pre>/p' "$folder/document" | sed 's/<[^>]*>//g' >"$folder/used"
    grep -qx end "$folder/used" || { cp "$folder/browser" "$folder/log" && fail "at width $width the page was not used to its end:"; }
    result=ok
    ! grep -q ^FAILED "$folder/used" || result=$(grep ^FAILED "$folder/used")
    cp "$folder/used" "$folder/output"
    verdict "$result" "width $width: $(grep -c ^ok "$folder/used") things hold"
done

# A damaged run: empty fields, words, zeros, seeds that missed the target. The rest of its page is intact.
hurt=$folder/hurt
mkdir "$hurt"
printf '%s\n' 'backend,transport,network,workers,servers,placement,bytes,time_us_median,theory_time_us,efficiency,worker_sent_bytes' \
    'ring,tcp,loopback,2,0,none,65536,100,,,' 'ring,tcp,loopback,2,0,none,65536,120,,,' 'ring,tcp,loopback,4,0,none,65536,,,,' \
    'ring,tcp,loopback,4,0,none,0,x,,,' 'rhd,tcp,loopback,4,0,none,65536,0,0,,' >"$hurt/bench.csv"
printf '%s\n' 'backend,transport,network,compute,workers,servers,placement,batch,images_per_s,step_ms_median' \
    'ring,tcp,loopback,paced:50,2,0,none,64,2000,60' 'ring,tcp,loopback,paced:50,4,0,none,64,,' >"$hurt/train.csv"
printf '%s\n' 'mode,straggler,seed,target_accuracy,target_reached,seconds,images_per_s' 'bsp,none,1,0.98,1,45,100' 'bsp,none,2,0.98,0,90,100' \
    'bsp,none,3,0.98,0,90,100' 'async,none,1,0.98,1,40,100' 'async,none,2,0.98,1,50,100' 'async,none,3,0.98,0,90,100' >"$hurt/consistency.csv"
printf '%s\n' 'backend,transport,workers,servers,placement,bytes,use,measured_us,predicted_us,predicted_us_low,predicted_us_high,error' \
    'ring,tcp,4,0,none,65536,fitted,0,10,,,0.1' 'ring,tcp,4,0,none,65536,fitted,100,110,,,0.1' >"$hurt/predict.csv"
printf '%s\n' 'backend,transport,network,workers,servers,placement,bytes,time_us_median,theory_time_us' 'ring,mpi,simulated:flat,2,0,none,0,0,0' >"$hurt/simulate.csv"
echo '{"models": [{"transport": "tcp", "constants": {}}, null]}' >"$hurt/model.json"
"$psring" report "$hurt" >"$folder/log" 2>&1 || fail "psring report of a run that was cut off:"
{
    sed "/<head>/q" "$hurt/report.html"
    echo "<script>" && cat "$here/page/watch.js" && echo "</script>"
    # An impossible replay: its messages belong to ranks that do not exist.
    sed "1,/<head>/d; /<\/body>/,\$d; s/<script type=\"application\/json\" id=\"data\">{/&\"replays\":[{\"name\":\"ring\",\"workers\":[],\"end_us\":1,\"messages\":[[0,1,0,1,1,1]]}],/" "$hurt/report.html" |
        sed 's/^<h2>Calculator/<div id="animation"><\/div>&/'
    echo "<script>" && cat "$here/page/hurt.js" && echo "</script></body></html>"
} >"$folder/page.html"
browse "$folder/page.html" --window-size=1280,900 --dump-dom | sed -n '/<pre id="used">/,/<\/pre>/p' | sed 's/<[^>]*>//g' >"$folder/output"
result=ok
grep -qx end "$folder/output" || result="not used to its end"
! grep -q ^FAILED "$folder/output" || result=$(grep ^FAILED "$folder/output")
verdict "$result" "a run that was cut off: $(grep -c ^ok "$folder/output") things hold"

# Without scripts (this frame does not allow them) the page shows the figures as images.
{
    echo '<iframe id="frame" sandbox="allow-same-origin"></iframe><script>frame.onload = () => {'
    echo 'const page = frame.contentDocument, picture = page.querySelector("figure[data-chart=time_vs_workers] img");'
    echo 'document.body.append("picture " + (picture && picture.naturalWidth > 0 && picture.alt != ""), "; words " + page.querySelectorAll("noscript p").length,'
    echo '"; scripts " + (page.documentElement.className || "none")); };'
    echo "frame.srcdoc = new TextDecoder().decode(Uint8Array.from(atob('$(base64 -w 0 "$run/report.html")'), c => c.charCodeAt(0)));</script>"
} >"$folder/plain.html"
browse "$folder/plain.html" --dump-dom | sed -n 's/.*\(picture [a-z]*;.*none\).*/\1/p' >"$folder/output"
result=ok
[[ $(cat "$folder/output") == "picture true; words 2; scripts none" ]] || result="another page"
verdict "$result" "without scripts"

if [[ $shots ]]; then
    for width in "${widths[@]}"; do
        for theme in light dark; do
            browse "$run/report.html#$theme" --window-size="$width",$((width == 390 ? 9000 : 6000)) --screenshot="$run/report-$width-$theme.png" >/dev/null
        done
    done
fi
all_passed
