"""The form of a model: all of it but its numbers, which become parameters.

Masses, lengths and the like are numbers that machine code may as well read at run time. What is made for the form
(expressions, code) serves every model of that form: one with other masses, placements, springs or gravity. To the form
belong the tree, the types of joints, what is zero, unit lengths, and rotations that only exchange axes: code is shorter
for them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import casadi as ca
import numpy as np

from alembert.expression import Expression, Scalar
from alembert.joints import Limits
from alembert.model import WORLD, Body, Joint, Model, Placement
from alembert.model.inertia import Inertia
from alembert.spatial import quaternion

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


def form_of(model: Model) -> ModelForm | None:
    """The form of a tree of rigid bodies, for its equations of motion alone: it has no frames, limits or devices.

    None where the model has parameters of its own, or bodies that deform.
    """
    tree = model.compute.tree
    if model.parameters or tree.has_modes:
        return None
    numbers: list[float] = []

    def number(x: Scalar) -> Scalar:
        if x == 0.0:
            return 0.0
        numbers.append(float(x))  # type: ignore[arg-type]
        return _parameter(len(numbers) - 1)

    def several(values: Iterable[Scalar]) -> tuple[Scalar, ...]:
        return tuple(map(number, values))

    def placed(X: Placement) -> Placement:
        lengths = tuple(x if abs(x) == 1.0 else number(x) for x in X.translation)  # type: ignore[arg-type]
        return Placement(lengths, several(X.quaternion) if _turns_freely(X) else X.quaternion)

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
    gravity = several(model.gravity)
    names = tuple((_parameter(k).text, math.nan) for k in range(len(numbers)))
    form = Model("form", tuple(bodies), tuple(joints), gravity=gravity, parameters=names)
    if len(_FORMS) >= MOST_FORMS:
        _FORMS.clear()
    return ModelForm(_FORMS.setdefault(form.fingerprint, form), np.array(numbers))


@cache
def _parameter(k: int) -> Expression:
    return Expression(f"number_{k}")


def _turns_freely(X: Placement) -> bool:
    """Whether a rotation has its zeros and ones from those of its quaternion, so that other angles have them too."""
    R, q = X.pose().rotation, np.array(X.quaternion, dtype=float)
    if np.isin(R, (0.0, 1.0, -1.0)).all():
        return False
    by_form = quaternion.to_matrix(ca.vertcat(*(ca.SX.sym("q") if x else ca.SX(0) for x in q)))
    special = [[float(x) if (x := by_form[i, j]).is_constant() else None for j in range(3)] for i in range(3)]
    return all(
        (R[i, j] if R[i, j] in (0.0, 1.0, -1.0) else None) == special[i][j]
        for i in range(3)
        for j in range(3)
    )
