"""Controllers of fixed structure, and pole placement: best known values of COMPleib's models, published gains."""

import numpy as np
import pytest
import scipy.linalg
from control_helpers import random_system

from alembert.control import (
    Goal,
    StateSpace,
    affine,
    augment,
    fixed_order,
    hinfsyn,
    lft,
    pid,
    place,
    place_by_outputs,
    structured,
    tf,
    tune,
)
from alembert.control.structured import StructuredLoop
from alembert.errors import ArgumentError, NumericalError
from alembert.verify.control_plants import compleib, gust_alleviation, miminis_first, miminis_second


@pytest.mark.parametrize(
    ("name", "value", "starts"),
    [
        ("NN2", 2.22158329, 1),
        ("AC4", 0.9354753, 1),
        ("AC8", 2.0050121, 1),
        ("AC17", 6.6124279, 1),
        ("HE1", 0.1538181, 1),
    ],
)
def test_static_output_feedback(name, value, starts):
    """Local optima, to 1e-3; that of HE1 is approached as the gain grows."""
    P, m, p = compleib(name)
    found = tune(P, 0, controls=m, measurements=p, starts=starts)
    assert found.value <= value * (1 + 1e-3)
    assert found.value == pytest.approx(value, rel=1e-2)
    assert found.closed_loops[0].hinf_norm().gain == pytest.approx(found.value, rel=1e-6)
    if name == "NN2":
        assert found.controller.D[0, 0] == pytest.approx(-1.27151994, abs=1e-5)


def test_gust_alleviation():
    """H2 alone, and H2 and H-infinity together, whose peak is 20.8 % lower (printed: 20 %)."""
    P, structure = gust_alleviation()
    # in units in which the cost is of order one
    h2 = Goal("h2", 1e4, 2.0)
    found = tune(
        P, structure, controls=1, measurements=2, goals=[h2], start=[-1, -0.1, 0.1, 0.1, 0.1, 0.1], starts=0
    )
    assert found.value / 1e4 == pytest.approx(1.36055828e-4, rel=1e-8)
    assert found.closed_loops[0].hinf_norm().gain == pytest.approx(0.0268444, abs=6e-8)
    a1, a0, c1, c0, kq, b2 = found.parameters * [-1, -1, 1, 1, 1, 1]
    published = [0.20905558, 0.53210967, 1.16020583, 0.15462374, 1.23361277, 0.00638475]
    np.testing.assert_allclose([kq, b2, c1 + b2 * a1, c0 + b2 * a0, a1, a0], published, rtol=1e-5)
    both = tune(
        P,
        structure,
        controls=1,
        measurements=2,
        goals=[h2, Goal("hinf", 1e4, 2.0)],
        start=found.parameters,
        starts=0,
    )
    assert both.value / 1e4 <= 5.98728780e-4 * (1 + 1e-6)
    assert both.closed_loops[0].hinf_norm().gain == pytest.approx(0.0212530, abs=2e-6)


def test_full_order_comes_near_the_riccati_optimum():
    G = tf([1], [1, 0.2, 1])
    P = augment(G, tf([0.5, 0.5], [1, 0.05]), 0.2)
    best = hinfsyn(P, controls=1, measurements=1)
    found = tune(P, 3, controls=1, measurements=1, starts=2, iterations=150)
    assert best.lower * (1 - 1e-9) <= found.value <= 1.02 * best.upper


def test_a_controller_of_low_order_is_begun_at_a_reduced_one():
    """An unstable plant with weights, four states: zeros and two random starts came to 1.0056 times the least norm."""
    P = augment(tf([1], [1, -1]) * tf([1], [0.1, 1]), tf([0.5, 1], [1, 0.01]), tf([1, 1], [0.01, 10]))
    least = hinfsyn(P, controls=1, measurements=1).lower
    for order, above in ((3, 1e-2), (4, 2e-3), (5, 2e-3)):  # `backoff` is 1e-3; one state less, one too many
        structure = fixed_order(order, 1, 1)
        begun = structured._reduced(P, 1, 1, structure)
        values = [StructuredLoop(P, 1, 1, structure).value(x, [Goal()], 0.0, 0.0, 1.0)[0] for x in begun]
        assert least * (1 - 1e-6) <= min(values) <= (1 + above) * least
    found = tune(P, 4, controls=1, measurements=1, starts=1, iterations=3)
    assert least * (1 - 1e-6) <= found.value <= 1.002 * least
    assert structured._reduced(P, 1, 1, pid(filter_time=0.1)) == []


