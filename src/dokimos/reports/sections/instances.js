// The instances and runs, from the JSON in the page (written by payload.py): a column for each field.
const data = JSON.parse(byId("data").textContent);
let read = null;
const details = () => { read ??= JSON.parse(byId("details").textContent); return read; };

class Run {
  constructor(instance, place) {
    const runs = data.runs;
    this.instance = instance;
    this.place = place;
    this.verifier = runs.verifier[place];
    this.repeat = runs.repeat[place];
    this.wall = runs.wall[place];
    for (const name of ["answer", "verdict", "outcome", "reason"]) this[name] = data.pool[runs[name][place]];
  }
  text(name) { return details().pool[details().runs[name][this.place]]; }
  get ended() { return this.text("ended"); }
  get detail() { return this.text("detail"); }
  get tail() { return this.text("tail"); }
  get log() { return this.text("folder") + details().runs.log[this.place]; }
  get command() { return this.text("command").replaceAll("\0", () => this.instance.own); }
  get cpu() { return details().runs.cpu[this.place]; }
  get memory() { return 1000 * details().runs.memory_kb[this.place]; }
  get anchor() { return details().runs.anchor[this.place]; }
}

class Instance {
  constructor(index, firstRun) {
    this.index = index;
    this.firstRun = firstRun;
  }
  text(name) { return data.pool[data.instances[name][this.index]]; }
  get own() { return data.instances.own[this.index]; }
  get family() { return this.text("family"); }
  get suite() { return this.text("suite"); }
  get label() { return this.text("label"); }
  get certificate() { return this.text("certificate"); }
  get knobs() { return this.text("knobs"); }
  get name() { return data.several ? `${this.suite}/${this.own}` : this.own; }
  get runs() {
    this.found ??= Array.from({ length: data.instances.runs[this.index] }, (_, k) => new Run(this, this.firstRun + k));
    return this.found;
  }
  get components() { return data.instances.components.map((column) => column[this.index]); }
  get extras() { return details().instances.extras.map((column) => column[this.index]); }
  get problem() { return details().pool[details().instances.problem[this.index]]; }
  get parameters() { return details().instances.parameters[this.index].map(([name, value]) => [details().pool[name], value]); }
}

let runsBefore = 0;
const instances = data.instances.own.map((_, index) => {
  const made = new Instance(index, runsBefore);
  runsBefore += data.instances.runs[index];
  return made;
});
let names = null;
const byName = (name) => {
  names ??= new Map(instances.map((instance) => [instance.name, instance]));
  return names.get(name);
};

// A component is null (not measured), a number, or [a number or null, what qualifies it].
const valueOf = (component) => (Array.isArray(component) ? component[0] : component);
const noteOf = (component, pool = data.pool) => (Array.isArray(component) ? pool[component[1]] : "");

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
  return run.outcome === "unchecked" ? "∅" : run.outcome === "other" ? "~" : run.verdict === "undecided" && /sat$/.test(run.answer) ? "?" : glyphs[run.answer];
};
const sign = (run) => element("span", { class: `glyph ${run.outcome}`, "aria-hidden": "true" }, glyphOf(run));
const fragment = (instance) => `#instance=${encodeURIComponent(instance.name)}`;

// Every instance: filter, sort, and a page of rows at a time, so that thousands are no trouble.
const PAGE = 100;
const MOST_PRINTED = 500;
const table = byId("table");
let shown = instances;
let page = 0;

const searchable = (instance) => {
  instance.searched ??= [
    instance.name, instance.knobs, instance.family, instance.label, instance.certificate,
    ...instance.parameters.map(([name, value]) => `${name}=${value}`),
    ...instance.runs.flatMap((run) => [
      data.verifiers[run.verifier], run.answer, run.verdict, run.reason, run.detail, run.ended, run.tail,
    ]),
  ].join("\n").toLowerCase();
  return instance.searched;
};

