"""Copies of a task and their voter: failures change nothing, or what they must."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, UnsupportedError
from alembert import spacecraft as sc

PERIOD = 0.5


def count(symbolic=True):
    """A task with memory: the time, and how often it was asked."""

    def law(t, m):
        clock = ca.vertcat(t, -t) if symbolic else np.array([t, -t])
        return {"count": m["count"] + 1, "clock": clock}

    function = al.simulate.SymbolicLaw(law) if symbolic else law
    return sc.FlightTask(
        "count", function, PERIOD, ("count",), {"count": 0.0, "clock": np.zeros(2)}, delay=0.0
    )


def flown(tasks):
    builder = al.ModelBuilder("slide", gravity=(0, 0, 0))
    builder.body("slide", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="slide")
    controllers = sc.FlightSoftware(tasks).controllers()
    model = builder.build()
    run = al.simulate(
        model, duration=5.0, step=PERIOD, integrator="rk4", controller=controllers, progress=False
    )
    return {name: samples.values for name, samples in run.measurements.items()}


@pytest.mark.parametrize("symbolic", [True, False])
def test_a_failed_copy_is_outvoted(symbolic):
    plain = flown([count(symbolic)])
    for options in (
        {"copies": 2, "failures": {0: 2.0}},
        {"copies": 3, "failures": {1: 2.0}},
        {"copies": 3, "failures": {1: 2.0}, "mode": "stuck"},
        {"copies": 3, "failures": {0: 2.0, 2: 3.0}},
    ):
        found = flown(sc.redundant(count(symbolic), **options))
        for name in ("count", "clock"):
            np.testing.assert_array_equal(found[name], plain[name])
        failed = next(iter(options["failures"]))
        late = found[f"count_{failed}"][-1]
        assert np.isnan(late) if options.get("mode") is None else late == 4.0


def test_what_no_copy_gives_is_no_number():
    found = flown(sc.redundant(count(), 2, failures={0: 2.0, 1: 3.0}))
    assert np.isnan(found["count"][-1])
    assert found["count"][5] == 6.0  # at 2.5 s, by the second copy
    both = flown(sc.redundant(count(), 3, failures={0: 2.0, 1: 3.0}, mode="stuck"))
    assert both["clock"][-1][0] == 2.5  # two are stuck, at 1.5 and 2.5 s: the middle of these and 5 s


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sc.redundant(count(), 4), ArgumentError, "redundant 'count': copies is 4, expected 2 or 3"),
        (
            lambda: sc.redundant(count(), mode="loud"),
            ArgumentError,
            "mode is 'loud', expected 'silent' or 'stuck'",
        ),
        (
            lambda: sc.redundant(count(), failures={3: 1.0}),
            ArgumentError,
            "copy 3 fails at 1.0, expected a copy",
        ),
        (
            lambda: sc.redundant(sc.FlightTask("idle", lambda t, m: {}, 1.0)),
            ArgumentError,
            "redundant 'idle': the task writes nothing to vote on",
        ),
        (
            lambda: sc.redundant(
                sc.FlightTask(
                    "f", ca.Function("f", [t := ca.SX.sym("t")], [t], ["t"], ["x"]), 1.0, (), {"x": 0.0}
                )
            ),
            UnsupportedError,
            "redundant 'f': its function is a casadi.Function",
        ),
    ],
)
def test_bad_redundancy(make, error, message):
    with pytest.raises(error, match=message):
        make()
