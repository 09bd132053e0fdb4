"use strict";
(() => {
  const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

  // Copying a command: the clipboard API is absent on pages opened from a file in some browsers.
  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
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

  // A link to a law that is folded away opens it.
  const unfold = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // Paper has no disclosure triangles: print what is folded.
  addEventListener("beforeprint", () => {
    all("details:not([open])").forEach((fold) => {
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
