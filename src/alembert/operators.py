"""Spatial operators as objects (Rodriguez, Jain, Kreutz-Delgado 1992), and what is computed with them.

    ops = operators(model, q)
    V = ops.phi.T @ (ops.H.T @ v)                   # the velocities of all bodies, O(n)
    a = ops.mass_matrix.inverse @ tau               # [I - H psi K]^T D^-1 [I - H psi K] tau, O(n)
    (I + ops.H @ ops.phi @ ops.K).inverse           # I - H psi K

Operators act on columns stacked over the moving bodies (six entries each, body axes, angular first) or over
the speeds. Bodies are numbered base first, so that phi, psi and [I + H phi K] are *upper* block triangular;
the paper numbers them from the tips and has them lower. Nothing dense is formed but by `dense()`.

They are linear maps between stacked columns that stay sums, products and recursions of a few blocks.

Two kinds of operator carry everything: a few blocks (`Blocks`: H, M, P, D, G, K, tau_bar, E_phi, E_psi,
Upsilon) and the recursion (I - E)^-1 over strictly triangular blocks (`Recursion`: phi, psi). The rest are
sums and products of them, and inverses stay in the algebra:

    (I - E)^-1                      the recursion of E                                              (1)
    (C + A (I - E)^-1 B)^-1       = C^-1 - C^-1 A (I - E + B C^-1 A)^-1 B C^-1                      (2)

(2) with C = I, A = H, B = K is lemma 0.2 of Rodriguez, Jain, Kreutz-Delgado 1992: E_phi - K H = E_psi.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from alembert.algorithms import kernels
from alembert.algorithms.algorithm import Options, graph
from alembert.algorithms.evaluation import FrameLike, Parameters
from alembert.algorithms.frames import jacobian, pose
from alembert.algorithms.results import Innovations
from alembert.algorithms.table import TABLE
from alembert.arguments import make_callable
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, NumericalError
from alembert.model import Model, Placement
from alembert.spatial import Ad_dual, Pose
from alembert.sweeps import operators as steps
from alembert.sweeps.program import unroll
from alembert.sweeps.tree import Tree, Where

__all__ = [
    "Blocks",
    "I",
    "Identity",
    "Operator",
    "Product",
    "Recursion",
    "SpatialOperators",
    "Sum",
    "admittance",
    "diagonalising_velocities",
    "innovations",
    "operators",
    "velocities_from_diagonal",
]

Array = np.ndarray
Sizes = tuple[int, ...]


class Operator:
    """A linear map between stacked columns; `rows` and `columns` are the sizes of their parts."""

    rows: Sizes
    columns: Sizes
    __array_ufunc__ = None  # so that `array @ operator` comes to `__rmatmul__`

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.rows), sum(self.columns)

    def apply(self, x: Any) -> Array:
        """The operator on a column, or on each column of a matrix."""
        array = np.asarray(x, dtype=float)
        if array.ndim not in (1, 2) or len(array) != self.shape[1]:
            raise ArgumentError(
                f"operator of shape {self.shape}: x has shape {array.shape}, expected ({self.shape[1]},) "
                f"or ({self.shape[1]}, columns)"
            )
        return self._apply(array)

    def dense(self) -> Array:
        """The matrix, for teaching and tests."""
        return self._apply(np.eye(self.shape[1]))

    @property
    def T(self) -> Operator:
        raise NotImplementedError

    @property
    def inverse(self) -> Operator:
        """The inverse, where (1) or (2) gives it."""
        raise ArgumentError(f"the algebra has no inverse for this {self!r}; use dense()")

    def _apply(self, x: Array) -> Array:
        raise NotImplementedError

    def _scaled(self, factor: float) -> Operator:
        return _product(factor * identity(self.rows), self)

    def __matmul__(self, other: Any) -> Any:
        if other is I:
            return self
        return _product(self, other) if isinstance(other, Operator) else self.apply(other)

    def __rmatmul__(self, other: Any) -> Any:
        """A row, or a matrix of rows, times the operator."""
        return self.T.apply(np.asarray(other, dtype=float).T).T

    def __mul__(self, factor: float) -> Operator:
        return self._scaled(float(factor))

    __rmul__ = __mul__

    def __neg__(self) -> Operator:
        return self._scaled(-1.0)

    def __add__(self, other: Operator | Identity) -> Operator:
        return _sum(self, identity(self.rows) if isinstance(other, Identity) else other)

    def __radd__(self, other: Identity) -> Operator:
        return self + other

    def __sub__(self, other: Operator | Identity) -> Operator:
        return self + (-identity(self.rows) if isinstance(other, Identity) else -other)

    def __rsub__(self, other: Identity) -> Operator:
        return -self + other

    def __repr__(self) -> str:
        return f"{type(self).__name__} of shape {self.shape}"


class Identity:
    """I, of whatever size it meets: `I + H @ phi @ K`, `I - E_phi`."""

    def __matmul__(self, other: Any) -> Any:
        return other

    def __repr__(self) -> str:
        return "I"


I = Identity()


class Blocks(Operator):
    """A few dense blocks: `entries[i, j]` leads from part j of the columns to part i of the rows."""

    def __init__(self, rows: Sizes, columns: Sizes, entries: Mapping[tuple[int, int], Array]) -> None:
        self.rows, self.columns, self.entries = rows, columns, dict(entries)
        r, c = _slices(rows), _slices(columns)
        self._moves = [(r[i], c[j], block) for (i, j), block in self.entries.items()]

    @property
    def T(self) -> Blocks:
        return Blocks(self.columns, self.rows, {(j, i): B.T for (i, j), B in self.entries.items()})

    @property
    def inverse(self) -> Operator:
        diagonal = {key: block for key, block in self.entries.items() if key[0] == key[1]}
        others = {key: block for key, block in self.entries.items() if key[0] != key[1]}
        if self.rows != self.columns or len(diagonal) < len(self.rows) or not _triangular(others):
            return super().inverse
        if not others:
            return self._with({key: np.linalg.inv(block) for key, block in diagonal.items()})
        if all(np.array_equal(block, np.eye(len(block))) for block in diagonal.values()):
            return Recursion(-self._with(others))
        D = self._with(diagonal).inverse
        return (I + D @ self._with(others)).inverse @ D

    def _with(self, entries: Mapping[tuple[int, int], Array]) -> Blocks:
        return Blocks(self.rows, self.columns, entries)

    def _apply(self, x: Array) -> Array:
        y = np.zeros((self.shape[0], *x.shape[1:]))
        for r, c, block in self._moves:
            y[r] += block @ x[c]
        return y

    def _scaled(self, factor: float) -> Blocks:
        return self._with({key: factor * block for key, block in self.entries.items()})

    def __neg__(self) -> Blocks:
        return self._scaled(-1.0)


class Recursion(Operator):
    """(1): y = x + E y, part by part along strictly triangular blocks; inward for phi, outward for phi^T."""

    def __init__(self, E: Blocks) -> None:
        if not _triangular(E.entries):
            raise ArgumentError(f"the recursion of {E!r}: its blocks are not strictly triangular")
        self.rows = self.columns = E.rows
        self.E = E
        slices = _slices(E.rows)
        upper = any(i < j for i, j in E.entries)
        ordered = sorted(E.entries.items(), key=lambda item: item[0][1], reverse=upper)
        self._moves = [(slices[i], slices[j], block) for (i, j), block in ordered]

    @property
    def T(self) -> Recursion:
        return Recursion(self.E.T)

    @property
    def inverse(self) -> Operator:
        return I - self.E

    def _apply(self, x: Array) -> Array:
        y = x.copy()
        for r, c, block in self._moves:
            y[r] += block @ y[c]
        return y


class Product(Operator):
    def __init__(self, factors: Sequence[Operator]) -> None:
        self.factors = tuple(factors)
        self.rows, self.columns = factors[0].rows, factors[-1].columns

    @property
    def T(self) -> Operator:
        return Product([factor.T for factor in reversed(self.factors)])

    @property
    def inverse(self) -> Operator:
        return Product([factor.inverse for factor in reversed(self.factors)])

    def _apply(self, x: Array) -> Array:
        for factor in reversed(self.factors):
            x = factor._apply(x)
        return x


class Sum(Operator):
    def __init__(self, terms: Sequence[Operator]) -> None:
        self.terms = tuple(terms)
        self.rows, self.columns = terms[0].rows, terms[0].columns

    @property
    def T(self) -> Operator:
        return Sum([term.T for term in self.terms])

    @property
    def inverse(self) -> Operator:
        """(2)"""
        blocks = [term for term in self.terms if isinstance(term, Blocks)]
        others = [term for term in self.terms if not isinstance(term, Blocks)]
        parts = _around_recursion(others[0]) if len(blocks) == len(others) == 1 else None
        if parts is None:
            return super().inverse
        A, E, B = parts
        C = blocks[0].inverse
        inner = E - B @ C @ A
        if not (isinstance(C, Blocks) and isinstance(inner, Blocks) and _triangular(inner.entries)):
            return super().inverse
        return C - C @ A @ Recursion(inner) @ B @ C

    def _apply(self, x: Array) -> Array:
        return sum((term._apply(x) for term in self.terms[1:]), self.terms[0]._apply(x))

    def _scaled(self, factor: float) -> Operator:
        return Sum([factor * term for term in self.terms])


def _product(a: Operator, b: Operator) -> Operator:
    """Factors in a row; two of few blocks are multiplied out as long as they stay few."""
    if a.columns != b.rows:
        raise ArgumentError(f"operators of shapes {a.shape} and {b.shape} do not compose")
    left = list(a.factors) if isinstance(a, Product) else [a]
    right = list(b.factors) if isinstance(b, Product) else [b]
    last, first = left[-1], right[0]
    if isinstance(last, Blocks) and isinstance(first, Blocks):
        by_row: dict[int, list[int]] = {}
        for i, j in first.entries:
            by_row.setdefault(i, []).append(j)
        pairs = [(i, k, j) for i, k in last.entries for j in by_row.get(k, ())]
        if len(pairs) <= len(last.entries) + len(first.entries):
            entries: dict[tuple[int, int], Array] = {}
            for i, k, j in pairs:
                block = last.entries[i, k] @ first.entries[k, j]
                entries[i, j] = entries[i, j] + block if (i, j) in entries else block
            left, right = left[:-1], [Blocks(last.rows, first.columns, entries), *right[1:]]
    factors = [*left, *right]
    return factors[0] if len(factors) == 1 else Product(factors)


def _sum(a: Operator, b: Operator) -> Operator:
    if (a.rows, a.columns) != (b.rows, b.columns):
        raise ArgumentError(f"operators of shapes {a.shape} and {b.shape} do not add")
    terms: list[Operator] = []
    entries: dict[tuple[int, int], Array] = {}
    few = False
    for term in (t for x in (a, b) for t in (x.terms if isinstance(x, Sum) else (x,))):
        if not isinstance(term, Blocks):
            terms.append(term)
            continue
        few = True
        for key, block in term.entries.items():
            entries[key] = entries[key] + block if key in entries else block
    if few:
        terms.insert(0, Blocks(a.rows, a.columns, entries))
    return terms[0] if len(terms) == 1 else Sum(terms)


def _around_recursion(term: Operator) -> tuple[Blocks, Blocks, Blocks] | None:
    """A, E and B of A (I - E)^-1 B."""
    factors = list(term.factors) if isinstance(term, Product) else [term]
    if isinstance(factors[0], Recursion):
        factors.insert(0, identity(factors[0].rows))
    if isinstance(factors[-1], Recursion):
        factors.append(identity(factors[-1].rows))
    if len(factors) != 3:
        return None
    A, R, B = factors
    return (
        (A, R.E, B) if isinstance(A, Blocks) and isinstance(R, Recursion) and isinstance(B, Blocks) else None
    )


def identity(sizes: Sizes) -> Blocks:
    return diagonal([np.eye(size) for size in sizes])


def diagonal(blocks: Sequence[Array]) -> Blocks:
    rows, columns = (tuple(block.shape[axis] for block in blocks) for axis in (0, 1))
    return Blocks(rows, columns, {(k, k): block for k, block in enumerate(blocks)})


def _triangular(entries: Mapping[tuple[int, int], Array]) -> bool:
    return all(i < j for i, j in entries) or all(i > j for i, j in entries)


def _slices(sizes: Sizes) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(ends)]


def innovations(model: Model, q: Any, *, parameters: Parameters = None) -> Innovations:
    """The innovations factors of the mass matrix (lemma 0.1 of Rodriguez, Jain, Kreutz-Delgado 1992), for q (..., nq).

    Of a model with loops or couplings, those of `mass_matrix` in all coordinates: that of the tree. So are the speeds below.
    """
    return Innovations(*_run(model, "innovations", parameters, q))


def diagonalising_velocities(model: Model, q: Any, v: Any, *, parameters: Parameters = None) -> Array:
    """n = [I + H phi K]^T v, with which the kinetic energy is 1/2 n^T D n; (..., nv) in O(n)."""
    return _run(model, "diagonalising_velocities", parameters, q, v)


def velocities_from_diagonal(model: Model, q: Any, n: Any, *, parameters: Parameters = None) -> Array:
    """The speeds v of which `diagonalising_velocities` makes n."""
    return _run(model, "velocities_from_diagonal", parameters, q, n)


def admittance(model: Model, q: Any, frames: Sequence[FrameLike], *, parameters: Parameters = None) -> Array:
    """Lambda = J M^-1 J^T of several frames together, (..., 6 k, 6 k): accelerations due to wrenches on them.

    A frame is a name, or (name, placement) for a place on a body or frame; its six rows and columns are in
    its own axes about its origin. O(n) for the bodies, then one climb per frame and one product per pair. Loops and
    couplings hold: with them it is J E (E^T M E)^-1 E^T J^T, by dense solution.
    """
    if model.is_constrained:
        return _closed_admittance(model, q, frames, parameters)
    kernel = _admittance_kernel(model, model.compute.carriers("admittance", frames))
    return model.compute.checked(
        "admittance", kernel, model.compute.with_parameters("admittance", parameters, q)
    )


_PROGRAMS = {
    program.name: program
    for program in (steps.INNOVATIONS, steps.DIAGONALISING_VELOCITIES, steps.VELOCITIES_FROM_DIAGONAL)
}


def _closed_admittance(model: Model, q: Any, frames: Sequence[FrameLike], parameters: Parameters) -> Array:
    places = model.compute.carriers("admittance", frames)
    found = model.constrained_compute.reduction("admittance", "independent", q, parameters)
    s, M = found.s, found.mass_matrix().reshape(-1, *2 * found.E.shape[-1:])
    columns, X_W = model.compute.kernel("subspaces")(s.q, *s.last)
    parts = []
    for node, place in places:
        if node < 0:
            parts.append(np.zeros((len(s), 6, model.nv)))
            continue
        X = pose(X_W, node, _offset(model, place, s.parameters))
        parts.append(jacobian(columns, model.compute.tree.support[node], X, "local"))
    X = np.concatenate(parts, axis=1) @ found.E
    result = X @ np.linalg.solve(M, np.swapaxes(X, -1, -2))
    return result.reshape(*s.shape, *result.shape[1:])


def _offset(model: Model, place: Where, parameters: Array | None) -> Pose:
    """A place on its body, at each row of the parameters."""
    if parameters is None:
        return place.pose()
    found = [place.pose(dict(zip(model.parameter_values, row, strict=True))) for row in parameters.tolist()]
    return Pose(np.array([X.rotation for X in found]), np.array([X.translation for X in found]))


def _run(model: Model, name: str, parameters: Parameters, *given: Any) -> Any:
    return model.compute.checked(
        name, _kernel(model, name), model.compute.with_parameters(name, parameters, *given)
    )


@lru_cache(maxsize=64)
def _kernel(model: Model, name: str) -> Kernel:
    program = _PROGRAMS[name]
    return kernels.program_kernel(model, model.compute.tree, program, tuple(program.given))


@lru_cache(maxsize=64)
def _admittance_kernel(model: Model, located: tuple[tuple[int, Placement], ...]) -> Kernel:
    inputs = kernels.arguments(model, model.compute.tree, steps.OPERATORS, ("q",))

    def build() -> KernelSource:
        return FunctionSource(graph(model, TABLE["admittance"], Options(frames=located)).function)

    size = 6 * len(located)
    key = f"{model.fingerprint}:admittance:{located!r}"
    return Kernel("admittance", inputs, [Argument("Lambda", (size, size))], key=key, build=build)


@dataclass(frozen=True, eq=False)
class SpatialOperators:
    """The operators of a model at one configuration, by their names in 002: those of its tree, whatever loops it has.

    J_r and R are what armature and rotors add: D = H P H^T + J_r, K = E_phi G + R D^-1. Both are zero for a
    tree of plain bodies, and only then do tau_bar P = tau_bar P tau_bar^T, E_psi = E_phi tau_bar,
    M = P - E_psi P E_psi^T and H psi M psi^T H^T = D hold. Everything else here holds always.
    """

    model: Model
    parameters: Mapping[str, float]
    H: Blocks
    M: Blocks
    E_phi: Blocks
    P: Blocks
    D: Blocks
    G: Blocks
    K: Blocks
    Upsilon: Blocks
    J_r: Blocks
    R: Blocks
    I: ClassVar[Identity] = I

    @cached_property
    def phi(self) -> Recursion:
        """(I - E_phi)^-1: composite bodies, all joints locked."""
        return Recursion(self.E_phi)

    @cached_property
    def tau_bar(self) -> Operator:
        """I - G H."""
        return I - self.G @ self.H

    @cached_property
    def E_psi(self) -> Blocks:
        """E_phi - K H."""
        E = self.E_phi - self.K @ self.H
        assert isinstance(E, Blocks)
        return E

    @cached_property
    def psi(self) -> Recursion:
        """(I - E_psi)^-1: articulated bodies, all joints free."""
        return Recursion(self.E_psi)

    @cached_property
    def Omega(self) -> Operator:
        """psi^T H^T D^-1 H psi: the bodies' accelerations due to forces on them. Its diagonal is Upsilon."""
        X = self.H @ self.psi
        return X.T @ self.D.inverse @ X

    @cached_property
    def mass_matrix(self) -> Operator:
        """[I + H phi K] D [I + H phi K]^T; its inverse is lemma 0.3."""
        L = I + self.H @ self.phi @ self.K
        return L @ self.D @ L.T

    def B(self, frames: Sequence[FrameLike]) -> Blocks:
        """From forces at frames (frame axes, about their origins) to forces on bodies: J = B^T phi^T H^T."""
        entries = {}
        for j, (node, placement) in enumerate(self.model.compute.carriers("B", frames)):
            if node >= 0:
                width = self.M.rows[node] - 6  # forces on the frame of a body with modes are none on these
                entries[node, j] = np.vstack([Ad_dual(placement.pose(self.parameters)), np.zeros((width, 6))])
        return Blocks(self.M.rows, (6,) * len(frames), entries)

    def jacobian(self, frames: Sequence[FrameLike]) -> Operator:
        """From speeds to the velocities of frames, in frame axes at their origins."""
        return (self.H @ self.phi @ self.B(frames)).T


