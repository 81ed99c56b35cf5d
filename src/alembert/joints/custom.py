"""

Scalar functions as text: what a custom joint keeps of its placement.

The text is a list of instructions separated by `;`, each making one value from earlier ones, which are
counted from the inputs on: with two inputs, `sin 0; mul 2 1; -> 3 2` gives (x1 sin x0, sin x0). `const 0.5`
is a number.

It is written from a CasADi function and read_graph back into one. CasADi's own serialisation will not do: a damaged
string ends the process, and one made on purpose can load a library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from alembert.errors import ModelError
from alembert.joints.joint import JointType
from alembert.joints.pair import structural
from alembert.spatial import Pose
from alembert.spatial.arrays import Array

# fmt: off
_UNARY = (
    "neg", "exp", "log", "sqrt", "sq", "twice", "inv", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "fabs", "sign",
    "floor", "ceil", "not", "erf", "log1p", "expm1",
)
_BINARY = (
    "add", "sub", "mul", "div", "pow", "constpow", "atan2", "fmin", "fmax", "fmod", "copysign", "hypot",
    "lt", "le", "eq", "ne", "and", "or", "if_else_zero",
)
# fmt: on
_ARITY = dict.fromkeys(_UNARY, 1) | dict.fromkeys(_BINARY, 2)
_CODE = {name: getattr(ca, f"OP_{name.upper()}") for name in _ARITY}
_NAME = {code: name for name, code in _CODE.items()}
_LONGEST = 1_000_000  # characters


def write_graph(function: ca.Function) -> str:
    """The text of a function of one `SX` vector; its outputs are flattened by columns, in order."""
    count = function.nnz_in(0)
    value: dict[int, int] = {}  # work register -> index of the value it holds
    lines: list[str] = []
    results: dict[tuple[int, int], int] = {}
    for k in range(function.n_instructions()):
        code = function.instruction_id(k)
        inputs, outputs = function.instruction_input(k), function.instruction_output(k)
        if code == ca.OP_INPUT:
            value[outputs[0]] = inputs[1]
        elif code == ca.OP_OUTPUT:
            results[outputs[0], outputs[1]] = value[inputs[0]]
        else:
            if code == ca.OP_CONST:
                line = f"const {function.instruction_constant(k)!r}"
            elif code in _NAME:
                line = " ".join([_NAME[code], *(str(value[register]) for register in inputs)])
            else:
                raise ModelError(
                    f"custom joint: placement(q) uses an operation (CasADi {code}) that is not kept"
                )
            value[outputs[0]] = count + len(lines)
            lines.append(line)
    places = [(o, nz) for o in range(function.n_out()) for nz in range(function.nnz_out(o))]
    return "; ".join([*lines, "-> " + " ".join(str(results[place]) for place in places)])


def read_graph(text: str, x: ca.SX, count: int) -> list[ca.SX]:
    """The `count` results of the text at the inputs `x`."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise ModelError(f"custom joint graph is no text of at most {_LONGEST} characters")
    values = [x[k] for k in range(x.numel())]
    *lines, last = text.split(";")
    for line in lines:
        name, *operands = line.split() or [""]
        if name == "const" and len(operands) == 1:
            values.append(ca.SX(_number(operands[0], line)))
        elif _ARITY.get(name) == len(operands):
            parts = [_earlier(values, operand, line) for operand in operands]
            apply = ca.SX.unary if len(parts) == 1 else ca.SX.binary
            values.append(apply(_CODE[name], *parts))
        else:
            raise ModelError(f"custom joint graph has the instruction {line.strip()[:60]!r}, which is none")
    arrow, *results = last.split() or [""]
    if arrow != "->" or len(results) != count:
        raise ModelError(
            f"custom joint graph ends with {last.strip()[:60]!r}, expected '->' and {count} results"
        )
    return [_earlier(values, result, last) for result in results]


