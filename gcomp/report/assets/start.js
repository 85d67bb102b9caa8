// The page opens.
"use strict";
const wished = localStorageOf("shade");
function localStorageOf(key) { try { return localStorage.getItem(key); } catch { return null; } }
function shade(dark) { document.documentElement.classList.toggle("dark", dark); }
shade(wished ? wished === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
$("#shade").addEventListener("click", () => {
  const dark = !document.documentElement.classList.contains("dark");
  shade(dark);
  try { localStorage.setItem("shade", dark ? "dark" : "light"); } catch { /* a page from a file may have no storage */ }
});
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
