"""Properties of linear models and of motions under controllers for the fuzzer, of trees and of mechanisms with loops."""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from alembert.control import StateSpace
from alembert.linear import linearize
from alembert.model import Model
from alembert.simulate import DynamicController, simulate
from alembert.verify.fuzz_loops import LOOPS
from alembert.verify.fuzz_trees import TREES, DoesNotApply, Measured, property_of
from alembert.verify.random_models import times

Array = np.ndarray
STEP, STEPS = 1e-3, 5
DURATION = 0.01  # s
FINE = 1e-3
"""of differences of fourth order over the state"""


@property_of(TREES, states=16)
def linear_model_is_the_difference_of_two_motions(model: Model, q: Array, v: Array, x: Array) -> Measured:
    linear = linearize(model, q, v, x)
    n = model.nv
    dx = np.concatenate([x / np.abs(x).max(), v / np.abs(v).max()], axis=-1)

    def apart(k: int) -> tuple[Array, Array]:
        """How fast a neighbour at k FINE dx leaves, in places and in speeds."""
        q_k, v_k = model.integrate(q, k * FINE * dx[:, :n]), v + k * FINE * dx[:, n:]
        h = 1e-3

        def at(m: int) -> Array:
            return model.difference(model.integrate(q, m * h * v), model.integrate(q_k, m * h * v_k))

        return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h), model.forward_dynamics(q_k, v_k, x)

    parts = [apart(k) for k in (1, -1, 2, -2)]
    change = [(8 * (a - b) - (c - d)) / (12 * FINE) for a, b, c, d in (zip(*parts, strict=True))]
    found = times(linear.A, dx)
    condition = np.linalg.cond(model.mass_matrix(q))
    size = np.linalg.norm(model.forward_dynamics(q, v, x), axis=-1) * condition
    places = np.linalg.norm(found[:, :n] - change[0], axis=-1) / (1 + np.linalg.norm(v, axis=-1)) ** 5
    speeds = np.linalg.norm(found[:, n:] - change[1], axis=-1) / (np.linalg.norm(found, axis=-1) + size)
    # (FINE w)^4 of the terms with speeds w of up to some 10 / s, and Coulomb friction smoothed over speeds
    return float(max(np.max(places), np.max(speeds))), 1e-6


def _gains(model: Model) -> Array:
    """Small ones, different for each speed."""
    return 0.1 + 0.05 * np.cos(np.arange(model.nv))


@property_of(LOOPS, states=2)
@property_of(TREES, states=2)
def law_in_machine_code(model: Model, q: Array, v: Array, x: Array) -> Measured:
    """A law as a CasADi function, compiled into the loop, against the same one in Python."""
    s = [ca.SX.sym(name, n) for name, n in (("t", 1), ("q", model.nq), ("v", model.nv))]
    gains = _gains(model)
    compiled = ca.Function("law", s, [-gains * s[2] + ca.sin(s[0])])

    def python(t: float, q: Array, v: Array) -> Array:
        return np.asarray(-gains * v + np.sin(t))

    ends = []
    for law in (compiled, python):
        for k in range(len(q)):
            run = simulate(
                model, q[k], v[k], duration=STEPS * STEP, step=STEP, integrator="rk4", controller=law
            )
            ends.append(np.r_[run.q[-1], run.v[-1]])
    half = len(ends) // 2
    size = np.linalg.norm(ends, axis=-1).max() * float(np.max(np.linalg.cond(model.mass_matrix(q))))
    return float(
        max(np.linalg.norm(a - b) for a, b in zip(ends[:half], ends[half:], strict=True))
    ) / size, 1e-11


@property_of(TREES, states=2)
def controller_with_states(model: Model, q: Array, v: Array, x: Array) -> Measured:
    """A filtered damper on a joint, against SciPy's integration of the same equations in (q, v, state of the filter)."""
    single = [joint.name for joint in model.joints if joint.type.nv == joint.type.nq == 1]
    if not single:
        raise DoesNotApply("no joint with one degree of freedom")
    name, rate, gain = single[0], 30.0, 2.0
    filtered = StateSpace(
        [[-rate]], [[rate]], [[-gain]], [[0.0]], input_names=(f"v:{name}",), output_names=(name,)
    )
    controller, k, n = DynamicController(filtered), model.v_slice(name).start, model.nq

    def motion(t: float, y: Array) -> Array:
        q, v, state = y[:n], y[n:-1], y[-1]
        tau = np.zeros(model.nv)
        tau[k] = -gain * state
        return np.r_[model.rate(q, v), model.forward_dynamics(q, v, tau), rate * (v[k] - state)]

    worst = 0.0
    for state in zip(q, v, strict=True):
        run = simulate(model, *state, duration=DURATION, integrator="dop853", controller=controller)
        other = solve_ivp(
            motion, (0.0, DURATION), np.r_[*state, 0.0], method="DOP853", rtol=1e-10, atol=1e-12
        )
        end = other.y[:-1, -1]
        worst = max(
            worst, float(np.linalg.norm(np.r_[run.q[-1], run.v[-1]] - end) / (1 + np.linalg.norm(end)))
        )
    # both keep a tolerance of 1e-9 a step, over some steps; errors grow with the speeds of a free motion
    return worst, 1e-7


@property_of(LOOPS, states=2)
@property_of(TREES, states=2)
def energy_is_work(model: Model, q: Array, v: Array, x: Array) -> Measured:
    """The change of energy under constant efforts against the work that the run says was done."""
    worst = 0.0
    for k in range(len(q)):
        run = simulate(model, q[k], v[k], duration=DURATION, integrator="dop853", efforts=x[k])
        worst = max(worst, float(np.max(np.abs(run.report.energy_error))))
    return worst, 1e-6
