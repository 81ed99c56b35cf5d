"""All controllers of a run, sorted by what can be compiled.

The continuous ones that are expressions, with states x or without, are one function for the compiled loop:

    (u, x') = law(t, q, v, x, p)                                                                    (1)

with p the model's parameters; Python functions of t, q and v add to u. `Motions` are joints that follow a motion, whatever
that takes: as functions for the compiled loop, or asked in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.arguments import check_known, check_takes, unknown
from alembert.engine.kernel import Kernel
from alembert.errors import AlembertError, ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.simulate.actuators import JointDrives
from alembert.simulate.bound_controllers import BoundController
from alembert.simulate.controllers import (
    RUN_AWAY,
    AnswerError,
    DynamicController,
    Law,
    Sampled,
    as_controller,
    check_answer,
    distinct_names,
    efforts_of,
    told_law,
    where_the_law_is,
)
from alembert.simulate.elements import Sizes, function_kernel, state_symbols
from alembert.simulate.inputs import Table, TimeTables
from alembert.simulate.mass_flow import BoundFlow, MassFlow
from alembert.spatial.arrays import clip

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray


class Feedback:
    """`symbolic_laws` are CasADi functions of t, q and v, `laws` Python ones; `sampled` are asked at instants only."""

    def __init__(
        self, model: Model, controller: Any, drives: JointDrives | None, sensors: Sequence[Any] = ()
    ) -> None:
        self.model, self.drives = model, drives
        self.symbolic_laws: list[ca.Function] = []
        self.laws: list[Law] = []
        given = _listed(controller)
        sampled: list[Sampled] = []
        flows: list[BoundFlow] = []
        with_states: list[tuple[int | None, DynamicController]] = []
        for k, law in enumerate(given):
            who = f"controller[{k}]" if isinstance(controller, list | tuple) else "controller"
            system = as_controller(law.law if isinstance(law, Sampled) else law)
            if system is not None:
                if not isinstance(law, Sampled) and system.is_sampled:
                    law = Sampled(system)
                with_states.append((len(sampled) if isinstance(law, Sampled) else None, system))
            if isinstance(law, Sampled):
                sampled.append(law)
            elif isinstance(law, MassFlow):
                flows.append(BoundFlow(law, model))
            elif system is not None:
                continue
            elif isinstance(law, ca.Function):
                self.symbolic_laws.append(_checked_law(self.model, law, who))
            elif callable(law):
                check_takes(f"simulate: {who}", law, "t", "q", "v")
                self.laws.append(law)
            else:
                raise ArgumentError(
                    f"simulate: {who} is {told_law(law)}, expected a function u(t, q, v), a casadi.Function, a StateSpace, "
                    f"DynamicController(...) or Sampled(...){where_the_law_is(law)}"
                )
        self.sampled = tuple(sampled)
        named = distinct_names([one for _, one in with_states]) if with_states else []
        bound = [BoundController(one, model, drives, sensors) for one in named]
        places = [place for place, _ in with_states]
        self.dynamic: list[BoundController | BoundFlow] = [
            one for place, one in zip(places, bound, strict=True) if place is None
        ]
        """continuous ones with states, those of mass last"""
        burnt = [flow.controller.parameter for flow in flows]
        for name in burnt:
            if burnt.count(name) > 1:
                raise ArgumentError(
                    f"simulate: two MassFlow burn {name!r}, expected one with the nozzles of both"
                )
        first = sum(one.size for one in self.dynamic)
        self.flows = tuple((first + k, flow) for k, flow in enumerate(flows))
        """masses that fall, each with the number of its state"""
        posted = {name for law in sampled for name in law.posts}
        for flow in flows:
            if flow.controller.burnt is not None and flow.controller.burnt not in posted:
                raise ArgumentError(
                    unknown(
                        f"simulate: MassFlow of {flow.controller.parameter!r}: no law posts",
                        flow.controller.burnt,
                        posted,
                    )
                )
        self.dynamic += flows
        self.sampled_systems = {
            place: one for place, one in zip(places, bound, strict=True) if place is not None
        }
        """by their numbers among the sampled ones"""
        jumps = [np.asarray(getattr(law, "breaks", ()), dtype=float) for law in (*self.laws, *self.dynamic)]
        self.breaks = np.unique(np.concatenate([np.zeros(0), *jumps]))
        """times at which laws jump"""
        self.until = np.inf
        """of the span that is under way: what a law gives from there on does not count"""
        self._check_pushes()

    # --- states -----------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """How many states are integrated."""
        return sum(one.size for one in self.dynamic)

    def start(self, batch: tuple[int, ...]) -> Array:
        """Their values at the start."""
        parts = [one.controller.initial() for one in self.dynamic]
        return np.array(np.broadcast_to(np.concatenate([np.zeros(0), *parts]), (*batch, self.size)))

    @cached_property
    def states(self) -> tuple[tuple[str, str, str], ...]:
        """(controller, state, unit) of all states: those that are integrated, then those of sampled controllers."""
        return _states([one.controller for one in (*self.dynamic, *self.sampled_systems.values())])

    # --- drives -----------------------------------------------------------------------------------------------------

    def _check_pushes(self) -> None:
        """Drives carry out what laws ask for as one sum: wrenches on frames, which are none of theirs, may not be in it."""
        drives, model = self.drives, self.model
        pushing = [
            one
            for one in (*self.dynamic, *self.sampled_systems.values())
            if isinstance(one, BoundFlow) or any(not isinstance(where, int) for where, _ in one.targets)
        ]
        if drives is None or not pushing:
            return
        apart = not (self.laws or self.drives_add_up)  # limits of compiled laws hold before pushes are added
        for one in pushing:
            acts = _acts(one.parts, model.nv, 1) & drives.busy
            if acts.any() and not (apart and one in self.dynamic):
                joint = model.speed_names[int(np.flatnonzero(acts)[0])]
                raise UnsupportedError(
                    f"simulate: {one.controller.name!r} pushes at a frame, and the drive of {joint!r} would carry out what "
                    "that push does to the joint; leave the drive's limit, rate and lag out, or give the push in wrenches="
                )

    @cached_property
    def drives_add_up(self) -> bool:
        """Whether drives carry out the sum of what is asked for apart from the laws: because what they give depends on what
        they gave before, or because a limit holds for a sampled and a continuous law together."""
        if self.drives is None:
            return False
        if self.drives.remember or not self.sampled or not np.isfinite(self.drives.limit).any():
            return self.drives.remember
        continuous = np.full(self.model.nv, bool(self.laws)) | _acts(self.asked_law, self.model.nv)
        asked = np.zeros(self.model.nv, dtype=bool)
        for k, law in enumerate(self.sampled):
            own = self.sampled_systems.get(k)
            function = law.law if own is None and isinstance(law.law, ca.Function) else own and own.function
            asked |= _acts(function, self.model.nv) if function else True
        return bool(np.any(continuous & asked & np.isfinite(self.drives.limit)))

    # --- the compiled law -------------------------------------------------------------------------------------------

    @property
    def is_compiled(self) -> bool:
        """Whether there is a law of expressions."""
        return bool(self.symbolic_laws or self.dynamic)

    @cached_property
    def law(self) -> ca.Function | None:
        """(1), with the saturation of the drives where nothing is added to it before."""
        saturated = self.drives is not None and not (self.laws or self.drives_add_up)
        return self._function(saturated=saturated) if self.is_compiled else None

    @cached_property
    def asked_law(self) -> ca.Function | None:
        """(1) as it is asked of the drives."""
        return self._function(pushes=False) if self.is_compiled else None

    @cached_property
    def pushed_law(self) -> ca.Function | None:
        """(1) by nozzles and at frames, which no drive carries out."""
        return self._function(asks=False) if self.is_compiled else None

    @cached_property
    def silent_law(self) -> ca.Function | None:
        """(1) without efforts: what states follow where the efforts come as numbers."""
        return self._function(asks=False, pushes=False) if self.dynamic else None

    def _function(self, *, asks: bool = True, pushes: bool = True, saturated: bool = False) -> ca.Function:
        model = self.model
        t, q, v, p = state_symbols(model)
        x = ca.SX.sym("x", self.size)
        total, rates, first = ca.SX.zeros(model.nv), [], 0
        for law in self.symbolic_laws:
            total = total + ca.SX(law(t, q, v))
        pushed = ca.SX.zeros(model.nv)
        for one in self.dynamic:
            asked, more, rate = one.parts(t, q, v, x[first : first + one.size], p, ca.SX(0, 1))
            total, pushed, first = total + asked, pushed + more, first + one.size
            rates.append(rate)
        if saturated and self.drives is not None:
            for k, limit in enumerate(self.drives.limit):
                if np.isfinite(limit):
                    total[k] = clip(total[k], float(limit))
        none = ca.SX.zeros(model.nv)
        total = (total if asks else none) + (pushed if pushes else none)
        rate = ca.vertcat(ca.SX(0, 1), *rates)
        return ca.Function("law", [t, q, v, x, p], [ca.densify(total), ca.densify(rate)])

    def _kernel(self, kind: str, results: Sizes, function: Callable[[], ca.Function]) -> Kernel:
        law, model = self.law, self.model
        assert law is not None
        given = {"t": 1, "q": model.nq, "v": model.nv, "x": self.size or None}
        given["parameters"] = len(model.parameters) or None
        return function_kernel("controller", f"simulate:{kind}:{law.serialize()}", given, results, function)

    @cached_property
    def _law_kernel(self) -> Kernel:
        law = self.law
        assert law is not None
        return self._kernel("law", {"u": self.model.nv, "rate": self.size or None}, lambda: law)

    @cached_property
    def _slope_kernel(self) -> Kernel:
        nv, n = self.model.nv, self.size
        law = self.law
        assert law is not None

        def slopes() -> ca.Function:
            t, q, v, x, p = law.sx_in()
            d = ca.SX.sym("d", nv)
            both = ca.vertcat(*law(t, self.model.space.integrate(q, d), v, x, p))
            found = [ca.substitute(ca.jacobian(both, y), d, ca.SX.zeros(nv)) for y in (d, v, x)]
            parts = [M[rows, :] for rows in (slice(0, nv), slice(nv, nv + n)) for M in found]
            return ca.Function("slopes", [t, q, v, x, p], parts)

        shapes = {
            f"{y}_{z}": (rows, columns) if rows and columns else None
            for y, rows in (("u", nv), ("r", n))
            for z, columns in (("q", nv), ("v", nv), ("x", n))
        }
        return self._kernel("slopes", shapes, slopes)

    def _given(
        self, t: Any, q: Array, v: Array, x: Array, parameters: Array, *, along_time: bool
    ) -> list[Array]:
        given = [np.atleast_1d(np.asarray(t, dtype=float)), q, v]
        if self.size:
            given.append(x)
        if self.model.parameters:
            given.append(parameters[..., None, :] if along_time and parameters.ndim > 1 else parameters)
        return given

    def evaluate(
        self, t: Any, q: Array, v: Array, x: Array, parameters: Array, *, along_time: bool = False
    ) -> tuple[Array, Array]:
        """(1) as numbers."""
        found = self._law_kernel(*self._given(t, q, v, x, parameters, along_time=along_time))
        return found if self.size else (found, np.zeros((*found.shape[:-1], 0)))

    def slopes(self, t: float, q: Array, v: Array, x: Array, parameters: Array) -> tuple[Array, Array]:
        """d/d(q, v, x) of u, (nv, 2 nv + size), and of x', (size, 2 nv + size); q by its tangent."""
        nv, n = self.model.nv, self.size
        found = self._slope_kernel(*self._given(t, q, v, x, parameters, along_time=False))
        if not n:
            return np.hstack(found), np.zeros((0, 2 * nv))
        return np.hstack(found[:3]), np.hstack(found[3:])

    def command(
        self, t: Any, q: Array, v: Array, x: Array, parameters: Array, *, along_time: bool = False
    ) -> Array:
        """What the continuous controllers ask for, saturated unless drives add it up with more; t is a time, or (..., 1)
        times."""
        total = np.zeros(self.model.nv)
        for law in self.laws:
            at = t
            if self.until < np.inf and hasattr(law, "breaks"):
                at = self._before(t)
            asked = efforts_of(self.model, law, at, q, v, batch=q.shape[:-1], who="a controller")
            check_answer(self.model, "a controller", at, q, v, asked)
            total = total + asked
        if self.is_compiled:
            jumps = self.until < np.inf and any(len(one.breaks) for one in self.dynamic)
            at = self._before(t) if jumps else t
            total = total + self.evaluate(at, q, v, x, parameters, along_time=along_time)[0]
        if self.drives is not None and self.laws and not self.drives_add_up:
            total = self.drives.saturate(total)
        return total

    def _before(self, t: float) -> float:
        """The time, or the last before the end of the span."""
        return min(t, self.until - 1e-12 * max(1.0, abs(self.until)))

    def rates(self, t: float, q: Array, v: Array, x: Array, parameters: Array) -> Array:
        """x'."""
        if not self.size:
            return x
        at = self._before(t) if self.until < np.inf else t
        return self.evaluate(at, q, v, x, parameters)[1]


