"""Which modes to keep: by mass, by frequency, by what actuators do to them and sensors see of them.

A mode of unit mass with the participations b = phi' F of the actuators and c = C phi of the sensors (positions) has, lightly
damped, the Hankel singular value and the H2 norm (Gawronski, Dynamics and Control of Structures, 1998)

    gamma = |b| |c| / (4 zeta omega^2),     h2 = |b| |c| / (2 sqrt(zeta omega) omega)                          (1)

and its answer to a constant force is |b| |c| / omega^2. With L = [int phi, int x x phi] the identities of Hughes say that
for all modes of a body that is held, L' L is its mass matrix as a rigid body; for some modes, what they carry of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from alembert.arguments import is_number
from alembert.errors import ArgumentError
from alembert.flexible.component_modes import (
    ComponentModes,
    directed,
    effective_masses,
    frequencies,
    orthonormal,
)
from alembert.flexible.finite_elements import FiniteElements
from alembert.model.modal import ModalBody
from alembert.spatial.arrays import skew

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class ModeRanking:
    """Measures of each mode, by ascending frequency."""

    modes: ComponentModes
    frequencies: Array
    masses: Array
    """shares in mass and inertia, modes x 6"""
    hankel: Array
    """(1); zero without actuators and sensors"""
    h2: Array
    static: Array

    def best(self, count: int) -> ComponentModes:
        """The `count` modes with the largest Hankel singular values."""
        if not 0 < count <= self.modes.count:
            raise ArgumentError(f"best: {count!r} of {self.modes.count} modes")
        return self.modes.only(np.sort(np.argsort(-self.hankel, kind="stable")[:count]).tolist())

    def up_to(self, frequency: float) -> ComponentModes:
        """Those up to a frequency, rad/s."""
        keep = np.flatnonzero(self.frequencies <= frequency)
        if not len(keep):
            raise ArgumentError(
                f"up_to: no mode up to {frequency:g} rad/s; the first is at {self.frequencies[0]:.6g} rad/s"
            )
        return self.modes.only(keep.tolist())

    def heavy(self, share: float) -> ComponentModes:
        """As few as carry the given share of what all of these carry, of mass and inertia each."""
        if not (is_number(share) and 0 < share <= 1):
            raise ArgumentError(f"heavy: share is {share!r}, expected a number above 0, at most 1")
        keep: set[int] = set()
        for column in self.masses.T:
            total = column.sum()
            order = np.argsort(-column, kind="stable")
            need = int(np.searchsorted(np.cumsum(column[order]), share * total * (1 - 1e-12))) + 1
            if total > 1e-9:
                keep |= set(order[:need].tolist())
        return self.modes.only(sorted(keep))

    def __str__(self) -> str:
        lines = ["mode      Hz   mass x, y, z, inertia rx, ry, rz [%]           Hankel        H2"]
        for k, name in enumerate(self.modes.names):
            shares = "".join(f"{100 * s:7.2f}" for s in self.masses[k])
            lines.append(
                f"{name:8} {self.frequencies[k] / 2 / np.pi:8.4g} {shares} {self.hankel[k]:9.3g} {self.h2[k]:9.3g}"
            )
        return "\n".join(lines)


def rank_modes(
    fe: FiniteElements,
    modes: ComponentModes,
    *,
    attachment: Any,
    actuators: Mapping[str, tuple[Any, str]] | None = None,
    sensors: Mapping[str, tuple[Any, str]] | None = None,
    damping_ratio: float = 0.005,
) -> ModeRanking:
    """Measures of the modes of a structure for actuators and sensors.

    These are given by name with a node (or nodes) and directions, ("tip", "y z"). Without sensors they are where the
    actuators are.
    """
    found = orthonormal(fe, modes)
    w = frequencies(fe, found)

    def participation(what: str, places: Any) -> Array:
        rows = [row for _, _, row in directed(fe, f"rank_modes: {what}", places)]
        return np.reshape(rows, (len(rows), fe.size)) @ found.shapes

    b = participation("actuators", actuators or {})
    c = participation("sensors", sensors) if sensors is not None else b
    both = np.linalg.norm(b, axis=0) * np.linalg.norm(c, axis=0)
    if not damping_ratio > 0:
        raise ArgumentError(f"rank_modes: damping_ratio is {damping_ratio!r}, expected a positive number")
    z = float(damping_ratio)
    return ModeRanking(
        found,
        w,
        effective_masses(fe, found, attachment),
        both / (4 * z * w**2),
        both / (2 * np.sqrt(z * w) * w),
        both / w**2,
    )


def carried_mass(body: ModalBody) -> Array:
    """What the modes of a body carry of its mass matrix as a rigid body about its frame: six shares, 0 to 1, ascending.

    Turning and moving along the principal directions of L' Me^-1 L against the whole: shares near 1 say that the modes move
    all that a rigid motion of the frame moves. The least of them is that of the motion which the modes follow least.
    """
    Ek, S = body.array("shape_products"), body.array("shape_moments")
    Cr = np.stack([Ek[:, 1, 2] - Ek[:, 2, 1], Ek[:, 2, 0] - Ek[:, 0, 2], Ek[:, 0, 1] - Ek[:, 1, 0]], axis=1)
    L = np.hstack([Cr, S])
    E, s, m = body.array("second_moment"), body.array("first_moment"), float(body.array("mass"))
    rigid = np.block([[np.trace(E) * np.eye(3) - E, skew(s)], [skew(s).T, m * np.eye(3)]])
    # directions without mass, such as turning a rod about itself, have no share
    values, V = np.linalg.eigh(rigid)
    keep = values > 1e-10 * values.max()
    V = V[:, keep] / np.sqrt(values[keep])
    part = V.T @ L.T @ scipy.linalg.solve(body.modal_mass(), L, assume_a="pos") @ V
    return np.clip(np.linalg.eigvalsh((part + part.T) / 2), 0.0, None)
