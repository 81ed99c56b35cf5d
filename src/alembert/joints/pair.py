"""What two frames may do relative to each other: the protocol of everything that can close a loop.

With the pose X = X_ab of frame b in frame a, and the relative velocity V_ab in b axes about b's origin (angular first), a
pair gives

    phi = residual(X)                zero where the loop is closed                                  (1)
    rows(X) V_ab = 0                 the speeds that are possible                                   (2)

Where phi = 0, its derivative is rows(X) V_ab. Rows that are not holonomic (rolling) have no residual: theirs is 0. Forces
f of the rows act as the wrench rows^T f on b, at its origin and in its axes, and its opposite on a.

A pair is a frozen record of geometric constants. Joint types are pairs; those in `PAIRS` are not joints of a tree.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

from alembert.errors import ModelError, UnsupportedError
from alembert.expression import Expression, Scalar
from alembert.spatial import Pose
from alembert.spatial.arrays import Array


@dataclass(frozen=True)
class Pair:
    """The protocol, and the constants of a record."""

    kind: ClassVar[str]
    """The name in files and in the registry."""

    @property
    def closes_loops(self) -> bool:
        return True

    @property
    def holonomic(self) -> tuple[bool, ...]:
        """One entry per row: whether it is the derivative of its residual."""
        raise NotImplementedError

    def residual(self, X: Pose) -> Array:
        """(1)"""
        raise UnsupportedError(f"residual: a {self.kind} pair has none")

    def rows(self, X: Pose) -> Array:
        """(2), m x 6"""
        raise UnsupportedError(f"rows: a {self.kind} pair has none")

    def sliding_point(self, X: Pose) -> Array | None:
        """The point of b, in b axes, that slides on a and takes the force, which is normal there; None: nothing slides."""
        return None

    def constants(self) -> tuple[Scalar, ...]:
        """All geometric numbers, flat; axes that depend on parameters are made unit for any value of these."""
        return tuple(
            entry
            for field in dataclasses.fields(self)
            if not field.metadata.get("structural")
            for entry in normalised(_flat(getattr(self, field.name)), is_axis=field.name in _AXES)
        )

    def with_constants(self, values: Any) -> Self:
        """A copy whose geometric numbers are `values` (a sequence or an `SX` vector), unchecked."""
        changed, position = {}, 0
        for field in dataclasses.fields(self):
            if field.metadata.get("structural"):
                continue
            count = len(_flat(getattr(self, field.name)))
            part = values[position : position + count]
            position += count
            changed[field.name] = part if isinstance(getattr(self, field.name), tuple) else part[0]
        if not changed:
            return self
        copy = object.__new__(type(self))
        for field in dataclasses.fields(self):
            object.__setattr__(copy, field.name, changed.get(field.name, getattr(self, field.name)))
        return copy


Kind = TypeVar("Kind", bound=type[Pair])
PAIRS: dict[str, type[Pair]] = {}


def register_pair(cls: Kind) -> Kind:
    """Make a pair known to files, tests and docs under its `kind`."""
    if PAIRS.setdefault(cls.kind, cls) is not cls:
        raise ModelError(f"pair {cls.kind!r} is already registered by {PAIRS[cls.kind].__name__}")
    return cls


def structural(**options: Any) -> Any:
    """A field that shapes the joint (names, functions) rather than a number of it."""
    return dataclasses.field(metadata={"structural": True}, **options)


_AXES = ("axis", "first", "second", "normal", "direction")


def normalised(entries: tuple[Scalar, ...], *, is_axis: bool = True) -> tuple[Scalar, ...]:
    """Expressions of an axis divided by its length; numbers are unit already."""
    if not is_axis or not any(isinstance(entry, Expression) for entry in entries):
        return entries
    square = entries[0] * entries[0] + entries[1] * entries[1] + entries[2] * entries[2]
    length = Expression(f"sqrt({square})")
    return tuple(entry / length for entry in entries)


def _flat(value: Any) -> tuple[Scalar, ...]:
    return value if isinstance(value, tuple) else (value,)
