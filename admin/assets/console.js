// What the pages do beyond being read: live numbers, keys, copying, the choice of colours.
// Nothing here is needed to read them or to act.
"use strict";
(() => {
  const root = document.documentElement;
  const base = document.body.dataset.base;

  // Live numbers: the server draws, the page only puts it in place. Hidden pages do not ask.
  const every = 2000;
  const part = async (address) => {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, redirect: "error" });
    return answer.ok ? answer.text() : null;
  };
  const live = document.querySelector("[data-live]");
  if (live) {
    const refresh = async () => {
      try {
        if (!document.hidden) {
          const text = await part(location.pathname + "?part=live");
          if (text !== null) live.innerHTML = text;
          live.classList.toggle("stale", text === null);
        }
      } catch {
        live.classList.add("stale");
      }
      setTimeout(refresh, every);
    };
    setTimeout(refresh, every);
  }

  // A change that is under way: look again until it has ended.
  const running = () => document.querySelector("#jobs [data-running]");
  if (running()) {
    const look = async () => {
      try {
        const text = await part(location.href);
        if (text !== null) {
          const page = new DOMParser().parseFromString(text, "text/html");
          document.getElementById("jobs").replaceChildren(...page.getElementById("jobs").children);
        }
      } catch {
        // The next look may find the server again.
      }
      if (running()) setTimeout(look, every);
    };
    setTimeout(look, every);
  }

  // Copying.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    const from = button.dataset.copyFrom;
    const text = from ? document.getElementById(from).textContent : button.dataset.copy;
    try {
      await navigator.clipboard.writeText(text);
      button.classList.add("copied");
    } catch {
      // Without a clipboard (plain HTTP) the text is at least selected.
      const selection = getSelection();
      selection.selectAllChildren(from ? document.getElementById(from) : button.parentElement);
    }
    setTimeout(() => button.classList.remove("copied"), 1500);
  });

  // Light or dark.
  const switchTheme = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("outbox-theme", root.dataset.theme);
    } catch {
      // It lasts for this page, then.
    }
  };
  document.querySelector("[data-theme-switch]")?.addEventListener("click", switchTheme);

  // Keys.
  const items = () => [...document.querySelectorAll("[data-list] [data-item]")];
  let at = -1;
  const move = (by) => {
    const all = items();
    if (all.length === 0) return;
    all[at]?.classList.remove("at");
    at = Math.min(Math.max(at + by, 0), all.length - 1);
    all[at].classList.add("at");
    all[at].scrollIntoView({ block: "nearest" });
  };
  let going = false;
  const keys = {
    "/": () => document.querySelector(".search input")?.focus(),
    "?": () => document.getElementById("keys").showModal(),
    j: () => move(1),
    k: () => move(-1),
    x: () => items()[at]?.querySelector("input[type=checkbox]")?.click(),
    Enter: () => items()[at]?.querySelector("a.open")?.click(),
    t: switchTheme,
    g: () => {
      going = true;
      setTimeout(() => (going = false), 1500);
    },
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, button, a, summary, dialog");
    if (event.key === "Escape") event.target.blur();
    if ((typing && !(typing.type === "checkbox")) || event.ctrlKey || event.metaKey || event.altKey || !base) return;
    if (going) {
      going = false;
      const link = [...document.querySelectorAll("[data-go]")].find((one) => one.dataset.go === event.key);
      if (link) link.click();
      return;
    }
    const act = Object.hasOwn(keys, event.key) ? keys[event.key] : null;
    if (act) {
      event.preventDefault();
      act();
    }
  });
})();