const wanted = () => {
  const words = byId("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const family = byId("filter-family").value;
  const verifier = data.verifiers.indexOf(byId("filter-verifier").value);
  const [kind, outcome] = byId("filter-outcome").value.split(/:(.*)/);
  const fits = (run) => (verifier < 0 || run.verifier === verifier)
    && (!outcome || { v: run.verdict, a: run.answer, o: run.outcome }[kind] === outcome);
  return (instance) => (!family || instance.family === family)
    && ((verifier < 0 && !outcome) || instance.runs.some(fits))
    && words.every((word) => searchable(instance).includes(word));
};

// What stands for all repeats of a verifier on an instance: a wrong one if there is one.
const telling = (instance, verifier) => {
  const runs = instance.runs.filter((run) => run.verifier === verifier);
  return runs.find((run) => run.outcome === "wrong") ?? runs[0];
};

const collator = new Intl.Collator("en", { numeric: true });
const RANKS = { correct: 0, other: 1, unchecked: 2, undecided: 3, wrong: 4 };
const compare = {
  name: () => (a, b) => collator.compare(a.name, b.name),
  family: () => (a, b) => collator.compare(a.family, b.family),
  label: () => (a, b) => collator.compare(a.label, b.label),
  verifier: (number) => {
    const key = (instance) => {
      const run = telling(instance, number);
      return run ? RANKS[run.outcome] * 1e9 + Math.min(run.wall, 1e8) : Infinity;
    };
    const keys = new Map(instances.map((instance) => [instance, key(instance)]));
    return (a, b) => (keys.get(a) === keys.get(b) ? 0 : keys.get(a) - keys.get(b));
  },
  component: (number) => {
    const key = (instance) => valueOf(data.instances.components[number][instance.index]) ?? -Infinity;
    return (a, b) => (key(a) === key(b) ? 0 : key(a) - key(b));
  },
};

const verifierCell = (instance, number) => {
  const run = telling(instance, number);
  const cell = element("td", { class: "of-verifier", "data-label": data.verifiers[number] });
  if (!run) {
    cell.append("–");
    return cell;
  }
  const repeats = instance.runs.filter((other) => other.verifier === number).length;
  cell.title = `${run.verdict}: ${run.reason}`;
  const time = `${seconds(run.wall)}${repeats > 1 ? ` ×${repeats}` : ""}`;
  // The glyph and the label say the rest, unless the answer is not what the label says.
  const plain = run.outcome === "correct" || run.outcome === "undecided";
  cell.append(sign(run), element("span", { class: plain ? "unseen" : "" }, ` ${run.answer}`), " ", element("small", {}, time));
  cell.append(element("span", { class: "unseen" }, ` seconds, ${run.verdict}`));
  return cell;
};

const componentCell = (instance, number) => {
  const component = data.instances.components[number][instance.index];
  const cell = element("td", { class: "count", "data-label": data.components[number][1] });
  const value = valueOf(component);
  cell.append(value === null ? "–" : short(value) + (noteOf(component) ? "*" : ""));
  if (noteOf(component)) cell.title = noteOf(component);
  return cell;
};

const headers = table ? all("thead th", table) : [];
const rowOf = (instance) => element(
  "tr", {},
  element("td", { class: "name" }, element("a", { href: fragment(instance) }, instance.name), instance.knobs ? element("small", {}, instance.knobs) : ""),
  element("td", { class: "of-family" }, instance.family),
  element("td", { "data-label": "label" }, instance.label || "–"),
  ...headers.slice(3).map((header) => {
    const number = Number(header.dataset.number);
    return header.dataset.key === "verifier" ? verifierCell(instance, number) : componentCell(instance, number);
  })
);

const draw = (rows = shown.slice(page * PAGE, (page + 1) * PAGE)) => {
  table.tBodies[0].replaceChildren(...rows.map(rowOf));
  byId("shown").textContent = shown.length === instances.length
    ? `${instances.length} instances` : `${shown.length} of ${instances.length} instances`;
  byId("none-shown").hidden = shown.length > 0;
  byId("pages").hidden = shown.length <= PAGE;
  byId("page-place").textContent = `${page * PAGE + 1} to ${Math.min((page + 1) * PAGE, shown.length)} of ${shown.length}`;
  byId("page-back").disabled = page === 0;
  byId("page-on").disabled = (page + 1) * PAGE >= shown.length;
};

const choose = () => {
  const fits = wanted();
  const header = headers.find((one) => one.hasAttribute("aria-sort"));
  shown = instances.filter(fits);
  if (header) {
    const order = compare[header.dataset.key](Number(header.dataset.number));
    const up = header.getAttribute("aria-sort") === "ascending" ? 1 : -1;
    shown.sort((a, b) => up * order(a, b) || a.index - b.index);
  }
  page = 0;
  draw();
};

if (table) {
  byId("filters").hidden = false;
  byId("table-panel").hidden = false;
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("input", choose);
  byId("filters").addEventListener("reset", () => setTimeout(choose));
  for (const header of headers) {
    header.querySelector("button").addEventListener("click", () => {
      const down = header.getAttribute("aria-sort") === "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      choose();
    });
  }
  const turn = (step) => {
    page += step;
    draw();
    byId("instances").scrollIntoView();
  };
  byId("page-back").addEventListener("click", () => turn(-1));
  byId("page-on").addEventListener("click", () => turn(1));
  choose();
}

// One instance in full: its parameters, its profile, and what each verifier said.
const sheet = byId("instance");
let current = null;

const facts = (pairs) => element(
  "dl", { class: "facts" },
  ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value))))
);

