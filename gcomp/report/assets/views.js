// Memory, the roofline, measured times, and two compilations beside each other.
"use strict";
function figure(view) {
  const drawn = h("div", {class: "figure"}), table = h("div", {});
  drawn.innerHTML = view.svg;
  table.innerHTML = view.table;
  return h("div", {class: "pad"}, h("p", {style: "max-width:1000px"}, view.summary), drawn, h("h3", {}, "As a table"), table);
}
views.memory = {title: "Memory", has: () => D.memory, show: () => { side(); put(figure(D.memory)); }};
views.roofline = {title: "Roofline", has: () => D.roofline, show: () => { side(); put(figure(D.roofline)); }};

views.times = {
  title: "Times",
  has: () => D.times,
  show: () => {
    side();
    const {rows, samples, summary} = D.times, whole = rows.reduce((sum, row) => sum + row[4], 0) || 1;
    const end = Math.max(...samples.map(([, , at, took]) => at + took), 1), begin = Math.min(...samples.map((one) => one[2]), end);
    const wide = 1200, spans = samples.map(([kind, label, at, took], n) => s("rect", {x: wide * (at - begin) / (end - begin), y: 6,
      width: Math.max(0.6, wide * took / (end - begin)), height: 34, fill: `hsl(${(n * 47) % 360}, 32%, 58%)`}, s("title", {}, `${label} (${kind}): ${time(took)}`)));
    const row = ([kind, label, place, runs, us, predicted, flops, moved]) => h("tr", {}, h("td", {class: "left soft"}, kind), h("td", {class: "left"}, h("b", {}, cut(label, 46))),
      h("td", {}, time(us)), h("td", {}, time(predicted)), h("td", {}, runs), h("td", {class: "left"}, h("span", {class: "cell", style: `width:${260 * us / whole}px`}), ` ${(100 * us / whole).toFixed(1)} %`),
      h("td", {}, flops ? (flops / us / 1e3).toFixed(1) : ""), h("td", {}, moved ? (moved / us / 1e3).toFixed(1) : ""), h("td", {class: "left wide soft", title: place}, place));
    const names = [["", 1], ["step", 1], ["measured"], ["predicted"], ["runs"], ["share", 1], ["Gflop/s"], ["GB/s"], ["from", 1]];
    put(h("div", {class: "pad"}, h("p", {}, summary), h("div", {class: "figure spans"}, s("svg", {viewBox: `0 0 ${wide} 46`}, spans)),
      h("h3", {}, "The costliest first"), h("table", {}, h("thead", {}, h("tr", {}, names.map(([name, left]) => h("th", {class: left ? "left" : ""}, name)))), h("tbody", {}, rows.slice(0, 400).map(row)))));
  },
};

views.compare = {
  title: "Comparison",
  has: () => D.compare,
  show: () => {
    side();
    const {names, figures, passes, ops, kernels, more, changes} = D.compare;
    const change = (a, b) => a === null || b === null || a === b ? "" : h("span", {class: b > a ? "up" : "down"}, a ? `${b > a ? "+" : "−"}${(100 * Math.abs(b - a) / a).toFixed(1)} %` : "new");
    const shown = {us: time, bytes, count};
    const line = ([name, a, b, unit]) => h("tr", {}, h("td", {class: "left"}, h("b", {}, name)), h("td", {}, a === null ? "–" : shown[unit](a)), h("td", {}, b === null ? "–" : shown[unit](b)), h("td", {}, change(a, b)));
    const table = (title, rows) => rows.length ? [h("h3", {}, title), h("table", {}, h("thead", {}, h("tr", {}, h("th", {class: "left"}, ""), names.map((name) => h("th", {}, name)), h("th", {}, "change"))), h("tbody", {}, rows.map(line)))] : [];
    put(h("div", {class: "pad"}, h("h2", {}, `${names[0]} and ${names[1]}`), ...table("Figures", figures), ...table("Ops after all passes", ops),
      ...changes.flatMap((change) => [h("h2", {style: "margin-top:22px"}, `The graph, ${change.level}`), ...(change.removed + change.added
        ? [...pairs(change), ...difference(change)] : [h("p", {class: "soft"}, "the same on both sides")])]),
      ...table("Rewrites of each pass", passes), ...table("Kernels", kernels), more ? h("p", {class: "soft"}, `and ${count(more)} kernels more that are the same on both sides`) : null));
  },
};
