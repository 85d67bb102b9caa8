// The graph of a level: an outline of groups, the drawing of the one that is open, and what is known of an op.
"use strict";
const W = 168, H = 42;  // of a box
let homes = [];         // for each level: node -> the group that draws it

views.graph = {
  title: "Graph",
  has: () => D.levels.length > 0,
  show: ([level, group, node]) => {
    const l = level === undefined ? D.levels.length - 1 : D.levels.findIndex((one) => one.name === level);
    showGraph(Math.max(l, 0), group === undefined ? first(Math.max(l, 0)) : Number(group), node === undefined ? null : Number(node));
  },
};
// A group that holds one other group and no more is opened at once.
function first(l) {
  let at = 0;
  for (;;) {
    const children = D.levels[l].groups[at][4];
    if (children.length !== 1 || children[0] >= 0) return at;
    at = -1 - children[0];
  }
}
function home(l, n) {
  if (!homes[l]) {
    homes[l] = new Int32Array(D.levels[l].nodes.length).fill(-1);
    D.levels[l].groups.forEach((group, g) => group[4].forEach((ref) => { if (ref >= 0) homes[l][ref] = g; }));
  }
  return homes[l][n];
}
function goNode(l, n) {
  // A weight or a constant is in no drawing: the group of what reads it is shown.
  const g = home(l, n), reader = g >= 0 ? n : users(l, n).find((u) => home(l, u) >= 0);
  go("graph", D.levels[l].name, g >= 0 ? g : reader === undefined ? 0 : home(l, reader), n);
}
let readers = [];
function users(l, n) {
  if (!readers[l]) {
    readers[l] = D.levels[l].nodes.map(() => []);
    D.levels[l].nodes.forEach((node, u) => node[6].forEach((source) => readers[l][source].push(u)));
  }
  return readers[l][n];
}

function showGraph(l, g, chosen) {
  const level = D.levels[l], group = level.groups[g];
  const path = [];
  for (let at = g; at >= 0; at = level.groups[at][2]) path.unshift(at);
  const crumbs = h("div", {id: "crumbs"},
    D.levels.map((one, n) => h("button", {class: n === l ? "on" : "", onclick: () => go("graph", one.name)}, one.name)),
    h("span", {class: "path"}, path.flatMap((at, n) => [n ? " / " : "", at === g ? h("b", {}, level.groups[at][0])
      : h("a", {onclick: () => go("graph", level.name, at)}, level.groups[at][0])]), h("span", {class: "soft"}, `  ${count(group[1])} ops`)));
  if (group[6].length) {
    crumbs.append(h("span", {class: "path soft"}, "read throughout: ", group[6].map(([title, ref], n) =>
      [n ? ", " : "", ref < 0 ? title : h("a", {onclick: () => goNode(l, ref)}, title)])));
  }
  const stubs = group[5].map(([title, ref]) => ({title, shape: "", stub: true, pick: ref < 0 ? null : () => goNode(l, ref)}));
  const drawing = level.drawings[group[3]];
  const boxes = [...stubs, ...group[4].map((ref, i) => ({...box(l, ref), leaves: drawing.m[i], chosen: ref === chosen}))];
  const canvas = zoomed(drawing, boxes, boxes.findIndex((one) => one.chosen));
  put(h("div", {id: "graph"}, h("div", {id: "outline"}, branch(l, 0, new Set(path), g)), h("div", {id: "canvas"}, crumbs, canvas,
    h("div", {id: "zoom"}, h("button", {title: "larger (Ctrl and scroll)", onclick: () => canvas.zoom(1.3)}, "+"),
      h("button", {title: "smaller (Ctrl and scroll)", onclick: () => canvas.zoom(1 / 1.3)}, "−")))));
  const mark = $("#outline .on");
  if (mark) mark.scrollIntoView({block: "nearest"});
  if (chosen !== null) inspect(l, chosen); else side();
}
function box(l, ref) {
  const level = D.levels[l];
  if (ref < 0) {
    const g = -1 - ref;
    return {title: level.groups[g][0], shape: `${count(level.groups[g][1])} ops`, group: true, kind: "", share: groupShare(l, g),
      pick: () => go("graph", level.name, g)};
  }
  const node = level.nodes[ref];
  return {title: node[0], shape: node[2], kind: node[3], line: node[1], share: node[5], pick: () => go("graph", level.name, home(l, ref), ref)};
}
function groupShare(l, g) {
  const level = D.levels[l];
  return level.groups[g][4].reduce((sum, ref) => sum + (ref < 0 ? groupShare(l, -1 - ref) : level.nodes[ref][5]), 0);
}