@pytest.mark.parametrize("kind", ["hinf", "h2", "peak"])
def test_gradients_are_those_of_differences(kind):
    P, m, p = compleib("AC4")
    if kind == "h2":  # no direct part from w to z
        P = StateSpace(
            P.A, P.B, P.C, P.D * np.block([[np.zeros((2, 2)), np.ones((2, 1))], [np.zeros((2, 3))]])
        )
    structure = fixed_order(1, m, p)
    loop = StructuredLoop(P, m, p, structure)
    x = tune(P, structure, controls=m, measurements=p, starts=1, iterations=1).parameters
    x = x + 1e-3 * np.random.default_rng(0).normal(size=len(x))
    functions = [lambda x: loop.value(x, [Goal(kind)], 0.0, 0.0, 1.0), lambda x: loop.abscissa(x, 0.1, 0.9)]
    for function in functions:
        _, gradient = function(x)
        h = 1e-5
        differences = [(function(x + h * e)[0] - function(x - h * e)[0]) / (2 * h) for e in np.eye(len(x))]
        # central differences of norms known to 1e-9: h^2 and 1e-9/h
        np.testing.assert_allclose(gradient, differences, rtol=2e-3, atol=1e-3 * np.abs(differences).max())


def test_one_controller_for_several_plants():
    """A PID for a mode whose frequency is 0.8, 1 or 1.3: the worst of the three counts."""
    plants = [augment(tf([1], [1, 0.1, w * w]), tf([0.3, 0.1], [1, 0.001]), 0.05) for w in (0.8, 1.0, 1.3)]
    found = tune(plants, pid(filter_time=0.05), controls=1, measurements=1, starts=1, iterations=40)
    norms = [loop.hinf_norm().gain for loop in found.closed_loops]
    assert found.value == pytest.approx(max(norms), rel=1e-6)
    assert np.isfinite(found.value)
    kp, ki, kd = found.parameters
    s = 0.7j
    expected = kp + ki / s + kd * s / (0.05 * s + 1)
    assert found.controller.at(s)[0, 0] == pytest.approx(expected, rel=1e-9)


def test_decentralised_control_keeps_its_zeros():
    G = tf([[[1], [0.2]], [[0.1], [1]]], [[[1, 1], [1, 2]], [[1, 3], [1, 1]]])
    P = augment(G, tf([0.5, 0.5], [1, 0.05]), 0.2)
    found = tune(P, fixed_order(0, 2, 2, free=np.eye(2)), controls=2, measurements=2, starts=1)
    assert found.controller.D[0, 1] == found.controller.D[1, 0] == 0.0
    both = tune(P, 0, controls=2, measurements=2, starts=1, start=found.controller.D.ravel())
    assert both.value <= found.value * (1 + 1e-6)


