"""What is known of one node while a program runs."""

from __future__ import annotations

from typing import Any

import casadi as ca

from alembert.errors import UnsupportedError
from alembert.sweeps.node import Node


class Record:
    """What is known of one node during a program. Steps set attributes; readers get `Any`."""

    node: Node
    parent: Record

    def __init__(self, **known: Any) -> None:
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if "node" in self.__dict__ and self.node.structure.stiffening:
            raise UnsupportedError(
                f"this algorithm does not take flexible bodies yet (modes have no {name!r})"
            )
        raise AttributeError(f"no step before this one has left {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def has(self, name: str) -> bool:
        return name in self.__dict__

    def receive(self, name: str) -> Any:
        """What the parent hands outward under this name."""
        return self.node.attachment.receive(self, name)

    def is_offered(self, name: str) -> bool:
        """Whether the parent has such a field: what steps leave with nodes, the world does not have."""
        return self.parent.has(name)

    def deliver(self, **contributions: Any) -> None:
        """Hand contributions inward: they add to the fields of the parent."""
        self.node.attachment.deliver(self, contributions)

    def rotor_momentum(self) -> ca.SX | None:
        """That of the node, turned with the place where it hangs on a parent that deforms."""
        r = self.node.rotor_momentum
        return r if r is None or not self.has("R_P") else self.R_P @ r

    def add(self, **contributions: Any) -> None:
        """Add to fields that several children contribute to; the first contribution makes the field."""
        for name, value in contributions.items():
            self.__dict__[name] = self.__dict__[name] + value if name in self.__dict__ else value
