"""Laws that give numbers which are not finite are named, with the time; a motion that runs away is not laid on them."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, NumericalError
from alembert.simulate import Drive, ForceElement, Sampled, SymbolicLaw

T0 = 0.35
"""from when on nothing is a number"""
WAYS = [
    {"integrator": "dop853"},
    {"integrator": "radau"},
    {"integrator": "rk4", "step": 0.01},
    {"integrator": "variational", "step": 0.01},
]
t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
LAW = ca.Function("law", [t, q, v], [ca.vertcat(ca.sqrt(T0 - t), 0)])
LIMITED = {"shoulder": Drive(limit=5.0)}


def late(width, value=np.nan):
    return lambda t, q, v: np.where((t > T0) & (np.arange(width) == 0), value, 0.0)


@pytest.fixture(scope="module")
def model():
    return al.library.two_link()


def told(model, message, **options):
    with pytest.raises(NumericalError, match=message) as caught:
        al.simulate(model, [0.1, 0.2], duration=1.0, **options)
    time = float(str(caught.value).rsplit("t = ", 1)[1].removesuffix(" s"))
    assert T0 - 1e-9 < time < T0 + 0.16
    assert "smaller step" not in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_controllers(model, way, value):
    message = f"controller gives {value} for 'shoulder' at t = "
    told(model, message, controller=late(2, value), **way)
    told(model, f"a sampled {message}", controller=Sampled(late(2, value), 0.1), **way)
    told(model, message, controller=late(2, value), drives={"shoulder": Drive(lag=0.05)}, **way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("drives", [None, LIMITED])
def test_expressions(model, way, drives):
    """A limit is no number either: of NaN, fmin and fmax would make the largest effort of the drive."""
    told(model, "a controller gives nan for 'shoulder'", controller=LAW, drives=drives, **way)


def test_sampled_expressions(model):
    law = Sampled(SymbolicLaw(lambda t, m: {"efforts": ca.vertcat(ca.sqrt(T0 - t), 0)}), 0.1)
    for options in ({}, {"interval": 0.1}, {"drives": LIMITED}):
        told(model, "a sampled controller gives nan", controller=law, integrator="rk4", step=0.01, **options)


@pytest.mark.parametrize("way", WAYS[:3])
def test_what_else_acts(model, way):
    told(model, "the wrench on 'lower' gives nan for 'mx'", wrenches={"lower": late(6)}, **way)
    force = ForceElement(("lower",), wrenches=lambda t, x, V: [ca.vertcat(0, 0, 0, ca.sqrt(T0 - t), 0, 0)])
    told(model, "a force gives nan for 'shoulder'", forces=[force], **way)
    motion = {"shoulder": lambda t: (np.nan if t > T0 else 0.1, 0.0, 0.0)}
    told(model, "the prescribed motion gives nan for 'shoulder'", prescribed=motion, **way)


def test_at_once(model):
    with pytest.raises(NumericalError, match="simulate: a controller gives nan for 'elbow' at t = 0 s"):
        al.simulate(model, duration=1.0, controller=lambda t, q, v: {"elbow": np.nan})
    with pytest.raises(ArgumentError, match="simulate: efforts is inf for 'elbow', expected finite numbers"):
        al.simulate(model, duration=1.0, efforts=[0.0, np.inf])
    with pytest.raises(ArgumentError, match=r"the wrench on 'lower' is .*, expected finite numbers"):
        al.simulate(model, duration=1.0, wrenches={"lower": np.full(6, np.nan)})


def test_a_law_of_the_state(model):
    """Where it is not defined: the pendulum swings beyond the vertical."""

    def law(t, q, v):
        return np.array([np.sqrt(q[0]) if q[0] >= 0 else np.nan, 0.0])

    for way in WAYS[:3]:
        with pytest.raises(NumericalError, match=r"a controller gives nan for 'shoulder' at t = 1\.4"):
            al.simulate(model, [1.5, 0.2], duration=2.0, controller=law, **way)


def test_motions_that_run_away_are_lost_themselves(model):
    with (
        pytest.warns(RuntimeWarning, match="overflow"),
        pytest.raises(NumericalError, match=r"not finite after t = 0.02 s.*; a smaller step may help"),
    ):
        al.simulate(
            model,
            [1.5, 0.2],
            duration=2.0,
            step=0.01,
            integrator="rk4",
            controller=lambda t, q, v: 1e3 * v**3,
        )


def test_messages_may_be_missing(model):
    """NaN is what flight software posts where nothing is known."""
    law = Sampled(lambda t, m: {"x": np.array([np.nan])}, 0.1, posts={"x": 0.0})
    run = al.simulate(model, duration=0.3, step=0.01, controller=law)
    assert np.isnan(run.measurements["x"].values[1:]).all()


def test_batches_and_ensembles(model):
    """Where most motions get no answer, the law is told; where some do not, they fail by number."""
    starts = [[0.1 * k, 0.0] for k in range(10)]
    options = {"duration": 0.2, "step": 0.01}
    lost = {"controller": lambda t, q, v: np.full(2, np.nan)}
    with pytest.raises(
        NumericalError, match="a controller gives nan for 'shoulder' at t = 0 s in 10 of 10 motions"
    ):
        al.simulate(model, starts, integrator="rk4", **options, **lost)
    with pytest.raises(
        NumericalError, match=r"members failed alike, .*: a controller gives nan for 'shoulder' at t = 0 s"
    ):
        al.ensemble(model, {"q0": starts}, **options, **lost)
    law = Sampled(
        SymbolicLaw(
            lambda t, m, at: {"efforts": ca.sqrt(0.85 - at.q)},
        ),
        0.1,
        state=True,
    )
    one = al.ensemble(model, {"q0": starts}, **options, controller=law)
    assert list(one.failures) == [9]
