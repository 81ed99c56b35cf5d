"""The active constraints of a model, and how the tree responds to their forces.

Notation: G (m x nv) the rows of the active constraints, r of them a minimal set R, D the dropped ones, with D = K R.

    Y = M^-1 R^T,   Lambda = R Y                          sweeps, one per row                   (1)
    x = Y f_r,      Lambda f_r = b_r                      x = M^-1 G^T f with R x = b           (2)
    D x = b_d                                             checked: then x solves all rows       (3)
    K = (D Y) Lambda^-1,   f = [1; K] (1 + K^T K)^-1 f_r  the smallest forces of the same effect (4)

These are steps C to F of Rodriguez, Jain and Kreutz-Delgado (spatial operator algebra, closed topology). The minimal set is
kept from call to call while its pivots stay good and (3) holds, and chosen anew otherwise. Near a singular
configuration Lambda has lost too many digits; x then is found from an orthogonal factorisation R^T = Q U instead:

    x = Q1 y + Q2 z,   U^T y = b_r,   (Q2^T M Q2) z = -Q2^T M Q1 y,   U f_r = Q1^T M x          (5)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from alembert.constraints import compiled, kernels, rank, rolled
from alembert.constraints.parts import parts
from alembert.constraints.rank import Choice
from alembert.constraints.rolled import Rolled
from alembert.constraints.tolerances import CLOSED as CLOSED
from alembert.constraints.tolerances import CONSISTENT as CONSISTENT
from alembert.constraints.tolerances import STILL
from alembert.errors import AlembertWarning, ArgumentError, ModelError, NumericalError, UnsupportedError

if TYPE_CHECKING:
    from alembert.engine.kernel import Kernel
    from alembert.model import Model

Array = np.ndarray

GOOD = 1e-3
"""Smallest pivot of Lambda, with unit diagonal, at which (2) is used: the error is some eps/GOOD^2."""


MANY = 12
"""constraints from which their terms come from loops over them, where that is possible"""
MOST = 60
"""beyond as many constraints the solution is not unrolled: it would compile too long"""
OFF = 1e-3
"""Tolerances of rank and consistency grow with the distance of a state from the surface, up to this."""


class ConstraintRows:
    """All constraints of a model: names, rows, kernels. Made once per model."""

    def __init__(self, model: Model) -> None:
        for loop in model.loops:
            if not loop.type.closes_loops:
                raise UnsupportedError(
                    f"loop {loop.name!r}: this {loop.type.kind} joint cannot close a loop; it has no closed form for its "
                    "coordinates. Give it one (fit=...), or put a body on it and close the loop with another joint"
                )
        self.model = model
        self.parts = parts(model)
        self.kinds: dict[str, str] = {}
        for part in self.parts:
            if part.name in self.kinds:
                raise ModelError(
                    f"a {self.kinds[part.name]} and {_article(part.kind)} are both called {part.name!r}; reactions go by "
                    "these names: rename one"
                )
            self.kinds[part.name] = part.kind
        self.names = tuple(self.kinds)
        ends = np.cumsum([0, *(part.count for part in self.parts)])
        self.slices = {name: slice(int(ends[k]), int(ends[k + 1])) for k, name in enumerate(self.names)}
        self.count = int(ends[-1])
        self.holonomic = np.array([x for part in self.parts for x in part.holonomic], dtype=bool)
        self._systems: dict[tuple[str, ...], ConstraintSystem] = {}

    @cached_property
    def primary(self) -> Model:
        return kernels.primary(self.model)

    @cached_property
    def kernel(self) -> Kernel:
        return kernels.terms_kernel(self.model, list(self.slices.values()))

    @cached_property
    def _places(self) -> Array:
        rows, columns = kernels.jacobian_places(self.model, list(self.slices.values()))
        return rows * self.model.nv + columns

    def terms(self, *given: Array) -> tuple[Array, Array, Array, Array]:
        """phi (B, m), G (B, m, nv), gamma (B, m) and T^T (B, m, 6) of all constraints."""
        if self.rolled is not None:
            return self.rolled.dense(given[0], given[1])
        if not self.count:
            none = np.zeros((len(given[0]), 0))
            return none, np.zeros((len(none), 0, self.model.nv)), none, np.zeros((len(none), 0, 6))
        residual, entries, bias, basis = self.kernel(*given)
        G = np.zeros((len(residual), self.count * self.model.nv))
        G[:, self._places] = entries
        return residual, G.reshape(-1, self.count, self.model.nv), bias, basis

    @cached_property
    def solution(self) -> Kernel | None:
        """The compiled solution, unless it would be too large."""
        if (
            not self.count
            or len(self.parts) > MOST
            or compiled.cost(self.model, self._lively()) > compiled.LARGEST
        ):
            return None
        return compiled.constraint_kernel(self.model, list(self.slices.values()))

    @cached_property
    def rolled(self) -> Rolled | None:
        """Everything in loops over the bodies and constraints, for models with many of them."""
        if len(self.parts) < MANY or not rolled.supports(self.model):
            return None
        return Rolled(self.model, self.primary, self.parts, list(self.slices.values()))

    @cached_property
    def derivatives(self) -> Callable[..., Any]:
        from alembert.constraints.derivatives import derivative_kernel

        return derivative_kernel(self.model, list(self.slices.values()))

    @cached_property
    def projection(self) -> Kernel | None:
        """One step of the projection, compiled under the same condition."""
        if self.solution is None:
            return None
        return compiled.projection_kernel(self.model, list(self.slices.values()))

    def _lively(self) -> list[int]:
        """How many rows of each constraint do not vanish everywhere, by a few samples."""
        q = np.array([self.model.random_configuration(seed) for seed in range(3)])
        given = (
            q,
            np.zeros(self.model.nv),
            *([self.model._parameter_defaults] if self.model.parameters else []),
        )
        G = self.terms(*given)[1]
        lively = np.max(np.abs(G), axis=(0, 2)) > 1e-12
        return [int(np.sum(lively[s])) for s in self.slices.values()]

    def tree(self, *, wrenches: bool) -> Kernel:
        """The compiled terms of the tree that the solution starts from, shared by all sets of constraints."""
        return kernels.tree_kernel(self.primary, wrenches=wrenches)

    def system(self, function: str, active: Sequence[str] | None) -> ConstraintSystem:
        if active is None:
            key = self.names
        else:
            if isinstance(active, str):
                raise ArgumentError(f"{function}: active is {active!r}, expected a list of names")
            for name in active:
                if name not in self.slices:
                    known = ", ".join(map(repr, self.names)) or "none"
                    raise ArgumentError(
                        f"{function}: active: no loop, coupling or equation {name!r}; the model has {known}"
                    )
            key = tuple(name for name in self.names if name in set(active))
        if key not in self._systems:
            self._systems[key] = ConstraintSystem(self, key)
        return self._systems[key]


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


@dataclass(frozen=True, eq=False)
class States:
    """A batch of states, flat: B of them, with the shape to give results."""

    shape: tuple[int, ...]
    q: Array
    vectors: tuple[Array, ...]
    parameters: Array | None

    def __len__(self) -> int:
        return len(self.q)

    def at(self, k: Any) -> States:
        """One state, or some, as a batch."""
        rows = slice(k, k + 1) if isinstance(k, int | np.integer) else k
        parameters = None if self.parameters is None else self.parameters[rows]
        return States((), self.q[rows], tuple(x[rows] for x in self.vectors), parameters)

    def with_q(self, q: Array) -> States:
        return States(self.shape, q, self.vectors, self.parameters)

    def given(self, *arrays: Array, extra: int = 0) -> tuple[Array, ...]:
        """Arguments of a kernel, with the parameters last where the model has any."""
        if self.parameters is None:
            return arrays
        return (*arrays, self.parameters[:, None] if extra else self.parameters)


def states(
    model: Model, function: str, q: Any, vectors: Mapping[str, Any], parameters: Mapping[str, Any] | None
) -> States:
    """Check the arguments of a function and bring them to one batch."""
    arrays = [model._numbers(function, "q", q, model.nq)]
    arrays += [model._numbers(function, name, x, model.nv) for name, x in vectors.items()]
    if model.parameters:
        arrays.append(model._parameter_array(function, parameters))
    elif parameters:
        raise ArgumentError(f"{function}: parameters are given, but the model has none")
    try:
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    except ValueError:
        listed = ", ".join(
            f"{name} {x.shape[:-1]}" for name, x in zip(["q", *vectors, "parameters"], arrays, strict=False)
        )
        raise ArgumentError(f"{function}: the batch dimensions do not go together: {listed}") from None
    flat = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in arrays]
    for name, x in zip(["q", *vectors], flat, strict=False):
        if not np.all(np.isfinite(x)):
            k, entry = np.argwhere(~np.isfinite(x))[0]
            labels = model.coordinate_names if name == "q" else model.speed_names
            raise NumericalError(f"{function}: {name} is {x[k, entry]} at entry {entry} ({labels[entry]})")
    count = 1 + len(vectors)
    return States(shape, flat[0], tuple(flat[1:count]), flat[-1] if model.parameters else None)


@dataclass(frozen=True, eq=False)
class Terms:
    """The active rows at B states; `scale` is the size of each row's group, `slack` how far the states are off."""

    residual: Array
    jacobian: Array
    bias: Array
    basis: Array
    scale: Array
    slack: Array


