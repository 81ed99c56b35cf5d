"""Whatever stands where a number, a name or a list is expected: a sentence of ours, never a bare error of Python's."""

import contextlib
import inspect

import pytest

import alembert as al
from alembert import AlembertError
from alembert.model import Sensor
from alembert.simulate import (
    Bushing,
    CentralGravity,
    ContactFriction,
    Drag,
    Drive,
    Event,
    Gear,
    GravityGradient,
    JointStops,
    Measured,
    PlaneImpact,
    Sampled,
    SoftStop,
    SpringDamper,
    Table,
)

WRONG = (float("nan"), -1.0, "a", None, [1.0], object())

MAKERS = [
    (SpringDamper, ("world", "tip", 1.0)),
    (Bushing, ("world", "tip", (1.0,) * 6)),
    (Drag, ("tip", 1.0, 1.0)),
    (SoftStop, (1.0,)),
    (Table, ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], "linear", "zero")),
    (Drive, ()),
    (Gear, (2.0, 1.0)),
    (Sampled, (lambda t, q, v: v, 0.1)),
    (Event, (lambda t, q, v: q[0],)),
    (JointStops, ()),
    (PlaneImpact, ("tip",)),
    (CentralGravity, (1.0,)),
    (GravityGradient, (1.0,)),
    (ContactFriction, ("loop", 0.1)),
    (Measured, (Sensor("angle", "joint_position", "elbow"), 0.1)),
    (al.Inertia.rod, (1.0, (0, 0, 0), (1, 0, 0))),
    (al.Inertia.box, (1.0, (1, 1, 1))),
    (al.Inertia.cylinder, (1.0, 1.0, 1.0)),
    (al.Inertia.sphere, (1.0, 1.0)),
    (al.Rotor, (10.0, 1e-3, (0, 0, 1))),
]


@pytest.mark.parametrize(("make", "given"), MAKERS, ids=lambda x: getattr(x, "__qualname__", ""))
def test_wrong_types_are_told(make, given):
    names = list(inspect.signature(make).parameters)
    right = dict(zip(names, given, strict=False))
    first = make(**right)
    for name in names:
        for wrong in WRONG:
            with contextlib.suppress(AlembertError):  # names may be anything until they are looked up
                made = make(**right | {name: wrong})
                assert isinstance(made, type(first))
