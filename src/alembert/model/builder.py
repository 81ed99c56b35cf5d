"""Building models, and the checks that every model passes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, is_name, names_in, scalar, scalars
from alembert.joints import Friction, JointType, Limits, Pair, Rotor, Spring
from alembert.model import elements
from alembert.model.elements import (
    WORLD,
    Actuator,
    Body,
    Coupling,
    Equation,
    Frame,
    Joint,
    LoopJoint,
    Sensor,
    Visual,
)
from alembert.model.inertia import Inertia
from alembert.model.model import Model
from alembert.model.placement import Placement
from alembert.model.printing import unknown


class ModelBuilder:
    """Collects the parts of a model in any order; `build` sorts, checks and freezes them.

    >>> builder = ModelBuilder("pendulum")
    >>> _ = builder.body("rod", Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)), joint=Revolute(axis=(0, 1, 0)))
    >>> builder.build().nv
    1
    """

    def __init__(self, name: str = "model", *, gravity: Any = (0.0, 0.0, -9.81)) -> None:
        self._name = name
        self._gravity = scalars(gravity, 3, "gravity")
        self._parameters: dict[str, float] = {}
        self._parts: dict[str, list[Any]] = {field: [] for field in _PARTS}
        self._visuals: list[Visual] = []

    def parameter(self, name: str, default: float) -> Expression:
        """A named number; use what comes back wherever a number is expected."""
        if not name.isidentifier():
            raise ModelError(f"parameter name {name!r} is not an identifier (letters, digits and _)")
        if name in self._parameters:
            raise ModelError(f"parameter {name!r} is defined twice")
        value = scalar(default, f"parameter {name!r}")
        if isinstance(value, Expression):
            raise ModelError(f"parameter {name!r} has the default {value}, expected a number")
        if not is_name(name):
            raise ModelError(f"parameter name {name!r} has a meaning of its own in a formula; choose another")
        self._parameters[name] = value
        return Expression(name)

    def body(
        self,
        name: str,
        inertia: Inertia = Inertia(),  # noqa: B008  (frozen)
        *,
        joint: JointType | None = None,
        parent: str = WORLD,
        visuals: Iterable[Visual] = (),
        **joint_options: Any,
    ) -> ModelBuilder:
        """A body; with `joint` also the joint that moves it, called `joint_name` or after the body.

        `joint_options` are those of `joint` (placement, limits, spring, friction, armature, rotors).
        """
        self._parts["bodies"].append(Body(name, inertia, tuple(visuals)))
        if joint is not None:
            joint_name = joint_options.pop("joint_name", f"{name}_joint")
            self.joint(joint_name, joint, parent=parent, child=name, **joint_options)
        elif joint_options or parent != WORLD:
            given = ", ".join([*joint_options, *(["parent"] if parent != WORLD else [])])
            raise ModelError(f"body {name!r} is given {given} but no joint=")
        return self

    def joint(
        self,
        name: str,
        type: JointType,
        *,
        parent: str,
        child: str,
        placement: Placement | Any = Placement(),  # noqa: B008  (frozen)
        limits: Limits = Limits(),  # noqa: B008  (frozen)
        spring: Spring | None = None,
        friction: Friction | None = None,
        armature: Any = (),
        rotors: Iterable[Rotor] = (),
    ) -> ModelBuilder:
        if not isinstance(type, JointType):
            raise ModelError(f"joint {name!r}: type is {type!r}, expected a joint type such as Revolute()")
        where = elements.placement(placement)
        self._parts["joints"].append(
            Joint(name, type, parent, child, where, limits, spring, friction, armature, tuple(rotors))
        )
        return self

    def frame(self, name: str, body: str, placement: Placement | Any = Placement()) -> ModelBuilder:  # noqa: B008
        self._parts["frames"].append(Frame(name, body, elements.placement(placement)))
        return self

    def loop(self, name: str, type: Pair, frame_a: str, frame_b: str) -> ModelBuilder:
        """Close a loop between two frames with a joint type, or another pair (`Distance`, `RollingDisc`, ...)."""
        self._parts["loops"].append(LoopJoint(name, type, frame_a, frame_b))
        return self

    def coupling(
        self, name: str, joint: str, masters: Iterable[str], ratios: Any, offset: Scalar = 0.0
    ) -> ModelBuilder:
        self._parts["couplings"].append(Coupling(name, joint, tuple(masters), tuple(ratios), offset))
        return self

    def equation(self, name: str, formulas: Any, inputs: Any, reference: str = WORLD) -> ModelBuilder:
        """Formulas of coordinates and frames that are to vanish: see `Equation`.

        builder.equation("cam", "lift - 0.1 * cos(angle)", {"lift": "follower", "angle": "shaft"})
        """
        self._parts["equations"].append(Equation(name, formulas, inputs, reference))
        return self

    def actuator(self, name: str, joint: str, **options: Any) -> ModelBuilder:
        self._parts["actuators"].append(Actuator(name, joint, **options))
        return self

    def sensor(self, name: str, kind: str, target: str) -> ModelBuilder:
        self._parts["sensors"].append(Sensor(name, kind, target))
        return self

    def world(self, *, visuals: Iterable[Visual]) -> ModelBuilder:
        """Shapes that stand in the world: a floor, a table, a rail."""
        self._visuals += visuals
        return self

    def build(self) -> Model:
        """The finished model, or a `ModelError` that names what is wrong."""
        parts: dict[str, Any] = {field: tuple(items) for field, items in self._parts.items()}
        return check(
            Model(
                self._name,
                gravity=self._gravity,
                parameters=tuple(self._parameters.items()),
                visuals=tuple(self._visuals),
                **parts,
            )
        )


_PARTS = ("bodies", "joints", "frames", "loops", "couplings", "equations", "actuators", "sensors")


# --- checks -------------------------------------------------------------------------------------------------


def check(model: Model) -> Model:
    """The model with its bodies in tree order, or a `ModelError` that names the part and its numbers."""
    _check_names({field: getattr(model, field) for field in _PARTS})
    bodies, joints = _tree_order(model.bodies, model.joints)
    if joints != model.joints or bodies != model.bodies:
        model = dataclasses.replace(model, bodies=bodies, joints=joints)
    _check_references(model)
    _check_parameters(model)
    for body in model.bodies:
        problem = body.inertia.problem(model.parameter_values)
        if problem:
            raise ModelError(f"body {body.name!r}: {problem}")
    _check_massless(model)
    return model


def _check_names(parts: dict[str, tuple[Any, ...]]) -> None:
    for field, items in parts.items():
        seen: set[str] = set()
        for item in items:
            kind = _singular(field)
            if not isinstance(item.name, str) or not item.name:
                raise ModelError(f"{kind} has the name {item.name!r}, expected a non-empty text")
            if item.name in seen:
                raise ModelError(f"two {field} are called {item.name!r}; names must be unique")
            seen.add(item.name)
    bodies = {body.name for body in parts["bodies"]}
    if WORLD in bodies:
        raise ModelError(f"a body is called {WORLD!r}; that name is the inertial frame's")
    for frame in parts["frames"]:
        if frame.name in bodies or frame.name == WORLD:
            raise ModelError(f"frame {frame.name!r} has the name of a body, which already is a frame")


def _tree_order(
    bodies: tuple[Body, ...], joints: tuple[Joint, ...]
) -> tuple[tuple[Body, ...], tuple[Joint, ...]]:
    """Depth first, children in the order in which their joints were given."""
    by_name = {body.name: body for body in bodies}
    inboard: dict[str, Joint] = {}
    for joint in joints:
        for end in (joint.parent, joint.child):
            if end not in by_name and end != WORLD:
                raise ModelError(unknown(f"joint {joint.name!r} refers to the body", end, [WORLD, *by_name]))
        if joint.child == WORLD:
            raise ModelError(f"joint {joint.name!r} moves the world; it can only be a parent")
        if joint.child in inboard:
            raise ModelError(
                f"body {joint.child!r} is moved by two joints, {inboard[joint.child].name!r} and "
                f"{joint.name!r}; make one of them a loop joint"
            )
        inboard[joint.child] = joint
    for body in bodies:
        if body.name not in inboard:
            raise ModelError(
                f"body {body.name!r} has no joint; every body hangs by one from the world or from another "
                "body (a Free joint for one that floats)"
            )
    children: dict[str, list[Joint]] = {}
    for joint in joints:
        children.setdefault(joint.parent, []).append(joint)
    ordered: list[Joint] = []
    stack = list(reversed(children.get(WORLD, [])))
    while stack:
        joint = stack.pop()
        ordered.append(joint)
        stack += reversed(children.get(joint.child, []))
    if len(ordered) < len(joints):
        left = [joint for joint in joints if joint not in ordered]
        raise ModelError(f"bodies form a cycle that does not hang from the world: {_cycle(left)}")
    return tuple(by_name[joint.child] for joint in ordered), tuple(ordered)


def _cycle(joints: list[Joint]) -> str:
    parent = {joint.child: joint.parent for joint in joints}
    names = [joints[0].child]
    while names.count(names[-1]) < 2:
        names.append(parent[names[-1]])
    return " -> ".join(reversed(names[names.index(names[-1]) :]))


def _check_references(model: Model) -> None:
    frames = model._frame_index
    joints = model._joint_index
    for frame in model.frames:
        if frame.body not in model._body_index and frame.body != WORLD:
            raise ModelError(
                unknown(f"frame {frame.name!r} is on the body", frame.body, [WORLD, *model._body_index])
            )
    for loop in model.loops:
        for end in (loop.frame_a, loop.frame_b):
            if end not in frames:
                raise ModelError(unknown(f"loop {loop.name!r} refers to the frame", end, frames))
        if frames[loop.frame_a].body == frames[loop.frame_b].body:
            raise ModelError(
                f"loop {loop.name!r} joins two frames of the same body {frames[loop.frame_a].body!r}"
            )
    for coupling in model.couplings:
        for name in (coupling.joint, *coupling.masters):
            if name not in joints:
                raise ModelError(unknown(f"coupling {coupling.name!r} refers to the joint", name, joints))
            joint = model.joints[joints[name]]
            if joint.type.nv != 1:
                raise ModelError(
                    f"coupling {coupling.name!r}: joint {name!r} has {joint.type.nv} degrees of freedom, "
                    "expected 1"
                )
        if coupling.joint in coupling.masters:
            raise ModelError(f"coupling {coupling.name!r} couples the joint {coupling.joint!r} to itself")
    for equation in model.equations:
        _check_equation(model, equation)
    for actuator in model.actuators:
        if actuator.joint not in joints:
            raise ModelError(unknown(f"actuator {actuator.name!r} drives the joint", actuator.joint, joints))
        nv = model.joint(actuator.joint).type.nv
        if not 0 <= actuator.dof < nv:
            raise ModelError(
                f"actuator {actuator.name!r} drives dof {actuator.dof} of joint {actuator.joint!r}, "
                f"which has {nv}"
            )
    for sensor in model.sensors:
        table: Any = joints if sensor.of_joint else frames
        if sensor.target not in table:
            what = "joint" if sensor.of_joint else "frame"
            raise ModelError(unknown(f"sensor {sensor.name!r} measures the {what}", sensor.target, table))


def _check_equation(model: Model, equation: Equation) -> None:
    frames = model._frame_index
    if equation.reference not in frames:
        raise ModelError(
            unknown(f"equation {equation.name!r} refers to the frame", equation.reference, frames)
        )
    for name, quantity in equation.inputs:
        frame, _, part = quantity.rpartition(".")
        if quantity in model.coordinate_names or (part in elements.FRAME_PARTS and frame in frames):
            continue
        known = [*model.coordinate_names, *(f"{frame}.x" for frame in frames)]
        raise ModelError(unknown(f"equation {equation.name!r}: input {name!r} stands for", quantity, known))


def _check_parameters(model: Model) -> None:
    known = set(model.parameter_values)
    named = [
        (f"{_singular(field)} {part.name!r}", part) for field in _PARTS for part in getattr(model, field)
    ]
    for what, part in (*named, *(("a shape of the world", visual) for visual in model.visuals)):
        used = _names_of(part)
        for name in sorted(used - known):
            raise ModelError(unknown(f"{what} uses the parameter", name, known))
        if used:
            try:
                _at_values(part, model.parameter_values)
            except ModelError as error:
                raise ModelError(f"{what} with the default parameters: {error}") from None
    for name in sorted(names_in(model.gravity) - known):
        raise ModelError(unknown("gravity uses the parameter", name, known))


def _at_values(part: Any, values: Mapping[str, float]) -> Any:
    """A record with numbers for its expressions; making it runs the checks that expressions are spared."""
    if isinstance(part, Expression):
        return part.evaluate(values)
    if isinstance(part, tuple):
        return tuple(_at_values(item, values) for item in part)
    if dataclasses.is_dataclass(part) and not isinstance(part, type) and _names_of(part):
        fields = [field.name for field in dataclasses.fields(part)]
        return dataclasses.replace(part, **{name: _at_values(getattr(part, name), values) for name in fields})
    return part


def _names_of(part: Any) -> frozenset[str]:
    """Parameters in a record, its tuples and the records inside."""
    if isinstance(part, Expression):
        return part.names
    if isinstance(part, tuple):
        return frozenset().union(*(_names_of(item) for item in part))
    if isinstance(part, Equation):
        return part.parameter_names
    if dataclasses.is_dataclass(part):
        return frozenset().union(*(_names_of(getattr(part, f.name)) for f in dataclasses.fields(part)))
    return frozenset()


def _check_massless(model: Model) -> None:
    """A moving joint needs something to move: mass outboard, armature or a rotor."""
    heavy = [model.value(body.inertia.mass) > 0 for body in model.bodies]
    for i in reversed(range(len(model.bodies))):
        joint = model.joints[i]
        if heavy[i]:
            if model.parents[i] >= 0:
                heavy[model.parents[i]] = True
            continue
        carried = {dof for dof, entry in enumerate(joint.armature) if model.value(entry) > 0}
        carried |= {r.dof for r in joint.rotors if model.value(r.inertia) > 0 and model.value(r.ratio) != 0}
        if len(carried) < joint.type.nv:
            raise ModelError(
                f"body {joint.child!r} on the moving joint {joint.name!r} has no mass, nor has anything "
                "outboard of it; its acceleration would be undefined. Give it an inertia, an armature, "
                "or a fixed joint"
            )


def _singular(field: str) -> str:
    return {"bodies": "body"}.get(field, field[:-1])


# --- models from models -------------------------------------------------------------------------------------


def extract(model: Model, body: str, *, name: str | None) -> Model:
    inside = set(model.subtree(body))
    inside_joints = {joint.name for joint in model.joints if joint.child in inside}
    frames = tuple(frame for frame in model.frames if frame.body in inside)
    kept_frames = {frame.name for frame in frames} | inside
    joints = tuple(
        dataclasses.replace(joint, parent=WORLD, placement=Placement()) if joint.child == body else joint
        for joint in model.joints
        if joint.child in inside
    )
    return check(
        dataclasses.replace(
            model,
            name=name or body,
            bodies=tuple(b for b in model.bodies if b.name in inside),
            joints=joints,
            frames=frames,
            loops=tuple(x for x in model.loops if {x.frame_a, x.frame_b} <= kept_frames),
            couplings=tuple(c for c in model.couplings if {c.joint, *c.masters} <= inside_joints),
            equations=tuple(
                e
                for e in model.equations
                if _ends_of(model, e)[0] <= inside_joints and _ends_of(model, e)[1] <= kept_frames
            ),
            actuators=tuple(a for a in model.actuators if a.joint in inside_joints),
            sensors=tuple(
                s for s in model.sensors if s.target in (inside_joints if s.of_joint else kept_frames)
            ),
            visuals=(),
        )
    )


def _ends_of(model: Model, equation: Equation) -> tuple[set[str], set[str]]:
    """The joints and the frames of an equation."""
    joints, frames = set(), {equation.reference}
    for _, quantity in equation.inputs:
        if quantity in model.coordinate_names:
            k = model.coordinate_names.index(quantity)
            joints.add(
                next(
                    j.name
                    for j, s in zip(model.joints, model._q_slices, strict=True)
                    if s.start <= k < s.stop
                )
            )
        else:
            frames.add(quantity.rpartition(".")[0])
    return joints, frames if frames != {WORLD} or not joints else set()


def attach(model: Model, other: Model, *, to: str, placement: Placement, prefix: str) -> Model:
    mount = model.frame(to)
    where = mount.placement @ placement

    def renamed(part: Any, *fields: str) -> Any:
        changes = {}
        for field in ("name", *fields):
            value = getattr(part, field)
            if isinstance(value, tuple):
                changes[field] = tuple(prefix + entry for entry in value)
            else:
                changes[field] = value if value == WORLD else prefix + value
        return dataclasses.replace(part, **changes)

    def grounded(part: Any, field: str) -> Any:
        if getattr(part, field) != WORLD:
            return part
        return dataclasses.replace(part, **{field: mount.body, "placement": where @ part.placement})

    clash = set(model.parameter_values) & set(other.parameter_values)
    for name in clash:
        if model.parameter_values[name] != other.parameter_values[name]:
            raise ModelError(f"attach: both models have a parameter {name!r}, with different defaults")
    parameters = model.parameters + tuple(item for item in other.parameters if item[0] not in clash)
    # loops and sensors of `other` that refer to its world refer to where it is mounted
    ground = to if placement.is_identity else f"{prefix}{other.name}_mount"
    refers = any(WORLD in (x.frame_a, x.frame_b) for x in other.loops) or any(
        s.target == WORLD for s in other.sensors
    )
    refers = refers or any(WORLD in _ends_of(other, e)[1] for e in other.equations)
    added = (Frame(ground, mount.body, where),) if refers and ground != to else ()

    def on_ground(part: Any, *fields: str) -> Any:
        changes = {field: ground for field in fields if getattr(part, field) == WORLD}
        return dataclasses.replace(part, **changes) if changes else part

    def moved(e: Equation) -> Equation:
        inputs = []
        for name, quantity in e.inputs:
            frame, _, part = quantity.rpartition(".")
            at_world = quantity not in other.coordinate_names and frame == WORLD
            inputs.append((name, f"{ground}.{part}" if at_world else prefix + quantity))
        return on_ground(dataclasses.replace(renamed(e, "reference"), inputs=tuple(inputs)), "reference")

    loops = tuple(on_ground(renamed(x, "frame_a", "frame_b"), "frame_a", "frame_b") for x in other.loops)
    sensors = tuple(on_ground(renamed(s, "target"), "target") for s in other.sensors)
    drawn = _placed(other.visuals, where)
    bodies = tuple(
        dataclasses.replace(body, visuals=body.visuals + drawn) if body.name == mount.body else body
        for body in model.bodies
    )
    return check(
        dataclasses.replace(
            model,
            bodies=bodies + tuple(renamed(body) for body in other.bodies),
            joints=model.joints
            + tuple(grounded(renamed(joint, "parent", "child"), "parent") for joint in other.joints),
            frames=model.frames + tuple(grounded(renamed(f, "body"), "body") for f in other.frames) + added,
            loops=model.loops + loops,
            couplings=model.couplings + tuple(renamed(c, "joint", "masters") for c in other.couplings),
            equations=model.equations + tuple(moved(e) for e in other.equations),
            actuators=model.actuators + tuple(renamed(a, "joint") for a in other.actuators),
            sensors=model.sensors + sensors,
            parameters=parameters,
            visuals=model.visuals + (drawn if mount.body == WORLD else ()),
        )
    )


def _placed(visuals: Iterable[Visual], where: Placement) -> tuple[Visual, ...]:
    return tuple(dataclasses.replace(visual, placement=where @ visual.placement) for visual in visuals)


def merge_fixed(model: Model) -> Model:
    base: dict[str, tuple[str, Placement]] = {WORLD: (WORLD, Placement())}
    inertias: dict[str, Inertia] = {}
    visuals: dict[str, list[Visual]] = {WORLD: list(model.visuals)}
    frames: list[Frame] = []
    joints: list[Joint] = []
    for body, joint in zip(model.bodies, model.joints, strict=True):
        owner, offset = base[joint.parent]
        where = offset @ joint.placement
        if joint.type.nv:
            base[body.name] = (body.name, Placement())
            inertias[body.name] = body.inertia
            visuals[body.name] = list(body.visuals)
            joints.append(dataclasses.replace(joint, parent=owner, placement=where))
            continue
        base[body.name] = (owner, where)
        frames.append(Frame(body.name, owner, where))
        if owner != WORLD:
            inertias[owner] = inertias[owner] + body.inertia.at(where)
        visuals[owner] += _placed(body.visuals, where)
    for frame in model.frames:
        owner, offset = base[frame.body]
        frames.append(Frame(frame.name, owner, offset @ frame.placement))
    return check(
        dataclasses.replace(
            model,
            bodies=tuple(Body(name, inertias[name], tuple(visuals[name])) for name in inertias),
            joints=tuple(joints),
            frames=tuple(frames),
            visuals=tuple(visuals[WORLD]),
        )
    )
