"""Published mechanisms, and what their singular positions do; more of them are cases of `alembert.verify`."""

import numpy as np
import pytest
from constraint_helpers import Z, four_bars, integrate, parallelogram

from alembert import Inertia, ModelBuilder, Revolute
from alembert.verify import discover, run_case
from alembert.verify.mechanisms import bricard, nikravesh


def test_the_published_motion_through_singular_positions():
    """A case too slow for the quick ones that `tests/verify` runs, kept here: it passes where all bars are in line."""
    outcome = run_case(discover()["a02_four_bars_motion"])
    assert outcome.status == "passed", outcome.message


def test_independent_coordinates_choose_the_slide():
    """Of Nikravesh's mechanism: what has no part in the loop is independent."""
    analysis = nikravesh().constraint_analysis(np.zeros(4))
    assert analysis.redundant == {"R5": 3}
    assert "T1" in nikravesh().independent_coordinates(np.zeros(4)).names


def test_four_bar_parallelogram():
    """All posts turn alike and beams translate: one equation, I t'' = g s sin t, with I = sum of m."""
    for windows in (1, 2):
        model = four_bars(windows)
        t, w = 0.6, -1.3
        q, v = parallelogram(model, t, w)
        found = model.constrained_dynamics(q, v, np.zeros(model.nv))
        posts, beams = windows + 1, windows
        inertia, moment = posts / 3 + beams, posts / 2 + beams
        expected = 9.81 * moment * np.sin(t) / inertia  # angle from upright, turning to -x
        np.testing.assert_allclose(found.accelerations, parallelogram(model, 0, expected)[1], rtol=1e-12)
        assert model.constraint_analysis(q).degrees_of_freedom == 1
        np.testing.assert_allclose(
            model.reduced_mass_matrix(q, independent=["foot0"]), [[inertia]], rtol=1e-13
        )


def test_four_bar_against_freudenstein():
    """Unequal bars: Freudenstein's equation relates the two cranks."""
    a, b, c, d = 0.4, 1.1, 0.9, 1.0  # crank, coupler, rocker, ground
    builder = ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    builder.body("crank", Inertia.rod(1.0, (0, 0, 0), (a, 0, 0)), joint=Revolute(Z), joint_name="in")
    builder.body(
        "coupler",
        Inertia.rod(1.0, (0, 0, 0), (b, 0, 0)),
        joint=Revolute(Z),
        joint_name="pin",
        parent="crank",
        placement=(a, 0, 0),
    )
    builder.body(
        "rocker",
        Inertia.rod(1.0, (0, 0, 0), (c, 0, 0)),
        joint=Revolute(Z),
        joint_name="out",
        placement=(d, 0, 0),
    )
    builder.frame("end", "coupler", (b, 0, 0)).frame("head", "rocker", (c, 0, 0))
    builder.loop("joint", Revolute(Z), "head", "end")
    model = builder.build()
    for crank in np.linspace(0, 2 * np.pi, 7):
        state = model.assemble([crank, 0.5 - crank, 1.5], fixed=["in"])
        t, p = state.q[0], state.q[2]
        left = d / a * np.cos(p) - d / c * np.cos(t) + (a * a - b * b + c * c + d * d) / (2 * a * c)
        assert abs(left - np.cos(t - p)) < 1e-11
        assert state.residual < 1e-12
    # energy along the motion: order 4, so small steps give much
    state = model.assemble([0.3, 0.5, 1.5], [2.0, 0, 0], fixed=["in"])
    before = model.energy(state.q, state.v)
    q, v = integrate(model, state.q, state.v, 0.5, 100)
    assert abs(model.energy(q, v) - before) < 1e-6


