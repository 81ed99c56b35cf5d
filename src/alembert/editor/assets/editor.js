"use strict";
// The editor of a model: tree on the left, picture in the middle, form and joints on the right. The server has the model; every
// action is answered with the whole new state, which is drawn.

class ModelEditor {
  constructor(forms, state) {
    this.forms = forms;
    this.selected = ["", ""];
    this.panel = "";
    this.layout();
    this.show(state);
    this.select(...this.firstPart());
    let before = performance.now();
    const frame = (now) => {
      const seconds = Math.min(Math.max((now - before) / 1000, 0), 0.25);
      before = now;
      this.player?.advance(seconds);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  // --- the server --------------------------------------------------------------------------------------------

  act(action, place) {
    // one after the other: an answer is the state that the next action is about
    const sent = async () => {
      let answer;
      try {
        const response = await fetch("act", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ version: this.state.version, ...action }) });
        answer = await response.json();
      } catch (error) {
        this.say("The editor's program has ended, so nothing can be changed or saved. Start alembert build again.", true);
        return {};
      }
      this.refused = answer.error && place ? { place, text: answer.error } : null;
      if (answer.added && answer.added[0] !== "joints") this.selected = answer.added[0] in this.forms.sections ? answer.added : ["", ""];  // parameters are the model's
      this.show(answer);
      if (answer.error && !place) this.say(answer.error, true);
      else if (answer.removed?.length) this.say(`Removed with it: ${answer.removed.join(", ")}.`);
      else if (answer.wrote) this.say(`Saved ${answer.wrote}${answer.problems.length ? ", with what is wrong in it" : ""}.`);
      else if (!answer.error) this.say("");
      return answer;
    };
    this.queue = (this.queue || Promise.resolve()).then(sent);
    return this.queue;
  }

  say(text, bad) {
    this.status.textContent = text;
    this.status.classList.toggle("bad", !!bad);
  }

  // --- the page ----------------------------------------------------------------------------------------------

  layout() {
    const button = (text, title, onclick) => element("button", { type: "button", textContent: text, title, onclick });
    this.title = document.querySelector("h1");
    this.undo = button("Undo", "Ctrl+Z", () => this.act({ do: "undo" }));
    this.redo = button("Redo", "Ctrl+Shift+Z", () => this.act({ do: "redo" }));
    this.saver = button("Save", "Ctrl+S", () => this.save());
    this.modes = { pull: button("Pull", "drag a body: the joints follow", () => this.use("pull")), place: button("Place", "drag a body to where it belongs on its parent", () => this.use("place")) };
    this.panels = { python: button("Python", "the program that makes this model", () => this.open("python")), text: button("File", "the text of the file", () => this.open("text")) };
    this.status = element("p", { className: "status", role: "status" });
    const theme = button("◐", "dark or light", () => {
      const html = document.documentElement;
      html.dataset.theme = html.dataset.theme === "dark" ? "light" : "dark";
      this.player?.theme();
    });
    const group = (label, ...content) => element("div", { className: "tools", role: "group", ariaLabel: label }, ...content);
    document.querySelector("header").append(this.status, group("history", this.undo, this.redo), group("mouse", ...Object.values(this.modes)), group("panels", ...Object.values(this.panels)), this.saver, theme);
    this.tree = element("nav", { ariaLabel: "parts of the model" });
    this.host = element("section", { className: "player" });
    this.form = element("div", { className: "form", role: "form", ariaLabel: "selected part" });
    this.code = element("section", { className: "code", hidden: true, ariaLabel: "text" });
    this.stale = element("p", { className: "stale", hidden: true, textContent: "The picture shows the last model without errors." });
    document.querySelector("main").replaceChildren(this.tree, element("div", { className: "work" }, this.host, this.stale), this.code);
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("beforeunload", (event) => { if (!this.state.saved && this.state.undo) event.preventDefault(); });
  }

  key(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const typing = event.target.dataset?.was !== undefined && event.target.value !== event.target.dataset.was;
    const action = { s: () => this.save(), z: () => !typing && (event.shiftKey ? this.redo : this.undo).click(), y: () => !typing && this.redo.click() }[event.key.toLowerCase()];
    if (!action || (typing && event.key.toLowerCase() !== "s")) return;
    event.preventDefault();
    document.activeElement?.blur();  // what was typed last counts
    action();
  }

  async save(over) {
    await this.queue;
    let name = "";
    if (!this.state.file) {
      name = window.prompt("Name of the file", "model.toml");
      if (!name) return;
    }
    const answer = await this.act({ do: "save", name, over: !!over });
    if (answer.error?.endsWith("or write over it") && window.confirm(`${answer.error}?`)) await this.act({ do: "save", name, over: true });
  }

  use(mode) {
    const hand = this.player?.hand;
    this.mode = this.mode === mode ? "" : mode;
    hand?.use(this.mode);
    for (const [name, button] of Object.entries(this.modes)) button.ariaPressed = String(this.mode === name);
  }

  open(panel) {
    this.panel = this.panel === panel ? "" : panel;
    this.drawCode();
    const area = this.code.querySelector("textarea");
    if (!this.panel) return;
    area.setSelectionRange(0, 0);
    area.focus();
    area.scrollTop = 0;
  }

  // --- the state ---------------------------------------------------------------------------------------------

  show(state) {
    this.state = state;
    this.title.textContent = `${state.file || "new model"}${state.saved ? "" : " •"}`;
    this.title.title = state.saved ? "saved" : "not saved";
    document.title = `${state.file || "new model"} · Alembert`;
    for (const [button, what, name] of [[this.undo, state.undo, "Undo"], [this.redo, state.redo, "Redo"]]) {
      button.disabled = !what;
      button.title = what ? `${name}: ${what}` : "";
    }
    this.drawTree();
    this.drawForm();
    this.drawPicture();
    this.drawCode();
  }

  firstPart() {
    const bodies = Object.keys(this.state.data.bodies || {});
    return bodies.length ? ["bodies", bodies[0]] : ["", ""];
  }

  exists([section, name]) { return section === "" || (this.state.data[section] && name in this.state.data[section]); }

  select(section, name) {
    this.selected = [section, name];
    this.drawTree();
    this.drawForm();
  }

  joints() { return Object.entries(this.state.data.joints || {}).filter(([, j]) => j && typeof j === "object"); }

  mover(body) { return this.joints().find(([, joint]) => joint.child === body)?.[0]; }

  // --- the picture -------------------------------------------------------------------------------------------

  drawPicture() {
    const { scene } = this.state;
    this.stale.hidden = !this.state.problems.length || !scene;
    const key = scene && JSON.stringify(scene);
    if (!scene && !this.player && !this.form.isConnected) {  // a file that was opened with errors in it
      this.host.replaceChildren(element("div", { className: "stage" }, element("p", { className: "problem", textContent: "There will be a picture once the model has no errors." })), element("aside", {}, this.form));
    }
    if (!scene || key === this.drawn) return;
    this.drawn = key;
    const data = { ...decode(scene), given: true };
    if (!this.player) {
      this.host.replaceChildren();
      this.player = new Player(data, this.host);
      if (!this.host.querySelector("aside")) this.host.querySelector(".stage").after(element("aside", { ariaLabel: "joints" }));
      const aside = this.host.querySelector("aside");
      if (!aside.querySelector(".sliders")) aside.append(element("div", { className: "sliders" }));
      aside.prepend(this.form, element("h2", { textContent: "Try the joints" }));
      this.player.placing = (body) => this.placing(body);
      this.player.stage?.canvas.addEventListener("click", (event) => this.pick(event));
      this.player.stage?.canvas.addEventListener("pointerdown", (event) => { this.pressed = [event.clientX, event.clientY]; }, true);
      this.use("pull");
    } else this.player.replace(data);
    if (this.player.stage && !this.player.hand && data.posing) { this.player.hand = new Hand(this.player); this.player.hand.use(this.mode); }
    window.alembert = { current: this.player, editor: this };
  }

  pick(event) {
    // a click, not the end of a drag
    if (!this.pressed || Math.hypot(event.clientX - this.pressed[0], event.clientY - this.pressed[1]) > 4) return;
    const hit = this.player.stage.hit(event);
    if (hit && hit.body >= 0) this.select("bodies", this.player.data.bodies[hit.body]);
  }

  placing(index) {
    // what moves with a body, its parent's pose, and what is done when it is let go
    const bodies = this.player.data.bodies, body = bodies[index], joint = this.mover(body);
    if (!joint || this.state.problems.length) { this.say("Bodies can be placed once nothing is wrong with the model.", true); return null; }
    const moved = new Set([body]);
    for (let grown = true; grown;) {
      grown = false;
      for (const [, j] of this.joints()) if (moved.has(j.parent) && !moved.has(j.child)) { moved.add(j.child); grown = true; }
    }
    const parent = this.player.stage.body(bodies.indexOf(this.state.data.joints[joint].parent)).clone();
    this.select("bodies", body);
    return {
      parent, bodies: bodies.map((name, i) => (moved.has(name) ? i : -1)).filter((i) => i >= 0),
      done: (shift) => {
        this.player.notice.textContent = "";
        if (shift?.some((x) => x)) this.act({ do: "move", body, shift }).then((answer) => { if (answer.error) this.player.pose(); });
        else this.player.pose();
      },
    };
  }

  // --- the tree ----------------------------------------------------------------------------------------------

  drawTree() {
    const data = this.state.data, wrong = new Set(this.state.problems.map((p) => JSON.stringify(p.place.slice(0, 2))));
    const bad = (section, name) => wrong.has(JSON.stringify([section, name])) || (section === "bodies" && wrong.has(JSON.stringify(["joints", this.mover(name)])));
    const item = (section, name, label, more) => {
      const chosen = this.selected[0] === section && this.selected[1] === name;
      const e = element("button", { type: "button", className: `part${bad(section, name) ? " bad" : ""}`, onclick: () => this.select(section, name) }, element("span", { textContent: label }), more && element("small", { textContent: more }));
      if (chosen) e.setAttribute("aria-current", "true");
      e.dataset.part = `${section}/${name}`;
      return e;
    };
    const seen = new Set();
    const branch = (parent) => {
      const list = element("ul");
      for (const [, joint] of this.joints()) {
        const child = joint.child;
        if (joint.parent !== parent || seen.has(child) || !data.bodies?.[child]) continue;
        seen.add(child);
        list.append(element("li", {}, item("bodies", child, child, String(joint.type ?? "").replaceAll("_", " ")), branch(child)));
      }
      for (const [name, frame] of Object.entries(data.frames || {})) if (frame?.body === parent) list.append(element("li", {}, item("frames", name, name, "frame")));
      return list;
    };
    const tree = element("ul", { className: "tree" }, element("li", {}, item("", "", data.name || "model", "model")), element("li", {}, element("span", { className: "part fixed", textContent: "world" }), branch("world")));
    const lost = Object.keys(data.bodies || {}).filter((name) => !seen.has(name));
    if (lost.length) tree.append(element("li", {}, element("span", { className: "part fixed", textContent: "not attached" }), element("ul", {}, ...lost.map((name) => element("li", {}, item("bodies", name, name, ""), branch(name))))));
    const lists = ["loops", "couplings", "equations", "actuators", "sensors"].map((section) => {
      const names = Object.keys(data[section] || {});
      return element("div", {}, element("h2", {}, section, this.adder(section, "+", `Add to ${section}`)), element("ul", {}, ...names.map((name) => element("li", {}, item(section, name, name, String(data[section][name]?.type ?? data[section][name]?.kind ?? "").replaceAll("_", " "))))));
    });
    const problems = this.state.problems.map((p) => element("button", { type: "button", className: "problem-line", textContent: p.text, onclick: () => this.goto(p.place) }));
    const notes = this.state.remarks.map((text) => element("p", { className: "remark", textContent: text }));
    this.tree.replaceChildren(
      element("h2", {}, "bodies", this.adder("bodies", "+", "Add a body to the selected one")), tree, ...lists,
      problems.length ? element("div", { className: "problems", role: "alert" }, element("h2", { textContent: problems.length === 1 ? "1 problem" : `${problems.length} problems` }), ...problems) : element("p", { className: "summary", textContent: this.state.summary }), ...notes,
    );
  }

  adder(section, text, title) {
    return element("button", { type: "button", className: "add", textContent: text, title, ariaLabel: title, onclick: () => this.act({ do: "add", section, parent: this.selected[0] === "bodies" ? this.selected[1] : "world" }) });
  }

  goto(place) {
    const [section, name] = place;
    if (section === "joints") this.select("bodies", this.state.data.joints?.[name]?.child ?? "");
    else if (section in this.forms.sections && name !== undefined) this.select(section, name);
    else this.select("", "");
    this.form.querySelector("[aria-invalid]")?.focus();
  }

  // --- the form ----------------------------------------------------------------------------------------------

  drawForm() {
    const active = document.activeElement, kept = active && this.form.contains(active) ? { place: active.dataset.place, value: active.value, was: active.dataset.was, at: active.selectionStart } : null;
    const opened = new Map([...this.form.querySelectorAll("details")].map((d) => [folded(d), d.open]));
    const same = this.formOf === this.selected.join("/");
    if (!this.exists(this.selected)) this.selected = this.firstPart();
    this.formOf = this.selected.join("/");
    const [section, name] = this.selected, fields = this.fields = new Fields(this.forms, this.state.data, (changes, place) => this.act({ do: "change", changes }, place));
    const content = section === "" ? this.modelForm(fields) : section === "bodies" ? this.bodyForm(fields, name) : this.partForm(fields, section, name);
    this.form.replaceChildren(...content.filter(Boolean));
    if (same) for (const d of this.form.querySelectorAll("details")) if (opened.get(folded(d))) d.open = true;
    const concerned = section === "bodies" ? [["bodies", name], ["joints", this.mover(name)]] : section === "" ? [["parameters"], ["gravity"], ["name"], ["visuals"], []] : [[section, name]];
    for (const p of this.state.problems) {
      const own = concerned.some((c) => c.length === 0 ? p.place.length === 0 : c.every((key, k) => p.place[k] === key));
      if (own && !fields.complain(p.place, p.text)) this.form.prepend(element("p", { className: "error", role: "alert", textContent: p.text }));
    }
    if (this.refused && !fields.complain(this.refused.place, this.refused.text)) this.say(this.refused.text, true);
    if (kept?.place) {
      const again = [...this.form.querySelectorAll("[data-place]")].find((e) => e.dataset.place === kept.place);
      if (again) {
        again.focus();
        if (kept.was !== undefined && kept.value !== kept.was) again.value = kept.value;  // typed while the answer came
        if (again.setSelectionRange && again.type === "text") again.setSelectionRange(kept.at, kept.at);
      }
    }
  }

  nameField(fields, section, name, label) {
    const place = [section, name];
    const e = element("input", { type: "text", value: name, ariaLabel: label, spellcheck: false });
    e.dataset.place = JSON.stringify([...place, ""]);
    e.dataset.was = name;
    e.addEventListener("change", () => {
      const to = e.value.trim();
      if (to === name) return;
      if (this.selected[0] === section && this.selected[1] === name) this.renaming = [section, to];
      this.act({ do: "rename", section, name, to }, [...place, ""]).then((answer) => {
        if (!answer.error && this.renaming) this.select(...this.renaming);
        this.renaming = null;
      });
    });
    return fields.box([...place, ""], label, "", e);
  }

  modelForm(fields) {
    const parameters = Object.entries(this.state.data.parameters || {}).map(([name, value]) => {
      const place = ["parameters", name];
      const row = element("div", { className: "parameter" }, this.nameField(fields, "parameters", name, ""),
        fields.input(place, fields.text(value), { ariaLabel: `value of ${name}`, className: "number" }, (to) => [{ put: place, typed: to }]),
        element("button", { type: "button", className: "small", textContent: "×", ariaLabel: `remove ${name}`, onclick: () => this.act({ do: "remove", section: "parameters", name }, place) }));
      fields.boxes.push({ place, box: row });
      return row;
    });
    const [gravity, visuals] = this.forms.sections[""];
    const label = fields.input(["name"], fields.text(this.state.data.name), { ariaLabel: "name" }, (to) => (to ? [{ put: ["name"], value: to }] : [{ remove: ["name"] }]));
    return [
      element("h2", { textContent: "Model" }), fields.box(["name"], "name", "", label), fields.field(gravity, []),
      element("h3", {}, "parameters", element("button", { type: "button", className: "add", textContent: "+", ariaLabel: "Add a parameter", onclick: () => this.act({ do: "add", section: "parameters" }) })),
      ...parameters, element("p", { className: "hint", textContent: "Use a parameter in any field of numbers, as in l1/2." }), fields.field(visuals, []),
    ];
  }

  bodyForm(fields, name) {
    const joint = this.mover(name), rows = [this.nameField(fields, "bodies", name, "body")];
    for (const f of this.forms.sections.bodies) if (f.key !== "flexible" || this.state.data.bodies[name]?.flexible !== undefined) rows.push(fields.field(f, ["bodies", name]));
    const add = (section, text) => element("button", { type: "button", textContent: text, onclick: () => this.act({ do: "add", section, parent: name }) });
    return [
      element("h2", { textContent: "Joint" }), ...(joint ? this.typed(fields, "joints", joint) : [element("p", { className: "error", textContent: "No joint moves this body." }), element("button", { type: "button", textContent: "+ Joint", onclick: () => this.act({ do: "add", section: "joints", parent: name }) })]),
      element("h2", { textContent: "Body" }), ...rows,
      element("div", { className: "tools" }, add("bodies", "+ Body"), add("frames", "+ Frame"), add("actuators", "+ Actuator"), add("sensors", "+ Sensor"), this.remover("bodies", name)),
    ];
  }

  typed(fields, section, name) {
    // a joint or a loop: what is asked depends on its type
    const place = [section, name], table = this.state.data[section][name], kind = String(table.type ?? ""), byKind = this.forms.sections[section];
    const types = section === "joints" ? this.forms.joint_types : this.forms.loop_types;
    const change = (to) => {
      const keys = (k) => new Set((byKind[k] || []).map((f) => f.key)), wanted = keys(to);
      const gone = [...keys(kind)].filter((key) => key in table && !wanted.has(key)).map((key) => ({ remove: [...place, key] }));
      const asked = byKind[to].filter((f) => f.required && f.kind === "number" && !(f.key in table)).map((f) => ({ put: [...place, f.key], typed: "0.1" }));
      return [...gone, { put: [...place, "type"], value: to }, ...asked];
    };
    const rows = [this.nameField(fields, section, name, section === "joints" ? "joint" : "loop"),
      fields.box([...place, "type"], "type", "", fields.select([...place, "type"], kind, types, change, { ariaLabel: "type" }))];
    for (const f of byKind[kind] || []) if (f.key !== "child" && (f.key !== "node" || table.node !== undefined)) rows.push(fields.field(f, place));
    return rows;
  }

  partForm(fields, section, name) {
    const kinds = this.forms.sections[section], title = element("h2", { textContent: section[0].toUpperCase() + section.slice(1, -1) });
    const rows = Array.isArray(kinds)
      ? [this.nameField(fields, section, name, "name"), ...kinds.filter((f) => f.key !== "node" || this.state.data[section][name]?.node !== undefined).map((f) => fields.field(f, [section, name]))]
      : this.typed(fields, section, name);
    return [title, ...rows, element("div", { className: "tools" }, this.remover(section, name))];
  }

  remover(section, name) {
    return element("button", { type: "button", className: "danger", textContent: "Remove", onclick: () => this.act({ do: "remove", section, name }) });
  }

  // --- texts -------------------------------------------------------------------------------------------------

  drawCode() {
    this.code.hidden = !this.panel;
    for (const [name, button] of Object.entries(this.panels)) button.ariaPressed = String(this.panel === name);
    if (!this.panel) return;
    const python = this.panel === "python", text = python ? this.state.python || "# There is no model without errors yet." : this.state.text;
    const typed = this.code.querySelector("textarea");
    if (typed && typed.dataset.panel === this.panel && typed.value !== typed.dataset.was && !python) return;  // being written
    const area = element("textarea", { value: text, readOnly: python, spellcheck: false, ariaLabel: python ? "Python" : "text of the file" });
    area.dataset.panel = this.panel;
    area.dataset.was = text;
    const apply = element("button", { type: "button", textContent: "Apply", hidden: python, onclick: () => {
      const written = area.value;
      area.dataset.was = area.value = written;
      this.act({ do: "text", text: written }).then((answer) => { if (answer.error) { area.dataset.was = answer.text; } });
    } });
    const copy = element("button", { type: "button", textContent: "Copy", onclick: () => navigator.clipboard?.writeText(area.value) });
    this.code.replaceChildren(element("div", { className: "tools" }, element("h2", { textContent: python ? "Python" : this.state.file || "model.toml" }), apply, copy), area);
  }
}

function folded(details) { return details.querySelector("summary").textContent.replace(/ \(.*/, ""); }

(async function start() {
  const html = document.documentElement;
  html.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const [forms, state] = await Promise.all(["forms", "state"].map(async (name) => (await fetch(name)).json()));
  window.editor = new ModelEditor(forms, state);
})();
