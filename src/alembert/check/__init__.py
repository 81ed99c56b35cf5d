"""Compare what Alembert computes with independent oracles: `check.derivatives(model)`.

Every derivative exists by more than one route. An oracle is a slow route that shares as little as possible with the fast
one:

    ad                   forward-mode differentiation of the symbolic lowering, column by column, in CasADi's interpreter
    complex_step         Im f(x + i h d) / h on the instructions of the symbolic lowering, in NumPy; no subtraction, no AD
    finite_difference    central differences of fourth order of the compiled function itself
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from alembert.algorithms.table import TABLE, all_with, find
from alembert.arguments import check_known
from alembert.check.oracles import (
    CONFIGURATIONS,
    ORACLES,
    SECOND,
    Given,
    Oracle,
    flat,
    frame_of,
    graph_options,
    has_expression,
    inputs,
    per_minimal_set,
    samples,
    wrench_frame,
)
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.model import Model
from alembert.model.model import check_model
from alembert.model.printing import as_text

Array = np.ndarray
TOLERANCES = {"ad": 1e-9, "complex_step": 1e-9, "finite_difference": 1e-5}
"""what a correct derivative keeps to, by oracle"""
NOTHING = 1e-6
"""part of an algorithm's largest derivative below which another has its rounding rather than digits of its own"""
CONSTANT = 1e-4
"""part of an algorithm's result below which its derivatives are rounding: those of a mass matrix that does not change"""


@dataclass(frozen=True)
class ComparedDerivative:
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
    comparisons: tuple[ComparedDerivative, ...]

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
        return as_text(self, markup=True)


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
    check_known("check.derivatives: no oracle", oracle, ORACLES)
    names = (
        list(all_with("has_derivatives"))
        if name == "all"
        else [name]
        if isinstance(name, str)
        else list(name)
    )
    for entry in names:
        find("check.derivatives", entry, "has_derivatives")
    if states < 0:
        raise ArgumentError(f"check.derivatives: states is {states}, expected zero or more")
    rng = np.random.default_rng(seed)
    taken = list(samples(model, states, rng))
    found: list[ComparedDerivative] = []
    if model.is_constrained:
        without = [x for x in names if TABLE[x].needs_tree and not has_expression(x)]
        if name == "all":
            names = [entry for entry in names if entry not in without]
        elif without:
            raise UnsupportedError(
                f"check.derivatives: {without[0]} of a model with loops, couplings or equations has no expression to "
                "compare with; forward_dynamics and inverse_dynamics, which it is made of, have"
            )
    for entry in names:
        found += _compare(model, entry, taken, per_minimal_set(model, entry, ORACLES[oracle]), rng)
        if second:
            found.append(_compare_second(model, entry, taken, oracle, rng))
    result = DerivativeCheck(model.name, oracle, len(taken), tuple(found))
    if show:
        Console().print(result)
    return result


# --- one algorithm --------------------------------------------------------------------------------------------


def _compare(
    model: Model, name: str, samples: list[tuple[str, Given]], oracle: Oracle, rng: np.random.Generator
) -> list[ComparedDerivative]:
    labels: list[str] = []
    pairs: dict[tuple[str, str], list[tuple[Array, Array]]] = {}
    least = 0.0
    for label, sample in samples:
        given = {key: sample[key] for key in inputs(model, name)}
        J = oracle(given)
        products, result = _products(model, name, given, J, rng)
        least = max(least, CONSTANT * result, *(NOTHING * float(np.linalg.norm(x)) for x in J.values()))
        labels.append(label)
        for key, pair in {**_closed_form(model, name, given, J), **products}.items():
            pairs.setdefault(key, []).append(pair)
    return [_worst(name, key, values, labels, least) for key, values in pairs.items()]


