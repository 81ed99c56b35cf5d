"""The operators of a model at one configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from alembert.algorithms.arguments import FrameLike
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.operators.algebra import Blocks, I, Identity, Operator, Recursion, diagonal
from alembert.spatial import Ad_dual
from alembert.sweeps import operators as steps

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class SpatialOperators:
    """The operators of a model at one configuration, by their names in 002: those of its tree, whatever loops it has.

    J_r and R are what armature and rotors add: D = H P H^T + J_r, K = E_phi G + R D^-1. Both are zero for a
    tree of plain bodies, and only then do tau_bar P = tau_bar P tau_bar^T, E_psi = E_phi tau_bar,
    M = P - E_psi P E_psi^T and H psi M psi^T H^T = D hold. Everything else here holds always.
    """

    model: Model
    parameters: Mapping[str, float]
    H: Blocks
    M: Blocks
    E_phi: Blocks
    P: Blocks
    D: Blocks
    G: Blocks
    K: Blocks
    Upsilon: Blocks
    J_r: Blocks
    R: Blocks
    I: ClassVar[Identity] = I

    @cached_property
    def phi(self) -> Recursion:
        """(I - E_phi)^-1: composite bodies, all joints locked."""
        return Recursion(self.E_phi)

    @cached_property
    def tau_bar(self) -> Operator:
        """I - G H."""
        return I - self.G @ self.H

    @cached_property
    def E_psi(self) -> Blocks:
        """E_phi - K H."""
        E = self.E_phi - self.K @ self.H
        assert isinstance(E, Blocks)
        return E

    @cached_property
    def psi(self) -> Recursion:
        """(I - E_psi)^-1: articulated bodies, all joints free."""
        return Recursion(self.E_psi)

    @cached_property
    def Omega(self) -> Operator:
        """psi^T H^T D^-1 H psi: the bodies' accelerations due to forces on them. Its diagonal is Upsilon."""
        X = self.H @ self.psi
        return X.T @ self.D.inverse @ X

    @cached_property
    def mass_matrix(self) -> Operator:
        """[I + H phi K] D [I + H phi K]^T; its inverse is lemma 0.3."""
        L = I + self.H @ self.phi @ self.K
        return L @ self.D @ L.T

    def B(self, frames: Sequence[FrameLike]) -> Blocks:
        """From forces at frames (frame axes, about their origins) to forces on bodies: J = B^T phi^T H^T."""
        entries = {}
        for j, (node, placement) in enumerate(self.model.compute.carriers("B", frames)):
            if node >= 0:
                entries[node, j] = Ad_dual(placement.pose(self.parameters))
        return Blocks(self.M.rows, (6,) * len(frames), entries)

    def jacobian(self, frames: Sequence[FrameLike]) -> Operator:
        """From speeds to the velocities of frames, in frame axes at their origins."""
        return (self.H @ self.phi @ self.B(frames)).T


def operators(model: Model, q: Any, *, parameters: Mapping[str, float] | None = None) -> SpatialOperators:
    """The spatial operators at one configuration q (nq,)."""
    x = model.compute.numbers("operators", "q", q)
    if x.shape != (model.nq,):
        raise ArgumentError(f"operators: q has shape {x.shape}, expected ({model.nq},), one configuration")
    for name in model.space.of_bodies:
        raise UnsupportedError(
            f"operators: body {name!r} is flexible; its blocks would be wider than six. al.innovations, al.admittance and "
            "al.operators.diagonalising_velocities take it"
        )
    function = model.symbolic.function(steps.OPERATORS, ("q",))
    tree = model.compute.tree
    if not np.all(np.isfinite(x)):
        raise ArgumentError("operators: q is not finite")
    given = model.compute.with_parameters("operators", parameters, x)
    values = function.call([ca.DM(value) for value in given])
    found = {name: value.full() for name, value in zip(steps.OPERATORS.result, values, strict=True)}

    def square(name: str) -> Blocks:
        return diagonal([row.reshape(6, 6).T for row in found[name]])

    def columns(name: str) -> list[Array]:
        return [found[name][s].T for s in tree.v_slices]

    def to_parent(blocks: Sequence[Array]) -> Blocks:
        entries = {(parent, k): blocks[k] for k, parent in enumerate(tree.parents) if parent >= 0}
        return Blocks((6,) * len(tree), tuple(block.shape[1] for block in blocks), entries)

    return SpatialOperators(
        model,
        dict(zip(model.parameter_values, given[1].tolist(), strict=True)) if model.parameters else {},
        H=diagonal([S.T for S in columns("S")]),
        M=square("M"),
        E_phi=to_parent([row.reshape(6, 6).T for row in found["phi"]]),
        P=square("P_matrix"),
        D=diagonal([D[: D.shape[1]] for D in columns("D_rows")]),
        G=diagonal(columns("G")),
        K=to_parent(columns("K")),
        Upsilon=square("Upsilon"),
        J_r=diagonal([np.diag(found["reflected"][s, 0]) for s in tree.v_slices]),
        R=to_parent(columns("coupling")),
    )
