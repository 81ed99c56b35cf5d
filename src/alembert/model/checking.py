"""The checks that every model passes, and the order of its tree."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from alembert.arguments import unknown
from alembert.errors import ModelError
from alembert.expression import Expression, floats, names_in
from alembert.model import elements
from alembert.model.elements import WORLD, Body, Equation, Frame, Joint
from alembert.model.model import Model

PARTS = ("bodies", "joints", "frames", "loops", "couplings", "equations", "actuators", "sensors")


def check(model: Model) -> Model:
    """The model with its bodies in tree order, or a `ModelError` that names the part and its numbers."""
    check_name("the model has the name", str(model.name))
    _check_names({field: getattr(model, field) for field in PARTS})
    bodies, joints = _tree_order(model.bodies, model.joints)
    if joints != model.joints or bodies != model.bodies:
        model = dataclasses.replace(model, bodies=bodies, joints=joints)
    _check_references(model)
    _check_parameters(model)
    for body in model.bodies:
        problem = body.inertia.problem(model.parameter_values)
        if problem and not (body.unphysical and model.value(body.inertia.mass) >= 0):
            raise ModelError(f"body {body.name!r}: {problem}")
        if body.flexible is not None and body.name in model.joint_indices:
            raise ModelError(
                f"a joint is called {body.name!r} as the flexible body is; its modes go by that name: rename one"
            )
        if body.flexible is not None:
            body.flexible.check(f"body {body.name!r}", model.parameter_values)
    for name, problem in massless_tips(model).items():
        if not model.body(name).unphysical:
            raise ModelError(problem)
    return model


def check_name(sentence: str, name: str) -> None:
    """Refuse control characters: names are shown in terminals, which would obey them."""
    for character in name if not name.isprintable() else "":
        if unicodedata.category(character) == "Cc" and character not in "\n\t":
            raise ModelError(f"{sentence} {name!r}, which has the control character {character!r}")


def _check_names(parts: dict[str, tuple[Any, ...]]) -> None:
    for field, items in parts.items():
        seen: set[str] = set()
        for item in items:
            kind = _singular(field)
            check_name(f"{kind} has the name", item.name)
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
    frames = model.frames_by_name
    joints = model.joint_indices
    for frame in model.frames:
        if frame.body not in model.body_indices and frame.body != WORLD:
            raise ModelError(
                unknown(f"frame {frame.name!r} is on the body", frame.body, [WORLD, *model.body_indices])
            )
    for joint in model.joints:
        _check_node(model, f"joint {joint.name!r}", joint.parent, joint.node)
    for frame in model.frames:
        _check_node(model, f"frame {frame.name!r}", frame.body, frame.node)
    for loop in model.loops:
        for end in (loop.frame_a, loop.frame_b):
            if end not in frames:
                raise ModelError(unknown(f"loop {loop.name!r} refers to the frame", end, frames))
        a, b = frames[loop.frame_a], frames[loop.frame_b]
        if a.body == b.body and a.node == b.node:
            at = f"node {a.node!r} of the same body" if a.node else "the same body"
            raise ModelError(f"loop {loop.name!r} joins two frames of {at} {a.body!r}")
    for coupling in model.couplings:
        for name in (coupling.joint, *coupling.masters):
            if name not in joints and name in model.coordinate_names:
                raise ModelError(
                    f"coupling {coupling.name!r} refers to {name!r}, which is no joint of one degree of freedom; an "
                    "equation takes single coordinates, of modes as well"
                )
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


def _check_node(model: Model, what: str, body: str, node: str) -> None:
    if not node:
        return
    flexible = None if body == WORLD else model.body(body).flexible
    if flexible is None:
        raise ModelError(f"{what} is at the node {node!r} of {body!r}, which is no flexible body")
    known = [place.name for place in flexible.nodes]
    if node not in known:
        raise ModelError(
            unknown(f"{what} is at the node", f"{body}.{node}", [f"{body}.{name}" for name in known])
        )


def without_nodes(model: Model) -> Iterator[str]:
    """What is on a flexible body without a node, yet nearer to one that moves than to the body's frame: a likely slip."""
    values = model.parameter_values
    parts: list[tuple[str, str, Joint | Frame]] = [
        (f"joint {joint.name!r}", joint.parent, joint) for joint in model.joints
    ]
    parts += [(f"frame {frame.name!r}", frame.body, frame) for frame in model.frames]
    for what, body, part in parts:
        flexible = None if body == WORLD or part.node else model.body(body).flexible
        if flexible is None or not flexible.nodes:
            continue
        place = floats(part.placement.translation, values)
        apart = [float(np.linalg.norm(floats(node.position, values) - place)) for node in flexible.nodes]
        k = int(np.argmin(apart))
        if apart[k] < np.linalg.norm(place) and np.any(floats(flexible.nodes[k].shapes, values)):
            yield (
                f"{what} is on the flexible body {body!r} without a node: it stays where {body!r} is not deformed. The node "
                f"{flexible.nodes[k].name!r} is {apart[k]:.3g} m away; give node={flexible.nodes[k].name!r} (the placement "
                f"is then relative to it), or put it on the body that carries {body!r}"
            )


def _check_equation(model: Model, equation: Equation) -> None:
    frames = model.frames_by_name
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
    named = [(f"{_singular(field)} {part.name!r}", part) for field in PARTS for part in getattr(model, field)]
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


def massless_tips(model: Model) -> dict[str, str]:
    """Bodies whose moving joint has nothing to move (no mass outboard, armature or rotor), each with a sentence."""
    found = {}
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
            found[joint.child] = (
                f"body {joint.child!r} on the moving joint {joint.name!r} has no mass, nor has anything "
                "outboard of it; its acceleration would be undefined. Give it an inertia, an armature, "
                "or a fixed joint"
            )
    return found


def _singular(field: str) -> str:
    return {"bodies": "body"}.get(field, field[:-1])