def _acts(function: ca.Function | None, nv: int, result: int = 0) -> Array:
    """(nv,): which efforts are not zero everywhere, by a result of a law."""
    if function is None:
        return np.zeros(nv, dtype=bool)
    law = function if function.is_a("SXFunction") else function.expand()
    u = law.call(law.sx_in())[result]
    if u.numel() != nv:  # told where it is asked
        return np.ones(nv, dtype=bool)
    return np.array([not u[k].is_zero() for k in range(nv)], dtype=bool)


def states_of(controller: Any) -> tuple[tuple[str, str, str], ...]:
    """`Feedback.states` of what is given as a controller, without a model."""
    found = [as_controller(law.law if isinstance(law, Sampled) else law) for law in _listed(controller)]
    named = distinct_names([one for one in found if one is not None])
    flows = [law for law in _listed(controller) if isinstance(law, MassFlow)]
    integrated = [one for one in named if not one.is_sampled]
    return _states([*integrated, *flows, *(one for one in named if one.is_sampled)])


def _states(controllers: Sequence[DynamicController | MassFlow]) -> tuple[tuple[str, str, str], ...]:
    found = []
    for one in controllers:
        units = getattr(one.law, "state_units", ("",) * len(one.states))
        found += [(one.name, x, u) for x, u in zip(one.states, units, strict=True)]
    return tuple(found)


