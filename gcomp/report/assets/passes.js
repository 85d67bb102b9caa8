// The pipeline as a strip, and one pass opened: its rewrites, what it changed as drawings, and as text.
"use strict";
views.passes = {
  title: "Passes",
  has: () => D.passes.length > 0,
  show: ([n]) => {
    const changed = D.passes.findIndex((pass) => pass.changed);
    const chosen = n === undefined ? Math.max(changed, 0) : Number(n);
    side();
    put(strip(chosen), h("div", {class: "pad", id: "pass"}, ...opened(D.passes[chosen])));
    const card = $("#strip .on");
    if (card) card.scrollIntoView({block: "nearest", inline: "center"});
  },
};

function strip(chosen) {
  const most = [0, 1, 2].map((i) => Math.max(1, ...D.passes.flatMap((p) => [p.before[i] || 0, p.after[i] || 0])));
  return h("div", {id: "strip"}, D.passes.map((pass, n) => pass.changed ? card(pass, n, most, n === chosen)
    : h("button", {class: "idle" + (n === chosen ? " on" : ""), title: `${pass.name}: changed nothing, ${time(pass.us)}`,
      onclick: () => go("passes", n)})));
}
function card(pass, n, most, on) {
  const applied = pass.rewrites.reduce((sum, row) => sum + row[1], 0);
  const figures = [["ops", count], ["bytes", bytes], ["peak", bytes]].map(([name, show], i) => [
    h("div", {class: "row"}, name, h("b", {}, pass.before[i] === pass.after[i] ? show(pass.after[i])
      : `${show(pass.before[i])} → ${show(pass.after[i])}`)),
    h("div", {class: "bar"}, h("i", {style: `width:${100 * (pass.before[i] || 0) / most[i]}%`}),
      h("i", {class: "after", style: `width:${100 * (pass.after[i] || 0) / most[i]}%`})),
  ]);
  return h("button", {class: "pass" + (on ? " on" : ""), title: pass.name, onclick: () => go("passes", n)},
    h("b", {}, pass.name), h("div", {class: "row"}, h("span", {}, `${count(applied)} rewrite${applied === 1 ? "" : "s"}`), h("span", {}, time(pass.us))), figures,
    h("div", {class: "row"}, verdict(pass), pass.error === null ? "" : h("span", {title: "the largest error against float64"}, `± ${number(pass.error)}`)));
}
const isGood = (pass) => pass.verdict === "valid" && !pass.meaning.startsWith("wrong");
const verdict = (pass, most = 26) => h("span", {class: isGood(pass) ? "good" : "bad"},
  isGood(pass) ? `✓ ${pass.meaning || "valid"}` : cut(`✗ ${pass.verdict === "valid" ? pass.meaning : pass.verdict}`, most));

function opened(pass) {
  const n = D.passes.indexOf(pass);
  const before = D.passes.slice(0, n).reverse().map((p) => p.error).find((e) => e !== null && e !== undefined) ?? D.firstError;
  const error = pass.error === null ? D.errorNote || "not measured"
    : `${number(pass.error)} of the largest element, ${number(Math.max(0, pass.error - (before || 0)))} more than before`;
  const head = [h("h2", {}, pass.name), h("p", {class: "soft", style: "margin:0 0 8px"}, pass.law)];
  if (!pass.changed) return [...head, h("p", {}, `It changed nothing, in ${time(pass.us)}.`)];
  const facts = h("p", {}, `${time(pass.us)} · level ${pass.level} · `, isGood(pass) && pass.meaning ? "valid, " : "", verdict(pass, 400),
    h("br"), h("span", {class: "soft"}, `error against float64: ${error}`));
  return [...head, facts, ...rewrites(pass), ...pairs(pass), ...difference(pass)];
}
function rewrites(pass) {
  if (!pass.rewrites.length) return [];
  const names = ["rewrite", "times", "class", "proof", "stands in", "applied at"], words = [0, 2, 3, 4, 5];
  const rows = pass.rewrites.map(([name, times, exact, status, place, at]) => h("tr", {},
    h("td", {class: "left"}, h("b", {}, name)), h("td", {}, count(times)), h("td", {class: "left"}, exact),
    h("td", {class: "left " + (status === "proved" ? "good" : "")}, status), h("td", {class: "left mono"}, place),
    h("td", {class: "left wide soft", title: at.join("\n")}, at.join(" · "))));
  return [h("h3", {}, "Rewrites"), h("table", {}, h("thead", {}, h("tr", {}, names.map((name, i) =>
    h("th", {class: words.includes(i) ? "left" : ""}, name)))), h("tbody", {}, rows))];
}
function pairs(pass) {
  if (!pass.kinds.length) return [];
  const drawn = pass.kinds.map((kind) => h("div", {class: "pair"},
    h("header", {}, `${kind.count === 1 ? "once" : kind.count + " times"}: ${kind.gone} op${kind.gone === 1 ? "" : "s"} → ${kind.came}`),
    h("div", {class: "two"}, half(kind.before, "gone", "nothing was there"), half(kind.after, "came", "nothing is there now"))));
  return [h("h3", {}, "What changed, before and after"), h("div", {class: "pairs"}, drawn)];
}
function half(side, kind, none) {
  if (side.much) return h("div", {class: "soft"}, `${count(side.much)} ops, too many to draw: see the text`);
  if (!side.n.length) return h("div", {class: "soft"}, none);
  const boxes = side.n.map(([title, mine, line, shape, error]) => ({title, line, state: mine ? kind : "", kind: "",
    shape: shape + (mine && error ? ` ± ${number(error)}` : "")}));
  return h("div", {}, plain(side, boxes));
}
function difference(pass) {
  const rows = pass.text.map(([sign, line]) => sign === "~" ? h("div", {class: "gap"}, `⋯ ${count(line)} lines as they were`)
    : h("div", {class: sign === "-" ? "minus" : sign === "+" ? "plus" : ""}, `${sign} ${D.lines[line]}`));
  if (pass.more) rows.push(h("div", {class: "gap"}, `… and ${count(pass.more)} lines more, which this page does not hold`));
  return [h("h3", {}, `As text: ${count(pass.removed)} lines went, ${count(pass.added)} came`), h("div", {class: "diff mono"}, rows)];
}
