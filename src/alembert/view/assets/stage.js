"use strict";
// The 3-D picture of one scene. Shapes of a kind are one instanced draw, however many bodies there are.

const UNIT = {
  box: () => new THREE.BoxGeometry(1, 1, 1),
  sphere: (fine) => (fine ? new THREE.SphereGeometry(1, 28, 18) : new THREE.SphereGeometry(1, 16, 10)),
  cylinder: (fine) => new THREE.CylinderGeometry(1, 1, 1, fine ? 32 : 18).rotateX(Math.PI / 2),
};
const TAIL = 80, Z_AXIS = new THREE.Vector3(0, 0, 1);

class Stage {
  constructor(data, host, rows) {
    this.data = data;
    this.host = host;
    this.dirty = true;
    this.on = { trails: true, forces: true, ground: true };
    this.renderer = new THREE.WebGLRenderer({ antialias: true, alpha: true });
    this.renderer.toneMapping = THREE.NeutralToneMapping;
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.canvas = this.renderer.domElement;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `3-D picture of ${data.name}; drag to turn, wheel to zoom, right drag to move`);
    host.prepend(this.canvas);
    this.scene = new THREE.Scene();
    this.root = new THREE.Group();  // the model's up becomes y
    this.scene.add(this.root);
    this.camera = new THREE.PerspectiveCamera(38, 1, 0.01, 1000);
    this.controls = new THREE.OrbitControls(this.camera, this.canvas);
    this.controls.addEventListener("change", () => { this.dirty = true; });
    this.fill(rows);
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    this.canvas.addEventListener("dblclick", () => this.home());
    this.canvas.addEventListener("keydown", (e) => this.key(e));
    this.tip = element("span", { className: "tip", hidden: true });
    this.labelLayer = element("div", { className: "labels" });
    host.append(this.labelLayer, this.tip);
    new ResizeObserver(() => this.resize()).observe(host);
    this.theme();
    this.home();
  }

  fill(rows) {
    const data = this.data;
    this.count = data.bodies.length;
    this.matrices = Array.from({ length: this.count + 1 }, () => new THREE.Matrix4());  // the last is the world
    this.root.quaternion.setFromUnitVectors(new THREE.Vector3(...data.up), new THREE.Vector3(0, 1, 0));
    this.root.updateMatrixWorld(true);
    if (rows) this.place(rows);
    this.measure();
    this.light();
    this.shapes();
    this.marks();
    if (data.motion) { this.trails(); this.arrows(); }
  }

  replace(data, rows) {
    // other data in the same picture, seen from where one looked; from further away where it has grown out of it
    const before = this.size, on = this.on;
    this.root.traverse((object) => { object.geometry?.dispose(); object.material?.dispose(); });
    this.root.clear();
    this.scene.remove(this.sky, this.sun, this.sun.target, this.fillLight, this.ground);
    this.grid = undefined;
    this.data = data;
    this.fill(rows);
    this.on = on;
    for (const [name, group] of Object.entries(this.layers)) group.visible = !!on[name];
    this.ground.visible = !!on.ground;
    this.makeLabels();
    this.theme();
    if (this.size > 1.5 * before || this.size < before / 3) this.home(); else this.update();
  }

  // --- where bodies are ------------------------------------------------------------------------------------

  placeBodies(t) {
    const m = this.data.motion;
    if (!m) return;
    const f = m.count > 1 ? Math.min(Math.max((t - m.start) / (m.end - m.start), 0), 1) * (m.count - 1) : 0;
    const a = Math.min(Math.floor(f), m.count - 1), b = Math.min(a + 1, m.count - 1), s = f - a;
    this.frame = { a, b, s };
    for (let i = 0; i < this.count; i++) this.poseAt(i, a, b, s, this.matrices[i]);
  }

  poseAt(i, a, b, s, into) {
    const m = this.data.motion, n = this.count;
    const P = m.positions, Q = m.quaternions, pa = 3 * (a * n + i), pb = 3 * (b * n + i), qa = 4 * (a * n + i), qb = 4 * (b * n + i);
    Stage.p.set(
      m.offset[0] + m.scale[0] * (P[pa] + s * (P[pb] - P[pa])),
      m.offset[1] + m.scale[1] * (P[pa + 1] + s * (P[pb + 1] - P[pa + 1])),
      m.offset[2] + m.scale[2] * (P[pa + 2] + s * (P[pb + 2] - P[pa + 2])),
    );
    Stage.q.set(Q[qa + 1], Q[qa + 2], Q[qa + 3], Q[qa]).normalize();
    if (s > 0) Stage.q.slerp(Stage.r.set(Q[qb + 1], Q[qb + 2], Q[qb + 3], Q[qb]).normalize(), s);
    into.compose(Stage.p, Stage.q, Stage.one);
  }

  setPoses(rows) { this.place(rows); this.update(); }

  place(rows) {  // 12 numbers per body: rotation by rows, origin
    for (let i = 0; i < this.count; i++) {
      const r = rows, k = 12 * i;
      this.matrices[i].set(r[k], r[k + 1], r[k + 2], r[k + 9], r[k + 3], r[k + 4], r[k + 5], r[k + 10], r[k + 6], r[k + 7], r[k + 8], r[k + 11], 0, 0, 0, 1);
    }
  }

  body(i) { return this.matrices[i < 0 ? this.count : i]; }

  measure() {
    // the box around everything over the whole motion, in the root's axes
    const m = this.data.motion, samples = m ? Math.min(m.count, 60) : 1;
    const low = new THREE.Vector3(Infinity, Infinity, Infinity), high = low.clone().negate(), v = new THREE.Vector3();
    const M = new THREE.Matrix4(), moving = this.data.parts.filter((part) => part.body >= 0);
    const box = (parts) => {
      const ends = [new THREE.Vector3(Infinity, Infinity, Infinity), new THREE.Vector3(-Infinity, -Infinity, -Infinity)];
      for (const { body, local, extent: e } of parts) {
        M.multiplyMatrices(this.root.matrixWorld, this.body(body)).multiply(local);
        for (let c = 0; c < 8; c++) {
          v.set(c & 1 ? e[0] : e[3], c & 2 ? e[1] : e[4], c & 4 ? e[2] : e[5]).applyMatrix4(M);
          ends[0].min(v); ends[1].max(v);
        }
      }
      return ends;
    };
    const across = (parts) => { const [a, b] = box(parts); return a.distanceTo(b); };
    if (m) this.placeBodies(m.start);
    // what stands in the world counts unless it is much larger than what moves: a floor
    const own = moving.length ? across(moving) : Infinity;
    const counted = this.data.parts.filter((part) => part.body >= 0 || across([part]) < 4 * own);
    this.reach = 0;
    for (let k = 0; k < samples; k++) {
      if (m) this.placeBodies(m.start + (m.end - m.start) * (samples > 1 ? k / (samples - 1) : 0));
      const here = box(counted);
      if (here[0].x <= here[1].x) {
        low.min(here[0]); high.max(here[1]);
        this.reach = Math.max(this.reach, here[0].distanceTo(here[1]));
      }
    }
    if (low.x > high.x) { low.set(-1, -1, -1); high.set(1, 1, 1); this.reach = 2; }
    this.low = low; this.high = high;
    this.center = low.clone().add(high).multiplyScalar(0.5);
    this.size = Math.max(low.distanceTo(high), 1e-3);
    if (this.data.live && this.count) {  // it is going to swing to all sides of where its first body is
      const first = v.setFromMatrixPosition(M.multiplyMatrices(this.root.matrixWorld, this.body(0)));
      const far = Math.max(first.distanceTo(low), first.distanceTo(high));
      if (2 * far > this.size) { this.size = 2 * far; this.center.copy(first); }
    }
    this.follows = this.size > 3 * this.reach;  // flies far: the camera goes along
    this.on.follow = this.follows;
    this.unit = Math.min(this.data.length, 0.4 * this.reach);
    this.span = Math.min(Math.max(this.unit, 0.2 * this.reach), 2 * this.unit);  // of arrows
    this.placeBodies(m ? m.start : 0);
  }

  light() {
    this.sky = new THREE.HemisphereLight(0xffffff, 0x8894a5, 2.4);
    this.sun = new THREE.DirectionalLight(0xffffff, 2.6);
    const d = this.follows ? this.reach : this.size;
    this.sun.position.set(0.45 * d, 1.1 * d, 0.75 * d);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    const c = this.sun.shadow.camera;
    c.left = c.bottom = -0.9 * d; c.right = c.top = 0.9 * d; c.near = 0.05 * d; c.far = 4 * d;
    this.sun.shadow.bias = -0.0005; this.sun.shadow.normalBias = 0.004 * d;
    this.sun.shadow.radius = 3;
    this.fillLight = new THREE.DirectionalLight(0xdfe8ff, 0.9);
    this.fillLight.position.set(-d, 0.4 * d, -0.6 * d);
    this.scene.add(this.sky, this.sun, this.sun.target, this.fillLight);
    this.ground = new THREE.Group();
    this.scene.add(this.ground);
    if (this.data.gravity > 0) {
      const y = this.low.y - 0.002 * this.size;
      const plane = new THREE.Mesh(new THREE.PlaneGeometry(12 * this.size, 12 * this.size).rotateX(-Math.PI / 2), new THREE.ShadowMaterial({ opacity: 0.22 }));
      plane.position.set(this.center.x, y, this.center.z);
      plane.receiveShadow = true;
      const cell = Math.pow(10, Math.floor(Math.log10(this.size / 2))), cells = Math.min(2 * Math.ceil((1.6 * this.size) / cell), 200);
      this.grid = new THREE.GridHelper(cells * cell, cells, 0xffffff, 0xffffff);
      this.grid.material.transparent = true; this.grid.material.depthWrite = false;
      this.grid.position.set(Math.round(this.center.x / cell) * cell, y, Math.round(this.center.z / cell) * cell);
      this.ground.add(plane, this.grid);
    }
  }

  // --- shapes ----------------------------------------------------------------------------------------------

  shapes() {
    this.geometries = {};
    const groups = new Map();
    this.data.parts.forEach((part) => {
      const key = `${part.kind}:${part.mesh}:${part.color[3] < 0.99 ? part.color[3].toFixed(2) : 1}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(part);
    });
    this.groups = [];
    for (const parts of groups.values()) {
      const opacity = parts[0].color[3] < 0.99 ? parts[0].color[3] : 1;
      const material = new THREE.MeshStandardMaterial({ roughness: 0.55, metalness: 0.08, transparent: opacity < 1, opacity, depthWrite: opacity > 0.5, side: parts[0].kind === "mesh" ? THREE.DoubleSide : 0 });
      const mesh = new THREE.InstancedMesh(this.geometry(parts[0]), material, parts.length);
      mesh.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
      mesh.castShadow = opacity > 0.3; mesh.receiveShadow = opacity === 1; mesh.frustumCulled = false;
      parts.forEach((part, k) => mesh.setColorAt(k, new THREE.Color().setRGB(...part.color.slice(0, 3), "srgb")));
      mesh.userData.parts = parts;
      this.root.add(mesh);
      this.groups.push({ mesh, parts });
    }
  }

  geometry(part) {
    const key = part.kind === "mesh" ? `mesh${part.mesh}` : part.kind;
    if (!this.geometries[key]) {
      if (part.kind === "mesh") {
        const source = this.data.meshes[part.mesh], g = new THREE.BufferGeometry();
        g.setAttribute("position", new THREE.BufferAttribute(source.vertices, 3));
        g.setIndex(new THREE.BufferAttribute(source.faces, 1));
        const flat = g.toNonIndexed();  // corners stay sharp: the files' own normals are not kept
        flat.computeVertexNormals();
        this.geometries[key] = flat;
      } else this.geometries[key] = UNIT[part.kind](this.data.parts.length < 80);
    }
    return this.geometries[key];
  }

  placeShapes(groups, body) {
    for (const { mesh, parts } of groups) {
      for (let k = 0; k < parts.length; k++) mesh.setMatrixAt(k, Stage.m.multiplyMatrices(body(parts[k].body), parts[k].local));
      mesh.instanceMatrix.needsUpdate = true;
      mesh.boundingSphere = null;
    }
  }

  ghosts() {
    // copies at evenly spaced moments, faint
    const m = this.data.motion, copies = Math.min(9, m.count);
    this.ghostGroup = new THREE.Group();
    for (const { parts } of this.groups) {
      const material = new THREE.MeshStandardMaterial({ transparent: true, opacity: 0.2, depthWrite: false, roughness: 0.8 });
      const mesh = new THREE.InstancedMesh(this.geometry(parts[0]), material, parts.length * copies);
      mesh.frustumCulled = false;
      let n = 0;
      const M = new THREE.Matrix4();
      for (let k = 0; k < copies; k++) {
        const frame = copies > 1 ? Math.round((k * (m.count - 1)) / (copies - 1)) : 0;
        for (const part of parts) {
          if (part.body < 0) M.identity(); else this.poseAt(part.body, frame, frame, 0, M);
          mesh.setColorAt(n, new THREE.Color().setRGB(...part.color.slice(0, 3), "srgb"));
          mesh.setMatrixAt(n++, Stage.m.multiplyMatrices(M, part.local));
        }
      }
      this.ghostGroup.add(mesh);
    }
    this.root.add(this.ghostGroup);
  }

  // --- marks: frames, masses, loops, sensors ---------------------------------------------------------------

  marks() {
    const d = this.data, L = this.unit, layers = {};
    const instanced = (name, geometry, material, items) => {
      const mesh = new THREE.InstancedMesh(geometry, material, Math.max(items.length, 1));
      mesh.count = items.length; mesh.frustumCulled = false; mesh.renderOrder = 2;
      items.forEach((item, k) => { if (item.color !== undefined) mesh.setColorAt(k, new THREE.Color(item.color)); });
      (layers[name] ||= new THREE.Group()).add(mesh);
      this.marked.push({ mesh, parts: items, layer: name });
    };
    this.marked = [];
    const axes = [];
    const triad = (mark, size) => [[0xd43a3a, 0, Math.PI / 2], [0x2f9e44, -Math.PI / 2, 0], [0x2f6fde, 0, 0]].forEach(([color, x, y]) => {
      const local = mark.local.clone().multiply(new THREE.Matrix4().makeRotationFromEuler(new THREE.Euler(x, y, 0)));
      local.multiply(new THREE.Matrix4().makeScale(0.03 * size, 0.03 * size, size)).multiply(new THREE.Matrix4().makeTranslation(0, 0, 0.5));
      axes.push({ body: mark.body, local, color });
    });
    triad({ body: -1, local: new THREE.Matrix4() }, 0.6 * L);
    for (let i = 0; i < this.count; i++) triad({ body: i, local: new THREE.Matrix4() }, 0.3 * L);
    d.frames.forEach((f) => triad(f, 0.42 * L));
    instanced("frames", UNIT.cylinder(), new THREE.MeshBasicMaterial({ depthTest: false, transparent: true }), axes);
    const total = d.masses.reduce((s, m) => s + m.mass, 0) || 1;
    const scaled = (local, s) => local.clone().multiply(new THREE.Matrix4().makeScale(...s));
    instanced("com", UNIT.sphere(), new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.9 }),
      d.masses.map((m) => ({ body: m.body, color: 0xb45309, local: scaled(m.local, Array(3).fill(0.035 * L + 0.06 * L * Math.cbrt(m.mass / total))) })));
    this.whole = new THREE.Mesh(UNIT.sphere(), new THREE.MeshBasicMaterial({ color: 0xdc2626, depthTest: false, transparent: true, opacity: 0.95 }));
    this.whole.scale.setScalar(0.11 * L); this.whole.renderOrder = 3;
    if (d.masses.length) layers.com.add(this.whole);
    instanced("inertia", UNIT.sphere(), new THREE.MeshStandardMaterial({ color: 0x7c3aed, transparent: true, opacity: 0.28, depthWrite: false }),
      d.masses.map((m) => ({ body: m.body, local: scaled(m.local, m.radii) })));
    instanced("sensors", new THREE.OctahedronGeometry(1), new THREE.MeshBasicMaterial({ color: 0x0891b2, depthTest: false, transparent: true, opacity: 0.9 }),
      d.sensors.map((s) => ({ body: s.body, local: scaled(s.local, Array(3).fill(0.07 * L)) })));
    instanced("loops", UNIT.sphere(), new THREE.MeshBasicMaterial({ depthTest: false, transparent: true, opacity: 0.9 }),
      d.loops.flatMap(([a, b]) => [[a, 0x16a34a], [b, 0xdc2626]].map(([end, color], k) => ({ body: end.body, color, local: scaled(end.local, Array(3).fill((k ? 0.045 : 0.065) * L)) }))));
    this.gaps = new THREE.LineSegments(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: 0xdc2626, depthTest: false, transparent: true }));
    this.gaps.geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(6 * Math.max(d.loops.length, 1)), 3));
    this.gaps.frustumCulled = false; this.gaps.renderOrder = 3;
    if (d.loops.length) layers.loops.add(this.gaps);
    this.layers = layers;
    for (const group of Object.values(layers)) { group.visible = false; this.root.add(group); }
  }

  placeMarks() {
    this.placeShapes(this.marked.filter((m) => this.layers[m.layer].visible), (i) => this.body(i));
    const d = this.data, v = Stage.p;
    if (this.layers.com?.visible) {
      const sum = new THREE.Vector3();
      let mass = 0;
      for (const m of d.masses) { sum.addScaledVector(v.setFromMatrixPosition(m.local).applyMatrix4(this.body(m.body)), m.mass); mass += m.mass; }
      if (mass) this.whole.position.copy(sum.multiplyScalar(1 / mass));
    }
    if (this.layers.loops?.visible && d.loops.length) {
      const out = this.gaps.geometry.attributes.position;
      d.loops.forEach((ends, k) => ends.forEach((end, e) => { v.setFromMatrixPosition(end.local).applyMatrix4(this.body(end.body)); out.setXYZ(2 * k + e, v.x, v.y, v.z); }));
      out.needsUpdate = true;
    }
  }

  // --- trails ----------------------------------------------------------------------------------------------

  trails() {
    // between frames along Catmull and Rom's cubic, which has no corners
    const m = this.data.motion, p = [0, 1, 2, 3].map(() => new THREE.Vector3());
    const along = this.along = (points, f, into = new THREE.Vector3()) => {
      const i = Math.min(Math.floor(f), m.count - 1), s = f - i;
      p.forEach((x, k) => x.fromArray(points, 3 * Math.min(Math.max(i + k - 1, 0), m.count - 1)));
      into.copy(p[0]).multiplyScalar(0.5 * s * (-1 + s * (2 - s)));
      return into.addScaledVector(p[1], 1 + 0.5 * s * s * (-5 + 3 * s)).addScaledVector(p[2], 0.5 * s * (1 + s * (4 - 3 * s))).addScaledVector(p[3], 0.5 * s * s * (s - 1));
    };
    const colors = [0xd9480f, 0x1971c2, 0x2b8a3e, 0x862e9c, 0x0b7285, 0xa61e4d, 0x5f3dc4, 0x5c940d];
    this.trailGroup = new THREE.Group();
    this.paths = this.data.trails.map((trail, k) => {
      const points = new Float32Array(3 * m.count), M = new THREE.Matrix4(), v = new THREE.Vector3();
      for (let f = 0; f < m.count; f++) {
        this.poseAt(trail.body, f, f, 0, M);
        v.set(...trail.point).applyMatrix4(M).toArray(points, 3 * f);
      }
      const geometry = new THREE.BufferGeometry(), fine = m.count < 10000 ? 4 : 1, curve = new Float32Array(3 * (fine * (m.count - 1) + 1));
      for (let k = 0; k < curve.length / 3; k++) along(points, k / fine).toArray(curve, 3 * k);
      geometry.setAttribute("position", new THREE.BufferAttribute(curve, 3));
      const line = new THREE.Line(geometry, new THREE.LineBasicMaterial({ color: colors[k % colors.length], transparent: true, opacity: 0.4 }));
      line.frustumCulled = false;
      const tail = new THREE.InstancedMesh(new THREE.CylinderGeometry(1, 1, 1, 8, 1, true).rotateX(Math.PI / 2).translate(0, 0, 0.5), new THREE.MeshBasicMaterial({ color: colors[k % colors.length], transparent: true, opacity: 0.75, depthWrite: false }), TAIL);
      tail.frustumCulled = false;
      this.trailGroup.add(line, tail);
      return { points, tail };
    });
    this.root.add(this.trailGroup);
  }

  placeTrails() {
    // a tail that gets thinner backwards in time
    const m = this.data.motion, { a, s } = this.frame, rate = m.count > 1 ? (m.count - 1) / (m.end - m.start) : 1;
    const frames = Math.min(Math.max(0.3 * (m.end - m.start), 0.4), 1.2) * rate, q = Stage.q, at = Stage.p, along = this.along, d = new THREE.Vector3(), size = new THREE.Vector3();
    const end = new THREE.Vector3();
    for (const { points, tail } of this.paths) {
      along(points, a + s, at);
      for (let k = 0; k < TAIL; k++) {
        along(points, Math.max(a + s - (frames * (k + 1)) / TAIL, 0), end);
        const length = d.subVectors(end, at).length(), radius = 0.022 * this.unit * (1 - k / TAIL);
        if (length > 1e-9) q.setFromUnitVectors(Z_AXIS, d.multiplyScalar(1 / length));
        tail.setMatrixAt(k, Stage.m.compose(at, q, size.set(radius, radius, Math.max(length, 1e-9))));
        at.copy(end);
      }
      tail.instanceMatrix.needsUpdate = true;
    }
  }

  // --- forces and torques ----------------------------------------------------------------------------------

  arrows() {
    const list = this.data.arrows, torques = list.filter((a) => a.kind === "torque"), forces = list.filter((a) => a.kind === "force");
    this.arrowGroup = new THREE.Group();
    const make = (geometry, color, count) => {
      const mesh = new THREE.InstancedMesh(geometry, new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true, opacity: 0.85 }), Math.max(count, 1));
      mesh.count = count; mesh.frustumCulled = false; mesh.renderOrder = 4;  // seen through bodies: motors are inside
      this.arrowGroup.add(mesh);
      return mesh;
    };
    const arc = torques.length < 12 ? new THREE.TorusGeometry(1, 0.055, 8, 36, 1.5 * Math.PI) : new THREE.TorusGeometry(1, 0.055, 5, 20, 1.5 * Math.PI);
    const tip = new THREE.ConeGeometry(0.2, 0.55, 20).translate(0, 0.15, 0).applyMatrix4(new THREE.Matrix4().makeRotationZ(1.5 * Math.PI).setPosition(0, -1, 0));
    this.arrowMeshes = {
      torques, forces, arc: make(arc, 0xd946a6, torques.length), tip: make(tip, 0xd946a6, torques.length),
      shaft: make(UNIT.cylinder().translate(0, 0, 0.5), 0x0ca678, forces.length), head: make(new THREE.ConeGeometry(1, 1, 20).rotateX(Math.PI / 2).translate(0, 0, 0.5), 0x0ca678, forces.length),
    };
    const largest = (of) => Math.max(...of.map((a) => a.largest), 1e-300);
    this.scaleOf = { torque: 1 / (torques.length ? largest(torques) : 1), force: 1 / (forces.length ? largest(forces) : 1) };
    this.root.add(this.arrowGroup);
  }

  placeArrows() {
    const { a, b, s } = this.frame, A = this.arrowMeshes, L = this.span, v = new THREE.Vector3(), d = new THREE.Vector3(), q = new THREE.Quaternion(), p = new THREE.Vector3(), M = new THREE.Matrix4();
    const vector = (arrow) => {
      for (let k = 0; k < 3; k++) v.setComponent(k, arrow.scale * (arrow.data[3 * a + k] + s * (arrow.data[3 * b + k] - arrow.data[3 * a + k])));
      const M = this.body(arrow.body);
      p.set(...arrow.point).applyMatrix4(M);
      v.applyQuaternion(q.setFromRotationMatrix(M));
      const size = v.length() * this.scaleOf[arrow.kind];
      q.setFromUnitVectors(Z_AXIS, d.copy(v).normalize());
      return size;
    };
    A.torques.forEach((arrow, k) => {
      const size = vector(arrow), r = size < 0.01 ? 0 : L * (0.1 + 0.3 * Math.sqrt(size));
      M.compose(p, q, v.setScalar(r));
      A.arc.setMatrixAt(k, M); A.tip.setMatrixAt(k, M);
    });
    A.forces.forEach((arrow, k) => {
      const size = vector(arrow), length = size < 0.01 ? 0 : L * 1.2 * Math.sqrt(size), thick = length ? 0.025 * L : 0, head = Math.min(0.18 * L, 0.5 * length);
      A.shaft.setMatrixAt(k, M.compose(p, q, v.set(thick, thick, Math.max(length - head, 0))));
      d.multiplyScalar(Math.max(length - head, 0)).add(p);
      A.head.setMatrixAt(k, M.compose(d, q, v.set(2.6 * thick, 2.6 * thick, head)));
    });
    for (const mesh of [A.arc, A.tip, A.shaft, A.head]) mesh.instanceMatrix.needsUpdate = true;
  }

  // --- the picture -----------------------------------------------------------------------------------------

  show(t) { this.placeBodies(t); this.update(); }

  update() {
    this.placeShapes(this.groups, (i) => this.body(i));
    this.placeMarks();
    if (this.data.motion) {
      this.trailGroup.visible = !!this.on.trails;
      if (this.on.trails) this.placeTrails();
      this.arrowGroup.visible = !!this.on.forces;
      if (this.on.forces) this.placeArrows();
    }
    if (this.on.follow) {
      const c = this.middle();
      const shift = c.clone().sub(this.followed || c);
      this.camera.position.add(shift); this.controls.target.add(shift);
      this.sun.position.add(shift); this.sun.target.position.add(shift);
      this.followed = c;
    }
    this.dirty = true;
  }

  middle() {
    const sum = new THREE.Vector3(), v = new THREE.Vector3();
    let mass = 0;
    for (const m of this.data.masses) { sum.addScaledVector(v.setFromMatrixPosition(m.local).applyMatrix4(this.body(m.body)), m.mass); mass += m.mass; }
    return (mass ? sum.multiplyScalar(1 / mass) : this.center.clone().applyMatrix4(this.root.matrixWorld.clone().invert())).applyMatrix4(this.root.matrixWorld);
  }

  toggle(name, value) {
    this.on[name] = value;
    if (this.layers[name]) this.layers[name].visible = value;
    if (name === "ghosts" && this.data.motion) { if (value && !this.ghostGroup) this.ghosts(); if (this.ghostGroup) this.ghostGroup.visible = value; }
    if (name === "ground") this.ground.visible = value;
    if (name === "follow") this.followed = undefined;
    if (name === "names") this.makeLabels();
    this.update();
  }

  makeLabels() {
    this.labelLayer.replaceChildren();
    this.labels = [];
    if (!this.on.names) return;
    const add = (text, body, local) => { const span = element("span", { textContent: text }); this.labelLayer.append(span); this.labels.push({ span, body, local }); };
    const d = this.data, none = new THREE.Matrix4();
    d.bodies.slice(0, 120).forEach((name, i) => d.bodies.indexOf(name) === i && add(name, i, d.masses.find((m) => m.body === i)?.local || none));
    d.frames.slice(0, 60).forEach((f) => add(f.name, f.body, f.local));
    d.sensors.slice(0, 60).forEach((f) => add(f.name, f.body, f.local));
  }

  placeLabels() {
    const v = new THREE.Vector3(), w = this.host.clientWidth, h = this.host.clientHeight, taken = [];
    for (const { span, body, local } of this.labels || []) {
      v.setFromMatrixPosition(local).applyMatrix4(this.body(body)).applyMatrix4(this.root.matrixWorld).project(this.camera);
      const x = (v.x + 1) * 0.5 * w + 6;
      let y = (1 - v.y) * 0.5 * h - 8;
      while (taken.some((p) => Math.abs(p[0] - x) < 70 && Math.abs(p[1] - y) < 15) && taken.length < 90) y += 15;
      taken.push([x, y]);
      span.style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
      span.style.visibility = Math.abs(v.z) < 1 ? "visible" : "hidden";
    }
  }

  point(event) {
    if (event.buttons || performance.now() - (this.pointed || 0) < 40) { this.tip.hidden = true; return; }
    this.pointed = performance.now();
    const box = this.canvas.getBoundingClientRect(), found = this.hit(event);
    this.tip.hidden = !found;
    this.canvas.style.cursor = found && found.body >= 0 && this.grabs ? "grab" : "";
    if (!found) return;
    this.tip.textContent = found.body < 0 ? "world" : this.data.bodies[found.body];
    this.tip.style.transform = `translate(${event.clientX - box.left + 12}px, ${event.clientY - box.top + 10}px)`;
  }

  ray(event) {
    const box = this.canvas.getBoundingClientRect(), ray = new THREE.Raycaster();
    ray.setFromCamera(new THREE.Vector2(((event.clientX - box.left) / box.width) * 2 - 1, 1 - ((event.clientY - box.top) / box.height) * 2), this.camera);
    return ray;
  }

  hit(event) {
    // the body under the pointer, and where it was hit
    const meshes = this.groups.filter((g) => g.mesh.geometry.attributes.position.count * g.parts.length < 3e5).map((g) => g.mesh);
    const found = this.ray(event).intersectObjects(meshes, false)[0];
    return found && { body: found.object.userData.parts[found.instanceId].body, point: found.point };
  }

  key(event) {
    const turn = { ArrowLeft: [-0.08, 0], ArrowRight: [0.08, 0], ArrowUp: [0, -0.06], ArrowDown: [0, 0.06] }[event.key];
    const zoom = { "+": 0.9, "=": 0.9, "-": 1.11 }[event.key];
    if (!turn && !zoom) return;
    event.preventDefault(); event.stopPropagation();
    const d = this.camera.position.clone().sub(this.controls.target);
    let r = d.length(), azimuth = Math.atan2(d.x, d.z), polar = Math.acos(Math.min(Math.max(d.y / r, -1), 1));
    if (turn) { azimuth += turn[0]; polar = Math.min(Math.max(polar + turn[1], 0.05), Math.PI - 0.05); } else r *= zoom;
    d.setFromSphericalCoords(r, polar, azimuth);
    this.camera.position.copy(this.controls.target).add(d);
    this.controls.update();
    this.dirty = true;
  }

  home() {
    // look at the broad side, a little from above
    const extent = this.high.clone().sub(this.low), wide = extent.x >= extent.z;
    const flat = Math.min(extent.x, extent.z) < 0.25 * Math.max(extent.x, extent.z, extent.y);
    const azimuth = (wide ? 0 : Math.PI / 2) + (flat ? 0.3 : 0.55), elevation = flat ? 0.16 : 0.34;
    const radius = 0.5 * (this.follows ? this.reach : this.size);
    const aspect = Math.max(this.host.clientWidth, 1) / Math.max(this.host.clientHeight, 1);
    const half = Math.min(Math.tan((this.camera.fov * Math.PI) / 360), Math.tan((this.camera.fov * Math.PI) / 360) * aspect);
    const distance = (1.02 * radius) / Math.sin(Math.atan(half));
    const target = this.follows ? this.middle() : this.center.clone();
    this.followed = undefined;
    this.controls.target.copy(target);
    this.camera.position.set(Math.sin(azimuth) * Math.cos(elevation), Math.sin(elevation), Math.cos(azimuth) * Math.cos(elevation)).multiplyScalar(distance).add(target);
    this.camera.near = distance / 200; this.camera.far = 60 * Math.max(distance, this.size);
    this.camera.updateProjectionMatrix();
    this.controls.update();
    this.update();
  }

  theme() {
    const dark = document.documentElement.dataset.theme === "dark";
    this.sky.groundColor.set(dark ? 0x3a4656 : 0x9aa5b5);
    this.sky.intensity = dark ? 2.0 : 2.4;
    if (this.grid) { this.grid.material.color.set(dark ? 0x3d4a5a : 0xaab4c0); this.grid.material.opacity = dark ? 0.65 : 0.6; }
    this.dirty = true;
  }

  resize() {
    const w = this.host.clientWidth, h = this.host.clientHeight;
    if (!w || !h) return;
    this.renderer.setPixelRatio((this.simple ? 0.7 : 1) * Math.min(window.devicePixelRatio || 1, 2));
    this.renderer.setSize(w, h, false);
    const first = !this.sized;
    this.sized = true;
    this.camera.aspect = w / h;
    // the middle of what the notes leave free
    const notes = this.host.querySelector(".notes[open]"), aside = notes ? Math.min(0.5 * notes.offsetWidth, 0.16 * w) : 0;
    this.camera.setViewOffset(w, h, -aside, 0, w, h);
    if (first) this.home();
    this.dirty = true;
  }

  simplify() { this.simple = true; this.sun.castShadow = false; this.resize(); }

  render() {
    if (!this.dirty || !this.sized) return;
    this.dirty = false;
    this.renderer.render(this.scene, this.camera);
    if (this.on.names) this.placeLabels();
  }
}
Stage.p = new THREE.Vector3(); Stage.q = new THREE.Quaternion(); Stage.r = new THREE.Quaternion();
Stage.m = new THREE.Matrix4(); Stage.one = new THREE.Vector3(1, 1, 1);
