"""What is simulated: a model and everything that acts on it, checked and sorted by what can be compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.engine.kernel import Argument, Kernel
from alembert.engine.source import FunctionSource
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.model.printing import unknown
from alembert.simulate.controllers import Drive, Drives, Law, Sampled, efforts_from
from alembert.simulate.schemes import Point
from alembert.simulate.stepping import Plant
from alembert.simulate.tangent import SymbolicManifold

Array = np.ndarray
STAGE = 0.1  # how far open, relative to its size, a loop may be at the stages of a step; ends of steps are projected


class System:
    """Efforts add up: constant ones, those of controllers (through the drives), and what is held of sampled ones."""

    def __init__(
        self,
        model: Model,
        *,
        batch: tuple[int, ...],
        controller: Any,
        efforts: Any,
        wrenches: Mapping[str, Any] | None,
        prescribed: Mapping[str, Any] | None,
        drives: Mapping[str, Drive] | None,
        parameters: Mapping[str, Any] | None,
    ) -> None:
        self.model, self.batch = model, batch
        self.constrained = model.is_constrained
        self.parameters = dict(parameters) if parameters else None
        self.efforts = self._efforts(efforts)
        self.symbolic_laws: list[ca.Function] = []
        self.laws: list[Law] = []
        self.sampled: tuple[Sampled, ...] = ()
        self._sort_controllers(controller)
        self.drives = Drives.of(model, drives) if drives else None
        self._sort_wrenches(wrenches or {})
        self._sort_motions(prescribed or {})
        if self.constrained and prescribed:
            raise UnsupportedError(
                "simulate: prescribed motion and a model with loops or couplings do not go together"
            )
        if parameters and not model.parameters:
            raise ArgumentError("simulate: parameters are given, but the model has none")

    # --- sorting -----------------------------------------------------------------------------------------------

    def _efforts(self, efforts: Any) -> Array:
        model = self.model
        if efforts is None:
            return np.zeros(model.nv)
        if isinstance(efforts, Mapping):
            return model._by_name("simulate", efforts, "efforts")[1]
        return model._numbers("simulate", "efforts", efforts, model.nv)

    def _sort_controllers(self, controller: Any) -> None:
        given = (
            controller if isinstance(controller, list | tuple) else [] if controller is None else [controller]
        )
        sampled = []
        for k, law in enumerate(given):
            who = f"controller[{k}]" if isinstance(controller, list | tuple) else "controller"
            if isinstance(law, Sampled):
                sampled.append(law)
            elif isinstance(law, ca.Function):
                self.symbolic_laws.append(_checked_law(self.model, law, who))
            elif callable(law):
                self.laws.append(law)
            else:
                raise ArgumentError(
                    f"simulate: {who} is {law!r}, expected a function u(t, q, v), a casadi.Function or Sampled(...)"
                )
        self.sampled = tuple(sampled)

    def _sort_wrenches(self, wrenches: Mapping[str, Any]) -> None:
        self.wrench_laws = {frame: law for frame, law in wrenches.items() if callable(law)}
        self.wrenches = {frame: value for frame, value in wrenches.items() if frame not in self.wrench_laws}
        for frame in wrenches:
            self.model.frame(frame)

    def _sort_motions(self, prescribed: Mapping[str, Any]) -> None:
        model = self.model
        self.prescribed = np.zeros(model.nv, dtype=bool)
        self.motions: dict[str, Callable[[float], Any]] = {}
        symbolic: dict[str, ca.Function] = {}
        for name, motion in prescribed.items():
            if name not in model._joint_index:
                raise ArgumentError(unknown("simulate: prescribed: no joint", name, model._joint_index))
            joint = model.joint(name).type
            if not joint.is_vector_space:
                raise UnsupportedError(
                    f"simulate: prescribed motion of joint {name!r} and joint type {joint.kind!r}: only joints whose "
                    "coordinates simply add can be prescribed"
                )
            self.prescribed[model.v_slice(name)] = True
            if isinstance(motion, ca.Function):
                symbolic[name] = _checked_motion(joint.nq, motion, name)
            elif callable(motion):
                self.motions[name] = motion
            else:
                value = model._numbers("simulate", f"prescribed {name!r}", np.atleast_1d(motion), joint.nq)
                t = ca.SX.sym("t")
                symbolic[name] = ca.Function("hold", [t], [ca.SX(value)])
        self.motion = _motion(model, symbolic) if symbolic else None

    # --- what can be compiled ----------------------------------------------------------------------------------

    @property
    def has_memory(self) -> bool:
        return self.drives is not None and self.drives.remember

    @property
    def python(self) -> bool:
        """Whether the dynamics call Python functions, or are not a single sweep."""
        return bool(self.laws or self.wrench_laws or self.motions or self.constrained)

    @cached_property
    def law(self) -> ca.Function | None:
        """All symbolic controllers and the saturation of their drives, as one function of `SX`."""
        if not self.symbolic_laws:
            return None
        model = self.model
        inputs = [ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)]
        total = ca.SX.zeros(model.nv)
        for law in self.symbolic_laws:
            total = total + ca.SX(law(*inputs))
        if self.drives is not None:
            for k, limit in enumerate(self.drives.limit):
                if np.isfinite(limit):
                    total[k] = ca.fmin(ca.fmax(total[k], -limit), limit)
        return ca.Function("law", inputs, [ca.densify(total)])

    def plant(self, *, held: bool) -> Plant:
        """With `held`, efforts come as numbers from outside, whatever the controllers are."""
        return Plant(
            self.model,
            wrenches=bool(self.wrenches or self.wrench_laws),
            controller=None if held else self.law,
            motion=self.motion,
            prescribed=tuple(bool(x) for x in self.prescribed),
        )

    # --- numbers -----------------------------------------------------------------------------------------------

    @cached_property
    def _law_kernel(self) -> Kernel:
        model, law = self.model, self.law
        assert law is not None
        arguments = [Argument("t", (1,)), Argument("q", (model.nq,)), Argument("v", (model.nv,))]
        key = f"simulate:law:{law.serialize()}"
        return Kernel(
            "controller", arguments, [Argument("u", (model.nv,))], key=key, build=lambda: FunctionSource(law)
        )

    @cached_property
    def law_slopes(self) -> Kernel:
        """du/dq (tangent) and du/dv of the symbolic controllers."""
        model, law = self.model, self.law
        assert law is not None
        arguments = [Argument("t", (1,)), Argument("q", (model.nq,)), Argument("v", (model.nv,))]
        results = [Argument("dq", (model.nv, model.nv)), Argument("dv", (model.nv, model.nv))]

        def build() -> FunctionSource:
            t, q, v = (ca.SX.sym(a.name, a.size) for a in arguments)
            d = ca.SX.sym("d", model.nv)
            u = ca.SX(law(t, SymbolicManifold(model).integrate(q, d), v))
            dq = ca.substitute(ca.jacobian(u, d), d, ca.SX.zeros(model.nv))
            dv = ca.substitute(ca.jacobian(u, v), d, ca.SX.zeros(model.nv))
            return FunctionSource(ca.Function("slopes", [t, q, v], [ca.densify(dq), ca.densify(dv)]))

        return Kernel("controller", arguments, results, key=f"simulate:slopes:{law.serialize()}", build=build)

    def command(self, t: Any, q: Array, v: Array) -> Array:
        """What the continuous controllers ask for, saturated; t is a time, or (..., 1) times."""
        total = np.zeros(self.model.nv)
        for law in self.laws:
            total = total + efforts_from(self.model, law(t, q, v), "a controller")
        if self.drives is not None:
            total = self.drives.saturate(total)
        if self.law is not None:
            total = total + self._law_kernel(np.atleast_1d(np.asarray(t, dtype=float)), q, v)
        return total

    def wrenches_at(self, t: float, q: Array, v: Array) -> dict[str, Any] | None:
        if not (self.wrenches or self.wrench_laws):
            return None
        return {**self.wrenches, **{frame: law(t, q, v) for frame, law in self.wrench_laws.items()}}

    def wrench_array(self, t: float, q: Array, v: Array) -> Array:
        """(..., nodes, 6) for the compiled loop."""
        found = self.wrenches_at(t, q, v)
        assert found is not None
        return self.model._wrench_array("simulate", found, self.parameters)

    def parameter_array(self) -> Array:
        return self.model._parameter_array("simulate", self.parameters)

    def motion_at(self, t: float) -> tuple[Array, Array, Array]:
        """q, v and a of all degrees of freedom; zero where they are not prescribed."""
        model = self.model
        found = [np.zeros(n) for n in (model.nq, model.nv, model.nv)]
        if self.motion is not None:
            found = [np.asarray(x, dtype=float).ravel() for x in self.motion(t)]
        for name, motion in self.motions.items():
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

    def imposed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """A state with its prescribed part put in place."""
        if not np.any(self.prescribed):
            return q, v
        q_p, v_p, _ = self.motion_at(t)
        return np.where(self._prescribed_q, q_p, q), np.where(self.prescribed, v_p, v)

    @cached_property
    def _prescribed_q(self) -> Array:
        model = self.model
        found = np.zeros(model.nq, dtype=bool)
        for sq, sv in zip(model._q_slices, model._v_slices, strict=True):
            found[sq] = sv.stop > sv.start and self.prescribed[sv.start]
        return found

    def point(self, t: float, q: Array, v: Array, effort: Array, *, held: bool = False) -> Point:
        """The accelerations under the efforts given and, unless those are all, the continuous controllers."""
        q, v = self.imposed(t, q, v)
        tau = effort if held else effort + self.command(t, q, v)
        wrenches = self.wrenches_at(t, q, v)
        model = self.model
        if np.any(self.prescribed):
            a_given = self.motion_at(t)[2]
            free = (~self.prescribed).astype(float)
            a, _ = model._evaluate(
                "hybrid_dynamics", (q, v, tau, a_given, free), wrenches=wrenches, parameters=self.parameters
            )
        elif self.constrained:
            a = model.constrained_dynamics(
                q, v, tau, wrenches=wrenches, parameters=self.parameters, closure_tolerance=STAGE
            ).accelerations
        else:
            a = model.forward_dynamics(q, v, tau, wrenches=wrenches, parameters=self.parameters)
        return Point(t, q, v, a)

    def derivatives(self, t: float, q: Array, v: Array, tau: Array) -> Any:
        """Of the accelerations with respect to q, v and tau, under efforts tau."""
        given: dict[str, Any] = {"wrenches": self.wrenches_at(t, q, v), "parameters": self.parameters}
        if self.constrained:
            return self.model.constrained_dynamics_derivatives(q, v, tau, closure_tolerance=STAGE, **given)
        return self.model.forward_dynamics_derivatives(q, v, tau, **given)

    def distance(self, q: Array) -> float:
        """The largest residual of loops and couplings [m, rad]."""
        return float(np.max(np.abs(self.model.constraint_residual(q, parameters=self.parameters))))

    def project(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Back onto the surface of closed loops, where there are any."""
        if not self.constrained:
            return q, v
        state = self.model.project(q, v, parameters=self.parameters)
        return state.q, state.v

    @property
    def dissipates(self) -> bool:
        return any(joint.friction is not None for joint in self.model.joints)

    @property
    def conserves_energy(self) -> bool:
        """Nothing feeds energy in or takes it out."""
        return not (
            self.dissipates
            or np.any(self.efforts)
            or self.laws
            or self.symbolic_laws
            or self.sampled
            or self.wrenches
            or self.wrench_laws
            or np.any(self.prescribed)
        )


def _checked_law(model: Model, law: ca.Function, who: str) -> ca.Function:
    sizes = [law.numel_in(k) for k in range(law.n_in())]
    results = [law.numel_out(k) for k in range(law.n_out())]
    if sizes != [1, model.nq, model.nv] or results != [model.nv]:
        raise ArgumentError(
            f"simulate: {who} maps sizes {sizes} to {results}, expected a casadi.Function of t (1), q ({model.nq}) and "
            f"v ({model.nv}) that gives {model.nv} efforts"
        )
    return law if law.is_a("SXFunction") else law.expand()


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


def as_sequence(events: Any) -> Sequence[Any]:
    return events if isinstance(events, list | tuple) else (events,)
