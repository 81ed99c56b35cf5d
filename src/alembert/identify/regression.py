"""The regressor of a model on arrays: tau = Y(q, v, a) pi + known(q).

Efforts as a linear function of a model's named parameters, where they are one: tau = Y(q, v, a) p + known.

    Y = d tau/dp,    known = tau at p = 0                                                                (1)

Efforts of flexible bodies are linear in EI, GJ, EA, densities and damping, of all bodies in masses and moments of inertia;
they are not in lengths. Y must not depend on p: what does is refused by its name.

With loops and couplings the reactions drop out of

    E^T Y(q, v, a) pi + E^T known = E^T tau,     G E = 0                                               (2)

so that the efforts of the drives, which are measured, are enough (zero where nothing drives). Noise sigma of the efforts
makes E^T diag(sigma^2) E of (2), at each sample. Measured states are off the constraints by their noise: they are moved to
the nearest ones that keep them, accelerations by the least change with G a + gamma = 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert import arguments
from alembert.algorithms import kernels
from alembert.arguments import check_known
from alembert.constraints.results import IndependentCoordinates
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.expression import evaluate
from alembert.joints import Friction
from alembert.model import Model
from alembert.model.methods import Coordinates, projected
from alembert.model.model import check_model
from alembert.sensitivity import regressor as steps
from alembert.sensitivity.regressor import REGRESSOR, TERMS, Parameter
from alembert.sweeps import INVERSE_DYNAMICS, Tree

if TYPE_CHECKING:
    from alembert.identify.measurements import Measurements


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
        check_known("regressor: no parameter", name, known)
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


Array = np.ndarray
SMOOTHING = float(Friction().smoothing)  # type: ignore[arg-type]
"""Speed of the Coulomb friction of joints whose model has none."""
UNROLLED = 3_000
"""Products up to which (2) of `alembert.sensitivity.regressor` is compiled; beyond, compiling takes several
seconds and the two factors are multiplied as arrays instead."""


@dataclass(frozen=True, eq=False)
class Regressor:
    """tau = Y pi + known: the efforts of `inverse_dynamics`, linear in the parameters `names`."""

    Y: Array
    """(..., nv, parameters); fewer rows in independent coordinates"""
    names: tuple[str, ...]
    pi: Array
    """the model's present values, (parameters,)"""
    known: Array
    """(..., nv): the efforts of springs, which no column holds"""

    def predict(self, pi: Any = None) -> Array:
        """The efforts for other values of the parameters, by default the model's own."""
        return self.Y @ (self.pi if pi is None else np.asarray(pi, dtype=float)) + self.known


def regressor(
    model: Model,
    q: Any,
    v: Any,
    a: Any,
    *,
    include: Sequence[str] = (),
    smoothing: float = SMOOTHING,
    coordinates: Coordinates = "all",
    parameters: Mapping[str, Any] | None = None,
    of: Sequence[str] | None = None,
) -> Regressor:
    """Y with inverse_dynamics(q, v, a) = Y pi + known, (..., nv, p), and the names and present values of pi.

    Of a model with loops or couplings, Y pi + known are the efforts M a + h of its tree, in all coordinates; with
    independent `coordinates` (as in `mass_matrix`) they are E^T (M a + h), from which the reactions have dropped out.

    Columns: for each moving body (bodies on fixed joints counting with what carries them) "link.mass",
    "link.mcx", ..., "link.Izz", the second moments about the body's origin; for each joint "joint.viscous",
    "joint.coulomb", "joint.armature" where the model has them ("joint.x.viscous" for one of several degrees
    of freedom), and the inertia of each rotor. `include` adds columns ("viscous", "coulomb", "armature") for
    joints without; their Coulomb friction is smoothed below the speed `smoothing`. `parameters` maps the
    model's named parameters to numbers.

    With `of` the columns are those of some of the model's named parameters instead, in which the efforts are linear: EI,
    rhoA or damping of flexible bodies, masses. One in which they are not (a length) is refused.
    """
    check_model("regressor", model)
    if of is not None:
        if include:
            raise ArgumentError(
                f"regressor: include={include!r} adds columns to those of bodies; with `of` make friction and rotors of the "
                "joints named parameters"
            )
        found = _of_names(model, (of,) if isinstance(of, str) else tuple(of), (q, v, a), parameters)
    else:
        compiled = compile_regressor(
            model, arguments.names("regressor", "include", include, or_one=True), float(smoothing)
        )
        found = compiled(q, v, a, parameters=parameters)
    if not projected(coordinates):
        return found
    E = model.constrained_compute.reduction("regressor", coordinates, q, parameters, v).coordinates.E
    down = np.swapaxes(E, -1, -2)
    return replace(found, Y=down @ found.Y, known=(down @ found.known[..., None])[..., 0])


