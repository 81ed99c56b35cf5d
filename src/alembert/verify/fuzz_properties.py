"""What the fuzzer asks of models: identities between algorithms, and other ways to the same result.

A *property* takes a model and states (q, v, x) of it and gives an error and the limit that it must keep. Those of trees come
first; those of mechanisms with loops and couplings, of linear models and of motions under controllers follow. A mechanism is
closed at its neutral configuration, so that a smaller one, or one from a file, is closed there too.
"""

from __future__ import annotations

import dataclasses
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np
import scipy

from alembert import library
from alembert.constraints import State
from alembert.control import StateSpace
from alembert.errors import AlembertError
from alembert.linear import linearize
from alembert.model import Coupling, Model
from alembert.model.io import load, save
from alembert.simulate import DynamicController, simulate
from alembert.verify.programs import DYNAMICS
from alembert.verify.random_models import (
    EPS,
    LOOP_KINDS,
    RATE,
    ROUNDING,
    close,
    dense_solution,
    friction_effort,
    rate_along,
    relative,
    times,
    with_modes,
)

Array = np.ndarray
Measured = tuple[float, float]
"""an error, and its limit"""
Check = Callable[[Model, Array, Array, Array], Measured]


class DoesNotApply(Exception):
    """Raised by a check that has nothing to ask of a model; it is no case then."""


@dataclass(frozen=True)
class Property:
    """A check, and at how many states at most: few where each takes long, one where it asks the model alone."""

    check: Check
    states: int = 1_000_000

    def at(self, model: Model, q: Array, v: Array, x: Array) -> Measured:
        """The error and its limit, at the first of the states."""
        return self.check(model, q[: self.states], v[: self.states], x[: self.states])


TREES: dict[str, Property] = {}


def property_of(group: dict[str, Property], *, states: int = 1_000_000) -> Callable[[Check], Check]:
    """Adds a check to the properties of a group, by its name."""

    def added(check: Check) -> Check:
        group[check.__name__] = Property(check, states)
        return check

    return added


# --- identities -----------------------------------------------------------------------------------------------


@property_of(TREES)
def forward_undoes_inverse(model: Model, q: Array, v: Array, x: Array) -> Measured:
    a = model.forward_dynamics(q, v, x)
    terms = np.abs(model.multiply_mass_matrix(q, a)) + np.abs(model.bias_forces(q, v)) + np.abs(x)
    return relative(model.inverse_dynamics(q, v, a) - x, terms), ROUNDING


@property_of(TREES)
def equation_of_motion(model: Model, q: Array, v: Array, x: Array) -> Measured:
    product, bias = times(model.mass_matrix(q), x), model.bias_forces(q, v)
    error = product + bias - model.inverse_dynamics(q, v, x)
    return relative(error, np.abs(product) + np.abs(bias) + EPS), ROUNDING


@property_of(TREES)
def kinetic_energy(model: Model, q: Array, v: Array, x: Array) -> Measured:
    T = model.kinetic_energy(q, v)
    return float(np.max(np.abs(np.sum(v * times(model.mass_matrix(q), v), axis=-1) / 2 / T - 1))), ROUNDING


@property_of(TREES)
def bias_has_its_parts(model: Model, q: Array, v: Array, x: Array) -> Measured:
    coriolis, rest = model.coriolis_forces(q, v), model.bias_forces(q, 0 * v)
    error = model.bias_forces(q, v) - coriolis - rest - friction_effort(model, v)
    return relative(
        error, np.abs(coriolis) + np.abs(rest) + np.abs(friction_effort(model, v)) + EPS
    ), ROUNDING


@property_of(TREES)
def coriolis_power(model: Model, q: Array, v: Array, x: Array) -> Measured:
    half = rate_along(lambda q, v: model.mass_matrix(q), model, q, v, 0 * v) / 2
    work = np.sum(v * model.coriolis_forces(q, v), axis=-1)
    size = np.sum(np.abs(v) * times(np.abs(model.mass_matrix(q)) + np.abs(half), np.abs(v)), axis=-1)
    return float(np.max(np.abs(work - np.sum(v * times(half, v), axis=-1)) / size)), RATE


