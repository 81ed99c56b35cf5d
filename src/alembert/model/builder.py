"""Building models part by part."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, TypedDict, Unpack, cast

from alembert.errors import ModelError, warn
from alembert.expression import Expression, Scalar, is_name, scalar, scalars
from alembert.joints import Friction, JointType, Limits, Pair, Rotor, Spring
from alembert.model.checking import PARTS, check, without_nodes
from alembert.model.elements import (
    WORLD,
    Actuator,
    Body,
    Coupling,
    Equation,
    Frame,
    Joint,
    LoopJoint,
    SegmentChain,
    Sensor,
    Visual,
)
from alembert.model.inertia import Inertia
from alembert.model.modal import ModalBody
from alembert.model.model import Model
from alembert.model.placement import Placement
from alembert.model.printing import counted


class JointOptions(TypedDict, total=False):
    """What `ModelBuilder.body` takes for its joint, as `ModelBuilder.joint` does."""

    placement: Placement | Any
    limits: Limits
    spring: Spring | None
    friction: Friction | None
    armature: Any
    rotors: Iterable[Rotor]
    node: str


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
        self._parts: dict[str, list[Any]] = {field: [] for field in PARTS}
        self._visuals: list[Visual] = []
        self._chains: dict[str, SegmentChain] = {}

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
        inertia: Inertia | ModalBody | SegmentChain = Inertia(),  # noqa: B008  (frozen)
        *,
        joint: JointType | None = None,
        parent: str = WORLD,
        visuals: Iterable[Visual] = (),
        unphysical: bool = False,
        flexible: ModalBody | SegmentChain | None = None,
        joint_name: str = "",
        **joint_options: Unpack[JointOptions],
    ) -> ModelBuilder:
        """A body; with `joint` also the joint that moves it, called `joint_name` or NAME_joint.

        A `ModalBody` (`al.flexible.beam` makes one) in place of the inertia, or as `flexible`, makes it flexible. One in
        segments is a chain of bodies, NAME, NAME_2 and so on.
        `unphysical=True` keeps an inertia that no body can have, as loaders do for real files.
        `joint_options` are those of `joint`: placement, node, limits, spring, friction, armature, rotors.
        """
        if not isinstance(flexible, ModalBody | SegmentChain | None):
            raise ModelError(f"body {name!r}: flexible is {flexible!r}, expected a flexible body")
        if isinstance(inertia, ModalBody | SegmentChain):
            flexible, inertia = inertia, Inertia()
        chain = flexible if isinstance(flexible, SegmentChain) else None
        if chain:
            first = chain.body(name, 0)
            inertia, flexible = first.inertia, cast(Any, first.flexible)
        shown = cast(Any, visuals)  # the record makes a tuple of them, or says what is wrong
        made = Body(name, inertia, shown, unphysical, cast(Any, flexible))
        if joint is not None:
            self.joint(joint_name or f"{name}_joint", joint, parent=parent, child=name, **joint_options)
        else:
            names = {"parent": parent != WORLD, "joint_name": bool(joint_name)}
            given = [*joint_options, *(key for key, is_given in names.items() if is_given)]
            if given:
                raise ModelError(f"body {name!r} is given {', '.join(given)} but no joint=")
        if chain:
            self._chains[name] = chain
        self._parts["bodies"].append(made)  # last: what is refused leaves nothing behind
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
        node: str = "",
    ) -> ModelBuilder:
        """`node` is the node of a flexible parent at which the joint frame is; `placement` is relative to it."""
        turning = cast(Any, rotors)
        self._parts["joints"].append(
            Joint(name, type, parent, child, placement, limits, spring, friction, armature, turning, node)
        )
        return self

    def frame(
        self,
        name: str,
        body: str,
        placement: Placement | Any = Placement(),  # noqa: B008  (frozen)
        *,
        node: str = "",
    ) -> ModelBuilder:
        """A named place on a body, or at a node of a flexible one."""
        self._parts["frames"].append(Frame(name, body, placement, node))
        return self

    def loop(self, name: str, type: Pair, frame_a: str, frame_b: str) -> ModelBuilder:
        """Close a loop between two frames with a joint type, or another pair (`Distance`, `RollingDisc`, ...)."""
        self._parts["loops"].append(LoopJoint(name, type, frame_a, frame_b))
        return self

    def coupling(
        self, name: str, joint: str, masters: str | Iterable[str], ratios: Any, offset: Scalar = 0.0
    ) -> ModelBuilder:
        """`joint` follows: its coordinate is the offset plus the sum of ratios times those of the masters."""
        joints = [masters] if isinstance(masters, str) else masters
        listed = tuple(joints) if isinstance(joints, Iterable) else (joints,)
        if not all(isinstance(master, str) for master in listed):
            raise ModelError(f"coupling {name!r}: masters is {masters!r}, expected names of joints")
        factors = tuple(ratios) if isinstance(ratios, Iterable) else (ratios,)
        self._parts["couplings"].append(Coupling(name, joint, listed, factors, offset))
        return self

    def equation(self, name: str, formulas: Any, inputs: Any, reference: str = WORLD) -> ModelBuilder:
        """Formulas of coordinates and frames that are to vanish: see `Equation`.

        builder.equation("cam", "lift - 0.1 * cos(angle)", {"lift": "follower", "angle": "shaft"})
        """
        self._parts["equations"].append(Equation(name, formulas, inputs, reference))
        return self

    def actuator(
        self,
        name: str,
        joint: str,
        *,
        dof: int = 0,
        gear: Scalar = 1.0,
        limits: tuple[float, float] = (float("-inf"), float("inf")),
    ) -> ModelBuilder:
        """A drive of one degree of freedom of a joint: effort = gear times the input, which is within `limits`."""
        self._parts["actuators"].append(Actuator(name, joint, dof, gear, limits))
        return self

    def sensor(self, name: str, kind: str, target: str) -> ModelBuilder:
        self._parts["sensors"].append(Sensor(name, kind, target))
        return self

    def world(self, *, visuals: Iterable[Visual]) -> ModelBuilder:
        """Shapes that stand in the world: a floor, a table, a rail."""
        self._visuals += visuals
        return self

    def __repr__(self) -> str:
        return f"<ModelBuilder {self._name!r}: {counted(len(self._parts['bodies']), 'body', 'bodies')}>"

    def build(self) -> Model:
        """The finished model, or a `ModelError` that names what is wrong."""
        parts: dict[str, Any] = {field: tuple(items) for field, items in self._parts.items()}
        if self._chains:
            parts["frames"] = tuple(self._on_segment("frame", frame, "body") for frame in parts["frames"])
            parts["joints"] = tuple(self._on_segment("joint", joint, "parent") for joint in parts["joints"])
        for name, chain in self._chains.items():
            bodies, joints = chain.parts(name)
            parts["bodies"] += bodies
            parts["joints"] += joints
        model = check(
            Model(
                self._name,
                gravity=self._gravity,
                parameters=tuple(self._parameters.items()),
                visuals=tuple(self._visuals),
                **parts,
            )
        )
        for slip in without_nodes(model):
            warn(slip)
        return model

    def _on_segment(self, kind: str, part: Frame | Joint, field: str) -> Frame | Joint:
        """A frame on, or a joint from, a node of a chain at that of the segment."""
        name = getattr(part, field)
        if name not in self._chains or not part.node:
            return part
        body, node, place = self._chains[name].locate(f"{kind} {part.name!r}", name, part.node)
        where = part.placement if place.is_identity else place @ part.placement
        changes: dict[str, Any] = {field: body, "node": node, "placement": where}
        return dataclasses.replace(part, **changes)
