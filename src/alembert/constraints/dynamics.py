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

from alembert import arguments
from alembert.arguments import mapping
from alembert.constraints import compiled, drives, saddle, solver
from alembert.constraints.drives import Drives
from alembert.constraints.results import (
    BREAKS,
    CONSISTENT,
    RANK,
    STILL,
    ConstrainedEfforts,
    ConstrainedResult,
    ConstraintAnalysis,
    ImpulseResult,
)
from alembert.constraints.solver import ConstrainedCall, Parameters, Wrenches
from alembert.constraints.states import RowTerms, States, common_batch
from alembert.constraints.system import ConstraintSystem
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from alembert.constraints.compute import ConstrainedCompute
    from alembert.model import Model

Array = np.ndarray
Active = Sequence[str] | None


def constrained_dynamics(
    compute: ConstrainedCompute,
    q: Any,
    v: Any,
    tau: Any,
    active: Active,
    wrenches: Wrenches,
    parameters: Parameters,
    closure_tolerance: float,
) -> ConstrainedResult:
    """(1)"""
    call = compute.call("constrained_dynamics", active, wrenches, parameters, closure_tolerance)
    return ConstrainedResult(*accelerations(call, q, v, tau, closure_tolerance, True))


def accelerations(
    call: ConstrainedCall, q: Any, v: Any, tau: Any, closed: float, reactions: bool
) -> tuple[Array, Mapping[str, Array]]:
    """(1), with the reactions where these are asked for."""
    system = call.system
    if not call.lockable:
        found = call.directly(_by_kept_set, (q, v, tau), system, closed, reactions)
        if found is not None:
            return found
    s = call.states(q, {"v": v, "tau": tau})
    v = s.vectors[0]
    with solver.no_bare_errors(s.function):
        if len(s) and not solver.locked(system, s.q) and system.prepare(s, closed):
            found = _by_kept_set((s.q, *s.vectors), s.pushes, s.last, system, closed, reactions)
            if found is not None:
                return s.shaped(found[0]), {name: s.shaped(x)[()] for name, x in found[1].items()}
        a = system.tree("forward_dynamics", s)
        t = system.closed_terms(s, v, closed)
        f = np.full((len(s), system.count), np.nan)
        fine = np.isfinite(a).all(axis=-1)
        if fine.any():
            at, t_at, a_at, v_at = (s, t, a, v) if fine.all() else (s.at(fine), t.at(fine), a[fine], v[fine])
            c = -(t_at.bias + (t_at.jacobian @ a_at[..., None])[..., 0])
            size = np.linalg.norm(a_at, axis=-1) + np.einsum("bi,bi->b", v_at, v_at)
            x, f[fine] = solver.respond(system, at, t_at, c, size, forces=reactions)
            a[fine] += x
    system.check_finite(s, a, f, but=~fine)
    if not reactions:
        return s.shaped(a), {}
    system.tell_redundancy(s, t)
    return s.shaped(a), system.reactions(s, t, f)


def _by_kept_set(
    given: Any, pushes: Any, last: Any, system: ConstraintSystem, closed: float, reactions: bool
) -> tuple[Array, Mapping[str, Array]] | None:
    """(1) where the minimal set that is kept serves all states; without rows the tree alone is faster."""
    masks = system.masks if system.count else None
    if masks is None:
        return None
    solved = solver.accelerations(system, given, pushes, last, masks)
    if solved is None or not compiled.all_served(solved[3], closed, unique=reactions):
        return None
    return solved[0], system.named(solved[1], solved[2]) if reactions else {}


def impulse(
    compute: ConstrainedCompute,
    q: Any,
    v: Any,
    held: Sequence[str],
    active: Active,
    parameters: Parameters,
    closure_tolerance: float,
) -> ImpulseResult:
    """(2), or (3) where speeds are held"""
    call = compute.call("impulse", active, None, parameters, closure_tolerance)
    system, model = call.system, call.model
    dofs = named_dofs(model, call.function, held, "held")
    s = call.states(q, {"v": v})
    v, pushes = s.vectors[0], np.zeros((len(s), model.nv))
    with solver.no_bare_errors(s.function):
        t = system.closed_terms(s, None, closure_tolerance)
        if len(dofs):
            x, f = np.zeros((len(s), model.nv)), np.zeros((len(s), system.count))
            for k in range(len(s)):
                x[k], f[k], pushes[k] = _held_impulse(system, s.at(k), t.at(k), v[k], dofs)
        else:
            c = -(t.jacobian @ v[..., None])[..., 0]
            x, f = solver.respond(system, s, t, c, np.linalg.norm(v, axis=-1))
            system.tell_redundancy(s, t)
    system.check_finite(s, x, f, pushes)
    return ImpulseResult(s.shaped(v + x), system.reactions(s, t, f), s.shaped(pushes))


