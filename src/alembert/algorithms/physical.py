"""Whether parameters given at run time still make a model that a body can have.

The numbers that must not be negative and the inertias are computed from them by a kernel of their own, for a whole batch at
once, and held to the rules of `alembert.model.inertia`. What the model breaks at its defaults (a file may have it so) is not
looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError
from alembert.expression import Expression, Scalar, evaluate
from alembert.model import Body
from alembert.model.inertia import NOISE, TRIANGLE_TOLERANCE

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
REMEMBERED = 256  # sets of parameters that were found to be good


@dataclass(frozen=True)
class _Rule:
    """An expression that must not be negative (or, with `positive`, zero), and how to say so."""

    entry: Scalar
    sentence: str
    positive: bool = False


class Physical:
    """The check of a model; `check` raises `ArgumentError` in the words of the builder."""

    def __init__(self, model: Model) -> None:
        self._model = model
        defaults = model.parameter_values
        self._bodies = [
            body for body in model.bodies if _depends(body) and not body.inertia.problem(defaults)
        ]
        self._rules = [rule for rule in _rules(model) if isinstance(rule.entry, Expression)]
        self._good: set[bytes] = set()

    def check(self, function: str, parameters: Array) -> None:
        """For parameters (..., count), all of them."""
        if not (self._bodies or self._rules):
            return
        key = parameters.tobytes() if parameters.size <= REMEMBERED else b""
        if key and key in self._good:
            return
        inertias, entries = self._kernel(parameters)
        bad = _unphysical(inertias)
        for k, body in enumerate(self._bodies):
            if np.any(bad[..., k]):
                values = self._first(bad[..., k], parameters)
                problem = body.inertia.problem(values) or "its inertia is not physical"
                self._refuse(function, bad[..., k], f"body {body.name!r}: {problem}")
        for k, rule in enumerate(self._rules):
            wrong = entries[..., k] <= 0 if rule.positive else entries[..., k] < 0
            if np.any(wrong):
                value = entries[..., k][wrong].flat[0]
                self._refuse(function, wrong, rule.sentence.format(f"{value:.6g}"))
        if key and len(self._good) < REMEMBERED:
            self._good.add(key)

    def _first(self, bad: Array, parameters: Array) -> dict[str, float]:
        row = parameters[bad][0] if bad.ndim else parameters
        return dict(zip(self._model.parameter_values, row.tolist(), strict=True))

    def _refuse(self, function: str, bad: Array, what: str) -> None:
        where = ""
        if bad.ndim:
            index = tuple(int(i[0]) for i in np.nonzero(bad))
            where = f" (the first of {np.count_nonzero(bad)}, at {index if len(index) > 1 else index[0]})"
        raise ArgumentError(f"{function}: with the given parameters{where}, {what}")

    @property
    def _kernel(self) -> Kernel:
        model = self._model
        if "physical" not in model.compute.kernels:
            count = len(model.parameters)
            results = [Argument("inertias", (len(self._bodies), 7)), Argument("entries", (len(self._rules),))]
            model.compute.kernels["physical"] = Kernel(
                "parameters",
                [Argument("parameters", (count,))],
                results,
                key=f"{model.fingerprint}:physical",
                build=self._source,
            )
        return model.compute.kernels["physical"]

    def _source(self) -> KernelSource:
        p = ca.SX.sym("p", len(self._model.parameters))
        values = {name: p[k] for k, name in enumerate(self._model.parameter_values)}
        rows = [ca.SX(0, 7)]
        for body in self._bodies:
            entries = (body.inertia.mass, *body.inertia.tensor)
            rows.append(ca.horzcat(*(ca.SX(evaluate(entry, values)) for entry in entries)))
        others = [ca.SX(evaluate(rule.entry, values)) for rule in self._rules]
        outputs = [ca.densify(ca.vertcat(*rows)), ca.densify(ca.vertcat(ca.SX(0, 1), *others))]
        return FunctionSource(ca.Function("physical", [p], outputs))


def _unphysical(inertias: Array) -> Array:
    """`Inertia.problem` on rows of mass and tensor (Ixx, Ixy, Iyy, Ixz, Iyz, Izz); NaN passes, it is found later."""
    mass, xx, xy, yy, xz, yz, zz = np.moveaxis(inertias, -1, 0)
    finite = np.isfinite(inertias).all(axis=-1)
    tensor = np.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1).reshape(*mass.shape, 3, 3)
    moments = np.linalg.eigvalsh(np.where(finite[..., None, None], tensor, 0.0))
    largest = np.abs(moments).max(axis=-1)
    slack = TRIANGLE_TOLERANCE * largest + NOISE * mass
    wrong = (mass < 0) | ((mass == 0) & (largest > 0)) | (moments[..., 0] < -slack)
    return finite & (wrong | (moments[..., 2] > moments[..., 0] + moments[..., 1] + slack))


def _depends(body: Body) -> bool:
    return any(isinstance(x, Expression) for x in (body.inertia.mass, *body.inertia.tensor))


def _rules(model: Model) -> list[_Rule]:
    """What attachments refuse when they are made with numbers."""
    found: list[_Rule] = []

    def add(joint: str, what: str, entries: Any) -> None:
        sentence = f"joint {joint!r}: {what} is {{}}, expected zero or more"
        found.extend(_Rule(entry, sentence) for entry in entries)

    for joint in model.joints:
        add(joint.name, "armature", joint.armature)
        add(joint.name, "rotor inertia", [rotor.inertia for rotor in joint.rotors])
        if joint.friction:
            add(joint.name, "viscous friction", joint.friction.viscous)
            add(joint.name, "Coulomb friction", joint.friction.coulomb)
            sentence = f"joint {joint.name!r}: friction smoothing speed is {{}}, expected a positive speed"
            found.append(_Rule(joint.friction.smoothing, sentence, positive=True))
    return found