@pytest.mark.parametrize("kind", ["hinf", "h2", "limit"])
def test_units_of_controls_and_measurements_do_not_matter(kind):
    """Two carts, each with a controller of its own and of one state: forces in N and MN, places in m and um. The same
    problem ended at 0.182, 0.361 and 1.157; white noise from sensors to forces made H2 norms infinite, and limits of them
    dead ends."""
    goals = {
        "hinf": [Goal()],
        "h2": [Goal("h2")],
        "limit": [Goal(outputs=[0, 1]), Goal("h2", outputs=[2, 3], limit=0.3)],
    }[kind]
    A = [[0, 1, 0, 0], [-2, -0.1, 1, 0.05], [0, 0, 0, 1], [1, 0.05, -2, -0.1]]
    into, C = np.array([[0, 0], [1, 0.2], [0, 0], [0.1, 1]]), np.eye(4)[::2]
    structure = affine(np.zeros((4, 4)), np.tile(np.eye(2, dtype=bool), (2, 2)), order=2)
    reached = []
    for u, y in ((1.0, 1.0), (1e6, 1.0), (1e-3, 1e6)):
        B = np.hstack([[[0], [1], [0], [0.5]], np.zeros((4, 2)), into * u])
        D = np.zeros((6, 5))
        D[2:4, 3:], D[4:, 1:3] = 0.1 * u * np.eye(2), 0.05 * y * np.eye(2)
        P = StateSpace(A, B, np.vstack([C, np.zeros((2, 4)), C * y]), D)
        start = np.repeat([-1, 1 / y, -0.3 / u, -0.1 / (u * y)], 2).reshape(2, 2, 2)
        start = start.transpose(0, 2, 1).ravel()  # A and B of the one, of the other, then C and D
        found = tune(
            P, structure, controls=2, measurements=2, goals=goals, start=start, starts=0, iterations=30
        )
        np.testing.assert_array_equal(structure.system(found.parameters).D, found.controller.D)
        (loop,) = found.closed_loops
        if kind == "limit":
            assert loop[2:4, :].h2_norm() <= 0.3 * (1 + 2e-4)
            assert loop[0:2, :].hinf_norm().gain == pytest.approx(found.value, rel=1e-6)
        else:
            norm = loop.h2_norm() if kind == "h2" else loop.hinf_norm().gain
            assert norm == pytest.approx(found.value, rel=1e-6)
        reached.append(found.value)
    # optima are local: of the H2 norm there are two, 2.7 % apart
    np.testing.assert_allclose(reached, min(reached), rtol=0.05)


def test_white_noise_that_no_controller_keeps_out():
    """Sensors with white noise and a static gain: their H2 norm is infinite, or the gain is zero."""
    A, B, C = [[0, 1], [-1, -0.1]], [[0, 0, 0], [1, 0, 1]], [[1, 0], [0, 0], [1, 0]]
    D = np.array([[0.0, 0, 0], [0, 0, 1], [0, 1, 0]])
    with pytest.raises(ArgumentError, match="infinite but for one controller"):
        tune(StateSpace(A, B, C, D), 0, controls=1, measurements=1, goals=[Goal("h2")])
    D[0, 0] = 0.5
    with pytest.raises(ArgumentError, match="directly, whatever the controller"):
        tune(StateSpace(A, B, C, D), 1, controls=1, measurements=1, goals=[Goal("h2")])


def test_decay_is_kept():
    P, m, p = compleib("AC17")
    found = tune(P, 0, controls=m, measurements=p, starts=2, decay=0.15)
    assert found.closed_loops[0].poles().real.max() < -0.15


def servo():
    """A cart of mass 1 that follows a reference r: its place, its force, and the error."""
    return StateSpace(
        [[0, 1], [0, -0.1]],
        [[0, 0], [0, 1]],
        [[1, 0], [0, 0], [-1, 0]],
        [[0, 0], [0, 1], [1, 0]],
        input_names=("r", "u"),
        output_names=("y", "effort", "e"),
    )


def test_limits_in_time_and_of_poles_are_kept():
    """The least force for a step of the reference with an overshoot of a tenth at most, and poles that are damped."""
    lead = fixed_order(1, 1, 1)
    goals = [Goal("peak", 0.1, outputs="effort"), Goal("peak", outputs="y", limit=1.1)]
    found = tune(
        servo(), lead, controls="u", measurements="e", goals=goals, decay=0.2, damping=0.4, starts=0, start=[-5, -2, 2, 2],
        iterations=60,
    )  # fmt: skip
    (loop,) = found.closed_loops
    t = np.linspace(0, 60, 6001)
    y = loop.step_response(t).y.reshape(len(t), -1)
    assert np.abs(y[:, 0]).max() <= 1.1 * (1 + 2e-4)
    assert np.abs(y[:, 1]).max() == pytest.approx(found.value / 0.1, rel=1e-3)  # a grid of 0.01 s
    poles = loop.poles()
    assert poles.real.max() < -0.2
    assert (-poles.real / np.abs(poles)).min() > 0.4
    with pytest.raises(NumericalError, match=r"the limit 0\.5 of the goal 'peak' was not met, the best"):
        tune(
            servo(), lead, controls="u", measurements="e", goals=[Goal("peak", outputs="y", limit=0.5)], decay=0.2,
            starts=0, start=[-5, -2, 2, 2], iterations=5,
        )  # fmt: skip