def _number(text: str, line: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ModelError(f"custom joint graph: {line.strip()[:60]!r} has no finite number")
    return number


def _earlier(values: list[ca.SX], text: str, line: str) -> ca.SX:
    if not (text.isascii() and text.isdigit() and len(text) < 8 and int(text) < len(values)):
        raise ModelError(
            f"custom joint graph: {line.strip()[:60]!r} refers to {text[:20]!r}, which is no earlier value"
        )
    return values[int(text)]


@dataclass(frozen=True)
class Custom(JointType):
    """A joint given by its placement as a function of q; everything else follows by differentiation.

    Make one with `Custom.from_function`. The function is kept as the text of its instructions, so that the
    model still pickles, compares and writes to files. It can close loops if it has a `fit`, which gives the coordinates
    of the placement nearest to a pose.
    """

    kind: ClassVar[str] = "custom"
    labels: tuple[tuple[str, str], ...] = structural()
    graph: str = structural()
    fit_graph: str = structural(default="")

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", _labels(self.labels))
        function = _function(self.graph, self.nq)
        for sample in np.random.default_rng(0).uniform(-1, 1, size=(3, self.nq)):
            R, p = (np.asarray(value) for value in function(sample))
            if not np.allclose(R.T @ R, np.eye(3), atol=1e-9) or np.linalg.det(R) < 0:
                raise ModelError(f"custom joint: the rotation at q = {sample} is not a rotation:\n{R}")
            if not np.isfinite(p).all():
                raise ModelError(f"custom joint: the translation at q = {sample} is {p.ravel()}")
            if self.fit_graph:
                again = self.placement(self.fit(Pose(R, p.ravel())))
                if not np.allclose(np.c_[again.rotation, again.translation], np.c_[R, p], atol=1e-9):
                    raise ModelError(
                        f"custom joint: fit of the placement at q = {sample} gives {self.fit(Pose(R, p.ravel()))}"
                    )

    @classmethod
    def from_function(
        cls,
        placement: Callable[[ca.SX], Pose],
        coordinates: Any,
        *,
        fit: Callable[[Pose], ca.SX] | None = None,
    ) -> Custom:
        """`placement(q)` takes an `SX` vector and returns a `Pose`; `coordinates` are (label, unit) pairs.

        `fit(X)` takes a `Pose` of `SX` and returns the coordinates of the nearest placement; loops need it.
        """
        labels = _labels(coordinates)
        q = ca.SX.sym("q", len(labels))
        X = placement(q)
        if not isinstance(X, Pose):
            raise ModelError(f"custom joint: placement(q) returned {type(X).__name__}, expected a Pose")
        R, p = ca.SX(X.rotation), ca.SX(X.translation)
        if R.shape != (3, 3) or p.shape != (3, 1):
            raise ModelError(
                f"custom joint: placement(q) has shapes {R.shape} and {p.shape}, expected 3x3 and 3"
            )
        try:
            function = ca.Function("placement", [q], [ca.densify(R), ca.densify(p)])
        except RuntimeError as error:
            raise ModelError(f"custom joint: placement(q) depends on more than q: {error}") from None
        return cls(labels, write_graph(function), _fit_graph(fit, len(labels)) if fit else "")

    @property
    def coordinates(self) -> tuple[tuple[str, str], ...]:
        return self.labels

    def placement(self, q: Array) -> Pose:
        R, p = _function(self.graph, self.nq)(q)
        if isinstance(q, ca.SX):
            return Pose(ca.sparsify(R), ca.sparsify(p))
        return Pose(np.asarray(R), np.asarray(p).ravel())

    @property
    def closes_loops(self) -> bool:
        return bool(self.fit_graph)

    def fit(self, X: Pose) -> Array:
        if not self.fit_graph:
            return super().fit(X)
        q = _fit_function(self.fit_graph, self.nq)(X.rotation, X.translation)
        return q if isinstance(q, ca.SX) else np.asarray(q).ravel()


def _fit_graph(fit: Callable[[Pose], ca.SX], nq: int) -> str:
    x = ca.SX.sym("x", 12)
    q = ca.SX(fit(Pose(ca.reshape(x[:9], 3, 3), x[9:])))
    if q.shape != (nq, 1):
        raise ModelError(f"custom joint: fit(X) has shape {q.shape}, expected ({nq}, 1)")
    try:
        return write_graph(ca.Function("fit", [x], [ca.densify(q)]))
    except RuntimeError as error:
        raise ModelError(f"custom joint: fit(X) depends on more than X: {error}") from None


@lru_cache(maxsize=256)
def _fit_function(graph: str, nq: int) -> ca.Function:
    R, p = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    results = read_graph(graph, ca.vertcat(ca.vec(R), p), nq)
    return ca.Function("fit", [R, p], [ca.vertcat(*results)])


def _labels(coordinates: Any) -> tuple[tuple[str, str], ...]:
    try:
        labels = tuple((str(label), str(unit)) for label, unit in coordinates)
    except (TypeError, ValueError):
        raise ModelError(
            f"custom joint: coordinates are {coordinates!r}, expected (label, unit) pairs"
        ) from None
    if not 1 <= len(labels) <= 6:
        raise ModelError(f"custom joint has {len(labels)} coordinates, expected 1 to 6")
    return labels


@lru_cache(maxsize=256)
def _function(graph: str, nq: int) -> ca.Function:
    q = ca.SX.sym("q", nq)
    results = read_graph(graph, q, 12)
    R = ca.reshape(ca.vertcat(*results[:9]), 3, 3)
    return ca.Function("placement", [q], [R, ca.vertcat(*results[9:])])
