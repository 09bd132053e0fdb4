// What every page can do. The scripts of a page share these helpers.
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

// Copying a command: the clipboard API is absent on pages opened from a file in some browsers.
const copy = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
};
all("button.copy").forEach((button) => { button.hidden = false; });
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const code = button.closest(".command").querySelector("code");
  button.textContent = (await copy(code.textContent)) ? "Copied" : "Press Ctrl+C";
  if (button.textContent !== "Copied") getSelection().selectAllChildren(code);
  setTimeout(() => { button.textContent = "Copy"; }, 1600);
});

// Figures: what is pointed at says what it is.
const tip = element("div", { class: "tip", role: "status", hidden: "" });
document.body.append(tip);
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest?.("[data-tip]");
  tip.hidden = !mark;
  if (!mark) return;
  tip.textContent = mark.dataset.tip;
  const left = event.clientX > innerWidth / 2;
  tip.style.left = left ? "auto" : `${event.clientX + 14}px`;
  tip.style.right = left ? `${innerWidth - event.clientX + 14}px` : "auto";
  tip.style.top = `${event.clientY + 14}px`;
});

// The navigation says which section is being read.
const places = all("nav.sections a").map((link) => [link, byId(link.getAttribute("href").slice(1))]).filter(([, place]) => place);
const markPlace = () => {
  const passed = places.filter(([, place]) => place.getBoundingClientRect().top < innerHeight / 3);
  const here = passed.length ? passed[passed.length - 1][0] : null;
  for (const [link] of places) {
    if (link === here && !link.hasAttribute("aria-current")) {
      link.setAttribute("aria-current", "true");
      const row = link.parentElement;
      row.scrollLeft = link.offsetLeft - row.offsetLeft - row.clientWidth / 3;
    } else if (link !== here) link.removeAttribute("aria-current");
  }
};
let isMarking = false;
addEventListener("scroll", () => {
  if (isMarking) return;
  isMarking = true;
  requestAnimationFrame(() => { isMarking = false; markPlace(); });
}, { passive: true });
markPlace();

// A link to something that is folded away opens it.
const unfold = () => {
  const target = location.hash.length > 1 && byId(location.hash.slice(1));
  if (!target) return;
  const folds = [];
  for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS" && !e.open) folds.push(e);
  if (!folds.length) return;
  folds.forEach((fold) => { fold.open = true; });
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();

// Paper has no disclosure triangles: print what is folded where the page says so.
addEventListener("beforeprint", () => {
  all("[data-unfold-on-paper] details:not([open])").forEach((fold) => {
    fold.open = true;
    fold.dataset.printed = "";
  });
});
addEventListener("afterprint", () => {
  all("details[data-printed]").forEach((fold) => {
    fold.open = false;
    delete fold.dataset.printed;
  });
});
