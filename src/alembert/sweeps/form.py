"""The form of a model: all of it but its numbers, which become parameters.

Masses, lengths and the like are numbers that machine code may as well read at run time. What is made for the form
(expressions, code) serves every model of that form: one with other masses, placements, springs or gravity. To the form
belong the tree, the types of joints, what is zero, and ones in placements: code is shorter for them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from alembert.expression import Expression, Scalar, evaluate
from alembert.joints import Limits
from alembert.model import WORLD, Body, Frame, Joint, Model, Placement
from alembert.model.inertia import Inertia
from alembert.spatial import Pose
from alembert.sweeps.tree import Tree

MOST_FORMS = 32
_FORMS: dict[str, Model] = {}
"""by fingerprint: models of one form share one, and so all that was made for it"""


@dataclass(frozen=True)
class ModelForm:
    """A model whose parameters are the numbers of another, and these numbers; the parameters have no defaults but NaN."""

    model: Model
    numbers: np.ndarray


@dataclass(frozen=True)
class _Moments(Inertia):
    """An inertia by its ten-vector."""

    ten: tuple[Scalar, ...] = ()

    def ten_vector(self) -> tuple[Scalar, ...]:
        return self.ten


@dataclass(frozen=True)
class _Placed(Placement):
    """A placement by its rotation matrix, row by row. Its quaternion has no value."""

    rotation: tuple[Scalar, ...] = ()

    def symbolic_pose(self, values: Mapping[str, Any]) -> Pose:
        R = ca.vertcat(*(ca.SX(evaluate(x, values)) for x in self.rotation))
        p = ca.vertcat(*(ca.SX(evaluate(x, values)) for x in self.translation))
        return Pose(ca.sparsify(ca.reshape(R, 3, 3).T), ca.sparsify(p))


def form_of(model: Model) -> ModelForm | None:
    """The form of a model of rigid bodies, for its equations of motion and constraints: it has no limits or devices, and of
    frames those alone that constraints need.

    None where the model has parameters of its own, or bodies that deform.
    """
    tree = model.compute.tree
    if "form" not in tree.found:
        tree.found["form"] = None if model.parameters or tree.has_modes else _form(model, tree)
    return tree.found["form"]


def _form(model: Model, tree: Tree) -> ModelForm:
    numbers: list[float] = []

    def number(x: Scalar, *kept: float) -> Scalar:
        if x == 0.0 or x in kept:
            return x
        numbers.append(float(x))  # type: ignore[arg-type]
        return _parameter(len(numbers) - 1)

    def several(values: Iterable[Scalar], *kept: float) -> tuple[Scalar, ...]:
        return tuple(number(x, *kept) for x in values)

    def placed(X: Placement) -> Placement:
        R, p = X.pose().rotation, several(X.translation, 1.0, -1.0)
        return _Placed(p, _UNKNOWN, several(R.ravel().tolist(), 1.0, -1.0))

    bodies: list[Body] = []
    joints: list[Joint] = []
    for joint, parent, X, ten in zip(
        tree.joints, tree.parents, tree.placements, tree.ten_vectors, strict=True
    ):
        assert isinstance(X, Placement)
        bodies.append(Body(joint.child, _Moments(ten=several(ten))))
        spring, friction = joint.spring, joint.friction
        if spring is not None:
            spring = dataclasses.replace(spring, stiffness=several(spring.stiffness))
        if friction is not None:
            found = several(friction.viscous), several(friction.coulomb), number(friction.smoothing)
            friction = dataclasses.replace(friction, viscous=found[0], coulomb=found[1], smoothing=found[2])
        joints.append(
            dataclasses.replace(
                joint,
                parent=WORLD if parent < 0 else tree.joints[parent].child,
                placement=placed(X),
                limits=Limits(),
                spring=spring,
                friction=friction,
                armature=several(joint.armature),
            )
        )
    frames = []
    for name in _frames_of_constraints(model):
        node, X = tree.carrier(model.frame(name))
        assert isinstance(X, Placement)
        body = WORLD if node < 0 else tree.joints[node].child
        if name != body:
            frames.append(Frame(name, body, placed(X)))
    couplings = tuple(
        dataclasses.replace(x, ratios=several(x.ratios, 1.0, -1.0), offset=number(x.offset))
        for x in model.couplings
    )
    gravity = several(model.gravity)
    form = Model(
        "form",
        tuple(bodies),
        tuple(joints),
        frames=tuple(frames),
        loops=model.loops,
        couplings=couplings,
        equations=model.equations,
        gravity=gravity,
        parameters=tuple((_parameter(k).text, math.nan) for k in range(len(numbers))),
    )
    shared = _FORMS.setdefault(form.fingerprint, form)
    if len(_FORMS) > MOST_FORMS:
        _FORMS.pop(next(iter(_FORMS)))
    return ModelForm(shared, np.array(numbers))


def _frames_of_constraints(model: Model) -> dict[str, None]:
    """Their names, each once."""
    found = [name for loop in model.loops for name in (loop.frame_a, loop.frame_b)]
    for equation in model.equations:
        quantities = [x for _, x in equation.inputs if x not in model.coordinate_names]
        found += [x.rpartition(".")[0] for x in quantities]
        found += [equation.reference] if quantities else []
    return dict.fromkeys(found)


@cache
def _parameter(k: int) -> Expression:
    return Expression(f"number_{k}")


_UNKNOWN = (Expression("unknown"),) * 4
