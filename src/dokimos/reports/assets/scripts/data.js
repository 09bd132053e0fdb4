// The instances and runs, from the JSON in the page (written by payload.py), and small helpers.
const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));
const byId = (id) => document.getElementById(id);

const element = (tag, properties = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "class") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
};

const data = JSON.parse(byId("data").textContent);
const instances = data.instances.map((row, index) => {
  const [own, family, suite, label, certificate, parameters, components, extras, problem] = row;
  const found = {
    index, own, components, extras, runs: [],
    family: data.pool[family], suite: data.pool[suite], label: data.pool[label],
    certificate: data.pool[certificate], problem: data.pool[problem],
    parameters: parameters.map(([name, value]) => [data.pool[name], value]),
  };
  found.name = data.several ? `${found.suite}/${own}` : own;
  return found;
});
const byName = new Map(instances.map((instance) => [instance.name, instance]));
for (const row of data.runs) {
  const [instance, verifier, repeat, answer, verdict, outcome, wall, cpu, memory, ...texts] = row;
  const [ended, reason, detail, log, tail, command] = texts.slice(0, 6).map((number) => data.pool[number]);
  instances[instance].runs.push({
    verifier, repeat, wall, cpu, memory, ended, reason, detail, log, tail, anchor: texts[6],
    answer: data.pool[answer], verdict: data.pool[verdict], outcome: data.pool[outcome],
    command: command.replaceAll("\0", () => instances[instance].own),
  });
}

// A component is null (not measured), a number, or [a number or null, what qualifies it].
const valueOf = (component) => (Array.isArray(component) ? component[0] : component);
const noteOf = (component) => (Array.isArray(component) ? data.pool[component[1]] : "");

const seconds = (value) => {
  if (value > 0 && value < 0.001) return "<0.001";
  return value.toFixed(value < 1 ? 3 : value < 10 ? 2 : value < 100 ? 1 : 0);
};
const short = (value) => {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e5) return String(Number(value.toPrecision(3)));
  return value.toExponential(1).replace("e+", "e");
};
const glyphs = { sat: "✓", unsat: "✓", timeout: "T", memout: "M", unknown: "?", error: "E", unsupported: "–" };
const glyphOf = (run) => {
  if (run.outcome === "wrong") return "✗";
  return run.outcome === "other" ? "~" : run.verdict === "undecided" && /sat$/.test(run.answer) ? "?" : glyphs[run.answer];
};
const sign = (run) => element("span", { class: `glyph ${run.outcome}`, "aria-hidden": "true" }, glyphOf(run));
const fragment = (instance) => `#instance=${encodeURIComponent(instance.name)}`;
