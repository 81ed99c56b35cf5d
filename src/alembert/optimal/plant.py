"""What is controlled: a model of bodies and joints, or a system of differential equations of the user's.

Both offer the same to the transcriptions. A *point* is a state as numbers; it lies on a manifold, and small changes of
it are *tangent* vectors:

    x = retract(x_0, d),   d = local(x_0, x),   d' = chart_rate(d, w)                          (1)

with w the rate of change of x, for a model the speeds and accelerations. For a system of the user's all are sums
and differences. A `Row` is a condition on such a point, or a bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import casadi as ca
import numpy as np

from alembert.arguments import real
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.optimal.closure import Closure
from alembert.simulate.elements import Elements, Places
from alembert.simulate.sensors import Instrument, Measured
from alembert.sweeps.dynamics import Factor
from alembert.sweeps.form import ModelForm, form_of

if TYPE_CHECKING:
    from alembert.optimal.stages import Stages

Array = np.ndarray
Bounds = tuple[float, float]
FREE: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True)
class Row:
    """lower <= value(moment) <= upper; an equation when both are the same."""

    name: str
    value: Callable[[Moment], ca.SX]
    lower: float
    upper: float
    component: str = ""
    """the component of the state or the control that it bounds, if it bounds just one"""
    point: Any = None
    """the coordinates that a joint on a manifold is to have"""
    about: Callable[[Moment, ca.SX], ca.SX] | None = None
    """the value for other such coordinates"""

    @property
    def is_equation(self) -> bool:
        return self.lower == self.upper

    @property
    def is_bound(self) -> bool:
        return not self.is_equation and (np.isfinite(self.lower) or np.isfinite(self.upper))

    def __str__(self) -> str:
        """The value or the range."""
        return f"{self.lower:g}" if self.is_equation else f"{self.lower:g} .. {self.upper:g}"


@contextmanager
def numpy_functions() -> Iterator[None]:
    """Within it, np.sin(s.x) and the like give expressions without a warning of CasADi's, which tells of another version."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\s*casadi: a numpy function", FutureWarning)
        yield


def unusual(found: ca.SX) -> str:
    """What no solver can do with an expression, in words; empty where all is well."""
    f = ca.Function("f", ca.symvar(found), [found])
    operations = [f.instruction_id(k) for k in range(f.n_instructions())]
    constants = (k for k, operation in enumerate(operations) if operation == ca.OP_CONST)
    if any(np.isnan(f.instruction_constant(k)) for k in constants):
        return (
            "has a NaN in it: functions of `math` and SciPy make numbers of expressions; write casadi.sin and the like, or "
            "al.optimal.table(x, y)"
        )
    if ca.OP_CALL in operations:
        return (
            "calls a CasADi function that is no expression, as interpolants are; write al.optimal.table(x, y)"
        )
    return ""


RESERVED = ("t", "duration", "parameters", "states", "controls")
"""what every moment has"""


