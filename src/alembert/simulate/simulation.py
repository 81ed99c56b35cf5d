"""What is simulated: a model and everything that acts on it, checked and sorted by what can be compiled.

The surface on which a simulated system moves: the states that keep the loops, couplings and equations that hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.constraints import saddle
from alembert.constraints.results import CLOSED
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError, NumericalError
from alembert.expression import evaluate
from alembert.model import Model
from alembert.simulate import chart_equation
from alembert.simulate.actuators import JointDrives
from alembert.simulate.closed_loops import STAGE, compiles
from alembert.simulate.controllers import BoundLaw, SymbolicLaw
from alembert.simulate.events import Event, Topology
from alembert.simulate.feedback import Feedback, Motions
from alembert.simulate.forces import GravityField
from alembert.simulate.inputs import Inputs, Loads, Stabilisation, as_sequence
from alembert.simulate.schedule import CompiledSchedule, Schedule
from alembert.simulate.schemes import StatePoint
from alembert.simulate.sensors import Instrument, instruments
from alembert.simulate.step_code import Layout, StepModel
from alembert.simulate.symmetries import FreeRoots

Array = np.ndarray


class ConstraintSurface:
    """Which constraints hold, and what is prescribed besides, is asked of the system each time."""

    def __init__(self, system: Simulation) -> None:
        self.system = system

    def _terms(self, q: Array, v: Array, active: Any, parameters: Any) -> tuple[Any, Any, Any]:
        """The state as it was read, the terms of the rows there, and the system of those that are active."""
        compute = self.system.model.constrained_compute
        s, terms = compute.constraint_terms("simulate", q, {"v": v}, active, parameters)
        return s, terms, compute.rows.system("simulate", active)

    def distance(self, q: Array) -> float:
        """The largest residual of loops and couplings [m, rad]."""
        if not self.system.active:
            return 0.0
        residual = self.system.model.constraint_residual(
            q, active=self.system.active, parameters=self.system.parameters
        )
        return float(np.max(np.abs(residual), initial=0.0))

    def chosen(self, q: Array, v: Array, *, unique: bool = False, along_time: bool = False) -> Array:
        """(..., rows): the rows of a minimal set of constraints at each state, 1, and 0 for the others.

        With `unique`, refuse sets that leave out rows which do not vanish: forces are a choice then. `along_time`: states
        are (*batch, N, n), and parameters vary over the batch alone.
        """
        active, parameters = self.system.active if unique else None, self.system.parameters
        if along_time and parameters:
            parameters = {name: np.asarray(x, dtype=float)[..., None] for name, x in parameters.items()}
        s, terms, constraints = self._terms(q, v, active, parameters)
        moving = terms.jacobian * ~self.system.prescribed  # drives hold the others
        found, _ = saddle.choose_each(moving, constraints.groups, constraints.tolerances(terms))
        if unique:
            # of the whole rows: what drives hold already has no force of its own either
            length = np.linalg.norm(terms.jacobian, axis=-1) / saddle.scales(
                terms.jacobian, constraints.groups
            )
            left = np.where(found, 0.0, length)
            if np.max(left, initial=0.0) > saddle.RANK:
                row = int(np.argmax(np.max(left, axis=0)))
                raise NumericalError(
                    f"simulate: forces read reactions, but the constraints are redundant ({constraints.owner_name(row)} "
                    "follows from others, or from prescribed motion), so that reactions are not unique; take a loop out, or "
                    "close it by a pair with fewer rows (PointOnLine, Distance, Spherical)"
                )
        rows = constraints.over_all(found.astype(float))
        return rows.reshape(*s.shape, rows.shape[-1])

    def check_closed(self, q: Array, v: Array) -> float:
        """Refuse to start where loops of the model are open, or speeds open them; how far off, relative to their size."""
        s, terms, constraints = self._terms(q, v, self.system.active, self.system.parameters)
        constraints.check_closed(s, terms, s.vectors[0], CLOSED)
        return float(np.max(terms.slack, initial=0.0))

    def choose(self, q: Array, v: Array) -> saddle.Choice | None:
        """Have a minimal set of constraints that depends on this state alone, not on those that came before."""
        if not (self.system.active and self.system.model.is_constrained):
            return None
        _, terms, constraints = self._terms(q, v, self.system.active, self.system.parameters)
        constraints.kept = constraints.chosen(terms, 0)
        return constraints.kept

    def project(self, q: Array, v: Array) -> tuple[Array, Array]:
        """Back onto the surface, where there is one."""
        system = self.system
        if not (system.constrained and system.active) or system.stabilisation.method != "projection":
            return q, v
        return self.nearest(q, v)

    def nearest(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The state nearest to one that has drifted; prescribed coordinates and speeds stay."""
        system = self.system
        if system.prescribes:
            return system.model.constrained_compute.constraint_projection_holding(
                q, v, np.flatnonzero(system.prescribed), system.active, system.parameters
            )
        state = system.model.project(q, v, active=system.active, parameters=system.parameters)
        return state.q, state.v


