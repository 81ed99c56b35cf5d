"""Poles, modes, responses and structure of linear models against closed forms."""

import numpy as np
import pytest

from alembert import Inertia, ModelBuilder, library
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.joints import Friction, Prismatic, Spring
from alembert.linear import linearize
from refusals import refusal

G = 9.81


def masses(count, stiffness=100.0, mass=2.0, *, damping=0.0, ground=True):
    """Equal masses on a line with equal springs between them, the first to the ground."""
    builder = ModelBuilder("masses")
    for k in range(count):
        builder.body(
            f"m{k}",
            Inertia.point(mass, (0.0, 0.0, 0.0)),
            joint=Prismatic((1.0, 0.0, 0.0)),
            joint_name=f"x{k}",
            parent="world" if k == 0 else f"m{k - 1}",
            spring=Spring((stiffness,)) if ground or k else None,
            friction=Friction((damping,)) if damping and (ground or k) else None,
        )
    return builder.build()


# --- modes -----------------------------------------------------------------------------------------------------


def test_pendulum():
    linear = linearize(library.pendulum(mass=3.0, length=0.7), [0.0])
    w = np.sqrt(G / 0.7)
    np.testing.assert_allclose(linear.A, [[0, 1], [-(w**2), 0]], atol=1e-12)
    np.testing.assert_allclose(linear.B, [[0], [1 / (3.0 * 0.49)]], rtol=1e-12)
    (mode,) = linear.modes()
    assert (mode.kind, mode.damping, mode.stable) == ("oscillation", 0.0, False)
    assert mode.frequency == pytest.approx(w, rel=1e-13)
    assert mode.period == pytest.approx(2 * np.pi / w, rel=1e-13)
    upside_down = linearize(library.pendulum(mass=3.0, length=0.7), [np.pi]).modes()
    assert [mode.kind for mode in upside_down] == ["real", "real"]
    np.testing.assert_allclose(sorted(mode.pole.real for mode in upside_down), [-w, w], rtol=1e-12)
    assert sorted(upside_down.damping) == [-1.0, 1.0]


def test_damped_pendulum():
    m, l, d = 2.0, 0.5, 0.3
    (mode,) = linearize(library.pendulum(mass=m, length=l, damping=d), [0.0]).modes()
    w = np.sqrt(G / l)
    assert mode.frequency == pytest.approx(w, rel=1e-12)
    assert mode.damping == pytest.approx(d / (2 * m * l * l * w), rel=1e-11)
    assert mode.stable


def test_pendulum_swinging_along_an_angle():
    """At 60 degrees held by a torque, the frequency falls to sqrt(g cos(q)/l)."""
    model = library.pendulum(length=1.3)
    q = [np.pi / 3]
    (mode,) = linearize(model, q, tau=model.gravity_forces(q)).modes()
    assert mode.frequency == pytest.approx(np.sqrt(G * 0.5 / 1.3), rel=1e-12)


def test_cart_pole_has_a_rigid_mode_and_the_pendulum_on_a_moving_point():
    M, m, l = 1.7, 0.4, 0.6
    model = library.cart_pole(cart_mass=M, pole_mass=m, pole_length=l)
    modes = linearize(model, [0.3, 0.0]).modes()
    assert [mode.kind for mode in modes] == ["rigid", "oscillation"]
    assert modes[1].frequency == pytest.approx(np.sqrt(G / l * (1 + m / M)), rel=1e-12)
    # the centre of mass stays: (M + m) x + m l angle = 0
    np.testing.assert_allclose(modes[1].shape, [-m * l / (M + m), 1.0], rtol=1e-12)
    np.testing.assert_allclose(modes.rigid[0].shape, [1.0, 0.0], atol=1e-12)
    assert np.isnan(modes[0].damping)
    assert "rigid" in str(modes)


