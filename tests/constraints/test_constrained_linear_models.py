"""Linear models, equilibria and products of derivatives of models with loops."""

import numpy as np
import pytest
from constraint_helpers import closed, four_bars, parallelogram, possible_speeds

import alembert as al
from alembert import UnsupportedError

MODEL = four_bars(2)


def test_small_swings_of_a_hanging_row_of_windows():
    """One dof: (N + 1) rods about their ends and N bars on a circle, under gravity."""
    q, v = parallelogram(MODEL, np.pi, 0.0)
    linear = al.linearize(MODEL, q, v)
    assert linear.A.shape == (2, 2)
    omega2 = (3 * 9.81 / 2 + 2 * 9.81) / (3 / 3 + 2)
    np.testing.assert_allclose(np.sort(linear.poles().imag), [-np.sqrt(omega2), np.sqrt(omega2)], rtol=1e-12)
    np.testing.assert_allclose(linear.modes().modes[0].frequency, np.sqrt(omega2), rtol=1e-12)
    np.testing.assert_allclose(linear.mass_matrix, [[3 / 3 + 2]], rtol=1e-12)
    assert linear.state_names[0].startswith("q:")
    # the equilibrium is found from a guess that is off, and kept by no effort
    guess, _ = parallelogram(MODEL, np.pi - 0.2, 0.0)
    found = al.trim(MODEL, q=guess)
    np.testing.assert_allclose(np.cos(found.q[0]), -1, atol=1e-12)
    assert np.abs(MODEL.constraint_residual(found.q)).max() < 1e-10
    assert found.stability == "marginal"
    # tilted, it takes an effort of one joint
    held = al.trim(MODEL, q=parallelogram(MODEL, 0.3, 0.0)[0], fixed={"foot0": 0.3}, free=["q", "tau:foot0"])
    a = MODEL.forward_dynamics(held.q, held.v, held.tau)
    np.testing.assert_allclose(a, 0, atol=1e-8)
    np.testing.assert_allclose(held.tau[0], -np.sin(0.3) * (3 / 2 + 2) * 9.81, rtol=1e-9)


def test_no_states_at_all_are_refused():
    with pytest.raises(al.ArgumentError, match=r"^linearize: takes at least one state of a model with loops"):
        al.linearize(MODEL, np.zeros((0, MODEL.nq)))


def test_a_batch_of_no_states_gives_none():
    none, zero = np.zeros((0, MODEL.nq)), np.zeros(MODEL.nv)
    foot = {"foot0": 1.0}
    for found, shape in (
        (MODEL.constraint_residual(none), (10,)),
        (MODEL.constraint_bias(none, none), (10,)),
        (MODEL.assemble(none).q, (5,)),
        (MODEL.forward_dynamics(none, zero, zero), (5,)),
        (MODEL.constrained_dynamics(none, zero, zero).accelerations, (5,)),
        (MODEL.inverse_dynamics(none, zero, zero), (5,)),
        (MODEL.hybrid_dynamics(none, zero, accelerations=foot).efforts, (5,)),
        (MODEL.forward_dynamics_derivatives(none, zero, zero).dq, (5, 5)),
    ):
        assert found.shape == (0, *shape)


