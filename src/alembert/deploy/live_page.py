"""Live pages: one HTML file with a model's dynamics as WebAssembly, which simulates in the browser, from disk.

WebAssembly needs no compiler: functions of CasADi's instructions become a binary module that any browser runs.

Functions take pointers to their arguments and results in one memory. Routines (`alembert.lowering.routine`) call them; their
own arrays have fixed places, so that a module needs no allocation. Functions of the mathematics library that WebAssembly
does not have come from the page (`Math.sin` and so on).
"""

from __future__ import annotations

import base64
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import names, numbers, real
from alembert.deploy.c_program import CProgram, c_program
from alembert.deploy.exported_system import Given, Signal
from alembert.engine import instructions
from alembert.engine.instructions import InstructionList
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import Expression
from alembert.lowering.plan import Buffer, Call, Copy, Repeat, Step, When
from alembert.lowering.routine import Parts, place
from alembert.model import Inertia, Model
from alembert.view.deformed import drawn
from alembert.view.page import Still, write_page

_F64, _I32 = 0x7C, 0x7F
_BINARY = {
    ca.OP_ADD: 0xA0,
    ca.OP_SUB: 0xA1,
    ca.OP_MUL: 0xA2,
    ca.OP_DIV: 0xA3,
    ca.OP_FMIN: 0xA4,
    ca.OP_FMAX: 0xA5,
    ca.OP_COPYSIGN: 0xA6,
}
_UNARY = {ca.OP_FABS: 0x99, ca.OP_NEG: 0x9A, ca.OP_CEIL: 0x9B, ca.OP_FLOOR: 0x9C, ca.OP_SQRT: 0x9F}
_COMPARED = {ca.OP_EQ: 0x61, ca.OP_NE: 0x62, ca.OP_LT: 0x63, ca.OP_LE: 0x65}
IMPORTED = {
    ca.OP_SIN: ("sin", 1),
    ca.OP_COS: ("cos", 1),
    ca.OP_TAN: ("tan", 1),
    ca.OP_ASIN: ("asin", 1),
    ca.OP_ACOS: ("acos", 1),
    ca.OP_ATAN: ("atan", 1),
    ca.OP_SINH: ("sinh", 1),
    ca.OP_COSH: ("cosh", 1),
    ca.OP_TANH: ("tanh", 1),
    ca.OP_EXP: ("exp", 1),
    ca.OP_LOG: ("log", 1),
    ca.OP_ATAN2: ("atan2", 2),
    ca.OP_POW: ("pow", 2),
    ca.OP_CONSTPOW: ("pow", 2),
}
"""by operation: the function of JavaScript's `Math`, and how many arguments it has"""
_LT, _GT, _EQ, _NE = 0x63, 0x64, 0x61, 0x62
_SELECT, _FROM_I32 = 0x1B, 0xB8


