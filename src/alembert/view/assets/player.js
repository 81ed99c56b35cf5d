"use strict";
// Reads the data block of the page, and gives every scene its picture, plots, sliders and controls.

function bytes(text) { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer; }
function unpack(packed) {  // int16 with scale and offset; -32768 is a gap
  const raw = new Int16Array(bytes(packed.data));
  return Float64Array.from(raw, (x) => (x === -32768 ? NaN : packed.offset + packed.scale * x));
}
function matrix(rows) { return new THREE.Matrix4().set(...rows); }

function decode(scene) {
  const placed = (item) => ({ ...item, local: matrix(item.matrix) });
  const meshes = scene.meshes.map((m) => {
    const raw = new Int16Array(bytes(m.vertices)), vertices = new Float32Array(raw.length);
    for (let k = 0; k < raw.length; k++) vertices[k] = m.offset[k % 3] + m.scale[k % 3] * raw[k];
    return { vertices, faces: new Uint32Array(bytes(m.faces)), extent: m.extent };
  });
  const unit = { box: [0.5, 0.5, 0.5, -0.5, -0.5, -0.5], sphere: [1, 1, 1, -1, -1, -1], cylinder: [1, 1, 0.5, -1, -1, -0.5] };
  return {
    ...scene, meshes,
    parts: scene.parts.map((p) => ({ ...placed(p), extent: p.kind === "mesh" ? meshes[p.mesh].extent : unit[p.kind] })),
    frames: scene.frames.map(placed), masses: scene.masses.map(placed), sensors: scene.sensors.map(placed),
    loops: scene.loops.map((ends) => ends.map(placed)),
    arrows: scene.arrows.map((a) => ({ ...a, data: new Int16Array(bytes(a.data)) })),
    motion: scene.motion && { ...scene.motion, positions: new Int16Array(bytes(scene.motion.positions)), quaternions: new Int16Array(bytes(scene.motion.quaternions)) },
    panels: scene.panels.map((p) => ({ ...p, time: unpack(p.time), lines: p.lines.map((l) => ({ name: l.name, data: unpack(l) })) })),
    posing: scene.posing && { ...scene.posing, code: new Int32Array(bytes(scene.posing.code)), constants: new Float64Array(bytes(scene.posing.constants)) },
  };
}

const OPERATIONS = {
  assign: (a) => a, add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b, div: (a, b) => a / b, neg: (a) => -a, sin: Math.sin, cos: Math.cos,
  tan: Math.tan, asin: Math.asin, acos: Math.acos, atan: Math.atan, atan2: Math.atan2, sq: (a) => a * a, sqrt: Math.sqrt, twice: (a) => 2 * a, inv: (a) => 1 / a,
  fabs: Math.abs, sign: Math.sign, lt: (a, b) => +(a < b), le: (a, b) => +(a <= b), eq: (a, b) => +(a === b), ne: (a, b) => +(a !== b), not: (a) => +!a,
  and: (a, b) => +!!(a && b), or: (a, b) => +!!(a || b), if_else_zero: (a, b) => (a ? b : 0), fmin: Math.min, fmax: Math.max, pow: Math.pow, constpow: Math.pow, exp: Math.exp,
  log: Math.log, floor: Math.floor, ceil: Math.ceil, sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh, fmod: (a, b) => a % b,
  copysign: (a, b) => (b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a)), hypot: Math.hypot,
};

function runProgram(program, x) {
  const w = new Float64Array(Math.max(program.registers, 1)), out = [], c = program.code;
  const table = program.operations.map((name) => OPERATIONS[name]);
  for (let k = 0; k < c.length; k += 4) {
    const name = program.operations[c[k]], r = c[k + 1], a = c[k + 2], b = c[k + 3];
    if (name === "const") w[r] = program.constants[a];
    else if (name === "input") w[r] = x[a];
    else if (name === "output") out[r] = w[a];
    else w[r] = table[c[k]](w[a], w[b]);
  }
  return out;
}

