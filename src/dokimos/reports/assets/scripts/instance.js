// One instance in full: its parameters, its profile, and what each verifier said.
const sheet = byId("instance");
let current = null;

const facts = (pairs) => element(
  "dl", { class: "facts" },
  ...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value))))
);

// Where a value lies among all instances: how many of them have a smaller one, and an equal one.
const standing = (component, key, number) => {
  const value = valueOf(component);
  if (value === null || value === undefined) return "";
  const others = instances.map((one) => valueOf(one[key][number] ?? null)).filter((one) => one !== null);
  const below = others.filter((one) => one < value).length;
  const equal = others.filter((one) => one === value).length;
  const share = others.length > 1 ? (below + (equal - 1) / 2) / (others.length - 1) : 0.5;
  const place = element("span", { class: "standing", "aria-hidden": "true" }, element("i", { style: `left:${100 * share}%` }));
  const words = others.length > 1 ? `above ${below} of ${others.length - 1} others` : "the only one";
  return element("span", { class: "place" }, place, element("small", {}, words));
};

const measurements = (instance, key, names) => {
  const rows = names.map((name, number) => [name[name.length - 1], instance[key][number] ?? null, number])
    .filter(([, component]) => component !== null)
    .map(([name, component, number]) => element(
      "tr", {},
      element("th", { scope: "row" }, name),
      element("td", { class: "count" }, valueOf(component) === null ? "–" : short(valueOf(component))),
      element("td", {}, standing(component, key, number), noteOf(component) ? element("small", { class: "note" }, noteOf(component)) : "")
    ));
  return rows.length ? element("table", { class: "profile" }, element("tbody", {}, ...rows)) : "";
};

const profile = (instance) => {
  if (instance.problem) return [element("p", { class: "lead" }, `None that can be used: ${instance.problem}; `, element("code", {}, "dokimos profile"), " measures it.")];
  const extras = measurements(instance, "extras", data.extras);
  return [
    measurements(instance, "components", data.components),
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

const follow = () => {
  const match = /^#instance=(.*)$/.exec(location.hash);
  let name = null;
  try {
    name = match && decodeURIComponent(match[1]);
  } catch { /* a fragment that somebody cut: no instance */ }
  const instance = byName.get(name);
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
