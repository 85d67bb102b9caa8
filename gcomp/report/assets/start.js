// The page opens.
"use strict";
(async () => {
  if (typeof DecompressionStream === "undefined") { $("#wait").textContent = "This page needs a browser of 2023 or newer."; return; }
  D = await unpack("data");
  $("#head h1").textContent = D.title;
  $("#head h1").title = D.title;
  $("#facts").append(...D.facts.map(([name, value]) => h("span", {}, h("i", {}, name), h("b", {}, value))));
  tabs();
  window.addEventListener("hashchange", route);
  route();
  document.body.dataset.ready = "yes";
})();
