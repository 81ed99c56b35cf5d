"""Compare what Alembert computes with independent oracles: `check.derivatives(model)`.

Every derivative exists by more than one route. An oracle is a slow route that shares as little as possible with the fast
one:

    ad                   forward-mode differentiation of the symbolic lowering, column by column, in CasADi's interpreter
    complex_step         Im f(x + i h d) / h on the instructions of the symbolic lowering, in NumPy; no subtraction, no AD
    finite_difference    central differences of fourth order of the compiled function itself
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import casadi as ca
import numpy as np
from rich.console import Console
from rich.table import Table

from alembert.dynamics.programs import PROGRAMS
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.joints import JointType
from alembert.model import Model
from alembert.model.printing import unknown

Array = np.ndarray
Given = dict[str, Array]
"""The inputs of an algorithm by name, the parameters among them."""

TOLERANCES = {"ad": 1e-9, "complex_step": 1e-9, "finite_difference": 1e-5}
"""what a correct derivative keeps to, by oracle"""


@dataclass(frozen=True)
class Comparison:
    """The largest relative error of one derivative over all states, and the state that has it."""

    algorithm: str
    derivative: str
    route: str
    error: float
    state: str


@dataclass(frozen=True)
class DerivativeCheck:
    """`comparisons` of one call; nothing is raised unless asked for."""

    model: str
    oracle: str
    states: int
    comparisons: tuple[Comparison, ...]

    @property
    def largest(self) -> float:
        return max((row.error for row in self.comparisons), default=0.0)

    @property
    def errors(self) -> dict[str, float]:
        """By `algorithm: derivative`."""
        return {f"{row.algorithm}: {row.derivative}": row.error for row in self.comparisons}

    def raise_if_above(self, tolerance: float | None = None) -> None:
        """`NumericalError` that names the derivatives above the tolerance (by default that of the oracle)."""
        limit = TOLERANCES[self.oracle] if tolerance is None else tolerance
        bad = [row for row in self.comparisons if not row.error <= limit]
        if bad:
            listed = "; ".join(
                f"{row.algorithm}: {row.derivative} ({row.route}) is off by {row.error:.2g} at {row.state}"
                for row in bad[:5]
            )
            more = f"; and {len(bad) - 5} more" if len(bad) > 5 else ""
            raise NumericalError(
                f"check.derivatives: {self.model} against {self.oracle}, tolerance {limit:.1g}: {listed}{more}"
            )

    def __rich__(self) -> Table:
        title = f"{self.model}: relative errors of derivatives against {self.oracle}, {self.states} states"
        table = Table(title=title, title_justify="left")
        for column in ("algorithm", "derivative", "route"):
            table.add_column(column, overflow="fold")
        table.add_column("error", justify="right")
        table.add_column("worst state", overflow="fold")
        for row in self.comparisons:
            colour = "green" if row.error <= TOLERANCES[self.oracle] else "bold red"
            table.add_row(
                row.algorithm, row.derivative, row.route, f"[{colour}]{row.error:.1e}[/]", row.state
            )
        return table

    def __str__(self) -> str:
        console = Console(file=StringIO(), width=110, color_system=None)
        console.print(self)
        return console.file.getvalue().rstrip()  # type: ignore[attr-defined]


def derivatives(
    model: Model,
    name: str | Sequence[str] = "forward_dynamics",
    *,
    states: int = 8,
    seed: int = 0,
    oracle: str = "ad",
    show: bool = True,
) -> DerivativeCheck:
    """Compare every derivative of an algorithm with an oracle, and print a table.

    Args:
        model: an open tree.
        name: an algorithm (those of `model.compile`), several, or "all".
        states: how many random states besides the special ones: neutral, straight, at rest.
        seed: of the random numbers.
        oracle: "ad", "complex_step" or "finite_difference".
        show: whether to print.

    Closed forms are compared where there are any (forward, inverse and hybrid dynamics), and the products `jvp` and `vjp`
    of every algorithm, parameters included. Errors are relative to the size of the derivative at the state, or to its
    typical size over all states where it vanishes.
    """
    if oracle not in _ORACLES:
        raise ArgumentError(unknown("check.derivatives: no oracle", oracle, _ORACLES))
    names = list(PROGRAMS) if name == "all" else [name] if isinstance(name, str) else list(name)
    for entry in names:
        if entry not in PROGRAMS:
            raise ArgumentError(unknown("check.derivatives: no algorithm", entry, PROGRAMS))
    if states < 0:
        raise ArgumentError(f"check.derivatives: states is {states}, expected zero or more")
    rng = np.random.default_rng(seed)
    samples = list(_samples(model, states, rng))
    found: list[Comparison] = []
    for entry in names:
        model.check_tree(entry)
        found += _compare(model, entry, samples, _ORACLES[oracle](model, entry), rng)
    result = DerivativeCheck(model.name, oracle, len(samples), tuple(found))
    if show:
        Console().print(result)
    return result


# --- one algorithm --------------------------------------------------------------------------------------------


def _compare(
    model: Model, name: str, samples: list[tuple[str, Given]], oracle: _Oracle, rng: np.random.Generator
) -> list[Comparison]:
    labels: list[str] = []
    pairs: dict[tuple[str, str], list[tuple[Array, Array]]] = {}
    for label, sample in samples:
        given = {key: sample[key] for key in _inputs(model, name)}
        J = oracle(given)
        labels.append(label)
        routes = {**_closed_form(model, name, given, J), **_products(model, name, given, J, rng)}
        for key, pair in routes.items():
            pairs.setdefault(key, []).append(pair)
    return [_worst(name, key, values, labels) for key, values in pairs.items()]


def _worst(
    name: str, key: tuple[str, str], pairs: list[tuple[Array, Array]], labels: list[str]
) -> Comparison:
    off = np.array([np.linalg.norm(np.ravel(x) - np.ravel(y)) for x, y in pairs])
    sizes = np.array([np.linalg.norm(y) for _, y in pairs])
    sizes = np.maximum(sizes, np.median(sizes))
    errors = off / np.where(sizes > 0, sizes, 1.0)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    k = int(np.argmax(errors))
    return Comparison(name, key[0], key[1], float(errors[k]), labels[k])


def _closed_form(
    model: Model, name: str, given: Given, J: Mapping[str, Array]
) -> dict[tuple[str, str], tuple[Array, Array]]:
    options = {"parameters": _named(model, given)}
    if name == "forward_dynamics":
        f = model.forward_dynamics_derivatives(given["q"], given["v"], given["tau"], **options)
        found = {"q": f.dq, "v": f.dv, "tau": f.dtau}
    elif name == "inverse_dynamics":
        i = model.inverse_dynamics_derivatives(given["q"], given["v"], given["a"], **options)
        found = {"q": i.dq, "v": i.dv, "a": i.da}
    elif name == "hybrid_dynamics":
        return _hybrid_closed_form(model, given, J, options)
    else:
        return {}
    return {(f"d{key}", "closed form"): (value, J[key]) for key, value in found.items()}


def _hybrid_closed_form(
    model: Model, given: Given, J: Mapping[str, Array], options: Mapping[str, Any]
) -> dict[tuple[str, str], tuple[Array, Array]]:
    free = given["free"] > 0.5
    speeds = model.speed_names
    d = model.hybrid_dynamics_derivatives(
        given["q"],
        given["v"],
        accelerations={speeds[k]: given["a_given"][k] for k in np.flatnonzero(~free)},
        torques={speeds[k]: given["tau"][k] for k in np.flatnonzero(free)},
        **options,
    )
    expected = {"q": J["q"], "v": J["v"], "given": np.where(free, J["tau"], J["a_given"])}
    found = {"q": d.dq, "v": d.dv, "given": d.dgiven}
    return {
        (f"d{key}", "closed form"): (value.reshape(2 * model.nv, model.nv), expected[key])
        for key, value in found.items()
    }


def _products(
    model: Model, name: str, given: Given, J: Mapping[str, Array], rng: np.random.Generator
) -> dict[tuple[str, str], tuple[Array, Array]]:
    """jvp and vjp of all results of the algorithm; the choice of `free` speeds is no variable."""
    at = list(given.values())
    along = {key: rng.normal(size=x.shape[1]) * (key != "free") for key, x in J.items()}
    value, change = model.jvp(name, at, list(along.values()))
    values, changes = (x if isinstance(x, tuple) else (x,) for x in (value, change))
    expected = sum(x @ along[key] for key, x in J.items())
    weights = tuple(rng.normal(size=np.shape(x)) for x in values)
    gradients = model.vjp(name, at, weights if len(weights) > 1 else weights[0])
    found = {("along all", "jvp"): (_flat(changes), np.asarray(expected))}
    for (key, x), gradient in zip(J.items(), gradients, strict=True):
        if key != "free":
            found[f"d{key}", "vjp"] = (np.asarray(gradient), _flat(weights) @ x)
    return found


def _flat(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.ravel(part) for part in parts])


def _inputs(model: Model, name: str) -> tuple[str, ...]:
    return (*PROGRAMS[name][1], "parameters") if model.parameters else PROGRAMS[name][1]


def _named(model: Model, given: Given) -> dict[str, float] | None:
    if not model.parameters:
        return None
    return dict(zip(model.parameter_values, given["parameters"].tolist(), strict=True))


# --- states ---------------------------------------------------------------------------------------------------


def _samples(model: Model, count: int, rng: np.random.Generator) -> Iterable[tuple[str, Given]]:
    """Special states, then random ones; all inputs that any algorithm takes."""

    def random() -> Array:
        return rng.normal(size=model.nv)

    zero = np.zeros(model.nv)
    special = [
        ("neutral, all zero", model.neutral(), zero, zero),
        ("neutral, in motion", model.neutral(), random(), random()),
        ("straight, at rest", _straight(model, rng), zero, random()),
        ("straight, in motion", _straight(model, rng), random(), random()),
        ("random, at rest", _regular(model, rng), zero, random()),
    ]
    more = [(f"random {k + 1}", _regular(model, rng), random(), random()) for k in range(count)]
    for label, q, v, x in (*special, *more):
        free = (rng.random(model.nv) < 0.6).astype(float)
        parameters = np.array([value for _, value in model.parameters])
        yield (
            label,
            {"q": q, "v": v, "tau": x, "a": x, "a_given": x[::-1], "free": free, "parameters": parameters},
        )


def _straight(model: Model, rng: np.random.Generator) -> Array:
    """Every angle at zero or half a turn, where axes line up; singular joints stay neutral."""
    q = model.neutral()
    for joint, s in zip(model.joints, model._q_slices, strict=True):
        turned = rng.integers(0, 2, size=joint.type.nq) * np.pi
        angles = np.array([unit == "rad" for _, unit in joint.type.coordinates], dtype=bool)
        if joint.type.is_vector_space and joint.type.singularity(q[s] + turned * angles) is None:
            q[s] += turned * angles
    return q


def _regular(model: Model, rng: np.random.Generator) -> Array:
    """Random, but a tenth of a radian from singular joints: the conditioning there is not what is tested."""
    while True:
        q = model.random_configuration(rng)
        if not any(
            _near_singular(joint.type, q[s]) for joint, s in zip(model.joints, model._q_slices, strict=True)
        ):
            return q


def _near_singular(joint: JointType, q: Array) -> bool:
    if type(joint).singularity is JointType.singularity:
        return False
    S = np.asarray(joint.subspace(q), dtype=float)
    return bool(np.linalg.svd(S, compute_uv=False)[-1] < 0.1)


# --- oracles --------------------------------------------------------------------------------------------------

_Oracle = Callable[[Given], dict[str, Array]]
"""From inputs to the Jacobian of all results (one after the other, C order) with respect to each input, tangent for q."""


def _ad(model: Model, name: str) -> _Oracle:
    graph = _flat_function(model, name)
    x = [ca.SX.sym(f"x{k}", graph.size1_in(k)) for k in range(graph.n_in())]
    d = [ca.SX.sym(f"d{k}", graph.size1_in(k)) for k in range(graph.n_in())]
    along = ca.jtimes(graph(*x), ca.vertcat(*x), ca.vertcat(*d))
    forward = ca.Function("forward", [ca.vertcat(*x), ca.vertcat(*d)], [along])

    def jacobian(given: Given) -> dict[str, Array]:
        values, seeds = _seeds(model, given)
        return _columns(model, given, np.asarray(forward(values, seeds)))

    return jacobian


def _complex_step(model: Model, name: str) -> _Oracle:
    graph = _flat_function(model, name)
    step = 1e-40

    def jacobian(given: Given) -> dict[str, Array]:
        values, seeds = _seeds(model, given)
        return _columns(model, given, _run(graph, values[:, None] + 1j * step * seeds).imag / step)

    return jacobian


def _finite_difference(model: Model, name: str) -> _Oracle:
    kernel = model.compile(name)
    step = 1e-3

    def value(given: Given, key: str, direction: Array) -> Array:
        moved = model.integrate(given[key], direction) if key == "q" else given[key] + direction
        found = kernel(*({**given, key: moved}).values())
        parts = found if isinstance(found, tuple) else (found,)
        return np.concatenate([np.ravel(x) for x in parts])

    def jacobian(given: Given) -> dict[str, Array]:
        found = {}
        for key, x in given.items():
            size = model.nv if key == "q" else len(x)
            scale = np.full(size, step)
            if key == "parameters":
                scale = step * np.where(x == 0, 1.0, np.abs(x))
            columns = []
            for k in range(size):
                e = scale[k] * np.eye(size)[k]
                near, far = (value(given, key, m * e) - value(given, key, -m * e) for m in (1, 2))
                columns.append((8 * near - far) / (12 * scale[k]))
            found[key] = np.stack(columns, axis=-1)
        return found

    return jacobian


_ORACLES: dict[str, Callable[[Model, str], _Oracle]] = {
    "ad": _ad,
    "complex_step": _complex_step,
    "finite_difference": _finite_difference,
}


def _flat_function(model: Model, name: str) -> ca.Function:
    """The symbolic lowering with all results in one column, C order."""
    program, names = PROGRAMS[name]
    function = model.symbolic.function(program, names)
    x = [ca.SX.sym(f"x{k}", function.size1_in(k)) for k in range(function.n_in())]
    found = function(*x)
    results = found if isinstance(found, tuple) else (found,)
    return ca.Function("flat", x, [ca.densify(ca.vertcat(*(ca.vec(y.T) for y in results)))])


def _seeds(model: Model, given: Given) -> tuple[Array, Array]:
    """The inputs in one column, and a direction per tangent coordinate in the columns of a matrix."""
    blocks = []
    for key, x in given.items():
        if key == "q":
            blocks.append(np.asarray(model.rate(x, np.eye(model.nv))).T)
        else:
            blocks.append(np.eye(len(x)))
    seeds = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)))
    row = column = 0
    for block in blocks:
        seeds[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return np.concatenate(list(given.values())), seeds


def _columns(model: Model, given: Given, J: Array) -> dict[str, Array]:
    sizes = [model.nv if key == "q" else len(x) for key, x in given.items()]
    return dict(zip(given, np.split(J, np.cumsum(sizes)[:-1], axis=1), strict=True))


# --- complex numbers through a CasADi function ----------------------------------------------------------------

_UNARY: dict[int, Callable[[Array], Array]] = {
    ca.OP_ASSIGN: lambda x: x,
    ca.OP_NEG: lambda x: -x,
    ca.OP_SQ: lambda x: x * x,
    ca.OP_TWICE: lambda x: 2 * x,
    ca.OP_INV: lambda x: 1 / x,
    ca.OP_SQRT: np.sqrt,
    ca.OP_SIN: np.sin,
    ca.OP_COS: np.cos,
    ca.OP_TAN: np.tan,
    ca.OP_EXP: np.exp,
    ca.OP_LOG: np.log,
    ca.OP_ASIN: np.arcsin,
    ca.OP_ACOS: np.arccos,
    ca.OP_ATAN: np.arctan,
    ca.OP_FABS: lambda x: np.where(x.real < 0, -x, x),
    ca.OP_SIGN: lambda x: np.sign(x.real) + 0j,
    ca.OP_NOT: lambda x: (x.real == 0) + 0j,
}
_BINARY: dict[int, Callable[[Array, Array], Array]] = {
    ca.OP_ADD: np.add,
    ca.OP_SUB: np.subtract,
    ca.OP_MUL: np.multiply,
    ca.OP_DIV: np.divide,
    ca.OP_POW: np.power,
    ca.OP_CONSTPOW: np.power,
    ca.OP_LT: lambda x, y: (x.real < y.real) + 0j,
    ca.OP_LE: lambda x, y: (x.real <= y.real) + 0j,
    ca.OP_EQ: lambda x, y: (x.real == y.real) + 0j,
    ca.OP_NE: lambda x, y: (x.real != y.real) + 0j,
    ca.OP_AND: lambda x, y: ((x.real != 0) & (y.real != 0)) + 0j,
    ca.OP_OR: lambda x, y: ((x.real != 0) | (y.real != 0)) + 0j,
    ca.OP_IF_ELSE_ZERO: lambda x, y: np.where(x.real != 0, y, 0j),
    ca.OP_FMIN: lambda x, y: np.where(x.real <= y.real, x, y),
    ca.OP_FMAX: lambda x, y: np.where(x.real >= y.real, x, y),
    ca.OP_ATAN2: lambda y, x: (
        np.arctan2(y.real, x.real) + 1j * (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2)
    ),
}


def _run(function: ca.Function, columns: Array) -> Array:
    """Evaluate an `SX` function of column inputs on complex columns, one point per column of `columns`."""
    starts = np.cumsum([0, *(function.size1_in(k) for k in range(function.n_in()))])
    work: dict[int, Array] = {}
    result = np.zeros((function.size1_out(0), columns.shape[1]), dtype=complex)
    for k in range(function.n_instructions()):
        code, i, o = function.instruction_id(k), function.instruction_input(k), function.instruction_output(k)
        if code == ca.OP_INPUT:
            work[o[0]] = columns[starts[i[0]] + i[1]]
        elif code == ca.OP_OUTPUT:
            result[o[1]] = work[i[0]]
        elif code == ca.OP_CONST:
            work[o[0]] = np.full(columns.shape[1], function.instruction_constant(k), dtype=complex)
        elif code in _UNARY:
            work[o[0]] = _UNARY[code](work[i[0]])
        elif code in _BINARY:
            work[o[0]] = _BINARY[code](work[i[0]], work[i[1]])
        else:
            raise UnsupportedError(
                f"check.derivatives: complex_step does not know the CasADi operation {code}; use another oracle"
            )
    return result
