"use strict";
// The page opens before any plot is drawn. Plots in or near the viewport are drawn first, the others in idle time, and
// all of them before printing. A plot in a folded section is drawn when the section is opened, since it has no width
// before.
(() => {
  const SLICE_MS = 50;
  // Colours of light plots, each with its replacement on a dark page.
  const DARK = { "#1b1b1b": "#e6e6e6", "#dddddd": "#3d3d3d", "#ffffff": "#161616", "#000000": "#f5f5f5", "#0072b2": "#3d9bd6" };
  const places = document.querySelectorAll(".plot");
  const waiting = new Set(places);
  const mouse = matchMedia("(pointer: fine)").matches;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isFolded = (place) => place.closest("details:not([open])") !== null;
  function show(place, isDark) {
    let text = place.nextElementSibling.textContent;
    if (isDark) text = text.replace(/#[0-9a-f]{6}/g, (color) => DARK[color] ?? color);
    const plot = JSON.parse(text);
    if (mouse) plot.layout.dragmode = "zoom"; // On a touch screen, dragging scrolls the page.
    Plotly.react(place, plot.data, plot.layout, plot.config);
  }
  function draw(place) {
    if (!isFolded(place) && waiting.delete(place)) show(place, dark.matches);
  }
  function drawSome() {
    const end = performance.now() + SLICE_MS;
    let drawn = 0;
    for (const place of waiting) {
      if (isFolded(place)) continue;
      draw(place);
      drawn += 1;
      if (performance.now() > end) break;
    }
    if (drawn > 0) setTimeout(drawSome, 10);
  }
  const again = (isDark) => places.forEach((place) => !waiting.has(place) && !isFolded(place) && show(place, isDark));
  const view = new IntersectionObserver(
    (seen) => seen.forEach(({ isIntersecting, target }) => isIntersecting && draw(target)),
    { rootMargin: "50%" },
  );
  waiting.forEach((place) => view.observe(place));
  addEventListener("load", () => setTimeout(drawSome));
  addEventListener("toggle", () => setTimeout(drawSome), true);
  dark.addEventListener("change", () => again(dark.matches));
  // Plots are printed in light colours, because paper is white. A plot of many bars is drawn lower, so that it fits on a
  // sheet with its title.
  const SHEET_PX = 800;
  const tall = new Map();
  addEventListener("beforeprint", () => {
    waiting.forEach(draw);
    for (const place of places) {
      if (isFolded(place) || place.offsetHeight <= SHEET_PX) continue;
      tall.set(place, place.style.height);
      place.style.height = `${SHEET_PX}px`;
    }
    tall.forEach((_, place) => show(place, false));
    if (dark.matches) again(false);
  });
  addEventListener("afterprint", () => {
    tall.forEach((height, place) => {
      place.style.height = height;
      show(place, dark.matches);
    });
    tall.clear();
    if (dark.matches) again(true);
  });
})();
