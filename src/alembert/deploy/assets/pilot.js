"use strict";
// A person in the loop: sticks, keys and sliders go to the program once per frame, and the picture comes back.

const KEYS = [["ArrowLeft", "ArrowRight", "← →"], ["ArrowDown", "ArrowUp", "↓ ↑"], ["a", "d", "A D"], ["s", "w", "S W"], ["j", "l", "J L"], ["k", "i", "K I"]];
const DEAD = 0.08;  // of a stick that nobody touches

class Pilot {
  constructor({ scene, inputs }) {
    this.inputs = inputs;
    this.held = new Set();
    const html = document.documentElement, main = document.querySelector("main");
    html.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const host = element("section", { className: "player" });
    main.replaceChildren(host);
    this.player = new Player({ ...decode(scene), given: true }, host);
    this.player.hand?.use("");
    let aside = host.querySelector("aside");
    if (!aside) { aside = element("aside"); host.querySelector(".stage").after(aside); }
    this.status = element("p", { className: "notice", role: "status" });
    this.clock = element("p", { className: "time" });
    this.rows = inputs.map((input, k) => {
      const output = element("output"), name = `${input.name}${KEYS[k] ? `  ${KEYS[k][2]}` : ""}`;
      const slider = element("input", { type: "range", min: -1, max: 1, step: "any", value: 0, ariaLabel: input.name });
      const release = () => { slider.value = 0; };
      for (const event of ["pointerup", "pointercancel", "blur"]) slider.addEventListener(event, release);
      return { slider, output, label: element("label", {}, element("span", { className: "name", textContent: name }), output, slider) };
    });
    this.pad = element("p", { className: "notice" });
    aside.replaceChildren(this.clock, element("div", { className: "live" }, ...this.rows.map((row) => row.label)), this.pad, this.status);
    document.addEventListener("keydown", (event) => this.key(event, true));
    document.addEventListener("keyup", (event) => this.key(event, false));
    window.addEventListener("blur", () => this.held.clear());
    host.querySelector("canvas")?.addEventListener("keydown", (event) => { if (this.known(event)) event.stopImmediatePropagation(); }, true);
    this.frame();
  }

  known(event) {
    const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    return KEYS.slice(0, this.inputs.length).some((pair) => pair.slice(0, 2).includes(name)) ? name : null;
  }

  key(event, down) {
    const name = this.known(event);
    if (!name || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (down) this.held.add(name); else this.held.delete(name);
  }

  deflections() {
    const pad = [...(navigator.getGamepads?.() || [])].find((p) => p && p.connected);
    this.pad.textContent = pad ? `gamepad: ${pad.id || "connected"}` : "";
    return this.inputs.map((_, k) => {
      const [less, more] = KEYS[k] || [], keys = (this.held.has(more) ? 1 : 0) - (this.held.has(less) ? 1 : 0);
      const axis = pad && k < pad.axes.length ? pad.axes[k] * (k % 2 ? -1 : 1) : 0;  // sticks count downwards
      const stick = Math.abs(axis) > DEAD ? axis : 0, hand = Number(this.rows[k].slider.value);
      return Math.min(Math.max(keys + stick + (document.activeElement === this.rows[k].slider && !keys ? hand : 0), -1), 1);
    });
  }

  async frame() {
    const u = this.deflections();
    this.rows.forEach(({ output, slider }, k) => {
      const { largest, unit } = this.inputs[k];
      output.textContent = `${(u[k] * largest).toPrecision(3).replace("-", "−")} ${unit}`;
      if (document.activeElement !== slider) slider.value = u[k];
    });
    try {
      const response = await fetch("exchange", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ u }) });
      const { t, poses } = await response.json();
      this.clock.textContent = `${t.toFixed(2)} s`;
      this.t = t;
      const stage = this.player.stage;
      stage?.setPoses(poses);
      if (stage && !stage.on.follow && stage.middle().distanceTo(stage.center) > 1.2 * stage.size) stage.toggle("follow", true);  // it flies away
      this.player.advance(0);
    } catch (error) {
      this.status.textContent = "The program has ended.";
      return;
    }
    requestAnimationFrame(() => this.frame());
  }
}

(async function start() {
  window.pilot = new Pilot(await (await fetch("scene")).json());
})();
