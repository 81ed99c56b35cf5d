"use strict";
// A small plot on a canvas: lines over time, told apart by colour and dashes, with a cursor that follows the motion.

const LINE_COLORS = {
  light: ["#1f5fbf", "#c2410c", "#0f7b5a", "#8b2f7f", "#5b6675", "#a16207", "#0e7490", "#b91c1c"],
  dark: ["#6ea8ff", "#ff9a5c", "#4fd1a5", "#e08bd4", "#a9b4c2", "#e6c15a", "#5cc8dc", "#ff8080"],
};
const LINE_DASHES = [[], [7, 3], [2, 2.5], [9, 3, 2, 3], [4, 2], [12, 4], [1.5, 4], [9, 2, 2, 2, 2, 2]];

function element(tag, properties, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key in e && key !== "list") e[key] = value;
    else e.setAttribute(key, value);
  }
  e.append(...children.filter((c) => c != null));
  return e;
}

function niceTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999) || raw;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return { ticks, step };
}

function shortNumber(x, step) {
  if (!Number.isFinite(x)) return "–";
  if (step !== undefined) {
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    if (Math.abs(x) < 1e5 && digits < 5) return (Math.abs(x) < step / 1e3 ? 0 : x).toFixed(digits).replace("-", "−");
  }
  const tell = step === undefined ? 4 : Math.ceil(Math.log10(Math.max(Math.abs(x) / step, 1))) + 1;  // digits that tell two ticks apart
  const text = String(Number(x.toPrecision(Math.min(Math.max(4, tell), 15))));
  const long = text.replace("-", "").length > 7;
  const short = long ? x.toExponential(step === undefined ? 3 : Math.min(Math.max(0, tell - 1), 14)) : text;
  return short.replace("e+", "e").replace(/-/g, "−");
}

