// Last script in the page of a damaged run: checks the remaining parts. Writes its results like use.js.
{
  const lines = [], { charts, failures } = window.psring || {};
  const expect = (what, holds) => lines.push(`${holds ? "ok" : "FAILED"} ${what}`);
  const table = name => [...charts[name].host.querySelectorAll("tbody tr")].map(row => [...row.children].map(cell => cell.textContent).join(" "));
  const series = (name, label) => charts[name].series.find(s => s.label === label);
  try {
    for (const name of ["time_vs_workers", "time_vs_size", "throughput", "consistency", "predict", "simulate", "calculator"])
      expect(`${name} is drawn`, charts[name] && charts[name].host.querySelector(".chart > svg") && !/NaN|Infinity|undefined/.test(charts[name].host.innerHTML));
    expect("missing numbers are dashes", table("throughput").some(row => row.startsWith("ring 4 - ")));
    expect("equal rows are starts, and their median is shown", series("time_vs_workers", "ring").points[0].y === 0.11 && series("time_vs_workers", "ring").points[0].row.starts === 2);
    expect("the rate without averaging is computed", series("throughput", "if averaging were free").points[0].theory === 2560);
    expect("a target that was not reached has the time never", table("consistency").join("|") === "bsp never 1/3 100|async 50.0 2/3 100");
    expect("no heading without a chart", ![...document.querySelectorAll("h2")].some(h => h.textContent === "Efficiency"));
    expect("the calculator has theory's constants", /Constants: theory/.test(document.getElementById("calculator").textContent));
    expect(`the warning names the failure: ${failures.join("; ")}`, failures.length === 1 && /^the replay: /.test(failures[0]) && document.querySelector("main > .warning").textContent.includes(failures[0]));
    expect(`no error: ${window.wrongs.join("; ")}`, window.wrongs.length === 0);
  } catch (error) { lines.push(`FAILED ${error.stack}`); }
  const used = document.createElement("pre");
  used.id = "used";
  used.textContent = `\n${lines.join("\n")}\nend\n`;
  document.body.append(used);
}
