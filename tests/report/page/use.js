// Last script in the page: uses the page like a reader. Writes its results as lines of the element "used": "ok WHAT" or
// "FAILED WHAT". COSTS is the output of print_costs; EXPECTED are the charts that must exist.
(async () => {
  const lines = [], { charts, animation, calculator, cost, DATA } = window.psring || {};
  const expect = (what, holds) => lines.push(`${holds ? "ok" : "FAILED"} ${what}`);
  const key = (node, name) => node.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  const check = async () => {
    for (const name of EXPECTED) {
      const chart = charts[name], svg = chart && chart.host.querySelector(".chart > svg");
      expect(`${name} is drawn`, svg && (chart.spec.bars || chart.series).length > 0);
      if (!svg) continue;
      expect(`${name} has a shape for each series`, [...chart.host.querySelectorAll(".chart > svg .point")].every(p => p.tagName !== "path" || p.getAttribute("d")));
      const shown = chart.spec.bars ? chart.spec.bars.flatMap(b => b.parts) : chart.series.filter(s => s.shown).flatMap(s => s.points.filter(p => p.y !== null));
      expect(`${name} has a shape for each of its ${shown.length} values`, shown.length > 0 && svg.querySelectorAll(".point, .bar").length === shown.length);
      expect(`${name} marks each doubtful point`, svg.querySelectorAll(".cross").length === shown.filter(p => p.doubtful).length);
      expect(`${name} explains its mark`, Boolean(chart.host.querySelector(".legend .doubt")) === Boolean(chart.series && chart.series.some(s => s.points.some(p => p.doubtful))));
      expect(`${name} draws theory where there is one`, [...svg.querySelectorAll(".theory")].every(path => !path.getAttribute("d") || path.getTotalLength() > 0));
      expect(`${name} has finite coordinates`, !/NaN|Infinity|undefined/.test(svg.outerHTML));
      expect(`${name} has a table of its values`, chart.host.querySelectorAll("tbody tr").length > 0);
      expect(`${name} names its axes`, chart.spec.x.label && svg.textContent.includes(chart.spec.x.label));
      expect(`${name} has no image left`, !chart.host.querySelector("img"));
      key(svg, "ArrowRight");
      expect(`${name} shows a value by keyboard`, !document.getElementById("tip").hidden && svg.querySelector(".chosen") && /\d/.test(document.getElementById("tip").textContent));
      key(document.body, "Escape");
      const button = chart.host.querySelector(".legend button"), before = svg.querySelectorAll(".point").length;
      if (button && chart.series.some(s => s.shown && s.label === button.textContent && s.points.some(p => p.y !== null))) {
        button.click();
        expect(`${name} explains a struck-through name`, chart.host.querySelector(".legend button").title === "hidden; click to show" && /struck through: hidden/.test(chart.host.querySelector(".legend").textContent));
        expect(`${name} hides a series`, chart.host.querySelectorAll(".chart > svg .point").length < before);
        chart.host.querySelector(".legend button").click();
        expect(`${name} shows the series again`, chart.host.querySelectorAll(".chart > svg .point").length === before);
      }
    }
    const logs = charts.time_vs_workers.host.querySelector(".chart > svg").outerHTML;
    [...charts.time_vs_workers.host.querySelectorAll(".controls button")].find(b => /axis/.test(b.textContent)).click();
    expect("the axis changes", charts.time_vs_workers.host.querySelector(".chart > svg").outerHTML !== logs);

    // The replay steps, and plays to its end.
    const messages = DATA.replays.flatMap(r => r.messages);
    expect("the replay has both topologies", DATA.replays.length === 2 && DATA.replays.every(r => r.messages.length > 0));
    animation.step(1);
    expect("a step goes to the first arrival", animation.time === Math.max(1, Math.min(...messages.map(m => m[3]))));
    key(document.querySelector("#animation .panels"), "Home");
    expect("Home goes to the beginning", animation.time === 0);
    const middle = DATA.replays[0].messages[0];
    animation.show((middle[2] + middle[3]) / 2);
    expect("messages move", animation.panels[0].moving() > 0);
    // Timers drive the frames, because this browser's virtual time runs ahead of the display, whose frames a busy
    // machine delays.
    let frameTime = performance.now();
    window.requestAnimationFrame = frame => setTimeout(() => frame(frameTime += 16), 16);
    animation.show(0);
    animation.speed = 0.05;
    key(document.querySelector("#animation .panels"), " ");
    expect("the space key plays", animation.playing);
    for (let i = 0; i < 200 && !animation.ended; i++) await new Promise(done => setTimeout(done, 20));
    expect("the replay plays to its end", animation.ended && !animation.playing && animation.time === animation.end);
    expect("nothing moves at the end", animation.panels.every(p => p.moving() === 0));

    // The calculator: every slider changes its text.
    for (const input of document.querySelectorAll("#calculator [data-name]")) {
      const said = document.getElementById("calculator").textContent;
      if (input.tagName === "SELECT") input.selectedIndex = 2; else input.value = (Number(input.min) + Number(input.max) * 2) / 3 + 0.4;
      input.dispatchEvent(new Event(input.tagName === "SELECT" ? "change" : "input"));
      expect(`${input.dataset.name} changes the calculator`, document.getElementById("calculator").textContent !== said);
    }
    expect("the calculator shows only numbers", !/NaN|Infinity|undefined/.test(document.getElementById("calculator").textContent));
    const times = { ring: c => cost.ringTime(c.workers, c.bytes, c.pipeline, c), rhd: c => cost.halvingTime(c.workers, c.bytes, c.pipeline, c, c.radix), tree: c => cost.treeTime(c.workers, c.bytes, c.pipeline, c), ps: c => cost.serverTime(c.workers, c.servers, c.spare, c.bytes, c.pipeline, c) };
    const off = COSTS.filter(c => !(Math.abs(times[c.name](c) / c.seconds - 1) < 1e-9));
    expect(`${COSTS.length} times equal those of psring's formulas` + (off.length ? `, but ${JSON.stringify(off[0])}` : ""), COSTS.length > 100 && off.length === 0);

    // Colours and accessibility.
    const ground = getComputedStyle(document.body).backgroundColor;
    document.getElementById("theme").click();
    expect("the button changes the colours", getComputedStyle(document.body).backgroundColor !== ground);
    const nameless = [...document.querySelectorAll("button, input, select")].filter(c => !c.textContent.trim() && !c.getAttribute("aria-label") && !c.labels.length);
    expect(`every control has a name${nameless.map(c => `, but ${c.outerHTML}`)}`, nameless.length === 0);
    expect("no id twice", new Set([...document.querySelectorAll("[id]")].map(n => n.id)).size === document.querySelectorAll("[id]").length);
    expect("every figure has alternative text", [...document.querySelectorAll("img")].every(i => i.alt));
    expect("the page fits the width of the window", document.documentElement.scrollWidth <= innerWidth);
    expect("the page fetches nothing", performance.getEntriesByType("resource").filter(e => !e.name.startsWith("data:")).length === 0);
    expect(`no error: ${window.wrongs.join("; ")}`, window.wrongs.length === 0);
  };
  try { await check(); } catch (error) { lines.push(`FAILED ${error.stack}`); }
  const used = document.createElement("pre");
  used.id = "used";
  used.textContent = `\n${lines.join("\n")}\nend\n`;
  document.body.append(used);
})();
