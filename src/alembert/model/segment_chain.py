"""Bodies end to end: one that bends far, made of several that bend little or of rigid ones with springs between them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from alembert.errors import ModelError
from alembert.expression import Scalar
from alembert.joints import Fixed, Friction, JointType, Spring
from alembert.model.elements import Body, Joint
from alembert.model.inertia import Inertia
from alembert.model.modal import ModalBody
from alembert.model.placement import Placement


@dataclass(frozen=True)
class SegmentChain:
    """Bodies, each held at the end of the one before: at the node `tip` of a flexible one, at the length of a rigid one.

    In a model they are bodies of their own, NAME, NAME_2, NAME_3 and so on; nodes of the whole are nodes of one of them.
    """

    segments: tuple[ModalBody | Inertia, ...]
    nodes: Mapping[str, tuple[int, Scalar | str]]
    """for each node of the whole, the segment (from 0), and the node on it or its x on a rigid one"""
    lengths: tuple[Scalar, ...] = ()
    """of rigid segments"""
    hinge: JointType = Fixed()  # noqa: RUF009  (frozen)
    spring: Spring | None = None
    friction: Friction | None = None
    """of the joints between the segments"""

    def bodies(self, name: str) -> tuple[str, ...]:
        """What the segments are called in a model."""
        return tuple(name if k == 0 else f"{name}_{k + 1}" for k in range(len(self.segments)))

    def body(self, name: str, k: int) -> Body:
        part = self.segments[k]
        return Body(name, part) if isinstance(part, Inertia) else Body(name, flexible=part)

    def parts(self, name: str) -> tuple[tuple[Body, ...], tuple[Joint, ...]]:
        """All bodies but the first, and the joints that hold them."""
        names = self.bodies(name)
        bodies = (self.body(own, k) for k, own in enumerate(names) if k)
        joints = (
            Joint(
                f"{own}_joint",
                self.hinge,
                before,
                own,
                placement=Placement((self.lengths[k], 0.0, 0.0)) if self.lengths else Placement(),
                spring=self.spring,
                friction=self.friction,
                node="" if self.lengths else "tip",
            )
            for k, (before, own) in enumerate(itertools.pairwise(names))
        )
        return tuple(bodies), tuple(joints)

    def locate(self, what: str, name: str, node: str) -> tuple[str, str, Placement]:
        """The body, the node of it and the place from there that a node of the whole is."""
        if node not in self.nodes:
            known = ", ".join(map(repr, self.nodes))
            raise ModelError(f"{what} is at the node {node!r} of {name!r}, which has {known}")
        segment, own = self.nodes[node]
        body = self.bodies(name)[segment]
        return (body, own, Placement()) if isinstance(own, str) else (body, "", Placement((own, 0.0, 0.0)))
