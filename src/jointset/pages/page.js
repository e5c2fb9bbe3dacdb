// What every part of the page uses: its data, and what is drawn anew when the window changes.
const data = JSON.parse(document.getElementById("data").textContent);
const metric = (group, name) => value(group.mean[data.metrics.indexOf(name)]);
const panelOf = (thing) => data.panels[thing.panel];

const redrawn = []; // what depends on the width of the window
let waiting = 0;
let lastWidth = document.documentElement.clientWidth;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    if (document.documentElement.clientWidth === lastWidth) return;
    lastWidth = document.documentElement.clientWidth;
    redrawn.forEach((again) => again());
  }, 120);
});