// Where a value lies among all instances: how many of them have a smaller one, and an equal one.
const standing = (component, column) => {
  const value = valueOf(component);
  if (value === null || value === undefined) return "";
  const others = column.map(valueOf).filter((one) => one !== null);
  const below = others.filter((one) => one < value).length;
  const equal = others.filter((one) => one === value).length;
  const share = others.length > 1 ? (below + (equal - 1) / 2) / (others.length - 1) : 0.5;
  const place = element("span", { class: "standing", "aria-hidden": "true" }, element("i", { style: `left:${100 * share}%` }));
  const words = others.length > 1 ? `above ${below} of ${others.length - 1} others` : "the only one";
  return element("span", { class: "place" }, place, element("small", {}, words));
};

const measurements = (instance, columns, names, pool) => {
  const rows = names.map((name, number) => [name[name.length - 1], columns[number][instance.index], columns[number]])
    .filter(([, component]) => component !== null)
    .map(([name, component, column]) => element(
      "tr", {},
      element("th", { scope: "row" }, name),
      element("td", { class: "count" }, valueOf(component) === null ? "–" : short(valueOf(component))),
      element("td", {}, standing(component, column), noteOf(component, pool) ? element("small", { class: "note" }, noteOf(component, pool)) : "")
    ));
  return rows.length ? element("table", { class: "profile" }, element("tbody", {}, ...rows)) : "";
};

const profile = (instance) => {
  if (instance.problem) return [element("p", { class: "lead" }, `None that can be used: ${instance.problem}; `, element("code", {}, "dokimos profile"), " measures it.")];
  const extras = measurements(instance, details().instances.extras, details().extras, details().pool);
  return [
    measurements(instance, data.instances.components, data.components, data.pool),
    extras && element("details", {}, element("summary", {}, "Other measurements"), extras),
  ];
};

const command = (text) => element(
  "div", { class: "command" },
  element("pre", {}, element("code", {}, text)),
  element("button", { type: "button", class: "copy", "aria-label": "Copy the command" }, "Copy")
);

const runArticle = (instance, run) => {
  const name = data.verifiers[run.verifier];
  const several = instance.runs.filter((other) => other.verifier === run.verifier);
  const made = element(
    "article", { class: `run ${run.outcome}` },
    element(
      "header", {}, sign(run), element("h4", {}, several.length > 1 ? `${name} #${several.indexOf(run) + 1}` : name),
      element("b", {}, run.answer), element("span", { class: `badge ${run.verdict}` }, run.verdict),
      element("span", { class: "origin" }, `${seconds(run.wall)} s, CPU ${seconds(run.cpu)} s, ${(run.memory / 1e6).toFixed(0)} MB, ${run.ended}`)
    ),
    element("p", { class: "reason" }, run.reason)
  );
  if (run.anchor) made.append(element("p", {}, element("a", { href: `#${run.anchor}` }, "See the wrong answer.")));
  if (run.detail && !run.reason.includes(run.detail)) made.append(element("p", { class: "detail" }, run.detail));
  const log = element("details", {}, element("summary", {}, "Log and command"));
  if (run.log) log.append(element("p", { class: "log" }, "Log: ", element("code", {}, run.log)));
  log.append(run.tail ? element("pre", { class: "tail", tabindex: "0" }, run.tail) : element("p", { class: "lead" }, "The log is empty, or no longer there."));
  log.append(command(run.command));
  made.append(log);
  return made;
};

