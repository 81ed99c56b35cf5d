"""Flexible bodies end to end: how one that bends far is made of several that bend little."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from alembert.errors import ModelError
from alembert.joints import Fixed
from alembert.model.elements import Body, Joint
from alembert.model.modal import ModalBody


@dataclass(frozen=True)
class ModalChain:
    """Flexible bodies, each fixed to the node `tip` of the one before.

    In a model they are bodies of their own, NAME, NAME_2, NAME_3 and so on; nodes of the whole are nodes of one of them.
    """

    segments: tuple[ModalBody, ...]
    nodes: Mapping[str, tuple[int, str]]
    """for each node of the whole, the segment (from 0) and the node on it"""

    def bodies(self, name: str) -> tuple[str, ...]:
        """What the segments are called in a model."""
        return tuple(name if k == 0 else f"{name}_{k + 1}" for k in range(len(self.segments)))

    def parts(self, name: str) -> tuple[tuple[Body, ...], tuple[Joint, ...]]:
        """All bodies but the first, and the joints that hold them."""
        names = self.bodies(name)
        bodies = (Body(own, flexible=part) for own, part in zip(names[1:], self.segments[1:], strict=True))
        joints = (
            Joint(f"{own}_joint", Fixed(), before, own, node="tip")
            for before, own in itertools.pairwise(names)
        )
        return tuple(bodies), tuple(joints)

    def locate(self, what: str, name: str, node: str) -> tuple[str, str]:
        """The body and the node of it that a node of the whole is."""
        if node not in self.nodes:
            known = ", ".join(map(repr, self.nodes))
            raise ModelError(f"{what} is at the node {node!r} of {name!r}, which has {known}")
        segment, own = self.nodes[node]
        return self.bodies(name)[segment], own
