"""A problem's stages as a nonlinear program, for general solvers, made of blocks: the same few functions, many times.

    min sum_b f_b(w_b),    lower <= g(w) <= upper,    g = sum_b S_b' g_b(w_b)                          (1)

with w_b some of the unknowns w, and S_b the rows of g that those of a block are added to. The stages of a problem are the
instances of one block and the lanes of its compiled functions; its start and its end are one instance each. Values, first
derivatives, and second derivatives of the Lagrangian are compiled apart, for their structural nonzeros only, and a
`NonlinearProgram` adds them up in the sparse matrices that general solvers take.

What is known of a point is kept until another one comes, since solvers ask for cost, rows and slopes one after the other.

In the form `staged` the unknowns are those of the stages, in their order,

    x_{k+1} - f(x_k, u_k, z_k) = 0,    c(x_k, u_k, z_k) = 0                                            (2)

with points as the numbers that they are. Quaternions are four of these: every function takes them at length one, f gives
them so, and one equation more says so of the first. Coordinates of charts about the guess would be fewer, but have
an edge at half a turn from it: there f jumps, and no general solver finds across.

DMOC has a smaller one, `smallest`: with the momenta eliminated, the unknowns are the configurations at the nodes, in
charts about the guess, and the controls, and the equations of motion match the momenta of neighbouring stages, which needs
no chart about the guess to have an inverse (Leyendecker et al. 2009, (13) and (18)),

    p^+_{k-1} - p^-_k = 0                                                                              (3)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.dmoc import Dmoc
from alembert.optimal.evaluation import MOST_KERNELS, compiled
from alembert.optimal.outcome import Residuals
from alembert.optimal.stage_derivatives import Expansion
from alembert.optimal.stages import Stages
from alembert.optimal.time_sweep import together

Array = np.ndarray
LABELS = {"values": "functions", "first": "derivatives", "second": "second derivatives"}
_PATTERNS: dict[str, tuple[ca.Sparsity, ca.Sparsity]] = {}
"""by content, as kernels are"""


@dataclass(frozen=True, eq=False)
class Block:
    """See the module."""

    name: str
    function: ca.Function
    """(w_b, given...) -> f_b, g_b"""
    unknowns: Array
    """(instances, size of w_b): where they are in w"""
    rows: Array
    """(instances, size of g_b): where they are in g; -1 for rows that bound nothing"""
    given: tuple[Array, ...]
    """what else the function takes, each (instances, size), or (size,) where it is the same for all"""
    expand: Callable[[list[ca.SX]], Expansion] | None = None
    """f_b and g_b with their derivatives at the function's inputs, where these are not left to automatic differentiation"""

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(self.function.serialize().encode()).hexdigest()

    @property
    def patterns(self) -> tuple[ca.Sparsity, ca.Sparsity]:
        """Of the slope of g_b, and of the upper triangle of the Hessian of the Lagrangian."""
        if self.key not in _PATTERNS:
            if len(_PATTERNS) > MOST_KERNELS:
                _PATTERNS.clear()
            w, *given = symbols = self.function.sx_in()
            f, g = self.function.call(symbols)
            sigma, y = ca.SX.sym("sigma"), ca.SX.sym("y", g.numel())
            slope = ca.densify(ca.gradient(sigma * f + ca.dot(y, g), w))
            first = ca.Function("first", symbols, [g]).jac_sparsity(0, 0)
            second = ca.Function("second", [w, *given, sigma, y], [slope]).jac_sparsity(0, 0)
            _PATTERNS[self.key] = first, ca.triu(second + second.T)
        return _PATTERNS[self.key]

    @property
    def places(self) -> tuple[Array, Array]:
        """Rows and columns of the program's matrices to which all nonzeros of `patterns` are added, each (2, ...)."""
        (row, column), (i, j) = map(_places, self.patterns)
        first = self.rows[:, row].ravel(), self.unknowns[:, column].ravel()
        return np.array(first), np.array([self.unknowns[:, i].ravel(), self.unknowns[:, j].ravel()])