// ---- the outline ----

function branch(l, g, open, at) {
  const level = D.levels[l], [title, size, , , children] = level.groups[g];
  const inner = children.filter((ref) => ref < 0).map((ref) => -1 - ref);
  const holder = h("div", {class: "inner"});
  const fill = () => { if (!holder.children.length) holder.append(...inner.map((child) => branch(l, child, open, at))); };
  const twist = h("span", {class: "twist"}, inner.length ? (open.has(g) ? "▾" : "▸") : "");
  const toggle = (event) => {
    event.stopPropagation();
    fill();
    holder.hidden = !holder.hidden;
    twist.textContent = holder.hidden ? "▸" : "▾";
  };
  twist.addEventListener("click", toggle);
  holder.hidden = !open.has(g);
  if (open.has(g)) fill();
  return h("div", {}, h("div", {class: "item" + (g === at ? " on" : ""), title, onclick: () => go("graph", level.name, g)},
    twist, h("span", {}, title), h("span", {class: "n"}, count(size))), holder);
}

// ---- drawings ----

function curve(points) {
  let d = `M${points[0][0]},${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [x, y] = points[i - 1], [u, v] = points[i], half = (y + v) / 2;
    d += `C${x},${half} ${u},${half} ${u},${v}`;
  }
  return d;
}
function content(drawing, boxes) {
  const edges = drawing.e.map(([a, b, bends]) => {
    const points = [[drawing.p[a][0], drawing.p[a][1] + H / 2]];
    for (let i = 0; i < bends.length; i += 2) points.push([bends[i], bends[i + 1]]);
    points.push([drawing.p[b][0], drawing.p[b][1] - H / 2]);
    return s("path", {class: "edge", "data-a": a, "data-b": b, d: curve(points)});
  });
  const nodes = boxes.map((one, n) => {
    const [x, y] = drawing.p[n], left = x - W / 2, top = y - H / 2;
    const state = [one.group && "group", one.stub && "stub", one.state, one.chosen && "chosen", one.kind && "k-" + one.kind,
      one.leaves && "returned"].filter(Boolean).join(" ");
    const near = (on) => edges.forEach((e) => e.classList.toggle("on", on && (e.dataset.a == n || e.dataset.b == n)));
    return s("g", {class: "box " + state, onmouseenter: () => near(true), onmouseleave: () => near(false),
      onclick: one.pick ? (event) => { event.stopPropagation(); one.pick(); } : null},
      s("title", {}, `${one.title} ${one.shape}${one.line === undefined ? "" : "\n" + D.lines[one.line]}`),
      one.group ? s("rect", {class: "back", x: left + 4, y: top - 4, width: W, height: H, rx: 7}) : null,
      s("rect", {class: "face", x: left, y: top, width: W, height: H, rx: one.stub ? 20 : 7}),
      one.share ? s("rect", {class: "share", x: left, y: top + H - 4, width: Math.max(1, W * Math.min(1, one.share)), height: 4, rx: 2}) : null,
      s("text", {x, y: one.shape ? y - 3 : y + 4, "text-anchor": "middle"}, cut(one.title, 23)),
      one.shape ? s("text", {class: "small", x, y: y + 12, "text-anchor": "middle"}, cut(one.shape, 30)) : null);
  });
  return [...edges, ...nodes];
}
function plain(drawing, boxes) {
  const scale = Math.min(1, Math.max(0.6, 620 / drawing.w));
  return s("svg", {width: drawing.w * scale, height: drawing.h * scale, viewBox: `0 0 ${drawing.w} ${drawing.h}`}, content(drawing, boxes));
}
// A drawing that can be moved and scaled. It begins whole where it is readable so, else at its top, or at a box.
function zoomed(drawing, boxes, at) {
  const inside = s("g", {}, content(drawing, boxes)), canvas = s("svg", {}, inside);
  let scale = 1, dx = 0, dy = 0;
  const place = () => inside.setAttribute("transform", `translate(${dx},${dy}) scale(${scale})`);
  requestAnimationFrame(() => {
    const {width, height} = canvas.getBoundingClientRect();
    scale = Math.min(1.25, Math.max(0.55, Math.min((width - 40) / drawing.w, (height - 90) / drawing.h)));
    const [x, y] = at >= 0 ? drawing.p[at] : [drawing.w / 2, 0];
    dx = drawing.w * scale <= width ? (width - drawing.w * scale) / 2 : Math.min(20, width / 2 - x * scale);
    dy = drawing.h * scale <= height - 70 ? 60 : Math.min(60, height / 2 - y * scale);
    place();
  });
  const zoom = (factor, px, py) => {
    const next = Math.min(3, Math.max(0.05, scale * factor));
    dx = px - (px - dx) * next / scale; dy = py - (py - dy) * next / scale; scale = next;
    place();
  };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const area = canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(-event.deltaY / 400), event.clientX - area.left, event.clientY - area.top);
    else { dx -= event.deltaX; dy -= event.deltaY; place(); }
  }, {passive: false});
  let held = null, from = null;
  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX - dx, event.clientY - dy]; from = [event.clientX, event.clientY]; });
  canvas.addEventListener("pointermove", (event) => {
    if (held && event.buttons) { dx = event.clientX - held[0]; dy = event.clientY - held[1]; place(); } else held = null;
  });
  // Who drags a box moves the drawing, and opens nothing.
  canvas.addEventListener("click", (event) => {
    if (from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) > 5) event.stopPropagation();
  }, true);
  canvas.zoom = (factor) => zoom(factor, canvas.clientWidth / 2, canvas.clientHeight / 2);
  return canvas;
}

// ---- an op ----

const link = (l, n) => h("a", {onclick: () => goNode(l, n)}, D.levels[l].nodes[n][0], h("span", {class: "soft"}, ` ${D.levels[l].nodes[n][2]}`));
const listed = (title, items, most = 12) => items.length ? [h("h3", {}, title), h("ul", {}, items.slice(0, most).map((item) => h("li", {}, item)),
  items.length > most ? h("li", {class: "soft"}, `and ${items.length - most} more`) : null)] : [];

// The kernels in which something of the same origins is computed.
function kernelsOf(origins) {
  const level = D.levels.find((one) => one.name === "kernels");
  return level ? D.kernels.map((_, k) => k).filter((k) => level.nodes[D.kernels[k].node][4].some((o) => origins.has(o))) : [];
}
function inspect(l, n) {
  const level = D.levels[l], node = level.nodes[n], mine = new Set(node[4]);
  const origins = node[4].map((o) => D.origins[o]);
  const elsewhere = D.levels.flatMap((other, m) => m === l ? [] : listed(`On the level ${other.name}`,
    other.nodes.map((_, i) => i).filter((i) => other.nodes[i][4].some((o) => mine.has(o))).map((i) => link(m, i))));
  const at = D.kernels.findIndex((kernel) => level.name === "kernels" && kernel.node === n);
  side(h("h2", {}, node[0]), h("p", {class: "soft", style: "margin:0"}, `${node[3]} ${node[2]}`,
    node[9] === null ? "" : ` · error against float64: ${number(node[9])}`), h("pre", {}, D.lines[node[1]].trim()),
    ...(at >= 0 ? [h("p", {}, h("button", {onclick: () => go("kernels", at)}, "its tile program, code and place in memory"))] : []),
    ...(level.name === "kernels" ? [] : listed("Computed by", kernelsOf(mine).map((k) => h("a", {class: "kernel", onclick: () => go("kernels", k)},
      D.kernels[k].label, h("span", {class: "soft"}, ` kernel ${k}`))))),
    ...(origins.length ? [h("h3", {}, "Comes from")] : []),
    ...origins.slice(0, 6).flatMap(([name, scope, line, text]) => [h("div", {}, h("b", {}, name)), scope ? h("div", {class: "soft"}, scope) : null,
      line ? h("div", {class: "mono soft"}, line) : null, text ? h("pre", {}, text) : null]).filter(Boolean),
    ...listed("Reads", [...node[7], ...node[6].map((m) => link(l, m))]),
    ...listed("Is read by", users(l, n).map((m) => link(l, m))), ...elsewhere);
}
