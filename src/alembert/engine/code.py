"""What a source of kernels emits."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from alembert.engine.target import Target


@dataclass(frozen=True)
class Code:
    """IR functions; the module still needs `prelude`."""

    text: str
    workspace: int  # vectors (of W doubles) in the workspace
    work: int  # operations for each call
    helpers: frozenset[tuple[str, int]]  # for `prelude`
    target: Target
    direct: int = 0  # the last results, which leave by an `alembert.engine.outlet`
    quick: bool = False  # to be compiled without optimisation
    constants: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """tables of numbers that the functions read, which get these when the machine code is loaded"""
    lists: Mapping[str, array[int]] = field(default_factory=dict)
    """of instructions that are interpreted; the functions have their addresses when the machine code is loaded"""
    listed: int = 0  # operations in these lists
