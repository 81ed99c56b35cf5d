"""The bodies of a mission: hub, wheels, panels, slosh, arms that follow paths, and a visitor with its port."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import casadi as ca
import numpy as np

from alembert import spacecraft as craft
from alembert.errors import AlembertError
from alembert.joints import Fixed, Free, Revolute
from alembert.model import Box, Inertia, Model, ModelBuilder, Placement, Visual
from alembert.spatial import quaternion
from alembert.study.task import OptionError

if TYPE_CHECKING:
    from alembert.study.mission.tables import ArmEntry, VisitorEntry
    from alembert.study.tasks.mission import MissionTask

Array = np.ndarray
Made = TypeVar("Made")
HUB, FLIGHT, VISITOR, VISITOR_FLIGHT, PORT, PROBE, EXPERIMENT, TANK, PROPELLANT = (
    "hub", "flight", "visitor", "visitor_flight", "port", "probe", "experiment", "tank", "propellant_mass",
)  # fmt: skip


def named(place: tuple[str, ...], make: Callable[[], Made]) -> Made:
    """What is made, or an error with the place in the file."""
    try:
        return make()
    except OptionError:
        raise
    except AlembertError as error:
        raise OptionError(place, str(error)) from None


@dataclass(frozen=True, eq=False)
class Vehicle:
    """The model, its wheels, the surfaces that air and light push on, and joints that follow motions."""

    model: Model
    wheels: list[craft.ReactionWheel]
    surfaces: list[craft.Facet]
    motions: dict[str, ca.Function] = field(default_factory=dict)

    @classmethod
    def of(cls, task: MissionTask) -> Vehicle:
        builder = ModelBuilder("spacecraft", gravity=(0.0, 0.0, 0.0))
        v = task.vehicle
        if not all(x > 0 for x in v.size):
            raise OptionError(("vehicle", "size"), f"is {v.size}, expected three positive lengths")
        inertia = Inertia.box(v.mass, v.size)
        if v.inertia is not None:
            a, b, c = v.inertia
            inertia = Inertia(v.mass, (0.0, 0.0, 0.0), (a, 0.0, b, 0.0, 0.0, c))
        builder.body(HUB, inertia, joint=Free(), joint_name=FLIGHT, visuals=[Visual(Box(tuple(v.size)))])
        optics = {"drag": v.drag, "specular": v.specular, "diffuse": v.diffuse}
        surfaces = craft.box(HUB, v.size, **optics)
        wheels: list[craft.ReactionWheel] = []
        motions: dict[str, ca.Function] = {}
        for name, w in task.wheels.items():
            given = {key: value for key, value in w.given().items() if value is not None and key != "start"}
            wheels.append(
                named(
                    ("wheels", name),
                    lambda name=name, given=given: craft.reaction_wheel(builder, name, HUB, **given),  # type: ignore[misc]
                )
            )
        for name, p in task.panels.items():
            if len(p.size) != 2:
                raise OptionError(("panels", name, "size"), f"has {len(p.size)} numbers, expected 2")
            given = {**p.given(), "size": tuple(p.size)}
            named(
                ("panels", name),
                lambda name=name, given=given: craft.hinged_panel(builder, name, HUB, **given),  # type: ignore[misc]
            )
            out = np.array(p.along) / np.linalg.norm(p.along)
            normal = np.cross(p.hinge, out)
            center = tuple(p.size[0] / 2 * out)
            surfaces.append(craft.panel(name, tuple(p.size), tuple(normal), center=center))
        for name, x in task.slosh.items():
            given = dict(x.given())
            named(
                ("slosh", name),
                lambda name=name, given=given: craft.slosh_mass(builder, name, HUB, **given),  # type: ignore[misc]
            )
        for name, arm in task.arms.items():
            motions |= _arm(builder, name, arm)
        if task.tank is not None:
            _tank(builder, task)
        if task.microgravity is not None:
            builder.frame(EXPERIMENT, HUB, tuple(task.microgravity))
        if task.visitor is not None:
            _visitor(builder, task.visitor)
            surfaces += craft.box(VISITOR, task.visitor.size, **optics)
        return cls(named(("vehicle",), builder.build), wheels, surfaces, motions)

    def inertia(self, *, docked: VisitorEntry | None = None) -> Array:
        """Of all that flies with the hub, its joints held, about the centre of mass in the hub's axes."""
        q = self.model.neutral()
        for name, motion in self.motions.items():
            q[self.model.q_slice(name)] = float(motion(0.0))
        parts = [_mass_properties(self.model, q, FLIGHT)]
        if docked is not None:
            m, c, inertia = _mass_properties(self.model, q, VISITOR_FLIGHT)
            R, p = placed(docked, docked.reach)
            parts.append((m, p + R @ c, R @ inertia @ R.T))
        whole = sum(m for m, _, _ in parts)
        center = sum((m * c for m, c, _ in parts), np.zeros(3)) / whole
        found = np.zeros((3, 3))
        for m, c, inertia in parts:
            d = c - center
            found += inertia + m * (d @ d * np.eye(3) - np.outer(d, d))
        return found


