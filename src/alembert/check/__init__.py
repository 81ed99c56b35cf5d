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

from alembert.check.complex_numbers import run
from alembert.check.states import Given, samples
from alembert.dynamics import manifold
from alembert.dynamics.constrained_products import GRAPH_OF as CONSTRAINED
from alembert.dynamics.directional_kernels import KNOWN
from alembert.dynamics.graphs import GRAPHS, TAKES_WRENCHES, Options
from alembert.dynamics.kernels import graph_kernel
from alembert.dynamics.programs import ALGORITHMS, NEED_TREE, PROGRAMS
from alembert.dynamics.symbolic import constrained_options, inverse_options
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.model import Model
from alembert.model.model import check_model
from alembert.model.printing import unknown

Array = np.ndarray
CONFIGURATIONS = ("q", "q0", "q1")
"""arguments that move along `integrate`"""
TOLERANCES = {"ad": 1e-9, "complex_step": 1e-9, "finite_difference": 1e-5}
"""what a correct derivative keeps to, by oracle"""
NOTHING = 1e-6
"""part of an algorithm's largest derivative below which another has its rounding rather than digits of its own"""
CONSTANT = 1e-4
"""part of an algorithm's result below which its derivatives are rounding: those of a mass matrix that does not change"""


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
        table.add_column("algorithm", no_wrap=True)
        for column in ("derivative", "route"):
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
    second: bool = False,
    show: bool = True,
) -> DerivativeCheck:
    """Compare every derivative of an algorithm with an oracle, and print a table.

    Args:
        model: with loops, couplings or equations, states are taken on them; their minimal set is that of each state.
        name: an algorithm (those of `model.jvp`), several, or "all".
        states: how many random states besides the special ones: neutral, straight, at rest (nearby, where loops are closed).
        seed: of the random numbers.
        oracle: "ad", "complex_step" or "finite_difference".
        second: whether to compare `hessian` as well; for small models.
        show: whether to print.

    Closed forms are compared where there are any (forward, inverse and hybrid dynamics), and the products `jvp` and `vjp`
    of every algorithm, with respect to a wrench on the last moving body and to parameters too; that body is also the frame
    of algorithms on frames. Errors are relative to the size of the derivative at the state, or to its typical size over all
    states where it vanishes, or to a millionth of the algorithm's largest derivative (and a ten thousandth of its result)
    where it vanishes throughout.
    """
    check_model("check.derivatives", model)
    if not model.nv:
        raise ArgumentError(f"check.derivatives: nothing moves in the model {model.name!r}")
    if oracle not in _ORACLES:
        raise ArgumentError(unknown("check.derivatives: no oracle", oracle, _ORACLES))
    names = list(KNOWN) if name == "all" else [name] if isinstance(name, str) else list(name)
    for entry in names:
        if entry not in KNOWN:
            raise ArgumentError(unknown("check.derivatives: no algorithm", entry, KNOWN))
    if states < 0:
        raise ArgumentError(f"check.derivatives: states is {states}, expected zero or more")
    rng = np.random.default_rng(seed)
    taken = list(samples(model, states, rng))
    found: list[Comparison] = []
    if model.is_constrained:
        without = [entry for entry in names if entry in NEED_TREE and entry not in CONSTRAINED]
        if name == "all":
            names = [entry for entry in names if entry not in without]
        elif without:
            raise UnsupportedError(
                f"check.derivatives: {without[0]} of a model with loops, couplings or equations has no expression to "
                "compare with; forward_dynamics and inverse_dynamics, which it is made of, have"
            )
    for entry in names:
        found += _compare(model, entry, taken, _per_minimal_set(model, entry, _ORACLES[oracle]), rng)
        if second:
            found.append(_compare_second(model, entry, taken, oracle, rng))
    result = DerivativeCheck(model.name, oracle, len(taken), tuple(found))
    if show:
        Console().print(result)
    return result


# --- one algorithm --------------------------------------------------------------------------------------------


