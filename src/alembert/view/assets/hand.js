"use strict";
// A body pulled by the mouse: the joints follow (inverse kinematics), within their limits and with the loops closed.

// min |p(x) - target|^2 of points of a body by steps of Levenberg and Marquardt: (J'J + w C'C + d) dx = J'(target - p) - w C'phi,
// where w is large, so that C dx = -phi keeps loops closed; d grows until the step is short and leads nearer. Joints stop at
// their limits. J by differences: the program has no derivatives. One point is a place, three of them are a pose.
function pulled(posing, from, body, points, length) {
  const free = posing.sliders, n = free.length, goal = points.flatMap(({ target }) => target.toArray()), h = 1e-6;
  const where = (x) => {
    const r = runProgram(posing.poses, x), k = 12 * body;
    return points.flatMap(({ local }) => [0, 1, 2].map((i) => r[k + 9 + i] + r[k + 3 * i] * local.x + r[k + 3 * i + 1] * local.y + r[k + 3 * i + 2] * local.z));
  };
  const dot = (a, b) => a.reduce((sum, value, i) => sum + value * b[i], 0);
  const distance = (p) => Math.hypot(...p.map((value, i) => value - goal[i]));
  let x = Float64Array.from(from), at = where(x), missing = distance(at), damping = 1e-2;
  for (let round = 0; round < 5 && missing > 1e-5 * length; round++) {
    const J = free.map((s) => {
      const moved = Float64Array.from(x);
      moved[s.index] += h;
      return where(moved).map((value, i) => (value - at[i]) / h);
    });
    const A = Array.from({ length: n }, (_, i) => Float64Array.from({ length: n }, (_, j) => dot(J[i], J[j])));
    const missed = goal.map((value, i) => value - at[i]), b = J.map((column) => dot(column, missed));
    if (posing.closing) {
      const out = runProgram(posing.closing, x), m = out.length / (x.length + 1), slope = (r, s) => out[m + s.index * m + r], w = 1e4;
      for (let r = 0; r < m; r++) {
        for (let i = 0; i < n; i++) {
          for (let j = 0; j < n; j++) A[i][j] += w * slope(r, free[i]) * slope(r, free[j]);
          b[i] -= w * slope(r, free[i]) * out[r];
        }
      }
    }
    let found = null;
    for (; damping < 1e5 && !found; damping *= 6) {
      const step = limitedStep(posing, A, b, x, damping * length * length);
      if (Math.max(...step.map(Math.abs)) > 0.5) continue;
      const tried = Float64Array.from(x);
      free.forEach((s, i) => { tried[s.index] += step[i]; });
      const shut = posing.closing ? closed(posing, tried, -1) : tried;
      if (!shut || free.some((s) => s.limited && (shut[s.index] > s.high + 1e-6 || shut[s.index] < s.low - 1e-6))) continue;
      const there = where(shut);
      if (distance(there) < missing - 1e-9 * length) found = { x: shut, at: there };
    }
    if (!found) break;
    ({ x, at } = found);
    missing = distance(at);
    damping = Math.max(damping / 100, 1e-4);
  }
  return { x, missing };
}

// `pulled`; where that gets stuck, as an arm does that is stretched out at a limit, also from nearer to the middle of the limits.
function reached(posing, from, body, points, length) {
  let best = pulled(posing, from, body, points, length);
  for (const share of [0.2, 0.5, 0.8]) {
    if (best.missing < 0.02 * length) break;
    let x = Float64Array.from(best.x);
    for (const s of posing.sliders) if (s.limited) x[s.index] += share * (0.5 * (s.low + s.high) - x[s.index]);
    if (posing.closing) x = closed(posing, x, -1);
    let other = x && { x, missing: Infinity };
    for (let k = 0; k < 4 && other && other.missing > 1e-3 * length; k++) other = pulled(posing, other.x, body, points, length);
    if (other && other.missing < 0.5 * best.missing) best = other;
  }
  return best;
}

