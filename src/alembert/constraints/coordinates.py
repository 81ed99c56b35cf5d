"""The speeds in which the equation of motion is written: all of the tree, or independent ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from alembert.errors import ArgumentError

Coordinates = Literal["all", "independent"] | Sequence[str]
"""all speeds, a choice of independent ones, or the joints and degrees of freedom that determine the others"""


def projected(coordinates: Coordinates) -> bool:
    """Whether they are not simply all."""
    return not (isinstance(coordinates, str) and coordinates == "all")


def names_of(function: str, coordinates: Coordinates) -> Sequence[str] | None:
    """The names of independent speeds; None where the choice is open."""
    if not isinstance(coordinates, str):
        return coordinates
    if coordinates != "independent":
        raise ArgumentError(
            f"{function}: coordinates is {coordinates!r}, expected 'all', 'independent' or a list of joints or degrees of "
            "freedom"
        )
    return None
