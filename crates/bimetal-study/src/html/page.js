"use strict";
// Plots near the window are drawn as they come into view, the others while nothing else is to be done, all before printing.
(() => {
  const waiting = new Set(document.querySelectorAll(".plot"));
  const mouse = matchMedia("(pointer: fine)").matches;
  function draw(place) {
    if (!waiting.delete(place)) return;
    const plot = JSON.parse(place.nextElementSibling.textContent);
    if (mouse) plot.layout.dragmode = "zoom"; // A finger scrolls the page instead.
    Plotly.newPlot(place, plot.data, plot.layout, plot.config);
  }
  function drawNext() {
    for (const place of waiting) {
      draw(place);
      setTimeout(drawNext);
      return;
    }
  }
  const seen = new IntersectionObserver(
    (entries) => entries.forEach((entry) => entry.isIntersecting && draw(entry.target)),
    { rootMargin: "50%" },
  );
  waiting.forEach((place) => seen.observe(place));
  addEventListener("load", () => setTimeout(drawNext, 100));
  addEventListener("beforeprint", () => waiting.forEach(draw));
})();
