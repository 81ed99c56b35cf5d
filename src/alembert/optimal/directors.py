"""DMOCC: rigid bodies as points with three directors, and the forms of the problem that follow from it.

Leyendecker, Ober-Bloebaum, Marsden and Ortiz (2009), section 4: a body has the redundant coordinates
x = (p, d_1, d_2, d_3), n = 12 for each, in which its mass matrix is constant. With the mass m, the first moments s
and the moments E = int rho rho' dm = 1/2 tr(I) 1 - I about the origin p of its frame,

    2 T = m |p'|^2 + 2 p' . sum s_I d_I' + sum E_IJ d_I' . d_J' = x'' M x'                          (1)
    L_d(x_0, x_1) = 1/(2h) (x_1 - x_0)' M (x_1 - x_0) - h V((x_0 + x_1)/2)                          (2)

is (7) there. The joints keep x = F(q); with F as nodal reparametrisation (11) and dF as null space matrix, the
momenta are p^- = -dF(q_0)' D_1 L_d, p^+ = dF(q_1)' D_2 L_d: `transcription="dmocc"`. It is another discretisation of
order 2 than `dmoc`, which takes (2) in the joints' own coordinates, and converges to the same motion. The form with
Lagrange multipliers of the same equations is in `alembert.optimal.lagrange`.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from alembert.errors import UnsupportedError
from alembert.model import Model
from alembert.optimal.dmoc import Dmoc
from alembert.optimal.plant import Momenta

Array = np.ndarray
SIZE = 12


class Directors:
    """The moving bodies of a model in redundant coordinates; `p` are its parameters."""

    def __init__(self, model: Model, p: ca.SX) -> None:
        self.model, self.p = model, p
        self.tree = model.compute.tree
        self.nodes = self.tree.nodes(p)
        self.gravity = self.tree.gravity(p)
        for joint, node in zip(self.tree.joints, self.nodes, strict=True):
            if node.structure.armature or joint.rotors:
                raise UnsupportedError(
                    f"solve: joint {joint.name!r} has a rotor or armature, which directors do not describe; choose "
                    "transcription='dmoc'"
                )

    @property
    def size(self) -> int:
        """n: redundant coordinates."""
        return SIZE * len(self.nodes)

    def place(self, q: ca.SX) -> ca.SX:
        """F(q), (n, 1)."""
        given = {"parameters": self.p} if self.model.parameters else {}
        parts = []
        for joint in self.tree.joints:
            X = self.model.symbolic.frame_pose(q, joint.child, **given)
            parts += [X.translation, ca.vec(X.rotation)]
        return ca.vertcat(*(ca.densify(part) for part in parts))

    def split(self, x: ca.SX, k: int) -> tuple[ca.SX, ca.SX]:
        """Origin (3) and directors (3, 3) of a body; of the world for k = -1."""
        if k < 0:
            return ca.SX.zeros(3), ca.SX.eye(3)
        own = x[SIZE * k : SIZE * (k + 1)]
        return own[:3], ca.reshape(own[3:], 3, 3)

    def mass_matrix(self) -> ca.SX:
        """M of (1)."""
        blocks = []
        for node in self.nodes:
            body = node.inertia
            I = ca.SX(body.inertia)
            E = ca.trace(I) / 2 * ca.SX.eye(3) - I
            small = ca.vertcat(
                ca.horzcat(ca.SX(body.mass), ca.SX(body.moment).T), ca.horzcat(ca.SX(body.moment), E)
            )
            blocks.append(ca.kron(small, ca.SX.eye(3)))
        return ca.sparsify(ca.diagcat(*blocks))

    def potential(self, x: ca.SX) -> ca.SX:
        """Of gravity."""
        total = ca.SX(0)
        for k, node in enumerate(self.nodes):
            origin, directors = self.split(x, k)
            total -= ca.dot(self.gravity, node.inertia.mass * origin + directors @ node.inertia.moment)
        return total

    def lagrangian(self, before: ca.SX, after: ca.SX, h: ca.SX) -> ca.SX:
        """(2)"""
        step = after - before
        return ca.dot(step, self.mass_matrix() @ step) / (2 * h) - h * self.potential((before + after) / 2)


@dataclass(frozen=True)
class Dmocc(Dmoc):
    """The discrete null space method on (2), in the joints' own coordinates."""

    name: str = "dmocc"

    def momenta(
        self, plant: Momenta, t: ca.SX, q: ca.SX, e: ca.SX, h: ca.SX, effort: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        mechanics = self.mechanics(plant, p)
        m, nv = mechanics.manifold, plant.model.nv
        bodies = Directors(plant.tree, p)
        q1 = m.integrate(q, e)
        one, two = ca.SX.sym("one", nv), ca.SX.sym("two", nv)
        L = bodies.lagrangian(bodies.place(m.integrate(q, one)), bodies.place(m.integrate(q1, two)), h)
        still = [ca.SX.zeros(2 * nv)]
        moved = [ca.vertcat(one, two)]
        slope = ca.substitute([ca.gradient(L, moved[0])], moved, still)[0]
        for joint in plant.model.joints:
            if joint.spring is not None:
                raise UnsupportedError(
                    f"solve: joint {joint.name!r} has a spring, which transcription 'dmocc' does not take; choose 'dmoc'"
                )
        force = mechanics.effort(t, q, e, h, effort)
        return -slope[:nv] - h / 2 * force, slope[nv:] + h / 2 * force, q1
