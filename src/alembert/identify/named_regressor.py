"""Efforts as a linear function of a model's named parameters, where they are one: tau = Y(q, v, a) p + known.

    Y = d tau/dp,    known = tau at p = 0                                                                (1)

Efforts of flexible bodies are linear in EI, GJ, EA, densities and damping, of all bodies in masses and moments of inertia;
they are not in lengths. Y must not depend on p: what does is refused by its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from alembert.algorithms import kernels
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.sweeps import INVERSE_DYNAMICS, Tree

SAME = 1e-9
"""how far two values of a column of Y at other values of the parameters may be apart, relative to the column"""
ROUNDING = 1e-13
"""the same relative to the efforts over the parameter: a column times its parameter is a part of them"""


@dataclass(frozen=True, eq=False)
class NamedRegressor:
    """Kernel of Y (nv, parameters) and the known efforts, for some parameters of a model."""

    model: Model
    names: tuple[str, ...]
    kernel: Kernel

    def __call__(self, q: Any, v: Any, a: Any, values: dict[str, float]) -> tuple[Any, Any]:
        p = np.array([float(values[name]) for name, _ in self.model.parameters])
        return self.model.compute.checked("regressor", self.kernel, (q, v, a, p))


@lru_cache(maxsize=16)
def compile_named(model: Model, names: tuple[str, ...]) -> NamedRegressor:
    known = [name for name, _ in model.parameters]
    for name in names:
        if name not in known:
            raise ArgumentError(unknown("regressor: no parameter", name, known))
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"regressor: of names the parameter {name!r} more than once")
    if not names:
        raise ArgumentError("regressor: of names no parameters; expected some of the model's")
    tree = Tree.of(model)
    inputs = kernels.arguments(model, tree, INVERSE_DYNAMICS, ("q", "v", "a"))
    columns = [known.index(name) for name in names]
    efforts = kernels.program_graph(tree, INVERSE_DYNAMICS, ("q", "v", "a"))

    def graph(*given: ca.SX) -> list[ca.SX]:
        """(1)"""
        p = given[-1]
        tau = efforts(*given)[0]
        Y = ca.jacobian(tau, p)[:, columns]
        rest = ca.vertcat(*(0 if k in columns else p[k] for k in range(len(known))))
        return [ca.densify(x) for x in ca.substitute([Y, tau], [p], [rest])]

    _check_linear(model, names, columns, kernels.function("efforts", inputs, tree, efforts))
    results = [Argument("Y", (model.nv, len(names))), Argument("known", (model.nv,))]
    key = f"{model.fingerprint}:regressor of:{','.join(names)}"

    def build() -> FunctionSource:
        return FunctionSource(kernels.function("regressor", inputs, tree, graph))

    return NamedRegressor(model, names, Kernel("regressor", inputs, results, key=key, build=build))


def _check_linear(model: Model, names: tuple[str, ...], columns: list[int], function: ca.Function) -> None:
    """Refuse parameters on which Y depends, seen at random states and at other values of the parameters."""
    given = [ca.SX.sym(f"x{k}", *function.size_in(k)) for k in range(function.n_in())]
    p = given[-1]
    Y = ca.jacobian(function(*given), p)[:, columns]
    if not ca.depends_on(Y, ca.vertcat(*(p[k] for k in columns))):
        return
    slopes = ca.Function("slopes", given, [Y])
    rng = np.random.default_rng(0)
    defaults = np.array([value for _, value in model.parameters])
    q, v, a = (rng.uniform(-1, 1, model.nv) for _ in range(3))
    state = [model.integrate(model.neutral(), 0.1 * q), v, a]
    first, tau = np.asarray(slopes(*state, defaults)), np.asarray(function(*state, defaults))
    sizes = np.abs(defaults[columns])
    close = SAME * np.abs(first).max(axis=0) + ROUNDING * np.abs(tau).max() / np.where(sizes > 0, sizes, 1.0)
    depends = np.zeros((len(names), len(names)), dtype=bool)  # of the column of a parameter on another
    for k, column in enumerate(columns):
        other = defaults.copy()
        other[column] = 1.3 * other[column] if other[column] else 1.0
        gap = np.abs(np.asarray(slopes(*state, other)) - first).max(axis=0)
        depends[:, k] = ~(gap <= close)
    for name, itself in zip(names, np.diag(depends), strict=True):
        if itself:
            raise UnsupportedError(
                f"regressor: the efforts are not linear in the parameter {name!r}: leave it out of `of`, where it stays "
                f"as it is, or fit it with derivatives (`sensitive_to=[{name!r}]`)"
            )
    for i, k in np.argwhere(depends):
        raise UnsupportedError(
            f"regressor: the efforts have products of the parameters {names[i]!r} and {names[k]!r}: leave one "
            "of them out of `of`, where it stays at its value"
        )
