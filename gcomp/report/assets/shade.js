// Light or dark: as was chosen, else as the system is.
"use strict";
(() => {
  const root = document.documentElement, button = document.getElementById("shade");
  let wished = null;
  try { wished = localStorage.getItem("shade"); } catch { /* a page from a file may have no storage */ }
  root.classList.toggle("dark", wished ? wished === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  if (button) button.addEventListener("click", () => {
    const dark = root.classList.toggle("dark");
    try { localStorage.setItem("shade", dark ? "dark" : "light"); } catch { /* it holds for this view of the page */ }
  });
})();