class Chart:
    """(1) for points that are a configuration of `model` (or nothing) followed by `rest` plain numbers.

    `unused` entries at the end of a point never move: where points of another chart need more room.
    """

    def __init__(self, model: Model | None, rest: int, unused: int = 0) -> None:
        self.model, self.rest, self.unused = model, rest, unused
        self.nq, self.nv = (model.nq, model.nv) if model is not None else (0, 0)
        self.point, self.tangent = self.nq + rest + unused, self.nv + rest
        curved = model is not None and not model.space.is_vector_space
        self._curved = model if curved else None
        """the model, where points do not simply add up"""

    def extended(self, more: int) -> Chart:
        return Chart(self.model, self.rest + more)

    def retract(self, x: ca.SX, d: ca.SX, *, near: bool = False) -> ca.SX:
        """`near`: to be differentiated, at most twice, at d = 0."""
        if self.unused:
            d = ca.vertcat(d, ca.SX.zeros(self.unused))
        if self._curved is None:
            return x + d
        space = self._curved.space
        q = (space.integrate_near if near else space.integrate)(x[: self.nq], d[: self.nv])
        return ca.vertcat(q, x[self.nq :] + d[self.nv :])

    def local(self, x: ca.SX, y: ca.SX, *, near: bool = False) -> ca.SX:
        """`near`: to be differentiated, at most twice, at y = x."""
        if self.unused:
            x, y = x[: self.nq + self.rest], y[: self.nq + self.rest]
        if self._curved is None:
            return y - x
        space = self._curved.space
        e = (space.difference_near if near else space.difference)(x[: self.nq], y[: self.nq])
        return ca.vertcat(e, y[self.nq :] - x[self.nq :])

    def chart_rate(self, d: ca.SX, w: ca.SX) -> ca.SX:
        if self._curved is None:
            return w
        return ca.vertcat(self._curved.space.chart_rate(d[: self.nv], w[: self.nv]), w[self.nv :])

    def move(self, x: Array, d: Array) -> Array:
        """`retract` on arrays (..., point) and (..., tangent)."""
        if self._curved is None:
            return np.concatenate([x[..., : self.tangent] + d, x[..., self.tangent :]], axis=-1)
        q = self._curved.integrate(x[..., : self.nq], d[..., : self.nv])
        used = slice(self.nq, self.nq + self.rest)
        return np.concatenate([q, x[..., used] + d[..., self.nv :], x[..., used.stop :]], axis=-1)

    def difference(self, x: Array, y: Array) -> Array:
        """`local` on arrays."""
        if self._curved is None:
            return y[..., : self.tangent] - x[..., : self.tangent]
        plain = slice(self.nq, self.nq + self.rest)
        e = self._curved.difference(x[..., : self.nq], y[..., : self.nq])
        return np.concatenate([e, y[..., plain] - x[..., plain]], axis=-1)


class Moment:
    """A state and its controls as CasADi expressions, for costs and constraints.

    For a model: `t`, `q`, `v`, `tau` (all degrees of freedom), `q["elbow"]`-like access by `position("elbow")`,
    `speed("elbow")` and `effort("elbow")`, `frame("tip")`, `velocity("tip")`, what a sensor reads by `reading("imu")`, and
    `model.symbolic` for anything else. For a system of the user's:
    `t`, and every state and control as an attribute under its name. `parameters` are those of the model or
    system, `duration` the whole time. Speeds that follow from momenta are made when they are asked for (`_speeds`).
    """

    def __init__(self, **known: Any) -> None:
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if "_speeds" in self.__dict__ and "v" not in self.__dict__:
            self.v = self._speeds()
            return getattr(self, name)
        if name in ("_model", "_parameters"):
            raise AttributeError(
                "this is a moment of a System, which has no joints and frames; name its states"
            )
        raise AttributeError(unknown("there is no quantity", name, (k for k in self.__dict__ if k[0] != "_")))

    @property
    def model_parameters(self) -> ca.SX | None:
        """For `parameters=` of `model.symbolic`: those of the model as expressions, None where it has none."""
        return self._parameters

    def position(self, joint: str) -> ca.SX:
        """The coordinates of a joint, or of the modes of a flexible body."""
        modal = self._model.space.of_bodies.get(joint)
        return self.q[self._model.q_slice(joint) if modal is None else modal.q]

    def speed(self, joint: str) -> ca.SX:
        modal = self._model.space.of_bodies.get(joint)
        return self.v[self._model.v_slice(joint) if modal is None else modal.v]

    def effort(self, joint: str) -> ca.SX:
        return self.tau[self._model.v_slice(joint)]

    def frame(self, name: str) -> Any:
        """The pose of a frame or body in the world: `.rotation` and `.translation`."""
        return self._model.symbolic.frame_pose(self.q, name, parameters=self._parameters)

    def velocity(self, name: str) -> ca.SX:
        """The velocity of a frame's or body's origin, in world axes."""
        found = self._model.symbolic.frame_velocity(
            self.q, self.v, name, reference="local_world_aligned", parameters=self._parameters
        )
        return found[3:]

    def reading(self, sensor: Any) -> ca.SX:
        """What a sensor reads without its errors: one of the model by name, or any that `al.simulate` takes.

        For costs and conditions on what instruments see: a target in the view, an angle below that of a tracker.
        """
        model = self.__dict__.get("_model")
        if model is None:
            raise ArgumentError("reading: sensors are those of a model, and this is the moment of a System")
        given = sensor if isinstance(sensor, Measured) else None
        kind = sensor if given is None else given.sensor
        known = {x.name: x for x in model.sensors}
        if isinstance(kind, str) and kind not in known:
            raise ArgumentError(unknown("reading: no sensor", kind, known))
        at = Instrument.of(model, Measured(kind, period=1.0), ())
        if not at.is_symbolic:
            raise UnsupportedError(
                f"reading: sensor {at.given.name!r} depends on accelerations or on what happens in a run: it is no function "
                "of the state; state a condition on position, speed, frame or velocity instead"
            )
        p = self.parameters[: len(model.parameters)]
        return at.expression(Places(model, self.t, self.q, self.v, p), ca.SX.zeros(at.width), ca.SX(1))


