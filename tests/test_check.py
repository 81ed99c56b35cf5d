"""Every derivative of every algorithm for every joint type against its oracles, by `check.derivatives`."""

import dataclasses
import functools

import numpy as np
import pytest

import alembert as al
from alembert import check, library
from alembert.algorithms import directional_kernels
from alembert.algorithms.table import TABLE, all_with
from alembert.errors import ArgumentError, NumericalError, UnsupportedError
from alembert.joints import REGISTRY

PROGRAMS = {name: entry.sweeps for name, entry in TABLE.items() if entry.program}
KNOWN = all_with("has_derivatives")

CLOSED_FORMS = ("forward_dynamics", "inverse_dynamics", "hybrid_dynamics")
GROUPS = [tuple(REGISTRY)[k::3] for k in range(3)]


@pytest.mark.parametrize("kinds", GROUPS, ids="-".join)
def test_dynamics_of_every_joint_type(kinds):
    """Closed forms and products, with springs, friction, armature and rotors."""
    model = library.random_tree(2, bodies=len(kinds), kinds=kinds, attachments=True)
    assert {joint.type.kind for joint in model.joints} == set(kinds)
    found = check.derivatives(model, CLOSED_FORMS, states=20, show=False)
    assert {row.route for row in found.comparisons} == {"closed form", "jvp", "vjp"}
    found.raise_if_above(1e-9)


@pytest.mark.parametrize("kinds", [tuple(REGISTRY)[k::4] for k in range(4)], ids="-".join)
def test_parameters_of_every_joint_type(kinds):
    """Full Jacobians with respect to masses, placements, axes, springs, friction and gravity, where the tree has them."""
    model = library.random_tree(11, bodies=len(kinds), kinds=kinds, attachments=True, parameters=True)
    assert {joint.type.kind for joint in model.joints} == set(kinds)
    assert len(model.parameters) > 5
    found = check.derivatives(model, CLOSED_FORMS, states=2, oracle="complex_step", show=False)
    routes = {(row.algorithm, row.derivative, row.route) for row in found.comparisons}
    assert {(name, "dparameters", "closed form") for name in CLOSED_FORMS} <= routes
    found.raise_if_above(1e-9)


@pytest.mark.parametrize("kinds", GROUPS, ids="-".join)
def test_products_of_every_algorithm(kinds):
    model = library.random_tree(2, bodies=len(kinds), kinds=kinds, attachments=True)
    rest = [name for name in PROGRAMS if name not in (*CLOSED_FORMS, "inverse_dynamics_derivatives")]
    check.derivatives(model, rest, states=4, show=False).raise_if_above(1e-9)


def test_products_of_kinematics_momentum_and_manifold():
    """What is no program but made from several, a parameter among the arguments; complex steps compile nothing."""
    model = library.random_tree(
        3, bodies=2, kinds=("spherical", "revolute"), attachments=True, parameters=True
    )
    rest = [name for name in KNOWN if name not in PROGRAMS]
    assert {"momentum", "energy", "frame_jacobian", "center_of_mass", "difference"} < set(rest)
    found = check.derivatives(model, rest, states=1, oracle="complex_step", show=False)
    found.raise_if_above(1e-9)
    assert {"frame_jacobian: dparameters", "difference: dq1", "momentum: dv"} < set(found.errors)


@pytest.mark.parametrize("oracle", check.TOLERANCES)
def test_hessians_of_a_frame_and_of_differences(oracle):
    names = ("frame_velocity", "difference", "energy")
    found = check.derivatives(library.pitcher(), names, states=1, oracle=oracle, second=True, show=False)
    found.raise_if_above()


def test_second_derivatives():
    """The products of `inverse_dynamics_derivatives` are second derivatives of inverse dynamics."""
    model = library.random_tree(4, bodies=2, kinds=("spherical", "screw"), attachments=True)
    check.derivatives(model, "inverse_dynamics_derivatives", states=3, show=False).raise_if_above(1e-9)


@pytest.mark.parametrize("kind", REGISTRY)
@pytest.mark.parametrize("most", [0, 8], ids=["rolled", "unrolled"])
def test_hessians_of_every_joint_type(kind, most, monkeypatch):
    """Along random directions of all arguments, the wrench among them."""
    monkeypatch.setattr(directional_kernels, "MOST_NODES_TWICE", most)
    model = library.random_tree(5, bodies=1, kinds=(kind,), attachments=True)
    if not model.nv:
        return
    found = check.derivatives(model, "inverse_dynamics", states=2, second=True, show=False)
    # alone the joint may leave first derivatives that are zero but for rounding
    assert found.errors["inverse_dynamics: second, along all"] < 1e-9


@pytest.mark.parametrize("oracle", check.TOLERANCES)
def test_hessians_against_every_oracle(oracle):
    model = library.two_link()
    found = check.derivatives(model, CLOSED_FORMS, states=2, oracle=oracle, second=True, show=False)
    found.raise_if_above()


@functools.cache
def tree_with_parameters():
    return library.random_tree(3, bodies=3, kinds=("revolute", "free"), attachments=True, parameters=True)


@pytest.mark.parametrize("oracle", check.TOLERANCES)
def test_parameters_and_oracles(oracle, capsys):
    model = tree_with_parameters()
    found = al.check.derivatives(model, CLOSED_FORMS, states=2, oracle=oracle)
    found.raise_if_above()
    for name in CLOSED_FORMS:
        assert {f"{name}: dparameters", f"{name}: dwrench"} <= set(found.errors)
    assert found.states == 9
    assert 0 < found.largest < check.TOLERANCES[oracle]
    printed = capsys.readouterr().out
    assert f"random_tree_3: relative errors of derivatives against {oracle}, 9" in printed


