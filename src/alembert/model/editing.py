"""Models from models: a part of one, one on another, one with its fixed joints merged."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from alembert.errors import ModelError, UnsupportedError
from alembert.model.checking import check
from alembert.model.elements import WORLD, Body, Equation, Frame, Joint, Visual
from alembert.model.inertia import Inertia
from alembert.model.model import Model
from alembert.model.placement import Placement


def extract(model: Model, body: str, *, name: str | None) -> Model:
    def hung(joint: Joint) -> Joint:
        return (
            dataclasses.replace(joint, parent=WORLD, placement=Placement()) if joint.child == body else joint
        )

    return check(_part(model, set(model.subtree(body)), name or body, hung))


def between(model: Model, below: str, above: str) -> Model:
    """The bodies that move `above` relative to the body (or world) `below`: a section of an arm.

    Bodies belong together where one hangs from the other, or a loop, coupling or equation ties them; those that lead from
    one of the two to the other are the section. The body below stands still, as a frame of the section's world.
    """
    if above not in set(model.subtree(below)) - {below}:
        raise ModelError(f"the body {above!r} does not hang from {below!r}: there is no section between them")
    ends = {below, above}
    inside = {above}
    for group, beside in _groups(model, {WORLD, *ends}):
        if ends <= beside:
            if not beside <= ends:
                raise UnsupportedError(
                    f"{min(group)!r}, between {below!r} and {above!r}, is tied to the world or to another section as well; "
                    "sections share nothing but the bodies at their ends"
                )
            inside |= group

    def hung(joint: Joint) -> Joint:
        return dataclasses.replace(joint, parent=WORLD) if joint.parent == below else joint

    ground = [dataclasses.replace(f, body=WORLD) for f in model.frames if f.body == below]
    ground += [Frame(below, WORLD)] if below != WORLD else []
    nodes = [f.name for f in ground if f.node] + [
        j.name for j in model.joints if j.parent == below and j.node
    ]
    if nodes:
        raise UnsupportedError(f"{nodes[0]!r} is on a flexible body: sections begin at rigid ones")
    name = f"{model.name} from {below} to {above}"
    return check(_part(model, inside, name, hung, tuple(ground), frozenset({WORLD})))


def _groups(model: Model, cuts: set[str]) -> list[tuple[set[str], set[str]]]:
    """Bodies that belong together when `cuts` are taken out, and which of the cuts each group is tied to."""
    child = {joint.name: joint.child for joint in model.joints}
    on = {name: frame.body for name, frame in model.frames_by_name.items()}
    ties = [{joint.parent, joint.child} for joint in model.joints]
    ties += [{on[x.frame_a], on[x.frame_b]} for x in model.loops]
    ties += [{child[j] for j in (c.joint, *c.masters)} for c in model.couplings]
    for equation in model.equations:
        joints, frames = _ends_of(model, equation)
        ties.append({child[j] for j in joints} | {on[f] for f in frames})
    groups: list[tuple[set[str], set[str]]] = []
    for tie in ties:
        bodies, beside = tie - cuts, tie & cuts
        if not bodies:
            continue
        for group in [g for g in groups if g[0] & bodies]:
            groups.remove(group)
            bodies, beside = bodies | group[0], beside | group[1]
        groups.append((bodies, beside))
    return groups


def _part(
    model: Model,
    inside: set[str],
    name: str,
    hung: Callable[[Joint], Joint],
    ground: tuple[Frame, ...] = (),
    also: frozenset[str] = frozenset(),
) -> Model:
    """Some bodies of a model as one of their own; `ground` are frames of its world, `also` other frames that it keeps."""
    inside_joints = {joint.name for joint in model.joints if joint.child in inside}
    frames = (*ground, *(frame for frame in model.frames if frame.body in inside))
    kept_frames = {frame.name for frame in frames} | inside | also
    return dataclasses.replace(
        model,
        name=name,
        bodies=tuple(b for b in model.bodies if b.name in inside),
        joints=tuple(hung(joint) for joint in model.joints if joint.child in inside),
        frames=frames,
        loops=tuple(x for x in model.loops if {x.frame_a, x.frame_b} <= kept_frames),
        couplings=tuple(c for c in model.couplings if {c.joint, *c.masters} <= inside_joints),
        equations=tuple(
            e
            for e in model.equations
            if _ends_of(model, e)[0] <= inside_joints and _ends_of(model, e)[1] <= kept_frames
        ),
        actuators=tuple(a for a in model.actuators if a.joint in inside_joints),
        sensors=tuple(s for s in model.sensors if s.target in (inside_joints if s.of_joint else kept_frames)),
        visuals=(),
    )


def _ends_of(model: Model, equation: Equation) -> tuple[set[str], set[str]]:
    """The joints and the frames of an equation."""
    joints, frames = set(), {equation.reference}
    for _, quantity in equation.inputs:
        if quantity in model.coordinate_names:
            k = model.coordinate_names.index(quantity)
            joints.add(next(o.name for o in model.space if o.q.start <= k < o.q.stop))
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
        return dataclasses.replace(
            part, **{field: mount.body, "node": mount.node, "placement": where @ part.placement}
        )

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
    added = (Frame(ground, mount.body, where, mount.node),) if refers and ground != to else ()

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
    flexible = [body.name for body in model.bodies if body.flexible is not None]
    if flexible:
        raise UnsupportedError(
            f"merge_fixed: body {flexible[0]!r} is flexible; bodies fixed to it, or it to another, cannot be made one"
        )
    base: dict[str, tuple[str, Placement]] = {WORLD: (WORLD, Placement())}
    inertias: dict[str, Inertia] = {}
    unphysical: dict[str, bool] = {}
    visuals: dict[str, list[Visual]] = {WORLD: list(model.visuals)}
    frames: list[Frame] = []
    joints: list[Joint] = []
    for body, joint in zip(model.bodies, model.joints, strict=True):
        owner, offset = base[joint.parent]
        where = offset @ joint.placement
        if joint.type.nv:
            base[body.name] = (body.name, Placement())
            inertias[body.name], unphysical[body.name] = body.inertia, body.unphysical
            visuals[body.name] = list(body.visuals)
            joints.append(dataclasses.replace(joint, parent=owner, placement=where))
            continue
        base[body.name] = (owner, where)
        frames.append(Frame(body.name, owner, where))
        if owner != WORLD:
            try:
                inertias[owner] = inertias[owner] + body.inertia.at(where)
            except ModelError as error:  # formulas of parameters grow with every body
                raise ModelError(
                    f"merge_fixed: body {body.name!r} and {owner!r}, to which it is fixed: {error}"
                ) from None
            unphysical[owner] |= body.unphysical
        visuals[owner] += _placed(body.visuals, where)
    for frame in model.frames:
        owner, offset = base[frame.body]
        frames.append(Frame(frame.name, owner, offset @ frame.placement))
    return check(
        dataclasses.replace(
            model,
            bodies=tuple(
                Body(name, inertias[name], tuple(visuals[name]), unphysical[name]) for name in inertias
            ),
            joints=tuple(joints),
            frames=tuple(frames),
            visuals=tuple(visuals[WORLD]),
        )
    )