def _compare(
    model: Model, name: str, samples: list[tuple[str, Given]], oracle: _Oracle, rng: np.random.Generator
) -> list[Comparison]:
    labels: list[str] = []
    pairs: dict[tuple[str, str], list[tuple[Array, Array]]] = {}
    least = 0.0
    for label, sample in samples:
        given = {key: sample[key] for key in _inputs(model, name)}
        J = oracle(given)
        products, result = _products(model, name, given, J, rng)
        least = max(least, CONSTANT * result, *(NOTHING * float(np.linalg.norm(x)) for x in J.values()))
        labels.append(label)
        for key, pair in {**_closed_form(model, name, given, J), **products}.items():
            pairs.setdefault(key, []).append(pair)
    return [_worst(name, key, values, labels, least) for key, values in pairs.items()]


def _worst(
    name: str,
    key: tuple[str, str],
    pairs: list[tuple[Array, Array]],
    labels: list[str],
    least: float = 0.0,
) -> Comparison:
    """`least` is the size below which a derivative is rounding of larger ones."""
    off = np.array([np.linalg.norm(np.ravel(x) - np.ravel(y)) for x, y in pairs])
    sizes = np.array([np.linalg.norm(y) for _, y in pairs])
    sizes = np.maximum(sizes, max(np.median(sizes), least))
    errors = off / np.where(sizes > 0, sizes, 1.0)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    k = int(np.argmax(errors))
    return Comparison(name, key[0], key[1], float(errors[k]), labels[k])


def _closed_form(
    model: Model, name: str, given: Given, J: Mapping[str, Array]
) -> dict[tuple[str, str], tuple[Array, Array]]:
    options: dict[str, Any] = {
        "parameters": _named(model, given),
        "wrenches": _wrenches(model, name, given),
        "sensitive_to": list(model.parameter_values),
    }
    frame = _wrench_frame(model)
    if name == "forward_dynamics":
        f = model.forward_dynamics_derivatives(given["q"], given["v"], given["tau"], **options)
        found = {"q": f.dq, "v": f.dv, "tau": f.dtau, "wrench": f.dwrenches[frame], **_by_parameters(f)}
    elif name == "inverse_dynamics":
        i = model.inverse_dynamics_derivatives(given["q"], given["v"], given["a"], **options)
        found = {"q": i.dq, "v": i.dv, "a": i.da, "wrench": i.dwrenches[frame], **_by_parameters(i)}
    elif name == "hybrid_dynamics":
        return _hybrid_closed_form(model, given, J, options)
    else:
        return {}
    return {(f"d{key}", "closed form"): (value, J[key]) for key, value in found.items()}


def _by_parameters(d: Any) -> dict[str, Array]:
    """The derivatives with respect to all parameters, in the last index."""
    return {"parameters": np.stack([*d.dparameters.values()], axis=-1)} if d.dparameters else {}


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
    expected = {**J, "given": np.where(free, J["tau"], J["a_given"])}
    found = {"q": d.dq, "v": d.dv, "given": d.dgiven, "wrench": d.dwrenches[_wrench_frame(model)]}
    found |= _by_parameters(d)
    return {
        (f"d{key}", "closed form"): (value.reshape(2 * model.nv, value.shape[-1]), expected[key])
        for key, value in found.items()
    }


