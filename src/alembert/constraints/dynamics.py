"""Dynamics under constraints: accelerations, impulses, efforts; rank, and the power of reactions.

    a = a_free + x,   G x = -(gamma + G a_free)                 forward                                (1)
    v+ = v + x,       G x = -G v                                impulse                                (2)
    M_mm x_m = G_m^T f,   p_h = M_hm x_m - G_h^T f,   x_h = 0   impulse, speeds h held by drives       (3)
    E^T (M a + bias) = E^T B u,   G E = 0                       efforts u of the driven dofs           (4)

In (3) m are the degrees of freedom that move, f the impulses of the constraints and p_h those of the drives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import compiled, rank, saddle, solver
from alembert.constraints.drives import Drives
from alembert.constraints.results import (
    ConstrainedEfforts,
    ConstrainedResult,
    ConstraintAnalysis,
    ImpulseResult,
)
from alembert.constraints.states import RowTerms, States, name_list, states
from alembert.constraints.system import ConstraintSystem
from alembert.constraints.tolerances import BREAKS, CONSISTENT, RANK, STILL
from alembert.errors import ArgumentError, NumericalError
from alembert.model.printing import unknown

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray
Parameters = Mapping[str, Any] | None
Wrenches = Mapping[str, Any] | None


def forward(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    tau: Any,
    wrenches: Wrenches,
    parameters: Parameters,
    closed: float,
    *,
    reactions: bool,
) -> ConstrainedResult:
    """(1)"""
    model = system.model
    forces = model.compute.wrench_array(function, wrenches, parameters) if wrenches else None

    def by_kept_set(given: Any, pushes: Any, last: Any) -> ConstrainedResult | None:
        if system.kept is None:
            return None
        solved = solver.accelerations(system, given, pushes, last, system.masks)
        if solved is None or not compiled.all_served(solved[3], closed, unique=reactions):
            return None
        return ConstrainedResult(solved[0], system.named(solved[1], solved[2]) if reactions else {})

    if not solver.lockable(system):
        found = solver.directly(by_kept_set, system, function, (q, v, tau), forces, parameters)
        if found is not None:
            return found
    s = states(model, function, q, {"v": v, "tau": tau}, parameters, forces)
    v = s.vectors[0]
    if len(s) and not solver.lockable(system, s.q) and system.prepare(s, closed):
        found = by_kept_set((s.q, *s.vectors), s.pushes, s.last)
        if found is not None:
            named = {name: s.shaped(x)[()] for name, x in found.reactions.items()}
            return ConstrainedResult(s.shaped(found.accelerations), named)
    a = system.tree("forward_dynamics", function, s)
    t = system.closed_terms(function, s, v, closed)
    f = np.full((len(s), system.count), np.nan)
    fine = np.isfinite(a).all(axis=-1)
    if fine.any():
        at, t_at, a_at, v_at = (s, t, a, v) if fine.all() else (s.at(fine), t.at(fine), a[fine], v[fine])
        c = -(t_at.bias + (t_at.jacobian @ a_at[..., None])[..., 0])
        size = np.linalg.norm(a_at, axis=-1) + np.einsum("bi,bi->b", v_at, v_at)
        x, f[fine] = solver.respond(system, function, at, t_at, c, size, forces=reactions)
        a[fine] += x
    if not reactions:
        return ConstrainedResult(s.shaped(a), {})
    system.tell_redundancy(function, s, t)
    return ConstrainedResult(s.shaped(a), system.reactions(s, t, f))


def impulse(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    held: Sequence[str],
    parameters: Parameters,
    closed: float,
) -> ImpulseResult:
    """(2), or (3) where speeds are held"""
    model = system.model
    dofs = named_dofs(model, function, held, "held")
    s = states(model, function, q, {"v": v}, parameters)
    v = s.vectors[0]
    t = system.closed_terms(function, s, None, closed)
    drives = np.zeros((len(s), model.nv))
    if len(dofs):
        x, f = np.zeros((len(s), model.nv)), np.zeros((len(s), system.count))
        for k in range(len(s)):
            x[k], f[k], drives[k] = _held_impulse(system, function, s.at(k), t.at(k), v[k], dofs)
    else:
        c = -(t.jacobian @ v[..., None])[..., 0]
        x, f = solver.respond(system, function, s, t, c, np.linalg.norm(v, axis=-1))
        system.tell_redundancy(function, s, t)
    return ImpulseResult(s.shaped(v + x), system.reactions(s, t, f), s.shaped(drives))


def _held_impulse(
    system: ConstraintSystem, function: str, s: States, t: RowTerms, v: Array, held: Array
) -> tuple[Array, Array, Array]:
    """(3) at one state: x, f and the impulses of the drives."""
    model, G, M = system.model, t.jacobian[0], system.mass_matrix(s)[0]
    move = rank.others(model.nv, held)
    x, drives = np.zeros(model.nv), np.zeros(model.nv)
    x[move] = saddle.least(M[np.ix_(move, move)], G[:, move], -(G @ v), t.scale[0])
    left = np.abs(G @ (v + x)) / t.scale[0]
    if np.max(left, initial=0.0) > CONSISTENT * np.linalg.norm(v):
        i = int(np.argmax(left))
        raise NumericalError(
            f"{function}: no impulse makes all constraints hold{held_fixed(model, held)}: {system.owner_name(i)} would open "
            f"at {left[i]:.3g} per second"
        )
    needed = M @ x
    f = np.linalg.lstsq(G[:, move].T, needed[move], rcond=RANK)[0]
    drives[held] = needed[held] - G[:, held].T @ f
    return x, f, drives


def analysis(
    system: ConstraintSystem, function: str, q: Any, parameters: Parameters, tolerance: float
) -> ConstraintAnalysis:
    s = states(system.model, function, q, {}, parameters)
    if s.shape:
        raise ArgumentError(f"{function}: takes one state at a time, got a batch of shape {s.shape}")
    t = system.terms(s)
    choice = rank.choose(t.jacobian[0], system.groups, tolerance)
    return ConstraintAnalysis(
        system.count,
        choice.rank,
        system.model.nv - choice.rank,
        system.redundant(choice),
        {name: rows.stop - rows.start for name, rows in system.slices.items()},
        choice.margin,
        float(np.max(np.abs(t.residual), initial=0.0)),
    )


def power(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    reactions: Mapping[str, Any],
    parameters: Parameters,
) -> dict[str, Array]:
    """F . V_ab of loops, f . (G v) of couplings and equations."""
    model, own = system.model, system.all.unconstrained
    s = states(model, function, q, {"v": v}, parameters)
    speeds = s.shaped((system.terms(s).jacobian @ s.vectors[0][..., None])[..., 0])
    loops = {loop.name: loop for loop in model.loops}
    found = {}
    for name, reaction in reactions.items():
        force = np.asarray(reaction, dtype=float)
        if name in loops:
            ends = (loops[name].frame_a, loops[name].frame_b)
            V_a, V_b = (own.frame_velocity(q, v, x, reference="world", parameters=parameters) for x in ends)
            X = own.frame_pose(q, ends[1], parameters=parameters)
            R, p = np.asarray(X.rotation), np.asarray(X.translation)
            V = V_b - V_a  # of b relative to a, about the world's origin
            at_b = V[..., 3:] - np.cross(p, V[..., :3])
            moved = np.concatenate([V[..., :3], at_b], axis=-1).reshape(*V.shape[:-1], 2, 3)
            opened = np.einsum("...ji,...kj->...ki", R, moved).reshape(V.shape)
        else:
            opened = speeds[..., system.slices[name]]
            force = force[..., None] if system.all.kinds[name] == "coupling" else force
        found[name] = np.sum(force * opened, axis=-1)
    return found


# --- efforts --------------------------------------------------------------------------------------------------------


def inverse(
    system: ConstraintSystem,
    function: str,
    q: Any,
    v: Any,
    a: Any,
    actuated: Sequence[str] | None,
    weights: Mapping[str, float] | None,
    wrenches: Wrenches,
    parameters: Parameters,
    closed: float,
    *,
    reactions: bool = True,
) -> ConstrainedEfforts:
    """(4), with the smallest weighted sum of squares where several efforts do the same."""
    model = system.model
    forces = model.compute.wrench_array(function, wrenches, parameters) if wrenches else None
    by = drives_of(system, function, actuated)
    root = np.sqrt(weight_vector(model, function, weights))[by.driven] if weights else by.equal
    if by.current is not None:

        def by_current(given: Any, pushes: Any, last: Any) -> ConstrainedEfforts | None:
            u, f, wrench, _, status = efforts_by_choice(system, by, root, given, pushes, last)
            if not compiled.all_served(status, closed, unique=reactions):
                return None
            return ConstrainedEfforts(u, system.named(f, wrench) if reactions else {})

        found = solver.directly(by_current, system, function, (q, v, a), forces, parameters)
        if found is not None:
            return found
    s = states(model, function, q, {"v": v, "a": a}, parameters, forces)
    needed = system.tree("inverse_dynamics", function, s)
    v, a = s.vectors
    t = system.closed_terms(function, s, v, closed)
    efforts, f = np.zeros((len(s), model.nv)), np.zeros((len(s), system.count))
    left, tried, current = np.arange(len(s)), set(), by.current
    while len(left):
        if current is not None and current not in tried:
            tried.add(current)
            arrays, last = (x[left] for x in (s.q, v, a)), tuple(x[left] for x in s.last)
            u, pushes, _, _, status = by.solve(tuple(arrays), needed[left], root, last)
            fine = compiled.states_served(status, closed)
            efforts[left[fine]], f[left[fine]] = u[fine], pushes[fine][:, system.picked]
            if reactions:
                several = left[fine & (status[:, 4] > RANK**2)]
                f[several] = saddle.smallest_forces(t.jacobian[several], needed[several] - efforts[several])
            left = left[~fine]
            continue
        k = int(left[0])
        rows = system.choice(function, s, t, k).rows
        _check_acceleration(system, function, t, a[k], v[k], k)
        dependent, free = rank.independent_columns(t.jacobian[k, rows])
        current = by.learn(rows, free)
        if current is None or current in tried:
            E = rank.kernel_basis(t.jacobian[k, rows], dependent, free)
            efforts[k, by.driven] = _smallest(model, function, E, needed[k], by.driven, root, free)
            f[k] = saddle.smallest_forces(t.jacobian[k], needed[k] - efforts[k])
            left = left[1:]
    return ConstrainedEfforts(s.shaped(efforts), system.reactions(s, t, f) if reactions else {})


def drives_of(system: ConstraintSystem, function: str, actuated: Sequence[str] | None) -> Drives:
    """What served the driven speeds before."""
    if actuated is None and None in system.drives:
        return system.drives[None]
    driven = driven_dofs(system.model, function, actuated)
    key = None if actuated is None else tuple(driven.tolist())
    return system.drives.setdefault(key, Drives(system, driven))


def efforts_by_choice(
    system: ConstraintSystem, by: Drives, root: Array, given: Any, pushes: Any, last: Any
) -> Any:
    """Efforts, forces, wrenches, mu and status by the current choice of rows and independent speeds."""
    kernel = system.all.primary.compute.kernel("inverse_dynamics", wrenches=bool(pushes))
    return by.solve(given, kernel(*given, *pushes, *last), root, last)


def _smallest(
    model: Model, function: str, E: Array, needed: Array, driven: Array, root: Array, free: Array
) -> Array:
    """(4) at one state."""
    demand = E.T @ needed
    B = E[driven].T / root
    u = np.linalg.lstsq(B, demand, rcond=1e-10)[0]
    left = demand - B @ u
    if np.max(np.abs(left), initial=0.0) > CONSISTENT * (np.linalg.norm(needed) + np.linalg.norm(E) * 1e-9):
        i = free[int(np.argmax(np.abs(left)))]
        raise NumericalError(
            f"{function}: the actuated set ({listed(model, driven)}) cannot give this motion: {len(free)} degrees "
            f"of freedom are left by the constraints, the set drives {np.linalg.matrix_rank(B, rtol=1e-10)} of them, "
            f"and {model.speed_names[i]!r} lacks an effort of {np.max(np.abs(left)):.3g}"
        )
    return u / root


def _check_acceleration(
    system: ConstraintSystem, function: str, t: RowTerms, a: Array, v: Array, k: int
) -> None:
    """An acceleration that opens a loop asks for efforts that do not exist."""
    left = np.abs(t.jacobian[k] @ a + t.bias[k]) / t.scale[k]
    size = max(np.linalg.norm(a) + v @ v, STILL)
    if np.max(left, initial=0.0) > (BREAKS + 100 * t.slack[k]) * size:
        i = int(np.argmax(left))
        raise ArgumentError(
            f"{function}: a breaks {system.owner_name(i)}: G a + gamma is {left[i]:.3g} where it should vanish "
            f"(terms of size {size:.3g}); independent_coordinates(q, v) gives v' = E v_i' + rate"
        )


# --- names --------------------------------------------------------------------------------------------------------


def named_dofs(model: Model, function: str, names: Sequence[str], what: str) -> Array:
    """Indices of the speeds of joints, or of single degrees of freedom, by name."""
    places = {**{o.name: o.v for o in model.space}, **model.space.speed_places}
    found: list[int] = []
    for name in name_list(function, what, names):
        if name not in places:
            raise ArgumentError(unknown(f"{function}: {what}: no joint or degree of freedom", name, places))
        found += range(places[name].start, places[name].stop)
    return np.unique(np.array(found, dtype=int))


def weight_vector(model: Model, function: str, weights: Mapping[str, float] | None) -> Array:
    """Positive weights of all speeds, 1 where none is given."""
    found = np.ones(model.nv)
    for name, value in (weights or {}).items():
        number = model.compute.numbers(function, f"weights: {name!r}", value)
        if number.ndim or not (np.isfinite(number) and number > 0):
            raise ArgumentError(f"{function}: weights: {name!r} is {value!r}, expected a positive number")
        found[named_dofs(model, function, [name], "weights")] = number
    return found


def driven_dofs(model: Model, function: str, actuated: Sequence[str] | None) -> Array:
    """The actuated degrees of freedom: those named, else those of the model's actuators, else all."""
    if actuated is not None:
        return named_dofs(model, function, actuated, "actuated")
    if not model.actuators:
        return np.arange(model.nv)
    return np.unique([model.v_slice(x.joint).start + x.dof for x in model.actuators])


def listed(model: Model, dofs: Array) -> str:
    return ", ".join(repr(model.speed_names[k]) for k in dofs) or "none"


def held_fixed(model: Model, held: Array) -> str:
    """In messages: with which degrees of freedom fixed."""
    return f" with {listed(model, held)} fixed" if len(held) else ""