@property_of(TREES)
def gradient_of_the_potential(model: Model, q: Array, v: Array, x: Array) -> Measured:
    change = rate_along(lambda q, v: model.potential_energy(q), model, q, v, 0 * v)
    bias = model.bias_forces(q, 0 * v)
    size = np.sum(np.abs(bias * v), axis=-1) + np.abs(model.potential_energy(q)) + 1.0
    return float(np.max(np.abs(change - np.sum(bias * v, axis=-1)) / size)), RATE


@property_of(TREES)
def methods_agree(model: Model, q: Array, v: Array, x: Array) -> Measured:
    expected = model.forward_dynamics(q, v, x)
    size = np.linalg.cond(model.mass_matrix(q)) * (np.linalg.norm(expected, axis=-1) + EPS)
    found = model.forward_dynamics(q, v, x, method="factorise")
    return float(np.max(np.linalg.norm(found - expected, axis=-1) / size)), ROUNDING


@property_of(TREES)
def mass_matrix_solved(model: Model, q: Array, v: Array, x: Array) -> Measured:
    M, a = model.mass_matrix(q), model.solve_mass_matrix(q, x)
    size = np.linalg.norm(M, axis=(-1, -2)) * np.linalg.norm(a, axis=-1)
    return float(np.max(np.linalg.norm(times(M, a) - x, axis=-1) / size)), ROUNDING


@property_of(TREES)
def hybrid_satisfies_the_equation_of_motion(model: Model, q: Array, v: Array, x: Array) -> Measured:
    free = (np.cumsum(np.abs(x), axis=-1) % 1.0 < 0.5).astype(float)
    a, effort = model.compile("hybrid_dynamics", batch=True)(q, v, x, x[..., ::-1], free)
    product, bias = times(model.mass_matrix(q), a), model.bias_forces(q, v)
    given = np.where(free > 0.5, effort - x, a - x[..., ::-1])
    if np.any(given != 0):
        return float("inf"), ROUNDING
    return relative(product + bias - effort, np.abs(product) + np.abs(bias) + np.abs(x) + EPS), ROUNDING


@property_of(TREES)
def momentum(model: Model, q: Array, v: Array, x: Array) -> Measured:
    h, A = model.momentum(q, v, about="world"), model.momentum_matrix(q, about="world")
    return relative(h - times(A, v), np.linalg.norm(A, axis=-1) * np.abs(v).max()), ROUNDING


def _last_that_moves(model: Model) -> str:
    """The last body that a moving joint carries; one that is fixed to the world takes no wrench."""
    moving: dict[str, bool] = {}
    for joint in model.joints:
        moving[joint.child] = joint.type.nv > 0 or moving.get(joint.parent, False)
    return [name for name, moves in moving.items() if moves][-1]


@property_of(TREES)
def frame_jacobians(model: Model, q: Array, v: Array, x: Array) -> Measured:
    frame = _last_that_moves(model)
    worst = 0.0
    for reference in ("local", "world", "local_world_aligned"):
        J = model.frame_jacobian(q, frame, reference=reference)
        V = model.frame_velocity(q, v, frame, reference=reference)
        size = np.linalg.norm(J, axis=(-1, -2)) * np.linalg.norm(v, axis=-1) + EPS
        worst = max(worst, float(np.max(np.linalg.norm(times(J, v) - V, axis=-1) / size)))
    return worst, ROUNDING


@property_of(TREES)
def wrenches_are_efforts(model: Model, q: Array, v: Array, x: Array) -> Measured:
    frame, F = _last_that_moves(model), np.arange(1.0, 7.0)
    tau = model.inverse_dynamics(q, v, x)
    change = tau - model.inverse_dynamics(q, v, x, wrenches={frame: F})
    J = model.frame_jacobian(q, frame)
    size = np.abs(tau) + np.linalg.norm(J, axis=(-1, -2))[:, None] * 10.0
    return relative(change - np.swapaxes(J, -1, -2) @ F, size), ROUNDING


@property_of(TREES)
def configurations_form_a_manifold(model: Model, q: Array, v: Array, x: Array) -> Measured:
    dv = 0.5 * v / (1.0 + np.abs(v).max())
    back = model.difference(q, model.integrate(q, dv))
    return float(np.max(np.abs(back - dv), initial=0.0)), 1e-12


