"""Input that is almost right: never a wrong number, never the error of another library."""

import copy
import pickle

import numpy as np
import pytest

from alembert import (
    ArgumentError,
    Fixed,
    Inertia,
    ModelBuilder,
    NumericalError,
    Revolute,
    admittance,
    check,
    diagonalising_velocities,
    innovations,
    library,
    linearize,
    solve_lq,
    trim,
)
from alembert.errors import AlembertWarning
from alembert.identify import regressor
from alembert.linear import place_poles
from alembert.operators import _kernel as operator_kernel
from alembert.operators import operators

ARM = library.arm7()
Q, V = np.full(7, 0.3), np.linspace(-1, 1, 7)
BAD = np.where(np.arange(7) == 3, np.nan, Q)
CART = library.acrobot()
LINEAR = linearize(CART, [1.0, 0.2])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: admittance(ARM, BAD, ["tool"]), "admittance"),
        (lambda: innovations(ARM, BAD), "innovations"),
        (lambda: diagonalising_velocities(ARM, BAD, V), "diagonalising_velocities"),
        (lambda: ARM.inverse_mass_matrix(BAD), "inverse_mass_matrix"),
        (lambda: regressor(ARM, BAD, V, V), "regressor"),
    ],
)
def test_what_is_not_finite_is_not_passed_on(call, name):
    with pytest.raises(
        NumericalError, match=rf"{name}: the result is not finite; q is nan at entry 3 \(joint4\)"
    ):
        call()