// The step of the damped equations; a joint that would leave its limits goes to the limit, and the others make up for it.
function limitedStep(posing, A, b, x, damping) {
  const free = posing.sliders, fixed = new Map();
  for (;;) {
    const step = solved(A, b, damping, fixed);
    const k = free.findIndex((s, i) => s.limited && !fixed.has(i) && (x[s.index] + step[i] > s.high + 1e-12 || x[s.index] + step[i] < s.low - 1e-12));
    if (k < 0) return step;
    const s = free[k];
    fixed.set(k, (step[k] > 0 ? s.high : s.low) - x[s.index]);
  }
}

// (A + damping) dx = b with some dx fixed; A is positive semidefinite.
function solved(matrix, right, damping, fixed) {
  const n = right.length, A = matrix.map((row) => Float64Array.from(row)), b = Float64Array.from(right);
  for (let i = 0; i < n; i++) A[i][i] += damping;
  for (const [k, dx] of fixed) {
    for (let i = 0; i < n; i++) { b[i] -= A[i][k] * dx; A[i][k] = A[k][i] = 0; }
    A[k][k] = 1;
    b[k] = dx;
  }
  for (const [k, dx] of fixed) b[k] = dx;
  for (let r = 0; r < n; r++) {
    for (let s = r + 1; s < n; s++) {
      const f = A[s][r] / A[r][r];
      if (!f) continue;
      for (let k = r; k < n; k++) A[s][k] -= f * A[r][k];
      b[s] -= f * b[r];
    }
  }
  for (let r = n - 1; r >= 0; r--) {
    for (let k = r + 1; k < n; k++) b[r] -= A[r][k] * b[k];
    b[r] /= A[r][r];
  }
  return b;
}

