// Kernels: a table that can be sorted, and for each its ops, its texts, its place in memory, and why others are apart.
"use strict";
const KERNEL_ROWS = 400;
let order = ["", 1];

views.kernels = {
  title: "Kernels",
  has: () => D.kernels.length > 0,
  show: ([n]) => {
    const chosen = n === undefined ? null : Number(n);
    put(h("div", {class: "pad"}, kernelTable(chosen)));
    if (chosen !== null) { showKernel(chosen); const row = $("tr.chosen"); if (row) row.scrollIntoView({block: "nearest"}); } else side();
  },
};

const COLUMNS = [
  ["", (k, n) => n], ["kernel", (k) => k.label], ["kind", (k) => k.kind], ["ops", (k) => k.ops.length],
  ["predicted", (k) => k.us], ["measured", (k) => k.measured], ["share", (k) => k.measured ?? k.us],
  ["flops", (k) => k.flops], ["bytes", (k) => k.bytes], ["from", (k) => k.place],
];
function kernelTable(chosen) {
  const measured = D.kernels.some((k) => k.measured !== null), most = Math.max(...D.kernels.map((k) => k.measured ?? k.us ?? 0), 1e-9);
  const columns = COLUMNS.filter(([name]) => measured || name !== "measured"), [by, way] = order;
  const key = columns.find(([name]) => name === by) || columns[0];
  const rows = D.kernels.map((k, n) => [k, n]).sort((a, b) => {
    const x = key[1](...a), y = key[1](...b);
    return way * (typeof x === "string" ? x.localeCompare(y) : (x ?? -1) - (y ?? -1));
  });
  const left = ["kernel", "kind", "share", "from"];
  const row = ([k, n]) => h("tr", {class: "pick" + (n === chosen ? " chosen" : ""), onclick: () => go("kernels", n)}, columns.map(([name]) => {
    const side = left.includes(name) ? "left" : "";
    if (name === "") return h("td", {class: "soft"}, n);
    if (name === "kernel") return h("td", {class: "left"}, h("b", {}, cut(k.label, 46)));
    if (name === "kind") return h("td", {class: side}, h("span", {class: `key k-${k.kind}`}, k.kind));
    if (name === "ops") return h("td", {}, k.ops.length);
    if (name === "predicted") return h("td", {}, time(k.us));
    if (name === "measured") return h("td", {}, time(k.measured));
    if (name === "share") return h("td", {class: side}, h("span", {class: "cell" + (k.measured === null ? " pale" : ""), style: `width:${90 * (k.measured ?? k.us ?? 0) / most}px`}));
    if (name === "from") return h("td", {class: "left wide soft", title: k.place}, k.place);
    return h("td", {}, name === "bytes" ? bytes(k.bytes) : count(k.flops));
  }));
  const body = h("tbody", {}, rows.slice(0, KERNEL_ROWS).map(row));
  const more = rows.length > KERNEL_ROWS ? h("button", {onclick: (event) => { body.append(...rows.slice(KERNEL_ROWS).map(row)); event.target.remove(); }},
    `show the other ${count(rows.length - KERNEL_ROWS)}`) : null;
  const sort = (name) => { order = [name, order[0] === name ? -order[1] : ["kernel", "kind", "from", ""].includes(name) ? 1 : -1]; views.kernels.show(chosen === null ? [] : [chosen]); };
  return h("div", {}, h("table", {}, h("thead", {}, h("tr", {}, columns.map(([name]) =>
    h("th", {class: (left.includes(name) ? "left " : "") + "link", onclick: () => sort(name)}, name || "#", order[0] === name ? (way > 0 ? " ▴" : " ▾") : "")))), body), more);
}

async function showKernel(n) {
  const k = D.kernels[n], l = D.levels.findIndex((level) => level.name === "kernels");
  const apart = D.reasons.filter(([a, b]) => a === n || b === n);
  const facts = [["kind", k.kind], ["predicted", time(k.us)], ["measured", time(k.measured)], ["flops", count(k.flops)], ["moves", bytes(k.bytes)],
    ["grid", k.grid.join(", ")], ["arena", k.at.map(([at, size]) => `${bytes(size)} at byte ${count(at)}`).join(", ")], ["from", k.place]];
  const text = h("div", {});
  const show = async (key) => text.replaceChildren(h("pre", {class: "source"}, await textOf(key) || ""));
  const buttons = [...k.sources.map((name) => [name.endsWith(".py") ? "Triton" : "tile program", `source:${name}`]),
    ...k.kernels.map((name) => ["LLVM IR", `code:${name}`])];
  texts = texts || await unpack("texts");
  const known = buttons.filter(([, key]) => texts[key] !== undefined);
  side(h("h2", {}, k.label), h("dl", {}, facts.filter(([, value]) => value).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("p", {}, h("button", {onclick: () => goNode(l, k.node)}, "in the graph"), " ", h("button", {onclick: () => go("memory")}, "in memory")),
    ...listed("How, and why", k.how.map((line) => [line])),
    h("h3", {}, "Computes"), h("pre", {}, k.ops.map((line) => D.lines[line].trim()).join("\n")),
    ...listed("Not one kernel with", apart.map(([a, b, why, gain]) => [h("a", {onclick: () => go("kernels", a === n ? b : a)},
      D.kernels[a === n ? b : a].label), `: ${why}${gain ? ` (${gain.toFixed(1)} µs)` : ""}`])),
    h("h3", {}, "Texts"), h("p", {}, known.map(([name, key], i) => [h("button", {onclick: () => show(key)},
      known.filter(([other]) => other === name).length > 1 ? `${name} ${known.slice(0, i + 1).filter(([other]) => other === name).length}` : name), " "])), text);
}
