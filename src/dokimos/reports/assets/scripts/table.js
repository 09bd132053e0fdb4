// Every instance: filter, sort, and a page of rows at a time, so that thousands are no trouble.
const PAGE = 100;
const MOST_PRINTED = 500;
const table = byId("table");
let shown = instances;
let page = 0;

const searchable = (instance) => {
  instance.text ??= [
    instance.name, instance.family, instance.label, instance.certificate,
    ...instance.parameters.map(([name, value]) => `${name}=${value}`),
    ...instance.runs.flatMap((run) => [
      data.verifiers[run.verifier], run.answer, run.verdict, run.reason, run.detail, run.ended, run.tail,
    ]),
  ].join("\n").toLowerCase();
  return instance.text;
};

const wanted = () => {
  const words = byId("filter-text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const family = byId("filter-family").value;
  const verifier = data.verifiers.indexOf(byId("filter-verifier").value);
  const [kind, outcome] = byId("filter-outcome").value.split(/:(.*)/);
  const fits = (run) => (verifier < 0 || run.verifier === verifier)
    && (!outcome || (kind === "v" ? run.verdict : run.answer) === outcome);
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
const RANKS = { correct: 0, other: 1, undecided: 2, wrong: 3 };
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
    const key = (instance) => valueOf(instance.components[number] ?? null) ?? -Infinity;
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
  const component = instance.components[number] ?? null;
  const cell = element("td", { class: "count", "data-label": data.components[number][1] });
  const value = valueOf(component);
  cell.append(value === null ? "–" : short(value) + (noteOf(component) ? "*" : ""));
  if (noteOf(component)) cell.title = noteOf(component);
  return cell;
};

const headers = table ? all("thead th", table) : [];
const rowOf = (instance) => element(
  "tr", {},
  element("td", { class: "name" }, element("a", { href: fragment(instance) }, instance.name)),
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
