"""Systems of one's own equations: beside a model, and with tables in them.

`model_system`: drives with lags, batteries, temperatures, fluids, estimators beside a model. Points of a `Problem` of a
model are its own coordinates and speeds. What has further states is a `System` of all of them,

    q' = rate(q, v),    v' = forward_dynamics(q, v, efforts(t, q, v, s, u)),    s' = g(t, q, v, s, u)          (1)

with the states s and controls u of the user's own, and of the drives of the joints.

`table`: splines through points as expressions in rates and costs, which compile with the rest. A spline on a grid is a
sum of products of the basis functions of its axes,

    y(x_1, x_2, ...) = sum_ij... c_ij... N_i(x_1) N_j(x_2) ...                                            (2)

and these follow from each other by de Boor's and Cox's recursion, from where the knots t have been passed,

    N_i,0(x) = 1 where t_i <= x < t_i+1, else 0
    N_i,p(x) = (x - t_i) / (t_i+p - t_i) N_i,p-1(x) + (t_i+p+1 - x) / (t_i+p+1 - t_i+1) N_i+1,p-1(x)          (3)

All terms are positive, so that no digits are lost, however the knots are spaced. Outside it stays at its ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import casadi as ca
import numpy as np

from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.optimal.consistency import evaluated
from alembert.optimal.plant import Moment, System, driven_dofs, names_of
from alembert.optimal.problem import environment
from alembert.simulate.actuators import Drive, JointDrives, Lags, checked, with_gears


def model_system(
    model: Model,
    *,
    states: Sequence[str] = (),
    controls: Sequence[str] | None = None,
    rate: Callable[[Moment], Any] | None = None,
    efforts: Callable[[Moment], Any] | None = None,
    drives: Mapping[str, Drive] | None = None,
    actuated: Sequence[str] | None = None,
    forces: Any = None,
    gravity: Any = None,
) -> System:
    """The equations (1) of a model with states of one's own, for `Problem`: states are `q_elbow`, `v_elbow`, and these.

    By default the controls are the efforts of the `actuated` joints, `u_elbow`. With `drives`, as in `al.simulate`, they are
    what the drives are asked for, and lags of these are states `drive_elbow` (and `drive_rate_elbow` of second order). With
    `efforts`, a function of the moment, controls are those that `controls` names, and it gives the efforts of all degrees of
    freedom, or of some by name: `lambda s: {"elbow": s.valve * s.pressure}`. `rate` gives the rates of `states`. Moments
    have t, q, v, model, position(...), frame(...) and so on, and the states and controls by name. `forces` and `gravity` are
    those of `al.simulate`. Limits of the model's joints and efforts are not taken along: give those that are to hold as
    `Problem(..., limits={"q_elbow": 2.0, "u_elbow": 20.0})`.
    """
    if not isinstance(model, Model):
        raise ArgumentError(f"model_system: model is a {type(model).__name__}, expected a Model")
    given = checked(drives, "model_system")
    model, elements = environment("model_system", with_gears(model, given, "model_system"), forces, gravity)
    _check(model)
    lags = Lags(JointDrives.of(model, given, "model_system"))
    if len(lags.ramps):
        name = model.speed_names[int(lags.ramps[0])]
        raise UnsupportedError(
            f"model_system: the drive of {name!r} has a limited rate and no lag, which is no differential equation; give "
            "it a lag, or limit the rate of its control: limits={'rate': ...}"
        )
    if (efforts is None) != (controls is None):
        raise ArgumentError(
            "model_system: `controls` and `efforts` go together: names, and what they do to the joints"
        )
    own = names_of("model_system: states", states)
    if bool(own) != (rate is not None):
        raise ArgumentError("model_system: `states` and `rate` go together: names, and a rate for each")
    speeds = model.speed_names
    driven = driven_dofs(model, actuated)
    commands = (
        tuple(f"u_{_word(speeds[k])}" for k in driven)
        if controls is None
        else names_of("model_system: controls", controls)
    )
    inner = [
        *(f"drive_{_word(speeds[k])}" for k in lags.x),
        *(f"drive_rate_{_word(speeds[k])}" for k in lags.second),
    ]
    names = [f"{what}_{_word(name)}" for what in "qv" for name in speeds]
    n, count = model.nv, len(model.parameters)

    def rates(s: Moment) -> ca.SX:
        q, v, z, p = s.states[:n], s.states[n : 2 * n], s.states[2 * n : 2 * n + lags.size], s.parameters
        known = p[:count] if count else None
        named = {name: getattr(s, name) for name in (*commands, *names, *inner, *own)}
        moment = Moment(t=s.t, q=q, v=v, model=model, parameters=p, _model=model, _parameters=known, **named)
        command = ca.SX.zeros(n)
        if efforts is None:
            for k, dof in enumerate(driven):
                command[dof] = s.controls[k]
        else:
            command = evaluated("efforts", lambda: _efforts(model, efforts(moment)), "model_system")
        effort, moved = lags.symbolic(z, command)
        if elements is not None:
            effort = effort + elements.total(s.t, q, v, p[:count])
        a = model.symbolic.forward_dynamics(q, v, effort, parameters=known)
        found = [model.symbolic.rate(q, v), a, moved]
        return ca.vertcat(
            *found,
            *(
                []
                if rate is None
                else [evaluated("rate", lambda: _column(rate(moment), own), "model_system")]
            ),
        )

    return System(
        [*names, *inner, *own],
        commands,
        rates,
        parameters=dict(model.parameters),
        name=model.name,
    )


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _check(model: Model) -> None:
    if model.is_constrained:
        raise UnsupportedError(
            "model_system: the model has loops or couplings, which have no plain differential equation; a Problem of the "
            "model itself keeps them closed"
        )
    for owner in model.space:
        if not owner.type.is_vector_space:
            raise UnsupportedError(
                f"model_system: the coordinates of {owner.name!r} do not add (a {type(owner.type).__name__} joint), and "
                "states of a System do; take joints about single axes, or a Problem of the model itself"
            )


def _efforts(model: Model, given: Any) -> ca.SX:
    """All degrees of freedom."""
    if not isinstance(given, Mapping):
        found = ca.vertcat(*given) if isinstance(given, list | tuple) else ca.SX(given)
        if found.numel() != model.nv:
            raise ArgumentError(
                f"model_system: efforts gave {found.numel()} numbers, expected {model.nv}, or some by name"
            )
        return ca.reshape(found, model.nv, 1)
    tau = ca.SX.zeros(model.nv)
    for name, value in given.items():
        if name not in model.speed_names:
            raise ArgumentError(
                unknown("model_system: efforts: no degree of freedom", name, model.speed_names)
            )
        tau[model.speed_names.index(name)] = value
    return tau


def _column(given: Any, names: Sequence[str]) -> ca.SX:
    """The rates of the user's own states."""
    found = ca.vertcat(*given) if isinstance(given, list | tuple) else ca.SX(given)
    if found.numel() != len(names):
        raise ArgumentError(
            f"model_system: rate gave {found.numel()} numbers, expected {len(names)}: one for each of {', '.join(names)}"
        )
    return ca.reshape(found, len(names), 1)