class NonlinearProgram:
    """(1): cost, rows, slopes and curvature at any w."""

    def __init__(self, size: int, lower: Array, upper: Array, blocks: Sequence[Block]) -> None:
        self.size, self.lower, self.upper, self.blocks = size, lower, upper, tuple(blocks)
        first, second = zip(*(b.places for b in blocks), strict=True)
        i, j = np.concatenate(first, axis=1)
        self.jacobian, self._to_jacobian = _pattern((len(lower), size), i, j)
        i, j = np.concatenate(second, axis=1)
        self.hessian, self._to_hessian = _pattern((size, size), np.minimum(i, j), np.maximum(i, j))
        self._rows, self._columns = _places(self.jacobian)
        self._unknowns = np.concatenate([b.unknowns.ravel() for b in blocks])
        self._to_rows = np.concatenate([b.rows.ravel() for b in blocks])
        self._of_rows = self._to_rows + 1
        self._w, ws = together(*(b.unknowns.shape for b in blocks))
        self._f, fs = together(*((len(b.unknowns), 1) for b in blocks))
        self._g, gs = together(*(b.rows.shape for b in blocks))
        self._slope, slopes = together(*(b.unknowns.shape for b in blocks))
        self._first, firsts = together(*((len(b.unknowns), b.patterns[0].nnz()) for b in blocks))
        self._second, seconds = together(*((len(b.unknowns), b.patterns[1].nnz()) for b in blocks))
        self._y, ys = together(*(b.rows.shape for b in blocks))
        self._sigma = np.zeros(1)
        none: list[tuple[Array, ...]] = [()] * len(ws)
        self._arrays: dict[str, tuple[list[Any], ...]] = {
            "values": (ws, none, list(zip(fs, gs, strict=True))),
            "first": (ws, none, list(zip(fs, gs, slopes, firsts, strict=True))),
            "second": (ws, [(self._sigma, y) for y in ys], [(h,) for h in seconds]),
        }
        self._known = {"values": np.full(size, np.nan), "first": np.full(size, np.nan)}
        self._values: tuple[float, Array] = np.nan, np.zeros(len(lower))
        self._slopes: tuple[Array, Array] = np.zeros(size), np.zeros(self.jacobian.nnz())

    @property
    def rows(self) -> int:
        return len(self.lower)

    @cached_property
    def functions(self) -> dict[str, list[Callable[[], None]]]:
        """Of every block, on the arrays of this program: `values`, `first` and `second`."""
        return {
            what: [
                _bind(block, what, [w, *block.given, *more], results)
                for block, w, more, results in zip(self.blocks, *arrays, strict=True)
            ]
            for what, arrays in self._arrays.items()
        }

    def values(self, w: Array) -> tuple[float, Array]:
        """Cost and rows."""
        if not np.array_equal(self._known["values"], w):
            self._run("values", w)
            self._add(w)
        return self._values

    def first(self, w: Array) -> tuple[float, Array, Array, Array]:
        """Cost and rows, the slope of the cost, and the nonzeros of the rows' (`jacobian`)."""
        if not np.array_equal(self._known["first"], w):
            self._run("first", w)
            self._add(w)
            slope = np.bincount(self._unknowns, self._slope, self.size)
            self._slopes = slope, self._to_jacobian(self._first)
            self._known["first"][...] = w
        return *self._values, *self._slopes

    def second(self, w: Array, sigma: float, y: Array) -> Array:
        """The nonzeros of the upper triangle of the Hessian of sigma f + y' g (`hessian`)."""
        self._sigma[0] = sigma
        np.take(np.append(y, 0.0), self._to_rows, out=self._y)
        self._run("second", w)
        return self._to_hessian(self._second)

    def slope(self, w: Array, sigma: float, y: Array) -> Array:
        """Of sigma f + y' g."""
        _, _, slope, jacobian = self.first(w)
        with np.errstate(invalid="ignore"):  # what is not finite is named by those who ask
            return sigma * slope + np.bincount(self._columns, jacobian * y[self._rows], self.size)

    def mirrored(self) -> tuple[ca.Sparsity, Array]:
        """The pattern of the Hessian with both triangles, and the places in the upper one of its entries."""
        whole = self.hessian + self.hessian.T
        (i, j), (r, c) = _places(whole), _places(self.hessian)
        return whole, np.searchsorted(c * self.size + r, np.maximum(i, j) * self.size + np.minimum(i, j))

    def _run(self, what: str, w: Array) -> None:
        np.take(w, self._unknowns, out=self._w)
        for function in self.functions[what]:
            function()

    def _add(self, w: Array) -> None:
        g = np.bincount(self._of_rows, self._g, self.rows + 1)[1:]
        self._values = float(self._f.sum()), g
        self._known["values"][...] = w


