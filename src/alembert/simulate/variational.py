"""The variational, momentum-preserving integrator of order 2.

Leyendecker, Ober-Bloebaum, Marsden and Ortiz, "Discrete mechanics and optimal control for constrained
systems" (2009), in the coordinates of the tree: joints are the nodal reparametrisation (11) there, so that
constraints hold at every node and the equations have the smallest size. With the displacement e over a step
h, q_1 = integrate(q_0, e), the discrete Lagrangian takes the kinetic and the potential energy at the middle
of the motion,

    l(q_0, e) = h (K - U)(integrate(q_0, e/2), e/h)                                 (1)

and with T(e) of `alembert.simulate.step_code`, since q_1 held fixed means de = -T(-e) dq_0, the forced discrete
Legendre transforms (16) are

    p_0 = T(-e)^T l_e - l_q - h/2 f_0                                               (2)
    p_1 = T(e)^T l_e + h/2 f_1                                                      (3)

A step solves (2) for e by Newton's method, with the exact Jacobian at the predicted e, and then has p_1 from
(3). Loops phi(q) = 0 with Jacobian G act by impulses, which do no work on motions that keep them closed; with a
minimal set of their rows

    h (2) - G(q_0)^T f = 0,    phi(q_1) = 0                                         (4)

are solved for e and f. Projected by the null space of G(q_0) this is the discrete null space method there, with the
same solution; the loops are closed at every node, and the Jacobian tends to [M, -G^T; G, 0], whatever the step. The
momenta are those of (3): impulses of the loops do not change momentum maps. The forces f_0 and f_1 are those of the
discrete Lagrange-d'Alembert principle: drives and friction at the middle, and wrenches, which follow the body, at
either node. States x of controllers follow the middle rule with them, x_1 = x_0 + h x'(t + h/2, q, e/h, (x_0 + x_1)/2),
whose increments are unknowns beside e. Momenta and speeds belong together by p =
M(q) v (- G^T f with loops, such that G v = 0).

Armature and rotors add J v to the momentum p of a joint. On a ball or a free joint, whose speeds are no rates of
coordinates, the gearing is not holonomic: the Lagrangian (1) would turn this momentum with the body, p' = C(v)^T p with
C(v) e = d/ds (T(s v) - T(-s v)) e at s = 0, where the equations of motion have p' = J v' alone. The force

    f = -C(v)^T J v,    v . f = 0                                                   (5)

at the middle of the step takes it back.

The next e is predicted from the mean speeds e/h of the last two steps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from alembert.constraints.equations import equations
from alembert.engine.codegen import KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import UnsupportedError
from alembert.model import Model
from alembert.simulate.implicit_steps import newton_loop
from alembert.simulate.step_code import Layout, StepModel, arguments, kept_steps, tree_of
from alembert.sweeps import CORIOLIS_FORCES, Tree
from alembert.sweeps.form import form_of
from alembert.sweeps.mass_matrix import kinetic_slopes
from alembert.sweeps.modal import Integrals
from alembert.sweeps.node import Node


def layout(plant: StepModel) -> Layout:
    """Configuration, momenta, and the mean speeds of the last two steps."""
    nv = plant.model.nv
    states = {"x": plant.states} if plant.states else {}
    return Layout(q=plant.model.nq, p=nv, mean=nv, before=nv, **states, **plant.rows)


def stepping_kernel(plant: StepModel) -> Kernel:
    """As `alembert.simulate.step_code.stepping_kernel`, on the state described above."""
    if any(plant.prescribed):
        raise UnsupportedError(
            "simulate: prescribed motion and integrator 'variational' do not go together; choose 'rk4'"
        )
    if plant.reading is not None:
        raise UnsupportedError(
            "simulate: forces that read reactions and integrator 'variational' do not go together; choose 'rk4'"
        )
    rows = plant.model.constrained_compute.rows if plant.model.is_constrained else None
    if rows is not None and not rows.holonomic.all():
        name = rows.names[
            int(np.searchsorted([s.stop for s in rows.slices.values()], np.argmin(rows.holonomic), "right"))
        ]
        raise UnsupportedError(
            f"simulate: integrator 'variational' and rolling ({rows.kinds[name]} {name!r}) do not go together; choose 'rk4'"
        )
    size = layout(plant).size
    given = arguments(plant, size)
    return kept_steps(plant, "variational", given, size, lambda: _source(plant, layout(plant), given))


def with_numbers(plant: StepModel) -> StepModel:
    """The same with the numbers of the model as parameters, where nothing else that acts depends on them."""
    return replace(plant, form=form_of(plant.model)) if plant.elements is None else plant


class DiscreteMechanics:
    """(1)-(3) as expressions; `parameters` are `SX` (none: 0 x 1), with a form its numbers."""

    def __init__(
        self, plant: StepModel, parameters: ca.SX, wrench: ca.SX | None, x: ca.SX | None = None
    ) -> None:
        """`x` are the states of controllers in the middle of the step."""
        self.plant, self.model = plant, tree_of(plant.shared)
        self.x = ca.SX(0, 1) if x is None else x
        self.parameters, self.wrench = parameters, wrench
        self._own = parameters if plant.form is None else ca.SX(0, 1)
        """of the model, for what else acts"""
        model = self.model
        self.manifold = model.space
        self.friction = _friction(model, parameters)
        self._slopes, self._geared = _slopes(model), _gearing(model)

    def _of_elements(self, q: ca.SX) -> ca.SX:
        """The slope of the potential of what else acts."""
        elements, x = self.plant.elements, ca.SX.sym("q", self.model.nq)
        if elements is None or elements.potential is None:
            return ca.SX.zeros(self.model.nq)
        p = ca.SX.sym("p", self.parameters.numel())
        slope = ca.Function("slope", [x, p], [ca.gradient(elements.potential(x, p), x)])
        return slope(q, self.parameters)

    def derivatives(self, q: ca.SX, e: ca.SX, h: ca.SX) -> tuple[ca.SX, ca.SX]:
        """l_q (tangent) and l_e of (1)."""
        model, m = self.model, self.manifold
        middle = m.integrate(q, e / 2)
        along_q, along_w = self._slopes(middle, e / h, self.parameters)
        along_q = along_q - self._of_elements(middle)
        d, half = ca.SX.sym("d", model.nv), ca.SX.sym("half", model.nv)
        moved = m.integrate(m.integrate(q, d), e / 2)
        l_q = h * ca.substitute(ca.jtimes(moved, d, along_q, True), d, ca.SX.zeros(model.nv))
        pulled = ca.substitute(ca.jtimes(m.integrate(q, half), half, along_q, True), half, e / 2)
        return l_q, along_w + h / 2 * pulled

    def effort(self, t: ca.SX, q: ca.SX, e: ca.SX, h: ca.SX, effort: ca.SX) -> ca.SX:
        """JointDrives, friction and force elements without a potential, at the middle of the step from t."""
        w = e / h
        total = effort + self.friction(w)
        middle = self.manifold.integrate(q, e / 2)
        if self._geared is not None:
            total = total + self._geared(middle, w, self.parameters)
        if self.plant.controller is not None:
            total = total + ca.SX(self.plant.controller(t + h / 2, middle, w, self.x, self._own)[0])
        if self.plant.elements is not None:
            total = total + self.plant.elements.rest(t + h / 2, middle, w, self.parameters)
        return total

    def rates(self, t: ca.SX, q: ca.SX, e: ca.SX, h: ca.SX) -> ca.SX:
        """x' in the middle of the step."""
        assert self.plant.controller is not None
        middle = self.manifold.integrate(q, e / 2)
        return ca.SX(self.plant.controller(t + h / 2, middle, e / h, self.x, self._own)[1])

    def wrenches(self, q: ca.SX) -> ca.SX:
        """Generalised forces of the wrenches."""
        if self.wrench is None:
            return ca.SX.zeros(self.model.nv)
        function = self.model.symbolic.function(CORIOLIS_FORCES, ("q", "wrench"))
        return -function(q, self.wrench, *([self.parameters] if self.model.parameters else []))

    def residual(self, t: ca.SX, q: ca.SX, p: ca.SX, e: ca.SX, h: ca.SX, effort: ca.SX) -> ca.SX:
        """(2)"""
        l_q, l_e = self.derivatives(q, e, h)
        force = self.effort(t, q, e, h, effort) + self.wrenches(q)
        return self.manifold.chart_rate_transposed(-e, l_e) - l_q - h / 2 * force - p

    def momentum(self, t: ca.SX, q: ca.SX, e: ca.SX, h: ca.SX, effort: ca.SX, q1: ca.SX) -> ca.SX:
        """(3)"""
        _, l_e = self.derivatives(q, e, h)
        force = self.effort(t, q, e, h, effort) + self.wrenches(q1)
        return self.manifold.chart_rate_transposed(e, l_e) + h / 2 * force