def _worst(
    name: str, key: tuple[str, str], pairs: list[tuple[Array, Array]], labels: list[str], least: float = 0.0
) -> ComparedDerivative:
    """`least` is the size below which a derivative is rounding of larger ones."""
    off = np.array([np.linalg.norm(np.ravel(x) - np.ravel(y)) for x, y in pairs])
    sizes = np.array([np.linalg.norm(y) for _, y in pairs])
    sizes = np.maximum(sizes, max(np.median(sizes), least))
    errors = off / np.where(sizes > 0, sizes, 1.0)
    errors = np.where(np.isfinite(errors), errors, np.inf)
    k = int(np.argmax(errors))
    return ComparedDerivative(name, key[0], key[1], float(errors[k]), labels[k])


def _closed_form(
    model: Model, name: str, given: Given, J: Mapping[str, Array]
) -> dict[tuple[str, str], tuple[Array, Array]]:
    options: dict[str, Any] = {
        "parameters": _named(model, given),
        "wrenches": _wrenches(model, name, given),
        "sensitive_to": list(model.parameter_values),
    }
    frame = wrench_frame(model)
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
    found = {"q": d.dq, "v": d.dv, "given": d.dgiven, "wrench": d.dwrenches[wrench_frame(model)]}
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
    options: Any = frame_of(model, name)
    value, change = model.jvp(name, at, directions, wrenches=wrenches, along_wrenches=moved, **options)
    values, changes = (x if isinstance(x, tuple) else (x,) for x in (value, change))
    expected = sum(x @ along[key] for key, x in J.items())
    weights = tuple(rng.normal(size=np.shape(x)) for x in values)
    weight = weights if len(weights) > 1 else weights[0]
    gradients = list(model.vjp(name, at, weight, wrenches=wrenches, **options))
    by_key = {"wrench": gradients.pop()[wrench_frame(model)]} if wrenches else {}
    by_key |= dict(zip((key for key in J if key != "wrench"), gradients, strict=True))
    found = {("along all", "jvp"): (flat(changes), np.asarray(expected))}
    for key, x in J.items():
        if key != "free":
            found[f"d{key}", "vjp"] = (np.asarray(by_key[key]), flat(weights) @ x)
    return found, float(np.linalg.norm(flat(values)))


def _compare_second(
    model: Model, name: str, samples: list[tuple[str, Given]], oracle: str, rng: np.random.Generator
) -> ComparedDerivative:
    """d^T H d of weighted results along random directions, against the second derivative of a curve."""
    curve = per_minimal_set(model, name, SECOND[oracle])
    labels, pairs = [], []
    for label, sample in samples:
        given = {key: sample[key] for key in inputs(model, name)}
        moving = [key for key in given if key not in ("parameters", "free")]
        sizes = {key: model.nv if key in CONFIGURATIONS else len(given[key]) for key in given}
        d = {key: rng.normal(size=sizes[key]) * (key in moving) for key in given}
        weights = [rng.normal(size=shape) for shape in _result_shapes(model, name)]
        H = model.hessian(
            name,
            [x for key, x in given.items() if key != "wrench"],
            tuple(weights) if len(weights) > 1 else weights[0],
            wrenches=_wrenches(model, name, given),
            **frame_of(model, name),
        )
        full = np.concatenate([d[key] for key in given if key != "parameters"])
        labels.append(label)
        pairs.append((np.array(full @ H @ full), np.array(curve(given, d, flat(weights)))))
    return _worst(name, ("second, along all", "hessian"), pairs, labels)


def _result_shapes(model: Model, name: str) -> list[tuple[int, ...]]:
    if model.is_constrained and has_expression(name):
        return [(model.nv,)]
    if TABLE[name].program or TABLE[name].kernel:
        return [result.shape for result in model.compute.kernel(name).results]
    return [result.shape for result in model.symbolic.graph(name, graph_options(model, name, None)).results]


def _wrenches(model: Model, name: str, given: Given) -> dict[str, Array] | None:
    return {wrench_frame(model): given["wrench"]} if TABLE[name].takes_wrenches else None


def _named(model: Model, given: Given) -> dict[str, float] | None:
    if "parameters" not in given:
        return None
    return dict(zip(model.parameter_values, given["parameters"].tolist(), strict=True))
