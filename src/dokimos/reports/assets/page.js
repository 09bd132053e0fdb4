"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

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
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  };
  all("button.copy").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const code = button.closest(".command").querySelector("code");
      button.textContent = (await copy(code.textContent)) ? "Copied" : "Press Ctrl+C";
      if (button.textContent !== "Copied") getSelection().selectAllChildren(code);
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
  });

  // Every run: filter and sort.
  const table = document.getElementById("runs-table");
  if (table) {
    const body = table.tBodies[0];
    const rows = all("tr", body);
    const controls = all("[data-filter]");
    const shown = document.getElementById("runs-shown");
    const filter = () => {
      const wanted = Object.fromEntries(controls.map((c) => [c.dataset.filter, c.value.trim().toLowerCase()]));
      const words = wanted.text.split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const keep = ["family", "verifier", "verdict"].every(
          (key) => !wanted[key] || row.dataset[key].toLowerCase() === wanted[key]
        ) && words.every((word) => text.includes(word));
        row.hidden = !keep;
        count += keep;
      }
      shown.textContent = count === rows.length ? `${rows.length} runs` : `${count} of ${rows.length} runs`;
      document.getElementById("runs-none").hidden = count > 0;
    };
    controls.forEach((control) => control.addEventListener("input", filter));
    document.querySelector(".filters").addEventListener("reset", () => setTimeout(filter));

    const collator = new Intl.Collator("en", { numeric: true });
    all("thead th", table).forEach((header, column) => {
      const button = header.querySelector("button");
      if (!button) return;
      const numeric = header.dataset.sort === "number";
      button.addEventListener("click", () => {
        const down = header.getAttribute("aria-sort") === "ascending";
        all("thead th", table).forEach((other) => other.removeAttribute("aria-sort"));
        header.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => row.cells[column].dataset.value;
        const compare = numeric
          ? (a, b) => Number(key(a)) - Number(key(b))
          : (a, b) => collator.compare(key(a), key(b));
        rows.sort((a, b) => (down ? -compare(a, b) : compare(a, b)));
        body.append(...rows);
      });
    });
    filter();
  }

  // The plot: point anywhere, the nearest dot answers.
  const plot = document.querySelector(".plot-area");
  if (plot) {
    const tip = plot.querySelector(".tip");
    const dots = all("[data-tip]", plot);
    const hide = () => {
      tip.hidden = true;
      dots.forEach((dot) => dot.classList.remove("near"));
    };
    plot.addEventListener("pointermove", (event) => {
      const frame = plot.getBoundingClientRect();
      let best = null;
      let least = 60;
      for (const dot of dots) {
        const distance = Math.hypot(
          event.clientX - frame.left - (dot.dataset.x / 100) * frame.width,
          event.clientY - frame.top - (dot.dataset.y / 100) * frame.height
        );
        if (distance < least) [best, least] = [dot, distance];
      }
      hide();
      if (!best) return;
      best.classList.add("near");
      tip.textContent = best.dataset.tip;
      tip.style.top = `${best.dataset.y}%`;
      tip.style.left = best.dataset.x > 50 ? "auto" : `${best.dataset.x}%`;
      tip.style.right = best.dataset.x > 50 ? `${100 - best.dataset.x}%` : "auto";
      tip.hidden = false;
    });
    plot.addEventListener("pointerleave", hide);
  }

  // Paper has no disclosure triangles: print what is folded in the wrong answers.
  addEventListener("beforeprint", () => {
    all("#wrong details:not([open])").forEach((fold) => {
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
})();