def test_a_covariance_is_limited():
    """The least response to noise whose control has a variance of at most 1/4: the limit holds, and it costs."""
    A, B = [[0, 1], [-1, -0.1]], [[0, 0], [1, 1]]
    C, D = [[1, 0], [0, 0], [1, 0], [0, 1]], [[0, 0], [0, 1], [0, 0], [0, 0]]
    P = StateSpace(A, B, C, D, output_names=("x", "u", "a", "b"))

    def limited(most):
        goals = [Goal("h2", outputs="x"), Goal("h2", outputs="u", limit=most)]
        return tune(P, 0, controls=1, measurements=["a", "b"], goals=goals, starts=0, start=[0.0, -0.1])

    found, free = limited(0.5), limited(1.0)
    assert found.closed_loops[0][["u"], :].h2_norm() == pytest.approx(0.5, rel=2e-4)
    assert free.value < found.value


# --- placement ---------------------------------------------------------------------------------------------------


def test_miminis_first_example():
    """Five states, three inputs, three outputs: all poles, to the accuracy that he prints (3e-12)."""
    G, wanted = miminis_first()
    found = place_by_outputs(G, wanted)
    np.testing.assert_allclose(found.poles, np.sort(wanted), atol=1e-10)
    assert np.abs(found.K).max() < 41.2  # his gains


def test_miminis_second_example():
    """One output and two inputs: the gain for two poles is unique, the third goes where it goes."""
    G, wanted = miminis_second()
    found = place_by_outputs(G, wanted)
    np.testing.assert_allclose(found.K[:, 0], [-2.053475126112, -6.466096811958], rtol=1e-10)
    np.testing.assert_allclose(found.poles, [-0.406648486670, -0.366406484747, 1.707616832510], atol=1e-11)
    with pytest.raises(ArgumentError, match="3 poles were asked for; 2 inputs and 1 outputs assign 2 of 3"):
        place_by_outputs(G, [-0.4, -0.3, 0.8])