def _places(pattern: ca.Sparsity) -> Array:
    """Rows and columns of the nonzeros, by columns, (2, nonzeros)."""
    return np.array(pattern.get_triplet(), int).reshape(2, -1)


def _pattern(
    shape: tuple[int, int], rows: Array, columns: Array
) -> tuple[ca.Sparsity, Callable[[Array], Array]]:
    """The matrix that entries in these places add up to, by columns, and a function that adds; rows -1 are left out."""
    place = np.where(rows < 0, -1, columns * shape[0] + rows)
    there, where = np.unique(place, return_inverse=True)
    skipped = int(len(there) > 0 and there[0] < 0)
    found = ca.Sparsity.triplet(
        *shape, (there[skipped:] % shape[0]).tolist(), (there[skipped:] // shape[0]).tolist()
    )
    return found, lambda values: np.bincount(where, values, len(there))[skipped:]


def _bind(block: Block, what: str, inputs: list[Array], outputs: Sequence[Array]) -> Callable[[], None]:
    """One of the block's functions on all of its instances."""
    function, (first, second) = block.function, block.patterns
    names = function.name_in()
    sizes = {name: function.size1_in(k) for k, name in enumerate(names)}
    rows, key = function.size1_out(1), f"block {block.key} {what}"

    def graph(s: dict[str, ca.SX]) -> list[ca.SX]:
        w, given = s[names[0]], [s[name] for name in names]
        f, g = function.call(given)
        if what == "values":
            return [f, g]
        expansion = block.expand(given) if block.expand is not None else None
        if what == "first":
            slope, rows = expansion.slopes if expansion else (ca.gradient(f, w).T, ca.jacobian(g, w))
            return [f, g, slope.T, _nonzeros(rows, first)]
        if expansion is not None and expansion.second is not None:
            weights = [s["sigma"], s["y"]]
            found = expansion.second(
                lambda e: weights[0] * e[0] + ca.dot(weights[1], e[1]), weights, weights, expansion.known
            )
            return [_nonzeros(found, second)]
        return [_nonzeros(ca.hessian(s["sigma"] * f + ca.dot(s["y"], g), w)[0], second)]

    if what == "second":
        sizes |= {"sigma": 1, "y": rows}
    results = {
        "values": {"f": (1,), "g": (rows,)},
        "first": {"f": (1,), "g": (rows,), "slope": (len(block.unknowns[0]),), "jacobian": (first.nnz(),)},
        "second": {"hessian": (second.nnz(),)},
    }[what]
    kernel = compiled(f"{LABELS[what]} of a {block.name}", key, sizes, results, graph)
    return kernel.bind(len(block.unknowns), inputs, outputs)


def _nonzeros(matrix: ca.SX, pattern: ca.Sparsity) -> ca.SX:
    found: Any = ca.project(matrix, pattern).nonzeros()
    return ca.vertcat(ca.SX(0, 1), *found)


@dataclass(frozen=True)
class RowMap:
    """Which rows of g are what. `path`: (N, rows of d), -1 where there is no bound."""

    motion: Array
    """(2), (N, numbers of a point); or (3), (N - 1, speeds)"""
    implicit: Array
    """c, (N, rows of c)"""
    start: Array
    end: Array
    path: Array
    bounded: Array


@dataclass(frozen=True)
class NlpForm:
    """`unpack(w)` gives x, u and z of the stages."""

    stages: Stages
    program: NonlinearProgram
    start: Array
    """w of the guess"""
    rows: RowMap
    unpack: Callable[[Array], tuple[Array, Array, Array]]
    structure: dict[str, Any] = field(default_factory=dict)
    """how many of what each stage has"""

    @property
    def is_smallest(self) -> bool:
        return not self.structure

    def residuals(self, w: Array, g: Array) -> Residuals:
        """What the stages miss, from the unknowns and the values of the rows."""
        rows, (n, _, nz, _) = self.rows, self.stages.sizes
        gap, c = np.zeros((self.stages.count, n)), np.zeros((self.stages.count, nz))
        if self.is_smallest:
            nv = self.stages.chart.nv
            gap[:-1, nv : 2 * nv] = g[rows.motion]
        else:
            size, c = self.stages.parts[0].stages.chart.point, g[rows.implicit]
            width = size + self.stages.sizes[1] + nz
            points = w[(np.arange(1, self.stages.count + 1) * width)[:, None] + np.arange(size)]
            after, found = points - g[rows.motion], self.unpack(w)[0]
            for own, nodes in nodes_of(self.stages):
                ends = slice(max(nodes.start, 1), nodes.stop)
                gap[ends.start - 1 : ends.stop - 1] = own.chart.difference(
                    found[ends], after[ends.start - 1 : ends.stop - 1]
                )
        return Residuals(gap, c, np.where(rows.path >= 0, np.append(g, 0.0)[rows.path], 0.0))


def has_smallest(stages: Stages) -> bool:
    """Whether the momenta can be eliminated: DMOC without loops and what else reaches beyond a stage."""
    problem = stages.problem
    if len(stages.parts) > 1:
        return False
    open_ = getattr(stages.plant, "closure", None) is None and not problem.design and not problem.integrals
    return isinstance(stages.scheme, Dmoc) and not stages.memory and not stages.problem.periodic and open_


def dimensions(stages: Stages) -> tuple[int, int]:
    """Variables and equations of the form that IPOPT gets, where the duration counts once."""
    n, m, nz, _ = stages.sizes
    N = stages.count
    if has_smallest(stages):
        nv = stages.chart.nv
        variables = (N + 1) * nv + N * m + stages.is_free
        return variables, len(stages.start_names) + (N - 1) * nv + len(stages.end_names)
    free, numbers = int(stages.is_free), stages.chart.point
    variables = (N + 1) * (numbers - free) + N * (m + nz) + free
    lengths = numbers - n
    return variables, len(stages.start_names) + lengths + N * (numbers - free + nz) + len(stages.end_names)


class _Counter:
    """Hands out rows of g with their bounds."""

    def __init__(self) -> None:
        self.lower: list[Array] = []
        self.upper: list[Array] = []
        self.count = 0

    def equations(self, count: int) -> Array:
        return self.bounds(np.zeros(count), np.zeros(count))

    def bounds(self, lower: Array, upper: Array) -> Array:
        """Rows for those that bound something, -1 for the others."""
        there = np.isfinite(lower) | np.isfinite(upper)
        found = np.full(len(lower), -1)
        found[there] = self.count + np.arange(there.sum())
        self.lower.append(lower[there])
        self.upper.append(upper[there])
        self.count += int(there.sum())
        return found

    def program(self, size: int, blocks: list[Block]) -> NonlinearProgram:
        return NonlinearProgram(size, np.concatenate(self.lower), np.concatenate(self.upper), blocks)


def staged(stages: Stages, x: Array, u: Array, z: Array) -> NlpForm:
    """(2)"""
    _, m, nz, nd = stages.sizes
    N, p, parts = stages.count, stages.parameters, stages.parts
    n = parts[0].stages.chart.point
    first_part, last_part = parts[0].stages, parts[-1].stages
    own, s, parameters = ca.SX.sym("x", n), ca.SX.sym("s", 3), ca.SX.sym("p", len(p))
    at_start, norms = _proper(first_part, own)
    counter, motion, implicit, path, first = _Counter(), [], [], [], np.empty(0, int)
    rows: list[int] = []
    for k in range(N):  # FATROP wants them in this order
        motion.append(counter.equations(n))
        before = counter.count
        if k == 0:
            first = counter.equations(len(stages.start_names) + norms.numel())
        implicit.append(counter.equations(nz))
        path.append(counter.bounds(stages.lower[k], stages.upper[k]))
        rows.append(counter.count - before)
    before = counter.count
    end = counter.equations(len(stages.end_names))
    bounded = counter.bounds(stages.end_lower, stages.end_upper)
    rows.append(counter.count - before)

    width = n + m + nz
    unknowns = width * np.arange(N)[:, None] + np.arange(width + n)
    places = np.hstack([motion, implicit, path])
    blocks = [
        _stage_block(
            part.stages, unknowns[part.where], places[part.where].astype(int), stages.numbers[part.where]
        )
        for part in parts
    ]
    start = _ends(stages, [own, s, parameters], at_start)[0]
    finish = _ends(stages, [own, s, parameters], _proper(last_part, own)[0])[1]
    start = ca.Function("start", [own, s, parameters], [0, ca.vertcat(start(own, s, parameters)[1], norms)])
    blocks += [
        Block("start", start, unknowns[:1, :n], first[None], (stages.numbers[:1], p)),
        Block(
            *("end", finish, N * width + np.arange(n)[None], np.concatenate([end, bounded])[None]),
            given=(stages.numbers[-1:], p),
        ),
    ]
    guess = np.append(np.hstack([x[:-1], u, z]).ravel(), x[-1])

    def unpack(w: Array) -> tuple[Array, Array, Array]:
        inner = w[: N * width].reshape(N, width)
        points = np.vstack([inner[:, :n], w[N * width :]])
        for part, nodes in nodes_of(stages):
            chart = part.chart
            points[nodes] = chart.move(points[nodes], np.zeros((len(points[nodes]), chart.tangent)))
        return points, inner[:, n : n + m].copy(), inner[:, n + m :].copy()

    structure = {"N": N, "nx": [n] * (N + 1), "nu": [m + nz] * N + [0], "ng": rows}
    program = counter.program(len(guess), blocks)
    found_rows = RowMap(
        *(np.array(motion), np.array(implicit).reshape(N, nz), first[: len(stages.start_names)], end),
        *(np.array(path).reshape(N, nd), bounded),
    )
    return NlpForm(stages, program, guess, found_rows, unpack, structure)


def nodes_of(stages: Stages) -> Iterator[tuple[Stages, slice]]:
    """Stages whose chart nodes have, and these: those of a phase, with the one at its end."""
    for part in stages.parts:
        if part.stages.following is None:
            yield part.stages, slice(part.where.start, part.where.stop + 1)


def _stage_block(stages: Stages, unknowns: Array, places: Array, numbers: Array) -> Block:
    """Stages that share their functions."""
    _, m, nz, _ = stages.sizes
    n, p = stages.chart.point, stages.parameters
    own, s, parameters = ca.SX.sym("x", n), ca.SX.sym("s", 3), ca.SX.sym("p", len(p))
    us, zs, next_ = (ca.SX.sym(name, k) for name, k in (("u", m), ("z", nz), ("next", n)))
    found, cost, c, d = stages.stage(_proper(stages, own)[0], us, zs, s, parameters)
    w = ca.vertcat(own, us, zs, next_)
    stage = ca.Function("stage", [w, s, parameters], [cost, ca.vertcat(next_ - found, c, d)])

    def expand(at: list[ca.SX]) -> Expansion:
        """By way of the bodies: `alembert.optimal.stage_derivatives`."""
        assert stages.opened is not None
        w, s, p = at
        own, us, zs, next_ = ca.vertsplit(w, [0, n, n + m, n + m + nz, w.numel()])

        def functions(found: list[ca.SX]) -> list[ca.SX]:
            return [found[1], ca.vertcat(next_ - found[0], found[2], found[3])]

        return stages.opened.expand([_proper(stages, own)[0], us, zs, s, p], functions, w, at, at)

    return Block(
        *("stage", stage, unknowns, places, (numbers, p)),
        expand=expand if stages.opened is not None else None,
    )


def _proper(stages: Stages, x: ca.SX) -> tuple[ca.SX, ca.SX]:
    """The point of numbers x, with quaternions of length one, and what their lengths miss."""
    chart = stages.chart
    point = chart.retract(x, ca.SX.zeros(chart.tangent))
    off = []
    if chart.model is not None:
        for owner in chart.model.space:
            if owner.type.nq > owner.type.nv:
                off.append((ca.sumsqr(x[owner.q]) - ca.sumsqr(point[owner.q])) / 2)
    return point, ca.vertcat(ca.SX(0, 1), *off)


def smallest(stages: Stages, x: Array, u: Array) -> NlpForm:
    """(3); the duration, when it is free, is one unknown more."""
    chart, N, m, p = stages.chart, stages.count, len(stages.u_names), stages.parameters
    nq, nv, nd, free = chart.nq, chart.nv, stages.sizes[3], int(stages.is_free)
    counter = _Counter()
    first = counter.equations(len(stages.start_names))
    motion = counter.equations((N - 1) * nv).reshape(N - 1, nv)
    end = counter.equations(len(stages.end_names))
    path = np.array([counter.bounds(*pair) for pair in zip(stages.lower, stages.upper, strict=True)])
    bounded = counter.bounds(stages.end_lower, stages.end_upper)

    here, us, there, T = (
        ca.SX.sym(name, k) for name, k in (("here", nv), ("u", m), ("there", nv), ("T", free))
    )
    q, after = ca.SX.sym("q", nq), ca.SX.sym("after", nq)
    s, parameters = ca.SX.sym("s", 3), ca.SX.sym("p", len(p))
    assert chart.model is not None
    space = chart.model.space
    now, then = space.integrate(q, here), space.integrate(after, there)
    step = space.difference(now, then)
    # c with p = 0 is p^-
    minus = stages.stage(ca.vertcat(now, ca.SX.zeros(nv), T), us, step, s, parameters)[2]
    found, cost, _, d = stages.stage(ca.vertcat(now, minus, T), us, step, s, parameters)
    plus = found[nq : nq + nv]
    w = ca.vertcat(here, us, there, T)
    given = [q, after, s, parameters]
    stage = ca.Function("stage", [w, *given], [cost, ca.vertcat(plus, -minus, d)])
    size = (N + 1) * nv
    nodes, steps = np.arange(size).reshape(-1, nv), np.arange(N * m).reshape(N, m) + size
    unknowns = np.hstack([nodes[:-1], steps, nodes[1:], np.full((N, free), size + N * m)])
    none = np.full((1, nv), -1)
    matched = np.hstack([np.vstack([motion, none]), np.vstack([none, motion]), path.reshape(N, nd)])
    begins, _ = _ends(stages, [w, *given], ca.vertcat(now, minus, T))
    _, finishes = _ends(stages, [w, *given], ca.vertcat(then, plus, T))
    given_ = (x[:-1, :nq].copy(), x[1:, :nq].copy(), stages.numbers, p)
    at_start, at_end = ((*(g[k] for g in given_[:3]), p) for k in (slice(0, 1), slice(N - 1, N)))
    blocks = [
        Block("stage", stage, unknowns, matched.astype(int), given_),
        Block("start", begins, unknowns[:1], first[None], at_start),
        Block("end", finishes, unknowns[-1:], np.concatenate([end, bounded])[None], at_end),
    ]
    guess = np.concatenate([np.zeros(size), u.ravel(), x[0, -1:] if free else []])
    at_nodes = ca.Function("nodes", [w, *given], [now, then, minus, plus, step]).map(N)

    def unpack(w: Array) -> tuple[Array, Array, Array]:
        tiled = np.tile(p[:, None], (1, N))
        found = at_nodes(w[unknowns].T, *(g.T for g in given_[:3]), tiled)
        now, then, minus, plus, steps = (part.full().T for part in found)
        T = np.full((N + 1, free), w[-1])
        moved = np.hstack([np.vstack([now, then[-1:]]), np.vstack([minus, plus[-1:]]), T])
        return moved, w[unknowns[:, nv : nv + m]], steps

    rows = RowMap(motion, np.empty((N, 0), int), first, end, path.reshape(N, nd), bounded)
    return NlpForm(stages, counter.program(len(guess), blocks), guess, rows, unpack)


def _ends(stages: Stages, symbols: list[ca.SX], point: ca.SX) -> tuple[ca.Function, ca.Function]:
    """The functions of the start and of the end, of a point that depends on `symbols`; s and p are the last of these."""
    cost, equations, bounded = stages.end(point, *symbols[-2:])
    start = ca.Function("start", symbols, [ca.SX(0), stages.start(point, *symbols[-2:])])
    return start, ca.Function("end", symbols, [cost, ca.vertcat(equations, bounded)])