Array = np.ndarray
MOST = 200
"""points of an axis: each is some operations in every step"""
MOST_VALUES = 4000
"""of a grid"""


def table(
    x: Any,
    y: Any,
    *,
    kind: Literal["cubic", "linear"] = "cubic",
    beyond: Literal["value", "slope"] = "value",
) -> Callable[..., ca.SX]:
    """A function through the points (x_k, y_k), for expressions: `drag = table(mach, values)`, then `drag(s.v / 300)`.

    For several arguments x has the points of each axis, and y the values on their grid: `lift = table((alpha, mach),
    values)` with values of shape (len(alpha), len(mach)), then `lift(s.alpha, s.v / 300)`.

    "cubic" has two continuous derivatives (not-a-knot ends; with three points of an axis it is a parabola), "linear" is a
    broken line, whose slope jumps: solvers that expect smooth functions take more iterations with it. Outside of the points
    it has the value of the nearest one, with an edge at the last point, round which iterations may go where the motion, also
    between its nodes, leaves the points. With `beyond="slope"` it goes on straight, as steep as at the last point.
    """
    axes, values = _read(x, y)
    if beyond not in ("value", "slope"):
        raise ArgumentError(f"table: beyond is {beyond!r}, expected 'value' or 'slope'")
    if kind not in ("cubic", "linear"):
        raise ArgumentError(f"table: kind is {kind!r}, expected 'cubic' or 'linear'")
    bases: list[_Basis] = []
    for i, points in enumerate(axes):
        bases.append(_Basis(points, 1 if kind == "linear" else 3, beyond == "slope"))
        columns = np.moveaxis(values, i, 0)
        found = np.linalg.solve(bases[-1].matrix(points), columns.reshape(len(points), -1))
        values = np.moveaxis(found.reshape(columns.shape), 0, i)

    def value(*at: Any) -> ca.SX:
        """(2)"""
        if len(at) != len(bases):
            raise ArgumentError(
                f"table: called with {len(at)} arguments, expected {len(bases)}: one for each axis"
            )
        weights = [basis(argument) for basis, argument in zip(bases, at, strict=True)]
        found = ca.SX(ca.DM(values.reshape(-1, values.shape[-1]))) @ weights[-1]
        for own, count in zip(reversed(weights[:-1]), reversed(values.shape[:-1]), strict=True):
            found = ca.reshape(found, count, found.numel() // count).T @ own
        return found

    return value


def _read(x: Any, y: Any) -> tuple[list[Array], Array]:
    """The points of the axes, and the values on their grid."""
    several = isinstance(x, Sequence) and len(x) > 0 and all(np.ndim(axis) == 1 for axis in x)
    try:
        axes = [np.asarray(axis, dtype=float) for axis in (x if several else [x])]
        values = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError("table: x and y are not numbers") from None
    shape = tuple(axis.size for axis in axes)
    counted = all(axis.ndim == 1 and 2 <= len(axis) <= MOST for axis in axes)
    if not counted or values.shape != shape or values.size > MOST_VALUES:
        raise ArgumentError(
            f"table: x has shapes {', '.join(str(axis.shape) for axis in axes)} and y {values.shape}, expected from 2 to "
            f"{MOST} points for each axis, and a value for each point of the grid {shape}, at most {MOST_VALUES}"
        )
    if not (all(np.isfinite(a).all() for a in (*axes, values)) and all((np.diff(a) > 0).all() for a in axes)):
        raise ArgumentError("table: x and y are to be finite, and x to increase")
    return axes, values


class _Basis:
    """(3) of one axis."""

    def __init__(self, points: Array, degree: int, goes_on: bool) -> None:
        """Of splines through these points, whose second and last but one are no knots where the degree is 3; `goes_on`:
        straight beyond their ends."""
        degree = min(degree, len(points) - 1)
        inside = (degree + 1) // 2 if degree % 2 else len(points) // 2 + 1
        ends = [float(points[0])] * (degree + 1), [float(points[-1])] * (degree + 1)
        self._t, self._degree = [*ends[0], *points[inside:-inside].tolist(), *ends[1]], degree
        self._steep = [self._slope(end) for end in (self._t[0], self._t[-1])] if goes_on else None

    def __call__(self, at: Any) -> ca.SX:
        first, last = self._t[0], self._t[-1]
        x = ca.fmin(ca.fmax(ca.SX(at), first), last)
        found = self._within(x)
        if self._steep is None:
            return found
        below, above = self._steep
        return found + ca.fmin(ca.SX(at) - first, 0) * below + ca.fmax(ca.SX(at) - last, 0) * above

    def matrix(self, points: Array) -> Array:
        """(points, terms)"""
        x = ca.SX.sym("x")
        values = ca.Function("basis", [x], [ca.densify(self._within(x))]).map(len(points))
        return np.asarray(values(points[None]).full().T)

    def _slope(self, at: float) -> ca.DM:
        x = ca.SX.sym("x")
        return ca.Function("slope", [x], [ca.densify(ca.jacobian(self._within(x), x))])(at)

    def _within(self, x: ca.SX) -> ca.SX:
        t, count = self._t, len(self._t) - 1
        first, last = self._degree, count - self._degree
        passed = {first: ca.SX(1), last: ca.SX(0)} | {k: x >= t[k] for k in range(first + 1, last)}
        N = [passed[k] - passed[k + 1] if first <= k < last else ca.SX(0) for k in range(count)]
        for p in range(1, self._degree + 1):
            N = [
                self._share(x - t[i], t[i + p] - t[i]) * N[i]
                + self._share(t[i + p + 1] - x, t[i + p + 1] - t[i + 1]) * N[i + 1]
                for i in range(count - p)
            ]
        return ca.vertcat(*N)

    @staticmethod
    def _share(part: ca.SX, whole: float) -> ca.SX:
        return part / whole if whole > 0 else ca.SX(0)