@pytest.mark.parametrize("seed", range(4))
def test_poles_of_random_systems(seed):
    G = random_system(np.random.default_rng(seed), 6, 3, 4, direct=False)
    wanted = [-1 + 1j, -1 - 1j, -2, -3, -1.5 + 0.5j, -1.5 - 0.5j]
    assert place_by_outputs(G, wanted).error < 1e-6
    state = place(G, wanted)
    assert state.error < 1e-6
    np.testing.assert_allclose(np.linalg.eigvals(G.A - G.B @ state.K).real.max(), -1, atol=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "sentence"),
    [
        (lambda: Goal("l1"), ArgumentError, "kind is 'l1', expected one of 'hinf', 'h2'"),
        (lambda: pid(filter_time=np.inf), ArgumentError, "filter_time is inf, expected seconds above zero"),
        (lambda: fixed_order(-1, 1, 1), ArgumentError, "order is -1, expected a number of states from 0 on"),
        (lambda: affine(np.eye(2), np.eye(2), order=2), ArgumentError, "order is 2, expected .* 0 to 1"),
        (
            lambda: tune([], 0, controls=1, measurements=1),
            ArgumentError,
            "plants is empty, expected one or more",
        ),
        (
            lambda: tune(compleib("AC4")[0], -1, controls=1, measurements=2),
            ArgumentError,
            "structure is -1, expected a ControllerStructure, or an order from 0 on",
        ),
        (lambda: pid(filter_time=0.0), ArgumentError, "filter_time is 0.0"),
        (lambda: affine(np.eye(2), np.eye(3), order=0), ArgumentError, r"free has shape \(3, 3\)"),
        (
            lambda: tune(compleib("AC4")[0], fixed_order(0, 2, 2), controls=1, measurements=2),
            ArgumentError,
            "the structure is for 2 controls and 2 measurements, the plant has 1 and 2",
        ),
        (
            lambda: tune(compleib("AC4")[0], 0, controls=1, measurements=2, start=[1.0]),
            ArgumentError,
            "start has 1 parameters, expected 2",
        ),
        (
            lambda: tune(tf([[1, 1], [1, 1]], [1, 1], 0.1), 0, controls=1, measurements=1),
            ArgumentError,
            "is sampled",
        ),
        (
            lambda: tune(
                StateSpace([[1.0]], [[1, 1]], [[1], [1]], np.ones((2, 2))), 0, controls=1, measurements=1
            ),
            ArgumentError,
            "D22 is not zero",
        ),
        (
            lambda: tune(
                StateSpace([[0, 1], [4, 0]], [[0, 0], [1, 1]], [[1, 0], [1, 0]]),
                0,
                controls=1,
                measurements=1,
                starts=1,
            ),
            NumericalError,
            "the best one leaves a pole with real part",
        ),
        (
            lambda: tune(tf([1], [1, 1]), 0, controls=1, measurements=1, damping=1.0),
            ArgumentError,
            r"damping 1\.0, expected",
        ),
        (lambda: Goal(weight=-1.0), ArgumentError, r"Goal: weight is -1\.0, expected a number above zero"),
        (lambda: Goal("h2", limit=0.0), ArgumentError, r"Goal: limit is 0\.0, expected a number above zero"),
        (lambda: place(tf([1], [1, 2, 3]), [-1]), ArgumentError, "1 poles were given, expected 2"),
        (lambda: place(tf([1], [1, 2, 3]), [-1, 1j]), ArgumentError, "comes without its conjugate"),
        (
            lambda: place(StateSpace(np.eye(2), [[1], [0]], np.eye(2)), [-1, -2]),
            ArgumentError,
            "the inputs do not reach all of the state",
        ),
        (lambda: place_by_outputs(tf([1, 1], [1, 2]), [-1]), ArgumentError, "has a direct part D"),
    ],
)
def test_refusals(make, error, sentence):
    with pytest.raises(error, match=sentence):
        make()


def test_lft_of_a_tuned_controller_is_its_closed_loop():
    P, m, p = compleib("NN2")
    found = tune(P, 0, controls=m, measurements=p, starts=1)
    np.testing.assert_allclose(lft(P, found.controller).A, found.closed_loops[0].A)


@pytest.mark.parametrize(("gap", "decay"), [(0.02, 2e-3), (0.05, 4e-4), (0.09, 3e-3)])
def test_peak_of_modes_that_lie_close_together(gap, decay):
    """z = y1 - y2 beats: nothing at first, nearly 2 after pi / gap seconds."""
    w = 1 + gap
    A = scipy.linalg.block_diag([[0, 1], [-1, -2 * decay]], [[0, 1], [-(w**2), -2 * decay]])
    found = structured._largest_after_step(
        A, np.array([0, 1, 0, w**2]), np.array([[1.0, 0, -1, 0]]), np.zeros(1)
    )[0]
    t = np.arange(0, 2 * np.pi / gap, 0.02)

    def y(w):
        fast = np.sqrt(w**2 - decay**2)
        return np.exp(-decay * t) * (np.cos(fast * t) + decay / fast * np.sin(fast * t))

    # times 0.02 s apart miss a peak by 0.01**2 / 2 of the curvature, which is about the peak
    np.testing.assert_allclose(found, np.abs(y(1.0) - y(w)).max(), rtol=1e-4)


def test_decay_is_not_asked_of_weights():
    """A weight with a pole at -0.001 beside a lag: k/(s + 1) and unit feedback has its pole at -1 - k."""
    P = augment(tf([1], [1, 1]), tf([1, 0.1], [1, 0.001]), 0.1)
    found = tune(P, fixed_order(0, 1, 1), controls=1, measurements=1, decay=20.0, starts=2, iterations=40)
    assert 1 + found.controller.D[0, 0] >= 20 * (1 - 1e-9)
    with pytest.raises(ArgumentError, match=r"fixed_order: free has shape \(2,\), expected \(1, 1\)"):
        fixed_order(0, 1, 1, free=[True, False])