def _held_impulse(
    system: ConstraintSystem, s: States, t: RowTerms, v: Array, held: Array
) -> tuple[Array, Array, Array]:
    """(3) at one state: x, f and the impulses of the drives."""
    model, G, M = system.model, t.jacobian[0], system.mass_matrix(s)[0]
    move = saddle.others(model.nv, held)
    x, pushes = np.zeros(model.nv), np.zeros(model.nv)
    x[move] = saddle.least(M[np.ix_(move, move)], G[:, move], -(G @ v), t.scale[0])
    left = np.abs(G @ (v + x)) / t.scale[0]
    if np.max(left, initial=0.0) > CONSISTENT * np.linalg.norm(v):
        i = int(np.argmax(left))
        raise NumericalError(
            f"{s.function}: no impulse makes all constraints hold{held_fixed(model, held)}: {system.owner_name(i)} would "
            f"open at {left[i]:.3g} per second"
        )
    needed = M @ x
    f = np.linalg.lstsq(G[:, move].T, needed[move], rcond=RANK)[0]
    pushes[held] = needed[held] - G[:, held].T @ f
    return x, f, pushes


def constraint_analysis(
    compute: ConstrainedCompute, q: Any, active: Active, parameters: Parameters, tolerance: float
) -> ConstraintAnalysis:
    call = compute.call("constraint_analysis", active, None, parameters)
    system, s = call.system, call.states(q, {})
    if s.shape:
        raise ArgumentError(f"{s.function}: takes one state at a time, got a batch of shape {s.shape}")
    within = compute.model.compute.numbers(s.function, "tolerance", tolerance)
    if within.ndim or not 0 < within < 1:
        raise ArgumentError(f"{s.function}: tolerance is {tolerance!r}, expected a number between 0 and 1")
    t = system.terms(s)
    choice = saddle.choose(t.jacobian[0], system.groups, float(within))
    return ConstraintAnalysis(
        system.count,
        choice.rank,
        system.model.nv - choice.rank,
        system.redundant(choice),
        {name: rows.stop - rows.start for name, rows in system.slices.items()},
        choice.margin,
        float(np.max(np.abs(t.residual), initial=0.0)),
    )


def constraint_power(
    compute: ConstrainedCompute, q: Any, v: Any, reactions: Mapping[str, Any], parameters: Parameters
) -> dict[str, Array]:
    """F . V_ab of loops, f . (G v) of couplings and equations."""
    name = "constraint_power"
    reactions = mapping(name, "reactions", reactions)
    call = compute.call(name, list(reactions), None, parameters)
    system, model, own = call.system, call.model, call.system.all.unconstrained
    s = call.states(q, {"v": v})
    speeds = s.shaped((system.terms(s).jacobian @ s.vectors[0][..., None])[..., 0])
    loops = {loop.name: loop for loop in model.loops}
    found = {}
    for name, reaction in reactions.items():
        kind, rows = system.all.kinds[name], system.slices[name]
        force = model.compute.numbers(s.function, f"reactions: {name!r}", reaction)
        force = force[..., None] if kind == "coupling" else force
        width = 6 if kind == "loop" else rows.stop - rows.start
        if force.shape[-1:] != (width,) or not np.isfinite(force).all():
            raise ArgumentError(
                f"{s.function}: reactions: {name!r} is {reaction!r}, expected finite numbers (..., {width})"
            )
        common_batch(s.function, {"the state": s.shape, f"reactions: {name!r}": force.shape[:-1]})
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
            opened = speeds[..., rows]
        found[name] = np.sum(force * opened, axis=-1)
    return found


# --- efforts --------------------------------------------------------------------------------------------------------


def constrained_inverse_dynamics(
    compute: ConstrainedCompute,
    q: Any,
    v: Any,
    a: Any,
    actuated: Sequence[str] | None,
    weights: Mapping[str, float] | None,
    active: Active,
    wrenches: Wrenches,
    parameters: Parameters,
    closure_tolerance: float,
) -> ConstrainedEfforts:
    """(4), with the smallest weighted sum of squares where several efforts do the same."""
    call = compute.call("constrained_inverse_dynamics", active, wrenches, parameters, closure_tolerance)
    return ConstrainedEfforts(*efforts(call, q, v, a, actuated, weights, closure_tolerance, True))