@property_of(TREES)
def derivatives_are_differences(model: Model, q: Array, v: Array, x: Array) -> Measured:
    d = model.forward_dynamics_derivatives(q, v, x)
    dq, dv = 0.3 * x / np.abs(x).max(), 0.3 * v / np.abs(v).max()
    h = 1e-4

    def at(k: int) -> Array:
        return model.forward_dynamics(model.integrate(q, k * h * dq), v + k * h * dv, x)

    change = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
    found = times(d.dq, dq) + times(d.dv, dv)
    terms = np.linalg.norm(found, axis=-1) + np.linalg.norm(at(0), axis=-1) * np.linalg.cond(
        model.mass_matrix(q)
    )
    # Coulomb friction is smoothed over speeds s: (h/s)^4 of it is left
    return float(np.max(np.linalg.norm(found - change, axis=-1) / terms)), 1e-6


@property_of(TREES, states=2)
def products_are_adjoint(model: Model, q: Array, v: Array, x: Array) -> Measured:
    worst = 0.0
    for state in zip(q, v, x, strict=True):
        along = (state[1], state[2], state[1])
        _, change = model.jvp("forward_dynamics", state, along)
        gradients = model.vjp("forward_dynamics", state, state[2])
        left = float(np.dot(state[2], change))
        parts = [float(np.dot(g, d)) for g, d in zip(gradients, along, strict=True)]
        size = sum(abs(part) for part in parts) + abs(left) + float(np.abs(change) @ np.abs(state[2]))
        size *= float(np.linalg.cond(model.mass_matrix(state[0]))) ** 0.5
        worst = max(worst, abs(left - sum(parts)) / (size + EPS))
    return worst, 1e-10


# --- oracles --------------------------------------------------------------------------------------------------


@property_of(TREES)
def alone_as_in_a_batch(model: Model, q: Array, v: Array, x: Array) -> Measured:
    batch = model.forward_dynamics(q, v, x)
    alone = np.array([model.forward_dynamics(*state) for state in zip(q, v, x, strict=True)])
    return float(np.sum(batch != alone)), 0.0


@property_of(TREES)
def rolled_code(model: Model, q: Array, v: Array, x: Array) -> Measured:
    found = model.compile("forward_dynamics", batch=True, lowering="rolled")(q, v, x)
    expected = model.forward_dynamics(q, v, x)
    size = np.linalg.cond(model.mass_matrix(q)) * (np.linalg.norm(expected, axis=-1) + EPS)
    return float(np.max(np.linalg.norm(found - expected, axis=-1) / size)), ROUNDING


@property_of(TREES)
def casadi_machine(model: Model, q: Array, v: Array, x: Array) -> Measured:
    s = [ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("x", model.nv))]
    function = ca.Function("f", s, [model.symbolic.inverse_dynamics(*s)])
    found = np.array([function(*state).full().ravel() for state in zip(q, v, x, strict=True)])
    expected = model.inverse_dynamics(q, v, x)
    size = np.abs(expected) + np.abs(model.bias_forces(q, v)) + np.abs(times(model.mass_matrix(q), x)) + EPS
    return relative(found - expected, size), ROUNDING


@property_of(TREES, states=1)
def file_and_back(model: Model, q: Array, v: Array, x: Array) -> Measured:
    if any(joint.type.kind == "custom" for joint in model.joints):
        raise DoesNotApply("no file holds custom joints")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.toml"
        save(model, path)
        return float(load(path) != model), 0.0


@property_of(TREES, states=6)
def pickled(model: Model, q: Array, v: Array, x: Array) -> Measured:
    other = pickle.loads(pickle.dumps(model))
    return float(np.sum(other.forward_dynamics(q, v, x) != model.forward_dynamics(q, v, x))), 0.0