def test_a_batch_keeps_its_good_states():
    states = np.stack([Q, BAD])
    for call, name in (
        (lambda: admittance(ARM, states, ["tool"]), "admittance"),
        (lambda: ARM.inverse_mass_matrix(states), "inverse_mass_matrix"),
    ):
        with pytest.warns(
            AlembertWarning, match=f"{name}: 1 of 2 states have no finite result, the first at 1"
        ):
            found = call()
        assert np.isfinite(found[0]).all()
        assert np.isnan(found[1]).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: operators(ARM, BAD), "operators: q is not finite"),
        (lambda: ARM.forward_dynamics(np.ma.array(Q, mask=Q > 0), V, V), "q has masked entries"),
        (
            lambda: admittance(ARM, Q, [3]),
            r"frames: 3 is neither the name of a frame nor \(name, Placement\)",
        ),
        (lambda: admittance(ARM, Q, [("tool", 3)]), r"frames: \('tool', 3\) is neither"),
        (
            lambda: admittance(ARM, Q, ["tool"], parameters={"m": 1}),
            "parameters are given, but the model has none",
        ),
        (lambda: solve_lq(3), "solve_lq: problem is a int, expected an LQProblem"),
        (lambda: ARM.power(Q, np.zeros((3, 7)), np.zeros((4, 7))), r"power: .* v \(3,\), tau \(4,\)"),
        (
            lambda: ARM.jvp("forward_dynamics", None, (V, V, V)),
            "jvp: forward_dynamics takes a tuple of arguments",
        ),
        (lambda: CART.second_derivatives("forward_dynamics", (V[:2], V[:2])), "second_derivatives: .*got 2"),
        (
            lambda: CART.second_derivatives("forward_dynamics", (V[:2], V[:2], "a")),
            "second_derivatives: argument 2 is 'a', expected numbers",
        ),
        (lambda: trim(CART, fixed=["elbow"]), r"trim: fixed is \['elbow'\], expected a mapping"),
        (
            lambda: trim(CART, fixed={"elbow_motor": [1, 2]}),
            r"'elbow_motor' has shape \(2,\), expected a number",
        ),
        (lambda: trim(CART, free=3), "trim: free is 3, expected a list of names"),
        (lambda: linearize(CART, [1, 2], outputs=3), "linearize: outputs is 3, expected a list of names"),
        (lambda: LINEAR.root_locus(np.ones(4), gains="a"), "root_locus: gains is 'a', expected numbers"),
        (lambda: LINEAR.root_locus([1, 2, 3, np.nan]), "root_locus: feedback is not finite"),
        (lambda: LINEAR.frequency_response(np.inf), "frequency_response: frequency is not finite"),
        (lambda: LINEAR.simulate([0, 0], [0, 1]), r"simulate: x0 has shape \(2,\), expected \(4,\)"),
        (
            lambda: LINEAR.simulate(np.zeros(4), [0, 1, 2], u=np.zeros((2, 1))),
            r"simulate: u has shape \(2, 1\), expected \(3, 1\) or \(1,\)",
        ),
        (lambda: place_poles(LINEAR, "fast"), "place_poles: "),
    ],
)
def test_messages(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()


def test_power_of_speeds_that_are_not_finite():
    with pytest.raises(NumericalError, match="power: the result is not finite"):
        ARM.power(Q, BAD, V)


def test_parameters_go_with_the_states_of_an_inverse_mass_matrix():
    """Two states of a model with two speeds: the values must not spread over the columns."""
    builder = ModelBuilder("lift")
    load = builder.parameter("load", 2.0)
    builder.body("beam", Inertia.point(load, (1, 0, 0)), joint=Revolute((0, 1, 0)))
    builder.body(
        "tip", Inertia.sphere(1.0, 0.1), joint=Revolute((0, 1, 0)), parent="beam", placement=(1, 0, 0)
    )
    model = builder.build()
    found = model.inverse_mass_matrix([0.1, 0.2], parameters={"load": [1.0, 5.0]})
    each = [model.inverse_mass_matrix([0.1, 0.2], parameters={"load": load}) for load in (1.0, 5.0)]
    np.testing.assert_array_equal(found, each)


def test_compiled_kernels_pickle_as_what_they_are_made_from():
    push = np.arange(6.0)
    kernel = ARM.compile("forward_dynamics", wrenches=["tool"])
    expected = ARM.forward_dynamics(Q, V, V, wrenches={"tool": push})
    for again in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        np.testing.assert_array_equal(again(Q, V, V, push), expected)
    with pytest.raises(TypeError, match="innovations: this kernel does not pickle; pickle the model"):
        pickle.dumps(operator_kernel(ARM, "innovations"))


def test_weights_of_numbers_need_no_dimension():
    M = ARM.mass_matrix(Q)
    for weight in (1.0, np.float64(1.0), np.array(1.0), [1.0]):
        np.testing.assert_allclose(ARM.vjp("kinetic_energy", (Q, V), weight)[1], M @ V, rtol=1e-12)
    found = ARM.vjp("kinetic_energy", (np.stack([Q, Q]), V), np.array([1.0, 2.0]))[1]
    np.testing.assert_allclose(found, [M @ V, 2 * M @ V], rtol=1e-12)


def test_where_nothing_moves_twice():
    """The second call finds the kernel of the first."""
    builder = ModelBuilder("statue")
    builder.body("stone", Inertia.box(1.0, (1, 1, 1)), joint=Fixed())
    statue = builder.build()
    for _ in range(2):
        assert statue.potential_energy([]) == statue.kinetic_energy([], []) == 0.0
        np.testing.assert_array_equal(statue.momentum([], [], about="world"), np.zeros(6))
        with pytest.raises(NumericalError, match="nothing that moves in the model 'statue' has mass"):
            statue.momentum([], [])
    with pytest.raises(ArgumentError, match=r"check\.derivatives: nothing moves in the model 'statue'"):
        check.derivatives(statue)


def test_points_of_jacobians_are_finite():
    builder = ModelBuilder("arm")
    builder.body("arm", Inertia.box(1.0, (1, 1, 1)), joint=Revolute((0, 0, 1)))
    with pytest.raises(
        ArgumentError, match=r"frame_jacobian: point is \[1, nan, 1\], expected finite numbers"
    ):
        builder.build().frame_jacobian([0.1], "arm", point=[1, np.nan, 1])
