"""Inputs for tips that move the wrong way first; stiffness, damping and modes from noisy responses."""

import functools

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import alembert as al

fl = al.flexible


@functools.cache
def unit(modes):
    return fl.beam(1.0, 1.0, EI_z=1.0, bending_y=modes)


def arm(modes=3, EI=1.0, damping=0.01):
    """A hub of inertia 0.1 with a beam: torque to the displacement of the tip, small motion."""
    body = unit(modes)
    tip = body.node_array("tip", "shapes")[:, 1]
    Ek, E = body.array("shape_products"), body.array("second_moment")
    c = Ek[:, 0, 1]
    M = np.block([[np.array([[0.1 + E[0, 0]]]), c[None]], [c[:, None], body.modal_mass()]])
    K = scipy.linalg.block_diag(0.0, EI * body.array("stiffness"))
    D = scipy.linalg.block_diag(0.0, damping * np.sqrt(EI) * body.damped(1.0).array("damping"))
    F = np.eye(modes + 1)[:, [0]]
    return al.control.SecondOrder(M, D, K, F, np.append(1.0, tip)[None])


def bump(t):
    """Acceleration of a smooth rest-to-rest move by 1 in one second: the third derivative is continuous."""
    x = np.clip(t, 0, 1)
    return np.where((t > 0) & (t < 1), 4200 * x**3 * (1 - x) ** 3 * (1 - 2 * x) / 10, 0.0)


def test_stable_inversion_moves_the_tip_as_prescribed():
    system = arm()
    t = np.linspace(0.0, 1.0, 401)
    a = bump(t)
    found = fl.stable_inversion(system, t, a, before=1.0, after=3.0)
    assert found.lead > 0.0  # the zeros in the right half plane ask for an early start
    G = system.to_statespace()
    assert (G.zeros().real > 1).any()
    y = G.simulate(found.t, found.u, hold="first").y[:, 0]
    x = np.clip(found.t, 0, 1)
    power = np.polynomial.Polynomial([0, 1])
    wanted = (420 * power**3 * (1 - power) ** 3 * (1 - 2 * power)).integ(2)(x)
    # held linearly between times: second order in the step, of the input's curvature at the third mode (62 rad/s * h = .15)
    assert abs(y - wanted).max() < 2e-3 * wanted.max()