def _products(
    model: Model, name: str, given: Given, J: Mapping[str, Array], rng: np.random.Generator
) -> tuple[dict[tuple[str, str], tuple[Array, Array]], float]:
    """jvp and vjp of all results of the algorithm, and their size; the choice of `free` speeds is no variable."""
    at = [x for key, x in given.items() if key != "wrench"]
    along = {key: rng.normal(size=x.shape[1]) * (key != "free") for key, x in J.items()}
    wrenches = _wrenches(model, name, given)
    moved = {frame: along["wrench"] for frame in wrenches or {}}
    directions = [x for key, x in along.items() if key != "wrench"]
    options: Any = _frame_of(model, name)
    value, change = model.jvp(name, at, directions, wrenches=wrenches, along_wrenches=moved, **options)
    values, changes = (x if isinstance(x, tuple) else (x,) for x in (value, change))
    expected = sum(x @ along[key] for key, x in J.items())
    weights = tuple(rng.normal(size=np.shape(x)) for x in values)
    weight = weights if len(weights) > 1 else weights[0]
    gradients = list(model.vjp(name, at, weight, wrenches=wrenches, **options))
    by_key = {"wrench": gradients.pop()[_wrench_frame(model)]} if wrenches else {}
    by_key |= dict(zip((key for key in J if key != "wrench"), gradients, strict=True))
    found = {("along all", "jvp"): (_flat(changes), np.asarray(expected))}
    for key, x in J.items():
        if key != "free":
            found[f"d{key}", "vjp"] = (np.asarray(by_key[key]), _flat(weights) @ x)
    return found, float(np.linalg.norm(_flat(values)))


def _compare_second(
    model: Model, name: str, samples: list[tuple[str, Given]], oracle: str, rng: np.random.Generator
) -> Comparison:
    """d^T H d of weighted results along random directions, against the second derivative of a curve."""
    curve = _per_minimal_set(model, name, _SECOND[oracle])
    labels, pairs = [], []
    for label, sample in samples:
        given = {key: sample[key] for key in _inputs(model, name)}
        moving = [key for key in given if key not in ("parameters", "free")]
        sizes = {key: model.nv if key in CONFIGURATIONS else len(given[key]) for key in given}
        d = {key: rng.normal(size=sizes[key]) * (key in moving) for key in given}
        weights = [rng.normal(size=shape) for shape in _result_shapes(model, name)]
        H = model.hessian(
            name,
            [x for key, x in given.items() if key != "wrench"],
            tuple(weights) if len(weights) > 1 else weights[0],
            wrenches=_wrenches(model, name, given),
            **_frame_of(model, name),
        )
        full = np.concatenate([d[key] for key in given if key != "parameters"])
        labels.append(label)
        pairs.append((np.array(full @ H @ full), np.array(curve(given, d, _flat(weights)))))
    return _worst(name, ("second, along all", "hessian"), pairs, labels)


def _result_shapes(model: Model, name: str) -> list[tuple[int, ...]]:
    if model.is_constrained and name in CONSTRAINED:
        return [(model.nv,)]
    if name in ALGORITHMS:
        return [result.shape for result in model._kernel(name).results]
    return [result.shape for result in model.symbolic.graph(name, _options(model, name, None)).results]


def _curve(model: Model, name: str, q: Array | None) -> ca.Function:
    """Weighted results along (integrate(q, s d), v + s d, ...), a function of (s, d, inputs, weight)."""
    f = _flat_function(model, name, q)
    s = ca.SX.sym("s")
    x = [ca.SX.sym(f"x{k}", f.size1_in(k)) for k in range(f.n_in())]
    turned = [key in CONFIGURATIONS for key in _inputs(model, name)]
    d = [ca.SX.sym("d", model.nv if is_q else y.shape[0]) for is_q, y in zip(turned, x, strict=True)]
    moved = [
        model.symbolic.integrate(y, s * e) if is_q else y + s * e
        for is_q, y, e in zip(turned, x, d, strict=True)
    ]
    weight = ca.SX.sym("w", f.size1_out(0))
    value = ca.dot(f(*moved), weight)
    return ca.Function("curve", [s, ca.vertcat(*d), ca.vertcat(*x), weight], [value])


def _second_ad(model: Model, name: str, q: Array | None) -> Callable[[Given, Given, Array], float]:
    curve = _curve(model, name, q)
    s = ca.SX.sym("s")
    more = [ca.SX.sym(f"m{k}", curve.size1_in(k)) for k in range(1, 4)]
    first = ca.jtimes(curve(s, *more), s, ca.SX(1))
    twice = ca.Function("twice", [s, *more], [ca.jtimes(first, s, ca.SX(1))])
    return lambda given, d, w: float(twice(0.0, _flat(d.values()), _flat(given.values()), w))