function startValues(program) {
  const x = new Float64Array(program.inputs);
  for (const s of program.sliders) x[s.index] = s.value;
  return x;
}

class Player {
  constructor(data, host) {
    this.data = data;
    this.root = host;
    this.time = data.motion ? data.motion.start : 0;
    this.playing = false;
    this.speed = 1;
    this.loop = true;
    const stage = element("div", { className: "stage" });
    if (data.notes.length) {
      const list = element("dl");
      for (const [key, value] of data.notes) list.append(element("dt", { textContent: key }), element("dd", { textContent: value }));
      stage.append(element("div", { className: "notes" }, list));
    }
    host.append(stage);
    try {
      this.stage = new Stage(data, stage, data.posing && runProgram(data.posing, startValues(data.posing)));
    } catch (error) {
      this.problem = String(error);
      stage.querySelectorAll("canvas").forEach((c) => c.remove());
      stage.append(element("p", { className: "problem", textContent: "This browser offers no WebGL, so there is no 3-D picture. The plots work without it." }));
    }
    this.plots = data.panels.map((panel) => new Plot(panel, (t) => { this.pause(); this.seek(t); }));
    if (this.plots.length || data.posing) {
      const aside = element("aside", { ariaLabel: data.posing ? "joints" : "plots" });
      if (data.posing) aside.append(this.sliders());
      aside.append(...this.plots.map((p) => p.figure));
      host.append(aside);
    }
    host.append(this.controls());
    this.seek(this.time);
  }

  // --- controls ----------------------------------------------------------------------------------------------

  controls() {
    const bar = element("div", { className: "bar", role: "toolbar", ariaLabel: "controls" }), m = this.data.motion;
    if (m && m.count > 1) {
      this.button = element("button", { type: "button", className: "play", onclick: () => this.toggle() });
      this.slider = element("input", { type: "range", min: m.start, max: m.end, step: "any", value: m.start, ariaLabel: "time", oninput: () => { this.pause(); this.seek(Number(this.slider.value)); } });
      this.readout = element("span", { className: "time" });
      const speed = element("select", { ariaLabel: "speed", onchange: () => { this.speed = Number(speed.value); } },
        ...[0.05, 0.1, 0.25, 0.5, 1, 2, 4, 10].map((s) => element("option", { value: s, textContent: `${s}×`, selected: s === 1 })));
      const loop = element("button", { type: "button", ariaPressed: "true", textContent: "Loop", onclick: () => { this.loop = !this.loop; loop.ariaPressed = String(this.loop); } });
      bar.append(this.button, this.readout, this.slider, speed, loop);
      this.pause();
    }
    const d = this.data, group = element("div", { className: "group", role: "group", ariaLabel: "what is shown" });
    const choices = [
      ["trails", "Trails", m && d.trails.length], ["ghosts", "Ghosts", m && m.count > 1], ["forces", "Forces", d.arrows.length], ["frames", "Frames", true],
      ["com", "Mass", d.masses.length], ["inertia", "Inertia", d.masses.length], ["loops", "Loops", d.loops.length], ["sensors", "Sensors", d.sensors.length],
      ["names", "Names", true], ["ground", "Ground", d.gravity > 0], ["follow", "Follow", m && m.count > 1],
    ];
    this.switches = {};
    for (const [name, label, offered] of choices) {
      if (!offered || !this.stage) continue;
      const button = element("button", { type: "button", textContent: label, ariaPressed: String(!!this.stage.on[name]), onclick: () => this.show(name, button.ariaPressed !== "true") });
      this.switches[name] = button;
      group.append(button);
    }
    if (this.stage) group.append(element("button", { type: "button", textContent: "Reset view", onclick: () => this.stage.home() }));
    if (this.stage) group.append(element("button", { type: "button", textContent: "Save picture", onclick: () => this.picture() }));
    bar.append(group);
    return bar;
  }

  show(name, value) {
    this.stage.toggle(name, value);
    if (this.switches[name]) this.switches[name].ariaPressed = String(value);
  }

