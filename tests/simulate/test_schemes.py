"""Fixed-step schemes: their tableaus, their order on every kind of configuration, and what they leave unit."""

from fractions import Fraction

import numpy as np
import pytest
from simulate_helpers import MODELS, distance, model, slope, state

from alembert.simulate import simulate
from alembert.simulate.schemes import (
    ADAMS_BASHFORTH,
    ADAMS_MOULTON,
    CLASSICAL,
    MIDPOINT,
    SCHEMES,
    Tableau,
)

FIXED = [*SCHEMES, "variational", "generalised_alpha"]
DURATIONS = {"ball": 0.5, "craft": 0.5, "bench": 0.1}
"""s; short enough for the steps below to be in the range where the order shows"""


@pytest.mark.parametrize(("tableau", "order"), [(MIDPOINT, 2), (CLASSICAL, 4)])
def test_tableaus_fulfil_the_order_conditions(tableau, order):
    assert tableau.order() == order
    for factors, row in zip(tableau.factors, (*tableau.a, tableau.b), strict=False):
        total = [sum((f[j] for f in factors if j < len(f)), Fraction(0)) for j in range(len(row))]
        assert total == list(row)  # where configurations add, the factors are the classical method


def test_a_wrong_tableau_is_found_out():
    wrong = Tableau("wrong", CLASSICAL.a, tuple(Fraction(x, 8) for x in (1, 3, 3, 1)))
    assert wrong.order() == 2


def adams_order(weights, newest):
    """The order of a quadrature over (0, 1) with nodes newest, newest - 1, ...: exact for powers below it."""
    order = 0
    while True:
        moment = sum((w * Fraction(newest - j) ** order for j, w in enumerate(weights)), Fraction(0))
        if moment != Fraction(1, order + 1):
            return order
        order += 1


@pytest.mark.parametrize("order", ADAMS_BASHFORTH)
def test_adams_weights(order):
    assert adams_order(ADAMS_BASHFORTH[order], newest=0) == order
    assert adams_order(ADAMS_MOULTON, newest=1) == 4


@pytest.fixture(scope="module")
def references():
    """RK4 with a step so short that its error is below 1e-11."""
    found = {}
    for name in MODELS:
        d = DURATIONS[name]
        run = simulate(model(name), *state(name), duration=d, step=d / 4000, interval=d, integrator="rk4")
        found[name] = run.q[-1], run.v[-1]
    return found


COUNTS = {1: (100, 200, 400), 2: (40, 80, 160), 3: (40, 80, 160), 4: (40, 80, 160)}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("integrator", FIXED)
def test_order(references, name, integrator):
    """By regression over three steps. Errors of higher order bend the line by about one step ratio: +-0.35."""
    order = SCHEMES[integrator].order if integrator in SCHEMES else 2
    m, (q0, v0) = model(name), state(name)
    scale = 4 if integrator.startswith("adams") else 1
    d = DURATIONS[name]
    steps = [d / (scale * n) for n in COUNTS[order]]
    runs = [simulate(m, q0, v0, duration=d, step=h, interval=d, integrator=integrator) for h in steps]
    errors = [distance(m, run, *references[name]) for run in runs]
    assert errors[-1] < 0.05
    assert slope(errors, steps) == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize("integrator", FIXED)
def test_quaternions_stay_unit(integrator):
    run = simulate(model("craft"), *state("craft"), duration=5.0, step=0.01, integrator=integrator)
    # each step normalises, so that only the rounding of the last one is seen
    assert run.report.quaternion_error < 1e-15


def test_schemes_agree_when_the_dynamics_call_python():
    """The same scheme in Python and in machine code: bits differ by fused operations only."""
    m, (q0, v0) = model("ball"), state("ball")
    for integrator in SCHEMES:
        options = {"duration": 0.2, "step": 0.01, "integrator": integrator}
        compiled = simulate(m, q0, v0, efforts=np.full(m.nv, 0.3), **options)
        python = simulate(m, q0, v0, controller=lambda t, q, v: np.full(m.nv, 0.3), **options)
        np.testing.assert_allclose(python.q, compiled.q, rtol=0, atol=1e-12)
        np.testing.assert_allclose(python.v, compiled.v, rtol=0, atol=1e-11)
