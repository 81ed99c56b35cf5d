"""Sliders without a server: the poses of all bodies as a program that a page can run.

The same steps that the kernels are made of, unrolled to `SX`, give a list of instructions; the page interprets them.
So every joint type can be moved there, without a second implementation of any. A slider is a coordinate where
coordinates simply add, and a tangent displacement from the given configuration elsewhere (rotation vectors of free
and spherical joints). Couplings are followed. For loops and equations there is a second program, of their residuals
phi(x) and of d phi / d x, with which the page keeps them closed by Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from alembert import sweeps
from alembert.constraints.equations import equations
from alembert.joints.joint import ModalCoordinates
from alembert.model import Model
from alembert.view.deformed import drawn
from alembert.view.scene import body_poses

Array = np.ndarray
MOST_INSTRUCTIONS = 60_000
OPERATIONS = tuple(
    """const input output assign add sub mul div neg sin cos tan asin acos atan atan2 sq sqrt twice inv fabs sign lt le eq
    ne not and or if_else_zero fmin fmax pow constpow exp log floor ceil sinh cosh tanh fmod copysign hypot""".split()  # noqa: SIM905
)
_BENT = 0.3  # how far modes bend by sliders: radians, or of the length of a link
_CODES = {getattr(ca, f"OP_{name.upper()}"): k for k, name in enumerate(OPERATIONS)}


@dataclass(frozen=True)
class Slider:
    """`index` in the program's input; `value` is where it starts."""

    name: str
    joint: str
    unit: str
    low: float
    high: float
    value: float
    index: int
    """of the degree of freedom"""
    limited: bool


@dataclass(frozen=True, eq=False)
class PoseProgram:
    """`code` (n, 4): operation, result, operands."""

    inputs: int
    registers: int
    code: Array
    constants: Array


@dataclass(frozen=True, eq=False)
class SliderPrograms:
    """`poses` gives 12 numbers per body, rotation by rows, then origin; `closing` phi, then d phi / d x by columns."""

    sliders: tuple[Slider, ...]
    poses: PoseProgram
    closing: PoseProgram | None


def sliders(model: Model, q: Any, length: float) -> tuple[Slider, ...]:
    """One per degree of freedom that no coupling prescribes."""
    _, p = body_poses(model, q)
    far = max(2 * length, float(np.linalg.norm(p.max(axis=0) - p.min(axis=0))) if len(p) else 0.0)
    coupled = {coupling.joint for coupling in model.couplings}
    found = []
    names = model.speed_names
    for joint in model.space:
        sq, sv = joint.q, joint.v
        if joint.name in coupled:
            continue
        for k, (_, unit) in enumerate(joint.type.speeds):
            unit = unit.removesuffix("/s")
            reach = np.pi if unit == "rad" else far
            if isinstance(joint.type, ModalCoordinates):
                reach = _BENT * (1.0 if unit == "rad" else length)
            low, high, value, limited = -reach, reach, 0.0, False
            if joint.type.is_vector_space:
                value = float(q[sq.start + k])
                below = model.lower_limits[sq.start + k]
                above = model.upper_limits[sq.start + k]
                limited = bool(np.isfinite(below) or np.isfinite(above))
                low = float(below) if np.isfinite(below) else min(low, value, above - 2 * reach)
                high = float(above) if np.isfinite(above) else max(high, value, low + 2 * reach)
                low, high = min(low, value), max(high, value)
            index = sv.start + k
            found.append(
                Slider(names[index], joint.name, unit, float(low), float(high), value, index, limited)
            )
    return tuple(found)


def configuration(model: Model, start: Array, x: Any) -> Any:
    """q from slider values x (nv): x itself where coordinates add, start moved by x elsewhere; couplings followed."""
    symbolic = isinstance(x, ca.SX)
    parts: dict[str, Any] = {}
    for joint in model.space:
        sq, sv = joint.q, joint.v
        if joint.type.nv == 0:
            continue
        if joint.type.is_vector_space:
            parts[joint.name] = x[sv]
        else:
            q0 = ca.SX(start[sq]) if symbolic else start[sq]
            parts[joint.name] = joint.type.integrate(q0, x[sv])
    for _ in model.couplings:  # a master may itself be coupled
        for coupling in model.couplings:
            total = model.value(coupling.offset)
            for master, ratio in zip(coupling.masters, coupling.ratios, strict=True):
                total = total + model.value(ratio) * parts[master][0]
            parts[coupling.joint] = ca.vertcat(total) if symbolic else np.array([float(total)])
    if symbolic:
        return ca.vertcat(ca.SX(0, 1), *parts.values())
    return np.concatenate([np.zeros(0), *parts.values()])


def slider_programs(model: Model, q: Any, length: float) -> SliderPrograms | None:
    """The program and its sliders; None where it would be too long, or nothing moves."""
    if model.nv == 0:
        return None
    model = drawn(model)
    start = np.asarray(q, dtype=float)
    x = ca.SX.sym("x", model.nv)
    q = configuration(model, start, x)
    numbers = ca.SX([value for _, value in model.parameters])
    given = [q, numbers] if model.parameters else [q]
    nodes = model.symbolic.function(sweeps.POSES, ("q",))(*given)
    rows = []
    for body in model.bodies:
        node, offset = model.compute.locate("view", body.name, None)
        R, p = ca.SX(offset.rotation), ca.SX(offset.translation)
        if node >= 0:
            R_W, p_W = ca.reshape(nodes[node, :9], 3, 3).T, nodes[node, 9:].T
            R, p = R_W @ R, p_W + R_W @ p
        rows += [ca.vec(R.T), p]
    poses = _instructions(ca.Function("poses", [x], [ca.densify(ca.vertcat(*rows))]))
    if poses is None:
        return None
    closing = None
    if model.loops or model.equations:
        phi = equations(model.compute.tree, q, ca.SX(model.nv, 1), numbers).residual
        slope = ca.jacobian(phi, x)
        closing = _instructions(ca.Function("closing", [x], [ca.densify(ca.vertcat(phi, ca.vec(slope)))]))
    return SliderPrograms(sliders(model, start, length), poses, closing)


def _instructions(function: ca.Function) -> PoseProgram | None:
    n = function.n_instructions()
    if n > MOST_INSTRUCTIONS:
        return None
    code = np.zeros((n, 4), dtype=np.int32)
    constants: list[float] = []
    for k in range(n):
        op = function.instruction_id(k)
        if op not in _CODES:
            return None
        inputs, outputs = function.instruction_input(k), function.instruction_output(k)
        if op == ca.OP_CONST:
            code[k] = (_CODES[op], outputs[0], len(constants), 0)
            constants.append(function.instruction_constant(k))
        elif op == ca.OP_INPUT:
            code[k] = (_CODES[op], outputs[0], inputs[1], 0)
        elif op == ca.OP_OUTPUT:
            code[k] = (_CODES[op], outputs[1], inputs[0], 0)
        else:
            code[k] = (_CODES[op], outputs[0], inputs[0], inputs[1] if len(inputs) > 1 else 0)
    return PoseProgram(function.size1_in(0), function.sz_w(), code, np.array(constants))
