"""What acts on the bodies besides the drives, as efforts on the joints: one function for the compiled loop.

Wrenches F on frames act on the joints inboard of them, by an inward sweep in body axes about the bodies' origins (not
the world's, which may be an orbit's radius away):

    F_B = sum of wrenches on B + sum over children C of Ad(X_BC)^-T F_C,    tau = S^T F_B        (1)

and on the modes of bodies, tau = sum T^T Ad(X_BC)^-T F_C over what hangs at places that they move by T.

A potential U(X_1, X_2, ...) of poses X = (R, p) gives

    f = -dU/dp,    n = -sum_i R e_i x dU/d(R e_i)                                                (2)

by differentiation, so that whoever writes an element writes its energy only.

Friction and creep where the two sides of a loop slide on each other, under the normal force that the loop gives.

With s the velocity of frame b's point of contact relative to a, tangential there, N the size of the reaction's force and
mu the coefficient of friction, what acts on b is

    f = -mu N s / sqrt(s^2 + speed^2)                                          dry friction             (3)
    f = -F s / |s|,   F = mu N (1 - (1 - x)^3),   x = min(1, creep |s| / (3 mu N travel))               (4)

and its opposite on a, at the same point. (4) is the creep of rolling wheels (Vermeulen, Johnson, Contact of nonspherical
elastic bodies transmitting tangential forces, J. Appl. Mech. 31 (1964) 338, without spin, alike in both directions): for
small creepages |s| / travel the force is creep |s| / travel, for large ones mu N.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import casadi as ca
import numpy as np

from alembert.arguments import unknown
from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, UnsupportedError
from alembert.expression import Scalar, evaluate, scalar, scalars
from alembert.joints import Free
from alembert.model import LoopJoint, Model
from alembert.spatial import Force, Pose, quaternion
from alembert.sweeps.dynamics import move, place, place_in_world
from alembert.sweeps.program import Program, outward, unroll

TINY = 1e-24
"""added to squares under a root, so that its slope at zero is zero [SI]"""


@dataclass(frozen=True)
class ContactFriction:
    """Friction at a `loop` that slides (a point on a line, curve, plane or surface; surfaces that touch), (3).

    `coefficient` is mu; below `speed` [m/s] dry friction fades to zero, so that its equations are smooth: a body at rest on
    a slope creeps at a fraction of it. With `creep` [N], the force per unit of creepage, it is that of a rolling wheel, (4);
    `travel` [m/s] is the speed with which the wheel rolls. The normal force is found together with the friction.
    """

    loop: str
    coefficient: Scalar
    speed: Scalar = 1e-3
    creep: Scalar | None = None
    travel: Scalar | None = None

    def __post_init__(self) -> None:
        read_numbers(self, "zero or more", "coefficient")
        read_numbers(self, "positive", "speed", "creep", "travel")
        if (self.creep is None) != (self.travel is None):
            raise ArgumentError(
                f"ContactFriction: creep is {self.creep!r} and travel {self.travel!r}, expected both (the force per unit of "
                "creepage, and the speed of the wheel) or none"
            )

    @property
    def reactions(self) -> tuple[str, ...]:
        return (self.loop,)

    def check(self, model: Model) -> None:
        loop = self._loop(model)
        if _sliding_point(loop, Pose.identity(), {}) is None:
            raise UnsupportedError(
                f"ContactFriction: loop {loop.name!r} is closed by {loop.type.kind!r}, in which no point slides; a "
                "ForceElement(..., reactions=...) takes any law"
            )

    def internal(self, model: Model) -> bool:
        return False

    def _loop(self, model: Model) -> LoopJoint:
        for loop in model.loops:
            if loop.name == self.loop:
                return loop
        raise ArgumentError(unknown("ContactFriction: no loop", self.loop, [x.name for x in model.loops]))

    def terms(self, at: Places) -> ElementForces:
        loop = self._loop(at.model)
        a, b = at.pose(loop.frame_a), at.pose(loop.frame_b)
        values = {name: at.parameters[k] for k, (name, _) in enumerate(at.model.parameters)}
        c = b.rotation @ ca.SX(_sliding_point(loop, a.inverse() @ b, values))
        V_a, V_b = at.velocity(loop.frame_a), at.velocity(loop.frame_b)
        from_a = b.translation + c - a.translation
        s = V_b[3:6] + ca.cross(V_b[0:3], c) - V_a[3:6] - ca.cross(V_a[0:3], from_a)
        force = at.reactions[self.loop][3:6]
        N = ca.sqrt(ca.dot(force, force) + TINY)
        n = b.rotation @ force / N
        s = s - n * ca.dot(n, s)  # what is left there is of the error of a stage
        f = -self._factor(at, N, ca.dot(s, s)) * s
        F_b = ca.vertcat(ca.cross(c, f), f)
        F_a = ca.vertcat(-ca.cross(from_a, f), -f)
        return ElementForces(efforts=at.efforts([(loop.frame_a, F_a), (loop.frame_b, F_b)]))

    def _factor(self, at: Places, N: ca.SX, square: ca.SX) -> ca.SX:
        """Force over relative velocity."""
        most = at.value(self.coefficient) * N
        if self.creep is None or self.travel is None:
            return most / ca.sqrt(square + at.value(self.speed) ** 2)
        slope = at.value(self.creep) / at.value(self.travel)
        size = ca.sqrt(square + TINY)
        x = ca.fmin(1.0, slope * size / (3 * most + TINY))
        # most (1 - (1 - x)^3) / |s|, without a division by small velocities
        return ca.if_else(x < 1.0, slope * (1 - x + x * x / 3), most / size)


def _sliding_point(loop: LoopJoint, X: Pose, values: dict[str, Any]) -> Any:
    find = getattr(loop.type, "sliding_point", None)
    if find is None:
        return None
    if not values:
        return find(X)
    constants = ca.vertcat(*(ca.SX(evaluate(x, values)) for x in loop.type.constants()))
    return loop.type.with_constants(constants).sliding_point(X)


Array = np.ndarray
KINEMATICS = Program(
    "places",
    {"q": "q", "v": "v"},
    (outward(place), outward(place_in_world), outward(move)),
    gravity=False,
)


@dataclass(frozen=True)
class ElementForces:
    """What an element does: its potential (a scalar, None where it has none) and all other efforts (nv)."""

    potential: ca.SX | None = None
    potential_efforts: ca.SX | None = None
    efforts: ca.SX | None = None


@runtime_checkable
class ForceLaw(Protocol):
    """Something that acts; `internal` says that its forces have no resultant on the model as a whole."""

    def check(self, model: Model) -> None: ...

    def terms(self, at: Places) -> ElementForces: ...

    def internal(self, model: Model) -> bool: ...


Sizes = Mapping[str, int | tuple[int, ...] | None]
"""of arguments or results of a kernel, by name: entries, or a shape; None: it is left out"""


def state_sizes(model: Model) -> dict[str, int | None]:
    """Of the time, the state and the parameters of a model."""
    return {"t": 1, "q": model.nq, "v": model.nv, "parameters": len(model.parameters) or None}


def state_symbols(model: Model) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
    t, q, v, p = (ca.SX.sym(name, n or 0) for name, n in state_sizes(model).items())
    return t, q, v, p


def function_kernel(
    name: str, key: str, given: Sizes, results: Sizes, function: Callable[[], ca.Function]
) -> Kernel:
    """Of a function of `SX` whose inputs and results these are, all of them."""

    def build() -> FunctionSource:
        f = function()
        symbols = [ca.SX.sym(label, *f.size_in(k)) for k, label in enumerate(given)]
        used = [x for x, n in zip(symbols, given.values(), strict=True) if n is not None]
        found = zip(f.call(symbols), results.values(), strict=True)
        return FunctionSource(ca.Function(name, used, [ca.densify(x) for x, n in found if n is not None]))

    return Kernel(name, arguments(given), arguments(results), key=key, build=build)


def arguments(sizes: Sizes) -> list[Argument]:
    shapes = {name: (n,) if isinstance(n, int) else n for name, n in sizes.items()}
    return [Argument(name, shape) for name, shape in shapes.items() if shape is not None]


class Places:
    """The frames of a model at time t as expressions, and what wrenches on them do."""

    def __init__(
        self,
        model: Model,
        t: ca.SX,
        q: ca.SX,
        v: ca.SX,
        parameters: ca.SX,
        reactions: Mapping[str, ca.SX] | None = None,
    ) -> None:
        self.model, self.t, self.q, self.v, self.parameters = model, t, q, v, parameters
        self.reactions = reactions or {}
        self._values = {name: parameters[k] for k, (name, _) in enumerate(model.parameters)}
        self._tree = model.compute.tree
        self._known: dict[Any, Any] = {}
        self.records, _ = unroll(KINEMATICS, self._tree, {"q": q, "v": v}, parameters)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What was made for a key before, or is made now: expressions that many elements and sensors have in common."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def value(self, number: Scalar) -> ca.SX:
        """A number, or a formula of the model's parameters."""
        return ca.SX(evaluate(number, self._values))

    def _locate(self, frame: str) -> tuple[int, Pose]:
        node, where = self._tree.carrier(self.model.frame(frame))
        return node, where.symbolic_pose(self._values)

    def pose(self, frame: str) -> Pose:
        """X_WC."""
        return self.once(("pose", frame), lambda: self._pose(frame))

    def _pose(self, frame: str) -> Pose:
        node, X = self._locate(frame)
        return self.records[node].X_W @ X if node >= 0 else X

    def attitude(self, frame: str) -> ca.SX:
        """The unit quaternion (wxyz, w >= 0) of a frame's axes in the world's."""
        return self.once(("attitude", frame), lambda: self._attitude(frame))

    def _attitude(self, frame: str) -> ca.SX:
        node, X = self._locate(frame)
        tree = self._tree
        if node >= 0 and tree.parents[node] < 0 and isinstance(tree.joints[node].type, Free):
            inner, outer = (ca.SX(R) for R in (X.rotation, self.records[node].node.placement.rotation))
            if inner.is_constant() and outer.is_constant():  # the joint has a quaternion: no need to find one
                a, b = (quaternion.from_matrix(np.array(ca.evalf(R), dtype=float)) for R in (outer, inner))
                own = quaternion.normalize(self.q[tree.q_slices[node]][3:7])
                found = quaternion.multiply(quaternion.multiply(ca.SX(a), own), ca.SX(b))
                return ca.if_else(found[0] < 0, -found, found)
        return quaternion.from_matrix(ca.SX(self.pose(frame).rotation))

    def velocity(self, frame: str) -> ca.SX:
        """Angular velocity, and velocity of the frame's origin, in world axes (6)."""
        return self.once(("velocity", frame), lambda: self._velocity(frame))

    def _velocity(self, frame: str) -> ca.SX:
        node, X = self._locate(frame)
        if node < 0:
            return ca.SX.zeros(6)
        V, R = self.records[node].V, self.records[node].X_W.rotation
        return ca.vertcat(R @ V.angular, R @ (V.linear + ca.cross(V.angular, X.translation)))

    def own_velocity(self, frame: str) -> ca.SX:
        """The same in the frame's own axes."""
        node, X = self._locate(frame)
        if node < 0:
            return ca.SX.zeros(6)
        V, R = self.records[node].V, ca.SX(X.rotation)
        return ca.vertcat(R.T @ V.angular, R.T @ (V.linear + ca.cross(V.angular, X.translation)))

    def speeds(self, node: int) -> slice:
        """Where those of a node are in v."""
        return self._tree.v_slices[node]

    def efforts(self, wrenches: Sequence[tuple[str, ca.SX]]) -> ca.SX:
        """(1): of wrenches on frames, world axes about the origins of the frames."""
        return self.node_efforts([(*self._locate(frame), F) for frame, F in wrenches])

    def own_efforts(self, wrenches: Sequence[tuple[str, ca.SX]]) -> ca.SX:
        """(1): of wrenches on frames, in the frames' own axes about their origins."""
        given = []
        for frame, F in wrenches:
            node, X = self._locate(frame)
            f = ca.SX(X.rotation) @ F[3:6]
            given.append((node, Force(ca.SX(X.rotation) @ F[0:3] + ca.cross(X.translation, f), f)))
        return self.body_efforts(given)

    def node_efforts(self, wrenches: Sequence[tuple[int, Pose | None, ca.SX]]) -> ca.SX:
        """(1): of wrenches on nodes, in world axes about the origins of poses on them (None: the nodes' own)."""
        given = []
        for node, X, F in wrenches:
            if node >= 0:
                R = self.records[node].X_W.rotation
                n, f = R.T @ F[0:3], R.T @ F[3:6]
                if X is not None:
                    n = n + ca.cross(X.translation, f)
                given.append((node, Force(n, f)))
        return self.body_efforts(given)

    def body_efforts(self, wrenches: Sequence[tuple[int, Force]]) -> ca.SX:
        """(1): of wrenches on nodes, in their own axes about their own origins."""
        tree = self._tree
        total = [Force(ca.SX.zeros(3), ca.SX.zeros(3)) for _ in range(len(tree))]
        for node, F in wrenches:
            if node >= 0:
                total[node] = total[node] + F
        tau = ca.SX.zeros(self.model.nv)
        for k in reversed(range(len(tree))):
            b, parent = self.records[k], tree.parents[k]
            if tree.flexible[k] is None:
                tau[tree.v_slices[k]] = b.S.T @ total[k].vector()
            if parent >= 0:
                F = b.X.force(total[k])
                total[parent] = total[parent] + F
                if tree.places[k] is not None:
                    T = b.node.attachment.columns(self.records[parent].q)
                    tau[tree.v_slices[parent]] += T.T @ F.vector()
        return tau

    def gradient_wrenches(self, U: Callable[..., ca.SX], poses: Sequence[Pose]) -> tuple[ca.SX, list[ca.SX]]:
        """U at the poses, and the wrenches (2), about their origins."""
        symbols = [Pose(ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)) for _ in poses]
        flat = [x for X in symbols for x in (X.rotation, X.translation)]
        energy = ca.SX(U(*symbols))
        wrenches = []
        for X in symbols:
            slope = ca.reshape(ca.gradient(energy, ca.vec(X.rotation)), 3, 3)
            n = ca.SX.zeros(3)
            for i in range(3):
                n = n - ca.cross(X.rotation[:, i], slope[:, i])
            wrenches.append(ca.vertcat(n, -ca.gradient(energy, X.translation)))
        values = [ca.densify(x) for X in poses for x in (X.rotation, X.translation)]
        found = ca.substitute([energy, *wrenches], flat, values)
        return found[0], found[1:]


