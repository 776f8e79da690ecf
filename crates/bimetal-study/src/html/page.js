"use strict";
// As many plots as a moment allows are drawn at once. The others follow as they come into view or while nothing else is to
// be done, and all before printing.
(() => {
  const MOMENT_MS = 800;
  const waiting = new Set(document.querySelectorAll(".plot"));
  const mouse = matchMedia("(pointer: fine)").matches;
  function draw(place) {
    if (!waiting.delete(place)) return;
    const plot = JSON.parse(place.nextElementSibling.textContent);
    if (mouse) plot.layout.dragmode = "zoom"; // A finger scrolls the page instead.
    Plotly.newPlot(place, plot.data, plot.layout, plot.config);
  }
  function drawSome(milliseconds) {
    const end = performance.now() + milliseconds;
    for (const place of waiting) {
      draw(place);
      if (performance.now() > end) break;
    }
    if (waiting.size > 0) setTimeout(drawSome, 10, 50);
  }
  const view = new IntersectionObserver(
    (seen) => seen.forEach(({ isIntersecting, target }) => isIntersecting && draw(target)),
    { rootMargin: "50%" },
  );
  drawSome(MOMENT_MS);
  waiting.forEach((place) => view.observe(place));
  addEventListener("beforeprint", () => waiting.forEach(draw));
})();
