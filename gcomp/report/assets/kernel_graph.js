// The kernels of a model as one drawing: find a box by a text, and see what is next to it.
const boxes = [...document.querySelectorAll("g.box")], lines = [...document.querySelectorAll("svg.graph path")];
document.getElementById("find").addEventListener("input", (event) => {
  const text = event.target.value.toLowerCase();
  const far = (box) => text && !box.textContent.toLowerCase().includes(text);
  boxes.forEach((box) => box.classList.toggle("faint", far(box)));
  const first = boxes.find((box) => text && !far(box));
  if (first) first.scrollIntoView({block: "center", inline: "center"});
});
boxes.forEach((box) => {
  const mine = lines.filter((line) => line.dataset.from === box.id || line.dataset.to === box.id);
  box.addEventListener("mouseenter", () => mine.forEach((line) => line.classList.add("on")));
  box.addEventListener("mouseleave", () => mine.forEach((line) => line.classList.remove("on")));
});