def test_a_linear_model_in_motion_agrees_with_differences():
    """On a spatial mechanism with loops of three kinds, at speed."""
    active = ["revolute", "universal", "spherical"]
    whole, q = closed()
    model = whole.replace(loops=tuple(loop for loop in whole.loops if loop.name in active))
    v = 0.5 * possible_speeds(model, q)
    tau = np.random.default_rng(0).normal(size=model.nv)
    linear = al.linearize(
        model, q, v, tau, inputs=[model.speed_names[0]], outputs=[f"v:{model.speed_names[1]}"]
    )
    n = len(linear.displacements)
    assert linear.A.shape == (2 * n, 2 * n)
    i, j = list(linear.displacements), list(linear.rates)

    def point(e, dv):
        """The state with given independent displacements and speeds, by Newton's method on the others."""
        full = np.zeros(model.nv)
        full[i] = e
        fixed_q, fixed_v = [model.speed_names[k] for k in i], [model.speed_names[k] for k in j]
        E = model.independent_coordinates(q, independent=fixed_q).E
        x = E @ e
        other = np.setdiff1d(np.arange(model.nv), i)
        for _ in range(8):
            at = model.integrate(q, x)
            G, r = model.constraint_jacobian(at), model.constraint_residual(at)
            step = np.zeros(model.nv)
            step[other] = -np.linalg.lstsq(G[:, other], r, rcond=1e-9)[0]
            x = model.difference(q, model.integrate(at, step))
            x[i] = e
        at = model.integrate(q, x)
        speeds = model.independent_coordinates(at, independent=fixed_v).E @ (v[j] + dv)
        return at, speeds

    def rate(e, dv):
        at, speeds = point(e, dv)
        a = model.forward_dynamics(at, speeds, tau)
        h = 1e-6  # of the displacement, along the motion of both points
        ahead = model.difference(model.integrate(q, h * v), model.integrate(at, h * speeds))
        behind = model.difference(model.integrate(q, -h * v), model.integrate(at, -h * speeds))
        return np.concatenate([((ahead - behind) / (2 * h))[i], a[j]])

    h = 1e-5
    for k in (0, n - 1, n, 2 * n - 1):
        x = np.zeros(2 * n)
        x[k] = h
        column = (rate(x[:n], x[n:]) - rate(-x[:n], -x[n:])) / (2 * h)
        # central differences: h^2 of the third derivative, some 1e-9, and rounding of displacements 1e-16/(h h)
        np.testing.assert_allclose(linear.A[:, k], column, atol=3e-5 * max(1.0, np.abs(column).max()))


def test_rolling_has_fewer_speeds_than_displacements():
    builder = al.ModelBuilder("ball")
    builder.body("ball", al.Inertia.sphere(1.0, 0.1), joint=al.Free())
    builder.loop("floor", al.RollingSphere(0.1), "world", "ball")
    ball = builder.build()
    linear = al.linearize(ball, [0, 0, 0.1, 1, 0, 0, 0])
    assert (len(linear.displacements), len(linear.rates)) == (5, 3)
    with pytest.raises(UnsupportedError, match=r"^modes: something rolls: 5 displacements and 3 speeds"):
        linear.modes()
    with pytest.raises(
        UnsupportedError, match=r"^decoupled_pd: something rolls: 5 displacements and 3 speeds"
    ):
        al.linear.decoupled_pd(linear, 1.0, 1.0)


def test_a_regulator_for_a_loop():
    q, v = parallelogram(MODEL, 0.0, 0.0)  # upright: unstable
    linear = al.linearize(MODEL, q, v, inputs=["foot0"])
    assert linear.poles().real.max() > 1
    regulator = al.linear.place_poles(linear, [-2.0, -3.0])
    np.testing.assert_allclose(regulator.poles(), [-3, -2], rtol=1e-9)
    start, speed = parallelogram(MODEL, 0.05, 0.0)
    run = al.simulate(
        MODEL, start, speed, duration=3.0, step=5e-3, controller=lambda t, q, v: regulator.efforts(q, v)
    )
    assert abs(run.q[-1][0]) < 1e-3


def test_products_of_derivatives():
    q, v = parallelogram(MODEL, 0.4, 0.7)
    tau = np.arange(5.0)
    d = MODEL.constrained_dynamics_derivatives(q, v, tau)
    rng = np.random.default_rng(0)
    dq, dv, dtau, w = rng.normal(size=(4, 5))
    a, change = MODEL.jvp("forward_dynamics", (q, v, tau), (dq, dv, dtau))
    np.testing.assert_allclose(a, d.acceleration)
    np.testing.assert_allclose(change, d.dq @ dq + d.dv @ dv + d.dtau @ dtau, rtol=1e-12)
    back = MODEL.vjp("forward_dynamics", (q, v, tau), w)
    for x, matrix in zip(back, (d.dq, d.dv, d.dtau), strict=True):
        np.testing.assert_allclose(x, matrix.T @ w, rtol=1e-12)
    with pytest.raises(
        UnsupportedError,
        match=r"^jvp: inverse_dynamics_derivatives of a model with loops, couplings or equations",
    ):
        MODEL.jvp("inverse_dynamics_derivatives", (q, v, tau), (dq, dv, dtau))