def _other(name: str, model: Model, q: Array, v: Array, x: Array) -> Measured:
    """Another program, where it is installed and has such joints; none has modes."""
    if model.space.of_bodies:
        raise DoesNotApply(f"{name} has no modes")
    plain = model.replace(
        joints=tuple(
            dataclasses.replace(j, spring=None, friction=None, rotors=(), armature=()) for j in model.joints
        )
    )
    try:
        other = DYNAMICS[name].load(plain)
    except (ImportError, AlembertError) as error:
        raise DoesNotApply(str(error)) from error
    theirs = np.array([other.inverse_dynamics(*state) for state in zip(q, v, x, strict=True)])
    ours = plain.inverse_dynamics(q, v, x)
    size = np.abs(times(plain.mass_matrix(q), x)) + np.abs(plain.bias_forces(q, v)) + EPS
    return relative(ours - theirs, size), 1e-11


@property_of(TREES)
def pinocchio(model: Model, q: Array, v: Array, x: Array) -> Measured:
    return _other("pinocchio", model, q, v, x)


@property_of(TREES)
def mujoco(model: Model, q: Array, v: Array, x: Array) -> Measured:
    return _other("mujoco", model, q, v, x)


LOOPS: dict[str, Property] = {"file_and_back": Property(file_and_back, 1), "pickled": Property(pickled, 6)}
WELL = 1e3
"""condition of the constraints up to which states are drawn: tolerances grow with it"""
TREE_KINDS = ("revolute", "prismatic", "cylindrical", "planar", "spherical", "universal")


def draw_closed(seed: int) -> Model:
    """A floating tree of four to eight bodies with one to three loops, and a coupling where two joints can have one."""
    rng = np.random.default_rng((seed, 2))
    for attempt in range(50):
        tree = library.random_tree(
            1000 * seed + attempt,
            bodies=int(rng.integers(4, 9)),
            kinds=TREE_KINDS,
            floating=True,
            branching=float(rng.uniform(0, 0.8)),
            attachments=bool(rng.random() < 0.5),
        )
        if rng.random() < 0.25:
            tree = with_modes(tree, seed)
        kinds = [str(kind) for kind in rng.choice(LOOP_KINDS, size=rng.integers(1, 4), replace=False)]
        try:
            model, _ = close(tree, kinds, seed, tree.neutral())
        except LookupError:
            continue
        model = _coupled(model, rng)
        if _condition(model, model.neutral())[0] < WELL:
            return model
    raise AssertionError(f"seed {seed}: no mechanism whose constraints are well conditioned")


def _coupled(model: Model, rng: np.random.Generator) -> Model:
    single = [joint.name for joint in model.joints if joint.type.nv == joint.type.nq == 1]
    if len(single) < 2 or rng.random() < 0.5:
        return model
    follower, master = (str(name) for name in rng.permutation(single)[:2])
    q, ratio = model.neutral(), float(rng.uniform(0.5, 2.0))
    offset = float(q[model.q_slice(follower)][0] - ratio * q[model.q_slice(master)][0])
    return model.replace(couplings=(Coupling("coupled", follower, (master,), (ratio,), offset),))


def _condition(model: Model, q: Array) -> tuple[float, int]:
    """Of G in the metric of the mass matrix, over the rows that are independent, and how many these are; infinite where
    that is no metric.
    """
    G = model.constraint_jacobian(q)
    try:
        root = np.linalg.cholesky(model.mass_matrix(q))
    except np.linalg.LinAlgError:  # bodies deform by more than their modes can say
        return np.inf, 0
    sizes = np.linalg.svd(np.linalg.solve(root, G.T), compute_uv=False)
    kept = sizes[sizes > 1e-9 * sizes[0]]
    return float(kept[0] / kept[-1]), len(kept)


def closed_states(model: Model, count: int, seed: int) -> tuple[Array, Array, Array]:
    """Configurations and speeds that keep all loops closed, and a third vector over the speeds.

    Where fewer rows are independent than elsewhere, constraints may contradict each other: no such configuration is drawn.
    """
    rng = np.random.default_rng(seed)
    q0 = model.neutral()
    found: list[State] = []
    most = vain = 0
    while len(found) < count:
        for size in (0.4, 0.1, 0.02, 0.0):
            guess = model.integrate(q0, size * rng.normal(size=model.nv))
            for owner in model.space.of_bodies.values():
                guess[owner.q] *= 0.1
            try:
                state = model.assemble(guess, rng.normal(size=model.nv))
            except AlembertError:
                continue
            condition, rank = _condition(model, state.q)
            if rank > most:
                found, most = [], rank
            if condition < WELL and rank == most:
                found.append(state)
                break
        else:
            vain += 1
            if vain > 100 + 10 * count:
                raise AssertionError("no configuration closes the loops with all their rows")
    return (
        np.array([s.q for s in found]),
        np.array([s.v for s in found]),
        rng.normal(size=(count, model.nv)),
    )


