// Checks a report in its form for readers, and reports errors to the page around it.
"use strict";
(() => {
  const problems = [];
  const say = (text) => problems.length < 40 && problems.push(text);
  addEventListener("error", (event) => say(`error: ${event.message || `${event.target.tagName} does not load`}`), true);
  addEventListener("unhandledrejection", (event) => say(`rejection: ${event.reason}`));
  addEventListener("securitypolicyviolation", (event) => say(`blocked: ${event.violatedDirective} ${event.blockedURI}`));
  for (const level of ["error", "warn"]) {
    console[level] = (...words) => say(`console.${level}: ${words.join(" ")}`);
  }

  const all = (root, selector) => [...root.querySelectorAll(selector)];
  const name = (element) => `"${element.textContent.trim().slice(0, 40)}"`;

  // Every series has one mark, bar or line for each point.
  function drawn(place) {
    const title = place.id;
    if (!place.querySelector(".main-svg")) return say(`${title} is not drawn`);
    const traces = all(place, ".scatterlayer .trace, .barlayer .trace");
    if (traces.length !== place.data.length) say(`${title}: ${traces.length} of ${place.data.length} series are drawn`);
    const { xaxis, yaxis } = place._fullLayout;
    const visible = (value, axis) => value !== null && value !== undefined && (axis.type !== "log" || value > 0);
    place._fullData.forEach((series, index) => {
      const points = series.x.filter((x, at) => visible(x, xaxis) && visible(series.y[at], yaxis)).length;
      const trace = traces[index];
      if (!trace || points === 0) return;
      const marks = all(trace, ".point").length;
      if (series.type === "bar" || series.mode.includes("markers")) {
        if (marks !== points) say(`${title}: ${marks} of ${points} points of ${series.name} are drawn`);
      } else if (!all(trace, ".js-line").some((line) => line.getAttribute("d")?.length > 1)) {
        say(`${title}: no line of ${series.name}`);
      }
    });
    const area = place.querySelector(".nsewdrag").getBoundingClientRect();
    const legend = place.querySelector(".legend")?.getBoundingClientRect();
    if (legend && overlap(legend, area, 1)) say(`${title}: the legend covers the points`);
    if (area.height < 40 || area.width < 120) say(`${title}: points have ${area.width} x ${area.height} pixels`);
  }

  function overlap(a, b, least) {
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    return width > least && height > least;
  }

  // The lines of all visible texts, clipped to the part that is visible without scrolling sideways.
  function texts() {
    const found = [];
    const add = (element, rect, frame) => {
      const clip = frame?.getBoundingClientRect() ?? { left: -Infinity, right: Infinity };
      const left = Math.max(rect.left, clip.left);
      const right = Math.min(rect.right, clip.right);
      if (right - left > 1 && rect.height > 1) found.push({ element, left, right, top: rect.top, bottom: rect.bottom });
    };
    for (const text of all(document, ".plot text")) {
      if (!text.textContent.trim()) continue;
      const rect = text.getBoundingClientRect();
      const place = text.closest(".plot").getBoundingClientRect();
      const inside = rect.left >= place.left - 1 && rect.right <= place.right + 1 && rect.top >= place.top - 1 && rect.bottom <= place.bottom + 1;
      if (!inside) say(`${text.closest(".plot").id}: ${name(text)} is cut off`);
      add(text, rect);
    }
    const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || element.closest(".plot, script, style") || !element.checkVisibility()) continue;
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) add(element, rect, element.closest(".scroll, pre"));
    }
    return found.sort((a, b) => a.top - b.top);
  }

  function apart(lines) {
    lines.forEach((line, index) => {
      for (let next = index + 1; next < lines.length && lines[next].top < line.bottom - 2; next += 1) {
        if (lines[next].element !== line.element && overlap(line, lines[next], 2)) {
          say(`${name(line.element)} and ${name(lines[next].element)} overlap`);
        }
      }
    });
  }

  // Before a reader opens anything: the ends of the verdict and of the first row of a comparison, and the page's width.
  function folded() {
    const end = (selector) => document.querySelector(selector)?.getBoundingClientRect().bottom ?? null;
    return {
      verdict: end(".answer"),
      row: end(".beside tbody tr:not(.group)"),
      width: document.documentElement.scrollWidth,
    };
  }

  function look(patience, closed) {
    const places = all(document, ".plot");
    if (patience > 0 && places.some((place) => !place.querySelector(".main-svg"))) {
      return setTimeout(() => look(patience - 1, closed), 100);
    }
    const result = { width: innerWidth, plots: places.length, texts: 0, folded: closed, problems };
    try {
      places.forEach(drawn);
      const lines = texts();
      apart(lines);
      result.texts = lines.length;
      const width = document.documentElement.scrollWidth;
      if (width > innerWidth) say(`the page is ${width} pixels wide in a window of ${innerWidth}`);
    } catch (error) {
      say(`check: ${error.stack}`);
    }
    parent.postMessage(result, "*");
  }
  // A reader opens every section of details.
  const open = () => all(document, "details.section").forEach((section) => { section.open = true; });
  addEventListener("load", () => setTimeout(() => { const closed = folded(); open(); look(300, closed); }, 500));
})();
