// Loaded before the page is drawn, so that it does not flash in the wrong colours.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  try {
    const chosen = localStorage.getItem("outbox-theme");
    if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden; then the system's choice stands.
  }
})();