def reactions_read(element: Any) -> tuple[str, ...]:
    """The constraints on whose reactions an element depends."""
    return tuple(getattr(element, "reactions", ()))


class Elements:
    """All elements of a run that depend on the state alone, compiled together."""

    def __init__(self, model: Model, elements: Sequence[ForceLaw], fed: ca.Function | None) -> None:
        self.model, self.elements, self.fed = model, tuple(elements), fed
        for element in elements:
            if not isinstance(element, ForceLaw):
                raise ArgumentError(
                    f"simulate: forces has {element!r}, expected SpringDamper(...), Bushing(...), Drag(...), "
                    "SoftStop(...) or ForceElement(...)"
                )
            if read := reactions_read(element):
                raise UnsupportedError(
                    f"forces that read reactions ({read[0]!r}) are for al.simulate: they are found together "
                    "with the motion, and are no function of the state that could be used here"
                )
            element.check(model)

    @property
    def internal(self) -> bool:
        """Whether nothing from outside acts."""
        return self.fed is None and all(element.internal(self.model) for element in self.elements)

    @cached_property
    def function(self) -> ca.Function:
        """(t, q, v, parameters) to efforts of potentials, other efforts, efforts of tables, and the potential.

        A potential that changes with time does work; its efforts are among the others and it does not count.
        """
        model = self.model
        t, q, v, p = state_symbols(model)
        at = Places(model, t, q, v, p)
        kept, other, U = ca.SX.zeros(model.nv), ca.SX.zeros(model.nv), ca.SX(0)
        for element in self.elements:
            terms = element.terms(at)
            if terms.efforts is not None:
                other = other + terms.efforts
            if terms.potential is None:
                continue
            assert terms.potential_efforts is not None
            if ca.depends_on(terms.potential, t):
                other = other + terms.potential_efforts
            else:
                kept, U = kept + terms.potential_efforts, U + terms.potential
        fed = ca.SX.zeros(model.nv) if self.fed is None else ca.SX(self.fed(t))
        return ca.Function("elements", [t, q, v, p], [ca.densify(x) for x in (kept, other, fed, U)])

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(self.function.serialize().encode()).hexdigest()

    @cached_property
    def total(self) -> ca.Function:
        """(t, q, v, parameters) to all efforts."""
        symbols = self.function.sx_in()
        kept, other, fed, _ = self.function(*symbols)
        return ca.Function("elements", symbols, [kept + other + fed])

    @cached_property
    def potential(self) -> ca.Function | None:
        """(q, parameters) to the potential; None where there is none."""
        t, q, v, p = self.function.sx_in()
        U = self.function(t, q, v, p)[3]
        return None if U.is_zero() else ca.Function("potential", [q, p], [ca.densify(U)])

    @cached_property
    def rest(self) -> ca.Function:
        """(t, q, v, parameters) to the efforts that are not of potentials."""
        symbols = self.function.sx_in()
        _, other, fed, _ = self.function(*symbols)
        return ca.Function("elements", symbols, [other + fed])

    @cached_property
    def does_work(self) -> bool:
        _, other, fed, _ = self.function(*self.function.sx_in())
        return not (other.is_zero() and fed.is_zero())

    def kernel(self, which: str) -> Kernel:
        """`numbers` (efforts of potentials, others, of tables, the potential), or `slopes` of all: d/dq and d/dv."""
        model, nv = self.model, self.model.nv
        key = f"simulate:elements:{which}:{model.fingerprint}:{self.key}"
        if key not in model.compute.kernels:
            results: Sizes = {"kept": nv, "other": nv, "fed": nv, "U": 1}
            function = self.function
            if which == "slopes":
                results, function = {"dq": (nv, nv), "dv": (nv, nv)}, self._slopes()
            model.compute.kernels[key] = function_kernel(
                "forces", key, state_sizes(model), results, lambda: function
            )
        return model.compute.kernels[key]

    def _slopes(self) -> ca.Function:
        model = self.model
        t, q, v, p = self.function.sx_in()
        d = ca.SX.sym("d", model.nv)
        u = self.total(t, model.space.integrate(q, d), v, p)
        zero = ca.SX.zeros(model.nv)
        slopes = [ca.substitute(ca.jacobian(u, x), d, zero) for x in (d, v)]
        return ca.Function("slopes", [t, q, v, p], slopes)


