// Sorts and filters the table of a sweep, and reports wrong results.
"use strict";
addEventListener("load", () => {
  const complain = (what) => console.error(`sift: ${what}`);
  const place = document.querySelector(".sift");
  const heads = [...place.querySelectorAll("thead th")];
  const rows = () => [...place.querySelectorAll("tbody tr")];
  const column = heads.findIndex((head) => head.textContent.startsWith("cost"));
  const texts = (of) => rows().map((row) => row.cells[of].textContent);
  const count = rows().length;
  const click = (head) => head.dispatchEvent(new MouseEvent("click"));
  const isSorted = (values) => values.every((value, at) => at === 0 || values[at - 1] <= value);

  click(heads[column]);
  const numbers = () => texts(column).map((text) => Number.parseFloat(text.replaceAll(",", "")));
  const up = numbers().filter((number) => !Number.isNaN(number));
  if (up.length < 10 || !isSorted(up)) complain(`costs are not sorted: ${up}`);
  if (!numbers().slice(up.length).every(Number.isNaN)) complain("what has no cost is not last");
  if (heads[column].getAttribute("aria-sort") !== "ascending") complain("the head does not say so");
  click(heads[column]);
  const down = numbers().slice(0, up.length);
  if (!isSorted(down.reverse())) complain(`costs are not sorted the other way: ${down}`);
  heads[0].dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  if (!isSorted(texts(0))) complain(`schemes are not sorted: ${texts(0)}`);
  const spare = heads.findIndex((head) => head.textContent === "slow.spare");
  click(heads[spare]);
  const shares = texts(spare).filter(Boolean).map(Number.parseFloat);
  if (shares.length < 10 || !isSorted(shares)) complain(`settings are not sorted: ${shares}`);
  if (rows().length !== count) complain("rows are missing");

  const input = place.querySelector("input");
  const filter = (words) => {
    input.value = words;
    input.dispatchEvent(new Event("input"));
    return rows().filter((row) => row.checkVisibility());
  };
  const some = filter("WLAFTL 9%");
  if (some.length === 0 || some.length === count) complain(`${some.length} rows are shown`);
  if (!some.every((row) => /wlaftl.*9%/.test(row.textContent))) complain("others are shown");
  if (place.querySelector("output").textContent !== `${some.length} of ${count}`) complain("the count is wrong");
  if (filter("nosuch").length !== 0 || filter("").length !== count) complain("the filter cannot be undone");
});