def _sizes(model: Model, q: Array, v: Array, x: Array) -> tuple[Array, Array, Array]:
    """The terms of the equations of motion, how ill-conditioned they are, and the accelerations."""
    M = model.mass_matrix(q)
    a = model.constrained_dynamics(q, v, x).accelerations
    size = np.linalg.norm(times(M, a), axis=-1) + np.linalg.norm(model.bias_forces(q, v), axis=-1)
    size = size + np.linalg.norm(x, axis=-1)
    condition = np.linalg.cond(M) * np.array([_condition(model, one)[0] for one in q])
    return size, condition, a


@property_of(LOOPS, states=16)
def dense_equations(model: Model, q: Array, v: Array, x: Array) -> Measured:
    """Accelerations and forces of constraints against least squares on the whole matrix."""
    size, condition, a = _sizes(model, q, v, x)
    M = model.mass_matrix(q)
    force = times(M, a) + model.bias_forces(q, v) - x
    worst = 0.0
    for k in range(len(q)):
        expected, expected_force = dense_solution(model, q[k], v[k], x[k])
        bound = condition[k] * (
            np.linalg.norm(expected) + np.linalg.norm(a[k]) + size[k] / np.linalg.norm(M[k])
        )
        worst = max(worst, float(np.linalg.norm(a[k] - expected) / bound))
        worst = max(worst, float(np.linalg.norm(force[k] - expected_force) / (condition[k] * size[k])))
    return worst, ROUNDING


@property_of(LOOPS)
def accelerations_keep_loops_closed(model: Model, q: Array, v: Array, x: Array) -> Measured:
    _, condition, a = _sizes(model, q, v, x)
    G, gamma = model.constraint_jacobian(q), model.constraint_bias(q, v)
    size = np.linalg.norm(G, axis=(-1, -2)) * np.linalg.norm(a, axis=-1) + np.linalg.norm(gamma, axis=-1)
    error = np.linalg.norm(times(G, a) + gamma, axis=-1)
    return float(np.max(error / (condition * size))), ROUNDING


@property_of(LOOPS)
def reactions_do_no_work(model: Model, q: Array, v: Array, x: Array) -> Measured:
    size, condition, a = _sizes(model, q, v, x)
    force = times(model.mass_matrix(q), a) + model.bias_forces(q, v) - x
    power = np.abs(np.sum(force * v, axis=-1)) / (size * np.linalg.norm(v, axis=-1))
    # the speeds come from an iteration that ends with a residual of some 1e-12
    return float(np.max(power / condition)), 1e-11


@property_of(LOOPS)
def jacobian_is_the_rate_of_the_residual(model: Model, q: Array, v: Array, x: Array) -> Measured:
    """Also for speeds that open the loops."""
    change = rate_along(lambda q, v: model.constraint_residual(q), model, q, x, 0 * x)
    G = model.constraint_jacobian(q)
    size = np.linalg.norm(G, axis=(-1, -2)) * np.linalg.norm(x, axis=-1)
    return float(np.max(np.linalg.norm(change - times(G, x), axis=-1) / size)), 10 * RATE


@property_of(LOOPS)
def bias_is_the_rate_of_the_jacobian(model: Model, q: Array, v: Array, x: Array) -> Measured:
    change = rate_along(lambda q, v: times(model.constraint_jacobian(q), v), model, q, v, 0 * v)
    gamma = model.constraint_bias(q, v)
    size = np.linalg.norm(model.constraint_jacobian(q), axis=(-1, -2)) * (1 + np.sum(v * v, axis=-1))
    return float(np.max(np.linalg.norm(change - gamma, axis=-1) / size)), 10 * RATE


