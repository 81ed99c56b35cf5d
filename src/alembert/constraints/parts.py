"""Loops, couplings and equations as one thing: rows on the motions of pairs of frames and on joint speeds.

A part refers to pairs of frames (a_k, b_k) with relative poses X_k and velocities V_k in b_k axes, and to joints with
coordinates q_j and speeds v_j. It gives its residual and rows as functions of these:

    phi(X, q),    0 = sum B_k(X, q) V_k + sum C_j(X, q) v_j                                            (1)

A loop is one pair of frames. A coupling has only joints,

    phi = q_j - offset - sum ratio_k q_k                                                               (2)

and an equation any of both: its rows are its derivatives, with dX = X V~ and dq_j = rate(q_j, v_j).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca

from alembert.errors import ModelError
from alembert.expression import Expression, evaluate
from alembert.model.elements import DOT
from alembert.spatial import Pose
from alembert.spatial.arrays import skew

if TYPE_CHECKING:
    from alembert.model import Coupling, Equation, LoopJoint, Model

Values = Mapping[str, ca.SX]


@dataclass(frozen=True, eq=False)
class Rows:
    """phi (m), B_k (m x 6) by pair and C_j (m x nv_j) by joint."""

    residual: ca.SX
    of_pairs: tuple[ca.SX, ...]
    of_joints: tuple[ca.SX, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """`rows(poses, coordinates, parameters, residual)` gives (1), phi if asked for; `kind` is what messages call it."""

    kind: str
    name: str
    holonomic: tuple[bool, ...]
    pairs: tuple[tuple[str, str], ...]
    joints: tuple[str, ...]
    rows: Callable[[Sequence[Pose], Sequence[ca.SX], Values, bool], Rows]

    @property
    def count(self) -> int:
        return len(self.holonomic)


def parts(model: Model) -> tuple[Part, ...]:
    """All loops, then all couplings, then all equations."""
    return (
        *(_loop(loop) for loop in model.loops),
        *(_coupling(coupling) for coupling in model.couplings),
        *(_equation(model, equation) for equation in model.equations),
    )


def _loop(loop: LoopJoint) -> Part:
    def rows(poses: Sequence[Pose], _: Sequence[ca.SX], values: Values, residual: bool) -> Rows:
        constants = ca.vertcat(*(ca.SX(evaluate(x, values)) for x in loop.type.constants()))
        pair = loop.type.with_constants(constants)
        phi = ca.SX(pair.residual(poses[0])) if residual else ca.SX()
        return Rows(phi, (ca.SX(pair.rows(poses[0])),), ())

    return Part("loop", loop.name, loop.type.holonomic, ((loop.frame_a, loop.frame_b),), (), rows)


def _coupling(coupling: Coupling) -> Part:
    def rows(_: Sequence[Pose], q: Sequence[ca.SX], values: Values, __: bool) -> Rows:
        """(2)"""
        residual = q[0] - evaluate(coupling.offset, values)
        slopes = [ca.SX(1.0)]
        for x, ratio in zip(q[1:], coupling.ratios, strict=True):
            value = ca.SX(evaluate(ratio, values))
            residual = residual - value * x
            slopes.append(-value)
        return Rows(residual, (), tuple(slopes))

    return Part("coupling", coupling.name, (True,), (), (coupling.joint, *coupling.masters), rows)


def _equation(model: Model, equation: Equation) -> Part:
    frames: list[str] = []
    joints: list[str] = []
    owner = [
        name
        for joint, s in zip(model.joints, model._q_slices, strict=True)
        for name in [joint.name] * (s.stop - s.start)
    ]
    places: list[tuple[str, int, Any]] = []
    for _, quantity in equation.inputs:
        if quantity in model.coordinate_names:
            k = model.coordinate_names.index(quantity)
            joint = owner[k]
            joints += [joint] if joint not in joints else []
            places.append(("joint", joints.index(joint), k - model.q_slice(joint).start))
        else:
            frame, _, part = quantity.rpartition(".")
            frames += [frame] if frame not in frames else []
            places.append(("frame", frames.index(frame), tuple("xyz".index(letter) for letter in part)))

    def rows(poses: Sequence[Pose], q: Sequence[ca.SX], values: Values, __: bool) -> Rows:
        V = [ca.SX.sym("V", 6) for _ in frames]
        v = [ca.SX.sym("v", model.joint(name).type.nv) for name in joints]
        inputs, rates = {}, {}
        for (name, _), (what, k, at) in zip(equation.inputs, places, strict=True):
            if what == "joint":
                inputs[name] = q[k][at]
                rates[name] = ca.SX(model.joint(joints[k]).type.rate(q[k], v[k]))[at]
            else:
                inputs[name] = _entry(poses[k].rotation, poses[k].translation, at)
                turned = poses[k].rotation @ skew(V[k][0:3])
                rates[name] = _entry(turned, poses[k].rotation @ V[k][3:6], at)
        residual, speeds = [], []
        for text, holonomic in zip(equation.formulas, equation.holonomic, strict=True):
            phi, rate = _differentiated(equation, text, values, holonomic=holonomic)
            given = [ca.vertcat(*(ca.densify(x[n]) for n, _ in equation.inputs)) for x in (inputs, rates)]
            residual.append(phi(given[0], ca.SX.zeros(len(inputs))) if holonomic else ca.SX(1, 1))
            speeds.append(rate(*given))
        total = ca.vertcat(*speeds)
        return Rows(
            ca.vertcat(*residual),
            tuple(ca.jacobian(total, x) for x in V),
            tuple(ca.jacobian(total, x) for x in v),
        )

    pairs = tuple((equation.reference, frame) for frame in frames)
    return Part("equation", equation.name, equation.holonomic, pairs, tuple(joints), rows)


def _differentiated(
    equation: Equation, text: str, values: Values, *, holonomic: bool
) -> tuple[Callable[..., ca.SX], Callable[..., ca.SX]]:
    """A formula and what is to vanish of the rates, as functions of the inputs and their rates."""
    names = [name for name, _ in equation.inputs]
    x, dx = ca.SX.sym("x", len(names)), ca.SX.sym("dx", len(names))
    known = dict(values) | {name: x[k] for k, name in enumerate(names)}
    known |= {name + DOT: dx[k] for k, name in enumerate(names)}
    phi = ca.SX(Expression(text).evaluate(known))
    rate = ca.jtimes(phi, x, dx) if holonomic else phi
    if not holonomic:
        at_rest = ca.simplify(ca.substitute(phi, dx, ca.SX.zeros(len(names))))
        if ca.depends_on(ca.jacobian(phi, dx), dx) or not at_rest.is_zero():
            raise ModelError(
                f"equation {equation.name!r}: {text[:80]!r} is not linear in the rates of its inputs"
            )

    def of(what: ca.SX) -> Callable[..., ca.SX]:
        return lambda inputs, rates: ca.substitute([what], [x, dx], [ca.densify(inputs), ca.densify(rates)])[
            0
        ]

    return of(phi), of(rate)


def _entry(R: ca.SX, p: ca.SX, at: tuple[int, ...]) -> ca.SX:
    return p[at[0]] if len(at) == 1 else R[at[0], at[1]]