class Plot {
  constructor(panel, onSeek) {
    this.panel = panel;
    this.hidden = new Set();
    this.canvas = element("canvas", { role: "img", ariaLabel: `${panel.title} over ${panel.over || "time"}: ${panel.lines.map((l) => l.name).join(", ")}` });
    this.back = document.createElement("canvas");
    this.values = [];
    const legend = element("div", { className: "legend" });
    panel.lines.forEach((line, k) => {
      const value = element("span", { className: "value" });
      this.values.push(value);
      const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      swatch.setAttribute("width", "22"); swatch.setAttribute("height", "8"); swatch.setAttribute("aria-hidden", "true");
      const stroke = document.createElementNS("http://www.w3.org/2000/svg", "line");
      for (const [a, v] of Object.entries({ x1: 0, x2: 22, y1: 4, y2: 4, "stroke-width": 2 })) stroke.setAttribute(a, v);
      stroke.setAttribute("stroke-dasharray", this.dash(k).join(" "));
      swatch.append(stroke);
      const button = element("button", {
        type: "button", ariaPressed: "true", title: `show or hide ${line.name}`,
        onclick: () => {
          if (!this.hidden.delete(k)) this.hidden.add(k);
          button.ariaPressed = String(!this.hidden.has(k));
          this.layout();
        },
      }, swatch, element("span", { className: "name", textContent: line.name }), value);
      line.stroke = stroke;
      legend.append(button);
    });
    this.figure = element("figure", {}, element("figcaption", { textContent: panel.title }), this.canvas, legend);
    const seek = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const x = (event.clientX - box.left - this.left) / (box.width - this.left - this.right);
      onSeek(this.t0 + Math.min(Math.max(x, 0), 1) * (this.t1 - this.t0));
    };
    if (!panel.over) this.canvas.addEventListener("pointerdown", (e) => { this.canvas.setPointerCapture(e.pointerId); seek(e); });
    if (!panel.over) this.canvas.addEventListener("pointermove", (e) => { if (e.buttons) seek(e); });
    this.left = 46; this.right = 18; this.top = 6; this.bottom = 20;
    this.t0 = panel.time[0]; this.t1 = panel.time[panel.time.length - 1];
    this.now = this.t0;
    new ResizeObserver(() => this.layout()).observe(this.canvas);
  }

  dash(k) { return LINE_DASHES[k % LINE_DASHES.length]; }

  layout() {
    const ratio = window.devicePixelRatio || 1, w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    if (!w || !h) return;
    for (const c of [this.canvas, this.back]) { c.width = w * ratio; c.height = h * ratio; }
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const colors = LINE_COLORS[document.documentElement.dataset.theme === "dark" ? "dark" : "light"];
    let low = Infinity, high = -Infinity;
    this.panel.lines.forEach((line, k) => {
      line.color = colors[k % colors.length];
      line.stroke.setAttribute("stroke", line.color);
      if (!this.hidden.has(k)) for (const y of line.data) if (Number.isFinite(y)) { low = Math.min(low, y); high = Math.max(high, y); }
    });
    if (low > high) { low = -1; high = 1; }
    const size = Math.max(Math.abs(low), Math.abs(high)) || 1;
    if (high - low < 1e-6 * size) { low -= 0.5 * size; high += 0.5 * size; }
    const margin = 0.06 * (high - low);
    this.low = low - margin; this.high = high + margin;
    this.w = w; this.h = h; this.ratio = ratio; this.ink = color("--ink");
    const g = this.back.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, w, h);
    g.font = "11px system-ui, sans-serif";
    g.strokeStyle = color("--line"); g.fillStyle = color("--soft"); g.lineWidth = 1;
    const ys = niceTicks(this.low, this.high, 4), ts = niceTicks(this.t0, this.t1, Math.max(2, Math.floor(w / 75)));
    const labels = ys.ticks.map((y) => shortNumber(y, ys.step));
    this.left = Math.min(Math.max(46, ...labels.map((label) => Math.ceil(g.measureText(label).width) + 10)), w / 2);
    g.textAlign = "right"; g.textBaseline = "middle";
    for (const y of ys.ticks) {
      g.globalAlpha = Math.abs(y) < 1e-9 * ys.step ? 1 : 0.6;
      g.beginPath(); g.moveTo(this.left, this.y(y)); g.lineTo(w - this.right, this.y(y)); g.stroke();
      g.globalAlpha = 1; g.fillText(shortNumber(y, ys.step), this.left - 5, this.y(y));
    }
    g.textAlign = "center"; g.textBaseline = "top";
    for (const t of ts.ticks) {
      g.globalAlpha = 0.6; g.beginPath(); g.moveTo(this.x(t), this.top); g.lineTo(this.x(t), h - this.bottom); g.stroke();
      g.globalAlpha = 1;
      const label = shortNumber(t, ts.step) + (t === ts.ticks[ts.ticks.length - 1] && !this.panel.over ? " s" : "");
      const half = g.measureText(label).width / 2;
      g.fillText(label, Math.min(Math.max(this.x(t), half + 1), w - half - 1), h - this.bottom + 4);
    }
    g.save();
    g.beginPath(); g.rect(this.left, this.top - 2, w - this.left - this.right, h - this.top - this.bottom + 4); g.clip();
    g.lineWidth = 1.6; g.lineJoin = "round";
    this.panel.lines.forEach((line, k) => {
      if (this.hidden.has(k)) return;
      g.strokeStyle = line.color; g.setLineDash(this.dash(k));
      g.beginPath();
      let pen = false;
      for (let i = 0; i < line.data.length; i++) {
        const y = line.data[i];
        if (!Number.isFinite(y)) { pen = false; continue; }
        if (pen) g.lineTo(this.x(this.panel.time[i]), this.y(y)); else g.moveTo(this.x(this.panel.time[i]), this.y(y));
        pen = true;
      }
      g.stroke();
    });
    g.restore();
    this.draw(this.now);
  }

  x(t) { return this.left + (this.w - this.left - this.right) * (this.t1 > this.t0 ? (t - this.t0) / (this.t1 - this.t0) : 0.5); }
  y(v) { return this.h - this.bottom - (this.h - this.top - this.bottom) * ((v - this.low) / (this.high - this.low)); }

  at(line, t) {
    // the value; of many records the least and the greatest of an interval, where they differ by more than a fiftieth
    const time = this.panel.time;
    let a = 0, b = time.length - 1;
    while (b - a > 1) { const m = (a + b) >> 1; if (time[m] <= t) a = m; else b = m; }
    if (this.panel.thinned) {
      const ends = [line.data[a - (a % 2)], line.data[a - (a % 2) + 1]].sort((x, y) => x - y);
      if (ends[1] - ends[0] > 0.02 * Math.max(ends[1], -ends[0])) return ends;
    }
    const span = time[b] - time[a], s = span > 0 ? Math.min(Math.max((t - time[a]) / span, 0), 1) : 0;
    return [line.data[a] + s * (line.data[b] - line.data[a])];
  }

  draw(t, playing = false) {
    const still = this.panel.over;  // not over the time: no cursor, and the last values
    if (still) t = this.t1;
    this.now = t;
    const clock = performance.now();
    if (!playing || clock - (this.told || 0) > 120) {  // numbers that change faster cannot be read
      this.told = clock;
      this.panel.lines.forEach((line, k) => { this.values[k].textContent = this.at(line, t).map((y) => shortNumber(y)).join(" … "); });
    }
    if (!this.w) return;
    const g = this.canvas.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, this.canvas.width, this.canvas.height);
    g.drawImage(this.back, 0, 0);
    if (still) return;
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    g.strokeStyle = this.ink; g.lineWidth = 1; g.globalAlpha = 0.75;
    g.beginPath(); g.moveTo(this.x(t), this.top); g.lineTo(this.x(t), this.h - this.bottom); g.stroke();
    g.globalAlpha = 1;
    this.panel.lines.forEach((line, k) => {
      const [y, other] = this.at(line, t);
      if (this.hidden.has(k) || !Number.isFinite(y) || other !== undefined) return;
      g.fillStyle = line.color;
      g.beginPath(); g.arc(this.x(t), this.y(y), 3, 0, 7); g.fill();
    });
  }
}