class Simulation:
    """Efforts add up: constant ones, those of controllers (through the drives), and what is held of sampled ones."""

    def __init__(self, own: Model, inputs: Inputs, batch: tuple[int, ...]) -> None:
        """`own` is the model as `inputs.model` gives it; `model` also has the constraints that may hold (`topology`)."""
        model = inputs.with_switches(own)
        parameters = inputs.parameters
        self.inputs, self.own = inputs, own
        self.releases = inputs.releases
        self.model, self.batch = model, batch
        self.stabilisation = Stabilisation()
        self.constrained = model.is_constrained
        self.own_parameters = dict(parameters) if parameters else None
        self.topology = Topology(tuple(self.own.constrained_compute.rows.names))
        self.effort = np.zeros(model.nv)
        """what is given as numbers at present, for reactions"""
        self.loads = Loads(model, inputs, self.parameter_array)
        self.drives = JointDrives.of(model, inputs.drives) if inputs.drives else None
        self.feedback = Feedback(model, inputs.controller, self.drives, as_sequence(inputs.sensors))
        self.x = self.start_states()
        """the states of continuous controllers at present, for reactions and accelerometers"""
        self.laws, self.sampled = self.feedback.laws, self.feedback.sampled
        self.instruments: tuple[Instrument, ...] = ()
        sensors = as_sequence(inputs.sensors)
        if self.sampled or sensors:
            self.instruments = instruments(own, sensors, self.sampled, batch)
        self.bound_laws = self._bind_laws()
        self.prescribed_motions = Motions(model, inputs.prescribed or {}, self.loads.tables)
        self.prescribes, self.prescribed = bool(inputs.prescribed), self.prescribed_motions.mask
        """whether and which speeds follow a motion"""
        acted = np.flatnonzero(self.prescribed & self.loads.acted_on)
        if len(acted):
            raise ArgumentError(
                f"simulate: efforts act on {model.speed_names[acted[0]]!r}, which follows a prescribed motion, expected "
                "none there; run.required_efforts has what its drive gives"
            )
        if parameters and not self.own.parameters:
            raise ArgumentError("simulate: parameters are given, but the model has none")

    @cached_property
    def free_roots(self) -> FreeRoots:
        return FreeRoots(self.model, self.prescribed)

    @cached_property
    def surface(self) -> ConstraintSurface:
        return ConstraintSurface(self)

    # --- what holds --------------------------------------------------------------------------------------------

    @property
    def switches(self) -> bool:
        """Whether other constraints may hold in the course of the run."""
        return self.model is not self.own or self.releases

    @property
    def watched_events(self) -> tuple[Event, ...]:
        """Events one by one, those of stops and planes among them."""
        return tuple(
            x
            for event in self.inputs.watched
            for x in ([event] if isinstance(event, Event) else event.events(self))
        )

    @property
    def active(self) -> tuple[str, ...]:
        """The loops, couplings and equations that hold."""
        return self.topology.active

    @property
    def parameters(self) -> dict[str, Any] | None:
        """Of the model, the places at which constraints hold, and masses as they are at present."""
        if not (self.topology.values or self.feedback.flows):
            return self.own_parameters
        return {**(self.own_parameters or {}), **self.topology.values, **self.masses(self.x)}

    def masses(self, x: Array) -> dict[str, Array]:
        """Of what flows out, by the parameter, from states of controllers (..., states)."""
        return {flow.controller.parameter: x[..., k] for k, flow in self.feedback.flows}

    def parameters_along(self, x: Array | None) -> dict[str, Any] | None:
        """Of the model as it was given, (..., 1), and masses that fall (..., N), from states of controllers."""
        given = self.own_parameters or {}
        found = {name: np.asarray(value, dtype=float)[..., None] for name, value in given.items()}
        return found | ({} if x is None else self.masses(x)) or None

    def pulsed(self, x: Array, readings: Mapping[str, Array]) -> Array:
        """States of controllers with the masses that are left after what laws have told to be burnt."""
        found = x.copy()
        for k, flow in self.feedback.flows:
            if flow.controller.burnt is not None:
                found[..., k] = self.start_states()[..., k] - readings[flow.controller.burnt][..., 0]
        return found

    @property
    def pulses(self) -> bool:
        """Whether masses fall by what laws tell."""
        return any(flow.controller.burnt is not None for _, flow in self.feedback.flows)

    def start_states(self) -> Array:
        """Of controllers; masses have the values of their parameters."""
        x = self.feedback.start(self.batch)
        values = {**self.own.parameter_values, **(self.own_parameters or {})}
        for k, flow in self.feedback.flows:
            x[..., k] = values[flow.controller.parameter]
        return x

    def switch(
        self,
        *,
        on: Sequence[str] = (),
        off: Sequence[str] = (),
        values: Mapping[str, float] | None = None,
        sides: Mapping[str, float] | None = None,
    ) -> None:
        """Let constraints hold or cease to."""
        kept = tuple(name for name in self.active if name not in off and name not in on)
        now = self.topology
        self.topology = Topology(
            (*kept, *on), {**now.values, **(values or {})}, {**now.sides, **(sides or {})}
        )

    def reaction(self, name: str, t: float, q: Array, v: Array) -> float:
        """The effort of a coupling that holds on its joint."""
        tau, wrenches = self.all_efforts(t, q, v, self.effort), self.loads.wrenches_at(t, q, v)
        if self.prescribes:
            tau = self._hybrid(t, q, v, tau, wrenches)[1]
        found = self.model.constrained_dynamics(
            q,
            v,
            tau,
            active=self.active,
            wrenches=wrenches,
            parameters=self.parameters,
            closure_tolerance=STAGE,
        )
        return float(found.reactions[name])

    # --- sensors -----------------------------------------------------------------------------------------------

    def _bind_laws(self) -> dict[int, BoundLaw]:
        """Sampled laws on expressions, by their numbers, once all sizes are known."""
        sizes: dict[str, int | None] = {x.name: x.entries for x in self.instruments}
        sizes |= {name: x.size for law in self.sampled for name, x in law.posts.items()}
        return {
            k: BoundLaw.of(self.model, law, sizes)
            for k, law in enumerate(self.sampled)
            if isinstance(law.law, SymbolicLaw)
        }

    def schedule(self, h: float) -> Schedule | None:
        """What happens at instants, on a grid of steps h."""
        if not (self.sampled or self.instruments):
            return None
        return Schedule.on_grid(self.sampled, self.instruments, h)

    def gravity_at(self, t: float, x: Array) -> Array:
        """How points (..., 3) fall: by the model's gravity, or a field in its place, and by fields among the forces."""
        given = (self.inputs.gravity, *as_sequence(self.inputs.forces))
        fields = [f for f in given if isinstance(f, GravityField)]
        return sum((f.acceleration(t, x) for f in fields), self._uniform_gravity())

    def _uniform_gravity(self) -> Array:
        values = {**self.own.parameter_values, **(self.own_parameters or {})}
        return np.stack(
            np.broadcast_arrays(*(np.asarray(evaluate(g, values), float) for g in self.own.gravity)), -1
        )

    # --- what can be compiled ----------------------------------------------------------------------------------

    @property
    def has_memory(self) -> bool:
        """Whether drives carry out commands in steps of their own."""
        return self.feedback.drives_add_up

    @property
    def python(self) -> bool:
        """Whether the dynamics call Python functions, or are not compiled as a whole."""
        return bool(
            self.laws
            or self.loads.wrench_laws
            or self.prescribed_motions.functions
            or (self.constrained and not self.compiles)
            or self.loads.tables.long
        )

    @property
    def compiles(self) -> bool:
        """Whether the compiled loop keeps the constraints, as they are, by projection."""
        return not self.switches and self.stabilisation.method == "projection" and compiles(self.model)

    @property
    def law(self) -> ca.Function | None:
        """All symbolic controllers, as one function of `SX`."""
        return self.feedback.law

    def command(
        self, t: Any, q: Array, v: Array, x: Array | None = None, *, along_time: bool = False
    ) -> Array:
        """What the continuous controllers ask for, saturated; t is a time, or (..., 1) times. `x` are their states."""
        return self.feedback.command(
            t, q, v, self.x if x is None else x, self._for_controllers(), along_time=along_time
        )

    def rates(self, t: float, q: Array, v: Array, x: Array) -> Array:
        """x' of the states of continuous controllers."""
        return self.feedback.rates(t, q, v, x, self._for_controllers())

    def _for_controllers(self) -> Array:
        return self.parameter_array() if self.feedback.is_compiled and self.model.parameters else np.zeros(0)

    def plant(self, *, held: bool, sampling: CompiledSchedule | None = None) -> StepModel:
        """With `held`, efforts come as numbers from outside, whatever the controllers are."""
        return StepModel(
            self.model,
            wrenches=self.loads.has_wrenches,
            controller=self.feedback.silent_law if held else self.law,
            states=self.feedback.size,
            motion=self.prescribed_motions.function,
            prescribed=tuple(bool(x) for x in self.prescribed),
            elements=self.loads.elements,
            sampling=sampling,
            flows=tuple((k, flow.index) for k, flow in self.feedback.flows),
            burnt=tuple(
                (k, flow.index, flow.controller.burnt)
                for k, flow in self.feedback.flows
                if flow.controller.burnt
            ),
            reading=self.loads.reading,
        )

    @cached_property
    def chart_code(self) -> tuple[Kernel, Kernel, Layout]:
        """What error control evaluates, in machine code: rates, the way back to the constraints, and the state of both."""
        plant = self.plant(held=False)
        return (
            chart_equation.rates_kernel(plant),
            chart_equation.settling_kernel(plant),
            chart_equation.chart_layout(plant),
        )

    # --- what else acts ----------------------------------------------------------------------------------------

    def slopes(self, t: float, q: Array, v: Array, x: Array) -> tuple[Array, Array]:
        """d/d(q, v, x) of all efforts that depend on the state, (nv, 2 nv + states), and of x'; q by its tangent."""
        nv = self.model.nv
        dtau, dx = self.controller_slopes(t, q, v, x)
        if self.loads.elements is not None:
            dtau[:, :nv] += (found := self.loads.slopes(t, q, v))[0]
            dtau[:, nv : 2 * nv] += found[1]
        return dtau, dx

    def controller_slopes(self, t: float, q: Array, v: Array, x: Array) -> tuple[Array, Array]:
        """The same of what the continuous controllers ask for."""
        nv, n = self.model.nv, self.feedback.size
        if self.law is None:
            return np.zeros((nv, 2 * nv)), np.zeros((0, 2 * nv))
        dtau, dx = self.feedback.slopes(t, q, v, x, self._for_controllers())
        return dtau.copy(), dx.reshape(n, 2 * nv + n)

    def start_parameters(self) -> Array:
        """As an array: masses that fall have the values with which they started, also where a run goes on."""
        given = self.parameters
        if self.feedback.flows:
            given = {**(given or {}), **self.masses(self.start_states())}
        return self.model.compute.parameter_array("simulate", given)

    def parameter_array(self) -> Array:
        return self.model.compute.parameter_array("simulate", self.parameters)

    def all_efforts(
        self,
        t: float,
        q: Array,
        v: Array,
        effort: Array,
        *,
        x: Array | None = None,
        held: bool = False,
        complete: bool = False,
        reading: bool = True,
    ) -> Array:
        """Efforts given as numbers, those of continuous controllers (unless `held`), tables (unless `complete`) and
        what else acts, what reads reactions among it (unless `reading` is False)."""
        tau = effort if held else effort + self.command(t, q, v, x)
        if self.loads.tables.long and not complete:
            tau = tau + self.loads.tables.long_efforts(t)
        if self.loads.elements is not None:
            kept, other, fed, _ = self.loads.elements_at(t, q, v)
            tau = tau + kept + other if complete else tau + kept + other + fed
        if self.loads.reading is not None and reading:
            tau = tau + self.reading_efforts(t, q, v, tau)
        return tau

    def reading_efforts(self, t: Any, q: Array, v: Array, tau: Array) -> Array:
        """(..., nv): of what reads reactions, besides all other efforts tau; t is a time, or (N, 1) times."""
        reading = self.loads.reading
        return np.zeros(self.model.nv) if reading is None else reading.efforts(self, t, q, v, tau)

    def point(
        self,
        t: float,
        q: Array,
        v: Array,
        effort: Array,
        *,
        x: Array | None = None,
        held: bool = False,
        complete: bool = False,
        within: float | None = None,
    ) -> StatePoint:
        """The accelerations under the efforts given.

        To them come those of continuous controllers, with states x, unless `held`, and those of tables unless `complete`.
        """
        if self.feedback.flows and x is not None:
            self.x = x
        q, v = self.imposed(t, q, v)
        tau = self.all_efforts(t, q, v, effort, x=x, held=held, complete=complete)
        wrenches = self.loads.wrenches_at(t, q, v, within)
        model = self.model
        if self.prescribes:
            a, _ = self._hybrid(t, q, v, tau, wrenches)
        elif self.constrained:
            u, away = self.free_roots.apart(v)
            a = model.constrained_dynamics(
                q,
                u,
                tau,
                active=self.active,
                wrenches=wrenches,
                parameters=self.parameters,
                closure_tolerance=STAGE,
            ).accelerations
            a = a - away if self.free_roots.roots else a
            if self.stabilisation.method != "projection":
                dq, dv = model.constrained_compute.constraint_corrections(q, v, self.active, self.parameters)
                return StatePoint(t, q, *self.stabilisation.rates(v, a, dq, dv))
        else:
            a = self.free_roots.accelerations(q, v, tau, wrenches=wrenches, parameters=self.parameters)
        return StatePoint(t, q, v, a)

    def _hybrid(self, t: float, q: Array, v: Array, tau: Array, wrenches: Any) -> tuple[Array, Array]:
        """Accelerations and efforts where some degrees of freedom follow their motions."""
        a_given = self.prescribed_motions.at(t)[2]
        if self.constrained:
            return self.model.constrained_compute.constrained_hybrid(
                q,
                v,
                np.where(self.prescribed, 0.0, tau),
                a_given,
                self.prescribed,
                wrenches,
                self.parameters,
                function="simulate",
                active=self.active,
                closed=STAGE,
            )
        free = (~self.prescribed).astype(float)
        a, total = self.free_roots.hybrid(
            q, v, tau, a_given, free, wrenches=wrenches, parameters=self.parameters
        )
        return a, total

    def required_efforts(self, t: float, q: Array, v: Array, effort: Array, x: Array | None = None) -> Array:
        """What prescribed degrees of freedom take besides the force elements, zero for the others; `effort` is complete.

        `x` are states of controllers, for masses that fall.
        """
        if self.feedback.flows and x is not None:
            self.x = x[..., : self.feedback.size]
        tau = self.all_efforts(t, q, v, effort, held=True, complete=True)
        _, total = self._hybrid(t, q, v, tau, self.loads.wrenches_at(t, q, v))
        if self.loads.elements is not None:
            kept, other, _, _ = self.loads.elements_at(t, q, v)
            total = total - kept - other
        if self.loads.reading is not None:
            base = self.all_efforts(t, q, v, effort, held=True, complete=True, reading=False)
            total = total - self.reading_efforts(t, q, v, base)
        return np.where(self.prescribed, total, 0.0)

    def derivatives(self, t: float, q: Array, v: Array, tau: Array, within: float | None = None) -> Any:
        """Of the accelerations with respect to q, v and tau, under efforts tau."""
        given: dict[str, Any] = {
            "wrenches": self.loads.wrenches_at(t, q, v, within),
            "parameters": self.parameters,
        }
        if self.constrained:
            given |= {"active": self.active, "closure_tolerance": STAGE}
            return self.model.constrained_dynamics_derivatives(q, v, tau, **given)
        return self.model.forward_dynamics_derivatives(q, v, tau, **given)

    def acceleration_slopes(
        self, t: float, q: Array, v: Array, tau: Array, slopes: Array, within: float | None = None
    ) -> Array:
        """d/d(q, v, z) of the accelerations (nv, 2 nv + size) under efforts tau, where those that do not read reactions have
        the `slopes` d tau/d(q, v, z).

        Prescribed speeds p take efforts u with (dv/dt)_p as it is given; with A = da/dtau, d_p a = 0 makes, of the slopes D
        at constant u, D - A_p A_pp^-1 D_p.
        """
        nv, wrenches = self.model.nv, self.loads.wrenches_at(t, q, v, within)
        if self.prescribes:
            tau = self._hybrid(t, q, v, tau, wrenches)[1]
        d = self.derivatives(t, q, v, tau, within)
        A = d.dtau
        if self.loads.reading is not None:
            X, U = self.loads.reading.feedback_slopes(self, t, q, v, tau, d, wrenches)
            slopes, A = slopes.copy(), np.linalg.solve(X.T, A.T).T
            slopes[:, : 2 * nv] += U
        found = A @ slopes
        found[:, : 2 * nv] += np.hstack([d.dq, d.dv])
        if self.prescribes:
            p = self.prescribed
            found -= A[:, p] @ np.linalg.lstsq(A[np.ix_(p, p)], found[p], rcond=1e-12)[0]
            found[p], found[:, : 2 * nv][:, np.tile(p, 2)] = 0.0, 0.0
        return found

    @property
    def present_parameters(self) -> dict[str, Any] | None:
        """Of the model as it was given, with masses as they are at present."""
        return {**(self.own_parameters or {}), **self.masses(self.x)} or None

    def energy(self, t: float, q: Array, v: Array) -> float:
        """Kinetic and potential, that of force elements included."""
        E = self.own.energy(q, v, parameters=self.present_parameters)
        return float(E if self.loads.elements is None else E + self.loads.elements_at(t, q, v)[3])

    def imposed(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """A state with its prescribed part put in place."""
        return self.prescribed_motions.imposed(t, q, v) if self.prescribes else (q, v)

    def settled(self, t: float, q: Array, v: Array) -> tuple[Array, Array]:
        """A state with its prescribed part put in place, and loops closed around it."""
        return self.surface.project(*self.imposed(t, q, v))

    @property
    def dissipates(self) -> bool:
        modal = (body.flexible for body in self.model.bodies if body.flexible is not None)
        damped = any(entry != 0.0 for body in modal for row in body.damping for entry in row)
        return damped or any(joint.friction is not None for joint in self.model.joints)

    @property
    def conserves_energy(self) -> bool:
        """Nothing feeds energy in or takes it out."""
        return not (
            self.dissipates
            or np.any(self.loads.efforts)
            or self.laws
            or self.feedback.is_compiled
            or self.sampled
            or self.loads.has_wrenches
            or self.loads.tables.all
            or (self.loads.elements is not None and self.loads.elements.does_work)
            or self.loads.reading is not None
            or self.prescribes
        )
