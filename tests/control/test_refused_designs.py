"""What designs say of plants, weights, rates and units that they cannot take."""

import numpy as np
import pytest

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
        (lambda: c.connect([LAG], inputs=["u0"], outputs=["y0"]), "connect: list is no system"),
        (lambda: c.append(), "append: no system was given"),
        (lambda: c.augment(EVERY_1, EVERY_2), "augment: the systems have different rates"),
        (lambda: c.ncfsyn(EVERY_1, LAG), "ncfsyn: the systems have different rates"),
        (lambda: c.ncf_margin(EVERY_1, LAG), "ncf_margin: the systems have different rates"),
        (lambda: c.ncf_margin(LAG, static(np.eye(2))), r"ncf_margin: K has shape \(2, 2\), expected \(1, 1\)"),
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