def operators(model: Model, q: Any, *, parameters: Mapping[str, float] | None = None) -> SpatialOperators:
    """The spatial operators at one configuration q (nq,)."""
    x = model.compute.numbers("operators", "q", q)
    if x.shape != (model.nq,):
        raise ArgumentError(f"operators: q has shape {x.shape}, expected ({model.nq},), one configuration")
    if not np.all(np.isfinite(x)):
        raise ArgumentError("operators: q is not finite")
    tree, function = _function(model)
    given = model.compute.with_parameters("operators", parameters, x)
    values = [value.full() for value in function.call([ca.DM(value) for value in given])]
    pivots = values[_PARTS.index("D") :: len(_PARTS)]
    if not all(np.isfinite(x).all() for x in values) or any(
        not np.linalg.eigvalsh(D).min(initial=1.0) > 0 for D in pivots
    ):
        raise NumericalError(
            f"operators: the result is not finite; {model.compute.trouble(x, parameters or {})}"
        )
    count = len(_PARTS)
    found = {name: values[k::count] for k, name in enumerate(_PARTS)}
    widths = [len(M) for M in found["M"]]

    def to_parent(blocks: Sequence[Array]) -> Blocks:
        entries = {}
        for k, parent in enumerate(tree.parents):
            if (
                parent >= 0
            ):  # on the frame of a body with modes, which do not move it, there are none on these
                block = blocks[k]
                entries[parent, k] = np.vstack(
                    [block, np.zeros((widths[parent] - len(block), block.shape[1]))]
                )
        return Blocks(tuple(widths), tuple(block.shape[1] for block in blocks), entries)

    S, P, D = found["S"], found["P_matrix"], found["D"]
    E_phi, R = to_parent(found["phi"]), to_parent(found["coupling"])
    inverses = [np.linalg.inv(d) for d in D]
    gains = [p @ s @ d for p, s, d in zip(P, S, inverses, strict=True)]
    K = [
        phi @ g + r @ d for phi, g, r, d in zip(found["phi"], gains, found["coupling"], inverses, strict=True)
    ]
    G, H, K_blocks = diagonal(gains), diagonal([s.T for s in S]), to_parent(K)
    E_psi = E_phi - K_blocks @ H
    assert isinstance(E_psi, Blocks)
    Upsilon: list[Array] = []
    for k, parent in enumerate(tree.parents):  # (3) of `alembert.sweeps.operators`
        own = S[k] @ inverses[k] @ S[k].T
        if parent >= 0:
            psi = E_psi.entries[parent, k]
            own = own + psi.T @ Upsilon[parent] @ psi
        Upsilon.append((own + own.T) / 2)
    return SpatialOperators(
        model,
        dict(zip(model.parameter_values, given[1].tolist(), strict=True)) if model.parameters else {},
        H=H,
        M=diagonal(found["M"]),
        E_phi=E_phi,
        P=diagonal(P),
        D=diagonal(D),
        G=G,
        K=K_blocks,
        Upsilon=diagonal(Upsilon),
        J_r=diagonal([np.diag(x[:, 0]) for x in found["reflected"]]),
        R=R,
    )


_PARTS = ("phi", "M", "P_matrix", "S", "D", "coupling", "reflected")


@lru_cache(maxsize=32)
def _function(model: Model) -> tuple[Tree, ca.Function]:
    """From q and the parameters to the matrices of each node, one node after the other."""
    tree, q = model.compute.tree, ca.SX.sym("q", model.nq)
    records, _ = unroll(steps.OPERATORS, tree, {"q": q}, tree.parameter_symbols)
    outputs = [ca.densify(getattr(record, name)) for record in records for name in _PARTS]
    inputs = [q, tree.parameter_symbols] if model.parameters else [q]
    return tree, ca.Function("operators", inputs, outputs)


make_callable(__name__, operators)
