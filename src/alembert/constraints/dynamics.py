"""Dynamics under constraints: accelerations, efforts, impulses.

a = a_free + x,   G x = -(gamma + G a_free)                 forward (steps A to F)             (1)
v+ = v + x,       G x = -G v                                impulse                            (2)
E^T (M a + bias) = E^T B u,   G E = 0                       efforts u of the driven dofs       (3)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.constraints import drives, quick, rank
from alembert.constraints.drives import Drives
from alembert.constraints.results import (
    ConstrainedEfforts,
    ConstrainedResult,
    ConstraintAnalysis,
    ImpulseResult,
)
from alembert.constraints.states import States, Terms, states
from alembert.constraints.system import ConstraintSystem
from alembert.constraints.tolerances import BREAKS, CONSISTENT, STILL
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
    found_quickly = _attempt(system, function, (q, v, tau), forces, parameters, closed, reactions)
    if found_quickly is not None:
        return found_quickly
    s, forces = _with_wrenches(model, function, q, {"v": v, "tau": tau}, forces, parameters)
    if len(s) and not _locked(system, s.q) and system.prepare(s, closed):
        arrays = s.given(s.q, *s.vectors) if forces is None else s.given(s.q, *s.vectors, forces)
        found = quick.accelerations(
            system, arrays, wrenches=forces is not None, closed=closed, unique=reactions
        )
        if found is not None:
            a, f, wrench = (x.reshape(*s.shape, *x.shape[1:]) for x in found)
            return ConstrainedResult(a, system.named(f, wrench) if reactions else {})
    a = _tree(system, "forward_dynamics", function, s, forces)
    if not system.count:
        return ConstrainedResult(
            a.reshape(*s.shape, model.nv), system.reactions(s, _no_terms(s, model.nv), a[:, :0])
        )
    t = system.terms(s, s.vectors[0])
    system.check_closed(function, s, t, s.vectors[0], closed)
    finite = np.isfinite(a).all(axis=-1)
    f = np.full((len(s), system.count), np.nan)
    if len(s) and finite.all():
        x, f = _correct(system, function, s, t, a, reactions)
        a = a + x
    elif finite.any():
        x, f[finite] = _correct(system, function, s.at(finite), _at(t, finite), a[finite], reactions)
        a[finite] += x
    if not reactions:
        return ConstrainedResult(a.reshape(*s.shape, model.nv), {})
    system.tell_redundancy(function, s, t)
    return ConstrainedResult(a.reshape(*s.shape, model.nv), system.reactions(s, t, f))


def _attempt(
    system: ConstraintSystem,
    function: str,
    given: tuple[Any, ...],
    forces: Array | None,
    parameters: Parameters,
    closed: float,
    reactions: bool,
) -> ConstrainedResult | None:
    """The compiled function on the arguments as they come; what it does not like is looked at more closely."""
    model = system.model
    if system.all.primary.compute.lockable or (parameters and not model.parameters):
        return None
    if forces is not None:
        given = (*given, forces)
    if model.parameters:
        given = (*given, model.compute.parameter_array(function, parameters))
    try:
        found = quick.accelerations(
            system, given, wrenches=forces is not None, closed=closed, unique=reactions
        )
    except (ArgumentError, TypeError, ValueError):
        return None
    if found is None:
        return None
    return ConstrainedResult(found[0], system.named(found[1], found[2]) if reactions else {})


def _locked(system: ConstraintSystem, q: Array) -> bool:
    """Whether some joint of the tree is where its accelerations are not defined."""
    tree = system.all.primary
    return any(o.type.singularity(q[..., o.q]) for o in tree.compute.lockable)


def _correct(
    system: ConstraintSystem, function: str, s: States, t: Terms, a: Array, forces: bool
) -> tuple[Array, Array]:
    v = s.vectors[0]
    b = -(t.bias + (t.jacobian @ a[..., None])[..., 0])
    size = np.linalg.norm(a, axis=-1) + np.einsum("bi,bi->b", v, v)
    return system.respond(function, s, t, b, size, forces=forces)


def impulse(
    system: ConstraintSystem, function: str, q: Any, v: Any, parameters: Parameters, closed: float
) -> ImpulseResult:
    """(2)"""
    model = system.model
    s = states(model, function, q, {"v": v}, parameters)
    v = s.vectors[0]
    if not system.count:
        return ImpulseResult(
            v.reshape(*s.shape, model.nv).copy(),
            system.reactions(s, _no_terms(s, model.nv), v[:, :0]),
            np.zeros((*s.shape, model.nv)),
        )
    t = system.terms(s)
    system.check_closed(function, s, t, None, closed)
    b = -(t.jacobian @ v[..., None])[..., 0]
    x, f = system.respond(function, s, t, b, np.linalg.norm(v, axis=-1))
    system.tell_redundancy(function, s, t)
    after = (v + x).reshape(*s.shape, model.nv)
    return ImpulseResult(after, system.reactions(s, t, f), np.zeros_like(after))


def analysis(
    system: ConstraintSystem, function: str, q: Any, parameters: Parameters, tolerance: float
) -> ConstraintAnalysis:
    model = system.model
    s = _single(model, function, q, {}, parameters)
    sizes = {name: rows.stop - rows.start for name, rows in system.slices.items()}
    if not system.count:
        return ConstraintAnalysis(0, 0, model.nv, {}, sizes, 1.0, 0.0)
    t = system.terms(s)
    choice = rank.choose(t.jacobian[0], system.groups, tolerance)
    return ConstraintAnalysis(
        system.count,
        choice.rank,
        model.nv - choice.rank,
        system.redundant(choice),
        sizes,
        choice.margin,
        float(np.max(np.abs(t.residual))),
    )


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
    """(3), with the smallest weighted sum of squares where several efforts do the same."""
    model = system.model
    forces = model.compute.wrench_array(function, wrenches, parameters) if wrenches else None
    by = _drives(system, function, actuated)
    root = np.sqrt(weight_vector(model, function, weights))[by.driven] if weights else by.equal
    if by.current is not None:
        quickly = _attempt_inverse(
            system, function, (q, v, a), by, root, forces, parameters, closed, reactions
        )
        if quickly is not None:
            return quickly
    s, forces = _with_wrenches(model, function, q, {"v": v, "a": a}, forces, parameters)
    needed = _tree(system, "inverse_dynamics", function, s, forces)
    v, a = s.vectors
    if system.count:
        t = system.terms(s, v)
        system.check_closed(function, s, t, v, closed)
    else:
        t = _no_terms(s, model.nv)
    efforts, f = np.zeros((len(s), model.nv)), np.zeros((len(s), system.count))
    left, tried, current = np.arange(len(s)), set(), by.current
    while len(left):
        if current is not None and current not in tried:
            tried.add(current)
            arrays = (x[left] for x in (s.q, v, a))
            last = () if s.parameters is None else (s.parameters[left],)
            u, pushes, _, _, status = by.solve(tuple(arrays), needed[left], root, last)
            fine = drives.served(status, closed, unique=False)
            efforts[left[fine]], f[left[fine]] = u[fine], pushes[fine][:, system.picked]
            if reactions:
                several = left[fine & (status[:, 2] > rank.RANK**2)]
                f[several] = _smallest_forces(t.jacobian[several], needed[several] - efforts[several])
            left = left[~fine]
            continue
        k = int(left[0])
        rows = system.choice(function, s, t, k).rows if system.count else np.arange(0)
        _check_acceleration(system, function, t, a[k], v[k], k)
        dependent, free = rank.independent_columns(t.jacobian[k, rows])
        current = by.learn(rows, free)
        if current is None or current in tried:
            E = rank.kernel_basis(t.jacobian[k, rows], dependent, free)
            efforts[k, by.driven] = _smallest(model, function, E, needed[k], by.driven, root, free)
            if system.count:
                f[k] = _smallest_forces(t.jacobian[k], needed[k] - efforts[k])
            left = left[1:]
    return ConstrainedEfforts(
        efforts.reshape(*s.shape, model.nv), system.reactions(s, t, f) if reactions else {}
    )


def _drives(system: ConstraintSystem, function: str, actuated: Sequence[str] | None) -> Drives:
    if actuated is None and None in system.drives:
        return system.drives[None]
    driven = _driven(system.model, function, actuated)
    key = None if actuated is None else tuple(driven.tolist())
    return system.drives.setdefault(key, Drives(system, driven))


def _attempt_inverse(
    system: ConstraintSystem,
    function: str,
    given: tuple[Any, ...],
    by: Drives,
    root: Array,
    forces: Array | None,
    parameters: Parameters,
    closed: float,
    reactions: bool,
) -> ConstrainedEfforts | None:
    """The compiled function on the arguments as they come, if it serves all states."""
    model = system.model
    if parameters and not model.parameters:
        return None
    last = (model.compute.parameter_array(function, parameters),) if model.parameters else ()
    kernel = system.all.primary.compute.kernel("inverse_dynamics", wrenches=forces is not None)
    try:
        needed = kernel(*given, *last) if forces is None else kernel(*given, forces, *last)
        u, f, wrenches, _, status = by.solve(given, needed, root, last)
    except (ArgumentError, TypeError, ValueError):
        return None
    good = drives.all_served(status, closed, unique=reactions)
    return ConstrainedEfforts(u, system.named(f, wrenches) if reactions else {}) if good else None


def _smallest(
    model: Model, function: str, E: Array, needed: Array, driven: Array, root: Array, free: Array
) -> Array:
    """(3) at one state."""
    demand = E.T @ needed
    B = E[driven].T / root
    u = np.linalg.lstsq(B, demand, rcond=1e-10)[0]
    left = demand - B @ u
    if np.max(np.abs(left), initial=0.0) > CONSISTENT * (np.linalg.norm(needed) + np.linalg.norm(E) * 1e-9):
        i = free[int(np.argmax(np.abs(left)))]
        raise NumericalError(
            f"{function}: the actuated set ({_listed(model, driven)}) cannot give this motion: {len(free)} degrees "
            f"of freedom are left by the constraints, the set drives {np.linalg.matrix_rank(B, rtol=1e-10)} of them, "
            f"and {model.speed_names[i]!r} lacks an effort of {np.max(np.abs(left)):.3g}"
        )
    return u / root


def _smallest_forces(G: Array, y: Array) -> Array:
    """The smallest f with G^T f = y, over a batch."""
    return (np.linalg.pinv(np.swapaxes(G, -1, -2), rcond=rank.RANK) @ y[..., None])[..., 0]


def _check_acceleration(
    system: ConstraintSystem, function: str, t: Terms, a: Array, v: Array, k: int
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


# --- inside -------------------------------------------------------------------------------------------------


def _tree(system: ConstraintSystem, name: str, function: str, s: States, forces: Array | None) -> Array:
    """An algorithm of the tree alone, (B, nv); failures are reported under the public function's name."""
    tree = system.all.primary
    kernel = tree.compute.kernel(name, wrenches=forces is not None)
    arrays = (s.q, *s.vectors) if forces is None else (s.q, *s.vectors, forces)
    given = s.given(*arrays)
    result = np.asarray(kernel(*given))
    shaped = result.reshape(*s.shape, result.shape[-1])
    if tree.compute.lockable and name == "forward_dynamics":
        tree.compute.mark_locked(function, (s.q.reshape(*s.shape, s.q.shape[-1]),), shaped)
    tree.compute.explain(function, shaped, given, kernel)
    return result


