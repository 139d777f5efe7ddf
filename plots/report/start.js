// Builds all parts of the page.

function start() {
  document.documentElement.classList.add("scripted");
  startTheme();
  const loopback = document.getElementById("loopback");
  if (loopback) loopback.hidden = !String(DATA.network).startsWith("loopback");
  const put = (name, make, choices) => {
    const host = document.querySelector(`figure[data-chart="${name}"]`);
    if (host) putChart(name, host, make, choices);
  };
  // A part that fails on unexpected rows is reported; the other parts still appear.
  const failures = [];
  const attempt = (what, draw) => { try { draw(); } catch (error) { failures.push(`${what}: ${error.message}`); } };
  const each = (name, make, choices) => attempt(name, () => put(name, make, choices));
  attempt("bench.csv", () => benchCharts(each, rowsOf("bench")));
  attempt("train.csv", () => trainCharts(each, rowsOf("train")));
  attempt("consistency.csv", () => consistencyChart(each, rowsOf("consistency")));
  attempt("predict.csv", () => predictChart(each, rowsOf("predict")));
  attempt("simulate.csv", () => simulateChart(each, rowsOf("simulate")));
  attempt("both runs", () => compareChart(each, DATA.pairs || []));
  attempt("the replay", () => startAnimation(document.getElementById("animation")));
  attempt("the calculator", () => startCalculator(document.getElementById("calculator")));
  if (failures.length) document.querySelector("main").prepend(el("p", { class: "warning" }, `Not drawn: ${failures.join("; ")}`));
  // Removes a figure without drawable rows, and its section if that has no other figure.
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    if (charts[figure.dataset.chart] || figure.querySelector("img")) continue;
    const section = figure.closest("section");
    figure.remove();
    if (section && !section.querySelector("figure")) section.remove();
  }
  // For tests.
  window.psring = { failures, DATA, charts, animation, calculator, cost: { ringTime, halvingTime, treeTime, serverTime } };
}
start();
