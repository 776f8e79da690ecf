"use strict";
// The page opens before any plot is drawn. Those in view and near it come first, the others follow while nothing else is to
// be done, and all before printing.
(() => {
  const SLICE_MS = 50;
  const waiting = new Set(document.querySelectorAll(".plot"));
  const mouse = matchMedia("(pointer: fine)").matches;
  function draw(place) {
    if (!waiting.delete(place)) return;
    const plot = JSON.parse(place.nextElementSibling.textContent);
    if (mouse) plot.layout.dragmode = "zoom"; // A finger scrolls the page instead.
    Plotly.newPlot(place, plot.data, plot.layout, plot.config);
  }
  function drawSome() {
    const end = performance.now() + SLICE_MS;
    for (const place of waiting) {
      draw(place);
      if (performance.now() > end) break;
    }
    if (waiting.size > 0) setTimeout(drawSome, 10);
  }
  const view = new IntersectionObserver(
    (seen) => seen.forEach(({ isIntersecting, target }) => isIntersecting && draw(target)),
    { rootMargin: "50%" },
  );
  waiting.forEach((place) => view.observe(place));
  addEventListener("load", () => setTimeout(drawSome));
  addEventListener("beforeprint", () => waiting.forEach(draw));
})();