def efforts(
    call: ConstrainedCall,
    q: Any,
    v: Any,
    a: Any,
    actuated: Sequence[str] | None,
    weights: Mapping[str, float] | None,
    closed: float,
    reactions: bool,
) -> tuple[Array, Mapping[str, Array]]:
    """(4), with the reactions where these are asked for."""
    system, function = call.system, call.function
    by = drives_of(system, function, actuated)
    root = np.sqrt(weight_vector(call.model, function, weights))[by.driven] if weights else by.equal
    if by.current is not None:
        found = call.directly(_by_current, (q, v, a), system, by, root, closed, reactions)
        if found is not None:
            return found
    s = call.states(q, {"v": v, "a": a})
    with solver.no_bare_errors(function):
        u, f, t = _efforts_at(system, s, by, root, closed, reactions=reactions)
    system.check_finite(s, u, f)
    return s.shaped(u), system.reactions(s, t, f) if reactions else {}


def _by_current(
    given: Any,
    pushes: Any,
    last: Any,
    system: ConstraintSystem,
    by: Drives,
    root: Array,
    closed: float,
    reactions: bool,
) -> tuple[Array, Mapping[str, Array]] | None:
    """(4) where the current choice serves all states."""
    u, f, wrench, _, status = efforts_by_choice(system, by, root, given, pushes, last)
    if not drives.all_served(status, closed, unique=reactions):
        return None
    return u, system.named(f, wrench) if reactions else {}


def _efforts_at(
    system: ConstraintSystem, s: States, by: Drives, root: Array, closed: float, *, reactions: bool
) -> tuple[Array, Array, RowTerms]:
    """Efforts and forces of a batch, by the choices that served before, then by one of each state that is left."""
    needed = system.tree("inverse_dynamics", s)
    v, a = s.vectors
    t = system.closed_terms(s, v, closed)
    efforts, f = np.zeros(v.shape), np.zeros((len(s), system.count))
    left, tried, current = np.arange(len(s)), set(), by.current
    while len(left):
        if current is not None and current not in tried:
            tried.add(current)
            arrays, last = (x[left] for x in (s.q, v, a)), tuple(x[left] for x in s.last)
            u, pushes, _, _, status = by.solve(tuple(arrays), needed[left], root, last)
            fine = drives.states_served(status, closed)
            efforts[left[fine]], f[left[fine]] = u[fine], pushes[fine][:, system.picked]
            if reactions:
                several = left[fine & (status[:, 2] > RANK**2)]
                f[several] = saddle.smallest_forces(t.jacobian[several], needed[several] - efforts[several])
            left = left[~fine]
            continue
        k = int(left[0])
        rows = system.choice(s, t, k).rows
        _check_acceleration(system, s, t, k)
        dependent, free = saddle.independent_columns(t.jacobian[k, rows])
        current = by.learn(rows, free)
        if current is None or current in tried:
            E = saddle.kernel_basis(t.jacobian[k, rows], dependent, free)
            efforts[k, by.driven] = _smallest(system.model, s.function, E, needed[k], by.driven, root, free)
            f[k] = saddle.smallest_forces(t.jacobian[k], needed[k] - efforts[k])
            left = left[1:]
    return efforts, f, t


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


def _check_acceleration(system: ConstraintSystem, s: States, t: RowTerms, k: int) -> None:
    """An acceleration that opens a loop asks for efforts that do not exist."""
    v, a = (x[k] for x in s.vectors)
    left = np.abs(t.jacobian[k] @ a + t.bias[k]) / t.scale[k]
    size = max(np.linalg.norm(a) + v @ v, STILL)
    if np.max(left, initial=0.0) > (BREAKS + 100 * t.slack[k]) * size:
        i = int(np.argmax(left))
        raise ArgumentError(
            f"{s.function}: a breaks {system.owner_name(i)}: G a + gamma is {left[i]:.3g} where it should vanish "
            f"(terms of size {size:.3g}); independent_coordinates(q, v) gives v' = E v_i' + rate"
        )


# --- names --------------------------------------------------------------------------------------------------------


def named_dofs(model: Model, function: str, names: Sequence[str], what: str) -> Array:
    """Indices of the speeds of joints, or of single degrees of freedom, by name, ascending."""
    found = model.space.dofs(function, what, arguments.names(function, what, names))
    return np.unique(np.array(found, dtype=int))


def weight_vector(model: Model, function: str, weights: Mapping[str, float] | None) -> Array:
    """Positive weights of all speeds, 1 where none is given."""
    found = np.ones(model.nv)
    for name, value in mapping(function, "weights", weights).items():
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
