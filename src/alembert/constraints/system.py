"""All constraints of a model, with the kernels of their rows, and those of them that are active.

Of active ones (`ConstraintSystem`) it has the terms at states, the minimal set of rows in use, and what to call them.
The minimal set is kept from call to call while its pivots stay good and the rows left out hold, and chosen anew otherwise;
each thread keeps its own, so that what one computes does not depend on others.
How the tree responds to constraint forces is in `solver`.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert import arguments
from alembert.constraints import compiled, drives, factors, kernels, saddle
from alembert.constraints.compiled import Held
from alembert.constraints.drives import Chosen, Drives
from alembert.constraints.equations import parts
from alembert.constraints.kernels import RowBlocks, RowGraph
from alembert.constraints.results import CLOSED, OFF, STILL
from alembert.constraints.saddle import Choice
from alembert.constraints.states import RowTerms, States, at_states, finite, states
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, ModelError, NumericalError, UnsupportedError, warn
from alembert.sweeps.form import form_of

if TYPE_CHECKING:
    from alembert.model import Model


Array = np.ndarray


class NotClosed(ArgumentError):
    """A state is not on the constraint surface."""


class _Kept(threading.local):
    def __init__(self, choice: Choice | None, masks: tuple[Array, Array] | None) -> None:
        """As each thread begins."""
        self.choice, self.masks = choice, masks
        self.drives: dict[tuple[int, ...] | None, Drives] = {}


class ConstraintSystem:
    """Some of a model's constraints. Keeps the minimal set of rows that it used last, for each thread."""

    def __init__(self, rows: ConstraintRows, names: tuple[str, ...]) -> None:
        self.all = rows
        self.model, self.names = rows.model, names
        parts = [np.arange(rows.slices[name].start, rows.slices[name].stop) for name in names]
        self.picked = np.concatenate([np.arange(0), *parts]).astype(int)
        self._complete = len(self.picked) == rows.count
        self.active = np.zeros(rows.count)
        """which rows, of all constraints of the model, are active"""
        self.active[self.picked] = 1.0
        ends = np.cumsum([0, *(len(part) for part in parts)])
        self.slices = {name: slice(int(ends[k]), int(ends[k + 1])) for k, name in enumerate(names)}
        self.groups = [s for s in self.slices.values() if s.stop > s.start]
        self.count = len(self.picked)
        self.holonomic = rows.holonomic[self.picked]
        self._owner = np.concatenate(
            [np.arange(0), *(np.full(len(p), k) for k, p in enumerate(parts))]
        ).astype(int)
        nothing = Choice(np.arange(0), np.arange(0), 1.0)
        masks = (np.zeros(rows.count), self.active)
        # of no rows there is one set, known before any state: results do not depend on what was computed before
        self._kept = _Kept(None, None) if self.count else _Kept(nothing, masks)
        self._redundancy_told = False

    # --- terms ----------------------------------------------------------------------------------------------

    def terms(self, s: States, v: Array | None = None) -> RowTerms:
        """phi, G, gamma and T at the states, for the speeds `v` (zero when left out)."""
        if not self.count:
            return RowTerms.none(len(s), self.model.nv)
        moving = np.zeros((len(s), self.model.nv)) if v is None else v
        found = self.all.terms(s.q, moving, *s.last)
        residual, G, gamma, basis = found if self._complete else (x[:, self.picked] for x in found)
        if not finite(residual, G, gamma):
            raise NumericalError(
                f"{s.function}: the constraints are not finite at such coordinates and speeds"
            )
        scale = saddle.scales(G, self.groups)
        slack = np.max(np.abs(residual) / scale, axis=-1, initial=0.0)
        if v is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                size = np.linalg.norm(v, axis=-1)
                broken = np.abs((G @ v[..., None])[..., 0]) / scale
                slack = slack + np.max(broken, axis=-1, initial=0.0) / np.maximum(size, STILL)
        return RowTerms(residual, G, gamma, basis, scale, slack)

    def closed_terms(self, s: States, v: Array | None = None, tolerance: float = CLOSED) -> RowTerms:
        """The same, refusing states that are not on the constraint surface."""
        t = self.terms(s, v)
        self.check_closed(s, t, v, tolerance)
        return t

    def derivatives(self, s: States, v: Array, a: Array, f: Array) -> tuple[Array, Array, Array]:
        """(G^T f)_q (B, nv, nv), (G a + gamma)_q and gamma_v (B, m, nv), for speeds v and forces f (B, m)."""
        blocks, nv = self.all.blocks, self.model.nv
        if not self.count:
            none = np.zeros((len(s), 0, nv))
            return np.zeros((len(s), nv, nv)), none, none
        packed = self.all.derivatives(s.q, v, a, self.over_all(f), *s.last)
        push, row_q, row_v = (
            blocks.spread_square(packed[0]),
            blocks.spread(packed[1]),
            blocks.spread(packed[2]),
        )
        return push, row_q[:, self.picked], row_v[:, self.picked]

    def parameter_derivatives(
        self, s: States, v: Array, a: Array, f: Array, chosen: Sequence[int]
    ) -> tuple[Array, Array, Array]:
        """(G^T f)_p (B, nv, k), (G a + gamma)_p and phi_p (B, m, k) for some parameters, at a fixed motion and forces."""
        if not self.count:
            none = np.zeros((len(s), 0, len(chosen)))
            return np.zeros((len(s), self.model.nv, len(chosen))), none, none
        found = self.all.parameter_derivatives(s.q, v, a, self.over_all(f), *s.last)
        push, row, residual = (x[..., list(chosen)] for x in found)
        return push, row[:, self.picked], residual[:, self.picked]

    def over_all(self, x: Array) -> Array:
        """(B, m) of the active rows as (B, rows) of all constraints of the model."""
        if self._complete:
            return x
        found = np.zeros((len(x), self.all.count))
        found[:, self.picked] = x
        return found

    def check_closed(self, s: States, t: RowTerms, v: Array | None, tolerance: float) -> None:
        """Refuse states that are not on the constraint surface."""
        if not np.any(t.slack > tolerance):
            return
        k = int(np.argmax(t.slack))
        row = np.abs(t.residual[k]) / t.scale[k]
        where = s.which(k)
        if np.max(row) > tolerance:
            i = int(np.argmax(row))
            raise NotClosed(
                f"{s.function}: {self.owner_name(i)} is not closed{where}: its residual is {self.gap(t.residual[k], i)}. "
                "model.assemble(q) finds a configuration that closes it"
            )
        broken = np.abs(t.jacobian[k] @ v[k]) if v is not None else row  # pragma: no branch
        i = int(np.argmax(broken / t.scale[k]))
        raise NotClosed(
            f"{s.function}: v breaks {self.owner_name(i)}{where}: it opens at {self.gap(broken, i)} per second. "
            "model.project(q, v) gives speeds that do not"
        )

    def masks_at(self, function: str, at: Any, parameters: Any = None) -> tuple[Array, Array]:
        """Which rows, of all constraints of the model, are in the minimal set at a configuration, and which are active."""
        s = states(self.model, function, at, {}, parameters)
        return self._mask(self.chosen(self.terms(s), 0)), self.active

    def _mask(self, choice: Choice) -> Array:
        chosen = np.zeros(self.all.count)
        chosen[self.picked[choice.rows]] = 1.0
        return chosen

    def prepare(self, s: States, closed: float) -> bool:
        """Have a minimal set, from the first state if there was none; False where that is not closed."""
        if self.kept is None:
            t = self.terms(s.at(0), s.vectors[0][:1] if s.vectors else None)
            if t.slack[0] <= closed:
                self.kept = self.chosen(t, 0)
        return self.kept is not None

    @property
    def kept(self) -> Choice | None:
        return self._kept.choice

    @kept.setter
    def kept(self, choice: Choice) -> None:
        self._kept.masks = (self._mask(choice), self.active)
        self._kept.choice = choice

    @property
    def masks(self) -> tuple[Array, Array] | None:
        """Which rows, of all constraints of the model, are in the minimal set that is kept, and which are active."""
        return self._kept.masks

    @property
    def drives(self) -> dict[tuple[int, ...] | None, Drives]:
        """What served inverse dynamics, by the driven speeds (None: those of the model)."""
        return self._kept.drives

    # --- the tree -------------------------------------------------------------------------------------------

    def tree(self, name: str, s: States) -> Array:
        """An algorithm of the tree alone, (B, nv); failures are reported under the public function's name."""
        tree = self.all.primary
        kernel = tree.compute.kernel(name, wrenches=s.forces is not None)
        given = (s.q, *s.vectors, *s.pushes, *s.last)
        result = np.asarray(at_states(kernel, *given))
        shaped = s.shaped(result)
        if tree.compute.lockable and name == "forward_dynamics":
            tree.compute.mark_locked(s.function, (s.shaped(s.q),), shaped)
        tree.compute.explain(s.function, shaped, tuple(map(s.shaped, given)), kernel)
        return result

    def bias(self, s: States, v: Array) -> Array:
        """M a + bias = tau of the tree at a = 0."""
        return self.tree("inverse_dynamics", s.moving(v, np.zeros_like(v)))

    def check_finite(self, s: States, *results: Array, but: Array | None = None) -> None:
        """Say where numbers overflow: raise for one state, warn for some states of a batch (`but`: told already)."""
        if finite(*results):
            return
        bad = np.zeros(len(s), dtype=bool)
        for x in results:
            bad |= ~np.isfinite(x).all(axis=tuple(range(1, x.ndim)))
        bad &= True if but is None else ~but
        if bad.any():
            self.model.compute.report(s.function, s.shaped(bad), "numbers overflow")

    def mass_matrix(self, s: States) -> Array:
        """In all coordinates; refused where deflection makes it indefinite."""
        M = at_states(self.all.primary.compute.kernel("mass_matrix"), s.q, *s.last)
        if any(structure.guarded for structure in self.all.primary.compute.tree.structures):
            bad = ~(np.linalg.eigvalsh(M)[:, 0] > 0)
            if bad.any():
                compute = self.model.compute
                compute.report(s.function, s.shaped(bad), compute.trouble(s.q[int(np.argmax(bad))], {}))
        return M

    # --- the minimal set ------------------------------------------------------------------------------------

    def chosen(self, t: RowTerms, k: int) -> Choice:
        """With a tolerance as in `tolerances`."""
        return saddle.choose(t.jacobian[k], self.groups, max(saddle.RANK, min(10 * float(t.slack[k]), OFF)))

    def choice(self, s: States, t: RowTerms, k: int) -> Choice:
        """A minimal set for state k, remembered."""
        choice = self.chosen(t, k)
        if self.kept is None and self.count:
            self.kept = choice
        elif self.kept is not None and self.kept.rank != choice.rank:
            self.remember(s, k, self.kept, choice)
        return choice

    def choices(self, s: States, t: RowTerms) -> Array:
        """A mask (B, m) of a minimal set for each state, remembered and told as `choice` does, state after state."""
        chosen, margins = self.sets(t)
        self.keep(s, chosen, margins)
        return chosen

    def sets(self, t: RowTerms) -> tuple[Array, Array]:
        """A mask (B, m) of a minimal set for each state, and the margins (B)."""
        return saddle.choose_each(t.jacobian, self.groups, self.tolerances(t))

    def keep(self, s: States, chosen: Array, margins: Array) -> None:
        """Remember the first of some sets, and those of other ranks."""
        if not self.count:
            return
        if self.kept is None and len(s):
            self.kept = saddle.choice(chosen[0], float(margins[0]))
        ranks, done = chosen.sum(axis=1), 0
        while len(other := np.flatnonzero(ranks[done:] != (self.kept.rank if self.kept else 0))):
            k = done + int(other[0])
            self.remember(s, k, self.kept, saddle.choice(chosen[k], float(margins[k])))
            done = k + 1

    @staticmethod
    def tolerances(t: RowTerms) -> Array:
        """States off the surface cannot tell a redundant row better than they are off."""
        return np.maximum(saddle.RANK, np.minimum(10 * t.slack, OFF))

    def remember(self, s: States, k: int, before: Choice | None, choice: Choice) -> None:
        if before is None or before.rank == choice.rank:
            self.kept = choice
            return
        lost = sorted({self._owner[i] for i in set(before.rows.tolist()) ^ set(choice.rows.tolist())})
        names = ", ".join(repr(self.names[i]) for i in lost)
        where = self.where(s, k)
        if choice.rank < before.rank:
            message = (
                f"{s.function}: the constraints have rank {choice.rank}{where} and {before.rank} elsewhere: it is a "
                f"singular configuration of {names}, from where the motion may branch"
            )
        else:
            self.kept = choice
            message = (
                f"{s.function}: the constraints have rank {choice.rank}{where} but {before.rank} at an earlier "
                f"configuration, which was singular for {names}"
            )
        warn(message)

    def tell_redundancy(self, s: States, t: RowTerms) -> None:
        """Once: reactions of rows that depend on others (and do not simply vanish) are a choice."""
        if self._redundancy_told or self.kept is None or not len(self.kept.dropped) or not len(s):
            return
        dropped = self.kept.dropped
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
            f"{s.function}: the reactions are not unique: {listed} follow from the others. The smallest are given; "
            "the accelerations are not affected"
        )

    # --- names ----------------------------------------------------------------------------------------------

    def reactions(self, s: States, t: RowTerms, f: Array) -> dict[str, Array]:
        """Forces f (B, m) in physical terms."""
        found: dict[str, Array] = {}
        for name, rows in self.slices.items():
            if self.all.kinds[name] == "loop":
                found[name] = s.shaped((f[:, None, rows] @ t.basis[:, rows])[:, 0])
            elif self.all.kinds[name] == "coupling":
                found[name] = f[:, rows.start].reshape(s.shape)[()]
            else:
                found[name] = s.shaped(f[:, rows])
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

    def where(self, s: States, k: int) -> str:
        q = np.array2string(s.q[k], precision=6, threshold=8, edgeitems=3)
        state = f", state {s.position(k)}" if s.shape else ""
        return f" at q = {q}{state}"


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
        self.slice_list = list(self.slices.values())
        self.count = int(ends[-1])
        self.holonomic = np.array([x for part in self.parts for x in part.holonomic], dtype=bool)
        self._systems: dict[tuple[str, ...], ConstraintSystem] = {}
        self._kernels: dict[Any, Any] = {}
        self._trees: dict[Any, Kernel] = {}

    @cached_property
    def primary(self) -> Model:
        return kernels.primary(self.model)

    @cached_property
    def unconstrained(self) -> Model:
        """The model without its constraints, with its frames."""
        return dataclasses.replace(self.model, loops=(), couplings=(), equations=())

    # --- the rows -------------------------------------------------------------------------------------------

    @cached_property
    def blocks(self) -> RowBlocks:
        return RowBlocks(self.model, self.slice_list)

    @cached_property
    def graph(self) -> RowGraph:
        """The constraint equations on symbols, made once for all kernels."""
        return kernels.graph(self.model)

    @cached_property
    def kernel(self) -> Kernel:
        return self._made(kernels.terms_kernel)

    def terms(self, *given: Array) -> tuple[Array, Array, Array, Array]:
        """phi (B, m), G (B, m, nv), gamma (B, m) and T^T (B, m, 6) of all constraints."""
        if not self.count:
            none = np.zeros((len(given[0]), 0))
            return none, np.zeros((len(none), 0, self.model.nv)), none, np.zeros((len(none), 0, 6))
        residual, entries, bias, basis = at_states(self.kernel, *given)
        return residual, self.blocks.spread(entries), bias, basis

    @cached_property
    def derivatives(self) -> Callable[..., Any]:
        return self._made(kernels.derivative_kernel)

    @cached_property
    def parameter_derivatives(self) -> Kernel:
        return kernels.parameter_kernel(self)

    # --- solutions ------------------------------------------------------------------------------------------

    def tree(self, *, wrenches: bool, held: Held = ()) -> Kernel:
        """The compiled terms of the tree that the solutions start from; kept with it, for all sets of constraints."""
        found = self._trees.get((wrenches, held))
        if found is None:
            found = self._trees[wrenches, held] = _tree_kernel(self.primary, wrenches, held)
        return found

    def held_solution(self, held: Held) -> Kernel:
        """The accelerations where some speeds are held, under the condition of `solution`."""
        return self._made(compiled.acceleration_kernel, held)

    def held_projection(self, held: Held) -> Kernel:
        """One step of the projection where some speeds are held."""
        return self._made(compiled.projection_kernel, held)

    @cached_property
    def cost(self) -> int:
        """About how many multiplications a solution takes."""
        return factors.cost(self.model, self._lively())

    @cached_property
    def solution(self) -> Kernel | None:
        """The compiled accelerations, unless they would be too large."""
        if not self.count or self.cost > factors.LARGEST:
            return None
        return self._made(compiled.acceleration_kernel)

    @cached_property
    def projection(self) -> Kernel | None:
        """One step of the projection, compiled under the same condition; likewise the next two."""
        if self.solution is None:
            return None
        return self._made(compiled.projection_kernel)

    @cached_property
    def solution_derivatives(self) -> Kernel | None:
        if self.solution is None:
            return None
        return self._made(compiled.derivative_kernel)

    @cached_property
    def prescription(self) -> Kernel | None:
        if self.solution_derivatives is None or self.model.nv > compiled.PRESCRIBED:
            return None
        return self._made(compiled.prescription_kernel)

    def drives(self, chosen: Chosen, active: tuple[int, ...]) -> Kernel:
        """Inverse dynamics by some of the active rows, independent and driven speeds."""
        return self._made(drives.kernel, chosen, active)

    def drive_derivatives(self, chosen: Chosen) -> Kernel:
        """Derivatives of inverse dynamics by some rows, independent and driven speeds."""
        return self._made(drives.derivative_kernel, chosen)

    def _made(self, make: Callable[..., Any], *options: Any) -> Any:
        """What `make` makes for these rows and options, once; for the form of the model where it has one."""
        key = make, *options
        if key not in self._kernels:
            form = form_of(self.model)
            if form is None:
                found = make(self, *options)
            else:
                shared, numbers = form.model.constrained_compute.rows._made(make, *options), form.numbers
                if isinstance(shared, Kernel):
                    found = kernels.with_numbers(shared, self.model.fingerprint, numbers)
                else:
                    found = lambda *given: shared(*given, numbers)  # noqa: E731
            self._kernels[key] = found
        return self._kernels[key]

    def _lively(self) -> list[int]:
        """How many rows of each constraint do not vanish everywhere, by a few samples."""
        q = np.array([self.model.random_configuration(seed) for seed in range(3)])
        last = [self.model.compute.parameter_defaults[None]] if self.model.parameters else []
        G = self.terms(q, np.zeros((len(q), self.model.nv)), *last)[1]
        lively = np.max(np.abs(G), axis=(0, 2)) > 1e-12
        return [int(np.sum(lively[s])) for s in self.slice_list]

    def system(self, function: str, active: Sequence[str] | None) -> ConstraintSystem:
        if active is None:
            key = self.names
        else:
            active = arguments.names(function, "active", active)
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


def _tree_kernel(model: Model, wrenches: bool, held: Held) -> Kernel:
    """Kept with the model; for its form where it has one, but where loops over the bodies serve all models."""
    kept, key = model.compute.kernels, ("factored_tree", wrenches, held)
    if key not in kept:
        form = None if compiled.is_large(model) else form_of(model)
        if form is None:
            kept[key] = compiled.tree_kernel(model, wrenches=wrenches, held=held)
        else:
            kept[key] = kernels.with_numbers(
                _tree_kernel(form.model, wrenches, held), model.fingerprint, form.numbers
            )
    return kept[key]


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"
