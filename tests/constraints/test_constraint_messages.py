"""Every refusal of the constrained algorithms, by its sentence."""

import numpy as np
import pytest
from constraint_helpers import closed, four_bars, parallelogram

from alembert import ArgumentError, Inertia, ModelBuilder, NumericalError, Revolute, UnsupportedError, library
from alembert.model import Coupling

MODEL = four_bars(2)
Q, V = parallelogram(MODEL, 0.3, 1.0)
TAU = np.zeros(5)


def refusal(kind, function, *arguments, **options):
    with pytest.raises(kind) as caught:
        function(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "options", "expected"),
    [
        ((Q, V, TAU), {"active": "window0"}, "active is 'window0', expected a list of names"),
        (
            (Q, V, TAU),
            {"active": ["door"]},
            "active: no loop, coupling or equation 'door'; the model has 'window0', 'window1'",
        ),
        ((Q, V, TAU), {"parameters": {"a": 1}}, "parameters are given, but the model has none"),
        ((Q[:4], V, TAU), {}, "q has shape (4,), expected (..., 5)"),
        ((Q, V, "no"), {}, "tau is 'no', expected numbers"),
        (
            (np.zeros((2, 5)), V, np.zeros((3, 5))),
            {},
            "the batch dimensions do not go together: q (2,), v (), tau (3,)",
        ),
        (
            (np.zeros((2, 5)), V, TAU),
            {"wrenches": {"top0": np.zeros((3, 6))}},
            "the batch dimensions do not go together: q (2,), wrenches (3,)",
        ),
        (
            (Q + np.array([0.1, 0, 0, 0, 0]), V, TAU),
            {},
            "loop 'window0' is not closed: its residual is 0.119 (m, rad). model.assemble(q) finds a configuration that "
            "closes it",
        ),
        (
            (np.stack([Q, Q + np.array([0, 0, 0, 0, 0.1])]), V, TAU),
            {},
            "loop 'window1' is not closed (state 1): its residual is 0.1 (m, rad). model.assemble(q) finds a "
            "configuration that closes it",
        ),
        (
            (Q, V + np.array([1.0, 0, 0, 0, 0]), TAU),
            {},
            "v breaks loop 'window0': it opens at 1.19 (m, rad) per second. model.project(q, v) gives speeds that do not",
        ),
    ],
)
def test_arguments_of_constrained_dynamics(arguments, options, expected):
    found = refusal(ArgumentError, MODEL.constrained_dynamics, *arguments, **options)
    assert found == f"constrained_dynamics: {expected}"


def test_numbers_that_are_none():
    v = V.copy()
    v[3] = np.nan
    assert (
        refusal(NumericalError, MODEL.forward_dynamics, Q, v, TAU)
        == "forward_dynamics: v is nan at entry 3 (knee1)"
    )


def test_a_coupling_that_does_not_hold():
    tree = library.random_tree(0, bodies=3, kinds=("revolute",))
    model = tree.replace(couplings=(Coupling("gear", "joint2", ("joint1",), (2.0,)),))
    assert refusal(ArgumentError, model.forward_dynamics, [0.1, 0.5, 0], np.zeros(3), np.zeros(3)) == (
        "forward_dynamics: coupling 'gear' is not closed: its residual is 0.3. model.assemble(q) finds a configuration that "
        "closes it"
    )


def test_independent_speeds_that_are_not():
    name = "independent_coordinates: "
    assert refusal(ArgumentError, MODEL.constraint_analysis, np.stack([Q, Q])) == (
        "constraint_analysis: takes one state at a time, got a batch of shape (2,)"
    )
    assert refusal(ArgumentError, MODEL.independent_coordinates, np.zeros((0, 5))) == (
        f"{name}takes at least one state, to choose independent speeds at"
    )
    assert refusal(ArgumentError, MODEL.independent_coordinates, Q, independent=["foot0", "foot1"]) == (
        f"{name}2 independent speeds are named ('foot0', 'foot1'), the constraints leave 1"
    )
    assert refusal(ArgumentError, MODEL.independent_coordinates, Q, independent=["toe"]).startswith(
        f"{name}independent: no joint or degree of freedom 'toe'"
    )
    assert refusal(ArgumentError, MODEL.independent_coordinates, Q, independent="foot0") == (
        f"{name}independent is 'foot0', expected a list of names"
    )
    model, q = closed()
    assert model.independent_coordinates(q, active=["spherical"]).E.shape[1] == model.nv - 3
    slow = model.constraint_jacobian(q, active=["spherical"])
    still = [model.speed_names[k] for k in np.flatnonzero(np.linalg.norm(slow, axis=0) < 1e-12)]
    moving = [name for name in model.speed_names if name not in still]
    dependent = (still + moving)[:3]
    free = [x for x in model.speed_names if x not in dependent]
    found = refusal(NumericalError, model.independent_coordinates, q, active=["spherical"], independent=free)
    assert found.startswith(f"{name}the speeds '{free[0]}', ")
    assert found.endswith(
        "do not determine the others at this configuration; choose others, or leave the choice open"
    )