def _mass_properties(model: Model, q: Array, joint: str) -> tuple[float, Array, Array]:
    """Mass, centre and inertia about it of all that hangs on a free joint, in the axes of its body."""
    s = model.v_slice(joint).start
    M = model.mass_matrix(q)[s : s + 6, s : s + 6]
    m = float(M[3, 3])
    mc = M[:3, 3:]  # m [c]x
    c = np.array([mc[2, 1], mc[0, 2], mc[1, 0]]) / m
    return m, c, M[:3, :3] - m * (c @ c * np.eye(3) - np.outer(c, c))


def _arm(builder: ModelBuilder, name: str, arm: ArmEntry) -> dict[str, ca.Function]:
    """Adds the links; gives the motions of its joints."""
    along = np.asarray(arm.along, dtype=float)
    if not np.linalg.norm(along) > 0:
        raise OptionError(("arms", name, "along"), "is zero, expected a direction")
    out = along / np.linalg.norm(along)
    if not arm.links:
        raise OptionError(("arms", name, "links"), "is empty, expected one or more")
    parent, at = HUB, tuple(arm.at)
    for k, link in enumerate(arm.links, start=1):
        tip = tuple(link.length * out)
        named(
            ("arms", name, "links", str(k - 1)),
            lambda k=k, link=link, parent=parent, at=at, tip=tip: builder.body(  # type: ignore[misc]
                f"{name}_{k}",
                Inertia.rod(link.mass, (0, 0, 0), tip),
                joint=Revolute(tuple(link.axis)),
                joint_name=f"{name}_{k}",
                parent=parent,
                placement=at,
                visuals=[
                    Visual(Box(tuple(np.abs(tip) + 0.03 * link.length)), Placement(tuple(np.array(tip) / 2)))
                ],
            ),
        )
        parent, at = f"{name}_{k}", tip
    if arm.payload is not None:
        size = tuple(arm.payload.size)
        builder.body(
            f"{name}_payload",
            Inertia.box(arm.payload.mass, size),
            joint=Fixed(),
            parent=parent,
            placement=at,
            visuals=[Visual(Box(size))],
        )
    return {f"{name}_{k + 1}": _motion(name, arm, k) for k in range(len(arm.links))}


def _motion(name: str, arm: ArmEntry, k: int) -> ca.Function:
    """The angle of joint k."""
    place = ("arms", name, "path")
    wanted = 1 + len(arm.links)
    for row in arm.path:
        if len(row) != wanted:
            raise OptionError(
                place, f"has a row of {len(row)} numbers, expected {wanted}: a time and the angles"
            )
    rows = np.asarray(arm.path, dtype=float).reshape(-1, wanted)
    if len(rows) < 1 or np.any(np.diff(rows[:, 0]) <= 0):
        raise OptionError(place, f"has the times {rows[:, 0].tolist()}, expected them to rise")
    return craft.rest_to_rest(rows[:, 0], np.radians(rows[:, 1 + k]))