def _second_complex(model: Model, name: str, q: Array | None) -> Callable[[Given, Given, Array], float]:
    curve = _curve(model, name, q)
    s = ca.SX.sym("s")
    more = [ca.SX.sym(f"m{k}", curve.size1_in(k)) for k in range(1, 4)]
    slope = ca.Function("slope", [s, *more], [ca.jtimes(curve(s, *more), s, ca.SX(1))])
    step = 1e-40

    def value(given: Given, d: Given, w: Array) -> float:
        column = np.concatenate([[1j * step], _flat(d.values()), _flat(given.values()), w])
        return float(run(slope, column[:, None]).imag[0, 0] / step)

    return value


def _second_difference(model: Model, name: str, q: Array | None) -> Callable[[Given, Given, Array], float]:
    kernel = _compiled(model, name, q)
    step = 1e-3

    def value(given: Given, d: Given, w: Array, s: float) -> float:
        found = kernel(*(_moved(model, key, x, s * d[key]) for key, x in given.items()))
        return float(_flat(found if isinstance(found, tuple) else (found,)) @ w)

    def second(given: Given, d: Given, w: Array) -> float:
        f = [value(given, d, w, s * step) for s in (-2, -1, 0, 1, 2)]
        return (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * step**2)

    return second


_SECOND: dict[str, Callable[[Model, str, Array | None], Callable[[Given, Given, Array], float]]] = {
    "ad": _second_ad,
    "complex_step": _second_complex,
    "finite_difference": _second_difference,
}


def _wrench_frame(model: Model) -> str:
    """The last body that moves."""
    return next(body.name for body in reversed(model.bodies) if model._carrier(body.name)[0] >= 0)


def _wrenches(model: Model, name: str, given: Given) -> dict[str, Array] | None:
    return {_wrench_frame(model): given["wrench"]} if name in TAKES_WRENCHES else None


def _flat(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.ravel(part) for part in parts])


def _inputs(model: Model, name: str) -> tuple[str, ...]:
    own = PROGRAMS[name][1] if name in PROGRAMS else GRAPHS[name][0]
    wrench = ("wrench",) if name in TAKES_WRENCHES else ()
    takes_parameters = model.parameters and name not in manifold.NAMES
    return (*own, *wrench, *(("parameters",) if takes_parameters else ()))


def _frame_of(model: Model, name: str) -> dict[str, Any]:
    """The options of an algorithm on a frame."""
    return {"frame": _wrench_frame(model)} if name.startswith("frame_") else {}


def _moved(model: Model, key: str, x: Array, direction: Array) -> Array:
    return model.integrate(x, direction) if key in CONFIGURATIONS else x + direction


def _named(model: Model, given: Given) -> dict[str, float] | None:
    if "parameters" not in given:
        return None
    return dict(zip(model.parameter_values, given["parameters"].tolist(), strict=True))


# --- oracles --------------------------------------------------------------------------------------------------


def _options(model: Model, name: str, q: Array | None) -> Options:
    """Those of the graph, with the minimal set of constraints at q."""
    wrenches = (_wrench_frame(model),) if name in TAKES_WRENCHES else ()
    if q is None:
        return Options(wrenches=wrenches, **_frame_of(model, name))
    make = inverse_options if name == "inverse_dynamics" else constrained_options
    return Options(wrenches=wrenches, **make(model, "check.derivatives", q))


def _per_minimal_set(
    model: Model, name: str, make: Callable[[Model, str, Array | None], Any]
) -> Callable[..., Any]:
    """An oracle; of what constraints change, one for each of the minimal sets that states have."""
    if not (model.is_constrained and name in CONSTRAINED):
        return make(model, name, None)
    made: dict[Options, Any] = {}

    def oracle(given: Given, *more: Any) -> Any:
        options = _options(model, name, given["q"])
        if options not in made:
            made[options] = make(model, name, given["q"])
        return made[options](given, *more)

    return oracle