class ConstraintSystem:
    """Some of a model's constraints. Keeps the minimal set of rows that it used last."""

    def __init__(self, rows: ConstraintRows, names: tuple[str, ...]) -> None:
        self.all = rows
        self.model, self.names = rows.model, names
        parts = [np.arange(rows.slices[name].start, rows.slices[name].stop) for name in names]
        self.picked = np.concatenate([np.arange(0), *parts]).astype(int)
        self._complete = len(self.picked) == rows.count
        ends = np.cumsum([0, *(len(part) for part in parts)])
        self.slices = {name: slice(int(ends[k]), int(ends[k + 1])) for k, name in enumerate(names)}
        self.groups = [s for s in self.slices.values() if s.stop > s.start]
        self.count = len(self.picked)
        self.holonomic = rows.holonomic[self.picked]
        self._owner = np.concatenate(
            [np.arange(0), *(np.full(len(p), k) for k, p in enumerate(parts))]
        ).astype(int)
        self._kept: Choice | None = None
        self._zero = np.zeros(self.model.nv)
        self._redundancy_told = False

    # --- terms ----------------------------------------------------------------------------------------------

    def terms(self, s: States, v: Array | None = None) -> Terms:
        """phi, G, gamma and T at the states, for the speeds `v` (zero when left out)."""
        moving = np.zeros((len(s), self.model.nv)) if v is None else v
        found = self.all.terms(*s.given(s.q, moving))
        residual, G, gamma, basis = found if self._complete else (x[:, self.picked] for x in found)
        scale = rank.scales(G, self.groups)
        slack = np.max(np.abs(residual) / scale, axis=-1, initial=0.0)
        if v is not None:
            size = np.linalg.norm(v, axis=-1)
            broken = np.abs((G @ v[..., None])[..., 0]) / scale
            slack = slack + np.max(broken, axis=-1, initial=0.0) / np.maximum(size, STILL)
        return Terms(residual, G, gamma, basis, scale, slack)

    def check_closed(self, function: str, s: States, t: Terms, v: Array | None, tolerance: float) -> None:
        """Refuse states that are not on the constraint surface."""
        if not np.any(t.slack > tolerance):
            return
        k = int(np.argmax(t.slack))
        row = np.abs(t.residual[k]) / t.scale[k]
        where = "" if not s.shape else f" (state {self._position(s, k)})"
        if np.max(row) > tolerance:
            i = int(np.argmax(row))
            raise ArgumentError(
                f"{function}: {self.owner_name(i)} is not closed{where}: its residual is {self.gap(t.residual[k], i)}. "
                "model.assemble(q) finds a configuration that closes it"
            )
        broken = np.abs(t.jacobian[k] @ v[k]) if v is not None else row  # pragma: no branch
        i = int(np.argmax(broken / t.scale[k]))
        raise ArgumentError(
            f"{function}: v breaks {self.owner_name(i)}{where}: it opens at {self.gap(broken, i)} per second. "
            "model.project(q, v) gives speeds that do not"
        )

    # --- in one kernel --------------------------------------------------------------------------------------

    def quick(self, given: Sequence[Any], *, wrenches: bool, closed: float, unique: bool) -> Any:
        """Accelerations, forces and wrenches by the compiled function, if the minimal set serves all states.

        `given` are q, v, tau and, where there are, wrenches and parameters. None says: look closer. With `unique`, forces
        count as well: there must be no choice among them.
        """
        if self._choice is None:
            return None
        chosen, active = self._masks
        if self.all.solution is None:
            return self._quick_rolled(given, wrenches=wrenches, closed=closed, unique=unique)
        last = given[-1:] if self.model.parameters else ()
        factor, rest = self.all.tree(wrenches=wrenches)(*given)
        a, f, reactions, status = self.all.solution(given[0], given[1], factor, rest, chosen, active, *last)
        if status.ndim == 1:
            good = _good(status, closed, unique=unique)
        else:
            quality, left, size, slack, other = np.moveaxis(status, -1, 0)
            fine = (quality > GOOD * GOOD) & (slack <= closed)
            fine &= left <= (CONSISTENT + np.minimum(100 * slack, OFF)) * size
            good = bool(np.all(fine & (other <= rank.RANK**2) if unique else fine))
        return (a, f, reactions) if good else None

    def _quick_rolled(self, given: Sequence[Any], *, wrenches: bool, closed: float, unique: bool) -> Any:
        """The same in loops, state by state."""
        loops = self.all.rolled
        if loops is None:
            return None
        chosen, active = self._masks
        q, v, tau = (np.asarray(x, dtype=float) for x in given[:3])
        zero = np.zeros(self.model.nv)
        kernel = self.all.primary._kernel("inverse_dynamics", wrenches=wrenches)
        bias = kernel(q, v, zero, *given[3:])
        shape = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-1], bias.shape[:-1])
        rest = np.broadcast_to(tau - bias, (*shape, self.model.nv)).reshape(-1, self.model.nv)
        flat = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in (q, v)]
        found = []
        for q_k, v_k, rest_k in zip(flat[0], flat[1], rest, strict=True):
            one = loops.solve(q_k, v_k, rest_k, chosen, active)
            if one is None or not _good(one[-1], closed, unique=unique):
                return None
            found.append(one[:3])
        return tuple(np.array(x).reshape(*shape, *x[0].shape) for x in zip(*found, strict=True))

    def quick_projection(self, q: Any, v: Any, last: tuple[Array, ...], goal: float) -> Any:
        """Configurations and speeds on the surface, what is left of the residuals, and the steps; or None.

        `last` are the parameters, where the model has any.
        """
        if self._choice is None:
            return None
        chosen, active = self._masks
        if self.all.projection is None:
            return self._quick_rolled_projection(np.asarray(q, dtype=float), np.asarray(v, dtype=float), goal)
        tree, step, zero = self.all.tree(wrenches=False), self.all.projection, self._zero
        worst = np.inf
        for count in range(10):  # noqa: B007  (returned)
            factor, _ = tree(q, zero, zero, *last)
            x, y, status = step(q, v, factor, chosen, active, *last)
            if status.ndim > 1:
                low, high = status.reshape(-1, 4).min(axis=0), status.reshape(-1, 4).max(axis=0)
                quality = float(low[0])
                opened, residual, broken = (float(x) for x in high[1:])
            else:
                quality, opened, residual, broken = status.tolist()
            if not (quality > GOOD * GOOD and opened <= CLOSED):
                return None
            if opened <= 1e-15 or opened >= worst / 2:
                break
            worst = opened
            q = self.model.integrate(q, x)
        after = v + y
        if not (opened <= goal and broken <= 1e-10 * max(1.0, float(np.max(np.abs(after))))):
            return None
        return np.array(q, dtype=float), after, residual, broken, count

    def _quick_rolled_projection(self, q: Array, v: Array, goal: float) -> Any:
        loops = self.all.rolled
        if loops is None or q.ndim > 1 or v.ndim > 1:
            return None
        chosen, active = self._masks
        worst = np.inf
        for count in range(10):  # noqa: B007  (returned)
            found = loops.project(q, v, chosen, active)
            if found is None:
                return None
            x, y, (quality, opened, residual, broken) = found
            if not (quality > GOOD * GOOD and opened <= CLOSED):
                return None
            if opened <= 1e-15 or opened >= worst / 2:
                break
            worst = opened
            q = self.model.integrate(q, x)
        if not (opened <= goal and broken <= 1e-10 * max(1.0, float(np.max(np.abs(v + y))))):
            return None
        return np.array(q), v + y, float(residual), float(broken), count

    def symbolic(self, at: Any) -> Any:
        """(q, v, tau[, parameters]) -> a, f as a function of `SX`, by the minimal set at a configuration; its inputs."""
        s = states(self.model, "constrained_dynamics", at, {}, None)
        chosen = np.zeros(self.all.count)
        if self.count:
            chosen[self.picked[self._chosen(self.terms(s), 0).rows]] = 1.0
        return compiled.symbolic(self.model, list(self.all.slices.values()), chosen)

    def prepare(self, s: States, closed: float) -> bool:
        """Have a minimal set, from the first state if there was none; False where that is not closed."""
        if self._choice is None and self.count:
            t = self.terms(s.at(0), s.vectors[0][:1] if s.vectors else None)
            if t.slack[0] <= closed:
                self._choice = self._chosen(t, 0)
        return self._choice is not None

    @property
    def _choice(self) -> Choice | None:
        return self._kept

    @_choice.setter
    def _choice(self, choice: Choice) -> None:
        chosen, active = np.zeros(self.all.count), np.zeros(self.all.count)
        active[self.picked] = 1.0
        chosen[self.picked[choice.rows]] = 1.0
        self._masks = (chosen, active)
        self._kept = choice

    # --- the tree's response --------------------------------------------------------------------------------

    def solve_mass_matrix(self, s: States, rows: Array) -> Array:
        """M^-1 on (B, k, nv)."""
        kernel = self.all.primary._kernel("solve_mass_matrix")
        return kernel(*s.given(s.q[:, None], np.ascontiguousarray(rows), extra=1))

    def mass_matrix(self, s: States) -> Array:
        return self.all.primary._kernel("mass_matrix")(*s.given(s.q))

    def respond(
        self, function: str, s: States, t: Terms, b: Array, size: Array, *, forces: bool = True
    ) -> tuple[Array, Array]:
        """x = M^-1 G^T f (B, nv) with G x = b, and f (B, m), the smallest.

        `size` (B) is the magnitude of the terms in G x = b per unit of a row's scale, that errors are measured by.
        """
        if not self.count:
            return np.zeros((len(s), self.model.nv)), np.zeros((len(s), 0))
        if self._choice is None:
            self._choice = self._chosen(t, 0)
        x, f, good = self._by_admittance(self._choice or self._chosen(t, 0), s, t, b, size, forces)
        for k in np.flatnonzero(~good):
            x[k], f[k] = self._afresh(function, s, t, b, size, int(k))
        return x, f

    def _by_admittance(
        self, choice: Choice, s: States, t: Terms, b: Array, size: Array, forces: bool
    ) -> tuple[Array, Array, Array]:
        """(1)-(4) for a given minimal set, and which states it served."""
        rows, dropped = choice.rows, choice.dropped
        R = t.jacobian if not len(dropped) else t.jacobian[:, rows]
        Y = self.solve_mass_matrix(s, R)
        admittance = R @ np.swapaxes(Y, -1, -2)
        diagonal = np.einsum("bii->bi", admittance)
        lengths = np.sqrt(np.einsum("bij,bij->bi", R, R))
        good = np.all((lengths > GOOD * t.scale[:, rows]) & (diagonal > 0), axis=-1)
        unit = np.where(good[:, None], 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)
        scaled = admittance * unit[:, :, None] * unit[:, None, :]
        L, fine = _cholesky(scaled)
        good &= fine & (np.einsum("bii->bi", L).min(axis=-1, initial=1.0) > GOOD)
        f_r = unit * _cholesky_solve(L, unit * b[:, rows])
        x = (f_r[:, None, :] @ Y)[:, 0]
        f = np.zeros_like(b)
        f[:, rows] = f_r
        if len(dropped):
            D = t.jacobian[:, dropped]
            left = np.abs((D @ x[..., None])[..., 0] - b[:, dropped]) / t.scale[:, dropped]
            allowed = (CONSISTENT + np.minimum(100 * t.slack, OFF)) * (size + np.linalg.norm(x, axis=-1))
            good &= np.all(left <= allowed[:, None], axis=-1)
            matter = np.max(np.abs(D) / t.scale[:, dropped, None], initial=0.0) > rank.RANK
            if forces and matter:
                crossed = D @ np.swapaxes(Y, -1, -2)  # D Y, (B, d, r)
                K = np.swapaxes(
                    unit[:, :, None] * _cholesky_solve(L, unit[:, :, None] * np.swapaxes(crossed, -1, -2)),
                    -1,
                    -2,
                )
                f = _smallest(K, f_r, rows, dropped, self.count)
        return x, f, good

    def _afresh(
        self, function: str, s: States, t: Terms, b: Array, size: Array, k: int
    ) -> tuple[Array, Array]:
        """Another minimal set for state k, and (5); raises when no forces satisfy all rows."""
        before = self._choice
        choice = self._chosen(t, k)
        G, rows, dropped = t.jacobian[k], choice.rows, choice.dropped
        M = self.mass_matrix(s.at(k))[0]
        x, f_r = self.orthogonal(M, G[rows], b[k, rows])
        if len(dropped):
            left = np.abs(G[dropped] @ x - b[k, dropped]) / t.scale[k, dropped]
            # where the set is near its end, errors of the rows are magnified
            allowed = (
                (CONSISTENT + min(100 * t.slack[k], OFF)) / choice.margin * (size[k] + np.linalg.norm(x))
            )
            if np.any(left > allowed):
                i = int(dropped[np.argmax(left)])
                raise NumericalError(
                    f"{function}: the constraints contradict each other{self._at(s, k)}: {self.owner_name(i)} cannot "
                    f"be satisfied together with the others, by {np.max(left):.3g} of {size[k]:.3g}. The configuration "
                    "is singular for them: the motion may branch or stop there"
                )
        K = np.linalg.lstsq(G[rows].T, G[dropped].T, rcond=None)[0].T if len(dropped) else G[:0, : len(rows)]
        f = _smallest(K[None], f_r[None], rows, dropped, self.count)[0]
        self._remember(function, s, k, before, choice)
        return x, f

    @staticmethod
    def orthogonal(M: Array, R: Array, b: Array) -> tuple[Array, Array]:
        """(5): x = M^-1 R^T f with R x = b, and f, for independent rows R."""
        r = len(R)
        Q, U = np.linalg.qr(R.T, mode="complete")
        Q1, Q2, U = Q[:, :r], Q[:, r:], U[:r]
        x = Q1 @ np.linalg.solve(U.T, b)
        if r < len(M):
            x = x - Q2 @ np.linalg.solve(Q2.T @ M @ Q2, Q2.T @ (M @ x))
        return x, np.linalg.solve(U, Q1.T @ (M @ x))

    # --- the minimal set ------------------------------------------------------------------------------------

    def _chosen(self, t: Terms, k: int, tolerance: float = rank.RANK) -> Choice:
        """States off the surface cannot tell a redundant row better than they are off."""
        return rank.choose(t.jacobian[k], self.groups, max(tolerance, min(10 * float(t.slack[k]), OFF)))

    def choice(self, function: str, s: States, t: Terms, k: int) -> Choice:
        """A minimal set for state k, remembered."""
        choice = self._chosen(t, k)
        if self._choice is None:
            self._choice = choice
        elif self._choice.rank != choice.rank:
            self._remember(function, s, k, self._choice, choice)
        return choice

    def _remember(self, function: str, s: States, k: int, before: Choice | None, choice: Choice) -> None:
        if before is None or before.rank == choice.rank:
            self._choice = choice
            return
        lost = sorted({self._owner[i] for i in set(before.rows.tolist()) ^ set(choice.rows.tolist())})
        names = ", ".join(repr(self.names[i]) for i in lost)
        where = self._at(s, k)
        if choice.rank < before.rank:
            message = (
                f"{function}: the constraints have rank {choice.rank}{where} and {before.rank} elsewhere: it is a singular "
                f"configuration of {names}, from where the motion may branch"
            )
        else:
            self._choice = choice
            message = (
                f"{function}: the constraints have rank {choice.rank}{where} but {before.rank} at an earlier "
                f"configuration, which was singular for {names}"
            )
        warn(message, AlembertWarning, stacklevel=5)

    def tell_redundancy(self, function: str, s: States, t: Terms) -> None:
        """Once: reactions of rows that depend on others (and do not simply vanish) are a choice."""
        if self._redundancy_told or self._choice is None or not len(self._choice.dropped):
            return
        dropped = self._choice.dropped
        size = np.max(np.abs(t.jacobian[0, dropped]), axis=-1) / t.scale[0, dropped]
        owners = [int(self._owner[i]) for i in dropped[size > 1e-6]]
        if not owners:
            return
        self._redundancy_told = True
        listed = ", ".join(
            f"{owners.count(i)} of the {self._length(i)} rows of {self.names[i]!r}"
            for i in sorted(set(owners))
        )
        warn(
            f"{function}: the reactions are not unique: {listed} follow from the others. The smallest are given; "
            "the accelerations are not affected",
            AlembertWarning,
            stacklevel=4,
        )

    # --- names ----------------------------------------------------------------------------------------------

    def reactions(self, s: States, t: Terms, f: Array) -> dict[str, Array]:
        """Forces f (B, m) in physical terms."""
        found: dict[str, Array] = {}
        for name, rows in self.slices.items():
            if self.all.kinds[name] == "loop":
                wrench = (f[:, None, rows] @ t.basis[:, rows])[:, 0]
                found[name] = wrench.reshape(*s.shape, 6)
            elif self.all.kinds[name] == "coupling":
                found[name] = f[:, rows.start].reshape(s.shape)[()]
            else:
                found[name] = f[:, rows].reshape(*s.shape, -1)
        return found

    def named(self, f: Array, wrenches: Array) -> dict[str, Array]:
        """The same from the compiled function's results, over all constraints."""
        found: dict[str, Array] = {}
        for k, (name, rows) in enumerate(self.all.slices.items()):
            if name in self.slices:
                kind = self.all.kinds[name]
                single = f[..., rows.start] if kind == "coupling" else f[..., rows]
                found[name] = wrenches[..., k, :] if kind == "loop" else single
        return found

    def gap(self, residual: Array, row: int) -> str:
        """The residual of the constraint that a row belongs to, in words."""
        name = self.names[self._owner[row]]
        if self.all.kinds[name] != "loop":
            return f"{residual[row]:.3g}"
        return f"{np.linalg.norm(residual[self.slices[name]]):.3g} (m, rad)"

    def owner_name(self, row: int) -> str:
        name = self.names[self._owner[row]]
        return f"{self.all.kinds[name]} {name!r}"

    def _length(self, owner: int) -> int:
        s = self.slices[self.names[owner]]
        return s.stop - s.start

    def redundant(self, choice: Choice) -> dict[str, int]:
        owners = self._owner[choice.dropped]
        return {name: int(np.sum(owners == k)) for k, name in enumerate(self.names) if np.any(owners == k)}

    def _position(self, s: States, k: int) -> Any:
        where = np.unravel_index(k, s.shape)
        return tuple(int(i) for i in where) if len(where) > 1 else int(where[0])

    def _at(self, s: States, k: int) -> str:
        q = np.array2string(s.q[k], precision=6, threshold=8, edgeitems=3)
        state = f", state {self._position(s, k)}" if s.shape else ""
        return f" at q = {q}{state}"


