"use strict";
// A scene with its picture, plots, sliders and controls.

function bytes(text) { return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer; }
function unpack(packed) {  // int16 with scale and offset; -32768 is a gap
  const raw = new Int16Array(bytes(packed.data));
  return Float64Array.from(raw, (x) => (x === -32768 ? NaN : packed.offset + packed.scale * x));
}
function matrix(rows) { return new THREE.Matrix4().set(...rows); }

function program(posing, packed) {
  return packed && { ...packed, operations: posing.operations, code: new Int32Array(bytes(packed.code)), constants: new Float64Array(bytes(packed.constants)) };
}

function poses(motion) { return { ...motion, positions: new Int16Array(bytes(motion.positions)), quaternions: new Int16Array(bytes(motion.quaternions)) }; }

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
    motion: scene.motion && { ...poses(scene.motion), levels: (scene.motion.levels || []).map(poses) },
    panels: scene.panels.map((p) => ({ ...p, time: unpack(p.time), lines: p.lines.map((l) => ({ name: l.name, data: unpack(l) })) })),
    posing: scene.posing && { ...scene.posing, poses: program(scene.posing, scene.posing.poses), closing: program(scene.posing, scene.posing.closing) },
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

function startValues(posing) {
  const x = new Float64Array(posing.poses.inputs);
  for (const s of posing.sliders) x[s.index] = s.value;
  return x;
}