def test_symbols_of_models_with_loops():
    import casadi as ca

    q, v = parallelogram(MODEL, 0.4, 0.7)
    tau = np.arange(5.0)
    x = [ca.SX.sym(name, 5) for name in ("q", "v", "tau")]
    a, f = MODEL.symbolic.constrained_dynamics(*x, at=q)
    found = MODEL.constrained_dynamics(q, v, tau)
    np.testing.assert_allclose(
        np.asarray(ca.Function("a", x, [a])(q, v, tau)).ravel(), found.accelerations, rtol=1e-10, atol=1e-10
    )
    assert f.shape == (10, 1)
    with pytest.raises(
        UnsupportedError, match=r"^forward_dynamics: the loop 'window0' .*symbolic.constrained_dynamics"
    ):
        MODEL.symbolic.forward_dynamics(*x)


def test_hybrid_dynamics_with_a_loop():
    """The prescribed joint follows, the efforts that do it are those of inverse dynamics."""
    q, v = parallelogram(MODEL, 0.4, 0.7)
    result = MODEL.hybrid_dynamics(q, v, accelerations={"foot1": 2.0}, torques={"foot0": 1.0})
    np.testing.assert_allclose(result.accelerations[MODEL.v_slice("foot1")], 2.0, rtol=1e-12)
    np.testing.assert_allclose(MODEL.forward_dynamics(q, v, result.efforts), result.accelerations, atol=1e-9)
    assert result.efforts[0] == 1.0
    with pytest.raises(
        al.ArgumentError, match=r"^hybrid_dynamics: the accelerations given contradict the constraints: "
    ):
        MODEL.hybrid_dynamics(q, v, accelerations={"foot1": 2.0, "foot0": 1.0})


def test_derivatives_of_hybrid_dynamics_with_a_loop():
    """Along the motions that the loops allow, against differences; with respect to what is given, too."""
    h = 1e-6
    wrench = {MODEL.frames[-1].name: np.arange(1.0, 7.0)}

    def at(angle, rate, acceleration=2.0, effort=1.0):
        q, v = parallelogram(MODEL, angle, rate)
        given = {"accelerations": {"foot1": acceleration}, "torques": {"foot0": effort}, "wrenches": wrench}
        return q, v, given

    def both(*state):
        q, v, given = at(*state)
        result = MODEL.hybrid_dynamics(q, v, **given)
        return np.array([result.accelerations, result.efforts])

    q, v, given = at(0.4, 0.7)
    d = MODEL.hybrid_dynamics_derivatives(q, v, **given)
    ahead, behind = at(0.4 + h, 0.7), at(0.4 - h, 0.7)
    along_q, along_v = ((ahead[i] - behind[i]) / (2 * h) for i in (0, 1))
    faster = (at(0.4, 0.7 + h)[1] - at(0.4, 0.7 - h)[1]) / (2 * h)
    close = {"rtol": 1e-7, "atol": 1e-7}  # central differences with h = 1e-6 have errors of some 1e-9 here
    moved = (both(0.4 + h, 0.7) - both(0.4 - h, 0.7)) / (2 * h)
    np.testing.assert_allclose(d.dq @ along_q + d.dv @ along_v, moved, **close)
    np.testing.assert_allclose(d.dv @ faster, (both(0.4, 0.7 + h) - both(0.4, 0.7 - h)) / (2 * h), **close)
    foot0, foot1 = MODEL.v_slice("foot0").start, MODEL.v_slice("foot1").start
    np.testing.assert_allclose(d.dgiven[..., foot1], both(0.4, 0.7, 3.0) - both(0.4, 0.7, 2.0), **close)
    np.testing.assert_allclose(d.dgiven[..., foot0], both(0.4, 0.7, 2.0, 2.0) - both(0.4, 0.7), **close)
    frame = next(iter(wrench))
    np.testing.assert_allclose(
        d.dwrenches[frame] @ wrench[frame],
        both(0.4, 0.7)
        - np.array(list(vars(MODEL.hybrid_dynamics(q, v, **{**given, "wrenches": {}})).values())),
        **close,
    )
    consistent = {"foot1": 2.0, "foot0": 2.0}
    with pytest.raises(
        UnsupportedError,
        match=r"^hybrid_dynamics_derivatives: the accelerations of 'foot0', 'foot1' depend on each other",
    ):
        MODEL.hybrid_dynamics_derivatives(q, 0 * v, accelerations=consistent)