def _source(plant: StepModel, layout: Layout, given: list[Argument]) -> KernelSource:
    symbols = {a.name: ca.SX.sym(a.name, *a.shape) for a in given[:-2]}
    state, h, effort = symbols["state"], symbols["step"], symbols["effort"]
    parameters = symbols.get("parameters", ca.SX(0, 1))
    d = ca.SX.sym("d", plant.states)
    x = state[layout["x"]] if plant.states else ca.SX(0, 1)
    mechanics = DiscreteMechanics(plant, parameters, symbols.get("wrench"), x + d / 2)
    t = symbols["start"] + state[0] * h
    q, p, mean, before = (state[layout[name]] for name in ("q", "p", "mean", "before"))

    nv = plant.model.nv
    e = ca.SX.sym("e", nv)
    q1 = mechanics.manifold.integrate(q, e)
    p1 = mechanics.momentum(t, q, e, h, effort, q1)
    residual = h * mechanics.residual(t, q, p, e, h, effort)
    parts = {"q": q1, "p": p1, "mean": e / h, "before": mean}
    unknown, predicted = e, h * (2 * mean - before)
    if plant.states:
        parts["x"] = x + d
        residual = ca.vertcat(residual, d - h * mechanics.rates(t, q, e, h))
        unknown, predicted = ca.vertcat(e, d), ca.vertcat(predicted, ca.SX.zeros(plant.states))
    if plant.rows:
        parts["chosen"] = chosen = state[layout["chosen"]]
        balance, multipliers = closed(plant.shared, q, q1, residual[:nv], chosen, parameters)
        residual = ca.vertcat(balance[:nv], residual[nv:], balance[nv:])
        unknown = ca.vertcat(unknown, multipliers)
        predicted = ca.vertcat(predicted, ca.SX.zeros(multipliers.numel()))
    return newton_loop(
        {a.name: a.size for a in given},
        symbols,
        unknown,
        predicted=predicted,
        residual=residual,
        following=layout.symbolic(state[0] + 1, state[1], **parts),
        counted=nv + plant.states,
    )


