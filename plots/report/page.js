// Shared by all parts of the page: data, elements, numbers as text.

const DATA = JSON.parse(document.getElementById("data").textContent);

// The rows of a table as objects, as psring report has read and judged them. Empty if the file does not exist.
function rowsOf(name) {
  const table = DATA.tables && DATA.tables[name];
  if (Array.isArray(table)) return table;
  return table ? table.rows.map(row => Object.fromEntries(table.columns.map((column, i) => [column, row[i]]))) : [];
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}

// Elements of HTML and SVG. Children that are not nodes become text, never markup.
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

const unique = values => [...new Set(values)];
const ascending = values => unique(values).sort((a, b) => a - b);

// A field of a truncated run may be empty or a word. Its number is then shown as "-".
const isNumber = value => typeof value === "number" && Number.isFinite(value);

// Three significant digits.
function short(value) {
  if (!isNumber(value)) return "-";
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { minimumFractionDigits: Math.min(digits, 6), maximumFractionDigits: Math.min(digits, 6) });
}
const scaled = (value, step, units) => {
  if (!isNumber(value)) return "-";
  let unit = 0;
  while (Math.abs(value) >= step && unit < units.length - 1) { value /= step; unit++; }
  return `${short(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")} ${units[unit]}`;
};
const bytesText = bytes => scaled(bytes, 1000, ["B", "kB", "MB", "GB", "TB"]);
const timeText = ms => !isNumber(ms) ? "-" : ms < 1 ? `${short(ms * 1000)} us` : ms < 10000 ? `${short(ms)} ms` : `${short(ms / 1000)} s`;
const rateText = bits => scaled(bits, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
const percentText = share => !isNumber(share) ? "-" : `${(100 * share).toFixed(1)}%`;
const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
const countText = value => !isNumber(value) ? "-" : value.toLocaleString("en");

// The table of a chart: head and rows of text.
function tableOf(head, rows) {
  return el("div", { class: "scroll" }, el("table", {},
    el("thead", {}, el("tr", {}, ...head.map(text => el("th", { scope: "col" }, text)))),
    el("tbody", {}, ...rows.map(row => el("tr", {}, ...row.map(text => el("td", {}, text)))))));
}

// The tooltip. Screen readers announce it, too.
const tip = document.getElementById("tip");
function showTip(text, box) {
  tip.textContent = text;
  tip.hidden = false;
  const left = Math.min(box.right + 12, document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${Math.max(8, left) + scrollX}px`;
  tip.style.top = `${Math.max(8, box.top - tip.offsetHeight - 8) + scrollY}px`;
}
function hideTip() { tip.hidden = true; }
document.addEventListener("keydown", event => { if (event.key === "Escape") hideTip(); });

function labelled(text, control) { return el("label", {}, text, control); }
function choice(text, values, chosen, format, change) {
  const select = el("select", { onchange: () => change(values[select.selectedIndex]) },
    ...values.map(value => el("option", { selected: value === chosen }, format(value))));
  return labelled(text, select);
}

// Light or dark: follows the system until the button is pressed.
function startTheme() {
  const button = document.getElementById("theme"), root = document.documentElement;
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const say = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${isDark() ? "light" : "dark"} colours`);
    button.setAttribute("aria-pressed", isDark());
  };
  if (["dark", "light"].includes(location.hash.slice(1))) root.dataset.theme = location.hash.slice(1);
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; say(); });
  say();
}