def test_inverse_dynamics_that_no_drive_can_give():
    name = "constrained_inverse_dynamics: "
    a = MODEL.forward_dynamics(Q, V, TAU)
    assert refusal(
        ArgumentError, MODEL.constrained_inverse_dynamics, Q, V, a + np.array([1.0, 0, 0, 0, 0])
    ).startswith(f"{name}a breaks loop 'window0': G a + gamma is 0.707 where it should vanish")
    # a beam's hinge turns with everything else, so that any one hinge drives; nothing does not
    for joint in MODEL.speed_names:
        MODEL.constrained_inverse_dynamics(Q, V, a + V, actuated=[joint])
    found = refusal(NumericalError, MODEL.constrained_inverse_dynamics, Q, V, a + V, actuated=[])
    assert found.startswith(
        f"{name}the actuated set (none) cannot give this motion: 1 degrees of freedom are left by the constraints, the set "
        "drives 0 of them, and '"
    )
    assert "lacks an effort of" in found
    for weight in (-1.0, 0.0, np.inf, [1.0, 2.0]):
        message = refusal(
            ArgumentError, MODEL.constrained_inverse_dynamics, Q, V, a, weights={"foot0": weight}
        )
        assert message == f"{name}weights: 'foot0' is {weight!r}, expected a positive number"
    assert (
        refusal(ArgumentError, MODEL.assemble, Q, fixed="foot0")
        == "assemble: fixed is 'foot0', expected a list of names"
    )


def test_the_models_actuators_drive_by_default():
    from alembert.model import Actuator

    model = MODEL.replace(actuators=(Actuator("motor", "foot1"),))
    a = model.forward_dynamics(Q, V, TAU)
    efforts = model.constrained_inverse_dynamics(Q, V, a + V).efforts
    assert set(np.flatnonzero(efforts)) == {model.v_slice("foot1").start}
    np.testing.assert_allclose(model.forward_dynamics(Q, V, efforts), a + V, rtol=1e-10)


def test_algorithms_of_trees_say_what_to_use():
    assert refusal(UnsupportedError, MODEL.symbolic.inverse_dynamics, Q, V, TAU) == (
        "inverse_dynamics: the loop 'window0' would be ignored; loops are not supported by this algorithm yet. Use "
        "constrained_inverse_dynamics (on symbols, symbolic.constrained_inverse_dynamics), or model.replace(loops=()), "
        "which gives the model without them"
    )
    for method in ("conjugate_gradients", "guess"):
        kind = UnsupportedError if method == "conjugate_gradients" else ArgumentError
        assert refusal(kind, MODEL.forward_dynamics, Q, V, TAU, method=method).startswith(
            f"forward_dynamics: method {'' if kind is UnsupportedError else 'is '}'{method}'"
        )
    assert refusal(ArgumentError, MODEL.forward_dynamics, Q, V, TAU, out=np.zeros(3)) == (
        "forward_dynamics: out has shape (3,), expected (5,)"
    )
    for out, kind in (([0.0] * 5, "list"), (np.zeros(5, dtype=int), "ndarray")):
        assert refusal(ArgumentError, MODEL.forward_dynamics, Q, V, TAU, out=out) == (
            f"forward_dynamics: out is {kind}, expected a NumPy array of float64 to write into"
        )


def test_constraints_that_contradict_each_other():
    """Flat, moving so that one branch only is left: posts turn against each other, beams cannot follow."""
    model = four_bars(1).replace(name="contradiction")
    q, v = parallelogram(model, 0.5, 0.0)
    model.forward_dynamics(q, v, np.zeros(3))
    flat, _ = parallelogram(model, np.pi / 2, 0.0)
    G = model.constraint_jacobian(flat)
    v = np.linalg.svd(G)[2][-2:].T @ [1.0, 0.3]
    found = refusal(NumericalError, model.forward_dynamics, flat, v, np.zeros(3))
    assert found.startswith("forward_dynamics: the constraints contradict each other at q = [ 1.5")
    assert "loop 'window0' cannot be satisfied together with the others" in found


