"""Systems joined to systems.

Everything is one operation: systems side by side (`append`), whose inputs take sums of their outputs and of outer
inputs w,

    y = C x + D u,    u = F y + E w      gives      u = (1 - F D)^-1 (F C x + E w)                            (1)

The loop is well posed where 1 - F D is regular; otherwise the signals of the algebraic loop are named.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy

from alembert.arguments import check_known, whole
from alembert.control import arguments
from alembert.control.arguments import has_elements, read_system, takes_systems
from alembert.control.statespace import StateSpace
from alembert.errors import ArgumentError, NumericalError
from alembert.model.printing import unknown

Array = np.ndarray


def static(D: Any, *, inputs: Any = None, outputs: Any = None, dt: float = 0.0) -> StateSpace:
    """A matrix as a system without states."""
    D = arguments.matrix("static", "D", D)
    return StateSpace(np.zeros((0, 0)), None, None, D, dt, input_names=inputs, output_names=outputs)


@takes_systems(gains=True, uncertain=True)
def append(*systems: StateSpace) -> StateSpace:
    """Side by side: block diagonal. Names that come twice get a number."""
    systems = _of_one_kind("append", systems)
    if not has_elements(*systems):
        return _side_by_side("append", systems)
    p, m = (sum(G.shape[k] for G in systems) for k in (0, 1))
    kinds = ("input_names", "input_units", "output_names", "output_units")
    inputs, iu, outputs, ou = ([x for G in systems for x in getattr(G, kind)] for kind in kinds)
    named = arguments.distinct(inputs), iu, arguments.distinct(outputs), ou
    return _joined("append", systems, np.zeros((m, p)), np.eye(m), np.eye(p), None, *named)


def _of_one_kind(function: str, systems: Sequence[StateSpace]) -> tuple[Any, ...]:
    """All of them with elements, where one has some."""
    if not systems:
        raise ArgumentError(f"{function}: no system was given")
    if not has_elements(*systems):
        return tuple(systems)
    from alembert.control.uncertain_systems import as_uncertain_system

    return tuple(as_uncertain_system(G) for G in systems)


def _side_by_side(function: str, systems: Sequence[StateSpace]) -> StateSpace:
    dt = common_dt(function, systems)
    blocks = [scipy.linalg.block_diag(*(getattr(G, name) for G in systems)) for name in "ABCD"]
    n, m, p = (sum(x) for x in zip(*((G.order, G.shape[1], G.shape[0]) for G in systems), strict=True))
    A, B, C, D = (x.reshape(s) for x, s in zip(blocks, ((n, n), (n, m), (p, n), (p, m)), strict=True))
    named: dict[str, Any] = {
        f"{kind}_names": arguments.distinct(name for G in systems for name in getattr(G, f"{kind}_names"))
        for kind in ("input", "output", "state")
    }
    unit = {
        f"{kind}_units": tuple(u for G in systems for u in getattr(G, f"{kind}_units"))
        for kind in ("input", "output", "state")
    }
    return StateSpace(A, B, C, D, dt, **named, **unit)


@takes_systems(gains=True, uncertain=True)
def series(*systems: StateSpace) -> StateSpace:
    """One after the other, the first one first: `series(G, H)` is H G."""
    found, *others = _of_one_kind("series", systems)
    for G in others:
        if G.shape[1] != found.shape[0]:
            raise ArgumentError(f"series: {found.shape[0]} outputs meet {G.shape[1]} inputs")
        same_units("series", found.output_names, found.output_units, G.input_names, G.input_units)
        if has_elements(found):
            (p, m), (q, k) = found.shape, G.shape
            F = np.block([[np.zeros((m, p + q))], [np.eye(k), np.zeros((k, q))]])
            E, L = np.eye(m + k, m), np.eye(q, p + q, p)
            outer = found.input_names, found.input_units, G.output_names, G.output_units
            found = _joined("series", (found, G), F, E, L, None, *outer)
            continue
        both = _side_by_side("series", (found, G))
        A, B, C, D = G.matrices
        a, b, c, d = found.matrices
        found = dataclasses.replace(
            both,
            A=np.block([[a, np.zeros((len(a), len(A)))], [B @ c, A]]),
            B=np.vstack([b, B @ d]),
            C=np.hstack([D @ c, C]),
            D=D @ d,
            input_names=found.input_names,
            input_units=found.input_units,
            output_names=G.output_names,
            output_units=G.output_units,
        )
    return found


def product(first: StateSpace, then: StateSpace) -> StateSpace:
    """`then * first`; a system with one input and one output multiplies every entry of another."""
    if first.shape[0] == then.shape[1] or (1, 1) not in (first.shape, then.shape):
        return series(first, then)
    one, many = (first, then) if first.shape == (1, 1) else (then, first)
    each = append(*[one] * min(many.shape))
    found = series(many, each) if each.shape[0] == many.shape[0] else series(each, many)
    # a factor without units leaves those of the other
    iu = [a or b for a, b in zip(found.input_units, many.input_units, strict=True)]
    ou = [a or b for a, b in zip(found.output_units, many.output_units, strict=True)]
    return _with_signals(found, many.input_names, iu, many.output_names, ou)


@takes_systems(gains=True, uncertain=True)
def parallel(*systems: StateSpace) -> StateSpace:
    """The sum of the outputs for common inputs."""
    found, *others = _of_one_kind("parallel", systems)
    for G in others:
        if G.shape != found.shape:
            raise ArgumentError(f"parallel: systems of shape {found.shape} and {G.shape} do not add")
        for kind in ("input", "output"):
            alike("parallel", kind, found, G)
        p, m = G.shape
        E, L = np.vstack([np.eye(m)] * 2), np.hstack([np.eye(p)] * 2)
        outer = found.input_names, found.input_units, found.output_names, found.output_units
        found = _joined("parallel", (found, G), np.zeros((2 * m, 2 * p)), E, L, None, *outer)
    return found


@takes_systems(gains=True, uncertain=True)
def feedback(G: StateSpace, K: Any = 1.0, *, sign: int = -1) -> StateSpace:
    """u = r + sign K y around y = G u; negative feedback unless `sign` is 1. From r to y."""
    if sign not in (-1, 1):
        raise ArgumentError(f"feedback: sign is {sign!r}, expected -1 or 1")
    p, m = G.shape
    if not isinstance(K, StateSpace) and not has_elements(K):
        K = arguments.numbers("feedback", "K", K)
        K = static(np.eye(p) * K if np.ndim(K) == 0 and p == m else K)
    G, K = _of_one_kind("feedback", (G, K))
    if K.shape != (m, p):
        raise ArgumentError(
            f"feedback: K has shape {K.shape}, expected ({m}, {p}), from the outputs of G to its inputs"
        )
    same_units("feedback", G.output_names, G.output_units, K.input_names, K.input_units)
    same_units("feedback", K.output_names, K.output_units, G.input_names, G.input_units)
    F = np.block([[np.zeros((m, p)), sign * np.eye(m)], [np.eye(p), np.zeros((p, m))]])
    outer = G.input_names, G.input_units, G.output_names, G.output_units
    return _joined("feedback", (G, K), F, np.eye(m + p, m), np.eye(p, p + m), None, *outer)


@takes_systems(gains=True, uncertain=True)
def lft(P: StateSpace, K: Any) -> StateSpace:
    """The lower fractional transformation: u = K y on the last inputs and outputs of P.

    F_l(P, K) = P11 + P12 K (1 - P22 K)^-1 P21                                                             (2)
    """
    K = read_system("lft", "K", K, True, True)
    m, p = K.shape
    if p > P.shape[0] or m > P.shape[1]:
        raise ArgumentError(f"lft: K has shape {K.shape}, and P only {P.shape}")
    p1, m1 = P.shape[0] - p, P.shape[1] - m
    same_units("lft", P.output_names[p1:], P.output_units[p1:], K.input_names, K.input_units)
    same_units("lft", K.output_names, K.output_units, P.input_names[m1:], P.input_units[m1:])
    F = np.zeros((m1 + m + p, p1 + p + m))
    F[m1 : m1 + m, p1 + p :] = np.eye(m)
    F[m1 + m :, p1 : p1 + p] = np.eye(p)
    outer = P.input_names[:m1], P.input_units[:m1], P.output_names[:p1], P.output_units[:p1]
    return _joined("lft", (P, K), F, np.eye(len(F), m1), np.eye(p1, len(F[0])), None, *outer)


@takes_systems(gains=True, uncertain=True)
def upper_lft(P: StateSpace, Delta: Any) -> StateSpace:
    """The upper one: w = Delta z on the first inputs and outputs of P."""
    Delta = read_system("upper_lft", "Delta", Delta, True, True)
    m, p = Delta.shape
    if p > P.shape[0] or m > P.shape[1]:
        raise ArgumentError(f"upper_lft: Delta has shape {Delta.shape}, and P only {P.shape}")
    return lft(P[[*range(p, P.shape[0]), *range(p)], [*range(m, P.shape[1]), *range(m)]], Delta)


def summing(output: str, inputs: Sequence[str], *, width: int = 1) -> StateSpace:
    """output = the sum of inputs, those with a minus in front subtracted: `summing("e", ["r", "-y"])`.

    With `width` above one the names stand for e[0], e[1] and so on.
    """
    if isinstance(inputs, str):
        raise ArgumentError(f"summing: inputs is {inputs!r}, expected a list of names such as ['r', '-y']")
    whole("summing", "width", width, "a number of entries from 1 on")
    if not inputs:
        raise ArgumentError("summing: inputs is empty, expected one name or more")
    signs = [-1.0 if name.startswith("-") else 1.0 for name in inputs]
    plain = [name.lstrip("+-") for name in inputs]
    D = np.hstack([sign * np.eye(width) for sign in signs])
    spread = lambda names: [n if width == 1 else f"{n}[{k}]" for n in names for k in range(width)]  # noqa: E731
    return static(D, inputs=spread(plain), outputs=spread([output]))


@takes_systems(uncertain=True)
def connect(*systems: StateSpace, inputs: Sequence[str], outputs: Sequence[str]) -> StateSpace:
    """Join by name: every input takes the output of the same name, and the outer input of the same name.

    An input that nothing feeds is refused. `outputs` are names of outputs, or of inputs for what is fed in there.
    """
    common_dt("connect", systems)
    fed = [name for G in systems for name in G.input_names]
    made = [name for G in systems for name in G.output_names]
    for name in made:
        if made.count(name) > 1:
            raise ArgumentError(f"connect: the output {name!r} is there twice; rename one (`renamed`)")
    for name in fed:
        if name not in made and name not in inputs:
            raise ArgumentError(
                f"connect: nothing feeds the input {name!r}; name it in inputs=, or join an output to it"
            )
    for name in inputs:
        check_known("connect: inputs: no system has an input", name, fed)
    for name in outputs:
        if name not in made and name not in fed:
            raise ArgumentError(unknown("connect: outputs: no system has a signal", name, made + fed))
    F = np.array([[float(name == other) for other in made] for name in fed]).reshape(len(fed), len(made))
    E = np.array([[float(name == other) for other in inputs] for name in fed]).reshape(len(fed), len(inputs))
    input_units = [unit for G in systems for unit in G.input_units]
    output_units = [unit for G in systems for unit in G.output_units]
    for j, i in np.argwhere(F):
        same_units("connect", [made[i]], output_units[i : i + 1], [fed[j]], input_units[j : j + 1])
    labels, units = [*made, *fed], [*output_units, *input_units]
    picks = np.eye(len(labels))[[labels.index(name) for name in outputs]].reshape(-1, len(labels))
    return _joined(
        "connect",
        systems,
        F,
        E,
        picks[:, : len(made)],
        picks[:, len(made) :],
        inputs,
        [input_units[fed.index(name)] for name in inputs],
        outputs,
        [units[labels.index(name)] for name in outputs],
    )


def _joined(
    function: str,
    systems: Sequence[StateSpace],
    F: Array,
    E: Array,
    L: Array,
    tap: Array | None,
    inputs: Sequence[str],
    input_units: Sequence[str],
    outputs: Sequence[str],
    output_units: Sequence[str],
) -> StateSpace:
    """Side by side with u = F y + E w, from w to L y (+ `tap` u); all of them without elements, or with."""
    systems = _of_one_kind(function, systems)
    if has_elements(*systems):
        from alembert.control.uncertain_systems import joined

        made: Any = joined(function, systems, F, E, L, tap)
    else:
        P = close(function, _side_by_side(function, systems), F, E, tap=True)
        whole = np.hstack([L, np.zeros((len(L), len(F))) if tap is None else tap])
        states = {"state_names": P.state_names, "state_units": P.state_units}
        made = StateSpace(P.A, P.B, whole @ P.C, whole @ P.D, P.dt, **states)
    return _with_signals(made, inputs, input_units, outputs, output_units)


def close(function: str, G: StateSpace, F: Array, E: Array | None = None, *, tap: bool = False) -> StateSpace:
    """(1); E is the identity where left out. With `tap` the inputs u are outputs too, behind y."""
    A, B, C, D = G.matrices
    m = G.shape[1]
    E = np.eye(m) if E is None else E
    loop = np.eye(m) - F @ D
    even = loop / np.abs(loop).max(
        axis=1, keepdims=True, initial=1e-300
    )  # large gains alone close no algebraic loop
    if m and np.linalg.cond(even / np.abs(even).max(axis=0, initial=1e-300)) > 1e14:
        stuck = np.abs(np.linalg.svd(loop)[2][-1])
        listed = ", ".join(G.input_names[k] for k in np.flatnonzero(stuck > 0.1 * stuck.max()))
        raise NumericalError(
            f"{function}: the direct parts of the systems close an algebraic loop with no solution, through {listed}"
        )
    U, W = np.linalg.solve(loop, F @ C), np.linalg.solve(loop, E)
    W[np.abs(W) <= 1e-14 * np.abs(W).max(initial=0.0)] = 0.0  # no direct part by rounding
    C_out, D_out = C + D @ U, D @ W
    if tap:
        C_out, D_out = np.vstack([C_out, U]), np.vstack([D_out, W])
    return StateSpace(
        A + B @ U, B @ W, C_out, D_out, G.dt, state_names=G.state_names, state_units=G.state_units
    )


def common_dt(function: str, systems: Sequence[Any]) -> float:
    """The rate of all systems; those without states go along with any."""
    known = [G.dt for G in systems if G.order or G.dt]
    if not known:
        return 0.0
    for dt in known:
        if abs(dt - known[0]) > 1e-9 * max(dt, known[0]):
            listed = ", ".join("continuous" if dt == 0 else f"dt = {dt:g} s" for dt in dict.fromkeys(known))
            raise ArgumentError(
                f"{function}: the systems have different rates ({listed}); use `sampled` or `continuous` first"
            )
    return known[0]


def same_units(
    function: str, made: Sequence[str], of: Sequence[str], fed: Sequence[str], units: Sequence[str]
) -> None:
    """Refuses outputs that meet inputs of another unit; those without a unit go along with any."""
    for output, a, input, b in zip(made, of, fed, units, strict=True):
        if a and b and a != b:
            raise ArgumentError(f"{function}: the output {output!r} is in {a}, the input {input!r} in {b}")


def alike(function: str, kind: str, G: StateSpace, H: StateSpace) -> None:
    """Refuses signals of one name and two units; those without a unit go along with any."""
    for name, a, b in zip(
        getattr(G, f"{kind}_names"), getattr(G, f"{kind}_units"), getattr(H, f"{kind}_units"), strict=True
    ):
        if a and b and a != b:
            raise ArgumentError(
                f"{function}: the {kind} {name!r} is in {a} in one system and in {b} in the other"
            )


def _with_signals(
    G: StateSpace, inputs: Sequence[str], iu: Sequence[str], outputs: Sequence[str], ou: Sequence[str]
) -> StateSpace:
    return dataclasses.replace(
        G,
        input_names=tuple(inputs),
        input_units=tuple(iu),
        output_names=tuple(outputs),
        output_units=tuple(ou),
    )