_Oracle = Callable[[Given], dict[str, Array]]
"""From inputs to the Jacobian of all results (one after the other, C order) with respect to each input, tangent for q."""


def _ad(model: Model, name: str, q: Array | None) -> _Oracle:
    graph = _flat_function(model, name, q)
    x = [ca.SX.sym(f"x{k}", graph.size1_in(k)) for k in range(graph.n_in())]
    d = [ca.SX.sym(f"d{k}", graph.size1_in(k)) for k in range(graph.n_in())]
    along = ca.jtimes(graph(*x), ca.vertcat(*x), ca.vertcat(*d))
    forward = ca.Function("forward", [ca.vertcat(*x), ca.vertcat(*d)], [along])

    def jacobian(given: Given) -> dict[str, Array]:
        values, seeds = _seeds(model, given)
        return _columns(model, given, np.asarray(forward(values, seeds)))

    return jacobian


def _complex_step(model: Model, name: str, q: Array | None) -> _Oracle:
    graph = _flat_function(model, name, q)
    step = 1e-40

    def jacobian(given: Given) -> dict[str, Array]:
        values, seeds = _seeds(model, given)
        return _columns(model, given, run(graph, values[:, None] + 1j * step * seeds).imag / step)

    return jacobian


def _finite_difference(model: Model, name: str, q: Array | None) -> _Oracle:
    kernel = _compiled(model, name, q)
    step = 1e-3

    def value(given: Given, key: str, direction: Array) -> Array:
        found = kernel(*{**given, key: _moved(model, key, given[key], direction)}.values())
        parts = found if isinstance(found, tuple) else (found,)
        return np.concatenate([np.ravel(x) for x in parts])

    def jacobian(given: Given) -> dict[str, Array]:
        found = {}
        for key, x in given.items():
            size = model.nv if key in CONFIGURATIONS else len(x)
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


_ORACLES: dict[str, Callable[[Model, str, Array | None], _Oracle]] = {
    "ad": _ad,
    "complex_step": _complex_step,
    "finite_difference": _finite_difference,
}


def _compiled(model: Model, name: str, q: Array | None) -> Kernel:
    if q is not None:  # without the guards that `compile` puts around it: differences leave the surface
        return graph_kernel(model, CONSTRAINED[name], _options(model, name, q), name)
    if name not in ALGORITHMS:
        return graph_kernel(model, name, _options(model, name, None), name)
    return model.compile(name, wrenches=[_wrench_frame(model)] if name in TAKES_WRENCHES else [])


def _flat_function(model: Model, name: str, q: Array | None) -> ca.Function:
    """The symbolic lowering with all results in one column, C order."""
    if q is not None:
        function = model.symbolic.graph(CONSTRAINED[name], _options(model, name, q)).function
    elif name in TAKES_WRENCHES or name not in PROGRAMS:
        function = model.symbolic.graph(name, _options(model, name, None)).function
    else:
        function = model.symbolic.function(*PROGRAMS[name])
    x = [ca.SX.sym(f"x{k}", function.size1_in(k)) for k in range(function.n_in())]
    found = function(*x)
    results = found if isinstance(found, tuple) else (found,)
    return ca.Function("flat", x, [ca.densify(ca.vertcat(*(ca.vec(y.T) for y in results)))])


def _seeds(model: Model, given: Given) -> tuple[Array, Array]:
    """The inputs in one column, and a direction per tangent coordinate in the columns of a matrix."""
    blocks = []
    for key, x in given.items():
        if key in CONFIGURATIONS:
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
    sizes = [model.nv if key in CONFIGURATIONS else len(x) for key, x in given.items()]
    return dict(zip(given, np.split(J, np.cumsum(sizes)[:-1], axis=1), strict=True))