def test_coordinates_of_the_equation_of_motion():
    assert refusal(ArgumentError, MODEL.mass_matrix, Q, coordinates="minimal") == (
        "mass_matrix: coordinates is 'minimal', expected 'all', 'independent' or a list of joints or degrees of freedom"
    )
    assert refusal(ArgumentError, MODEL.bias_forces, Q, V, coordinates=["foot0", "foot1"]) == (
        "bias_forces: 2 independent speeds are named ('foot0', 'foot1'), the constraints leave 1"
    )
    assert refusal(ArgumentError, MODEL.gravity_forces, Q, coordinates=["toe"]).startswith(
        "gravity_forces: coordinates: no joint or degree of freedom 'toe'"
    )
    assert refusal(ArgumentError, MODEL.solve_mass_matrix, Q, TAU, coordinates="independent") == (
        "solve_mass_matrix: x has shape (5,), expected (..., 1)"
    )
    open_ = Q + np.array([0.1, 0, 0, 0, 0])
    assert refusal(ArgumentError, MODEL.mass_matrix, open_, coordinates="independent").startswith(
        "mass_matrix: loop 'window0' is not closed"
    )
    assert refusal(ArgumentError, MODEL.bias_forces, Q, V + 1.0, coordinates="independent").startswith(
        "bias_forces: v breaks loop 'window"
    )
    symbolic = MODEL.symbolic
    assert refusal(ArgumentError, symbolic.mass_matrix, Q, coordinates="minimal").startswith(
        "mass_matrix: coordinates is 'minimal', expected"
    )
    assert refusal(ArgumentError, symbolic.mass_matrix, Q, coordinates="independent") == (
        "mass_matrix: independent coordinates need at=, a configuration at which they are chosen"
    )
    assert (
        refusal(ArgumentError, symbolic.mass_matrix, Q, at=Q)
        == "mass_matrix: at is for independent coordinates"
    )
    for function, x in (
        ("inverse_mass_matrix", ()),
        ("solve_mass_matrix", (V,)),
        ("multiply_mass_matrix", (V,)),
    ):
        said = refusal(ArgumentError, getattr(symbolic, function), Q, *x, at=Q)
        assert said == f"{function}: at is for independent coordinates"
        said = refusal(ArgumentError, getattr(symbolic, function), Q, *x, coordinates="independent")
        assert said.startswith(f"{function}: independent coordinates need at=")
    # one degree of freedom is left of a plane four-bar; a tree keeps all, by names or without
    arm = library.two_link()
    q = np.array([0.3, 0.4])
    np.testing.assert_allclose(arm.mass_matrix(q, coordinates="independent"), arm.mass_matrix(q), rtol=1e-14)
    assert refusal(ArgumentError, arm.mass_matrix, q, coordinates=["elbow"]) == (
        "mass_matrix: 1 independent speeds are named ('elbow'), the constraints leave 2"
    )


def test_too_many_rows_for_code_without_loops():
    model = four_bars(13)
    q, v = parallelogram(model, 0.3, 0.0)
    for function in (model.symbolic.constrained_inverse_dynamics, model.symbolic.independent_coordinates):
        arguments = (q, v, v) if "inverse" in function.__name__ else (q, v)
        assert refusal(UnsupportedError, function, *arguments, at=q) == (
            f"{function.__name__}: the constraints of model 'four_bars_13' are too many for code without loops (26 rows); "
            "the methods of the model take them"
        )


def test_a_joint_without_inertia_is_named_in_a_model_with_parameters():
    builder = ModelBuilder("parameters")
    mass, length = builder.parameter("mass", 1.0), builder.parameter("length", 0.5)
    builder.body("a", Inertia.point(mass, (length, 0, 0)), joint=Revolute((0, 1, 0)), joint_name="a")
    builder.body("b", Inertia.point(1.0), joint=Revolute((0, 1, 0)), joint_name="b")
    model = builder.coupling("gear", "b", ["a"], [2.0]).build()
    message = refusal(NumericalError, model.constrained_dynamics, [0.1, 0.2], [0, 0], [0, 0])
    assert message.startswith(
        "constrained_dynamics: the result is not finite; joint 'b': nothing that moves with b has inertia"
    )
