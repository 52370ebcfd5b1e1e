"use strict";
const runs = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const BATCH = 100;
let matching = [];
let shown = 0;

const make = (tag, text, name) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (name) element.className = name;
  return element;
};

for (const run of runs) {
  run.words = [run.id, run.key, run.task, ...run.reasons.map((reason) => reason.text), ...run.unscored].join("\n").toLowerCase();
}
for (const key of [...new Set(runs.map((run) => run.key))].sort()) find("key").append(make("option", key));
for (const option of find("key").options) if (option.text !== "all") option.value = option.text;

function filter() {
  const words = find("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdict = find("verdict").value;
  const key = find("key").value;
  matching = runs.filter((run) =>
    (!verdict || run.verdict === verdict) && (!key || run.key === key) && words.every((word) => run.words.includes(word)));
  shown = 0;
  find("list").replaceChildren();
  more();
}

function more() {
  const next = matching.slice(shown, shown + BATCH);
  shown += next.length;
  find("list").append(...next.map(item));
  find("count").textContent = `${matching.length} of ${runs.length} runs, ${shown} shown`;
  find("more").hidden = shown >= matching.length;
}

function item(run) {
  const line = make("li");
  const button = make("button");
  button.type = "button";
  button.setAttribute("aria-expanded", "false");
  button.append(make("span", run.verdict, `verdict ${run.verdict}`), make("span", `${run.id} (${run.key}), ${run.calls} calls`));
  button.addEventListener("click", () => toggle(line, button, run));
  line.append(button);
  return line;
}

function toggle(line, button, run) {
  const open = line.querySelector(".run");
  if (open) open.remove();
  else line.append(details(run));
  button.setAttribute("aria-expanded", String(!open));
}

function details(run) {
  const view = find("run").content.cloneNode(true).firstElementChild;
  view.querySelector(".about").textContent =
    `${run.task ? `task ${run.task}; ` : ""}by its final state: ${run.response}; by its trajectory: ${run.verdict}`;
  const rows = (run.steps || []).map(call);
  view.querySelector(".calls tbody").append(...rows);
  const reasons = view.querySelector(".reasons");
  reasons.append(...run.reasons.map((reason) => cause(reason, rows)));
  reasons.append(...run.unscored.map((fault) => make("li", `not scored: ${fault}`)));
  if (!reasons.children.length) reasons.replaceWith(make("p", "none"));
  if (run.diff) view.querySelector("pre").textContent = run.diff;
  else view.querySelector(".against").remove();
  if (!run.steps) view.querySelector(".calls").replaceWith(make("p", "calls were not kept"));
  return view;
}

function call([tool, args, result, what], index) {
  const row = make("tr");
  row.tabIndex = -1;
  row.append(make("td", index + 1, "n"), make("td", tool), make("td", args), make("td", result), make("td", what));
  return row;
}

function cause(reason, rows) {
  const line = make("li");
  if (!reason.steps.length || !rows.length) {
    line.textContent = reason.text;
    return line;
  }
  const button = make("button", `${reason.text} (call ${reason.steps.map((step) => step + 1).join(", ")})`);
  button.type = "button";
  button.addEventListener("click", () => point(reason.steps, rows));
  line.append(button);
  return line;
}

function point(steps, rows) {
  rows.forEach((row, index) => row.classList.toggle("pointed", steps.includes(index)));
  rows[steps[0]].scrollIntoView({ block: "center" });
  rows[steps[0]].focus();
}

for (const id of ["words", "verdict", "key"]) find(id).addEventListener("input", filter);
find("filter").addEventListener("submit", (event) => event.preventDefault());
find("more").addEventListener("click", () => {
  const first = shown;
  more();
  find("list").children[first].firstElementChild.focus();
});
filter();
