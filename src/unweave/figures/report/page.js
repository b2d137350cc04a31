"use strict";
// Headings of tables become buttons that sort; without scripts the tables are as they were written.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  if (body.rows.length < 2) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const direction = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", direction);
      const sign = direction === "ascending" ? 1 : -1;
      const text = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.replaceAll(",", "");
      const compare = (a, b) => {
        const [x, y] = [Number(text(a)), Number(text(b))];
        if (Number.isNaN(x) || Number.isNaN(y)) {
          return Number.isNaN(x) - Number.isNaN(y) || sign * text(a).localeCompare(text(b));
        }
        return sign * (x - y);
      };
      body.append(...[...body.rows].sort(compare));
    });
  });
}
// Explorers that the report holds are put into a frame when asked for: each runs a model.
for (const button of document.querySelectorAll(".explorers button")) {
  const entry = button.closest("li");
  button.hidden = false;
  button.addEventListener("click", () => {
    const open = entry.querySelector("iframe");
    button.setAttribute("aria-expanded", String(!open));
    button.textContent = open ? "Explore here" : "Close";
    if (open) return open.remove();
    const frame = document.createElement("iframe");
    frame.title = button.dataset.title;
    frame.srcdoc = JSON.parse(entry.querySelector("script").textContent);
    entry.append(frame);
  });
}
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => (part.open = true)));
