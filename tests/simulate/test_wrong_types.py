"""Whatever stands where a number, a name or a list is expected: a sentence of ours, never a bare error of Python's."""

import contextlib
import inspect

import numpy as np
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


@pytest.mark.parametrize("integrator", ["auto", "rk4", "dop853"])
def test_efforts_over_time_are_tables(integrator):
    model = al.library.two_link()
    options = {"duration": 0.1, "step": 0.01 if integrator == "rk4" else None, "integrator": integrator}
    for shape in ((11, 2), (1, 2)):
        with pytest.raises(
            al.ArgumentError, match=r"for one motion, expected one of \(2,\), or one for each"
        ):
            al.simulate(model, [0.1, 0.2], efforts=np.zeros(shape), **options)
    with pytest.raises(al.ArgumentError, match=r"efforts has shape \(2, 2\) for a batch \(3,\) of motions"):
        al.simulate(model, np.zeros((3, 2)), efforts=np.zeros((2, 2)), **options)
    for shape in ((2,), (1, 2), (3, 2)):
        al.simulate(
            model, np.zeros((3, 2)), efforts=np.zeros(shape), duration=0.1, step=0.01, integrator="rk4"
        )


@pytest.mark.parametrize("start", [1e300, -1e17])
def test_times_that_numbers_cannot_tell_apart(start):
    with pytest.raises(al.ArgumentError, match="apart; expected a time nearer to zero"):
        al.simulate(al.library.two_link(), duration=0.1, step=0.01, start=start)


def test_an_ensemble_whose_function_returns_nothing():
    with pytest.raises(al.ArgumentError, match="ensemble: vary returned None, expected what differs"):
        al.ensemble(al.library.two_link(), lambda rng: None, members=2, duration=0.1, step=0.01)
    many = al.ensemble(al.library.two_link(), lambda rng: {}, members=2, duration=0.1, step=0.01)
    for wrong in (1.5, -0.1, float("nan"), []):
        with pytest.raises(al.ArgumentError, match=r"quantiles: probabilities are .*, expected 0 to 1"):
            many.quantiles(wrong)
    with pytest.raises(al.ArgumentError, match="quantiles: probabilities is 'x', expected numbers"):
        many.quantiles("x")
