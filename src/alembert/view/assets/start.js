"use strict";
// A page of scenes: reads its data block, or asks the server of the page, and shows one scene at a time.

(async function start() {
  const block = document.getElementById("data"), html = document.documentElement;
  const main = document.querySelector("main");
  const page = block ? JSON.parse(block.textContent) : await fetch("scenes").then((answer) => answer.json()).catch(() => null);
  if (!page) { main.querySelector(".problem").textContent = "The program that this page belongs to has ended."; return; }
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  html.dataset.theme = page.theme === "auto" ? (media.matches ? "dark" : "light") : page.theme;
  main.replaceChildren();
  const tabs = element("div", { role: "tablist", ariaLabel: "scenes" }), players = [], calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  let current = -1;
  const hosts = page.scenes.map((scene, k) => {
    const host = element("section", { className: "player", id: `scene${k}`, hidden: true });
    if (page.scenes.length > 1) { host.setAttribute("role", "tabpanel"); host.setAttribute("aria-labelledby", `tab${k}`); }
    main.append(host);
    return host;
  });
  function select(k, focus) {
    if (players[current]) players[current].pause();
    hosts.forEach((host, i) => { host.hidden = i !== k; });
    [...tabs.children].forEach((tab, i) => { tab.setAttribute("aria-selected", String(i === k)); tab.tabIndex = i === k ? 0 : -1; });
    if (focus) tabs.children[k].focus();
    current = k;
    if (!players[k]) players[k] = new Player(decode(page.scenes[k]), hosts[k]);
    if (page.autoplay && !calm) players[k].play();
  }
  page.scenes.forEach((scene, k) => tabs.append(element("button", { type: "button", role: "tab", id: `tab${k}`, "aria-controls": `scene${k}`, textContent: scene.title, onclick: () => select(k) })));
  tabs.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (step) { e.preventDefault(); select((current + step + page.scenes.length) % page.scenes.length, true); }
  });
  if (page.scenes.length > 1) document.querySelector("h1").after(tabs);
  const theme = element("button", { type: "button", id: "theme", title: "dark or light", textContent: "◐ Theme", onclick: () => {
    html.dataset.theme = html.dataset.theme === "dark" ? "light" : "dark";
    for (const p of players) if (p) p.theme();
  } });
  document.querySelector("header").append(element("div", { className: "end" }, theme));
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, [role=tablist]")) return;
    if (event.key === " " && event.target.closest("button")) return;
    if (players[current]) players[current].key(event);
  });
  select(0);
  let before = performance.now();
  (function frame(now) {
    const seconds = Math.min(Math.max((now - before) / 1000, 0), 0.25);
    before = now;
    if (players[current]) players[current].advance(seconds);
    requestAnimationFrame(frame);
  })(before);
  window.alembert = { players, select, get current() { return players[current]; } };
})();
