"""The immutable model: bodies in tree order, what is attached to them, and questions about the topology.

Body i is moved by joint i; parents come before their children, and a subtree is a contiguous run of indices.
Coordinates and speeds are laid out in the same order. A model is data; what it computes (`model.forward_dynamics`, ...,
in `alembert.model.methods`) it asks of a `Compute`, which is made on first use, so that a model can be read, checked and
written without compiling anything.

A digest of a model's content: the same for equal models in every process, another for every other content.

Every first call of a process needs it to find its kernel, so models of thousands of bodies are read in columns rather
than body by body: all names, all masses, all first components of axes at once, which takes no Python code per number.
A column of values is written as

    the kinds of its values, where there are several, and which has which; then of each kind
    numbers                 their eight bytes
    tuples                  their lengths, and all their entries as one column
    records (dataclasses)   the class, and each field as a column
    anything else           its `repr`

from which the values can be told again, as their number is known. Numbers differ where their bits do: 0.0 and -0.0 too.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.arguments import check_known, numbers, told_elsewhere
from alembert.errors import ArgumentError, ModelError
from alembert.expression import Scalar, evaluate, scalar, scalars
from alembert.forking import COMPILING
from alembert.model import printing
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
from alembert.model.methods import Methods
from alembert.model.placement import Placement
from alembert.model.space import Space, named, random_configuration

if TYPE_CHECKING:
    from alembert.algorithms import Compute
    from alembert.constraints import ConstrainedCompute


def fingerprint(record: Any) -> str:
    """The digest of the fields of a record (a dataclass), whatever the class is called."""
    parts: list[bytes] = []
    for field in dataclasses.fields(record):
        parts.append(repr(field.name).encode())
        _column([getattr(record, field.name)], parts)
    return hashlib.blake2b(b"".join(parts), digest_size=32).hexdigest()


def _column(values: Sequence[Any], parts: list[bytes]) -> None:
    kinds = set(map(type, values))
    if len(kinds) == 1:
        _alike(kinds.pop(), values, parts)
    elif kinds:
        ordered = list(dict.fromkeys(map(type, values)))
        index = {kind: k for k, kind in enumerate(ordered)}
        parts.append(repr([index[type(x)] for x in values]).encode())
        for kind in ordered:
            _alike(kind, [x for x in values if type(x) is kind], parts)


def _alike(kind: type, values: Sequence[Any], parts: list[bytes]) -> None:
    """Values of the same kind."""
    head, fields = _described(kind)
    parts.append(head)
    if kind is float:
        parts.append(struct.pack(f"{len(values)}d", *values))
    elif kind is tuple:
        lengths = set(map(len, values))
        parts.append(repr(lengths if len(lengths) == 1 else list(map(len, values))).encode())
        _column(list(chain.from_iterable(values)), parts)
    elif fields is not None:
        for field in fields:
            _column(list(map(attrgetter(field), values)), parts)
    elif kind is not NoneType:
        parts.append(repr(list(values)).encode())


@cache
def _described(kind: type) -> tuple[bytes, tuple[str, ...] | None]:
    """What stands for a class, and the fields of its records, None of what is no record.

    Classes of Alembert are known by their names, since every kernel's key holds the source; of others, as of a joint that a
    user defines, the code counts.
    """
    name = f"{kind.__module__}.{kind.__qualname__}"
    if not dataclasses.is_dataclass(kind):
        return repr(name).encode(), None
    fields = tuple(field.name for field in dataclasses.fields(kind))
    return repr((name, fields, _foreign_code(kind))).encode(), fields


def _foreign_code(kind: type) -> str:
    if all(_is_ours(base) for base in kind.__mro__[:-1]):
        return ""
    from alembert.meaning import meaning

    try:
        return meaning(kind)
    except ArgumentError:  # who knows what it does: no kernel of another process is right for sure
        return os.urandom(16).hex()


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "alembert"


_TAKE_MODELS = ("simulate", "ensemble", "linearize", "trim", "reach", "certify", "identify", "view", "save")


@told_elsewhere({name: f"al.{name}(model, ...)" for name in _TAKE_MODELS})
@dataclass(frozen=True)
class Model(Methods):
    """Made by a `ModelBuilder` or a file; never changed afterwards. `replace` gives a changed copy."""

    name: str
    bodies: tuple[Body, ...]
    joints: tuple[Joint, ...]
    frames: tuple[Frame, ...] = ()
    loops: tuple[LoopJoint, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    equations: tuple[Equation, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    gravity: tuple[Scalar, ...] = (0.0, 0.0, -9.81)
    parameters: tuple[tuple[str, float], ...] = ()
    visuals: tuple[Visual, ...] = ()
    """shapes that stand in the world"""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ModelError(f"model: name is {self.name!r}, expected a text")
        for field in (
            "bodies",
            "joints",
            "frames",
            "loops",
            "couplings",
            "equations",
            "actuators",
            "sensors",
            "visuals",
        ):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        object.__setattr__(self, "gravity", scalars(self.gravity, 3, "gravity"))

    @cached_property
    def compute(self) -> Compute:
        """What computes: kernels, the reading of arguments, and what is said where a result is not finite."""
        if self.is_constrained:
            return self.constrained_compute
        with COMPILING:  # a fork waits until what computes is imported
            from alembert.algorithms import Compute

            return Compute(self)

    @cached_property
    def constrained_compute(self) -> ConstrainedCompute:
        """What computes under loops, couplings and equations, of which a model may have none."""
        with COMPILING:
            from alembert.constraints import ConstrainedCompute

            return ConstrainedCompute(self)

    # --- sizes and indices ----------------------------------------------------------------------------------

    @cached_property
    def space(self) -> Space:
        """Who owns which coordinate, and the manifold of all configurations."""
        return Space(self.joints, self.bodies)

    @cached_property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.space.nq

    @cached_property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return self.space.nv

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Index of each body's parent, -1 for the world."""
        index = {WORLD: -1} | {body.name: i for i, body in enumerate(self.bodies)}
        return tuple(index[joint.parent] for joint in self.joints)

    @cached_property
    def body_indices(self) -> dict[str, int]:
        """The place of each body among `bodies`, by its name."""
        return {body.name: i for i, body in enumerate(self.bodies)}

    @cached_property
    def joint_indices(self) -> dict[str, int]:
        """The place of each joint among `joints`, by its name."""
        return {joint.name: i for i, joint in enumerate(self.joints)}

    @cached_property
    def frames_by_name(self) -> dict[str, Frame]:
        """All frames; every body, and the world, is also a frame."""
        own = {name: Frame(name, name) for name in (WORLD, *self.body_indices)}
        return own | {frame.name: frame for frame in self.frames}

    def body_index(self, name: str) -> int:
        return _find(self.body_indices, name, "body", self.name)

    def joint_index(self, name: str) -> int:
        return _find(self.joint_indices, name, "joint", self.name)

    def body(self, name: str) -> Body:
        return self.bodies[self.body_index(name)]

    def joint(self, name: str) -> Joint:
        return self.joints[self.joint_index(name)]

    def frame(self, name: str) -> Frame:
        """A frame by its name; every body, and the world, is also a frame."""
        return _find(self.frames_by_name, name, "frame", self.name)

    def q_slice(self, joint: str) -> slice:
        """Where the joint's coordinates are in q."""
        return self.space[self.joint_index(joint)].q

    def v_slice(self, joint: str) -> slice:
        """Where the joint's speeds are in v."""
        return self.space[self.joint_index(joint)].v

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:
        return self.space.coordinate_names

    @cached_property
    def speed_names(self) -> tuple[str, ...]:
        return self.space.speed_names

    @cached_property
    def is_constrained(self) -> bool:
        """Whether the model has loops, couplings or equations."""
        return bool(self.loops or self.couplings or self.equations)

    # --- topology -------------------------------------------------------------------------------------------

    def parent(self, body: str) -> str:
        return self.joints[self.body_index(body)].parent

    def children(self, body: str) -> tuple[str, ...]:
        if not _is_world(body):
            self.body_index(body)
        return tuple(joint.child for joint in self.joints if joint.parent == body)

    def subtree(self, body: str) -> tuple[str, ...]:
        """The body and everything outboard of it."""
        if _is_world(body):
            return tuple(self.body_indices)
        first = self.body_index(body)
        inside = {first}
        for i in range(first + 1, len(self.bodies)):
            if self.parents[i] in inside:
                inside.add(i)
        return tuple(self.bodies[i].name for i in sorted(inside))

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """The bodies from one to the other through the tree, both included."""
        up, down = self._ancestry(start), self._ancestry(end)
        common = next(name for name in up if name in set(down))
        return (*up[: up.index(common) + 1], *reversed(down[: down.index(common)]))

    def depth(self, body: str) -> int:
        """How many joints lie between the world and the body."""
        return len(self._ancestry(body)) - 1

    @cached_property
    def branches(self) -> tuple[tuple[str, ...], ...]:
        """The unbranched runs of bodies, base to tip; each starts at the world or below a branching body."""
        runs: list[list[str]] = []
        for body, joint in zip(self.bodies, self.joints, strict=True):
            single = joint.parent != WORLD and len(self.children(joint.parent)) == 1
            if single and runs and runs[-1][-1] == joint.parent:
                runs[-1].append(body.name)
            else:
                runs.append([body.name])
        return tuple(tuple(run) for run in runs)

    def _ancestry(self, body: str) -> list[str]:
        names = [body]
        while not _is_world(names[-1]):
            names.append(self.parent(names[-1]))
        return names

    # --- numbers --------------------------------------------------------------------------------------------

    @cached_property
    def parameter_values(self) -> dict[str, float]:
        """The default of each named parameter."""
        return dict(self.parameters)

    def value(self, number: Scalar) -> float:
        """A number of the model at the default parameters."""
        return float(evaluate(number, self.parameter_values))

    @cached_property
    def mass(self) -> float:
        """Total mass of all bodies, also of those welded to the world, at the default parameters."""
        return sum(self.value(body.inertia.mass) for body in self.bodies)

    @cached_property
    def lower_limits(self) -> np.ndarray:
        """Per coordinate, -inf where there is none."""
        return self.space.limits("lower")

    @cached_property
    def upper_limits(self) -> np.ndarray:
        return self.space.limits("upper")

    @cached_property
    def velocity_limits(self) -> np.ndarray:
        """Per speed, inf where there is none."""
        return self.space.limits("velocity")

    @cached_property
    def effort_limits(self) -> np.ndarray:
        return self.space.limits("effort")

    def neutral(self) -> np.ndarray:
        """The configuration at which every joint is at its neutral place."""
        return self.space.neutral()

    def configuration(self, positions: Mapping[str, Any]) -> np.ndarray:
        """The neutral configuration but for what is named: joints or single coordinates, `{"elbow": 0.5, "base.z": 1}`.

        Numbers may have batch dimensions, (N,) or (N, 1) for one coordinate and (N, 4) for a quaternion.
        """
        space = self.space
        return named(
            "configuration", positions, space.coordinate_places, space.coordinate_names, self.neutral()
        )

    def velocity(self, speeds: Mapping[str, Any]) -> np.ndarray:
        """At rest but for what is named: joints or single speeds, `{"elbow": 0.5, "base.wz": 0.1}`."""
        space = self.space
        return named("velocity", speeds, space.speed_places, space.speed_names, np.zeros(self.nv))

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> np.ndarray:
        """Uniform within the limits (see `JointType.random` where there are none).

        Coordinates that couplings (mimic joints) determine follow the others, within their own limits where a thousand
        samples find such a configuration. Loops and equations are left open: `assemble` closes them from there.
        """
        try:
            generator = np.random.default_rng(rng)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"random_configuration: rng is {rng!r}, expected a numpy Generator or a seed"
            ) from None
        return random_configuration(self, generator)

    def split(self, vector: Any) -> dict[str, np.ndarray]:
        """A vector over q or v (…, nq or nv) as a dictionary by joint; fixed joints are left out.

        Where nq = nv the two layouts are the same.
        """
        x = numbers("split", "vector", vector)
        if x.ndim == 0 or x.shape[-1] not in (self.nq, self.nv):
            raise ArgumentError(
                f"split: vector has shape {x.shape}, expected (..., {self.nq}) or (..., {self.nv})"
            )
        of_q = x.shape[-1] == self.nq
        return {o.name: x[..., o.q if of_q else o.v] for o in self.space if o.type.nv}

    # --- changed copies -------------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Model:
        """A copy with other fields (`gravity=`, `name=`, `parameters={...}`, `bodies=`), checked anew."""
        from alembert.model.checking import check

        known = [field.name for field in dataclasses.fields(self)]
        for name in changes:
            check_known("replace: no field", name, known)
        if isinstance(changes.get("parameters"), Mapping):
            merged = self.parameter_values | dict(changes["parameters"])
            for name in merged.keys() - self.parameter_values.keys():
                raise ArgumentError(printing.unknown("replace: no parameter", name, self.parameter_values))
            changes["parameters"] = tuple(
                (name, scalar(value, f"parameter {name!r}")) for name, value in merged.items()
            )
        return check(dataclasses.replace(self, **changes))

    def replace_body(self, name: str, **changes: Any) -> Model:
        """A copy in which one body has other fields (`inertia=...`)."""
        return self.replace(bodies=_changed(self.bodies, self.body_index(name), changes))

    def replace_joint(self, name: str, **changes: Any) -> Model:
        """A copy in which one joint has other fields (`type=...`, `limits=...`, `placement=...`)."""
        return self.replace(joints=_changed(self.joints, self.joint_index(name), changes))

    def extract(self, body: str, *, name: str | None = None) -> Model:
        """The subtree at `body` as a model of its own, hanging by the same joint from the world."""
        from alembert.model.editing import extract

        return extract(self, body, name=name)

    def attach(
        self,
        other: Model,
        *,
        to: str,
        placement: Placement | None = None,
        prefix: str = "",
    ) -> Model:
        """This model with `other` mounted on the frame `to`: what hung from its world hangs from that frame.

        `prefix` goes before every name of `other`, so that two of a kind can be mounted.
        """
        from alembert.model.editing import attach

        return attach(self, other, to=to, placement=placement or Placement(), prefix=prefix)

    def merge_fixed(self) -> Model:
        """The same system with bodies on fixed joints made one with their parents; names stay as frames.

        What is welded to the world goes with its mass and its shapes.
        """
        from alembert.model.editing import merge_fixed

        return merge_fixed(self)

    # --- identity -------------------------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the content: equal models have equal ones, in every process."""
        return fingerprint(self)

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and (self is other or self.fingerprint == other.fingerprint)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __str__(self) -> str:
        return printing.tree(self)

    def _repr_html_(self) -> str:
        return printing.html_table(self)

    def __repr__(self) -> str:
        bodies = printing.counted(len(self.bodies), "body", "bodies")
        return f"<Model {self.name!r}: {bodies}, {printing.counted(self.nv, 'degree of freedom', 'degrees of freedom')}>"

    def total_inertia_of(self, body: str) -> Inertia:
        """A body together with everything welded to it by fixed joints, in its own frame."""
        total = self.body(body).inertia
        for joint in self.joints:
            if joint.parent == body and joint.type.nv == 0:
                total = total + self.total_inertia_of(joint.child).at(joint.placement)
        return total


def _find(table: Mapping[str, Any], name: str, kind: str, model: str) -> Any:
    try:
        return table[name]
    except (KeyError, TypeError):  # the latter: what is no name
        raise ArgumentError(printing.unknown(f"model {model!r} has no {kind}", name, table)) from None


def _is_world(name: Any) -> bool:
    return isinstance(name, str) and name == WORLD


def _changed(parts: tuple[Any, ...], index: int, changes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Bodies or joints, one of them with other fields."""
    part = parts[index]
    for name in changes:
        known = [field.name for field in dataclasses.fields(part)]
        check_known(f"replace_{type(part).__name__.lower()}: no field", name, known)
    return (*parts[:index], dataclasses.replace(part, **changes), *parts[index + 1 :])


def check_model(function: str, model: Any) -> None:
    """Refuse what is no `Model`."""
    if not isinstance(model, Model):
        raise ArgumentError(
            f"{function}: model is a {type(model).__name__}, expected a Model; al.load reads one from a file"
        )