def _of_names(
    model: Model, names: tuple[str, ...], state: tuple[Any, Any, Any], parameters: Mapping[str, Any] | None
) -> Regressor:
    compiled = compile_named(model, names)
    values = _values(model, parameters)
    Y, known = compiled(*state, values)
    return Regressor(Y, names, np.array([values[name] for name in names]), known)


def _values(model: Model, parameters: Mapping[str, Any] | None) -> dict[str, float]:
    """Of all named parameters."""
    for name, value in (parameters or {}).items():
        check_known("regressor: no parameter", name, model.parameter_values)
        if np.ndim(value):
            raise ArgumentError(
                f"regressor: parameter {name!r} has shape {np.shape(value)}, expected a number"
            )
    return model.parameter_values | dict(parameters or {})


@dataclass(frozen=True, eq=False)
class CompiledRegressor:
    model: Model
    tree: Tree
    columns: tuple[Parameter, ...]
    kernel: Kernel
    unrolled: bool

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def pi(self) -> Array:
        return self._pi(self.model.parameter_values)

    def _pi(self, values: Mapping[str, Any]) -> Array:
        return np.array([float(evaluate(column.value, values)) for column in self.columns])

    def __call__(self, q: Any, v: Any, a: Any, *, parameters: Mapping[str, Any] | None = None) -> Regressor:
        given: tuple[Any, ...] = (q, v, a)
        pi = self.pi
        if parameters and not self.model.parameters:
            raise ArgumentError("regressor: parameters are given, but the model has none")
        if self.model.parameters:
            values = _values(self.model, parameters)
            pi = self._pi(values)
            given = (*given, np.array([float(values[name]) for name, _ in self.model.parameters]))
        if self.unrolled:
            Y, known = self.model.compute.checked("regressor", self.kernel, given)
        else:
            J, F, direct, known = self.model.compute.checked("regressor", self.kernel, given)
            Y = J @ np.swapaxes(F, -1, -2)
            Y[..., ~self._carried] = 0.0
            rows, columns = self._direct
            Y[..., rows, columns] += direct[..., columns]
        return Regressor(Y, self.names, pi, known)

    @cached_property
    def _carried(self) -> Array:
        """Which speeds carry the wrench of each column, (nv, parameters)."""
        return self.tree.support[[column.carrier for column in self.columns]].T

    @cached_property
    def _direct(self) -> tuple[Array, Array]:
        found = [(column.row, c) for c, column in enumerate(self.columns) if column.row >= 0]
        rows, columns = np.array(found, dtype=int).reshape(-1, 2).T
        return rows, columns


@lru_cache(maxsize=16)
def compile_regressor(
    model: Model, include: tuple[str, ...] = (), smoothing: float = SMOOTHING
) -> CompiledRegressor:
    """The compiled regressor of a model; see `regressor` for the options."""
    for term in include:
        check_known("regressor: include: no term", term, TERMS)
    if not smoothing > 0:
        raise ArgumentError(f"regressor: smoothing is {smoothing}, expected a positive speed")
    for name in model.space.of_bodies:
        raise UnsupportedError(
            f"regressor: body {name!r} is flexible; its efforts are linear in the integrals over its mass, which are no ten "
            "parameters of a rigid body: take named parameters of the model, of=['EI', 'rhoA'], or fit them with derivatives"
        )
    tree = Tree.of(model)
    columns = steps.parameters(tree, include)
    names = ("q", "v", "a")
    inputs = kernels.arguments(model, tree, REGRESSOR, names)
    n, p = model.nv, len(columns)
    unrolled = steps.work(tree, columns) <= UNROLLED

    def graph(*values: ca.SX) -> list[ca.SX]:
        found = steps.factors(
            tree, columns, dict(zip(names, values[:-1], strict=True)), values[-1], smoothing=smoothing
        )
        if unrolled:
            return [steps.regressor(tree, columns, found), found.known]
        return [found.J, found.F.T, found.direct, found.known]

    def build() -> KernelSource:
        return FunctionSource(kernels.function("regressor", inputs, tree, graph))

    known = Argument("known", (n,))
    results = [Argument("J", (n, 6)), Argument("F", (p, 6)), Argument("direct", (p,)), known]
    if unrolled:
        results = [Argument("Y", (n, p)), known]
    key = f"{model.fingerprint}:regressor:{','.join(include)}:{smoothing!r}:{unrolled}"
    return CompiledRegressor(
        model, tree, columns, Kernel("regressor", inputs, results, key=key, build=build), unrolled
    )