def read_numbers(element: Any, sign: str, *names: str, width: int | None = None) -> None:
    """Read fields of a frozen element, a number or a formula each, or so many; refuse numbers that are not as `sign` says,
    "positive" or "zero or more". Those that are None stay so."""
    for name in names:
        given = getattr(element, name)
        if given is None:
            continue
        value = scalar(given, name) if width is None else scalars(given, width, name)
        object.__setattr__(element, name, value)
        for x in np.atleast_1d(np.asarray(value, dtype=object)):
            if not isinstance(x, int | float | np.number) or isinstance(x, bool):
                continue
            if not np.isfinite(x) or x < 0 or (sign == "positive" and not x > 0):
                raise ArgumentError(f"{type(element).__name__}: {name} is {value!r}, expected {sign}")


def read_direction(element: Any, name: str) -> None:
    """Read a field of a frozen element as a direction, of length 1."""
    given = getattr(element, name)
    n = np.array(scalars(given, 3, name), dtype=float)
    size = np.linalg.norm(n)
    if not size > 0:
        raise ArgumentError(f"{type(element).__name__}: {name} is {given!r}, expected a direction")
    object.__setattr__(element, name, tuple((n / size).tolist()))


class EffortSlopes(NamedTuple):
    """Derivatives of efforts with respect to q (tangent) and v, (..., nv, nv)."""

    dq: Array
    dv: Array