def test_n_four_bar_starts_as_published_and_keeps_its_energy():
    """IFToMM A02, N = 2: from upright with B0 at +1 m/s; 35.835 J. Then against the pendulum that it is."""
    model = four_bars(2)
    q, v = parallelogram(model, 0.0, -1.0)
    np.testing.assert_allclose(model.energy(q, v), 35.835, rtol=1e-12)
    np.testing.assert_allclose(
        model.frame_velocity(q, v, "top0", reference="local_world_aligned")[3:], [1, 0, 0], atol=1e-15
    )
    steps, duration = 100, 0.5
    end_q, end_v = integrate(model, q, v, duration, steps)
    # the one equation t'' = k sin t, in many small steps
    k, t, w = 9.81 * (1.5 + 2) / (1 + 2), 0.0, -1.0
    h = duration / 2000
    for _ in range(2000):
        k1, l1 = w, k * np.sin(t)
        k2, l2 = w + h / 2 * l1, k * np.sin(t + h / 2 * k1)
        k3, l3 = w + h / 2 * l2, k * np.sin(t + h / 2 * k2)
        k4, l4 = w + h * l3, k * np.sin(t + h * k3)
        t, w = t + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), w + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
    expected_q, expected_v = parallelogram(model, t, w)
    np.testing.assert_allclose(end_q, expected_q, atol=1e-7)
    np.testing.assert_allclose(end_v, expected_v, atol=1e-6)
    np.testing.assert_allclose(model.energy(end_q, end_v), 35.835, rtol=1e-7)


def test_the_flat_four_bar_is_singular():
    """All bars in one line: from there posts may turn alike or against each other."""
    model = four_bars(1).replace(name="flat")
    q, v = parallelogram(model, 0.5, 0.0)
    tau = np.zeros(model.nv)
    model.constrained_dynamics(q, v, tau)
    flat, _ = parallelogram(model, np.pi / 2, 0.0)
    assert model.constraint_analysis(flat).degrees_of_freedom == 2
    with pytest.warns(
        UserWarning,
        match=r"rank 1 at q = \[.*\] and 2 elsewhere: it is a singular configuration of 'window0'",
    ):
        model.constrained_dynamics(flat, v, tau)
    # moving through it is another matter: near by, the digits are still there
    close, v = parallelogram(model, np.pi / 2 - 1e-5, 1.0)
    a = model.constrained_dynamics(close, v, tau).accelerations
    inertia, moment = 2 / 3 + 1, 1 + 1
    expected = 9.81 * moment * np.sin(np.pi / 2 - 1e-5) / inertia
    np.testing.assert_allclose(a, parallelogram(model, 0, expected)[1], rtol=1e-5)


def test_a_singular_start_is_found_out():
    model = four_bars(1).replace(name="flat at first")
    flat, v = parallelogram(model, np.pi / 2, 0.0)
    tau = np.zeros(model.nv)
    model.constraint_analysis(flat)
    model.forward_dynamics(flat, v, tau)
    q, v = parallelogram(model, 0.5, 0.3)
    with pytest.warns(
        UserWarning,
        match=r"rank 2 at q = .* but 1 at an earlier configuration, which was singular for 'window0'",
    ):
        a = model.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(model.forward_dynamics(q, v, tau), a, rtol=1e-10)


def test_bricard_is_redundant_and_moves():
    model = bricard()
    q = np.zeros(5)
    found = model.constraint_analysis(q)
    assert (found.rows, found.rank, found.degrees_of_freedom, found.redundant) == (5, 4, 1, {"last": 1})
    assert str(found) == "5 constraint rows of rank 4, 1 degrees of freedom left; redundant: 1 of 5 of 'last'"
    tau = np.zeros(5)
    with pytest.warns(UserWarning, match="not unique: 1 of the 5 rows of 'last' follow from the others"):
        first = model.constrained_dynamics(q, np.zeros(5), tau)
    assert np.linalg.norm(first.accelerations) > 1
    G = model.constraint_jacobian(q)
    np.testing.assert_allclose(G @ first.accelerations, 0, atol=1e-13)
    before = model.energy(q, np.zeros(5))
    end_q, end_v = integrate(model, q, np.zeros(5), 0.4, 80)
    assert np.linalg.norm(end_q) > 0.3
    assert model.constraint_analysis(end_q).rank == 4
    assert abs(model.energy(end_q, end_v) - before) < 1e-6
    np.testing.assert_allclose(model.constraint_residual(end_q), 0, atol=1e-12)
