"use strict";
// Tables: a click on a head or Enter sorts them, and words filter the rows that contain all of them.
for (const place of document.querySelectorAll(".sift")) {
  const input = place.querySelector("input");
  const output = place.querySelector("output");
  const heads = [...place.querySelectorAll("thead th")];
  const body = place.querySelector("tbody");
  const rows = [...body.rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const cell = (row, column) => row.cells[column].textContent.trim();
  const number = (text) => Number.parseFloat(text.replace(/^\*/, "").replaceAll(",", ""));

  function sort(column) {
    const head = heads[column];
    const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down < 0 ? "descending" : "ascending");
    const isText = head.classList.contains("text");
    const compare = ({ row: a }, { row: b }) => {
      const [left, right] = [cell(a, column), cell(b, column)];
      if (isText) return down * left.localeCompare(right, "en", { numeric: true });
      const [x, y] = [number(left), number(right)];
      // Cells without a number come last in both directions.
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return down * (x - y);
    };
    body.append(...rows.sort(compare).map(({ row }) => row));
  }

  function filter() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text } of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    output.textContent = `${shown} of ${rows.length}`;
  }

  heads.forEach((head, column) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(column));
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort(column));
  });
  input.addEventListener("input", filter);
}
