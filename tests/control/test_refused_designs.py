"""What designs say of plants, weights, rates and units that they cannot take."""

import inspect

import numpy as np
import pytest

import alembert as al
from alembert import control as c
from alembert.control import StateSpace, static, tf
from alembert.errors import ArgumentError, NumericalError

A = np.zeros((4, 4))
A[:2, 2:], A[2, 0], A[3, 1] = np.eye(2), -4, -9
# two joints that do not feel each other: a hinge that is driven and measured, and a boom that swings at 3 rad/s
APART = StateSpace(
    A,
    [[0], [0], [1], [0]],
    [[1, 0, 0, 0]],
    state_names=("q:hinge", "q:boom", "v:hinge", "v:boom"),
    input_names="hinge",
    output_names="q:hinge",
)
PLANT = StateSpace(
    A,
    np.hstack([np.eye(4)[:, 2:], np.zeros((4, 1)), APART.B]),
    np.vstack([np.eye(4)[:2], np.zeros((1, 4)), APART.C]),
    [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]],
    state_names=APART.state_names,
)
SAMPLED = APART.sampled(0.1)
BOOM = r"a mode of boom at 3 rad/s \(0.477 Hz\), damping ratio 0\)"
UNREACHED = rf"do not reach the pole \S+3j \(states q:boom, v:boom: {BOOM}"
UNSEEN = rf"do not see the pole \S+3j \(states v:boom, q:boom: {BOOM}"
SAMPLED_UNREACHED = rf"do not reach the pole 0.955336\+0.29552j \(states q:boom, v:boom: {BOOM}"
SAMPLED_UNSEEN = rf"do not see the pole 0.955336\+0.29552j \(states v:boom, q:boom: {BOOM}"
BOTH, SAMPLED_BOTH = f"{UNREACHED}.*{UNSEEN}", f"{SAMPLED_UNREACHED}.*{SAMPLED_UNSEEN}"
OTHER = pytest.importorskip("scipy.signal").lti([1], [1, 1])
LAST = {"controls": 1, "measurements": 1}


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: c.lqr(APART, 1.0), rf"^lqr: the inputs \(hinge\) {UNREACHED}"),
        (lambda: c.lqr(SAMPLED, 1.0), rf"^lqr: the inputs \(hinge\) {SAMPLED_UNREACHED}"),
        (lambda: c.sampled_lqr(APART, 0.1, 1.0), rf"^sampled_lqr: the inputs \(hinge\) {SAMPLED_UNREACHED}"),
        (lambda: c.lqe(APART, 1.0, 1.0, through=np.eye(4)), rf"^lqe: the outputs \(q:hinge\) {UNSEEN}"),
        (lambda: c.lqe(SAMPLED, 1.0, 1.0, through=np.eye(4)), rf"^lqe: the outputs .* {SAMPLED_UNSEEN}"),
        (lambda: c.lqg(APART, 1.0, 1.0, 1.0, 1.0), rf"^lqg: the inputs \(hinge\) {UNREACHED}"),
        (lambda: c.lqg(SAMPLED, 1.0, 1.0, 1.0, 1.0), rf"^lqg: the inputs \(hinge\) {SAMPLED_UNREACHED}"),
        (lambda: c.ltr([[1, 0, 1, 0]], 1.0, 1.0, 1.0, plant=APART), rf"^ltr: the outputs .*{UNSEEN}"),
        (lambda: c.reduced_lqg(APART, 2, 1.0, 1.0, 1.0, 1.0), rf"^reduced_lqg: there is no design .*{UNREACHED}"),
        (lambda: c.h2syn(PLANT, **LAST), rf"^h2syn: the controls \(u3\) {BOTH}"),
        (lambda: c.hinfsyn(PLANT, **LAST), rf"^hinfsyn: the controls \(u3\) {BOTH}"),
        (lambda: c.hinfsyn(PLANT.sampled(0.1), **LAST), rf"^hinfsyn: the controls \(u3\) {SAMPLED_BOTH}"),
        (lambda: c.hinfsyn(c.augment(APART, W2=1.0), **LAST), rf"^hinfsyn: the controls \(hinge\) {BOTH}"),
        (lambda: c.dksyn(PLANT, [c.DeltaBlock("full", 3, 3)], **LAST), rf"^dksyn: .* {BOTH}"),
        (lambda: c.tune(PLANT, c.pid(filter_time=0.1), **LAST), rf"^tune: the controls \(u3\) {BOTH}"),
        (lambda: c.ncfsyn(APART), rf"^ncfsyn: the inputs \(hinge\) {BOTH}"),
        (lambda: c.ncfsyn(SAMPLED), rf"^ncfsyn: the inputs \(hinge\) {SAMPLED_BOTH}"),
        (lambda: c.coprime(APART), rf"^coprime: the inputs \(hinge\) {BOTH}"),
        (lambda: c.gap(SAMPLED, SAMPLED), rf"^gap: the inputs \(hinge\) {SAMPLED_BOTH}"),
        (lambda: c.nu_gap(APART, APART), rf"^nu_gap: the inputs \(hinge\) {BOTH}"),
        (lambda: c.gramians(SAMPLED), r"^gramians: the system is not stable, it has the pole"),
        # a free body, and one that falls over
        (
            lambda: c.lqr(StateSpace([[0, 1], [0, 0]], [[0], [0]], np.eye(2), state_names=("q:a", "v:a")), 1.0),
            r"the pole 0 \(states v:a: free motion of a\)",
        ),
        (lambda: c.lqr(StateSpace([[2.0]], [[0.0]], [[1]]), 1.0), r"\(states x0: grows, e-fold in 0.5 s\)"),
        # nothing is asked of a mode on the axis, or nothing disturbs it
        (lambda: c.lqr(tf([1], [1, 0, 1]), 0.0), r"^lqr: the cost Q does not see the pole \S+1j .* so that nothing damps"),
        (lambda: c.lqe(tf([1], [1, 0, 1]), 0.0, 1.0), r"^lqe: the noise of the process does not reach the pole \S+1j"),
        (
            lambda: c.hinfsyn(c.augment(tf([1], [1, 0.01, 1]), ([0.05, 1], [1, 0.01]), 0.1), **LAST, gamma=0.1),
            r"\(b\) the Hamiltonian matrix of the control has imaginary eigenvalues, at 1.418, 11.55 rad/s",
        ),
    ],
)  # fmt: skip
def test_lost_modes_are_named_with_joint_and_frequency(make, sentence):
    with pytest.raises(NumericalError, match=sentence):
        make()


