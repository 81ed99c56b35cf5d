"""Joints that follow a motion: as functions for the compiled loop, or asked in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.simulate.inputs import Table, TimeTables

Array = np.ndarray


class Motions:
    """`mask` (nv,) says which speeds are prescribed."""

    def __init__(self, model: Model, prescribed: Mapping[str, Any], tables: TimeTables) -> None:
        self.model = model
        self.mask = np.zeros(model.nv, dtype=bool)
        self.functions: dict[str, Callable[[float], Any]] = {}
        symbolic: dict[str, ca.Function] = {}
        for name, motion in prescribed.items():
            check_known("simulate: prescribed: no joint", name, model.joint_indices)
            joint = model.joint(name).type
            if not joint.is_vector_space:
                raise UnsupportedError(
                    f"simulate: prescribed motion of joint {name!r} and joint type {joint.kind!r}: only joints whose "
                    "coordinates simply add can be prescribed"
                )
            self.mask[model.v_slice(name)] = True
            if isinstance(motion, Table):
                tables.all.append((f"prescribed {name!r}", motion))
                if motion.interpolation != "cubic" or motion.outside != "refuse" or motion.width != joint.nq:
                    raise ArgumentError(
                        f"simulate: prescribed {name!r} is a table of width {motion.width}, {motion.interpolation!r}, "
                        f"outside {motion.outside!r}, expected width {joint.nq}, 'cubic' and 'refuse': speeds must not jump"
                    )
                if motion.is_compiled:
                    t = ca.SX.sym("t")
                    symbolic[name] = ca.Function("table", [t], [motion.symbolic(t)])
                else:
                    self.functions[name] = motion.derivatives
            elif isinstance(motion, ca.Function):
                symbolic[name] = _checked_motion(joint.nq, motion, name)
            elif callable(motion):
                self.functions[name] = motion
            else:
                value = model.compute.numbers(
                    "simulate", f"prescribed {name!r}", np.atleast_1d(motion), joint.nq
                )
                t = ca.SX.sym("t")
                symbolic[name] = ca.Function("hold", [t], [ca.SX(value)])
        self.function = _motion(model, symbolic) if symbolic else None

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """q, v and a of all degrees of freedom; zero where they are not prescribed."""
        model = self.model
        found = [np.zeros(n) for n in (model.nq, model.nv, model.nv)]
        if self.function is not None:
            found = [np.asarray(x, dtype=float).ravel() for x in self.function(t)]
        for name, motion in self.functions.items():
            try:
                parts = [np.atleast_1d(np.asarray(x, dtype=float)) for x in motion(t)]
                shapes = [x.shape for x in parts]
            except TypeError:
                shapes = []
            width = model.joint(name).type.nv
            if shapes != [(width,)] * 3:
                raise ArgumentError(
                    f"simulate: the prescribed motion of {name!r} returned {motion(t)!r}, expected coordinates, speeds and "
                    f"accelerations, {width} of each; a casadi.Function of t alone gives coordinates"
                )
            for x, part, s in zip(
                found, parts, (model.q_slice(name), *2 * (model.v_slice(name),)), strict=True
            ):
                x[s] = part
        return found[0], found[1], found[2]

    def check(self, start: float, duration: float) -> None:
        """Refuse functions whose speeds or accelerations are not the derivatives of what they give.

        Compared at some times with differences over a millionth of a second or of the run; a corner may lie at one of them.
        """
        d = 1e-6 * min(1.0, duration)
        times = start + duration * np.array([0.137, 0.319, 0.523, 0.741, 0.937])
        for name in self.functions:
            s = self.model.q_slice(name), self.model.v_slice(name), self.model.v_slice(name)
            rows = [[self.at(float(t + x)) for x in (-d, 0.0, d)] for t in times]
            for order, what in ((1, "speeds"), (2, "accelerations")):
                wrong = []
                for t, (before, now, after) in zip(times, rows, strict=True):
                    slope = (after[order - 1][s[order - 1]] - before[order - 1][s[order - 1]]) / (2 * d)
                    given = now[order][s[order]]
                    size = np.max(np.abs(now[order - 1][s[order - 1]]))
                    close = 1e-3 * max(np.max(np.abs(slope)), np.max(np.abs(given))) + 1e-9 * size / d + 1e-6
                    if np.max(np.abs(slope - given)) > close:
                        wrong.append((t, given, slope))
                if len(wrong) > len(times) // 2:
                    t, given, slope = wrong[0]
                    raise ArgumentError(
                        f"simulate: the prescribed motion of {name!r} returned {what} {given} at t = {t:.6g} s, but its "
                        f"{'coordinates' if order == 1 else 'speeds'} change at {slope} per second there; a casadi.Function "
                        "of t alone gives coordinates, and is differentiated"
                    )

    def imposed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """A state with its prescribed part put in place."""
        q_p, v_p, _ = self.at(t)
        return np.where(self._prescribed_q, q_p, q), np.where(self.mask, v_p, v)

    @cached_property
    def _prescribed_q(self) -> Array:
        model = self.model
        found = np.zeros(model.nq, dtype=bool)
        for owner in model.space:
            found[owner.q] = bool(owner.type.nv) and self.mask[owner.v.start]
        return found


def _checked_motion(nq: int, motion: ca.Function, name: str) -> ca.Function:
    sizes = [motion.numel_in(k) for k in range(motion.n_in())]
    results = [motion.numel_out(k) for k in range(motion.n_out())]
    if sizes != [1] or results != [nq]:
        raise ArgumentError(
            f"simulate: prescribed {name!r} maps sizes {sizes} to {results}, expected a casadi.Function of t that gives "
            f"{nq} coordinates"
        )
    return motion if motion.is_a("SXFunction") else motion.expand()


def _motion(model: Model, given: Mapping[str, ca.Function]) -> ca.Function:
    """q, v and a of the prescribed joints by differentiation; zero elsewhere."""
    t = ca.SX.sym("t")
    q, v, a = ca.SX.zeros(model.nq), ca.SX.zeros(model.nv), ca.SX.zeros(model.nv)
    for name, function in given.items():
        x = ca.SX(function(t))
        q[model.q_slice(name)] = x
        v[model.v_slice(name)] = ca.jacobian(x, t)
        a[model.v_slice(name)] = ca.jacobian(ca.jacobian(x, t), t)
    return ca.Function("motion", [t], [q, v, a])
