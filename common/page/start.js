// Draws the parts of a page, and redraws them when the window or the colours change.
window.addEventListener("error", event => { document.body.dataset.error = event.message; });
const data = JSON.parse(document.getElementById("data").textContent);
for (const note of document.querySelectorAll(".needs-script")) note.remove();
const redraws = [], colourings = [];
const byId = id => document.getElementById(id);
if (data.memory) var drawMemory = memory(byId("memory"), data.memory);
for (const name of ["timeline", "schedule", "cluster"].filter(name => data[name])) {
    const line = timeline(byId(name), data[name], view => name === "timeline" && drawMemory && drawMemory(view));
    line.colours();
    redraws.push(line.draw);
    colourings.push(line.colours);
}
if (data.memory) colourings.push(() => legend(byId("memory").querySelector(".legend"), data.memory.kinds));
if (data.loss) redraws.push(loss(byId("loss"), data.loss));
if (data.matrices) redraws.push(blocks(data));
for (const redraw of redraws) redraw();
let waiting = 0;
window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => redraws.forEach(redraw => redraw()), 60); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => colourings.forEach(colouring => colouring()));
document.body.dataset.ready = "yes";
