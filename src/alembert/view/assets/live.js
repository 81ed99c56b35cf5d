"use strict";
// The model's own dynamics in the page, as WebAssembly: time runs, and what the sliders say acts at once.

class Live {
  constructor(player, data, box) {
    this.player = player;
    this.data = data;
    this.running = false;
    this.wanted = false;
    this.time = 0;
    this.debt = 0;
    this.button = element("button", { type: "button", className: "play", textContent: "▶ Play", onclick: () => this.toggle() });
    this.readout = element("span", { className: "time", role: "status" });
    const again = element("button", { type: "button", textContent: "Start again", onclick: () => this.restart() });
    const panel = element("div", { className: "live" }, this.button, again, this.readout);
    this.inputs = data.sliders.map((s) => {
      const output = element("output");
      const input = element("input", { type: "range", min: s.low, max: s.high, step: "any", value: s.value, ariaLabel: s.name });
      const write = () => { output.textContent = `${Number(input.value).toPrecision(3)} ${s.unit}`; this.put(s, Number(input.value)); };
      input.addEventListener("input", write);
      panel.append(element("label", {}, element("span", { className: "name", textContent: s.name, title: s.name }), output, input));
      return write;
    });
    box.prepend(panel);
    WebAssembly.instantiate(bytes(data.wasm), { m: Math }).then(({ instance }) => {
      this.functions = instance.exports;
      this.memory = new Float64Array(instance.exports.memory.buffer);
      for (const write of this.inputs) write();
      this.restart();
      if (this.wanted) this.play();
    });
  }

  part(name) { const [at, size] = this.data.places[name]; return this.memory.subarray(at, at + size); }

  put(slider, value) { if (this.memory) this.part(slider.array)[slider.index] = value; }

  restart() {
    if (!this.memory) return;
    for (const name of ["q", "v", "x", "d"]) this.part(name).set(this.data[name]);
    this.part("h")[0] = this.data.step;
    this.part("t")[0] = 0;
    this.time = this.debt = this.count = 0;
    this.draw();
  }

  play() { this.wanted = true; if (this.memory) { this.running = true; this.button.textContent = "❚❚ Pause"; } }

  stop() { this.wanted = this.running = false; this.button.textContent = "▶ Play"; }

  toggle() { if (this.running) this.stop(); else this.play(); }

  moved(index) { this.take(this.data.joints.filter(([v]) => v === index)); }

  movedAll() { this.take(this.data.joints); }

  take(joints) {
    // joints that were moved by hand start from there, at rest
    if (!joints.length || !this.memory) return;
    const q = this.part("q"), wanted = joints.map(([v, at]) => [at, this.player.x[v]]);
    const left = () => Math.max(...wanted.map(([at, x]) => Math.abs(x - q[at])));
    if (!this.functions.settle_now) for (const [at, x] of wanted) q[at] = x;
    // loops follow a little at a time, as far as they can
    for (let k = 0; this.functions.settle_now && k < 500 && left() > 1e-6; k++) {
      const before = [...q], far = left();
      for (const [at, x] of wanted) q[at] += Math.max(-0.01, Math.min(0.01, x - q[at]));
      this.part("v").fill(0);
      this.functions.settle_now();
      if (!(left() < far) || !q.every(Number.isFinite)) { q.set(before); break; }
    }
    this.part("v").fill(0);
    this.draw();
  }

  read() {
    // where the joints are while time runs
    if (!this.memory) return;
    const q = this.part("q");
    for (const [v, at] of this.data.joints) this.player.x[v] = q[at];
  }

  advance(seconds) {
    if (!this.running) return;
    const h = this.data.step, begin = performance.now(), t = this.part("t");
    this.debt += seconds;
    let done = 0;
    while (this.debt >= h) {
      if (this.data.every && this.count % this.data.every === 0) this.functions.instant_now();
      this.functions.step_now();
      this.count += 1;
      this.time += h;
      this.debt -= h;
      t[0] = this.time;
      done += 1;
      // a slow machine falls behind instead of freezing
      if ((done & 15) === 0 && performance.now() - begin > 12) { this.debt = 0; break; }
    }
    if (!this.part("q").every(Number.isFinite)) {
      this.stop();
      this.restart();
      this.readout.textContent = "It grew without bounds; started again.";
      return;
    }
    this.draw();
  }

  draw() {
    this.functions.poses_now();
    if (this.player.stage) this.player.stage.setPoses(this.part("poses"));
    if (this.player.x) {
      const q = this.part("q");
      for (const [v, at] of this.data.joints) this.player.x[v] = q[at];
      this.player.write();
    }
    this.readout.textContent = `${this.time.toFixed(2)} s`;
  }
}