@dataclass
class WasmModule:
    """Functions on one memory: `place` gives arrays their places; what is exported takes nothing and works on these."""

    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """by array: the place of its first number, and how many there are"""
    _size: int = 0
    _codes: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """by function: how many pointers it takes, and its code"""
    _exported: list[str] = field(default_factory=list)

    def place(self, **sizes: int) -> None:
        for name, size in sizes.items():
            self.places[name] = (self._size, size)
            self._size += max(size, 1)

    def add(self, name: str, function: ca.Function) -> None:
        """A function that takes pointers to its arguments and results."""
        code = instructions.share_reciprocals(instructions.read(function))
        count = function.n_in() + function.n_out()
        self._codes[name] = count, self._function(code, function.n_in(), count)

    def routine(self, parts: Parts, name: str) -> None:
        """A routine that takes pointers; its own arrays have places of their own."""
        routine = parts.routines[name]
        labels = {label: f"{name}:{label}" for label in routine.buffers}
        self.place(**{labels[label]: size for label, size in routine.buffers.items()})
        pointers = {label: k for k, label in enumerate(routine.arguments)}
        counters = 0

        def address(buffer: Buffer) -> tuple[bytes, int]:
            """Code that leaves a pointer, and an offset in bytes."""
            label, start = place(buffer)
            if label in pointers:
                return b"\x20" + _unsigned(pointers[label]), 8 * start
            return b"\x41\x00", 8 * (self.places[labels[label]][0] + start)

        def pointer(buffer: Buffer) -> bytes:
            base, offset = address(buffer)
            return base + (b"\x41" + _signed(offset) + b"\x6a" if offset else b"")

        def loaded(buffer: Buffer, k: int = 0) -> bytes:
            base, offset = address(buffer)
            return base + b"\x2b\x03" + _unsigned(offset + 8 * k)

        def written(steps: Sequence[Step]) -> bytes:
            nonlocal counters
            body = b""
            for step in steps:
                if isinstance(step, When):
                    inner = written(step.steps)
                    body += loaded(step.flag) + ZERO + bytes([_NE]) + b"\x04\x40" + inner + b"\x0b"
                elif isinstance(step, Repeat):
                    count = _unsigned(len(pointers) + counters)
                    counters += 1
                    inner = written(step.steps)
                    body += b"\x41\x00\x21" + count + b"\x02\x40\x03\x40"
                    body += loaded(step.flag) + ZERO + bytes([_NE]) + b"\x0d\x01"
                    body += b"\x20" + count + b"\x41" + _signed(step.most) + b"\x4e\x0d\x01"
                    body += inner + b"\x20" + count + b"\x41\x01\x6a\x21" + count + b"\x0c\x00\x0b\x0b"
                elif isinstance(step, Copy):
                    base, offset = address(step.target)
                    for k in range(parts.copied(routine, step)):
                        value = ZERO if step.source is None else loaded(step.source, k)
                        body += base + value + b"\x39\x03" + _unsigned(offset + 8 * k)
                else:
                    assert isinstance(step, Call)
                    body += b"".join(pointer(x) for x in (*step.inputs, *step.outputs))
                    body += self._call(str(step.source))
            return body

        body = written(routine.steps)
        declared = _unsigned(1) + _unsigned(counters) + bytes([_I32]) if counters else _unsigned(0)
        self._codes[name] = len(pointers), declared + body + b"\x0b"

    def export(self, name: str, function: str, arrays: Sequence[str]) -> None:
        """A function that takes nothing: another one on arrays that have places."""
        body = b"".join(b"\x41" + _signed(8 * self.places[x][0]) for x in arrays) + self._call(function)
        self._codes[name] = 0, _unsigned(0) + body + b"\x0b"
        self._exported.append(name)

    def _call(self, name: str) -> bytes:
        return b"\x10" + _unsigned(len(_MATH) + list(self._codes).index(name))

    def _function(self, code: InstructionList, inputs: int, pointers: int) -> bytes:
        body: list[bytes] = []
        places: list[bytes] = []
        local = pointers
        for i, wanted in enumerate(code.needed()):
            op = code.op[i]
            if op == ca.OP_INPUT:
                places.append(b"\x20" + _unsigned(code.a[i]) + b"\x2b\x03" + _unsigned(8 * code.b[i]))
            elif op == ca.OP_CONST:
                places.append(_constant(code.constants[code.a[i]]))
            elif not wanted:
                places.append(b"")
            else:
                body.append(
                    _expression(op, [places[j] for j in code.operands(i)]) + b"\x21" + _unsigned(local)
                )
                places.append(b"\x20" + _unsigned(local))
                local += 1
        for k, elements in enumerate(code.outputs):
            target = b"\x20" + _unsigned(inputs + k)
            for element, i in enumerate(elements):
                body.append(target + places[i] + b"\x39\x03" + _unsigned(8 * element))
        count = local - pointers
        declared = _unsigned(1) + _unsigned(count) + bytes([_F64]) if count else _unsigned(0)
        return declared + b"".join(body) + b"\x0b"

    def binary(self) -> bytes:
        counts = sorted({count for count, _ in self._codes.values()})
        types = [b"\x60\x01\x7c\x01\x7c", b"\x60\x02\x7c\x7c\x01\x7c"]
        types += [b"\x60" + _unsigned(n) + bytes([_I32]) * n + b"\x00" for n in counts]
        imports = [_text("m") + _text(name) + b"\x00" + _unsigned(count - 1) for name, count in _MATH.items()]
        functions = [_unsigned(2 + counts.index(count)) for count, _ in self._codes.values()]
        pages = -(-8 * self._size // 65536) or 1
        exports = [_text("memory") + b"\x02\x00"]
        names = list(self._codes)
        exports += [_text(x) + b"\x00" + _unsigned(len(_MATH) + names.index(x)) for x in self._exported]
        codes = [_unsigned(len(code)) + code for _, code in self._codes.values()]
        sections = (
            (1, types),
            (2, imports),
            (3, functions),
            (5, [b"\x00" + _unsigned(pages)]),
            (7, exports),
            (10, codes),
        )
        return b"\x00asm\x01\x00\x00\x00" + b"".join(
            _section(number, entries) for number, entries in sections
        )


_MATH: Mapping[str, int] = dict(IMPORTED.values())


def _expression(op: int, x: Sequence[bytes]) -> bytes:
    zero, one = ZERO, _constant(1.0)
    if op in _BINARY:
        return x[0] + x[1] + bytes([_BINARY[op]])
    if op in _UNARY:
        return x[0] + bytes([_UNARY[op]])
    if op in _COMPARED:
        return x[0] + x[1] + bytes([_COMPARED[op], _FROM_I32])
    if op in (ca.OP_AND, ca.OP_OR):
        both = x[0] + zero + bytes([_NE]) + x[1] + zero + bytes([_NE])
        return both + bytes([0x71 if op == ca.OP_AND else 0x72, _FROM_I32])
    if op == ca.OP_NOT:
        return x[0] + zero + bytes([_EQ, _FROM_I32])
    if op == ca.OP_IF_ELSE_ZERO:
        return zero + x[1] + x[0] + zero + bytes([_EQ, _SELECT])
    if op == ca.OP_SIGN:
        minus = _constant(-1.0)
        inner = one + x[0] + x[0] + zero + bytes([_GT, _SELECT])
        return minus + inner + x[0] + zero + bytes([_LT, _SELECT])
    if op in IMPORTED:
        name = IMPORTED[op][0]
        return b"".join(x) + b"\x10" + _unsigned(list(_MATH).index(name))
    raise UnsupportedError(f"live page: the operation {op} of CasADi has no counterpart in WebAssembly")


def _constant(value: float) -> bytes:
    return b"\x44" + struct.pack("<d", value)


ZERO = _constant(0.0)


def _signed(value: int) -> bytes:
    """LEB128 of what is not negative, with room for the sign."""
    found = b""
    while True:
        byte, value = value & 0x7F, value >> 7
        if not value and not byte & 0x40:
            return found + bytes([byte])
        found += bytes([byte | 0x80])


def _unsigned(value: int) -> bytes:
    """LEB128"""
    found = b""
    while True:
        byte, value = value & 0x7F, value >> 7
        if not value:
            return found + bytes([byte])
        found += bytes([byte | 0x80])


def _text(value: str) -> bytes:
    raw = value.encode()
    return _unsigned(len(raw)) + raw


def _section(number: int, entries: Sequence[bytes]) -> bytes:
    content = _unsigned(len(entries)) + b"".join(entries)
    return bytes([number]) + _unsigned(len(content)) + content


COMMANDS = (Signal("gravity", "×", 1.0), Signal("damping", ""))
DAMPING = 2.0
"""the largest of the slider, as a fraction of what the mass matrix at the start is worth in a second"""


def live_page(
    model: Model,
    path: str | os.PathLike[str],
    *,
    q0: Any = None,
    v0: Any = None,
    step: float = 1e-3,
    integrator: str = "rk4",
    masses: Sequence[str] = (),
    controller: Any = None,
    inputs: Mapping[str, float] | None = None,
    drives: Mapping[str, Any] | None = None,
    sensors: Any = (),
    forces: Any = (),
    title: str = "",
    theme: str = "auto",
    autoplay: bool = True,
) -> Path:
    """Write a page that simulates the model in the browser: play, move joints, change gravity, damping, masses, gains.

    The dynamics are WebAssembly in the page, stepped by `integrator` every `step` seconds; no compiler is needed.
    `controller`, `drives`, `sensors` and `forces` are as in `al.deploy.fmu`. Sliders are there for gravity (1 is the model's
    own), for damping of all joints, for every parameter of the model, for the mass of each body in `masses` (its moments of
    inertia go with it), and for what a controller takes: set points that are numbers, and what a `casadi.Function` has as
    its fourth argument, such as gains. `inputs` names these, with their values at the start. The file opens from disk and
    asks nothing of a network.
    """
    real("live_page", "step", step, "a time in seconds, at most 0.1", over=0.0, most=0.1)
    model, labels = _with_masses(model, masses)
    begin = _at_start(inputs)
    if begin and controller is None:
        raise ArgumentError(
            f"live_page: inputs are {list(begin)}, and there is no controller that takes them"
        )
    program = c_program(
        "live_page",
        model,
        "live",
        Given(controller, tuple(begin) if begin or controller is None else None, drives, sensors, forces),
        integrator=integrator,
        q0=q0,
        v0=v0,
        tangents=False,
        more=_hands,
        commands=COMMANDS,
    )
    program = replace(
        program,
        inputs=(
            *COMMANDS,
            *(replace(x, start=begin.get(x.name, x.start)) for x in program.inputs[len(COMMANDS) :]),
        ),
        parameters=tuple(labels.get(x.name, x) for x in program.parameters),
    )
    every = round(program.tick / step)
    if program.tick and (every < 1 or abs(every * step - program.tick) > 1e-9 * program.tick):
        raise ArgumentError(
            f"live_page: step is {step:g} s, expected a part of {program.tick:g} s, the longest time of which all periods, "
            "delays and offsets are multiples"
        )
    module = web_assembly(program)
    live = {
        "wasm": base64.b64encode(module.binary()).decode(),
        "places": module.places,
        "step": float(step),
        "every": every,
        **{name: program.starts[name] for name in "qvxd"},
        "sliders": _sliders(program),
        "joints": [
            [o.v.start + k, o.q.start + k]
            for o in model.space
            if o.type.is_vector_space
            for k in range(o.type.nv)
        ],
    }
    still = Still(model, np.array(live["q"]), title, live=live)
    return write_page(path, [still], title=title, theme=theme, autoplay=autoplay)


def _with_masses(model: Model, masses: Sequence[str]) -> tuple[Model, dict[str, Signal]]:
    """A copy in which the masses of these bodies are parameters; by parameter, what its slider is called."""
    labels: dict[str, Signal] = {}
    for k, name in enumerate(names("live_page", "masses", masses)):
        given, key = model.body(name), f"mass_of_body_{k + 1}"
        m = given.inertia.mass
        if given.flexible is not None:
            raise ArgumentError(f"live_page: masses has {name!r}, which is flexible, expected rigid bodies")
        if isinstance(m, Expression) or any(isinstance(x, Expression) for x in given.inertia.tensor):
            raise ArgumentError(
                f"live_page: masses has {name!r}, whose inertia is a formula of parameters, which have sliders already"
            )
        if not m > 0:
            raise ArgumentError(f"live_page: masses has {name!r}, which has a mass of {m:g} kg")
        mass = Expression(key)
        tensor = tuple(mass * (float(x) / m) for x in given.inertia.tensor)  # type: ignore[arg-type]
        model = model.replace(parameters=(*model.parameters, (key, m))).replace_body(
            name, inertia=Inertia(mass, given.inertia.com, tensor)
        )
        labels[key] = Signal(f"mass of {name}", "kg", float(m))
    return model, labels


def _at_start(inputs: Mapping[str, float] | None) -> dict[str, float]:
    if inputs is not None and not isinstance(inputs, Mapping):
        raise ArgumentError(f"live_page: inputs is {inputs!r}, expected names with their values at the start")
    found = {}
    for name, value in (inputs or {}).items():
        if numbers("live_page", f"inputs[{name!r}]", value).ndim:
            raise ArgumentError(f"live_page: inputs[{name!r}] is {value!r}, expected a number")
        found[name] = float(value)
    return found


def _hands(model: Model, q: ca.SX, v: ca.SX, w: ca.SX, p: ca.SX) -> ca.SX:
    """What takes away gravity but for its factor, and the damping."""
    weight = model.symbolic.gravity_forces(q, parameters=p if model.parameters else None)
    return (1 - w[0]) * weight - w[1] * v


def _sliders(program: CProgram) -> list[dict[str, Any]]:
    model = program.model
    q = np.array([s.start for s in program.states])
    scale = float(np.mean(np.diag(_mass_matrix(model, q))))
    bounds = {"gravity": (-1.0, 3.0), "damping": (0.0, DAMPING * scale)}
    found = []
    for array, signals in (("u", program.inputs), ("p", program.parameters)):
        for k, s in enumerate(signals):
            ends = (0.2 * s.start, 3.0 * s.start) if s.start else (-1.0, 1.0)
            if array == "u" and s.start:
                ends = (-2.0 * abs(s.start), 2.0 * abs(s.start))
            low, high = bounds[s.name] if array == "u" and k < len(COMMANDS) else sorted(ends)
            about = {"name": s.name, "unit": s.unit, "low": low, "high": high, "value": s.start}
            found.append({**about, "array": array, "index": k})
    return found


def _mass_matrix(model: Model, q: np.ndarray) -> np.ndarray:
    """At one configuration, without compiling it."""
    x = ca.SX.sym("q", model.nq)
    return np.asarray(ca.Function("M", [x], [model.symbolic.mass_matrix(x)])(q))


def web_assembly(program: CProgram) -> WasmModule:
    """`step` advances q, v and x by h; `poses` gives poses: 12 numbers per body, rotation by rows, then origin.

    `instant` is there where sampled laws are, `settle` where loops are.
    """
    model, parts = program.model, program.parts
    module = WasmModule()
    poses = _poses(drawn(model))
    module.place(t=1, h=1, poses=poses.numel_out())
    module.place(**{name: size for name, size in program.sizes.items() if name != "y"})
    for name, function in parts.functions.items():
        if name not in ("outputs", "tangent"):
            module.add(name, function)
    for name in parts.routines:
        module.routine(parts, name)
    module.add("bodies", poses)
    for name in ("step", "instant", "settle"):
        if name in parts.routines:
            module.export(f"{name}_now", name, parts.routines[name].arguments)
    module.export("poses_now", "bodies", ("q", "p", "poses"))
    return module


def _poses(model: Model) -> ca.Function:
    """Of the parameters, those that are its own; set points do not move bodies."""
    q, p = ca.SX.sym("q", model.nq), ca.SX.sym("p", len(model.parameters))
    rows: list[ca.SX] = []
    for body in model.bodies:
        X = model.symbolic.frame_pose(q, body.name, parameters=p if model.parameters else None)
        rows += [ca.vec(ca.SX(X.rotation).T), ca.SX(X.translation)]
    return ca.Function("poses", [q, p], [ca.densify(ca.vertcat(*rows))])