def test_bad_inversions_are_refused():
    system = arm(1)
    t = np.linspace(0.0, 1.0, 51)
    twice = al.control.SecondOrder(system.M, system.D, system.K, system.F, np.eye(2))
    sampled = al.control.c2d(system.to_statespace(), 0.02)
    for call, message in (
        (lambda: fl.stable_inversion(system, t**2, bump(t)), "equally spaced"),
        (lambda: fl.stable_inversion(system, t, bump(t)[1:]), r"expected finite numbers \(51, 1\)"),
        (lambda: fl.stable_inversion(system, t, np.nan * t), r"expected finite numbers \(51, 1\)"),
        (lambda: fl.stable_inversion(twice, t, bump(t)), "2 outputs and 1 inputs"),
        (
            lambda: fl.stable_inversion(sampled, t, bump(t)),
            "sampled every 0.02 s, expected one in continuous time",
        ),
        (
            lambda: fl.stable_inversion(system, t, bump(t), before=-1.0),
            "before is -1.0, expected seconds of zero",
        ),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()
    with pytest.raises(al.NumericalError, match="has not died out at the ends"):
        fl.stable_inversion(system, t, np.ones(51), before=0.0, after=0.0)
    still = al.control.SecondOrder(system.M, system.D, system.K, system.F, np.zeros((1, 2)))
    with pytest.raises(al.NumericalError, match="gives no output"):
        fl.stable_inversion(still, t, bump(t))


def test_stiffness_and_damping_come_back_with_their_errors():
    w = np.linspace(2.0, 20.0, 60)
    rng = np.random.default_rng(3)

    def predict(p):
        return np.log(np.abs(arm(1, p["EI"], p["zeta"]).frequency_response(w).response[:, 0, 0]))

    truth = {"EI": 1.3, "zeta": 0.02}
    clean = predict(truth)
    found = fl.fit_response(
        predict, clean + rng.normal(scale=0.05, size=clean.shape), {"EI": 1.0, "zeta": 0.01}
    )
    for name, value in truth.items():
        # five standard errors: once in two million
        assert abs(found.values[name] - value) < 5 * found.errors[name]
        assert found.errors[name] < 0.1 * value
    assert found.noise == pytest.approx(0.05, rel=0.4)
    assert "+-" in str(found)


def test_modes_of_a_measured_response(monkeypatch):
    w = np.linspace(1.0, 30.0, 200)
    own, zeta = np.array([5.0, 20.0]), np.array([0.01, 0.03])
    H = (np.array([1.0, 8.0]) / (own**2 - w[:, None] ** 2 + 2j * zeta * own * w[:, None])).sum(axis=1) + 0.01
    rng = np.random.default_rng(1)
    noise = 1e-3 * (rng.normal(size=200) + 1j * rng.normal(size=200))
    found = fl.fit_modes(w, H + noise, [4.8, 21.0])
    for k in range(2):
        assert abs(found.values[f"omega_{k + 1}"] - own[k]) < 5 * found.errors[f"omega_{k + 1}"]
        assert abs(found.values[f"zeta_{k + 1}"] - zeta[k]) < 5 * found.errors[f"zeta_{k + 1}"]
    # of 10 responses, 20 numbers, four are fitted; the mean of 100 s^2 has the deviation sqrt(2/16/100) = 3.5 %
    few = np.linspace(4.0, 6.0, 10)
    one = 1 / (25 - few**2 + 0.5j * few)
    spread = rng.normal(scale=1e-3, size=(2, 100, 10))
    squares = [
        fl.fit_modes(few, one + a + 1j * b, [5.0], damping=0.05).noise ** 2
        for a, b in zip(*spread, strict=True)
    ]
    assert np.mean(squares) == pytest.approx(1e-6, rel=0.105)
    for call, message in (
        (lambda: fl.fit_modes(w[:3], H[:3], [5.0]), "there is too little"),
        (lambda: fl.fit_modes(w, H, [-1.0]), "expected positive frequencies"),
        (
            lambda: fl.fit_modes(w, H[:7], [5.0]),
            r"response has shape \(7,\) and type complex128, expected finite complex numbers \(200, ...",
        ),
        (lambda: fl.fit_modes(w, np.abs(H), [5.0]), "type float64, expected .* amplitudes alone do not do"),
        (lambda: fl.fit_modes(w, H, []), "expected positive frequencies"),
        (lambda: fl.fit_modes(w, H, [5.0, 5.0]), "expected one for each mode"),
        (lambda: fl.fit_modes(w, H, [5.0], damping=0.0), "damping is 0.0"),
        (lambda: fl.fit_modes("w", H, [5.0]), "frequency is 'w', expected numbers"),
        (lambda: fl.fit_response(3, np.zeros(4), {"a": 1.0}), "predict is 3, expected a function"),
        (lambda: fl.fit_response(lambda p: 0, ["x"], {"a": 1.0}), "measured is expected as finite numbers"),
        (lambda: fl.fit_response(lambda p: 0, np.zeros(1), ["a"]), r"start is \['a'\], expected a mapping"),
        (
            lambda: fl.fit_response(lambda p: np.zeros(3), np.zeros(4), {"a": 1.0}),
            r"predict gives shape \(3,\)",
        ),
        (lambda: fl.fit_response(lambda p: 0, np.zeros(1), {}), "1 measured numbers for 0 parameters"),
        (lambda: fl.fit_response(lambda p: 0, np.zeros(2), {"a": 0.0}), "start 'a' is 0.0"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()
    with pytest.raises(al.NumericalError, match="does not tell the parameters a, b apart"):
        fl.fit_response(lambda p: p["a"] * p["b"] * w, 2 * w, {"a": 1.0, "b": 1.0})
    with pytest.raises(al.NumericalError, match="at the start is not finite"):
        fl.fit_response(lambda p: np.full(3, np.inf), np.zeros(3), {"a": 1.0})
    single = 1 / (25 - w**2 + 0.1j * w)
    with pytest.raises(al.NumericalError, match=r"no mode near 16 rad/s|does not tell the parameters"):
        fl.fit_modes(w, single, [5.0, 16.0])  # there is one
    noisy = single + 1e-3 * rng.normal(size=(2, len(w))).T @ [1, 1j]
    with pytest.warns(al.AlembertWarning, match="where two guesses are for one mode leave one out"):
        fl.fit_modes(w, noisy, [5.0, 16.0])
    once = functools.partial(scipy.optimize.least_squares, max_nfev=1)
    monkeypatch.setattr(scipy.optimize, "least_squares", once)
    with pytest.raises(al.NumericalError, match="did not converge"):
        fl.fit_modes(w, H, [4.0])
