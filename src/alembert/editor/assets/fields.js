"use strict";
// The fields of a form: what stands in the file at a place, as inputs that send a change when they are left.

// Every field knows its place, so that errors and the focus find it again after the form is drawn anew.
class Fields {
  constructor(forms, data, send) {
    this.forms = forms;
    this.data = data;
    this.send = send;  // (changes, place)
    this.boxes = [];  // { place, box }
  }

  at(place) { return place.reduce((inside, key) => (inside == null ? undefined : inside[key]), this.data); }

  box(place, label, help, ...content) {
    const box = element("div", { className: "field" }, label && element("span", { className: "label", textContent: label, title: help || "" }), ...content);
    this.boxes.push({ place, box });
    return box;
  }

  // One input; `place` is what it changes, `make` turns its text into changes.
  input(place, shown, options, make) {
    const e = element("input", { type: "text", value: shown, spellcheck: false, autocomplete: "off", ...options });
    e.dataset.place = JSON.stringify(place);
    e.dataset.was = shown;
    e.addEventListener("change", () => { if (e.value.trim() !== shown) this.send(make(e.value.trim()), place); });
    e.addEventListener("keydown", (event) => { if (event.key === "Escape") { e.value = shown; e.blur(); } });
    return e;
  }

  select(place, shown, choices, make, options) {
    const known = choices.includes(shown) ? choices : [shown, ...choices];
    const e = element("select", { ...options, onchange: () => this.send(make(e.value), place) },
      ...known.map((c) => element("option", { value: c, textContent: c === "" ? "none" : options.spelt ? c : c.replaceAll("_", " "), selected: c === shown })));
    e.dataset.place = JSON.stringify(place);
    return e;
  }

  unit(text) { return text ? element("span", { className: "unit", textContent: text }) : null; }

  text(value) { return value === undefined || value === null ? "" : typeof value === "object" ? toml(value) : String(value); }

  // --- kinds -----------------------------------------------------------------------------------------------

  field(f, base) {
    const place = [...base, f.key], value = this.at(place), label = f.key.replaceAll("_", " ");
    switch (f.kind) {
      case "number": case "whole": return this.number(f, place, value, label);
      case "numbers": return this.numbers(f, place, value, label);
      case "name": return this.box(place, label, f.help, this.select(place, this.text(value), this.names(f.of), (to) => [{ put: place, value: to }], { ariaLabel: label, spelt: true }));
      case "choice": return this.box(place, label, f.help, this.select(place, this.text(value), f.choices, (to) => [{ put: place, value: to }], { ariaLabel: label }));
      case "flag": return this.flag(f, place, value, label);
      case "table": return this.table(f, place, value, label);
      case "placement": return this.placement(place, value, label);
      case "inertia": return this.inertia(place, value, label);
      case "visuals": return this.visuals(f, place, value, label);
      case "toml": return this.toml(f, place, value, label);
      default: return this.box(place, label, f.help, this.input(place, this.text(value), { ariaLabel: label, placeholder: f.default || "" }, (to) => (to ? [{ put: place, value: to }] : [{ remove: place }])));
    }
  }

  number(f, place, value, label) {
    const e = this.input(place, this.text(value), { ariaLabel: `${label} ${f.unit || ""}`.trim(), placeholder: f.default ?? "", className: "number" },
      (to) => (to === "" ? [{ remove: place }] : [{ put: place, typed: to }]));
    return this.box(place, label, f.help, e, this.unit(f.unit));
  }

  numbers(f, place, value, label) {
    if (f.count === 0) return null;
    const list = Array.isArray(value) ? value : value === undefined ? null : [value], known = list && list.length === f.count;
    const common = f.count > 1 && f.units.every((unit) => unit === f.units[0]);
    const inputs = f.labels.map((name, k) => {
      const shown = this.text(list ? list[k] : undefined), own = [...place, k];
      const make = (to) => {
        if (to === "" && (f.default === null || !f.default)) return [{ remove: place }];
        const entry = to === "" ? String(f.default[k]) : to;
        if (known && Array.isArray(value)) return [{ put: own, typed: entry }];
        if (f.single) return [{ put: place, typed: entry }];
        // a list is whole or not there: what was left out gets its default
        return [{ put: place, typed: f.labels.map((_, i) => (i === k ? entry : String(known ? list[i] : f.default ? f.default[i] : free(f.key)))) }];
      };
      return element("label", { className: "entry" }, f.count > 1 ? element("small", { textContent: name }) : null,
        this.input(own, shown, { ariaLabel: `${label} ${name}`, placeholder: f.default ? f.default[k] : "", className: "number" }, make), common ? null : this.unit(f.units[k]));
    });
    return this.box(place, label, f.help, element("div", { className: `entries of${Math.min(f.count, 3)}${f.count > 3 ? " many" : ""}` }, ...inputs, common ? this.unit(f.units[0]) : null));
  }

