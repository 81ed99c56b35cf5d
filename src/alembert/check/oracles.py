"""Oracles: slow routes to the derivatives of an algorithm that share as little as possible with the fast ones.

First derivatives are Jacobians with respect to every input; second ones are taken along a curve through the state.

A CasADi function on complex numbers, instruction by instruction, for the complex step.

States at which derivatives are compared: special ones, then random ones; on the constraints, where there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import casadi as ca
import numpy as np

from alembert.algorithms.algorithm import Options
from alembert.algorithms.kernels import graph_kernel
from alembert.algorithms.table import TABLE
from alembert.constraints.symbolic import CONSTRAINED, constrained_options, inverse_options
from alembert.engine.kernel import Kernel
from alembert.errors import NumericalError, UnsupportedError
from alembert.joints import JointType
from alembert.model import Model

Array = np.ndarray

Given = dict[str, Array]
"""The inputs of an algorithm by name, the parameters among them."""
REGULAR = 1e-2
"""how far the minimal set of constraints is from losing its rank at the states that are taken"""


def samples(model: Model, count: int, rng: np.random.Generator) -> Iterable[tuple[str, Given]]:
    """Special states, then random ones; all inputs that any algorithm takes. Where constraints hold, states on them."""
    if model.is_constrained:
        yield from _on_constraints(model, count, rng)
        return

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
    if any(joint.type.nq != joint.type.nv for joint in model.joints):
        special += [
            ("half a turn, at rest", _half_turn(model, rng), zero, random()),
            ("half a turn, in motion", _half_turn(model, rng), random(), random()),
        ]
    more = [(f"random {k + 1}", _regular(model, rng), random(), random()) for k in range(count)]
    for label, q, v, x in (*special, *more):
        yield label, _inputs(model, q, v, x, x, rng)


def _inputs(model: Model, q: Array, v: Array, tau: Array, a: Array, rng: np.random.Generator) -> Given:
    free = (rng.random(model.nv) < 0.6).astype(float)
    parameters = np.array([value for _, value in model.parameters])
    wrench = rng.normal(size=6) if np.any(tau) else np.zeros(6)
    given = {"q": q, "v": v, "tau": tau, "a": a, "a_given": tau[::-1], "free": free, "wrench": wrench}
    near = model.integrate(q, 0.3 * tau)  # far from half a turn, where differences jump
    return {**given, "dv": tau, "n": tau, "q0": q, "q1": near, "parameters": parameters}


def _on_constraints(model: Model, count: int, rng: np.random.Generator) -> Iterable[tuple[str, Given]]:
    """Closed, away from configurations where the rank of the constraints changes; speeds and accelerations keep them."""
    guesses: list[tuple[str, Array | None]] = [
        ("near neutral, at rest", model.neutral()),
        ("near neutral, in motion", model.neutral()),
    ]
    guesses += [("random, at rest", None), *((f"random {k + 1}", None) for k in range(count))]
    for label, guess in guesses:
        q = None if guess is None else _closed(model, guess)
        for _ in range(50):
            if q is not None:
                break
            q = _closed(model, _regular(model, rng))
        if q is None:
            raise NumericalError(
                f"check.derivatives: the constraints of model {model.name!r} could not be closed from random configurations"
            )
        E = model.independent_coordinates(q).E
        v = E @ rng.normal(size=E.shape[1]) * ("rest" not in label)
        by = model.independent_coordinates(q, v)
        rate = np.zeros(model.nv) if by.rate is None else by.rate
        a = by.E @ rng.normal(size=by.E.shape[1]) + rate
        yield label, _inputs(model, q, v, rng.normal(size=model.nv), a, rng)


def _closed(model: Model, guess: Array) -> Array | None:
    """The nearest configuration that closes the loops, if it is a regular one."""
    try:
        q = model.assemble(guess).q
    except NumericalError:
        return None
    return q if model.constraint_analysis(q).margin > REGULAR else None


def _straight(model: Model, rng: np.random.Generator) -> Array:
    """Every angle at zero or half a turn, where axes line up; singular joints stay neutral."""
    q = model.neutral()
    for o in model.space:
        turned = rng.integers(0, 2, size=o.type.nq) * np.pi
        angles = np.array([unit == "rad" for _, unit in o.type.coordinates], dtype=bool)
        if o.type.is_vector_space and o.type.singularity(q[o.q] + turned * angles) is None:
            q[o.q] += turned * angles
    return q


def _half_turn(model: Model, rng: np.random.Generator) -> Array:
    """Every attitude half a turn away, about an axis of its own, where the scalar part of its quaternion is zero."""
    turn = np.zeros(model.nv)
    for o in model.space:
        if o.type.nq != o.type.nv:
            turning = np.array([unit == "rad/s" for _, unit in o.type.speeds], dtype=bool)
            axis = rng.normal(size=o.type.nv) * turning
            turn[o.v] = np.pi * axis / np.linalg.norm(axis)
    return model.integrate(model.neutral(), turn)


def _regular(model: Model, rng: np.random.Generator) -> Array:
    """Random, but a tenth of a radian from singular joints: the conditioning there is not what is tested."""
    while True:
        q = model.random_configuration(rng)
        if not any(_near_singular(o.type, q[o.q]) for o in model.space):
            return q


def _near_singular(joint: JointType, q: Array) -> bool:
    if type(joint).singularity is JointType.singularity:
        return False
    S = np.asarray(joint.subspace(q), dtype=float)
    return bool(np.linalg.svd(S, compute_uv=False)[-1] < 0.1)


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


def run(function: ca.Function, columns: Array) -> Array:
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


CONFIGURATIONS = ("q", "q0", "q1")
"""arguments that move along `integrate`"""


def wrench_frame(model: Model) -> str:
    """The last body that moves."""
    return next(body.name for body in reversed(model.bodies) if model.compute.carrier(body.name)[0] >= 0)


def frame_of(model: Model, name: str) -> dict[str, Any]:
    """The options of an algorithm on a frame."""
    return {"frame": wrench_frame(model)} if TABLE[name].on_frame else {}


def inputs(model: Model, name: str) -> tuple[str, ...]:
    own = TABLE[name].sweeps[1] if TABLE[name].program else TABLE[name].inputs
    wrench = ("wrench",) if TABLE[name].takes_wrenches else ()
    takes_parameters = model.parameters and TABLE[name].takes_parameters
    return (*own, *wrench, *(("parameters",) if takes_parameters else ()))


def has_expression(name: str) -> bool:
    """Whether what constraints make of an algorithm has an expression for a given minimal set."""
    return bool(TABLE[name].held) and CONSTRAINED[TABLE[name].held].has_kernel


def flat(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.ravel(part) for part in parts])


def moved(model: Model, key: str, x: Array, direction: Array) -> Array:
    return model.integrate(x, direction) if key in CONFIGURATIONS else x + direction


def graph_options(model: Model, name: str, q: Array | None) -> Options:
    """Those of the graph, with the minimal set of constraints at q."""
    wrenches = (wrench_frame(model),) if TABLE[name].takes_wrenches else ()
    if q is None:
        return Options(wrenches=wrenches, **frame_of(model, name))
    make = inverse_options if name == "inverse_dynamics" else constrained_options
    return Options(wrenches=wrenches, **make(model, "check.derivatives", q))


def per_minimal_set(
    model: Model, name: str, make: Callable[[Model, str, Array | None], Any]
) -> Callable[..., Any]:
    """An oracle; of what constraints change, one for each of the minimal sets that states have."""
    if not (model.is_constrained and has_expression(name)):
        return make(model, name, None)
    made: dict[Options, Any] = {}

    def oracle(given: Given, *more: Any) -> Any:
        options = graph_options(model, name, given["q"])
        if options not in made:
            made[options] = make(model, name, given["q"])
        return made[options](given, *more)

    return oracle


# --- first derivatives ---------------------------------------------------------------------------------------


Oracle = Callable[[Given], dict[str, Array]]
"""From inputs to the Jacobian of all results (one after the other, C order) with respect to each input, tangent for q."""


def _ad(model: Model, name: str, q: Array | None) -> Oracle:
    graph = _flat_function(model, name, q)
    x = [ca.SX.sym(f"x{k}", graph.size1_in(k)) for k in range(graph.n_in())]
    d = [ca.SX.sym(f"d{k}", graph.size1_in(k)) for k in range(graph.n_in())]
    along = ca.jtimes(graph(*x), ca.vertcat(*x), ca.vertcat(*d))
    forward = ca.Function("forward", [ca.vertcat(*x), ca.vertcat(*d)], [along])

    def jacobian(given: Given) -> dict[str, Array]:
        values, seeds = _seeds(model, given)
        return _columns(model, given, np.asarray(forward(values, seeds)))

    return jacobian


def _complex_step(model: Model, name: str, q: Array | None) -> Oracle:
    graph = _flat_function(model, name, q)
    step = 1e-40

    def jacobian(given: Given) -> dict[str, Array]:
        values, seeds = _seeds(model, given)
        return _columns(model, given, run(graph, values[:, None] + 1j * step * seeds).imag / step)

    return jacobian


def _finite_difference(model: Model, name: str, q: Array | None) -> Oracle:
    kernel = _compiled(model, name, q)
    step = 1e-3

    def value(given: Given, key: str, direction: Array) -> Array:
        found = kernel(*{**given, key: moved(model, key, given[key], direction)}.values())
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


ORACLES: dict[str, Callable[[Model, str, Array | None], Oracle]] = {
    "ad": _ad,
    "complex_step": _complex_step,
    "finite_difference": _finite_difference,
}


def _compiled(model: Model, name: str, q: Array | None) -> Kernel:
    if q is not None:  # without the guards that `compile` puts around it: differences leave the surface
        return graph_kernel(model, TABLE[name].held, graph_options(model, name, q), name)
    if not (TABLE[name].program or TABLE[name].kernel):
        return graph_kernel(model, name, graph_options(model, name, None), name)
    return model.compile(name, wrenches=[wrench_frame(model)] if TABLE[name].takes_wrenches else [])


def _flat_function(model: Model, name: str, q: Array | None) -> ca.Function:
    """The symbolic lowering with all results in one column, C order."""
    if q is not None:
        function = model.symbolic.graph(TABLE[name].held, graph_options(model, name, q)).function
    elif TABLE[name].takes_wrenches or not TABLE[name].program:
        function = model.symbolic.graph(name, graph_options(model, name, None)).function
    else:
        function = model.symbolic.function(*TABLE[name].sweeps)
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


# --- second derivatives --------------------------------------------------------------------------------------


def _curve(model: Model, name: str, q: Array | None) -> ca.Function:
    """Weighted results along (integrate(q, s d), v + s d, ...), a function of (s, d, inputs, weight)."""
    f = _flat_function(model, name, q)
    s = ca.SX.sym("s")
    x = [ca.SX.sym(f"x{k}", f.size1_in(k)) for k in range(f.n_in())]
    turned = [key in CONFIGURATIONS for key in inputs(model, name)]
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
    return lambda given, d, w: float(twice(0.0, flat(d.values()), flat(given.values()), w))


def _second_complex(model: Model, name: str, q: Array | None) -> Callable[[Given, Given, Array], float]:
    curve = _curve(model, name, q)
    s = ca.SX.sym("s")
    more = [ca.SX.sym(f"m{k}", curve.size1_in(k)) for k in range(1, 4)]
    slope = ca.Function("slope", [s, *more], [ca.jtimes(curve(s, *more), s, ca.SX(1))])
    step = 1e-40

    def value(given: Given, d: Given, w: Array) -> float:
        column = np.concatenate([[1j * step], flat(d.values()), flat(given.values()), w])
        return float(run(slope, column[:, None]).imag[0, 0] / step)

    return value


def _second_difference(model: Model, name: str, q: Array | None) -> Callable[[Given, Given, Array], float]:
    kernel = _compiled(model, name, q)
    step = 1e-3

    def value(given: Given, d: Given, w: Array, s: float) -> float:
        found = kernel(*(moved(model, key, x, s * d[key]) for key, x in given.items()))
        return float(flat(found if isinstance(found, tuple) else (found,)) @ w)

    def second(given: Given, d: Given, w: Array) -> float:
        f = [value(given, d, w, s * step) for s in (-2, -1, 0, 1, 2)]
        return (-f[0] + 16 * f[1] - 30 * f[2] + 16 * f[3] - f[4]) / (12 * step**2)

    return second


SECOND: dict[str, Callable[[Model, str, Array | None], Callable[[Given, Given, Array], float]]] = {
    "ad": _second_ad,
    "complex_step": _second_complex,
    "finite_difference": _second_difference,
}