def _tank(builder: ModelBuilder, task: MissionTask) -> None:
    tank = task.tank
    assert tank is not None
    if not task.thrusters:
        raise OptionError(("tank",), "has propellant that nothing burns, expected thrusters")
    if task.visitor is not None:
        raise OptionError(
            ("tank",), "does not go with a visitor: masses that fall and captures do not go together"
        )
    mass = builder.parameter(PROPELLANT, tank.propellant)
    inertia = Inertia.sphere(mass, tank.radius)
    named(
        ("tank",),
        lambda: builder.body(TANK, inertia, joint=Fixed(), parent=HUB, placement=tuple(tank.at)),
    )


def _visitor(builder: ModelBuilder, v: VisitorEntry) -> None:
    builder.body(
        VISITOR,
        Inertia.box(v.mass, tuple(v.size)),
        joint=Free(),
        joint_name=VISITOR_FLIGHT,
        visuals=[Visual(Box(tuple(v.size)))],
    )
    for name, body, at, face in ((PORT, HUB, v.hub_port, v.hub_face), (PROBE, VISITOR, v.port, v.face)):
        R = _facing(face, "hub_face" if body == HUB else "face")
        craft.docking_port(builder, name, body, at, quaternion_wxyz=quaternion.from_matrix(R))


def _facing(direction: Any, key: str) -> Array:
    """(3, 3): axes whose x looks along a direction, z as far as may be along the body's."""
    d = np.asarray(direction, dtype=float)
    if not np.linalg.norm(d) > 0:
        raise OptionError(("visitor", key), "is zero, expected a direction")
    d = d / np.linalg.norm(d)
    up = np.array([0.0, 0.0, 1.0]) if abs(d[2]) < 0.9 else np.array([1.0, 0.0, 0.0])
    y = np.cross(up, d)
    y /= np.linalg.norm(y)
    return np.stack([d, y, np.cross(d, y)], axis=1)


def placed(v: VisitorEntry, distance: float, tilt: Any = (0.0, 0.0, 0.0)) -> tuple[Array, Array]:
    """Rotation and place of the visitor in the hub's axes with its port opposite to the hub's, `distance` away."""
    R_port, R_probe = _facing(v.hub_face, "hub_face"), _facing(v.face, "face")
    turned = np.diag([-1.0, -1.0, 1.0])  # they look at one another
    R = R_port @ turned @ R_probe.T
    R = R @ np.asarray(quaternion.to_matrix(quaternion.exp(np.asarray(tilt, dtype=float))))
    if len(v.offset) != 2:
        raise OptionError(("visitor", "offset"), f"has {len(v.offset)} numbers, expected 2")
    p = np.asarray(v.hub_port) + R_port @ np.r_[distance, v.offset] - R @ np.asarray(v.port)
    return R, p


def docking_events(model: Model, v: VisitorEntry) -> list[Any]:
    """Of the capture, of latches, and of the release."""
    from alembert.joints import Spherical
    from alembert.simulate import Event

    if v.latch is not None and v.release is not None and v.release <= v.latch:
        raise OptionError(
            ("visitor", "release"),
            f"is at {v.release:g} s, expected it after the latches close at {v.latch:g} s",
        )
    gap = math.hypot(v.distance, *v.offset)
    if gap <= v.reach:
        raise OptionError(
            ("visitor", "distance"),
            f"leaves {gap:g} m between the ports, expected more than their reach of {v.reach:g} m: it is captured where it "
            "comes within",
        )
    more: dict[str, Any] = {} if v.latch is None else {"joint": Spherical()}
    event, held = craft.docking(
        model, PORT, PROBE, reach=v.reach, speed=v.most_speed, angle=math.radians(v.most_angle_deg), **more
    )
    events: list[Any] = [event]
    what: Any = held
    if v.latch is not None:
        latch, what = craft.latching(held, v.latch)
        events.append(latch)
    if v.release is not None:
        at = v.release
        events.append(Event(lambda t, q, v: t - at, f"release of {PROBE}", 1, craft.Separate(what, v.push)))
    return events