def _with_wrenches(
    model: Model,
    function: str,
    q: Any,
    vectors: Mapping[str, Any],
    forces: Array | None,
    parameters: Parameters,
) -> tuple[States, Array | None]:
    """The states over the batch of all arguments, and the wrenches on the nodes (B, nodes, 6)."""
    if forces is None:
        return states(model, function, q, vectors, parameters), None
    q = model.compute.numbers(function, "q", q, model.nq)
    try:
        q = np.broadcast_to(q, (*np.broadcast_shapes(q.shape[:-1], forces.shape[:-2]), model.nq))
    except ValueError:
        raise ArgumentError(
            f"{function}: the batch dimensions do not go together: q {q.shape[:-1]}, wrenches {forces.shape[:-2]}"
        ) from None
    s = states(model, function, q, vectors, parameters)
    shape = (*s.shape, *forces.shape[-2:])
    return s, np.ascontiguousarray(np.broadcast_to(forces, shape)).reshape(-1, *forces.shape[-2:])


def _single(
    model: Model, function: str, q: Any, vectors: Mapping[str, Any], parameters: Parameters
) -> States:
    s = states(model, function, q, vectors, parameters)
    if s.shape:
        raise ArgumentError(f"{function}: takes one state at a time, got a batch of shape {s.shape}")
    return s


