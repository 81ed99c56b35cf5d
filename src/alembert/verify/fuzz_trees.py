"""Properties of trees for the fuzzer: identities between algorithms, and other ways to the same result.

A *property* takes a model and states (q, v, x) of it and gives an error and the limit that it must keep.
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

from alembert.errors import AlembertError
from alembert.model import Model
from alembert.model.io import load, save
from alembert.verify.programs import DYNAMICS
from alembert.verify.random_models import (
    EPS,
    RATE,
    ROUNDING,
    friction_effort,
    rate_along,
    relative,
    times,
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