class Hand {
  constructor(player) {
    this.player = player;
    this.stage = player.stage;
    this.use("pull");
    this.stage.on.pull = true;
    const canvas = this.stage.canvas;
    canvas.addEventListener("pointerdown", (event) => this.down(event), true);
    canvas.addEventListener("pointermove", (event) => this.move(event), true);
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.up(event), true);
    this.mark = new THREE.Mesh(new THREE.SphereGeometry(1, 16, 10), new THREE.MeshBasicMaterial({ color: 0xe8590c, depthTest: false, transparent: true, opacity: 0.85 }));
    this.mark.renderOrder = 5;
    this.mark.visible = false;
    this.stage.scene.add(this.mark);
  }

  use(mode) { this.mode = mode; this.stage.grabs = !!mode; }

  // --- the pointer -----------------------------------------------------------------------------------------

  down(event) {
    if (!this.mode || event.button !== 0 || !this.player.data.posing) return;
    const hit = this.stage.hit(event);
    if (!hit || hit.body < 0) return;
    this.grip(hit.body, hit.point, event);
    if (!this.held) return;
    this.stage.canvas.setPointerCapture(event.pointerId);
    event.stopImmediatePropagation();  // the camera stays
    event.preventDefault();
    this.stage.canvas.focus();
  }

  grip(body, point, event) {
    const stage = this.stage, inverse = stage.root.matrixWorld.clone().invert();
    const at = point.clone().applyMatrix4(inverse);  // in the model's world
    const normal = stage.camera.getWorldDirection(new THREE.Vector3());
    this.held = { body, start: at, local: at.clone().applyMatrix4(stage.body(body).clone().invert()), target: at.clone(), inverse };
    if (this.mode === "place") {
      const placing = this.player.placing?.(body);
      if (!placing) { this.held = null; return; }
      // in the plane of two axes of the parent that faces the camera most
      const axes = [0, 1, 2].map((k) => new THREE.Vector3().setFromMatrixColumn(placing.parent, k).transformDirection(stage.root.matrixWorld));
      normal.copy(axes.reduce((a, b) => (Math.abs(b.dot(normal)) > Math.abs(a.dot(normal)) ? b : a)));
      Object.assign(this.held, placing, { poses: stage.matrices.map((m) => m.clone()) });
    }
    Object.assign(this.held, { normal, point: point.clone() });
    this.mark.scale.setScalar(0.05 * stage.unit);
    this.mark.position.copy(point);
    this.mark.visible = true;
    stage.canvas.style.cursor = "grabbing";
    stage.dirty = true;
    if (event) stage.tip.hidden = true;
  }

  move(event) {
    if (!this.held) return;
    event.stopImmediatePropagation();
    if (event.shiftKey && this.mode === "pull") { this.turn(event.movementX, event.movementY); return; }
    const { origin, direction } = this.stage.ray(event).ray, { normal, point } = this.held, slope = direction.dot(normal);
    const t = point.clone().sub(origin).dot(normal) / slope;
    if (Math.abs(slope) > 0.02 && t > 0) this.to(origin.clone().addScaledVector(direction, t));
  }

  to(point) {
    // a point of the picture
    this.mark.position.copy(point);
    this.held.target = point.clone().applyMatrix4(this.held.inverse);
    this.held.fresh = true;
    this.stage.dirty = true;
  }

  turn(right, down) {
    // the body about the point that is held, as if the mouse rolled it; from then on its attitude is kept as well
    const { held, stage } = this, axis = new THREE.Vector3(down, right, 0), angle = axis.length() / 150;
    if (!angle) return;
    axis.transformDirection(stage.camera.matrixWorld).transformDirection(held.inverse);
    held.attitude ||= new THREE.Quaternion().setFromRotationMatrix(stage.body(held.body));
    held.attitude.premultiply(new THREE.Quaternion().setFromAxisAngle(axis, angle));
    held.fresh = true;
  }

  points() {
    const { local, target, attitude } = this.held, arms = attitude ? [[1, 0, 0], [0, 1, 0]] : [];
    const arm = (axis) => new THREE.Vector3(...axis).multiplyScalar(this.player.data.posing.length);
    return [{ local, target }, ...arms.map((axis) => ({ local: arm(axis).add(local), target: arm(axis).applyQuaternion(attitude).add(target) }))];
  }

  up(event) {
    if (!this.held) return;
    event.stopImmediatePropagation();
    const held = this.held;
    this.advance();
    this.release();
    if (held.done) held.done(held.shift);
  }

  release() {
    this.held = null;
    this.mark.visible = false;
    this.stage.canvas.style.cursor = "";
    this.stage.dirty = true;
  }

  // --- what it does ----------------------------------------------------------------------------------------

  advance() {
    if (!this.held) return;
    if (this.mode === "place") this.shift(); else this.pull();
  }

  pull() {
    const { player, held } = this, posing = player.data.posing;
    if (!held.fresh && !(held.missing > 1e-4 * posing.length && held.rounds < 30)) return;
    if (player.live) player.live.read();
    const { x, missing } = reached(posing, player.x, held.body, this.points(), posing.length);
    held.rounds = held.fresh ? 0 : held.rounds + 1;
    held.fresh = false;
    held.missing = missing;
    player.x = x;
    player.notice.textContent = missing > 0.02 * posing.length ? `Out of reach by ${missing.toPrecision(2)} m.` : "";
    player.write();
    if (player.live) player.live.movedAll(); else player.pose();
  }

  shift() {
    const { held, stage } = this, axes = [0, 1, 2].map((k) => new THREE.Vector3().setFromMatrixColumn(held.parent, k));
    const way = held.target.clone().sub(held.start), moved = axes.map((axis) => way.dot(axis));  // in the parent's axes
    const grain = Math.pow(10, Math.floor(Math.log10(stage.reach / 40)));
    held.shift = moved.map((x) => Number((Math.round(x / grain) * grain).toPrecision(9)));
    const d = axes.reduce((sum, axis, k) => sum.addScaledVector(axis, held.shift[k]), new THREE.Vector3());
    const by = new THREE.Matrix4().makeTranslation(d.x, d.y, d.z);
    for (const i of held.bodies) stage.matrices[i].multiplyMatrices(by, held.poses[i]);
    this.player.notice.textContent = `moved by ${held.shift.map((x) => x.toString().replace("-", "−")).join(", ")} m`;
    stage.update();
  }
}
