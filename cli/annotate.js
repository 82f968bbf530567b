"use strict";
// What the page can do beside folding, which <details> does by itself.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const folds = () => all(".source details");

  const button = (text, action) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", action);
    return made;
  };

  // Unfold and fold everything.
  const tools = document.querySelector(".tools");
  tools.prepend(
    button("Unfold all", () => folds().forEach((one) => { one.open = true; })),
    button("Fold all", () => folds().forEach((one) => { one.open = false; })));
  tools.hidden = false;

  // A kind in the legend, pressed, dims the lines that are not of it.
  let chosen = null;
  const show = (kind) => {
    chosen = kind === chosen ? null : kind;
    all(".legend button").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.kind === chosen)));
    all(".line").forEach((line) => {
      const kinds = (line.dataset.kinds || "").split(" ");
      line.classList.toggle("dimmed", chosen !== null && !kinds.includes(chosen));
    });
  };
  all(".legend li").forEach((item) => {
    const made = button("", () => show(item.dataset.kind));
    made.dataset.kind = item.dataset.kind;
    made.setAttribute("aria-pressed", "false");
    made.append(...item.childNodes);
    item.append(made);
  });

  // A link to a line of the module unfolds it.
  const reveal = () => {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    for (let around = target && target.closest("details"); around; around = around.parentElement.closest("details")) {
      around.open = true;
    }
    if (target) target.scrollIntoView({block: "center"});
  };
  addEventListener("hashchange", reveal);
  reveal();

  // j and k go to the next and the previous line that unfolds.
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !"jk".includes(event.key)) return;
    const rows = all(".source summary").filter((row) => !row.closest(".dimmed"));
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement);
    const next = event.key === "j" ? Math.min(at + 1, rows.length - 1) : Math.max(at - 1, 0);
    rows[next].focus();
    rows[next].scrollIntoView({block: "nearest"});
  });
})();