def closed(
    model: Model, q: ca.SX, q1: ca.SX, residual: ca.SX, chosen: ca.SX, parameters: ca.SX
) -> tuple[ca.SX, ca.SX]:
    """(4) from h times (2), and the multipliers; rows that vanish everywhere are left out, those not chosen have none."""
    rows = _rows(model, parameters.numel())
    G, after = ca.sparsify(ca.SX(rows(q, parameters)[0])), rows(q1, parameters)[1]
    lively = [i for i in range(G.shape[0]) if G[i, :].nnz()]
    w, f = chosen[lively], ca.SX.sym("f", len(lively))
    balance = residual - G[lively, :].T @ (w * f)
    return ca.vertcat(balance, w * after[lively] + (1 - w) * f), f


def _slopes(model: Model) -> ca.Function:
    """(q, w, parameters) -> the slopes of K - U, without force elements."""
    tree = model.compute.tree
    if "lagrangian slopes" not in tree.found:
        q, w, p = ca.SX.sym("q", model.nq), ca.SX.sym("w", model.nv), tree.parameter_symbols
        given = {"parameters": p} if model.parameters else {}
        U = model.symbolic.potential_energy(q, **given)
        if tree.has_modes:
            K = model.symbolic.kinetic_energy(q, w, **given)
            of_q, of_w = ca.gradient(K, q), ca.gradient(K, w)
        else:
            of_q, of_w = kinetic_slopes(tree, q, w, p)
        found = ca.Function("slopes", [q, w, p], [of_q - ca.gradient(U, q), of_w])
        tree.found["lagrangian slopes"] = found
    return tree.found["lagrangian slopes"]