class Forces:
    """`SpringDamper`, `Bushing`, `Drag`, `SoftStop`, `ForceElement` on a model, all together.

    `efforts` are added to those of the drives: forward_dynamics(q, v, tau + forces.efforts(q, v)). Batches and
    `parameters` are as in the model's own algorithms.
    """

    def __init__(self, model: Model, elements: Any) -> None:
        self.model = model
        self._from_elements = Elements(
            model, elements if isinstance(elements, list | tuple) else (elements,), None
        )

    def efforts(
        self, q: Any, v: Any = None, *, t: float = 0.0, parameters: Mapping[str, Any] | None = None
    ) -> Array:
        """(..., nv)."""
        kept, other, _, _ = self._from_elements.kernel("numbers")(*self._given(q, v, t, parameters))
        return kept + other

    def potential(self, q: Any, *, parameters: Mapping[str, Any] | None = None) -> Array:
        """(...,): the energy of springs [J]."""
        return self._from_elements.kernel("numbers")(*self._given(q, None, 0.0, parameters))[3][..., 0]

    def derivatives(
        self, q: Any, v: Any = None, *, t: float = 0.0, parameters: Mapping[str, Any] | None = None
    ) -> EffortSlopes:
        """Of the efforts; with D those of forward dynamics, accelerations have D.dq + D.dtau @ dq and D.dv + D.dtau @ dv."""
        return EffortSlopes(*self._from_elements.kernel("slopes")(*self._given(q, v, t, parameters)))

    @property
    def function(self) -> ca.Function:
        """(t, q, v, parameters) to the efforts, on `SX`; `parameters` as in `model.parameters`."""
        return self._from_elements.total

    def _given(self, q: Any, v: Any, t: float, parameters: Mapping[str, Any] | None) -> list[Array]:
        model = self.model
        q = model.compute.numbers("Forces", "q", q, model.nq, f"; the model has {model.nq} coordinates")
        v = np.zeros(model.nv) if v is None else v
        v = model.compute.numbers(
            "Forces", "v", v, model.nv, f"; the model has {model.nv} degrees of freedom"
        )
        found = [np.array([float(t)]), q, v]
        return [*found, model.compute.parameter_array("Forces", parameters)] if model.parameters else found
