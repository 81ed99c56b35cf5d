"""Models that differ in numbers alone share a form."""

import dataclasses

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.algorithms.algorithm import Options
from alembert.constraints.equations import equations
from alembert.engine.instructions import from_casadi
from alembert.sweeps.form import form_of


def changed(model):
    """Other masses and moments of inertia, and gravity."""
    bodies = tuple(
        dataclasses.replace(
            body,
            inertia=dataclasses.replace(
                body.inertia,
                mass=1.3 * body.inertia.mass,
                tensor=tuple(1.4 * x for x in body.inertia.tensor),
            ),
        )
        for body in model.bodies
    )
    return model.replace(bodies=bodies, gravity=tuple(0.9 * g for g in model.gravity))


@pytest.mark.parametrize("seed", range(6))
def test_equations_of_motion_of_a_form_are_those_of_its_models(seed):
    """Trees of all joint types with springs, friction and welded bodies, at the numbers of two models."""
    rng = np.random.default_rng(seed)
    model = al.library.random_tree(seed, bodies=8, attachments=True)
    q, (v, tau) = model.random_configuration(rng), rng.normal(size=(2, model.nv))
    forms = []
    for each in (model, changed(model)):
        form = form_of(each)
        forms.append(form.model)
        symbolic, numbers = form.model.symbolic, form.numbers
        a = symbolic.forward_dynamics(q, v, tau, parameters=numbers).full()[:, 0]
        wanted = each.forward_dynamics(q, v, tau)
        # rounding, times the condition of the mass matrix
        size = np.linalg.cond(each.mass_matrix(q)) * np.abs(wanted).max()
        np.testing.assert_allclose(a, wanted, rtol=0, atol=1e-14 * size)
        energy = float(symbolic.energy(q, v, parameters=numbers))
        assert energy == pytest.approx(each.energy(q, v), rel=1e-12, abs=1e-12)
    assert forms[0] is forms[1]


def test_constraints_of_a_form_are_those_of_its_models():
    """A loop between a welded body and a place on another body, a coupling and an equation."""

    def model(length):
        inertia = al.Inertia(1.2, (0.1, 0.2, 0.3), (0.2, 0.01, 0.3, 0.02, 0.03, 0.25))
        builder = al.ModelBuilder("pairs")
        for k in range(4):
            builder.body(f"bar{k}", inertia, joint=al.Revolute(), placement=(length * k, 0.0, 0.1))
        builder.body("plate", inertia, parent="bar0", joint=al.Fixed(), placement=(0.0, length, 0.2))
        builder.frame("end", "bar1", al.Placement.from_rpy((0.1, 0.2, 0.3), (0.0, length, 0.3)))
        builder.loop("rod", al.Distance(1.5), "plate", "end")
        builder.coupling("gear", "bar2_joint", "bar3_joint", length, 0.1)
        builder.equation("height", "y - 0.2 * q", {"y": "end.y", "q": "bar2_joint"})
        return builder.build()

    forms = []
    for length in (0.7, 0.9):
        each = model(length)
        form = form_of(each)
        forms.append(form.model)
        q = np.linspace(0.1, 0.4, 4)
        at = equations(form.model.compute.tree, ca.SX(q), ca.SX.zeros(4), ca.SX(form.numbers))
        np.testing.assert_allclose(ca.DM(at.residual).full()[:, 0], each.constraint_residual(q), atol=1e-14)
        np.testing.assert_allclose(ca.DM(at.jacobian).full(), each.constraint_jacobian(q), atol=1e-14)
    assert forms[0] is forms[1]


def test_a_form_has_no_numbers_of_its_own():
    """What forgets to give it those of a model gets NaN, not the numbers of the first model of that form."""
    model = al.library.arm7()
    x = np.full(7, 0.1)
    assert np.isnan(np.array(form_of(model).model.symbolic.forward_dynamics(x, x, x), dtype=float)).all()


def test_what_belongs_to_the_form():
    arm = al.library.arm7()
    form = form_of(arm).model
    moved = arm.replace_joint(arm.joints[2].name, placement=al.Placement((0.11, 0.22, 0.33)))
    locked = arm.replace_joint(arm.joints[2].name, type=al.Prismatic(arm.joints[2].type.axis))
    assert form_of(moved).model is not form  # zeros that are none, or the other way round
    assert form_of(locked).model is not form
    assert form_of(arm.replace(name="other")).model is form


def test_zeros_of_rotations_stay():
    """A rotation by a right angle and another one has zeros in its matrix, though none in its quaternion."""

    def model(rpy):
        builder = al.ModelBuilder("pair")
        for name, parent in (("one", "world"), ("two", "one")):
            inertia = al.Inertia(1.2, (0.1, 0.2, 0.3), (0.2, 0.01, 0.3, 0.02, 0.03, 0.25))
            placement = al.Placement.from_rpy(rpy, (0.3, 0.2, 0.1))
            builder.body(name, inertia, parent=parent, joint=al.Revolute(), placement=placement)
        return builder.build()

    def operations(rpy):
        graph = form_of(model(rpy)).model.symbolic.graph("forward_dynamics", Options())
        op, _ = from_casadi(graph.function).arrays()
        return int(((op != ca.OP_INPUT) & (op != ca.OP_CONST)).sum())

    general = operations((0.1, 0.2, 0.3))
    mixed, right, none = (operations(rpy) for rpy in ((np.pi / 2, 0, 0.3), (np.pi / 2, 0, 0), (0, 0, 0)))
    assert none < right < mixed < 0.9 * general


def test_models_without_a_form():
    builder = al.ModelBuilder("pendulum")
    builder.body("rod", al.Inertia.point(builder.parameter("m", 1.0), (0, 0, -1)), joint=al.Revolute())
    assert form_of(builder.build()) is None
    bent = al.ModelBuilder("bent")
    bent.body("beam", flexible=al.flexible.beam(1.0, 0.2, EI_y=3.0, bending_z=1), joint=al.Revolute())
    assert form_of(bent.build()) is None