def _gearing(model: Model) -> ca.Function | None:
    """(q, w, parameters) -> the force of (5); None where no joint is concerned."""
    geared = [
        i
        for i, joint in enumerate(model.joints)
        if not joint.type.is_vector_space and (any(x != 0.0 for x in joint.armature) or joint.rotors)
    ]
    tree = model.compute.tree
    if geared and "gearing" not in tree.found:
        q, w, p = ca.SX.sym("q", model.nq), ca.SX.sym("w", model.nv), tree.parameter_symbols
        given = {"parameters": p} if model.parameters else {}
        K, momentum = model.symbolic.kinetic_energy(q, w, **given), ca.SX.zeros(model.nv)
        for i in geared:  # one by one: what a rotor gives to the joints of its carrier turns with these
            joints, at = list(model.joints), model.v_slice(model.joints[i].name)
            joints[i] = replace(joints[i], armature=(), rotors=())
            bare = replace(model, joints=tuple(joints))
            momentum[at] = ca.gradient(K - bare.symbolic.kinetic_energy(q, w, **given), w)[at]
        e, fixed = ca.SX.sym("e", model.nv), ca.SX.sym("fixed", model.nv)
        turned = ca.jtimes(model.space.chart_rate_transposed(e, fixed), e, w)
        turned = ca.substitute(turned, ca.vertcat(e, fixed), ca.vertcat(ca.SX.zeros(model.nv), momentum))
        tree.found["gearing"] = ca.Function("gearing", [q, w, p], [-2 * turned])
    return tree.found["gearing"] if geared else None


def _rows(model: Model, parameters: int) -> ca.Function:
    """(q, parameters) -> G and phi; on symbols: joints differentiate with respect to them."""
    kept = model.compute.tree.found
    if "variational rows" not in kept:
        x, p = ca.SX.sym("q", model.nq), ca.SX.sym("parameters", parameters)
        found = equations(model.compute.tree, x, ca.SX.zeros(model.nv), p)
        kept["variational rows"] = ca.Function("rows", [x, p], [found.jacobian, found.residual])
    return kept["variational rows"]


def _friction(model: Model, parameters: ca.SX) -> Any:
    """The efforts of joint friction, and of the damping of modes, as a function of the speeds."""
    joints = tuple(replace(joint, spring=None) for joint in model.joints)
    bare = replace(model, joints=joints)
    tree = Tree.of(bare)
    values = tree.named(parameters)
    nodes = {
        k: Node(s, tree.constants(k, values))
        for k, s in enumerate(tree.structures)
        if s.viscous or s.coulomb or s.stiffening
    }

    def friction(v: ca.SX) -> ca.SX:
        total = ca.SX.zeros(model.nv)
        for k, node in nodes.items():
            sv = tree.v_slices[k]
            own = node.own_effort(ca.SX.zeros(node.nq), v[sv])
            if node.structure.stiffening:
                own = -Integrals(node.parts, node.nv, node.structure.stiffening).damping @ v[sv]
            if own is not None:
                total[sv] = own
        return total

    return friction