def _listed(controller: Any) -> list[Any]:
    if controller is None:
        return []
    return list(controller) if isinstance(controller, list | tuple) else [controller]


def _checked_law(model: Model, law: ca.Function, who: str) -> ca.Function:
    sizes = [law.numel_in(k) for k in range(law.n_in())]
    results = [law.numel_out(k) for k in range(law.n_out())]
    if sizes != [1, model.nq, model.nv] or results != [model.nv]:
        raise ArgumentError(
            f"simulate: {who} maps sizes {sizes} to {results}, expected a casadi.Function of t (1), q ({model.nq}) and "
            f"v ({model.nv}) that gives {model.nv} efforts"
        )
    return law if law.is_a("SXFunction") else law.expand()


def blame(system: Simulation, times: Sequence[float], q: Array, v: Array, x: Array) -> str:
    """The sentence for the first law that gives numbers which are not finite at a state and one of the times, where a motion
    cannot go on; empty where none does."""
    if q.ndim > 1 or not max(np.max(np.abs(q), initial=0.0), np.max(np.abs(v), initial=0.0)) < RUN_AWAY:
        return ""
    for t in times:
        try:
            for who, labels, found in _answers(system, t, q, v, x):
                bad = np.flatnonzero(~np.isfinite(found))
                if len(bad):
                    return f"{who} gives {found[bad[0]]} for {labels[bad[0]]!r} at t = {t:.9g} s"
        except AnswerError as error:
            return str(error).removeprefix("simulate: ")
        except AlembertError:  # of another kind: the reason of the caller stands
            return ""
    return ""