LAG, EVERY_1, EVERY_2 = tf([1], [1, 1]), tf([1], [1, -0.5], 0.1), tf([1], [1, -0.5], 0.2)
FORCE_TO_PLACE = StateSpace([[-1.0]], [[1.0]], [[1.0]], input_units="N", output_units="m")
ANGLE_TO_TORQUE = StateSpace([[-1.0]], [[1.0]], [[1.0]], input_units="rad", output_units="N m")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LAG + EVERY_1, r"parallel: the systems have different rates \(continuous, dt = 0.1 s\)"),
        (lambda: LAG * EVERY_2, "series: the systems have different rates"),
        (lambda: c.feedback(EVERY_1, LAG), "feedback: the systems have different rates"),
        (lambda: c.append(EVERY_1, EVERY_2), r"append: the systems have different rates \(dt = 0.1 s, dt = 0.2 s\)"),
        (lambda: c.lft(PLANT, EVERY_1), "lft: the systems have different rates"),
        (lambda: c.connect(EVERY_1, LAG, inputs=["u0"], outputs=["y0"]), "connect: the systems have different rates"),
        (lambda: c.connect([LAG], inputs=["u0"], outputs=["y0"]), "expected a StateSpace; give systems one by one"),
        (lambda: c.append(), "append: no system was given"),
        (lambda: c.augment(EVERY_1, EVERY_2), "augment: the systems have different rates"),
        (lambda: c.ncfsyn(EVERY_1, LAG), "ncfsyn: the systems have different rates"),
        (lambda: c.ncf_margin(EVERY_1, LAG), "ncf_margin: the systems have different rates"),
        (lambda: c.ncf_margin(LAG, static(np.eye(2))), r"ncf_margin: K has shape \(2, 2\), expected \(1, 1\)"),
        (lambda: c.mu([[np.nan]], [c.DeltaBlock("real")]), "mu: M has entries that are not finite"),
        (lambda: c.feedback(EVERY_1 * c.parameter("k", 1, 2), EVERY_2), "feedback: the systems have different rates"),
        (lambda: c.parameter("k", 1, 2) * EVERY_1 * LAG, "series: the systems have different rates"),
        (lambda: c.parameter("k", 1, 2) * EVERY_1 + LAG, "parallel: the systems have different rates"),
        (lambda: c.wiener_hopf(LAG, 1.0), "wiener_hopf: the disturbance is 1.0, expected a system or a function"),
        (lambda: c.gap(LAG, EVERY_1), "gap: the systems have shapes .* dt 0 and 0.1, expected alike"),
        (lambda: c.weighted_truncation(LAG * LAG, 1, input_weight=EVERY_1), "weighted_truncation: .*different rates"),
        (lambda: c.weighted_truncation(LAG * LAG, 1, input_weight=2.0), "input_weight is 2.0, expected a system"),
        (
            lambda: c.observer_controller(c.lqr(EVERY_1, 1.0), c.lqe(EVERY_2, 1.0, 1.0)),
            "observer_controller: the systems have different rates",
        ),
        (
            lambda: c.observer_controller(c.lqr(LAG, 1.0), c.lqe(LAG * LAG, 1.0, 1.0)),
            "the regulator is of a plant with 1 states, the filter of another with 2",
        ),
        (lambda: ANGLE_TO_TORQUE * FORCE_TO_PLACE, "series: the output 'y0' is in m, the input 'u0' in rad"),
        (lambda: FORCE_TO_PLACE + ANGLE_TO_TORQUE, "parallel: the input 'u0' is in N in one system and in rad in"),
        (lambda: c.feedback(FORCE_TO_PLACE, ANGLE_TO_TORQUE), "feedback: the output 'y0' is in m, the input 'u0' in"),
        (lambda: c.lft(c.append(LAG, FORCE_TO_PLACE), ANGLE_TO_TORQUE), "lft: the output 'y0_2' is in m"),
        (lambda: c.ncf_margin(FORCE_TO_PLACE, ANGLE_TO_TORQUE), "ncf_margin: the output 'y0' is in m"),
        (lambda: c.nu_gap(FORCE_TO_PLACE, ANGLE_TO_TORQUE), "nu_gap: the input 'u0' is in N in one system"),
        (lambda: c.augment(LAG, ([1, 0, 0], [1, 1])), "augment: W1: the numerator has degree 2, the denominator 1"),
        (lambda: c.augment(LAG, 1.0, ([1, 0], [1])), "augment: W2: the numerator has degree 1, the denominator 0"),
        (lambda: c.augment(LAG, ([1], [1, 0])), "augment: W1 is not stable, it has the pole 0, which no controller"),
        (lambda: c.ncfsyn(LAG, ([1, 0], [1])), "ncfsyn: W1: the numerator has degree 1"),
        (
            lambda: c.lqr(LAG, 1.0, 1.0, cross=[[3.0]]),
            r"lqr: with cross the cost \[Q S; S\^T R\] has the eigenvalue -2, expected none below zero",
        ),
        (
            lambda: c.dksyn(PLANT, [c.DeltaBlock("complex")], **LAST),
            "the blocks take 1 outputs and give 1 inputs, expected the 3 and 3 that P has .* performance is a block",
        ),
    ],
)  # fmt: skip
def test_rates_units_and_weights_that_do_not_fit(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make()


def _functions_of_systems():
    for name in dir(c):
        f = getattr(c, name)
        if inspect.isfunction(f):
            first = next(iter(inspect.signature(f).parameters.values()), None)
            if name != "tune" and first is not None and str(first.annotation).startswith("StateSpace"):
                yield name


@pytest.mark.parametrize("name", list(_functions_of_systems()))
@pytest.mark.parametrize("given", ["a plant", {"A": 1}, OTHER])
def test_what_is_no_system_is_refused(name, given):
    """A system of another package, a name, a dictionary: a sentence, whatever else is missing."""
    with pytest.raises(ArgumentError, match=f"^{name}: .* is of type .*, expected a StateSpace; "):
        getattr(c, name)(given, **({"inputs": [], "outputs": []} if name == "connect" else {}))


def test_systems_are_taken_for_what_they_are():
    """Matrices are no plant, but gains where systems are joined; linear models of mechanisms are systems."""
    with pytest.raises(
        ArgumentError, match=r"^lqr: plant is of type ndarray, expected a StateSpace; StateSpace\(A, B"
    ):
        c.lqr(np.eye(2), np.eye(2), np.eye(2), 1.0)  # lqr(A, B, Q, R)
    G = tf([1], [1, 1])
    np.testing.assert_allclose(c.feedback(1, G).poles(), [-2])
    np.testing.assert_allclose(c.series(2.0, G, [[3.0]]).dc_gain(), [[6.0]])
    linear = al.linearize(al.library.acrobot(), [0.3, 0.2])
    joined = c.connect(linear, inputs=linear.input_names, outputs=linear.to_statespace().output_names)
    np.testing.assert_allclose(joined.A, linear.to_statespace().A)
    np.testing.assert_allclose(c.lqr(linear, 1.0).K, c.lqr(linear.to_statespace(), 1.0).K)
    np.testing.assert_allclose((G**3).dc_gain(), [[1.0]])
    np.testing.assert_allclose((2 / tf([1, 2], [1, 1])).dc_gain(), [[1.0]])
    assert (G**0).order == 0
    assert (tf([1, 2], [1, 1]) ** -1).poles() == pytest.approx([-2])
    with pytest.raises(ArgumentError, match="tune: plants is of type ndarray, expected a StateSpace"):
        c.tune(np.eye(2), 1, controls=1, measurements=1)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: c.uncertain("k", (1, 3)), r"uncertain: 'k', \(1, 3\) came, expected one matrix .* parameter\('k', 1, 3\)"),
        (lambda: c.uncertain("k"), "uncertain: 'k' came, expected one matrix"),
        (lambda: c.static("1"), "static: D is '1', expected real numbers"),
        (lambda: c.lqr(LAG * LAG, [[1, 2], [0, 1]]), "lqr: Q differs from its transpose by 2, expected a symmetric matrix"),
        (lambda: c.ltr([[-3.0]], 1.0, 1.0, 1.0, plant=LAG), "ltr: A - B K with the gain regulator has the pole 2"),
        (lambda: c.output_ltr([[-3.0]], 1.0, plant=LAG), "output_ltr: A - L C with the gain filter has the pole 2"),
        (lambda: c.hinfsyn(PLANT, controls=1.5, measurements=1), "hinfsyn: controls is 1.5, expected names of"),
        (lambda: c.hinfsyn(PLANT, **LAST, gamma=-1.0), "hinfsyn: gamma is -1.0, expected a positive number"),
        (lambda: c.hinfsyn(PLANT, **LAST, tolerance=0), "hinfsyn: tolerance is 0, expected a positive number"),
        (lambda: c.hinfsyn(PLANT, **LAST, backoff=-1.0), "hinfsyn: backoff is -1.0, expected zero or a positive number"),
        (lambda: c.dksyn(PLANT, [], **LAST, iterations=0), "dksyn: iterations is 0, expected a whole number"),
        (lambda: c.dksyn(PLANT, [], **LAST, order=-1), "dksyn: order is -1, expected a whole number"),
        (lambda: c.dksyn(PLANT, [], **LAST, frequency=[-1, 0]), r"dksyn: frequency is \[-1.0, 0.0\], expected two or more"),
        (lambda: c.place(LAG, "ab"), "place: poles is 'ab', expected a list of finite numbers"),
        (lambda: c.place(LAG, [np.nan]), r"place: poles is \[nan\], expected a list of finite numbers"),
        (lambda: c.place(APART, [-1, -2, -3, -4]), rf"^place: .* all of the state: not the pole .*{BOOM}"),
        (
            lambda: c.place(StateSpace(np.diag([-1.0, 2]), [[0], [1]], np.eye(2)), [-3, -4]),
            r"place: the inputs do not reach all of the state: not the pole -1 \(states x0: decays, e-fold in 1 s\)",
        ),
        (lambda: c.GainSchedule("t", [0.0], LAG), "GainSchedule: systems is one StateSpace, expected a list"),
        (lambda: c.lqg(LAG, 1, 1, 1, 1, current=True), "^lqg: current is for sampled plants .* this one is continuous"),
        (
            lambda: c.lqg(tf([1, 1], [1, -0.5], 0.1), 1, 1, 1, 1, current=True),
            "^lqg: current is for sampled plants .* this one has a direct part D",
        ),
        (
            lambda: c.wiener_hopf(LAG, LAG.frequency_response([1.0])),
            "the disturbance is a FrequencyResponse, expected .* such as one that interpolates in what was measured",
        ),
        (lambda: tf([], [1, 1]), r"tf: a polynomial has shape \(0,\)"),
        (lambda: StateSpace(0.5, 1, 1, dt=True), "dt is True, expected seconds from sample to sample"),
        (lambda: c.lqr(static(2.0), 1.0), "lqr: the plant has no states"),
        (lambda: c.care(A, np.eye(4), A + np.eye(4), np.eye(4)), "care: Q differs from its transpose by 10"),
        (
            lambda: c.place(StateSpace(np.eye(3, k=1), np.eye(3)[:, 1:], np.eye(3)), [-1, -1, -1]),
            "the pole -1.* is asked for 3 times, expected at most 2",
        ),
        (lambda: c.hinfsyn(tf([1], [1, 1]), **LAST), "0 inputs w and 0 outputs z are left, expected one of each"),
        (lambda: c.margins(static(np.eye(2))), "`multiloop_disk_margin` take loops with several"),
        (lambda: c.summing("e", "r - y"), r"expected a list of names such as \['r', '-y'\]"),
        (lambda: StateSpace(-1, np.zeros((1, 0)), 1).plot("sigma"), "expected an input and an output"),
        (lambda: tf([1], [1, 1]) / 0, "divided by zero"),
        (lambda: tf([[[1], [1]]], [1, 1]) ** 2, "expected a square system and a whole number"),
    ],
)  # fmt: skip
def test_mistakes_of_a_first_hour(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make()


def test_margins_of_a_gain():
    found = c.margins(static(2.0))
    assert (found.gain, found.phase_deg, found.stable) == (np.inf, np.inf, True)
    assert found.distance == pytest.approx(3.0)


TWO = StateSpace(-np.eye(2), np.eye(2), np.eye(2))
BLOCKS = [c.DeltaBlock("complex"), c.DeltaBlock("complex")]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: c.hinf_norm(TWO, tolerance=np.inf), "hinf_norm: tolerance is inf, expected a relative error above zero"),
        (lambda: c.linf_norm(TWO, tolerance=-1.0), r"linf_norm: tolerance is -1\.0"),
        (lambda: c.mu_peak(TWO, BLOCKS, tolerance=0), "mu_peak: tolerance is 0"),
        (lambda: c.mu_peak(TWO, BLOCKS, starts=-1), "mu_peak: starts is -1, expected a number of searches from 0 on"),
        (lambda: c.mu_response(TWO, BLOCKS, [1.0], starts=-1), "mu_response: starts is -1"),
        (lambda: c.mu_response(TWO, BLOCKS, [1.0], tolerance=2), "mu_response: tolerance is 2"),
        (lambda: c.mu("x", BLOCKS), "mu: M is 'x', expected numbers"),
        (lambda: c.mu(np.full((2, 2), np.nan), BLOCKS), "mu: M has entries that are not finite"),
        (lambda: c.stability_margin(TWO, BLOCKS, tolerance=-1), "stability_margin: tolerance is -1"),
        (lambda: c.multiloop_disk_margin(TWO, tolerance=0), "multiloop_disk_margin: tolerance is 0"),
        (lambda: c.worst_case_gain(TWO, []), "worst_case_gain: blocks is empty, expected one or more; `hinf_norm`"),
        (lambda: c.tf([1], [1, 1], inputs=3), "inputs is 3, expected 1 names"),
        (lambda: c.zpk("x", [-1], 1.0), "zpk: zeros is 'x', expected numbers"),
        (lambda: c.zpk([], [-np.inf], 1.0), "zpk: poles has entries that are not finite"),
        (lambda: c.summing("e", []), "summing: inputs is empty, expected one name or more"),
        (lambda: c.summing("e", ["r"], width=-1), "summing: width is -1, expected a number of entries from 1 on"),
        (lambda: c.feedback(TWO, "K"), "feedback: K is 'K', expected real numbers"),
        (lambda: c.SquareRootKalman(None, 1.0, 1.0), "SquareRootKalman: plant is of type NoneType, expected a StateSpace"),
        (lambda: c.dksyn(PLANT, [c.DeltaBlock("full", 3, 3)], relaxation=1e6, **LAST), "relaxation is 1000000"),
        (lambda: c.place_by_outputs(TWO, []), "0 poles were asked for; 2 inputs and 2 outputs assign 2 of 2"),
        (lambda: c.reduced_lqg(TWO, 1, 1.0, 1.0, 1.0, 1.0, start="x"), "reduced_lqg: start is of type str"),
        (lambda: TWO.step_response(input=[]), r"step_response: input is \[\], expected one of u0, u1"),
        (lambda: TWO.impulse_response(input=1.5), r"impulse_response: input has 1\.5, expected a name or a number below 2"),
        (lambda: TWO.impulse_response("x", input=0), "impulse_response: t is 'x', expected real numbers"),
        (lambda: c.tune(TWO, 0, controls=[], measurements=1), "tune: 0 controls and 1 measurements, expected one or more"),
        (lambda: c.tune(TWO, 0, seed=-1, **LAST), "tune: seed is -1, expected a whole number from 0 on"),
    ],
)  # fmt: skip
def test_plausible_mistakes_are_told(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make()