  flag(f, place, value, label) {
    const e = element("input", { type: "checkbox", checked: !!value, ariaLabel: label, onchange: () => this.send(e.checked ? [{ put: place, value: true }] : [{ remove: place }], place) });
    e.dataset.place = JSON.stringify(place);
    return this.box(place, label, f.help, e);
  }

  table(f, place, value, label) {
    const inside = f.fields.map((field) => this.field(field, place)).filter(Boolean);
    if (!inside.length) return null;
    const details = element("details", { className: "group", open: value !== undefined }, element("summary", { textContent: label }), ...inside);
    if (value !== undefined) details.append(element("button", { type: "button", className: "small", textContent: `No ${label}`, onclick: () => this.send([{ remove: place }], place) }));
    this.boxes.push({ place, box: details });
    return details;
  }

  toml(f, place, value, label) {
    const shown = value === undefined ? "" : toml(value);
    const area = element("textarea", { value: shown, rows: Math.min(Math.max(shown.split("\n").length, 1), 12), spellcheck: false, ariaLabel: `${label}, as TOML` });
    area.dataset.place = JSON.stringify(place);
    area.dataset.was = shown;
    area.addEventListener("change", () => { if (area.value.trim() !== shown) this.send(area.value.trim() === "" ? [{ remove: place }] : [{ put: place, toml: area.value }], place); });
    const details = element("details", { className: "group", open: value !== undefined && shown.length < 400 }, element("summary", { textContent: label, title: f.help || "" }), this.box(place, "", "", area));
    return details;
  }

  placement(place, value, label) {
    const bare = Array.isArray(value), table = value && !bare ? value : {}, kinds = this.forms.rotations;
    const turn = Object.keys(kinds).find((kind) => kind in table) || "", old = bare ? value : table.translation;
    const where = bare || value === undefined ? place : [...place, "translation"];
    const numbers = { key: "translation", kind: "numbers", count: 3, labels: ["x", "y", "z"], units: ["m", "m", "m"], default: [0, 0, 0] };
    const first = where === place ? this.numbers(numbers, place, value, "position") : this.numbers(numbers, where, old, "position");
    const change = (to) => {
      if (!to) return old ? [{ put: place, value: old }] : [{ remove: place }];
      return [{ put: place, value: { ...(old ? { translation: old } : {}), [to]: kinds[to][2] } }];
    };
    const rows = [first, this.box([...place, "turn"], "rotation", "", this.select([...place, "turn"], turn, ["", ...Object.keys(kinds)], change, { ariaLabel: "rotation" }))];
    if (turn) {
      const [unit, labels, start] = kinds[turn];
      rows.push(this.numbers({ key: turn, count: labels.length, labels, units: labels.map(() => unit), default: start }, [...place, turn], table[turn], turn.replaceAll("_", " ")));
    }
    const box = element("fieldset", {}, element("legend", { textContent: label }), ...rows);
    this.boxes.push({ place, box });
    return box;
  }

  inertia(place, value, label) {
    const shapes = this.forms.inertias, table = value || {};
    const shape = Object.keys(shapes).find((kind) => kind in table) || (value === undefined ? "" : "general");
    const mass = shape && (shape === "general" ? table.mass : table[shape].mass);
    const change = (to) => {
      if (!to) return [{ remove: place }];
      const start = { ...this.forms.starts[to], ...(mass !== undefined && mass !== "" ? { mass } : {}) };
      return [{ put: place, value: to === "general" ? start : { [to]: start } }];
    };
    const base = shape === "general" ? place : [...place, shape];
    const rows = shape ? shapes[shape].map((f) => this.field(f, base)) : [];
    const box = element("fieldset", {}, element("legend", { textContent: label }),
      this.box([...place, "shape"], "shape", "a uniform solid, or mass, centre and tensor", this.select([...place, "shape"], shape, ["", ...Object.keys(shapes)], change, { ariaLabel: "shape of the inertia" })), ...rows);
    this.boxes.push({ place, box });
    return box;
  }