const open = (instance) => {
  current = instance;
  const made = [
    ["Family", instance.family], ["Suite", instance.suite], ["Label", instance.label || "none"],
    ["Proven by", instance.certificate || "–"],
  ];
  byId("instance-name").textContent = instance.name;
  byId("instance-body").replaceChildren(
    instance.knobs ? element("p", { class: "lead" }, `${instance.family}, ${instance.knobs}`) : "",
    facts(made),
    element("h3", {}, "What the verifiers said"),
    ...instance.runs.map((run) => runArticle(instance, run)),
    element("h3", {}, "Profile"), ...profile(instance).filter(Boolean),
    element("h3", {}, "Parameters"),
    instance.parameters.length ? facts(instance.parameters) : element("p", { class: "lead" }, "None are known: nobody here made this instance.")
  );
  const place = shown.indexOf(instance);
  byId("instance-back").disabled = place <= 0;
  byId("instance-on").disabled = place < 0 || place + 1 >= shown.length;
  if (!sheet.open) sheet.showModal();
  sheet.scrollTop = 0;
  byId("instance-name").focus({ preventScroll: true });
};

const step = (by) => {
  const next = shown[shown.indexOf(current) + by];
  if (!current || !next) return;
  history.replaceState(null, "", fragment(next)); // not by the address: a key that is held down would be ahead of it
  open(next);
};

// #instances?family=…&verifier=…&outcome=… shows these runs, all others being filtered out.
const filterBy = () => {
  const match = /^#instances\?(.*)$/.exec(location.hash);
  if (!match || !table) return;
  const asked = new URLSearchParams(match[1]);
  byId("filter-text").value = "";
  for (const name of ["family", "verifier", "outcome"]) byId(`filter-${name}`).value = asked.get(name) ?? "";
  choose();
  byId("instances").scrollIntoView();
};
addEventListener("hashchange", filterBy);
filterBy();
// A link that leads here once more, as somebody has changed the filters since.
document.addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#instances?"]');
  if (link && link.getAttribute("href") === location.hash) filterBy();
});

const follow = () => {
  const match = /^#instance=(.*)$/.exec(location.hash);
  let name = null;
  try {
    name = match && decodeURIComponent(match[1]);
  } catch { /* a fragment that somebody cut: no instance */ }
  const instance = name && byName(name);
  if (instance) open(instance);
  else if (sheet.open) sheet.close();
};

addEventListener("hashchange", follow);
byId("instance-close").addEventListener("click", () => sheet.close());
byId("instance-back").addEventListener("click", () => step(-1));
byId("instance-on").addEventListener("click", () => step(1));
sheet.addEventListener("click", (event) => { if (event.target === sheet) sheet.close(); });
sheet.addEventListener("keydown", (event) => {
  if (event.target.closest("pre, input, select") || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "ArrowRight") step(1);
});
sheet.addEventListener("close", () => {
  const left = current;
  current = null;
  if (!location.hash.startsWith("#instance=")) return; // a link in it was followed
  history.replaceState(null, "", "#instances");
  const link = table && all("td.name a", table).find((one) => one.getAttribute("href") === fragment(left));
  if (link) link.focus();
});
follow();

// On paper, all rows stand in the table if they are few.
addEventListener("beforeprint", () => { if (table && shown.length <= MOST_PRINTED) draw(shown); });
addEventListener("afterprint", () => { if (table) draw(); });