def test_acrobot_modes_satisfy_their_characteristic_equation():
    """Two uniform rods hanging: det(K - w^2 M) with M, K written out."""
    (m1, m2), (l1, l2) = (1.2, 0.8), (0.9, 1.4)
    modes = linearize(library.acrobot(masses=(m1, m2), lengths=(l1, l2)), [-np.pi / 2, 0.0]).modes()
    a, b, c = m1 * l1**2 / 3 + m2 * l1**2, m2 * l1 * l2 / 2, m2 * l2**2 / 3
    M = np.array([[a + 2 * b + c, b + c], [b + c, c]])
    k1, k2 = G * (m1 * l1 / 2 + m2 * l1), G * m2 * l2 / 2
    K = np.array([[k1 + k2, k2], [k2, k2]])
    expected = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)))
    np.testing.assert_allclose(modes.frequencies, np.sort(expected), rtol=1e-12)
    for mode in modes:
        np.testing.assert_allclose(K @ mode.shape, mode.frequency**2 * M @ mode.shape, atol=1e-10)


def test_a_chain_of_masses():
    """omega = 2 sqrt(k/m) sin((2 j - 1) pi/(2 (2 n + 1)))."""
    n, k, m = 5, 100.0, 2.0
    modes = linearize(masses(n, k, m), np.zeros(n)).modes()
    j = np.arange(1, n + 1)
    expected = 2 * np.sqrt(k / m) * np.sin((2 * j - 1) * np.pi / (2 * (2 * n + 1)))
    np.testing.assert_allclose(modes.frequencies, expected, rtol=1e-11)


def test_repeated_frequencies_keep_independent_shapes():
    builder = ModelBuilder("twins")
    for name in ("left", "right", "middle"):
        builder.body(
            name, Inertia.point(2.0, (0, 0, 0)), joint=Prismatic((1.0, 0.0, 0.0)), spring=Spring((8.0,))
        )
    modes = linearize(builder.build(), np.zeros(3)).modes()
    np.testing.assert_allclose(modes.frequencies, 2.0, rtol=1e-12)
    assert np.linalg.matrix_rank(modes.shapes) == 3


def test_damped_rigid_modes():
    """A free row of damped masses: one rigid-body mode, no cloud of small poles around zero."""
    modes = linearize(masses(4, damping=0.5, ground=False), np.zeros(4)).modes()
    assert [mode.kind for mode in modes] == ["rigid"] + 3 * ["oscillation"]
    np.testing.assert_allclose(modes[0].shape, [1, 0, 0, 0], atol=1e-7)  # all later ones are relative
    assert all(0 < mode.damping < 1 for mode in modes.modes[1:])


def test_poles_along_a_trajectory():
    model = library.pendulum()
    q = np.linspace(0, 1, 5)[:, None]
    linear = linearize(model, q, tau=model.gravity_forces(q))
    assert linear.batch == (5,)
    np.testing.assert_allclose(linear.poles()[:, 1].imag, np.sqrt(G * np.cos(q[:, 0])), rtol=1e-12)
    assert linear[2].modes()[0].frequency == pytest.approx(np.sqrt(G * np.cos(0.5)), rel=1e-12)
    assert linear[1:3].batch == (2,)
    assert [x.A[1, 0] for x in linear] == list(linear.A[:, 1, 0])
    np.testing.assert_array_equal(
        linear[..., 2].A, linear.A[2]
    )  # an index is one of points, not of matrices' rows
    assert refusal(lambda: linear[:, 0]) == (
        "LinearModel: (slice(None, None, None), 0) is no index of a batch of shape (5,)"
    )
    assert refusal(linear.modes) == (
        "modes: the linear model is a batch of shape (5,); take one point, linear[0]"
    )
    assert refusal(lambda: linear[0][0]) == "LinearModel: this is one point, there is no batch to take from"
    assert str(linear) == "<LinearModel of 'pendulum': 2 states, 1 input, 2 outputs, batch (5,)>"


# --- responses -------------------------------------------------------------------------------------------------