  visuals(f, place, value, label) {
    // shapes to draw, each with its sizes, where it is, and a colour
    const shapes = this.forms.shapes, starts = this.forms.shape_starts, list = Array.isArray(value) ? value : [];
    const rows = list.map((visual, k) => {
      const own = [...place, k], kind = Object.keys(shapes).find((name) => name in visual) || "";
      const change = (to) => [{ put: own, value: { [to]: starts[to], ...Object.fromEntries(Object.entries(visual).filter(([key]) => key !== kind)) } }];
      const box = element("fieldset", {}, element("legend", { textContent: `shape ${k + 1}` }),
        this.box([...own, "shape"], "shape", "", this.select([...own, "shape"], kind, Object.keys(shapes), change, { ariaLabel: `shape ${k + 1}` })),
        ...(shapes[kind] || []).map((field) => this.field(field, [...own, kind])), this.placement([...own, "placement"], visual.placement, "placement"),
        this.color([...own, "color"], visual.color),
        element("button", { type: "button", className: "small", textContent: "Remove this shape", onclick: () => this.send([list.length > 1 ? { remove: own } : { remove: place }], own) }));
      this.boxes.push({ place: own, box });
      return box;
    });
    const add = element("button", { type: "button", className: "small", textContent: "+ Shape", onclick: () => this.send([{ put: [...place, list.length], value: { sphere: starts.sphere } }], place) });
    const details = element("details", { className: "group", open: list.length > 0 && list.length < 3 }, element("summary", { textContent: `${label} (${list.length || "made up"})`, title: f.help || "" }), ...rows, add);
    this.boxes.push({ place, box: details });
    return details;
  }

  color(place, value) {
    const known = Array.isArray(value) && value.length === 4 && value.every((x) => typeof x === "number"), [r, g, b, a] = known ? value : [0.62, 0.65, 0.7, 1];
    const hex = `#${[r, g, b].map((x) => Math.round(255 * Math.min(Math.max(x, 0), 1)).toString(16).padStart(2, "0")).join("")}`;
    const e = element("input", { type: "color", value: hex, ariaLabel: "colour", onchange: () => {
      const parts = [1, 3, 5].map((at) => Math.round((1000 * parseInt(e.value.slice(at, at + 2), 16)) / 255) / 1000);
      this.send([{ put: place, value: [...parts, a] }], place);
    } });
    e.dataset.place = JSON.stringify(place);
    return this.box(place, "colour", "", e);
  }

  names(sections) {
    return sections.flatMap((section) => (section === "world" ? ["world"] : Object.keys(this.data[section] || {})));
  }

  // --- errors ----------------------------------------------------------------------------------------------

  // The smallest box that holds a place, else null.
  holder(place) {
    let best = null;
    for (const { place: own, box } of this.boxes) {
      if (own.length <= place.length && own.every((key, k) => key === place[k]) && (!best || own.length > best.place.length)) best = { place: own, box };
    }
    return best?.box || null;
  }

  complain(place, text) {
    const box = this.holder(place);
    if (!box) return false;
    const id = `error${Fields.count++}`;
    box.append(element("p", { className: "error", id, role: "alert", textContent: text }));
    box.classList.add("wrong");
    for (let e = box.parentElement?.closest("details"); e; e = e.parentElement?.closest("details")) e.open = true;
    if (box.matches("details")) box.open = true;
    for (const e of box.querySelectorAll("input, select, textarea")) { e.setAttribute("aria-invalid", "true"); e.setAttribute("aria-describedby", id); }
    return true;
  }
}
Fields.count = 0;

function free(key) { return key === "lower" ? "-inf" : key === "upper" || key === "velocity" || key === "effort" ? "inf" : "0"; }

// A value as TOML on one line; lists of tables have a line for each.
function toml(value) {
  const key = (k) => (/^[A-Za-z_][A-Za-z0-9_-]*$/.test(k) ? k : JSON.stringify(k));
  const flat = (v) => {
    if (Array.isArray(v)) return `[${v.map(flat).join(", ")}]`;
    if (v && typeof v === "object") return `{ ${Object.entries(v).map(([k, x]) => `${key(k)} = ${flat(x)}`).join(", ")} }`;
    return typeof v === "string" ? JSON.stringify(v) : String(v);
  };
  return Array.isArray(value) && value.some((v) => v && typeof v === "object") ? `[\n${value.map((v) => `  ${flat(v)},`).join("\n")}\n]` : flat(value);
}