  picture() {
    this.stage.dirty = true;
    this.stage.render();
    this.stage.canvas.toBlob((blob) => {
      const link = element("a", { href: URL.createObjectURL(blob), download: "alembert.png" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  sliders() {
    const p = this.data.posing, box = element("div", { className: "sliders" });
    this.x = startValues(p);
    const rows = p.sliders.map((s) => {
      const output = element("output");
      const input = element("input", { type: "range", min: s.low, max: s.high, step: "any", value: s.value, ariaLabel: `${s.name} [${s.unit}]` });
      const write = () => {
        this.x[s.index] = Number(input.value);
        const degrees = s.unit === "rad" ? `  (${((this.x[s.index] * 180) / Math.PI).toFixed(0)}°)` : "";
        output.textContent = `${this.x[s.index].toFixed(3).replace("-", "−")} ${s.unit}${degrees}`;
      };
      input.addEventListener("input", () => { write(); this.pose(); });
      box.append(element("label", {}, element("span", { className: "name", textContent: s.name, title: s.name }), output, input));
      write();
      return { input, write, start: s.value };
    });
    box.prepend(element("button", {
      type: "button", textContent: "Reset joints", onclick: () => { for (const r of rows) { r.input.value = r.start; r.write(); } this.pose(); },
    }), element("p", {}));
    return box;
  }

  pose() { if (this.stage) this.stage.setPoses(runProgram(this.data.posing, this.x)); }

  // --- time --------------------------------------------------------------------------------------------------

  toggle() { if (this.playing) this.pause(); else this.play(); }

  play() {
    const m = this.data.motion;
    if (!m || m.count < 2) return;
    if (this.time >= m.end) this.seek(m.start);
    this.playing = true;
    this.button.textContent = "❚❚ Pause";
  }

  pause() { this.playing = false; if (this.button) this.button.textContent = "▶ Play"; }

  seek(t) {
    const m = this.data.motion;
    if (!m) { if (this.data.posing) this.pose(); else if (this.stage) this.stage.update(); return; }
    this.time = Math.min(Math.max(t, m.start), m.end);
    if (this.stage) this.stage.show(this.time);
    for (const plot of this.plots) plot.draw(this.time);
    if (this.slider) {
      this.slider.value = this.time;
      this.slider.setAttribute("aria-valuetext", `${this.time.toFixed(2)} s`);
      this.readout.textContent = `${this.time.toFixed(2)} / ${m.end.toFixed(2)} s`;
    }
  }

  advance(seconds) {
    if (this.playing) {
      const m = this.data.motion;
      let t = this.time + seconds * this.speed;
      if (t > m.end) { if (this.loop) t = m.start + ((t - m.start) % (m.end - m.start)); else { t = m.end; this.pause(); } }
      this.seek(t);
    }
    if (this.stage) this.stage.render();
  }

  key(event) {
    const m = this.data.motion, step = m ? (m.end - m.start) / 100 : 0;
    const actions = {
      " ": () => this.toggle(), ",": () => { this.pause(); this.seek(this.time - step); }, ".": () => { this.pause(); this.seek(this.time + step); },
      Home: () => this.seek(m.start), End: () => this.seek(m.end), t: () => this.switches.trails?.click(), g: () => this.switches.ghosts?.click(), f: () => this.switches.frames?.click(),
    };
    if (!m || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  theme() { if (this.stage) this.stage.theme(); for (const plot of this.plots) plot.layout(); }
}

(function start() {
  const page = JSON.parse(document.getElementById("data").textContent), html = document.documentElement;
  const media = window.matchMedia("(prefers-color-scheme: dark)");
  html.dataset.theme = page.theme === "auto" ? (media.matches ? "dark" : "light") : page.theme;
  const main = document.querySelector("main"), tabs = element("div", { role: "tablist", ariaLabel: "scenes" }), players = [], calm = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
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
  const theme = document.getElementById("theme");
  theme.addEventListener("click", () => {
    html.dataset.theme = html.dataset.theme === "dark" ? "light" : "dark";
    for (const p of players) if (p) p.theme();
  });
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
