"""Energy and momentum stay what they are in free motion, up to the order of the integrator."""

import numpy as np
import pytest
from dynamics_helpers import observed_order, runge_kutta, states, tree, without_friction

from alembert import Free, Inertia, ModelBuilder

COUNTS = [80, 160, 320]


@pytest.fixture(scope="module")
def model():
    """Springs, armature and rotors stay: they store energy, and inner forces have no part in the momentum."""
    return without_friction(tree("floating")).replace(gravity=(0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def motions(model):
    q, v, _ = states(model, 4, seed=2)
    v = 0.4 * v
    return q, v, [runge_kutta(model, q, v, duration=0.2, steps=n) for n in COUNTS]


QUANTITIES = {
    "energy": lambda m, q, v: m.energy(q, v)[..., None],
    "angular momentum": lambda m, q, v: m.momentum(q, v)[..., :3],
    "linear momentum": lambda m, q, v: m.momentum(q, v)[..., 3:],
}


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_drift_has_the_order_of_the_integrator(model, motions, quantity):
    """Order 4 for the state; invariants drift at order 4, or 5 where the leading error keeps them."""
    q0, v0, ends = motions
    value = QUANTITIES[quantity]
    start = value(model, q0, v0)
    drifts = [float(np.max(np.abs(value(model, q, v) - start))) for q, v in ends]
    assert 3.6 < observed_order(drifts, COUNTS) < 5.6
    assert drifts[-1] < 1e-4 * np.max(np.abs(start))


def test_the_centre_of_mass_moves_evenly(model, motions):
    q0, v0, ends = motions
    q, _ = ends[-1]
    expected = model.center_of_mass(q0) + 0.2 * model.momentum(q0, v0)[..., 3:] / model.mass
    moved = np.max(np.abs(expected - model.center_of_mass(q0)))
    np.testing.assert_allclose(model.center_of_mass(q), expected, rtol=0, atol=1e-4 * moved)


def test_intermediate_axis():
    """Dzhanibekov's body, I = (1, 2, 3): the half period of the flip in closed form (elliptic integral)."""
    builder = ModelBuilder("nut", gravity=(0.0, 0.0, 0.0))
    builder.body("nut", Inertia(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 2.0, 0.0, 0.0, 3.0)), joint=Free())
    model = builder.build()
    v0 = np.array([0.01, 2.0, 0.01, 0.0, 0.0, 0.0])
    _, v = runge_kutta(model, model.neutral(), v0, duration=10.977572939663, steps=4000)
    # h = 2.7e-3 s and rates of 2 rad/s: (2 h)^4 = 9e-10, grown by the instability by exp(2 t / sqrt(3)) of
    # the small components until the flip, and back: the slow components see about 1e-7
    np.testing.assert_allclose(v, (-0.01, -2.0, 0.01, 0, 0, 0), rtol=0, atol=1e-6)