@property_of(LOOPS)
def impulses_lose_the_energy_of_the_jump(model: Model, q: Array, v: Array, x: Array) -> Measured:
    """Carnot's theorem: T before = T after + T of the difference; and the loops are closed in speeds after it."""
    after = model.impulse(q, x).velocities
    T = [model.kinetic_energy(q, speeds) for speeds in (x, after, x - after)]
    G = model.constraint_jacobian(q)
    open_ = np.linalg.norm(times(G, after), axis=-1) / (
        np.linalg.norm(G, axis=(-1, -2)) * np.linalg.norm(x, axis=-1)
    )
    _, condition, _ = _sizes(model, q, v, x)
    error = np.maximum(np.abs(T[0] - T[1] - T[2]) / T[0], open_)
    return float(np.max(error / condition)), ROUNDING


@property_of(LOOPS, states=6)
def inverse_undoes_forward(model: Model, q: Array, v: Array, x: Array) -> Measured:
    """The efforts of all joints that give the accelerations of x again; among equals the least."""
    if model.space.of_bodies:
        raise DoesNotApply("modes have no drives")
    size, condition, a = _sizes(model, q, v, x)
    found = model.constrained_inverse_dynamics(q, v, a, actuated=[j.name for j in model.joints if j.type.nv])
    again = model.constrained_dynamics(q, v, found.efforts).accelerations
    least = np.max(np.linalg.norm(found.efforts, axis=-1) / (np.linalg.norm(x, axis=-1) + EPS)) - 1.0
    bound = condition * (
        np.linalg.norm(a, axis=-1) + size / np.linalg.norm(model.mass_matrix(q), axis=(-1, -2))
    )
    return max(float(np.max(np.linalg.norm(again - a, axis=-1) / bound)), float(least) * 1e-3), 10 * ROUNDING


@property_of(LOOPS, states=3)
def closed_derivatives_are_differences(model: Model, q: Array, v: Array, x: Array) -> Measured:
    d = model.constrained_dynamics_derivatives(q, v, x)
    dq, dv, h = 0.3 * x / np.abs(x).max(), 0.3 * v / np.abs(v).max(), 1e-4

    def at(k: int) -> Array:
        return model.constrained_dynamics(model.integrate(q, k * h * dq), v + k * h * dv, x).accelerations

    change = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * h)
    found = times(d.dq, dq) + times(d.dv, dv)
    _, condition, a = _sizes(model, q, v, x)
    terms = np.linalg.norm(found, axis=-1) + np.linalg.norm(a, axis=-1) * condition
    return float(np.max(np.linalg.norm(found - change, axis=-1) / terms)), 1e-6


@property_of(LOOPS, states=16)
def closed_alone_as_in_a_batch(model: Model, q: Array, v: Array, x: Array) -> Measured:
    batch = model.constrained_dynamics(q, v, x).accelerations
    alone = [model.constrained_dynamics(*state).accelerations for state in zip(q, v, x, strict=True)]
    return float(np.sum(batch != np.array(alone))), 0.0


@property_of(LOOPS)
def reduced_kinetic_energy(model: Model, q: Array, v: Array, x: Array) -> Measured:
    worst = 0.0
    for k in range(min(len(q), 16)):
        chosen = model.independent_coordinates(q[k])
        reduced = model.reduced_mass_matrix(q[k])
        part = v[k][list(chosen.indices)]
        T = float(model.kinetic_energy(q[k], v[k]))
        worst = max(worst, abs(float(part @ reduced @ part) / 2 / T - 1) / float(np.linalg.cond(reduced)))
    return worst, 1e-11


@property_of(LOOPS)
def closed_equation_of_motion(model: Model, q: Array, v: Array, x: Array) -> Measured:
    """What the constraints exert lies in the rows of G: nothing is left beside them."""
    size, condition, a = _sizes(model, q, v, x)
    force = times(model.mass_matrix(q), a) + model.bias_forces(q, v) - x
    G = model.constraint_jacobian(q)
    left = np.array(
        [f - g.T @ np.linalg.lstsq(g.T, f, rcond=1e-10)[0] for f, g in zip(force, G, strict=True)]
    )
    return relative(left, (condition * size)[:, None]), ROUNDING


# --- of linear models, and of motions under controllers, of trees and of mechanisms ----------------------------------

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
        other = scipy.integrate.solve_ivp(
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
