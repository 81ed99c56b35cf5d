// The Earth with its coasts and night side, and an orbit about it: drag to turn, move the slider through time.
function globe(root, data) {
  const canvas = root.querySelector("canvas"), slider = root.querySelector("input"), label = root.querySelector("output");
  const pen = canvas.getContext("2d"), dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const ink = dark ? "#cbd5e1" : "#334155", sea = dark ? "#16324f" : "#dbeafe", land = dark ? "#8fd19e" : "#15803d";
  const path = dark ? "#fb923c" : "#c2410c", size = canvas.width, scale = 0.46 * size / data.reach, rad = Math.PI / 180;
  let yaw = data.view[0], tilt = data.view[1];
  const matrix = (R, x) => R.map(row => row[0] * x[0] + row[1] * x[1] + row[2] * x[2]);
  const sphere = (lon, lat) => [Math.cos(lat) * Math.cos(lon), Math.cos(lat) * Math.sin(lon), Math.sin(lat)];
  // to the screen: x right, y up, z towards the eye, which looks from longitude yaw and latitude tilt of inertial axes
  function seen(x) {
    const c = Math.cos(yaw), s = Math.sin(yaw), a = Math.cos(tilt), b = Math.sin(tilt);
    const u = c * x[0] + s * x[1];
    return [c * x[1] - s * x[0], a * x[2] - b * u, a * u + b * x[2]];
  }
  function line(points, shown) {
    pen.beginPath();
    let on = false;
    for (const p of points) {
      if (shown(p)) { pen[on ? "lineTo" : "moveTo"](size / 2 + scale * p[0], size / 2 - scale * p[1]); on = true; } else on = false;
    }
    pen.stroke();
  }
  function night(sun) {
    const n = Math.hypot(sun[0], sun[1]);
    pen.beginPath();
    if (n < 1e-6) { if (sun[2] < 0) pen.arc(size / 2, size / 2, scale, 0, 2 * Math.PI); pen.fill(); return; }
    const u = [-sun[1] / n, sun[0] / n], points = [];
    for (let k = 0; k <= 64; k++) {  // the terminator from u to -u, then the limb back on the side away from the Sun
      const f = Math.PI * k / 64, c = Math.cos(f), s = Math.sin(f);
      points.push([c * u[0] - s * sun[2] * sun[0] / n, c * u[1] - s * sun[2] * sun[1] / n]);
    }
    for (let k = 0; k <= 64; k++) {
      const f = Math.PI * k / 64, c = Math.cos(f), s = Math.sin(f);
      points.push([-c * u[0] - s * sun[0] / n, -c * u[1] - s * sun[1] / n]);
    }
    points.forEach((p, k) => pen[k ? "lineTo" : "moveTo"](size / 2 + scale * p[0], size / 2 - scale * p[1]));
    pen.fill();
  }
  function draw() {
    const k = Math.round(slider.value), t = data.time[k], angle = data.angle + data.rate * t;
    const front = p => p[2] > 0, free = p => p[2] > 0 || Math.hypot(p[0], p[1]) > 1;
    const fixed = x => {  // from Earth-fixed to inertial axes
      const c = Math.cos(angle), s = Math.sin(angle), y = [c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]];
      return [0, 1, 2].map(i => data.tilt[0][i] * y[0] + data.tilt[1][i] * y[1] + data.tilt[2][i] * y[2]);
    };
    pen.clearRect(0, 0, size, size);
    pen.lineJoin = "round";
    const orbit = data.orbit.map(seen);
    pen.strokeStyle = path; pen.lineWidth = 1; pen.globalAlpha = 0.35; line(orbit, p => !free(p)); pen.globalAlpha = 1;
    pen.fillStyle = sea; pen.beginPath(); pen.arc(size / 2, size / 2, scale, 0, 2 * Math.PI); pen.fill();
    pen.strokeStyle = ink; pen.lineWidth = 0.6; pen.globalAlpha = 0.25;
    for (let m = -180; m < 180; m += 30) line([...Array(61).keys()].map(j => seen(fixed(sphere(m * rad, (j * 3 - 90) * rad)))), front);
    for (let m = -60; m <= 60; m += 30) line([...Array(121).keys()].map(j => seen(fixed(sphere(j * 3 * rad, m * rad)))), front);
    pen.globalAlpha = 1; pen.strokeStyle = land; pen.lineWidth = 1.3;
    for (const ring of data.coasts) line(ring.map(p => seen(fixed(sphere(p[0] * rad, p[1] * rad)))), front);
    if (data.sun) { pen.fillStyle = dark ? "#000a" : "#0f172a55"; night(seen(data.sun)); }
    pen.strokeStyle = path; pen.lineWidth = 0.8; pen.globalAlpha = 0.5; pen.setLineDash([5, 4]); line(data.ring.map(seen), free);
    pen.setLineDash([]); pen.lineWidth = 1.4; pen.globalAlpha = 0.4; line(orbit.slice(k), free);
    pen.globalAlpha = 1; pen.lineWidth = 2.2; line(orbit.slice(0, k + 1), free);
    const here = orbit[k];
    pen.globalAlpha = free(here) ? 1 : 0.35; pen.fillStyle = path; pen.beginPath();
    pen.arc(size / 2 + scale * here[0], size / 2 - scale * here[1], 6, 0, 2 * Math.PI); pen.fill(); pen.globalAlpha = 1;
    label.textContent = `t = ${t.toFixed(0)} s, height ${data.height[k].toFixed(1)} km`;
  }
  let held = null;
  canvas.addEventListener("pointerdown", e => { held = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener("pointerup", () => { held = null; });
  canvas.addEventListener("pointermove", e => {
    if (!held) return;
    yaw -= (e.clientX - held[0]) / 150; tilt = Math.max(-1.55, Math.min(1.55, tilt + (e.clientY - held[1]) / 150));
    held = [e.clientX, e.clientY]; draw();
  });
  slider.addEventListener("input", draw);
  draw();
}
