// What all views share: elements, numbers, where one is (in the address's hash), search.
"use strict";
let D = null;      // the report's data
let texts = null;  // the texts of kernels, unpacked when one is looked at
const views = {};  // name -> {title, has(), show(arguments)}
const $ = (selector, around = document) => around.querySelector(selector);

function build(make, tag, attributes, children) {
  const element = make(tag);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}
const h = (tag, attributes, ...children) => build((t) => document.createElement(t), tag, attributes, children);
const s = (tag, attributes, ...children) =>
  build((t) => document.createElementNS("http://www.w3.org/2000/svg", t), tag, attributes, children);

const count = (n) => n === null || n === undefined ? "" : n.toLocaleString("en-US");
const bytes = (n) => n === null || n === undefined ? "?" : n < 1e3 ? `${n} B` : n < 1e6 ? `${(n / 1e3).toFixed(0)} kB`
  : n < 1e9 ? `${(n / 1e6).toFixed(1)} MB` : `${(n / 1e9).toFixed(2)} GB`;
const time = (us) => us === null || us === undefined ? "" : us < 1e3 ? `${us.toFixed(us < 10 ? 2 : 1)} µs` : `${(us / 1e3).toFixed(2)} ms`;
const cut = (text, n) => text.length <= n ? text : text.slice(0, n - 1) + "…";
const number = (x) => x === 0 ? "0" : x === null || x === undefined ? "" : x >= 1e300 ? "∞" : x.toExponential(1);

async function unpack(id) {
  const packed = Uint8Array.from(atob($("#" + id).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
async function textOf(key) {
  texts = texts || await unpack("texts");
  return texts[key];
}

// ---- where one is ----

function go(...parts) {
  const wanted = "#" + parts.map((p) => encodeURIComponent(p)).join("/");
  if (location.hash === wanted) route();
  else location.hash = wanted;
}
function route() {
  const [name, ...rest] = location.hash.slice(1).split("/").map(decodeURIComponent);
  const chosen = views[name] && views[name].has() ? name : Object.keys(views).find((n) => views[n].has());
  document.querySelectorAll("#tabs .tab").forEach((tab) => tab.classList.toggle("on", tab.dataset.view === chosen));
  views[chosen].show(rest);
}
function put(...children) { $("#view").replaceChildren(...children); }
function side(...children) {
  const close = h("button", {class: "close", title: "close", onclick: () => side()}, "✕");
  $("#side").replaceChildren(...(children.length ? [close, ...children] : []));
  $("#side").scrollTop = 0;
}

function tabs() {
  const bar = $("#tabs");
  for (const [name, view] of Object.entries(views)) {
    if (view.has()) bar.append(h("button", {class: "tab", "data-view": name, onclick: () => go(name)}, view.title));
  }
  const found = h("div", {id: "found"});
  const input = h("input", {type: "search", placeholder: "name, op, file:line, shape   ( / )", id: "query",
    oninput: (event) => search(event.target.value, found), onkeydown: (event) => steer(event, found)});
  bar.append(h("div", {id: "search"}, input, found));
  document.addEventListener("click", (event) => { if (!event.target.closest("#search")) found.replaceChildren(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target === document.body) { event.preventDefault(); input.focus(); }
  });
}

// ---- search ----

let index = null;
function entries() {
  if (index) return index;
  index = [];
  D.levels.forEach((level, l) => level.nodes.forEach((node, n) => {
    const from = node[4].map((o) => D.origins[o].slice(0, 3).join(" ")).join(" ");
    index.push([l, n, `${node[0]} ${node[2]} ${D.lines[node[1]]} ${from}`.toLowerCase()]);
  }));
  return index;
}
function search(text, list) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean), hits = [];
  if (words.length) {
    for (const entry of entries()) {
      if (words.every((word) => entry[2].includes(word)) && hits.push(entry) === 60) break;
    }
  }
  list.replaceChildren(...hits.map(([l, n]) => {
    const node = D.levels[l].nodes[n], from = node[4].length ? D.origins[node[4][0]] : null;
    const open = () => { list.replaceChildren(); goNode(l, n); };
    return h("div", {onclick: open}, h("b", {}, node[0]), ` ${node[2]} `, h("span", {class: "soft"}, D.levels[l].name),
      h("small", {}, from ? `${from[0]}  ${from[2]}` : D.lines[node[1]]));
  }), ...(words.length && !hits.length ? [h("div", {class: "soft"}, "nothing has this")] : []));
}
function steer(event, list) {
  const rows = [...list.children], at = rows.findIndex((row) => row.classList.contains("at"));
  if (event.key === "Enter" && rows.length) rows[Math.max(at, 0)].click();
  else if (event.key === "Escape") { list.replaceChildren(); event.target.blur(); }
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const next = Math.min(rows.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)));
    rows.forEach((row, n) => row.classList.toggle("at", n === next));
    if (rows[next]) rows[next].scrollIntoView({block: "nearest"});
    event.preventDefault();
  }
}