def test_frequency_response_of_an_oscillator():
    k, m, d = 50.0, 2.0, 1.5
    linear = linearize(masses(1, k, m, damping=d), [0.0], outputs=["q", "a"])
    w = np.array([0.1, 1.0, 5.0, 30.0])
    found = linear.frequency_response(w)
    expected = 1 / (k - m * w**2 + 1j * d * w)
    np.testing.assert_allclose(found.response[:, 0, 0], expected, rtol=1e-12)
    np.testing.assert_allclose(found.response[:, 1, 0], -(w**2) * expected, rtol=1e-11)
    np.testing.assert_allclose(found.magnitude_db[:, 0, 0], 20 * np.log10(abs(expected)), rtol=1e-12)
    np.testing.assert_allclose(found.phase_deg[:, 0, 0], np.degrees(np.angle(expected)), rtol=1e-9)
    assert (found.output_names, found.input_names) == (("q:x0", "a:x0"), ("x0",))


def test_frequency_response_at_a_pole():
    linear = linearize(masses(1, ground=False), [0.0])
    assert refusal(linear.frequency_response, [1.0, 0.0], error=NumericalError).startswith(
        "frequency_response: one of the frequencies is a pole on the imaginary axis; the poles are 0"
    )


def test_simulation_is_exact():
    w = np.sqrt(50.0)
    linear = linearize(masses(1, 100.0, 2.0), [0.0])
    t = np.array([0.0, 0.1, 0.2, 0.5, 1.0])
    free = linear.simulate([0.3, 0.0], t)
    np.testing.assert_allclose(free.x[:, 0], 0.3 * np.cos(w * t), atol=1e-12)
    pushed = linear.simulate([0.0, 0.0], t, u=[4.0])
    np.testing.assert_allclose(pushed.y[:, 0], 0.04 * (1 - np.cos(w * t)), atol=1e-12)
    assert refusal(linear.simulate, [0.0, 0.0], [0.0, 0.0]).startswith(
        "simulate: t has shape (2,), expected inc"
    )
    assert refusal(linear.simulate, [0.0], t) == "simulate: x0 has shape (1,), expected (2,)"


def test_root_locus_of_position_and_rate_feedback():
    m, k = 2.0, 8.0
    linear = linearize(masses(1, k, m), [0.0], outputs=["q"])
    gains = np.array([0.0, 1.0, 10.0])
    found = linear.root_locus([[1.0]], gains)
    np.testing.assert_allclose(np.sort(found.poles.imag)[:, 1], np.sqrt((k + gains) / m), rtol=1e-12)
    rate = linear.root_locus([0.0, 1.0], gains)  # u = -g v
    np.testing.assert_allclose(np.prod(rate.poles, axis=1).real, k / m, rtol=1e-12)
    np.testing.assert_allclose(np.sum(rate.poles, axis=1).real, -gains / m, rtol=1e-12, atol=1e-12)
    assert refusal(linear.root_locus, [[1.0, 2.0, 3.0]]) == (
        "root_locus: feedback has shape (1, 3), expected (1, 1) for the outputs or (1, 2) for the state"
    )
    fine = linear.root_locus([0.0, 1.0]).poles  # branches do not jump
    assert np.abs(np.diff(fine, axis=0))[:140].max() < 1.0


def test_root_locus_with_direct_feed_through():
    """Feeding back the acceleration adds mass: m a = -k x - g a."""
    m, k, g = 2.0, 8.0, 3.0
    found = linearize(masses(1, k, m), [0.0], outputs=["a"]).root_locus([[1.0]], [g])
    np.testing.assert_allclose(np.abs(found.poles), np.sqrt(k / (m + g)), rtol=1e-12)
    linear = linearize(masses(1, k, m), [0.0], outputs=["a"])
    assert refusal(linear.root_locus, [[1.0]], [-m], error=NumericalError).startswith(
        "root_locus: at the gain -2 the direct part of the outputs feeds the inputs back to themselves"
    )


# --- structure -------------------------------------------------------------------------------------------------


