"""DMOC: discrete mechanics and optimal control (Leyendecker, Ober-Bloebaum, Marsden and Ortiz 2009).

The equations of motion are those of the discrete Lagrange-d'Alembert principle in the joints' own coordinates
(there (13), with the joints as nodal reparametrisation (11) and null space matrix):
`alembert.simulate.variational`. A stage has the point (q, p), and z is the displacement e over it:

    c = p^-(q, e, u) - p,    q_{k+1} = integrate(q, e),    p_{k+1} = p^+(q, e, u)                 (1)

with the forced discrete Legendre transforms (16) of the paper, controls constant over the stage with half of their
impulse at either node (12), and the running cost at the middle (20). Momentum maps change by exactly the applied impulses.
Loops and prescribed joints hold at every node, by impulses there: `alembert.optimal.closure`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from alembert.errors import UnsupportedError
from alembert.expression import evaluate
from alembert.model import Model
from alembert.optimal.plant import Mechanics, Momenta, Plant
from alembert.optimal.problem import Problem
from alembert.simulate.step_code import StepModel
from alembert.simulate.variational import DiscreteMechanics

if TYPE_CHECKING:
    from alembert.optimal.schemes import Interval, Stretch

Array = np.ndarray


@dataclass(frozen=True)
class Dmoc:
    name: str = "dmoc"
    order: int = 2
    points: int = 1
    node_controls: bool = False
    places: tuple[float, ...] = (0.5,)
    closes: bool = True

    def plant(self, problem: Problem) -> Plant:
        if problem.model is None:
            raise UnsupportedError(
                f"solve: transcription {self.name!r} is for models of bodies and joints; for a System choose 'midpoint', "
                "'hermite-simpson' or 'radau'"
            )
        plant = problem.plant
        assert isinstance(plant, Mechanics)
        return Momenta(plant.model, plant.driven, plant.closure, plant.elements)

    def implicit(self, plant: Plant) -> tuple[str, ...]:
        assert isinstance(plant, Momenta)
        steps = tuple(f"step of {name}" for name in plant.model.speed_names)
        return steps if plant.closure is None else (*steps, *plant.closure.names)

    def interval(self, on: Stretch) -> Interval:
        from alembert.optimal.schemes import Interval

        problem, plant, t, h, x, u, z, p = on.problem, on.plant, on.t, on.h, on.x, on.u, on.z, on.p
        assert isinstance(plant, Momenta)
        model = plant.model
        q, momentum = x[: model.nq], x[model.nq :]
        e = z[: model.nv]
        before, after, q1 = self.momenta(plant, t, q, e, h, plant.effort(u[0]), p)
        more: dict[str, Any] = {"v": e / h, "duration": on.duration, "_controls": problem.plant.controls}
        more |= problem.moment_inputs(p)
        moment = plant.moment(t + h / 2, model.space.integrate(q, e / 2), u[0], p, **more)
        implicit = before - momentum
        if plant.closure is not None:  # (2) and (3) there
            G, t1 = plant.closure.jacobian(q, p), t + h
            implicit = ca.vertcat(implicit - G.T @ z[model.nv :], plant.closure.residual(t1, q1, p))
            inverse = plant.shared.symbolic.inverse_mass_matrix(q1, parameters=plant.shared_values(p))
            after = plant.closure.allowed(t1, q1, after, inverse, p)
        end = ca.vertcat(q1, after)
        return Interval(end, h * problem.integrands(moment), implicit, ((moment, u[0]),))

    @staticmethod
    def mechanics(plant: Momenta, p: ca.SX) -> DiscreteMechanics:
        known = plant.shared_values(p)
        known = ca.SX(0, 1) if known is None else known
        return DiscreteMechanics(StepModel(plant.shared, elements=plant.elements), known, None)

    def momenta(
        self, plant: Momenta, t: ca.SX, q: ca.SX, e: ca.SX, h: ca.SX, effort: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        """p^-, p^+ and the configuration after the displacement e."""
        mechanics = self.mechanics(plant, p)
        l_q, l_e = mechanics.derivatives(q, e, h)
        force = mechanics.effort(t, q, e, h, effort)
        space = plant.model.space
        before = space.chart_rate_transposed(-e, l_e) - l_q - h / 2 * force
        after = space.chart_rate_transposed(e, l_e) + h / 2 * force
        return before, after, space.integrate(q, e)

    def guess(self, plant: Plant, x: Array, after: Array) -> Array:
        assert isinstance(plant, Momenta)
        steps = plant.chart.difference(x, after)[:, : plant.chart.nv]
        impulses = np.zeros((len(x), len(plant.closure.names) if plant.closure is not None else 0))
        return np.concatenate([steps, impulses], axis=1)


SIZE = 12


class Directors:
    """The moving bodies of a model in redundant coordinates; `p` are its parameters.

    DMOCC: rigid bodies as points with three directors, and the forms of the problem that follow from it.

    Leyendecker, Ober-Bloebaum, Marsden and Ortiz (2009), section 4: a body has the redundant coordinates
    x = (p, d_1, d_2, d_3), n = 12 for each, in which its mass matrix is constant. With the mass m, the first moments s
    and the moments E = int rho rho' dm = 1/2 tr(I) 1 - I about the origin p of its frame,

        2 T = m |p'|^2 + 2 p' . sum s_I d_I' + sum E_IJ d_I' . d_J' = x'' M x'                          (1)
        L_d(x_0, x_1) = 1/(2h) (x_1 - x_0)' M (x_1 - x_0) - h V((x_0 + x_1)/2)                          (2)

    is (7) there. The joints keep x = F(q); with F as nodal reparametrisation (11) and dF as null space matrix, the
    momenta are p^- = -dF(q_0)' D_1 L_d, p^+ = dF(q_1)' D_2 L_d: `transcription="dmocc"`. It is another discretisation of
    order 2 than `dmoc`, which takes (2) in the joints' own coordinates, and converges to the same motion. The form with
    Lagrange multipliers of the same equations is in `alembert.optimal.lagrange`.

    A flexible body has further redundant coordinates, the directors times its modal coordinates, d_I q_k and d_I q_k q_l, in
    which its points (1) of `alembert.model.modal` are linear: the integrals (2)-(4) there are their mass matrix.
    """

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
        known = self.p if self.model.parameters else None
        parts = []
        for joint in self.tree.joints:
            X = self.model.symbolic.frame_pose(q, joint.child, parameters=known)
            parts += [X.translation, ca.vec(X.rotation)]
        return ca.vertcat(*(ca.densify(part) for part in parts))

    def split(self, x: ca.SX, k: int) -> tuple[ca.SX, ca.SX]:
        """Origin (3) and directors (3, 3) of a body; of the world for k = -1."""
        if k < 0:
            return ca.SX.zeros(3), ca.SX.eye(3)
        own = x[SIZE * k : SIZE * (k + 1)]
        return own[:3], ca.reshape(own[3:], 3, 3)

    def mass_matrix(self) -> ca.SX:
        """M of (1), without flexible bodies."""
        blocks = []
        for node in self.nodes:
            if node.structure.stiffening:
                blocks.append(ca.SX(SIZE, SIZE))
                continue
            body = node.inertia
            I = ca.SX(body.inertia)
            E = ca.trace(I) / 2 * ca.SX.eye(3) - I
            small = ca.vertcat(
                ca.horzcat(ca.SX(body.mass), ca.SX(body.moment).T), ca.horzcat(ca.SX(body.moment), E)
            )
            blocks.append(ca.kron(small, ca.SX.eye(3)))
        return ca.sparsify(ca.diagcat(*blocks))

    def potential(self, x: ca.SX) -> ca.SX:
        """Of gravity, without flexible bodies."""
        total = ca.SX(0)
        for k, node in enumerate(self.nodes):
            if node.structure.stiffening:
                continue
            origin, directors = self.split(x, k)
            total -= ca.dot(self.gravity, node.inertia.mass * origin + directors @ node.inertia.moment)
        return total

    def lagrangian(self, before: ca.SX, after: ca.SX, h: ca.SX) -> ca.SX:
        """(2)"""
        step = after - before
        return ca.dot(step, self.mass_matrix() @ step) / (2 * h) - h * self.potential((before + after) / 2)

    def of_modes(self, before: ca.SX, after: ca.SX, h: ca.SX) -> ca.SX:
        """What flexible bodies add to (2) between two configurations."""
        known = self.p if self.model.parameters else None
        values: Any = {name: self.p[k] for k, (name, _) in enumerate(self.model.parameters)}
        total = ca.SX(0)
        for name, owner in self.model.space.of_bodies.items():
            body = self.model.body(name).flexible
            assert body is not None
            if body.stiffening == "ruthless":
                raise UnsupportedError(
                    f"solve: the forces of the ruthless body {name!r} have no energy, which transcription 'dmocc' needs; "
                    "choose 'dmoc', or another stiffening"
                )
            (R0, p0, m0), (R1, p1, m1) = (
                (X.rotation, X.translation, q[owner.q])
                for q in (before, after)
                for X in (self.model.symbolic.frame_pose(q, name, parameters=known),)
            )
            step, turn, n = p1 - p0, R1 - R0, body.count

            def at(field: str, *place: int, of: Any = body) -> ca.SX:
                entries = getattr(of, field)
                for k in place:
                    entries = entries[k]
                rows = entries if isinstance(entries[0], tuple) else tuple((x,) for x in entries)
                return ca.vertcat(*(ca.horzcat(*(ca.SX(evaluate(x, values)) for x in row)) for row in rows))

            mass, s = ca.SX(evaluate(body.mass, values)), at("first_moment")
            double = mass * ca.dot(step, step) + 2 * ca.dot(step, turn @ s)
            double += ca.trace(turn @ at("second_moment") @ turn.T)
            V = -ca.dot(self.gravity, mass * (p0 + p1) + (R0 + R1) @ s) / 2
            moved = [R1 * m1[k] - R0 * m0[k] for k in range(n)]

            for k in range(n):
                S = at("shape_moments", k)
                double += 2 * ca.dot(step, moved[k] @ S)
                double += 2 * ca.trace(turn @ at("shape_products", k) @ moved[k].T)
                V -= ca.dot(self.gravity, (R1 * m1[k] + R0 * m0[k]) @ S) / 2
                for l in range(n):
                    double += ca.trace(moved[k] @ at("pair_products", k, l) @ moved[l].T)
                    if body.is_consistent:
                        T = at("foreshortening_moments", k, l)
                        both = R1 * (m1[k] * m1[l]) - R0 * (m0[k] * m0[l])
                        mean = (R1 * (m1[k] * m1[l]) + R0 * (m0[k] * m0[l])) / 2
                        double += ca.dot(step, both @ T)
                        double += ca.trace(both @ at("foreshortening_products", k, l) @ turn.T)
                        V -= ca.dot(self.gravity, mean @ T) / 2
            middle = (m0 + m1) / 2
            V += ca.dot(middle, at("stiffness") @ middle) / 2
            total += double / (2 * h) - h * V
        return total


@dataclass(frozen=True)
class Dmocc(Dmoc):
    """The discrete null space method on (2), in the joints' own coordinates."""

    name: str = "dmocc"

    def momenta(
        self, plant: Momenta, t: ca.SX, q: ca.SX, e: ca.SX, h: ca.SX, effort: ca.SX, p: ca.SX
    ) -> tuple[ca.SX, ca.SX, ca.SX]:
        mechanics = self.mechanics(plant, p)
        m, nv = plant.model.space, plant.model.nv
        bodies = Directors(plant.tree, p)
        q1 = m.integrate(q, e)
        one, two = ca.SX.sym("one", nv), ca.SX.sym("two", nv)
        first, last = m.integrate(q, one), m.integrate(q1, two)
        L = bodies.lagrangian(bodies.place(first), bodies.place(last), h) + bodies.of_modes(first, last, h)
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
