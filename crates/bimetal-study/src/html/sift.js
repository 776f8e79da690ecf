"use strict";
// Tables: a click on a head or Enter sorts them, and words filter the rows that contain all of them.
const UNITS = {
  "µs": 1e-6, ms: 1e-3, s: 1, h: 3600, hours: 3600, days: 86400, years: 31557600,
  kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, PB: 1e15, EB: 1e18,
  KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50,
};
for (const place of document.querySelectorAll(".sift")) {
  const input = place.querySelector("input");
  const output = place.querySelector("output");
  const heads = [...place.querySelectorAll("thead th")];
  const body = place.querySelector("tbody");
  const rows = [...body.rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const cell = (row, column) => row.cells[column].textContent.trim();
  // A number behind its marks, in the base unit of its own unit: cells of a column may differ in unit.
  const number = (text) => {
    const [, digits, unit] = /^[*~!]*([+-]?[\d.,]+(?:e-?\d+)?)(?:\s*±\s*\S+)?\s*(\S*)$/.exec(text) ?? [];
    return digits === undefined ? Number.NaN : Number(digits.replaceAll(",", "")) * (UNITS[unit] ?? 1);
  };

  function sort(column) {
    const head = heads[column];
    const down = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down < 0 ? "descending" : "ascending");
    const isText = head.classList.contains("text");
    const compare = ({ row: a }, { row: b }) => {
      const [left, right] = [cell(a, column), cell(b, column)];
      // Settings are text: numbers, shares and sizes among them are compared by their value, 0.25 before 0.5.
      const areNumbers = [left, right].every((text) => /^[\d.,]+(?:e-?\d+)?\s*(?:%|[kMGTP]B|[KMGTP]iB)?$/.test(text));
      if (isText && !areNumbers) return down * left.localeCompare(right, "en", { numeric: true });
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