// Newton's method for phi(x) = 0 with x[held] fixed, by the shortest steps: dx = -J^T (J J^T + e)^-1 phi, where e > 0 lets rows depend on each other.
function closed(posing, from, held) {
  const x = Float64Array.from(from), n = x.length, moved = posing.sliders.map((s) => s.index).filter((i) => i !== held);
  for (let round = 0; round < 40; round++) {
    const out = runProgram(posing.closing, x), m = out.length / (n + 1), at = (r, i) => out[m + i * m + r];
    let worst = 0;
    for (let r = 0; r < m; r++) worst = Math.max(worst, Math.abs(out[r]));
    if (!(worst < Infinity)) return null;
    if (worst < 1e-7 * posing.length) return x;
    const A = Array.from({ length: m }, (_, r) => Float64Array.from({ length: m + 1 }, (_, s) => (s === m ? -out[r] : moved.reduce((sum, i) => sum + at(r, i) * at(s, i), 0))));
    const e = 1e-9 * Math.max(...A.map((row, r) => row[r]), 1e-300);
    for (let r = 0; r < m; r++) A[r][r] += e;
    for (let r = 0; r < m; r++) {  // positive definite: no pivots
      for (let s = r + 1; s < m; s++) {
        const f = A[s][r] / A[r][r];
        for (let k = r; k <= m; k++) A[s][k] -= f * A[r][k];
      }
    }
    for (let r = m - 1; r >= 0; r--) {
      for (let k = r + 1; k < m; k++) A[r][m] -= A[r][k] * A[k][m];
      A[r][m] /= A[r][r];
    }
    const step = moved.map((i) => A.reduce((sum, row, r) => sum + at(r, i) * row[m], 0));
    const shorter = Math.min(1, 0.5 / Math.max(...step.map(Math.abs), 1e-300));
    moved.forEach((i, k) => { x[i] += shorter * step[k]; });
  }
  return null;
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
      // folded away where it would hide the picture
      const list = element("dl"), notes = element("details", { className: "notes", open: window.innerWidth > 760 && window.innerHeight > 500 }, element("summary", { textContent: data.title }));
      for (const [key, value] of data.notes) {
        if (key) list.append(element("dt", { textContent: key }), element("dd", { textContent: value }));
        else if (value) notes.append(element("p", { textContent: value }));
      }
      notes.append(list);
      notes.addEventListener("toggle", () => this.stage?.resize());
      stage.append(notes);
    }
    host.append(stage);
    host.classList.toggle("plain", !!data.plain);
    if (!data.plain) try {
      this.stage = new Stage(data, stage, data.posing && runProgram(data.posing.poses, startValues(data.posing)));
    } catch (error) {
      this.problem = String(error);
      stage.querySelectorAll("canvas").forEach((c) => c.remove());
      stage.append(element("p", { className: "problem", textContent: "This browser offers no WebGL, so there is no 3-D picture. The plots work without it." }));
    }
    if (this.stage && data.posing) this.hand = new Hand(this);
    this.plots = data.panels.map((panel) => new Plot(panel, (t) => { this.pause(); this.seek(t); }));
    if (this.plots.length || data.posing) {
      const aside = element("aside", { ariaLabel: data.posing ? "joints" : "plots" });
      if (data.posing) aside.append(this.sliders());
      aside.append(...this.plots.map((p) => p.figure));
      host.append(aside);
    }
    host.append(this.controls());
    if (data.live) this.live = new Live(this, data.live, host.querySelector("aside"));
    this.seek(this.time);
  }

  replace(data) {
    // another model in the same place; joints of the same name stay where they are
    const kept = new Map((this.data.posing?.sliders || []).map((s) => [s.name, this.x[s.index]]));
    const box = this.root.querySelector(".sliders");
    this.data = data;
    if (data.posing) {
      for (const s of data.posing.sliders) if (kept.has(s.name)) s.shown = Math.min(Math.max(kept.get(s.name), s.low), s.high);
      box.replaceWith(this.sliders());
      for (const s of data.posing.sliders) if (s.shown !== undefined) this.x[s.index] = s.shown;
      if (data.posing.closing) this.x = closed(data.posing, this.x, -1) || startValues(data.posing);
      this.write();
    } else { this.x = new Float64Array(0); box.replaceChildren(); }
    if (this.stage) this.stage.replace(data, data.posing && runProgram(data.posing.poses, this.x));
    if (this.stage && !data.posing && data.motion) this.stage.show(data.motion.start);
    this.hand?.release();
    this.root.querySelector(".bar").replaceWith(this.controls());
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
    if (m && m.levels.length) bar.append(this.exaggeration(m));
    const d = this.data, group = element("div", { className: "group", role: "group", ariaLabel: "what is shown" });
    const choices = [
      ["trails", "Trails", m && d.trails.length], ["ghosts", "Ghosts", m && m.count > 1], ["forces", "Forces", d.arrows.length], ["frames", "Frames", true],
      ["com", "Mass", d.masses.length], ["inertia", "Inertia", d.masses.length], ["loops", "Loops", d.loops.length], ["sensors", "Sensors", d.sensors.length],
      ["names", "Names", true], ["pull", "Pull", this.hand && !d.given], ["ground", "Ground", d.gravity > 0], ["follow", "Follow", m && m.count > 1],
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

  exaggeration(m) {
    // deformations of flexible bodies, larger than they are: all poses for each factor
    const { positions, quaternions, scale, offset } = m, levels = [{ factor: 1, positions, quaternions, scale, offset }, ...m.levels];
    const label = element("span", { className: "factor", textContent: "deformation ×1" });
    const input = element("input", {
      type: "range", className: "exaggeration", min: 0, max: levels.length - 1, step: 1, value: 0, ariaLabel: "exaggeration of deformations",
      oninput: () => { const { factor, ...at } = levels[Number(input.value)]; Object.assign(m, at); label.textContent = `deformation ×${factor}`; this.seek(this.time); },
    });
    const pair = element("label", { className: "pair" });
    pair.append(label, input);
    return pair;
  }

  show(name, value) {
    if (name === "pull") this.hand.use(value ? "pull" : "");
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
        // loops may turn a joint further than its slider reaches
        input.min = Math.min(s.low, this.x[s.index]); input.max = Math.max(s.high, this.x[s.index]);
        if (Math.abs(Number(input.value) - this.x[s.index]) > 1e-9) input.value = this.x[s.index];
        const degrees = s.unit === "rad" ? `  (${((this.x[s.index] * 180) / Math.PI).toFixed(0).replace("-", "−")}°)` : "";
        output.textContent = `${this.x[s.index].toFixed(3).replace("-", "−")} ${s.unit}${degrees}`;
      };
      input.addEventListener("input", () => this.move(s.index, Number(input.value)));
      box.append(element("label", {}, element("span", { className: "name", textContent: s.name, title: s.name }), output, input));
      write();
      return write;
    });
    this.write = () => { for (const write of rows) write(); };
    const open = p.open ? "This model is too large for the page to close its loops: they open as joints move." : "";
    this.notice = element("p", { className: "notice", role: "status", textContent: open });
    box.prepend(element("button", {
      type: "button", textContent: "Reset joints", onclick: () => { this.x = startValues(p); this.notice.textContent = open; this.write(); this.pose(); },
    }), this.notice);
    return box;
  }

  move(index, value) {
    // in steps that Newton's method can follow; where the loops cannot be closed, the last place where they could stays
    const p = this.data.posing, before = this.x[index], steps = p.closing ? Math.ceil(Math.abs(value - before) / 0.1) || 1 : 1;
    for (let k = 1; k <= steps; k++) {
      const x = Float64Array.from(this.x);
      x[index] = before + ((value - before) * k) / steps;
      const found = p.closing ? closed(p, x, index) : x;
      if (p.closing) this.notice.textContent = found ? "" : "The loops cannot be closed beyond this.";
      if (!found) break;
      this.x = found;
    }
    this.write();
    if (this.live) this.live.moved(index);
    else this.pose();
  }

  pose() { if (this.stage) this.stage.setPoses(runProgram(this.data.posing.poses, this.x)); }

  // --- time --------------------------------------------------------------------------------------------------

  toggle() { if (this.live) this.live.toggle(); else if (this.playing) this.pause(); else this.play(); }

  play() {
    const m = this.data.motion;
    if (this.live) this.live.play();
    if (!m || m.count < 2) return;
    if (this.time >= m.end) this.seek(m.start);
    this.playing = true;
    this.button.textContent = "❚❚ Pause";
  }

  pause() {
    this.playing = false;
    if (this.live) this.live.stop();
    if (this.button) this.button.textContent = "▶ Play";
    for (const plot of this.plots || []) plot.draw(this.time);
  }

  seek(t) {
    const m = this.data.motion;
    if (!m) { if (this.data.posing) this.pose(); else if (this.stage) this.stage.update(); return; }
    this.time = Math.min(Math.max(t, m.start), m.end);
    if (this.stage) this.stage.show(this.time);
    for (const plot of this.plots) plot.draw(this.time, this.playing);
    if (this.slider) {
      this.slider.value = this.time;
      this.slider.setAttribute("aria-valuetext", `${this.time.toFixed(2)} s`);
      this.readout.textContent = `${this.time.toFixed(2)} / ${m.end.toFixed(2)} s`;
    }
  }

  advance(seconds) {
    if (this.playing) {
      // without a graphics card the picture is made simpler, once, so that it moves better
      this.slow = seconds > 0.05 ? (this.slow || 0) + 1 : 0;
      if (this.slow === 15 && this.stage) this.stage.simplify();
      const m = this.data.motion;
      let t = this.time + seconds * this.speed;
      if (t > m.end) { if (this.loop) t = m.start + ((t - m.start) % (m.end - m.start)); else { t = m.end; this.pause(); } }
      this.seek(t);
    }
    if (this.live) this.live.advance(seconds);
    if (this.hand) this.hand.advance();
    if (this.stage) this.stage.render();
  }

  key(event) {
    const m = this.data.motion, step = m ? (m.end - m.start) / 100 : 0;
    const actions = {
      " ": () => this.toggle(), ",": () => { this.pause(); this.seek(this.time - step); }, ".": () => { this.pause(); this.seek(this.time + step); },
      Home: () => this.seek(m.start), End: () => this.seek(m.end), t: () => this.switches.trails?.click(), g: () => this.switches.ghosts?.click(), f: () => this.switches.frames?.click(),
    };
    if (!(m || (this.live && event.key === " ")) || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  theme() { if (this.stage) this.stage.theme(); for (const plot of this.plots) plot.layout(); }
}