def _good(status: Array, closed: float, *, unique: bool) -> bool:
    quality, left, size, slack, other = status.tolist()
    return bool(
        quality > GOOD * GOOD
        and left <= (CONSISTENT + min(100 * slack, OFF)) * size
        and slack <= closed
        and not (unique and other > rank.RANK**2)
    )


def _cholesky(A: Array) -> tuple[Array, Array]:
    """Factors of (B, n, n), and which are good; the others are the identity."""
    try:
        return np.linalg.cholesky(A), np.ones(len(A), dtype=bool)
    except np.linalg.LinAlgError:
        L, fine = np.empty_like(A), np.ones(len(A), dtype=bool)
        for k, matrix in enumerate(A):
            try:
                L[k] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                L[k], fine[k] = np.eye(A.shape[-1]), False
        return L, fine


def _cholesky_solve(L: Array, b: Array) -> Array:
    """L L^T x = b for vectors (B, n) or columns (B, n, k)."""
    columns = b if b.ndim == 3 else b[..., None]
    x = np.linalg.solve(np.swapaxes(L, -1, -2), np.linalg.solve(L, columns))
    return x if b.ndim == 3 else x[..., 0]


def _smallest(K: Array, f_r: Array, rows: Array, dropped: Array, count: int) -> Array:
    """(4)"""
    f = np.zeros((len(f_r), count))
    r = len(rows)
    base = np.linalg.solve(np.eye(r) + np.swapaxes(K, -1, -2) @ K, f_r[..., None])
    f[:, rows] = base[..., 0]
    f[:, dropped] = (K @ base)[..., 0]
    return f
