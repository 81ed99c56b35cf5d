"""A nonlinear program made of blocks: the same functions of a few unknowns each, many times.

    min sum_b f_b(w_b),    lower <= g(w) <= upper,    g = sum_b S_b' g_b(w_b)                          (1)

with w_b some of the unknowns w, and S_b the rows of g that those of a block are added to. The stages of a problem are the
instances of one block and the lanes of its compiled functions; its start and its end are one instance each, left, as
short problems are, to CasADi's interpreter. Values, first derivatives, and second derivatives of the Lagrangian are
compiled apart, for their structural nonzeros only, and a `NonlinearProgram` adds them up in the sparse matrices that general
solvers take. Where the code of second derivatives would be long, one product of them with a direction is compiled instead,
and called with directions that mix columns without common nonzeros (Curtis, Powell and Reid, J. Inst. Math. Appl. 13, 1974).

What is known of a point is kept until another one comes, since solvers ask for cost, rows and slopes one after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.accelerations import Expansion
from alembert.optimal.evaluation import MOST_KERNELS, Graph, compiled
from alembert.optimal.time_sweep import together

Array = np.ndarray
FEW = 8
"""instances: with no more than these compiling would take longer than it saves"""
LONGEST_SECOND = 60_000
"""instructions of second derivatives; beyond, a product may be compiled instead: less code, and some three times the work"""
LABELS = {"values": "functions", "first": "derivatives", "second": "second derivatives"}
_PATTERNS: dict[str, tuple[ca.Sparsity, ca.Sparsity]] = {}
_FUNCTIONS: dict[str, ca.Function] = {}
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
            _keep_few(_PATTERNS)
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
    """One of the block's functions on all of its instances, compiled unless they are few."""
    function, (first, second) = block.function, block.patterns
    names = function.name_in()
    sizes = {name: function.size1_in(k) for k, name in enumerate(names)}
    rows, key = function.size1_out(1), f"block {block.key} {what}"

    def lagrangian(s: dict[str, ca.SX]) -> ca.SX:
        f, g = function.call([s[name] for name in names])
        return s["sigma"] * f + ca.dot(s["y"], g)

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
        return [_nonzeros(ca.hessian(lagrangian(s), w)[0], second)]

    def product(s: dict[str, ca.SX]) -> list[ca.SX]:
        w = s[names[0]]
        return [ca.jtimes(ca.gradient(lagrangian(s), w), w, s["along"])]

    if what == "second":
        sizes |= {"sigma": 1, "y": rows}
    if len(block.unknowns) <= FEW:
        return _interpreted(key, len(block.unknowns), sizes, graph, inputs, outputs)
    if what == "second" and _by_products_shorter(sizes, graph, product):
        return _by_products(block, key, sizes, product, inputs, outputs[0])
    results = {
        "values": {"f": (1,), "g": (rows,)},
        "first": {"f": (1,), "g": (rows,), "slope": (len(block.unknowns[0]),), "jacobian": (first.nnz(),)},
        "second": {"hessian": (second.nnz(),)},
    }[what]
    kernel = compiled(f"{LABELS[what]} of a {block.name}", key, sizes, results, graph)
    return kernel.bind(len(block.unknowns), inputs, outputs)


def _by_products_shorter(sizes: dict[str, int], whole: Graph, product: Graph) -> bool:
    """Whether second derivatives are long, and a product of them at most half as long."""
    symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    symbols["along"] = ca.SX.sym("along", next(iter(sizes.values())))

    def length(graph: Graph) -> int:
        return int(ca.Function("length", list(symbols.values()), graph(symbols)).n_instructions())

    long = length(whole)
    return long > LONGEST_SECOND and 2 * length(product) < long


def _by_products(
    block: Block, key: str, sizes: dict[str, int], product: Graph, inputs: list[Array], output: Array
) -> Callable[[], None]:
    """Second derivatives from their products with a few directions."""
    pattern, count = block.patterns[1], len(block.unknowns)
    size = pattern.size1()
    variables, colors = _places((pattern + pattern.T).uni_coloring())
    directions = np.zeros((colors.max() + 1, size))
    directions[colors, variables] = 1.0
    products = np.zeros((len(directions), count, size))
    name = f"{LABELS['second']} of a {block.name}"
    kernel = compiled(name, f"{key} product", sizes | {"along": size}, {"product": (size,)}, product)
    runs = [kernel.bind(count, [*inputs, d], [p]) for d, p in zip(directions, products, strict=True)]
    i, j = _places(pattern)
    color = np.zeros(size, int)
    color[variables] = colors

    def run() -> None:
        for one in runs:
            one()
        output[...] = products[color[j], :, i].T

    return run


def _interpreted(
    key: str,
    count: int,
    sizes: dict[str, int],
    graph: Graph,
    inputs: list[Array],
    outputs: Sequence[Array],
) -> Callable[[], None]:
    """A function of CasADi on always the same arrays."""
    if key not in _FUNCTIONS:
        _keep_few(_FUNCTIONS)
        symbols = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
        found = [ca.densify(ca.SX(e)) for e in graph(symbols)]
        _FUNCTIONS[key] = ca.Function("block", list(symbols.values()), found)
    shared = [k for k, array in enumerate(inputs) if array.ndim == 1]
    buffer, evaluate = _FUNCTIONS[key].map("blocks", "serial", count, shared, []).buffer()
    puts: tuple[Any, Any] = buffer.set_arg, buffer.set_res
    for put, arrays in zip(puts, (inputs, outputs), strict=True):
        for k, array in enumerate(arrays):
            if array.size:
                put(k, memoryview(array.reshape(-1)))  # type: ignore[arg-type]
    kept = (buffer, inputs, outputs)
    return lambda _kept=kept: evaluate()  # type: ignore[misc]


def _nonzeros(matrix: ca.SX, pattern: ca.Sparsity) -> ca.SX:
    found: Any = ca.project(matrix, pattern).nonzeros()
    return ca.vertcat(ca.SX(0, 1), *found)


def _keep_few(cache: dict[str, Any]) -> None:
    if len(cache) > MOST_KERNELS:
        cache.clear()
