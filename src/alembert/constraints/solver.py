"""The one solver of constrained motion: compiled, by the minimal set that is kept, else from the rows themselves.

What all calls have in common is here, whatever the right-hand side (see `alembert.constraints`): functions take the
arguments as they come and serve all states of a batch, or give None. Then the arguments are checked and brought to a batch
(`states`), a minimal set is chosen for each state that needs another, and the system solved by the factors of `saddle`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from alembert.constraints import compiled, saddle
from alembert.constraints.results import CLEAR, CLOSED, CONSISTENT, GOOD, NEAR, OFF, RANK
from alembert.constraints.states import RowTerms, States, finite, states
from alembert.errors import ArgumentError, NumericalError

if TYPE_CHECKING:
    from alembert.constraints.system import ConstraintSystem

Array = np.ndarray
Arrays = tuple[Any, ...]
Parameters = Mapping[str, Any] | None
Wrenches = Mapping[str, Any] | None
Result = TypeVar("Result")
Solved = tuple[Array, Array, Array, Array, Any]
"""accelerations, forces of all rows, wrenches of loops, status (5) of `compiled`, the factor of the tree"""


class ConstrainedCall:
    """One call of a function on the active constraints: arguments as they come, and as a batch of states."""

    __slots__ = ("forces", "function", "lockable", "model", "parameters", "system")

    def __init__(
        self, system: ConstraintSystem, function: str, wrenches: Wrenches, parameters: Parameters
    ) -> None:
        self.system, self.model, self.function, self.parameters = system, system.model, function, parameters
        self.forces = self.model.compute.wrench_array(function, wrenches, parameters) if wrenches else None
        self.lockable = bool(system.all.primary.compute.lockable)
        """whether some joint of the tree may be where its accelerations are not defined"""

    def directly(self, solve: Callable[..., Result | None], given: Arrays, *options: Any) -> Result | None:
        """`solve(given, wrenches, parameters, ...)` on arguments as they come; None where that does not serve."""
        last: Arrays = ()
        if self.model.parameters:
            last = (self.model.compute.parameter_array(self.function, self.parameters),)
        elif self.parameters:
            return None
        try:
            return solve(given, () if self.forces is None else (self.forces,), last, *options)
        except (ArgumentError, TypeError, ValueError):
            return None

    def states(
        self, q: Any, vectors: Mapping[str, Any], others: Mapping[str, tuple[int, ...]] | None = None
    ) -> States:
        return states(self.model, self.function, q, vectors, self.parameters, self.forces, others)


@contextmanager
def no_bare_errors(function: str) -> Iterator[None]:
    """Singular matrices within it are told as such, and numbers that overflow are left to the check of results."""
    try:
        with np.errstate(all="ignore"):
            yield
    except np.linalg.LinAlgError:
        raise NumericalError(
            f"{function}: the equations of the constrained motion are singular: no mass moves with some degree of freedom, "
            "or numbers overflow"
        ) from None


def locked(system: ConstraintSystem, q: Array) -> bool:
    """Whether some joint of the tree is where its accelerations are not defined."""
    return any(o.type.singularity(q[..., o.q]) for o in system.all.primary.compute.lockable)


def accelerations(
    system: ConstraintSystem, given: Arrays, pushes: Arrays, last: Arrays, masks: tuple[Array, Array]
) -> Solved | None:
    """Of q, v and tau, by the rows that `masks` choose and those that are active; None where nothing is compiled for it."""
    rows = system.all
    if rows.solution is None:
        return None
    factor, rest = rows.tree(wrenches=bool(pushes))(*given, *pushes, *last)
    return *rows.solution(given[0], given[1], factor, rest, *masks, *last), factor


def derivatives(
    system: ConstraintSystem, given: Arrays, pushes: Arrays, last: Arrays, solved: Solved, chosen: Array
) -> tuple[Array, Array, Array]:
    """da/dq, da/dv, da/dtau where `accelerations` solved by compiled functions."""
    rows, (a, f, _, _, factor), (q, v) = system.all, solved, given[:2]
    r_q, r_v, _ = rows.primary.compute.kernel("inverse_dynamics_derivatives", wrenches=bool(pushes))(
        q, v, a, *pushes, *last
    )
    kernel = rows.solution_derivatives
    assert kernel is not None
    dq, dv, dtau = kernel(q, factor, chosen, r_q, r_v, *rows.derivatives(q, v, a, f, *last), *last)
    return dq, dv, dtau


def is_own_set(status: Array, closed: float) -> bool:
    """Whether the masks are at all states those of the minimal set that each would choose, and clear for derivatives."""
    return compiled.all_served(status, min(closed, NEAR), pivot=CLEAR, unique=True)


def prescribed(
    system: ConstraintSystem,
    given: Arrays,
    pushes: Arrays,
    last: Arrays,
    motion: tuple[Array, Array],
    closed: float,
) -> tuple[Array, Array] | None:
    """Accelerations and efforts of q, v and tau where speeds follow a `motion`: accelerations, and which they are."""
    kernel = system.all.prescription
    masks = system.masks
    if kernel is None or masks is None or system.all.primary.compute.lockable:
        return None
    solved = accelerations(system, given, pushes, last, masks)
    if solved is None or not compiled.all_served(solved[3], min(closed, NEAR), pivot=CLEAR):
        return None
    a_given, mask = motion
    a, u, quality = kernel(given[0], solved[4], masks[0], solved[0], a_given, mask, *last)
    if not (quality.min(initial=1.0) > CLEAR**2 and np.isfinite(a).all()):
        return None
    return a, given[2] + u


def projection(system: ConstraintSystem, q: Any, v: Any, last: Arrays, goal: float) -> Any:
    """Configurations and speeds on the surface, what is left of the residuals, and the steps; or None."""
    masks, kernel = system.masks, system.all.projection
    if masks is None or kernel is None:
        return None
    tree, zero = system.all.tree(wrenches=False), np.zeros(system.model.nv)
    worst: Any = np.inf
    for count in range(10):  # noqa: B007  (returned)
        x, y, status = kernel(q, v, tree(q, zero, zero, *last)[0], *masks, *last)
        quality, opened, residual, broken = _worst(status)
        if not (quality > GOOD * GOOD and opened <= CLOSED):
            return None
        if status.ndim > 1:
            # each state ends when it would alone, so that its bits do not depend on the others
            each = status[..., 1]
            going = (each > 1e-15) & (each < worst / 2)
            if not going.any():
                break
            worst = np.where(going, each, 0.0)
            q = np.where(going[..., None], system.model.integrate(q, x), q)
            continue
        if opened <= 1e-15 or opened >= worst / 2:
            break
        worst = opened
        q = system.model.integrate(q, x)
    if not np.isfinite(y).all():
        return None
    after = v + y
    if not (opened <= goal and broken <= 1e-10 * max(1.0, float(np.max(np.abs(after))))):
        return None
    q = np.array(q, dtype=float)
    return (q, after, residual, broken, count) if finite(q, after) else None


def _worst(status: Array) -> tuple[float, float, float, float]:
    """(6) of `compiled`, over a batch."""
    if status.ndim == 1:
        quality, opened, residual, broken = status.tolist()
        return quality, opened, residual, broken
    low, high = status.reshape(-1, 4).min(axis=0), status.reshape(-1, 4).max(axis=0)
    return float(low[0]), float(high[1]), float(high[2]), float(high[3])


# --- from the rows --------------------------------------------------------------------------------------------------


def respond(
    system: ConstraintSystem, s: States, t: RowTerms, c: Array, size: Array, *, forces: bool = True
) -> tuple[Array, Array]:
    """x = M^-1 G^T f (B, nv) with G x = c, and f (B, m), the smallest where `forces` are asked for.

    `size` (B) is the magnitude of the terms in G x = c per unit of a row's scale, that errors are measured by. Raises where
    no forces satisfy all rows.
    """
    if not system.count or not len(s):
        return np.zeros((len(s), system.model.nv)), np.zeros((len(s), system.count))
    sets, margins = system.sets(t)
    M = system.mass_matrix(s)
    x, f = (y[..., 0] for y in saddle.by_sets(M, t.jacobian, sets, c[..., None]))
    left = np.where(sets, 0.0, np.abs(np.einsum("bij,bj->bi", t.jacobian, x) - c) / t.scale)
    # where a set is near its end, errors of the rows are magnified
    allowed = (CONSISTENT + np.minimum(100 * t.slack, OFF)) / margins * (size + np.linalg.norm(x, axis=-1))
    wrong = np.any(left > allowed[:, None], axis=-1)
    if wrong.any():
        k = int(np.argmax(wrong))
        i = int(np.argmax(left[k]))
        raise NumericalError(
            f"{s.function}: the constraints contradict each other{system.where(s, k)}: {system.owner_name(i)} cannot "
            f"be satisfied together with the others, by {left[k, i]:.3g} of {size[k]:.3g}. The configuration "
            "is singular for them: the motion may branch or stop there"
        )
    system.keep(s, sets, margins)
    if system.kept is not None and system.kept.rank == np.sum(sets[-1]):
        system.kept = saddle.choice(sets[-1], float(margins[-1]))
    if forces:
        lengths = np.where(sets, 0.0, np.linalg.norm(t.jacobian, axis=-1) / t.scale)
        several = np.max(lengths, axis=-1) > RANK
        f[several] = saddle.smallest_forces(t.jacobian[several], (M @ x[..., None])[several, :, 0])
    return x, f