_UNMEASURED = 1e6
"""what infinite noise counts as, relative to the largest that is not"""
_TRIALS = 20
"""random configurations from which the constraints may fail to close, before they are said not to"""
_STEEP = 1e4
"""speeds that move others this much faster are not taken as independent"""


def on_constraints(model: Model, data: Measurements) -> Measurements:
    """The nearest states and accelerations that keep the constraints."""
    state = model.assemble(data.q, data.v)
    G = model.constraint_jacobian(state.q)
    left = (G @ data.a[..., None])[..., 0] + model.constraint_bias(state.q, state.v)
    a = data.a - (np.linalg.pinv(G, rcond=1e-9) @ left[..., None])[..., 0]
    return replace(data, q=state.q, v=state.v, a=a)


def independent(model: Model, q: Array) -> IndependentCoordinates:
    """Speeds that determine the others at all samples: the actuated ones where they do, so that E^T tau are theirs."""
    drives = {model.speed_names[model.v_slice(x.joint).start + x.dof] for x in model.actuators}
    choices: list[Sequence[str]] = [[name for name in model.speed_names if name in drives]]
    choices += [model.independent_coordinates(q[k]).names for k in (0, len(q) // 3, len(q) // 2, -1)]
    for names in choices:
        try:
            found = model.independent_coordinates(q, independent=names)
        except (NumericalError, ArgumentError):
            continue
        if np.max(np.abs(found.E), initial=0.0) < _STEEP:
            return found
    raise NumericalError(
        "identify: no choice of independent speeds determines the others in all samples; the motion passes singular "
        "configurations of the constraints: leave those samples out"
    )


@dataclass(frozen=True, eq=False)
class Projection:
    """(2) for the samples of some data."""

    names: tuple[str, ...]
    E: Array
    """(T, nv, k)"""

    def __call__(self, x: Array) -> Array:
        """E^T x for x (T, nv) or (T, nv, p)."""
        if x.ndim == 2:
            return (x[:, None] @ self.E)[:, 0]
        return np.swapaxes(self.E, 1, 2) @ x

    def whitening(self, noise: Array) -> Array:
        """L^-1 (T, k, k) with L L^T the covariance of E^T tau."""
        finite = noise[np.isfinite(noise)]
        sigma = np.where(np.isfinite(noise), noise, _UNMEASURED * np.max(finite, initial=1e-300))
        C = np.swapaxes(self.E, 1, 2) @ (sigma[:, None] ** 2 * self.E)
        return np.linalg.inv(np.linalg.cholesky(C))


def random_states(model: Model, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Random motions that keep the constraints."""
    found: list[tuple[Array, Array, Array]] = []
    for trial in range(10 * count):
        if len(found) == count or (trial == _TRIALS and not found):
            break
        try:
            q = model.assemble(model.random_configuration(rng)).q
            speeds = 2 * rng.normal(size=model.nv)
            E = model.independent_coordinates(q).E
            v = E @ speeds[: E.shape[1]]
            by = model.independent_coordinates(q, v)
        except NumericalError:  # out of reach, or a singular configuration: another one
            continue
        rate = np.zeros(model.nv) if by.rate is None else by.rate
        found.append((q, v, by.E @ (8 * rng.normal(size=by.E.shape[1])) + rate))
    if not found:
        raise NumericalError(
            f"base_parameters: the constraints of model {model.name!r} could not be closed from random configurations; "
            "give states"
        )
    q, v, a = (np.array(x) for x in zip(*found, strict=True))
    return q, v, a
