"""Whether a finite-element model is what it should be, in numbers to be printed before it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from alembert.flexible.finite_elements import FiniteElements

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class StructureReport:
    """Rigid motions without strain, mass properties, the lowest modes; effective masses where it is held at a node."""

    size: int
    nodes: int
    strain: Array
    """|K R| over |K| |R| for x, y, z, rx, ry, rz: rounding where the motion is free, more where something holds it"""
    mass: Array
    """by accelerations along x, y and z: the same where all mass moves in all directions"""
    points_mass: float
    """the sum of the masses at the points"""
    center: Array
    inertia: Array
    """about the centre of mass"""
    free_frequencies: Array
    """of the whole, nothing held, rad/s; zeros first"""
    mechanisms: int
    """motions without strain beyond the rigid ones; negative where some of these are held"""
    held_frequencies: Array
    """of the structure held at the attachment"""
    effective_masses: Array
    """share of each held mode in mass (x, y, z) and inertia about the attachment (rx, ry, rz): modes x 6"""
    rounding: float
    """the strain below which nothing holds it"""

    @property
    def rigid(self) -> int:
        """Of the six rigid motions, how many are without strain."""
        return int((self.strain < self.rounding).sum())

    @property
    def problems(self) -> tuple[str, ...]:
        """In sentences; empty for a structure that can fly."""
        found = []
        names = ("x", "y", "z", "rx", "ry", "rz")
        if self.rigid < 6:
            which = ", ".join(
                f"{n} ({s:.1e})" for n, s in zip(names, self.strain, strict=True) if s >= self.rounding
            )
            found.append(
                f"rigid motions strain it: {which}; it is held to ground, or its elements or node places are wrong"
            )
        if self.mechanisms > 0:
            found.append(
                f"{self.mechanisms} motions besides the rigid ones are without strain: mechanisms, or loose parts"
            )
        spread = np.ptp(self.mass)
        if spread > 1e-3 * self.mass.max():
            found.append(
                "the mass is not the same along x, y and z: " + ", ".join(f"{m:.6g}" for m in self.mass)
            )
        if abs(self.points_mass - self.mass.mean()) > 1e-3 * self.mass.max():
            found.append(
                f"the nodes' masses add up to {self.points_mass:.6g} kg, the rigid motions say {self.mass.mean():.6g}"
            )
        if np.linalg.eigvalsh(self.inertia)[0] < -1e-9 * np.abs(self.inertia).max():
            found.append("the inertia tensor is not positive")
        return tuple(found)

    def __str__(self) -> str:
        lines = [
            f"{self.nodes} nodes, {self.size} unknowns",
            f"rigid motions without strain: {self.rigid} of 6 (largest residual {self.strain.max():.1e})",
            f"mass {self.mass.mean():.6g} kg, sum over the nodes {self.points_mass:.6g} kg",
            "centre of mass " + ", ".join(f"{c:.6g}" for c in self.center) + " m",
            "inertia about it "
            + ", ".join(f"{c:.6g}" for c in np.diag(self.inertia))
            + " kg m^2 (xx, yy, zz)",
            "free modes [Hz] " + ", ".join(f"{w / (2 * np.pi):.4g}" for w in self.free_frequencies),
        ]
        if len(self.held_frequencies):
            lines += ["held modes [Hz], effective mass x, y, z and inertia rx, ry, rz [%]"]
            for w, share in zip(self.held_frequencies, self.effective_masses, strict=True):
                lines.append(f"  {w / (2 * np.pi):10.4g}  " + "".join(f"{100 * s:7.2f}" for s in share))
            lines.append(
                "         sum  " + "".join(f"{100 * s:7.2f}" for s in self.effective_masses.sum(axis=0))
            )
        return "\n".join(lines + [f"PROBLEM: {sentence}" for sentence in self.problems])


def structure_report(fe: FiniteElements, attachment: Any, modes: int) -> StructureReport:
    from alembert.flexible.component_modes import effective_masses

    m = np.diag(fe.rigid_mass)[:3]
    c = fe.center
    about = fe.rigid_mass[3:, 3:] - fe.mass * (c @ c * np.eye(3) - np.outer(c, c))
    w, shapes = _modes(fe, 6 + modes, np.arange(fe.size))
    free_energy = np.einsum("ij,ij->j", shapes, fe.K @ shapes)
    size_energy = np.einsum("ij,ij->j", np.abs(shapes), abs(fe.K) @ np.abs(shapes))
    loose = free_energy < 1e-13 * size_energy
    rigid_part = fe.floating
    if rigid_part.size:
        overlap = (
            rigid_part
            @ np.linalg.lstsq(rigid_part.T @ (fe.M @ rigid_part), rigid_part.T @ (fe.M @ shapes), rcond=None)[
                0
            ]
        )
        loose |= np.einsum("ij,ij->j", overlap, fe.M @ overlap) > 1 - 1e-6
    free = int(loose.sum())
    held, shares = np.zeros(0), np.zeros((0, 6))
    if attachment is not None:
        others, _ = fe.held(fe.unknowns(attachment))
        if (fe.M.diagonal()[others] > 0).any():
            held, kept = _modes(fe, modes, others)
            shares = effective_masses(fe, kept, attachment)
    rigid = (
        int(np.linalg.matrix_rank(rigid_part.T @ (fe.M @ rigid_part), hermitian=True))
        if rigid_part.size
        else 0
    )  # with mass
    return StructureReport(
        fe.size, len(fe.positions), fe.strain, m, float(fe.points.mass.sum()), c, about, np.where(loose, 0.0, w),
        free - rigid, held, shares, fe.rounding,
    )  # fmt: skip


def _modes(fe: FiniteElements, count: int, free: Array) -> tuple[Array, Array]:
    """The lowest with the other unknowns held, as far as there are; what moves without strain has zero frequency."""
    from alembert.flexible.finite_elements import modes_up_to

    squares, V = modes_up_to(fe.K[free][:, free], fe.M[free][:, free], min(count, len(free)), True)
    shapes = np.zeros((fe.size, len(squares)))
    shapes[free] = V
    return np.sqrt(np.maximum(squares, 0.0)), shapes