def names_of(what: str, given: Any) -> tuple[str, ...]:
    """Several names; one string alone, which is a sequence of letters too, is one name."""
    if isinstance(given, str):
        return (given,)
    names = tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(f"{what} has {name!r}, expected names")
    return names


class Plant(Protocol):
    """What a transcription needs."""

    chart: Chart
    controls: tuple[str, ...]
    parameters: tuple[tuple[str, float], ...]
    still: int
    """how many of the last states have a rate of zero"""

    def rate(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        """How the point changes, as a tangent vector."""
        ...

    def moment(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX, **more: Any) -> Moment: ...

    @property
    def tangent_names(self) -> tuple[str, ...]: ...


class System:
    """Differential equations x' = f(t, x, u) with named states and controls.

    `rate` gets a `Moment` with `t`, the states and controls by name and the `parameters` by name, and returns
    one expression per state. `units` may name units for states and controls.
    """

    still = 0

    def __init__(
        self,
        states: Sequence[str],
        controls: Sequence[str],
        rate: Callable[[Moment], Any],
        *,
        parameters: Mapping[str, float] | None = None,
        units: Mapping[str, str] | None = None,
        name: str = "system",
    ) -> None:
        self.name, self._rate = name, rate
        self.states, self.controls = (
            names_of("System: states", states),
            names_of("System: controls", controls),
        )
        self.units = dict(units or {})
        self.parameters = tuple(
            (str(k), real("System", f"parameter {k!r}", value, "a finite number"))
            for k, value in (parameters or {}).items()
        )
        names = [*self.states, *self.controls, *(k for k, _ in self.parameters)]
        for given in names:
            if not str(given).isidentifier() or given in RESERVED:
                raise ArgumentError(f"System: {given!r} is no name for a quantity; expected an identifier")
        doubled = {given for given in names if names.count(given) > 1}
        if doubled:
            raise ArgumentError(f"System: the name {sorted(doubled)[0]!r} is given twice")
        if not self.states:
            raise ArgumentError("System: there are no states")
        self.chart = Chart(None, len(self.states))
        sizes = (1, len(self.states), len(self.controls), len(self.parameters))
        t, x, u, p = (ca.SX.sym(k, n) for k, n in zip("txup", sizes, strict=True))
        try:  # says at once what is wrong
            found = self.rate(t, x, u, p)
        except ArgumentError:
            raise
        except RuntimeError as error:
            if "truth value" not in str(error):
                reason = str(error).strip().splitlines()[-1].rpartition(": ")[2]
                raise ArgumentError(
                    f"System: the rate: {reason}. It gets CasADi expressions and returns one for each state"
                ) from None
            raise ArgumentError(
                "System: the rate chooses by `if`, `max` or a comparison, which has no answer for expressions; write "
                "casadi.if_else(condition, then, otherwise), fmax or fmin"
            ) from None
        except AttributeError as error:
            raise ArgumentError(f"System: the rate: {error}") from None
        except (TypeError, ValueError, KeyError) as error:
            raise ArgumentError(
                f"System: the rate: {error}. It gets CasADi expressions and returns one for each state"
            ) from None
        if wrong := unusual(found):
            raise ArgumentError(f"System: the rate {wrong}")

    def __repr__(self) -> str:
        return f"<System {self.name!r}: {len(self.states)} states, {len(self.controls)} controls>"

    def moment(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX, **more: Any) -> Moment:
        names, p = (*self.states, *self.controls, *(k for k, _ in self.parameters)), p[: len(self.parameters)]
        values = [entry for part in (x, u, p) if part.numel() for entry in ca.vertsplit(part)]
        named = dict(zip(names, values, strict=True))
        return Moment(t=t, states=x, controls=u, parameters=p, **named, **more)

    def rate(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        with numpy_functions():
            given = self._rate(self.moment(t, x, u, p))
        if isinstance(given, Mapping):
            given = [given[name] for name in self.states]
        try:
            found = ca.vertcat(*given) if isinstance(given, list | tuple) else ca.SX(given)
        except (NotImplementedError, TypeError, RuntimeError):
            raise ArgumentError(
                f"System: the rate is {given!r}, expected one CasADi expression per state"
            ) from None
        if found.shape != (len(self.states), 1):
            raise ArgumentError(
                f"System: the rate has {found.numel()} entries, expected {len(self.states)}: one per state "
                f"({', '.join(self.states)})"
            )
        return ca.SX(found)

    @property
    def tangent_names(self) -> tuple[str, ...]:
        return self.states


class Mechanics:
    """A model: points (q, v), controls are the efforts of the driven degrees of freedom."""

    momenta = False
    still = 0
    form: ModelForm | None = None
    """where the numbers of the model are the last of the parameters p"""

    def __init__(
        self,
        model: Model,
        driven: Sequence[int],
        closure: Closure | None = None,
        elements: Elements | None = None,
    ) -> None:
        """`elements`: what else acts, as in `al.simulate`."""
        self.model, self.closure, self.elements = model, closure, elements
        self.tree = model.constrained_compute.rows.primary if model.is_constrained else model
        self.driven = tuple(driven)
        self.controls = tuple(model.speed_names[k] for k in driven)
        self.parameters = model.parameters
        self.chart = Chart(model, model.nv)

    def __repr__(self) -> str:
        return f"<{self.model.name}, {len(self.driven)} of {self.model.nv} degrees of freedom driven>"

    @cached_property
    def tangent_names(self) -> tuple[str, ...]:
        names = self.model.speed_names
        return (*(f"q {name}" for name in names), *(f"v {name}" for name in names))

    def parameter_values(self, p: ca.SX) -> ca.SX | None:
        """For `parameters=` of the model's methods: of p, where values at the ends may follow; None where it has none."""
        return p[: len(self.model.parameters)] if self.model.parameters else None

    def with_numbers(self) -> Mechanics:
        """The same where p ends with the numbers of the model, so that models of one form have the same expressions."""
        found = copy(self)
        found.form = form_of(self.tree) if self.elements is None else None
        return found

    @property
    def numbers(self) -> Array:
        """What p ends with."""
        return np.empty(0) if self.form is None else self.form.numbers

    @property
    def shared(self) -> Model:
        """Whose equations of motion the expressions are: the form, which models share, or the tree of the model."""
        return self.tree if self.form is None else self.form.model

    def shared_values(self, p: ca.SX) -> ca.SX | None:
        """For `parameters=` of `shared.symbolic`."""
        return self.parameter_values(p) if self.form is None else p[p.numel() - len(self.form.numbers) :]

    def effort(self, u: ca.SX) -> ca.SX:
        tau = ca.SX.zeros(self.model.nv)
        for k, dof in enumerate(self.driven):
            tau[dof] = u[k]
        return tau

    def efforts(self, t: ca.SX, q: ca.SX, v: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        """Of the controls, and of the elements."""
        if self.elements is None:
            return self.effort(u)
        return self.effort(u) + self.elements.total(t, q, v, p[: len(self.model.parameters)])

    def moment(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX, **more: Any) -> Moment:
        nq = self.model.nq
        own = {"_model": self.model, "_parameters": self.parameter_values(p), "_plant": self}
        return Moment(
            t=t,
            q=x[:nq],
            _speeds=lambda: self.speeds(x, p),
            tau=self.effort(u),
            controls=u,
            parameters=p[: p.numel() - len(self.numbers)],
            model=self.model,
            **own,
            **more,
        )

    def speeds(self, x: ca.SX, p: ca.SX) -> ca.SX:
        return x[self.model.nq :]

    def rate(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        q, v = x[: self.model.nq], x[self.model.nq :]
        return ca.vertcat(v, self.accelerations(t, q, v, u, p))

    def accelerations(self, t: ca.SX, q: ca.SX, v: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        known, tree = self.shared_values(p), self.shared.symbolic
        free = tree.forward_dynamics(q, v, self.efforts(t, q, v, u, p), parameters=known)
        if self.closure is None:
            return free
        G = self.closure.jacobian(q, p)
        Y = tree.inverse_mass_matrix(q, parameters=known) @ G.T
        return free + Y @ Factor(G @ Y).solve(self.closure.accelerations(t, q, v, p) - G @ free)


class Momenta(Mechanics):
    """The same model with points (q, p), p = M(q) v: Hamilton's equations."""

    momenta = True

    @cached_property
    def tangent_names(self) -> tuple[str, ...]:
        names = self.model.speed_names
        return (*(f"q {name}" for name in names), *(f"p {name}" for name in names))

    def speeds(self, x: ca.SX, p: ca.SX) -> ca.SX:
        nq = self.model.nq
        return self.shared.symbolic.solve_mass_matrix(x[:nq], x[nq:], parameters=self.shared_values(p))

    def rate(self, t: ca.SX, x: ca.SX, u: ca.SX, p: ca.SX) -> ca.SX:
        """q' = v, p' = tau - bias(q, v) + M' v; with what else holds, M a + M' v."""
        model, known = self.shared, self.shared_values(p)
        v = self.speeds(x, p)
        q, w, rate = ca.SX.sym("q", model.nq), ca.SX.sym("w", model.nv), ca.SX.sym("rate", model.nq)
        moved = ca.jtimes(model.symbolic.mass_matrix(q, parameters=known) @ w, q, rate)
        free = [q, w, rate, *([p] if model.parameters else [])]
        closed = self.closure is not None
        f = ca.Function(
            "force", free, [moved if closed else moved - model.symbolic.bias_forces(q, w, parameters=known)]
        )
        position = x[: model.nq]
        values = [position, v, model.symbolic.rate(position, v), *([p] if model.parameters else [])]
        if closed:
            a = self.accelerations(t, position, v, u, p)
            return ca.vertcat(
                v, model.symbolic.multiply_mass_matrix(position, a, parameters=known) + f(*values)
            )
        return ca.vertcat(v, self.efforts(t, position, v, u, p) + f(*values))


def closure_of(plant: Plant) -> Closure | None:
    """Its loops and prescribed joints, where there are any."""
    return plant.closure if isinstance(plant, Mechanics) else None


def depends_on_time(plant: Mechanics) -> bool:
    """Whether forces or gravity do."""
    if plant.elements is None:
        return False
    t, x, u = ca.SX.sym("t"), ca.SX.sym("x", plant.chart.point), ca.SX.sym("u", len(plant.controls))
    return bool(ca.depends_on(plant.rate(t, x, u, ca.SX([value for _, value in plant.parameters])), t))


def driven_dofs(
    model: Model, actuated: Sequence[str] | None, prescribed: Collection[str] = ()
) -> tuple[int, ...]:
    """Indices of the degrees of freedom that have a control, in the order of the speeds.

    By default those of the model's actuators; those of all joints, when it has none; without those of `prescribed` joints.
    """
    if actuated is None:
        found = {model.v_slice(a.joint).start + a.dof for a in model.actuators}
        joints = range(len(model.joints))
        every = {k for j in joints for k in range(model.space[j].v.start, model.space[j].v.stop)}
        found = found if model.actuators else every
        taken = [model.v_slice(j.name) for j in model.joints if j.name in prescribed]
        return tuple(sorted(found - {k for s in taken for k in range(s.start, s.stop)}))
    known = {joint.name: model.v_slice(joint.name) for joint in model.joints}
    by_actuator = {a.name: model.v_slice(a.joint).start + a.dof for a in model.actuators}
    speeds = {name: k for k, name in enumerate(model.speed_names) if name in model.space.joint_speed_names}
    found = set()
    for name in names_of("Problem: actuated", actuated):
        if name in known:
            s = known[name]
            found |= set(range(s.start, s.stop))
        elif name in by_actuator:
            found.add(by_actuator[name])
        elif name in speeds:
            found.add(speeds[name])
        else:
            raise ArgumentError(
                unknown("Problem: no joint or actuator", name, [*known, *by_actuator, *speeds])
            )
    return tuple(sorted(found))


LARGEST = 400
"""operations of M(q) v; beyond, its derivatives would cost more than (1) gains"""


class StepTangent:
    """`retract` and `local` of a chart, with (1) where points have momenta; p are the parameters.

    The tangent vectors in which the Newton steps of `solver="sweep"` are taken.

    Points (q, p) with momenta p = M(q) v are moved by changes of configuration and *speed*:

        (q, p) + (dq, dv) = (q', M(q') (v + dv)),    q' = q + dq,    v = M(q)^-1 p                       (1)

    A step that is straight in the momenta would change the speeds by the change of M along dq, although the motion need not
    become faster: its equations are far less linear, and the steps that a line search allows far shorter.
    """

    def __init__(self, stages: Stages) -> None:
        self.chart, plant = stages.chart, stages.plant
        form = plant.form if isinstance(plant, Mechanics) else None
        model = self.chart.model if form is None else form.model
        self.fingerprint = model.fingerprint if model is not None else ""
        """of what the expressions know of the model"""
        self._momenta: ca.Function | None = None
        if isinstance(plant, Momenta) and plant.closure is None:
            model = plant.shared
            q, v, p = (
                ca.SX.sym("q", model.nq),
                ca.SX.sym("v", model.nv),
                ca.SX.sym("p", len(stages.parameters)),
            )
            known = plant.shared_values(p)
            momenta = ca.Function("momenta", [q, v, p], [model.symbolic.mass_matrix(q, parameters=known) @ v])
            if momenta.n_instructions() <= LARGEST:
                self._momenta = momenta
                speeds = model.symbolic.solve_mass_matrix(q, v, parameters=known)
                self._speeds = ca.Function("speeds", [q, v, p], [speeds])

    @property
    def is_plain(self) -> bool:
        return self._momenta is None

    @property
    def name(self) -> str:
        return "plain" if self.is_plain else "speeds"

    def retract(self, x: ca.SX, d: ca.SX, p: ca.SX, *, near: bool = False) -> ca.SX:
        moved = self.chart.retract(x, d, near=near)
        if self._momenta is None:
            return moved
        nq, nv = self.chart.nq, self.chart.nv
        v = self._speeds(x[:nq], x[nq : nq + nv], p) + d[nv : 2 * nv]
        return ca.vertcat(moved[:nq], self._momenta(moved[:nq], v, p), moved[nq + nv :])

    def local(self, x: ca.SX, y: ca.SX, p: ca.SX, *, near: bool = False) -> ca.SX:
        d = self.chart.local(x, y, near=near)
        if self._momenta is None:
            return d
        nq, nv = self.chart.nq, self.chart.nv
        before, after = (self._speeds(point[:nq], point[nq : nq + nv], p) for point in (x, y))
        return ca.vertcat(d[:nv], after - before, d[2 * nv :])

    def slopes(self, x: ca.SX, p: ca.SX) -> tuple[ca.SX, ca.SX]:
        """J, these tangent vectors at x in the coordinates of the chart, and its inverse."""
        d = ca.SX.sym("d", self.chart.tangent)
        there = self.chart.local(x, self.retract(x, d, p, near=True), near=True)
        back = self.local(x, self.chart.retract(x, d, near=True), p, near=True)
        both = ca.Function("slopes", [d, x, p], [ca.jacobian(there, d), ca.jacobian(back, d)])
        J, inverse = both.call([ca.DM.zeros(d.numel()), x, p])
        return J, inverse
