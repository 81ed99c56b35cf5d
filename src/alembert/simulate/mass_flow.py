"""Mass that leaves while nozzles push: a parameter of the model falls in the course of a run, within the steps.

What leaves has the speed of the craft where it was; the rest of its momentum is the thrust. So (q, v) go on without a jump
while the mass falls, and forces act on the mass of that instant. On its way from the tank to the nozzle it goes through a
craft that turns. Of a flow m' along a straight line from r_t to r_n, at w, the craft feels Coriolis' force

    f = -2 m' w x (r_n - r_t)   at the middle of the line,                                                       (1)

the mean over all places r_t that the mass leaves: with its mean place and second moments K per mass,

    n = -m' (r_n + r_t) x (w x (r_n - r_t)) + m' K w   about the origin of both.                                     (2)

That is the damping by the jet, -m' (l^2 - k^2) w for a nozzle l behind the centre of mass and a tank with radius of gyration
k about it (Thomson, Introduction to Space Dynamics, section 7.8; Eke and Wang, J. Applied Mechanics 62 (1995) 855). m, r_t
and K are derivatives of the body's inertia with respect to the parameter: a tank that empties from one end is one whose
centre of mass is an expression of it.

The mass is a state beside those of controllers, integrated by the same scheme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import casadi as ca
import numpy as np

from alembert.arguments import check_known
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import evaluate, names_in
from alembert.model import Model
from alembert.simulate.elements import Places, state_symbols

if TYPE_CHECKING:
    from alembert.model import Body

Array = np.ndarray


@runtime_checkable
class Nozzle(Protocol):
    """Where mass leaves: at a point of a frame, so much a second [kg/s], with a wrench on it (frame's axes and origin)."""

    @property
    def name(self) -> str: ...

    @property
    def frame(self) -> str: ...

    @property
    def at(self) -> tuple[float, ...]: ...

    @property
    def wrench(self) -> Array: ...

    @property
    def flow(self) -> float: ...


@dataclass(frozen=True, eq=False)
class MassFlow:
    """Nozzles (`spacecraft.Thruster`s) that burn a parameter of the model, its propellant [kg]; it goes among controllers.

    `throttle` is how far they are open, 0 to 1: a number, or a `casadi.Function` of t that gives one for all or one each.
    `through=False` leaves out what the flow from tank to nozzle does to a craft that turns, (1).

    With `burnt`, the name of a message of a sampled law, the law pushes and this lets the mass fall by what the message says
    was burnt since the start [kg], at the law's instants: pulses of flight software (`spacecraft.Hardware(tank=...)`).
    """

    nozzles: Sequence[Nozzle]
    parameter: str
    throttle: Any = 1.0
    through: bool = True
    name: str = "propulsion"
    burnt: str | None = None

    is_sampled = False
    state_units = ("kg",)

    def __post_init__(self) -> None:
        given = (self.nozzles,) if isinstance(self.nozzles, Nozzle) else tuple(self.nozzles)
        object.__setattr__(self, "nozzles", given)
        for nozzle in given:
            if not isinstance(nozzle, Nozzle):
                raise ArgumentError(f"MassFlow: nozzles has {nozzle!r}, expected spacecraft.Thruster(...)")
        if not given:
            raise ArgumentError("MassFlow: nozzles is empty, expected one or more")
        if isinstance(self.throttle, ca.Function):
            f = self.throttle
            if f.n_in() != 1 or f.n_out() != 1 or f.numel_in(0) != 1 or f.numel_out(0) not in (1, len(given)):
                raise ArgumentError(
                    f"MassFlow: throttle is {f}, expected a casadi.Function of t that gives 1 or {len(given)} numbers"
                )
            if not f.is_a("SXFunction"):
                object.__setattr__(self, "throttle", f.expand())
        elif not (isinstance(self.throttle, int | float) and 0 <= self.throttle <= 1):
            raise ArgumentError(
                f"MassFlow: throttle is {self.throttle!r}, expected 0 to 1, or a casadi.Function of t"
            )

    @property
    def states(self) -> tuple[str, ...]:
        return (self.parameter,)

    @property
    def law(self) -> MassFlow:
        return self

    def opened(self, t: Any) -> ca.SX:
        """(n,): how far each nozzle is open."""
        share = (
            ca.SX(self.throttle(t)) if isinstance(self.throttle, ca.Function) else ca.SX(float(self.throttle))
        )
        return share if share.numel() == len(self.nozzles) else ca.repmat(share, len(self.nozzles), 1)

    def initial(self) -> Array:
        """Of its state; the run puts the parameter's value there."""
        return np.zeros(1)


class BoundFlow:
    """A flow on a model: efforts and the rate of its mass as a function of (t, q, v, x, p, nothing)."""

    size = 1
    breaks = np.zeros(0)

    def __init__(self, controller: MassFlow, model: Model) -> None:
        self.controller, self.model = controller, model
        check_known(
            "simulate: MassFlow: the model has no parameter", controller.parameter, model.parameter_values
        )
        if model.is_constrained:
            raise UnsupportedError(
                f"simulate: MassFlow and a model with loops or couplings ({model.name!r}) do not go together"
            )
        self.index = [name for name, _ in model.parameters].index(controller.parameter)
        self.bodies = [
            b
            for b in model.bodies
            if controller.parameter in names_in((b.inertia.mass, b.inertia.com, b.inertia.tensor))
        ]
        if not self.bodies:
            raise ArgumentError(
                f"simulate: MassFlow: no mass of the model depends on {controller.parameter!r}, expected a body's inertia "
                "that does"
            )
        for b in self.bodies:
            if b.flexible is not None:
                raise UnsupportedError(
                    f"simulate: MassFlow: {controller.parameter!r} is in the flexible body {b.name!r}, expected a rigid "
                    "one: give the propellant a body of its own on it"
                )
        for nozzle in controller.nozzles:
            model.frame(nozzle.frame)
        if controller.through and controller.burnt is None:
            self._check_way()
        for owner, placement in (
            *((f"joint {j.name!r}", j.placement) for j in model.joints),
            *((f"frame {f.name!r}", f.placement) for f in model.frames),
        ):
            if controller.parameter in names_in((tuple(placement.translation), tuple(placement.quaternion))):
                raise UnsupportedError(
                    f"simulate: MassFlow: the place of {owner} depends on {controller.parameter!r}, expected masses alone "
                    "that do: give the body an inertia whose centre of mass moves"
                )
        p = ca.SX.sym("p")
        values = {**model.parameter_values, controller.parameter: p}
        masses = sum((self._moments(b, values)[0] for b in self.bodies), ca.SX(0))
        total = float(ca.substitute(ca.gradient(masses, p), p, model.parameter_values[controller.parameter]))
        if abs(total - 1) > 1e-9:
            raise ArgumentError(
                f"simulate: MassFlow: the mass of the model changes by {total:.6g} kg with a unit of "
                f"{controller.parameter!r}, expected 1: it should be the mass of propellant in kg"
            )

    def _check_way(self) -> None:
        """From tank to nozzle nothing moves."""
        tree = self.model.compute.tree
        nodes = {tree.carrier(self.model.frame(b.name))[0] for b in self.bodies}
        for nozzle in self.controller.nozzles:
            node = tree.carrier(self.model.frame(nozzle.frame))[0]
            if nodes != {node}:
                raise UnsupportedError(
                    f"simulate: MassFlow: a joint moves between the tank ({self.bodies[0].name!r}) and the nozzle "
                    f"{nozzle.name!r} on {nozzle.frame!r}: what the flow between them does is not known; through=False "
                    "leaves it out"
                )

    @staticmethod
    def _moments(body: Body, values: Mapping[str, Any]) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Mass, first and second moments of a body about its origin."""
        m = ca.SX(evaluate(body.inertia.mass, values))
        c = ca.vertcat(*(ca.SX(evaluate(x, values)) for x in body.inertia.com))
        xx, xy, yy, xz, yz, zz = (ca.SX(evaluate(x, values)) for x in body.inertia.tensor)
        tensor = ca.vertcat(ca.horzcat(xx, xy, xz), ca.horzcat(xy, yy, yz), ca.horzcat(xz, yz, zz))
        about = tensor + m * (ca.dot(c, c) * ca.SX.eye(3) - c @ c.T)
        return m, m * c, about

    @cached_property
    def parts(self) -> ca.Function:
        """No efforts of drives, those of the nozzles, and the rate."""
        model, flow = self.model, self.controller
        none = ca.SX.zeros(model.nv)
        t, q, v, p = state_symbols(model)
        x = ca.SX.sym("x", 1)
        given = [t, q, v, x, p, ca.SX(0, 1)]
        if flow.burnt is not None:
            return ca.Function("mass_flow", given, [none, none, ca.SX.zeros(1)])
        at = Places(model, t, q, v, p)
        # nothing leaves an empty tank
        share = ca.if_else(x > 0, flow.opened(t), 0.0)
        wrenches, lost = [], ca.SX(0)
        for k, nozzle in enumerate(flow.nozzles):
            X = at.pose(nozzle.frame)
            R, F, rate = ca.SX(X.rotation), share[k] * ca.DM(nozzle.wrench), share[k] * nozzle.flow
            n, f = R @ F[:3], R @ F[3:]
            if flow.through:
                more = self._felt(at, nozzle, rate, x)
                n, f = n + more[0], f + more[1]
            wrenches.append((nozzle.frame, ca.vertcat(n, f)))
            lost = lost + rate
        tau = at.efforts(wrenches)
        return ca.Function("mass_flow", given, [none, ca.densify(tau), ca.densify(-lost)])

    def _felt(self, at: Places, nozzle: Nozzle, rate: Any, x: Any) -> tuple[Any, Any]:
        """(1) and (2) about the origin of the nozzle's frame, in world axes."""
        w, X = at.velocity(nozzle.frame)[:3], at.pose(nozzle.frame)
        p = ca.SX.sym("p")
        values = {name: at.parameters[k] for k, (name, _) in enumerate(self.model.parameters)}
        values[self.controller.parameter] = p
        r_n = ca.SX(X.rotation) @ ca.DM(list(nozzle.at))
        n, f = ca.SX.zeros(3), ca.SX.zeros(3)
        for body in self.bodies:
            B = at.pose(body.name)
            R = ca.SX(B.rotation)
            share, first, second = (
                ca.substitute(ca.jacobian(ca.vec(y), p), p, x) for y in self._moments(body, values)
            )
            offset = B.translation - X.translation
            # about the frame's origin: sums over what leaves, share r_t and -r_t x (w x r_t) = -S w
            a = R @ first
            moved = a + share * offset
            S = R @ ca.reshape(second, 3, 3) @ R.T + _shifted(share, a, offset)
            f = f - 2 * rate * ca.cross(w, share * r_n - moved)
            n = n - rate * (
                share * ca.cross(r_n, ca.cross(w, r_n)) - S @ w + ca.cross(w, ca.cross(moved, r_n))
            )
        return n, f

    def check(self, start: float, duration: float, mass: Any) -> None:
        """Refuse a tank that is empty before the end, and throttles that are not shares.

        The throttle is looked at at 2000 instants, and between two of them, again and again, where it is not a line: so the
        place of a jump is known to rounding. Pulses that fall between two instants are not seen. Laws that pulse see to
        their tank by themselves.
        """
        if self.controller.burnt is not None:
            return
        t = ca.SX.sym("t")
        opened = ca.Function("opened", [t], [self.controller.opened(t)])

        def shares(times: Array) -> Array:
            found = np.array(opened(times[None, :]), dtype=float)
            if not np.isfinite(found).all():
                at = times[int(np.argmin(np.isfinite(found).all(axis=0)))]
                raise ArgumentError(f"simulate: MassFlow: the throttle is not finite at t = {at:.6g} s")
            if found.min() < -1e-12 or found.max() > 1 + 1e-12:
                raise ArgumentError(
                    f"simulate: MassFlow: the throttle goes from {found.min():.6g} to {found.max():.6g}, expected 0 to 1"
                )
            return found

        flows = np.array([nozzle.flow for nozzle in self.controller.nozzles])
        times = np.linspace(start, start + duration, 2001)
        rates = flows @ shares(times)
        left = np.arange(len(times) - 1)
        while len(left):
            middle = (times[left] + times[left + 1]) / 2
            new, line = flows @ shares(middle), (rates[left] + rates[left + 1]) / 2
            times, rates = np.insert(times, left + 1, middle), np.insert(rates, left + 1, new)
            bent = (
                np.abs(new - line) > 1e-3 * flows.sum()
            )  # of a smooth throttle a millionth of the flow is left
            first = left + np.arange(len(left))  # where the intervals that were cut are now
            halves = np.sort(np.concatenate([first[bent], first[bent] + 1]))
            left = halves[np.diff(times)[halves] > 1e-12 * max(abs(start + duration), duration)]
        used = np.concatenate([[0.0], np.cumsum((rates[1:] + rates[:-1]) / 2 * np.diff(times))])
        least = float(np.min(mass))
        if used[-1] > least * (1 + 1e-9):
            last = float(np.interp(least, used, times)) - start
            raise ArgumentError(
                f"simulate: MassFlow: {duration:g} s take {used[-1]:.6g} kg, and {self.controller.parameter!r} has "
                f"{least:.6g} kg: they last {last:.6g} s"
            )

    def rates(self, times: Array) -> Array:
        """(N,): how fast the mass changes [kg/s], while there is some."""
        t = ca.SX.sym("t")
        lost = sum(
            (self.controller.opened(t)[k] * n.flow for k, n in enumerate(self.controller.nozzles)), ca.SX(0)
        )
        return -np.array(ca.Function("rate", [t], [lost])(times[None, :]), dtype=float).ravel()


def _shifted(share: Any, first: Any, offset: Any) -> Any:
    """What second moments gain about an origin that is `offset` away, from mass and first moments there."""

    def of(a: Any, b: Any) -> Any:
        return ca.dot(a, b) * ca.SX.eye(3) - (a @ b.T + b @ a.T) / 2

    return share * of(offset, offset) + 2 * of(first, offset)