def test_a_wrong_derivative_is_found(monkeypatch):
    model = library.two_link()
    right = type(model).forward_dynamics_derivatives

    def wrong(self, q, v, tau, **options):
        d = right(self, q, v, tau, **options)
        return dataclasses.replace(d, dv=d.dv + 1e-6 * np.abs(d.dv).max())

    monkeypatch.setattr(type(model), "forward_dynamics_derivatives", wrong)
    found = check.derivatives(model, states=2, show=False)
    with pytest.raises(NumericalError) as caught:
        found.raise_if_above()
    message = str(caught.value)
    assert message.startswith(
        "check.derivatives: two_link against ad, tolerance 1e-09: forward_dynamics: dv (closed form) is off by "
    )
    assert message.count(" is off by ") == 1
    assert found.errors["forward_dynamics: dq"] < 1e-12
    with pytest.raises(NumericalError, match=r"; and 4 more$"):
        found.raise_if_above(-1.0)
    assert "closed form" in str(found)


def test_nan_is_an_infinite_error(monkeypatch):
    model = library.two_link()
    right = type(model).jvp
    monkeypatch.setattr(type(model), "jvp", lambda *x, **o: (right(*x, **o)[0], np.nan * right(*x, **o)[1]))
    assert check.derivatives(model, states=0, show=False).errors["forward_dynamics: along all"] == np.inf


def test_what_does_not_change_has_no_wrong_derivative():
    """Wheels leave a satellite's mass matrix as it is, and its Jacobians: their derivatives are rounding, not errors."""
    names = ("mass_matrix", "frame_jacobian", "inverse_mass_matrix")
    check.derivatives(library.satellite(), names, states=1, show=False).raise_if_above()


def test_special_states_are_among_them():
    """Neutral, straight and at rest, where quotients like sin(x)/x and |v| need care."""
    labels = {row[0] for row in check.samples(library.arm7(), 1, np.random.default_rng(0))}
    assert labels == {
        "neutral, all zero",
        "neutral, in motion",
        "straight, at rest",
        "straight, in motion",
        "random, at rest",
        "random 1",
    }
    pitcher = library.pitcher()
    turned = dict(check.samples(pitcher, 0, np.random.default_rng(0)))
    shoulder = pitcher.q_slice("shoulder")
    assert not {"half a turn, at rest", "half a turn, in motion"} - set(turned)
    assert abs(turned["half a turn, in motion"]["q"][shoulder][0]) < 1e-15


def test_refusals():
    model = library.two_link()

    def refusal(*arguments, error=ArgumentError, **options):
        with pytest.raises(error) as caught:
            check.derivatives(*arguments, **options)
        return str(caught.value)

    assert refusal(model, "forward_dynamic") == (
        "check.derivatives: no algorithm 'forward_dynamic'; did you mean 'forward_dynamics'?"
    )
    assert refusal(model, oracle="fd") == (
        "check.derivatives: no oracle 'fd'; there is ad, complex_step, finite_difference"
    )
    assert refusal(model, states=-1) == "check.derivatives: states is -1, expected zero or more"
    coupled = model.replace(couplings=(al.Coupling("gear", "elbow", ("shoulder",), (2.0,)),))
    assert refusal(coupled, "hybrid_dynamics", error=UnsupportedError).startswith(
        "check.derivatives: hybrid_dynamics of a model with loops, couplings or equations has no expression"
    )
    apart = al.LoopJoint("closure", al.Fixed(), "world", "tip")
    far = model.replace(
        frames=tuple(
            al.Frame(f.name, f.body, al.Placement((90, 0, 0))) if f.name == "tip" else f for f in model.frames
        ),
        loops=(apart,),
    )
    assert refusal(far, error=NumericalError).endswith("could not be closed from random configurations")


def four_bar():
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    length = builder.parameter("length", 1.0)
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("crank", rod, joint=al.Revolute(), joint_name="crank")
    builder.body(
        "coupler", rod, joint=al.Revolute(), joint_name="coupler", parent="crank", placement=(0.4, 0, 0)
    )
    builder.body("rocker", rod, joint=al.Revolute(), joint_name="rocker", placement=(0.9, 0, 0))
    builder.frame("end", "coupler", (length, 0, 0)).frame("top", "rocker", (0.8, 0, 0))
    builder.loop("pin", al.Revolute(), "end", "top")
    builder.actuator("motor", "crank")
    return builder.build()


@pytest.mark.parametrize("oracle", check.TOLERANCES)
def test_models_with_loops(oracle):
    """All derivatives through a loop, those with respect to a wrench and to its geometry among them."""
    names = ["forward_dynamics", "inverse_dynamics", "bias_forces"]
    found = check.derivatives(four_bar(), names, states=2, oracle=oracle, show=False)
    found.raise_if_above()
    routes = {row.route for row in found.comparisons}
    assert routes == {"closed form", "jvp", "vjp"}
    assert {row.derivative for row in found.comparisons} >= {
        "dq",
        "dv",
        "dtau",
        "da",
        "dwrench",
        "dparameters",
    }
    if oracle != "finite_difference":
        check.derivatives(
            four_bar(), "forward_dynamics", states=1, oracle=oracle, second=True, show=False
        ).raise_if_above()


def test_models_with_couplings():
    model = library.two_link()
    coupled = model.replace(couplings=(al.Coupling("gear", "elbow", ("shoulder",), (2.0,)),))
    check.derivatives(coupled, "all", states=1, show=False).raise_if_above()