def test_controllable_and_observable():
    upright = linearize(library.acrobot(), [np.pi / 2, 0.0], outputs=["elbow"])
    assert upright.controllable()
    assert upright.observable()
    satellite = library.satellite()
    linear = linearize(satellite, satellite.neutral(), outputs=["frame:world.position"])
    reached = linear.controllable()
    # wheels exchange momentum with the body: six states, not twelve, and no translation beyond that
    assert (bool(reached), reached.rank, reached.size) == (False, 6, 18)
    np.testing.assert_allclose(reached.lost @ reached.lost.T, np.eye(12), atol=1e-12)
    np.testing.assert_allclose(reached.lost @ linear.B, 0, atol=1e-12)
    np.testing.assert_allclose(reached.lost @ linear.A @ linear.B, 0, atol=1e-12)
    assert "lost: " in str(reached)
    assert linear.observable().rank == 0


def test_symmetric_legs_are_not_controllable_by_a_common_torque():
    """Both hips driven alike never move against each other: PBH agrees."""
    model = library.branched_acrobot()
    linear = linearize(model, [-np.pi / 2, 0.0, 0.0])
    assert linear.controllable()
    common = linear.B.sum(axis=1, keepdims=True)
    from alembert.control.reachability import reachability

    found = reachability(linear.A, common, linear.state_names, 1e-10)
    assert found.rank == 4
    worst = min(
        np.linalg.svd(np.hstack([s * np.eye(6) - linear.A, common]), compute_uv=False)[-1]
        for s in linear.poles()
    )
    assert worst < 1e-12


def test_a_long_chain_is_controllable_from_its_end():
    """Twenty-four states, where the rank of the controllability matrix would be lost to rounding."""
    linear = linearize(masses(12), np.zeros(12), inputs=["x11"])
    found = linear.controllable()
    assert found
    assert "rank 24 of 24" in str(found)


# --- elsewhere -------------------------------------------------------------------------------------------------


def test_to_control():
    control = pytest.importorskip("control")
    model = library.cart_pole()
    linear = linearize(model, [0.0, 0.0], outputs=["frame:tip.position", "q"])
    system = linear.to_control()
    assert system.state_labels == ["q_slide", "q_hinge", "v_slide", "v_hinge"]
    assert system.input_labels == ["motor"]
    assert system.output_labels[0] == "tip_position_x"
    np.testing.assert_array_equal(system.A, linear.A)
    w = np.array([0.5, 2.0, 20.0])
    found = np.moveaxis(control.frequency_response(system, w).frdata, -1, 0)
    np.testing.assert_allclose(linear.frequency_response(w).response, found, rtol=1e-9, atol=1e-12)


def test_to_control_without_python_control(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "control", None)
    linear = linearize(library.pendulum(), [0.0])
    assert refusal(linear.to_control, error=UnsupportedError) == (
        "to_control: python-control is not installed; pip install alembert[control]"
    )


def test_printing():
    linear = linearize(library.pendulum(), [0.0])
    text = str(linear)
    for part in (
        "<LinearModel of 'pendulum': 2 states, 1 input, 2 outputs>",
        "q:pivot'",
        "-9.81",
        "oscillation",
    ):
        assert part in text
    assert refusal(linear.table, "Z") == "table: no matrix 'Z', expected one of A, B, C, D, E, F"


def test_a_point_that_is_no_equilibrium_is_called_so():
    """Its frequencies are not those of an oscillation about it."""
    pendulum = library.pendulum()
    leaning = linearize(pendulum, [1.0])
    assert leaning.remark.startswith("not about an equilibrium: pivot accelerates by -8.2")
    assert leaning.remark in str(leaning)
    held = linearize(pendulum, [1.0], tau=pendulum.gravity_forces([1.0]))
    assert held.remark == linearize(pendulum, [0.0]).remark == ""


def test_linear_models_become_systems_of_control():
    model = library.make("cart_pole")
    linear = linearize(model, model.neutral())
    system = linear.to_statespace()
    np.testing.assert_array_equal(system.A, linear.A)
    assert system.input_names == linear.input_names
    assert system.state_units == linear.state_units
    with pytest.raises(ArgumentError, match="to_statespace: the linear model is a batch"):
        linearize(model, np.stack([model.neutral()] * 2)).to_statespace()