def _answers(
    system: Simulation, t: float, q: Array, v: Array, x: Array
) -> Iterator[tuple[str, Sequence[str], Array]]:
    model, loads = system.model, system.loads
    speeds = model.speed_names
    if system.prescribes:
        motion = system.prescribed_motions.at(t)
        for labels, found in zip((model.coordinate_names, speeds, speeds), motion, strict=True):
            yield "the prescribed motion", labels, found
    yield "a controller", speeds, system.command(t, q, v, x)
    for frame, wrench in (loads.wrenches_at(t, q, v) or {}).items():
        yield f"the wrench on {frame!r}", ("mx", "my", "mz", "fx", "fy", "fz"), np.asarray(wrench)
    if loads.elements is not None:
        kept, other, fed, _ = loads.elements_at(t, q, v)
        yield "a force", speeds, kept + other + fed


# --- joints that follow a motion ---------------------------------------------------------------------------------


class Motions:
    """`mask` (nv,) says which speeds are prescribed."""

    def __init__(self, model: Model, prescribed: Mapping[str, Any], tables: TimeTables) -> None:
        self.model = model
        self.mask = np.zeros(model.nv, dtype=bool)
        self.functions: dict[str, Callable[[float], Any]] = {}
        symbolic: dict[str, ca.Function] = {}
        for name, motion in prescribed.items():
            check_known("simulate: prescribed: no joint", name, model.joint_indices)
            joint = model.joint(name).type
            if not joint.is_vector_space:
                raise UnsupportedError(
                    f"simulate: prescribed motion of joint {name!r} and joint type {joint.kind!r}: only joints whose "
                    "coordinates simply add can be prescribed"
                )
            self.mask[model.v_slice(name)] = True
            if isinstance(motion, Table):
                tables.all.append((f"prescribed {name!r}", motion))
                if motion.interpolation != "cubic" or motion.outside != "refuse" or motion.width != joint.nq:
                    raise ArgumentError(
                        f"simulate: prescribed {name!r} is a table of width {motion.width}, {motion.interpolation!r}, "
                        f"outside {motion.outside!r}, expected width {joint.nq}, 'cubic' and 'refuse': speeds must not jump"
                    )
                if motion.is_compiled:
                    t = ca.SX.sym("t")
                    symbolic[name] = ca.Function("table", [t], [motion.symbolic(t)])
                else:
                    self.functions[name] = motion.derivatives
            elif isinstance(motion, ca.Function):
                symbolic[name] = _checked_motion(joint.nq, motion, name)
            elif callable(motion):
                check_takes(f"simulate: prescribed {name!r}", motion, "t")
                self.functions[name] = motion
            else:
                value = model.compute.numbers(
                    "simulate", f"prescribed {name!r}", np.atleast_1d(motion), joint.nq
                )
                t = ca.SX.sym("t")
                symbolic[name] = ca.Function("hold", [t], [ca.SX(value)])
        self.function = _motion(model, symbolic) if symbolic else None

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """q, v and a of all degrees of freedom; zero where they are not prescribed."""
        model = self.model
        found = [np.zeros(n) for n in (model.nq, model.nv, model.nv)]
        if self.function is not None:
            found = [np.asarray(x, dtype=float).ravel() for x in self.function(t)]
        for name, motion in self.functions.items():
            try:
                parts = [np.atleast_1d(np.asarray(x, dtype=float)) for x in motion(t)]
                shapes = [x.shape for x in parts]
            except TypeError:
                shapes = []
            width = model.joint(name).type.nv
            if shapes != [(width,)] * 3:
                raise ArgumentError(
                    f"simulate: the prescribed motion of {name!r} returned {motion(t)!r}, expected coordinates, speeds and "
                    f"accelerations, {width} of each; a casadi.Function of t alone gives coordinates"
                )
            for x, part, s in zip(
                found, parts, (model.q_slice(name), *2 * (model.v_slice(name),)), strict=True
            ):
                x[s] = part
        return found[0], found[1], found[2]

    def check(self, start: float, duration: float) -> None:
        """Refuse functions whose speeds or accelerations are not the derivatives of what they give.

        Compared at some times with differences over a millionth of a second or of the run; a corner may lie at one of them.
        """
        d = 1e-6 * min(1.0, duration)
        times = start + duration * np.array([0.137, 0.319, 0.523, 0.741, 0.937])
        for name in self.functions:
            s = self.model.q_slice(name), self.model.v_slice(name), self.model.v_slice(name)
            rows = [[self.at(float(t + x)) for x in (-d, 0.0, d)] for t in times]
            for order, what in ((1, "speeds"), (2, "accelerations")):
                wrong = []
                for t, (before, now, after) in zip(times, rows, strict=True):
                    slope = (after[order - 1][s[order - 1]] - before[order - 1][s[order - 1]]) / (2 * d)
                    given = now[order][s[order]]
                    size = np.max(np.abs(now[order - 1][s[order - 1]]))
                    close = 1e-3 * max(np.max(np.abs(slope)), np.max(np.abs(given))) + 1e-9 * size / d + 1e-6
                    if np.max(np.abs(slope - given)) > close:
                        wrong.append((t, given, slope))
                if len(wrong) > len(times) // 2:
                    t, given, slope = wrong[0]
                    raise ArgumentError(
                        f"simulate: the prescribed motion of {name!r} returned {what} {given} at t = {t:.6g} s, but its "
                        f"{'coordinates' if order == 1 else 'speeds'} change at {slope} per second there; a casadi.Function "
                        "of t alone gives coordinates, and is differentiated"
                    )

    def imposed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """A state with its prescribed part put in place."""
        q_p, v_p, _ = self.at(t)
        return np.where(self._prescribed_q, q_p, q), np.where(self.mask, v_p, v)

    @cached_property
    def _prescribed_q(self) -> Array:
        model = self.model
        found = np.zeros(model.nq, dtype=bool)
        for owner in model.space:
            found[owner.q] = bool(owner.type.nv) and self.mask[owner.v.start]
        return found


def _checked_motion(nq: int, motion: ca.Function, name: str) -> ca.Function:
    sizes = [motion.numel_in(k) for k in range(motion.n_in())]
    results = [motion.numel_out(k) for k in range(motion.n_out())]
    if sizes != [1] or results != [nq]:
        raise ArgumentError(
            f"simulate: prescribed {name!r} maps sizes {sizes} to {results}, expected a casadi.Function of t that gives "
            f"{nq} coordinates"
        )
    return motion if motion.is_a("SXFunction") else motion.expand()


def _motion(model: Model, given: Mapping[str, ca.Function]) -> ca.Function:
    """q, v and a of the prescribed joints by differentiation; zero elsewhere."""
    t = ca.SX.sym("t")
    q, v, a = ca.SX.zeros(model.nq), ca.SX.zeros(model.nv), ca.SX.zeros(model.nv)
    for name, function in given.items():
        x = ca.SX(function(t))
        q[model.q_slice(name)] = x
        v[model.v_slice(name)] = ca.jacobian(x, t)
        a[model.v_slice(name)] = ca.jacobian(ca.jacobian(x, t), t)
    return ca.Function("motion", [t], [q, v, a])
