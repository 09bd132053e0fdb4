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

const byPlace = new Map(instances.map((instance) => [`${instance.suite}/${instance.own}`, instance]));
document.addEventListener("click", (event) => {
  const instance = byPlace.get(event.target.closest?.("[data-opens]")?.dataset.opens);
  if (instance) location.hash = fragment(instance);
});

// Paper has no disclosure triangles: print what is folded in the wrong answers, and all rows if they are few.
addEventListener("beforeprint", () => {
  all("#wrong details:not([open])").forEach((fold) => {
    fold.open = true;
    fold.dataset.printed = "";
  });
  if (table && shown.length <= MOST_PRINTED) draw(shown);
});
addEventListener("afterprint", () => {
  all("details[data-printed]").forEach((fold) => {
    fold.open = false;
    delete fold.dataset.printed;
  });
  if (table) draw();
});