def _no_terms(s: States, nv: int) -> Terms:
    none = np.zeros((len(s), 0))
    return Terms(none, np.zeros((len(s), 0, nv)), none, np.zeros((len(s), 0, 6)), none, np.zeros(len(s)))


def _at(t: Terms, mask: Array) -> Terms:
    return Terms(
        *(getattr(t, name)[mask] for name in ("residual", "jacobian", "bias", "basis", "scale", "slack"))
    )


def named_dofs(model: Model, function: str, names: Sequence[str], what: str) -> Array:
    """Indices of the speeds of joints, or of single degrees of freedom, by name."""
    if isinstance(names, str):
        raise ArgumentError(f"{function}: {what} is {names!r}, expected a list of names")
    singles = {name: k for k, name in enumerate(model.speed_names)}
    found: list[int] = []
    for name in names:
        if name in model._joint_index:
            s = model.v_slice(name)
            found += range(s.start, s.stop)
        elif name in singles:
            found.append(singles[name])
        else:
            raise ArgumentError(
                unknown(
                    f"{function}: {what}: no joint or degree of freedom",
                    name,
                    [*model._joint_index, *singles],
                )
            )
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


def _driven(model: Model, function: str, actuated: Sequence[str] | None) -> Array:
    """The actuated degrees of freedom: those named, else those of the model's actuators, else all."""
    if actuated is not None:
        return named_dofs(model, function, actuated, "actuated")
    if not model.actuators:
        return np.arange(model.nv)
    return np.unique([model.v_slice(x.joint).start + x.dof for x in model.actuators])


def _listed(model: Model, dofs: Array) -> str:
    return ", ".join(repr(model.speed_names[k]) for k in dofs) or "none"
