"""The algorithms on CasADi expressions give what the compiled ones give."""

import dataclasses
import functools
import inspect

import casadi as ca
import numpy as np
import pytest
from dynamics_helpers import ROUNDING, states, tree

import alembert
from alembert import Coupling, Fixed, Inertia, ModelBuilder, Revolute
from alembert.algorithms import Compute
from alembert.constraints import ConstrainedCompute
from alembert.constraints.symbolic import ConstrainedSymbolic
from alembert.errors import NumericalError, UnsupportedError
from alembert.joints import REGISTRY
from alembert.model.methods import Methods
from refusals import refusal

REFERENCES = ("local", "world", "local_world_aligned")
NOT_SYMBOLIC = {
    *("check_configuration", "compute", "constrained_compute", "compile", "export_c", "symbolic"),
    *("hessian", "second_derivatives"),
}
"""what is no algorithm; second derivatives, which expressions have as `hessian`, are compared on a small model below"""
FACTORS = {
    "innovations": alembert.innovations,
    "diagonalising_velocities": alembert.diagonalising_velocities,
    "velocities_from_diagonal": alembert.velocities_from_diagonal,
    "admittance": alembert.admittance,
}


def calls(model):
    """Arguments of every algorithm, in all the forms that give another graph: (name, arguments, options)."""
    frame, other = model.frames[0].name, model.bodies[-1].name
    F = {frame: "F", other: "G", model.bodies[2].name: "F"}
    joint = next(joint.name for joint in model.joints if joint.type.nv > 1)
    single = next(name for name in model.speed_names if not name.startswith(f"{joint}."))
    hybrid = {"accelerations": {joint: f"slice {joint}", single: "x"}, "torques": {}, "wrenches": F}
    last = next(name for name in reversed(model.speed_names) if not name.startswith(joint) and name != single)
    hybrid["torques"] = {last: "y"}
    found = [
        ("forward_dynamics", "qva", {"wrenches": F}),
        ("inverse_dynamics", "qva", {"wrenches": F}),
        ("hybrid_dynamics", "qv", hybrid),
        ("bias_forces", "qv", {"wrenches": F}),
        ("gravity_forces", "q", {}),
        ("coriolis_forces", "qv", {}),
        ("mass_matrix", "q", {}),
        ("inverse_mass_matrix", "q", {}),
        ("solve_mass_matrix", "qa", {}),
        ("multiply_mass_matrix", "qa", {}),
        ("center_of_mass", "q", {}),
        ("kinetic_energy", "qv", {}),
        ("potential_energy", "q", {}),
        ("energy", "qv", {}),
        ("power", "qva", {"wrenches": F}),
        ("integrate", "qv", {}),
        ("difference", "qp", {}),
        ("rate", "qv", {}),
        ("inverse_dynamics_derivatives", "qva", {"wrenches": F}),
        ("forward_dynamics_derivatives", "qva", {"wrenches": F}),
        ("hybrid_dynamics_derivatives", "qv", hybrid),
        ("jvp", ("forward_dynamics", "qva", "vav"), {}),
        ("vjp", ("inverse_dynamics", "qva", "v"), {}),
        ("innovations", "q", {}),
        ("diagonalising_velocities", "qv", {}),
        ("velocities_from_diagonal", "qv", {}),
        ("admittance", ("q", [frame, (other, alembert.Placement((0.1, 0.2, 0.3)))]), {}),
    ]
    # what a reference or the world makes of a frame's motion does not depend on the joints: the larger tree meets one
    large = len(model.bodies) > 10
    for name in (frame,) if large else (frame, "world"):
        found.append(("frame_pose", ("q", name), {}))
        for reference in REFERENCES[:1] if large else REFERENCES:
            option = {"reference": reference}
            found += [
                ("frame_velocity", ("q", "v", name), option),
                ("frame_acceleration", ("q", "v", "a", name), option),
                ("frame_jacobian", ("q", name), option),
                ("frame_jacobian", ("q", name), option | {"point": "z"}),
                ("frame_jacobian_rate", ("q", "v", name), option),
            ]
    for about in ("world", "center_of_mass"):
        found += [("momentum", "qv", {"about": about}), ("momentum_matrix", "q", {"about": about})]
    return found


@pytest.fixture(scope="module", params=["attached", "parameters"])
def model(request):
    return tree(request.param)


@pytest.fixture(scope="module")
def values(model):
    q, v, a = (x[0] for x in states(model, 1))
    rng = np.random.default_rng(1)
    vectors = {"q": q, "v": v, "a": a, "p": model.integrate(q, 0.3 * a), "F": rng.normal(size=6)}
    vectors |= {"G": rng.normal(size=6), "x": np.array(0.7), "y": np.array(-1.3), "z": rng.normal(size=3)}
    for joint in model.joints:
        vectors[f"slice {joint.name}"] = rng.normal(size=joint.type.nv)
    return vectors


def filled(given, values):
    """Letters and their containers, replaced by what they stand for."""
    if isinstance(given, str):
        return values.get(given, given) if given in values else given
    if isinstance(given, dict):
        return {key: filled(x, values) for key, x in given.items()}
    if isinstance(given, tuple | list):
        return type(given)(filled(x, values) for x in given)
    return given


def flat(result):
    """All numbers or expressions of a result."""
    if isinstance(result, tuple | list):
        return [x for part in result for x in flat(part)]
    if isinstance(result, dict):
        return [x for part in result.values() for x in flat(part)]
    if dataclasses.is_dataclass(result):
        return [x for field in dataclasses.fields(result) for x in flat(getattr(result, field.name))]
    if isinstance(result, np.ndarray) and result.ndim == 3:
        return list(result)
    return [result]


def run(owner, name, arguments, options, values):
    if name in ("jvp", "vjp"):
        algorithm, at, along = arguments
        given = [algorithm, *([values[x] for x in letters] for letters in (at, along))]
        if name == "vjp":
            given[2] = given[2][0]
    else:
        given = filled(list(arguments), values)
    return flat(getattr(owner, name)(*given, **filled(options, values)))


class _Numeric:
    """The methods of a model, and what the package has as functions of one."""

    def __init__(self, model):
        self.model = model

    def __getattr__(self, name):
        if name in FACTORS:
            return functools.partial(FACTORS[name], self.model)
        return getattr(self.model, name)


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_expressions_and_compiled_code_agree(model, values, kind):
    """Every algorithm, on a tree with all joint types; the parameters changed from their defaults."""
    q, v = values["q"], values["v"]
    numbers = {name: 1.05 * x for name, x in model.parameters}
    changed = [{}, {"parameters": numbers}] if numbers else [{}]
    # same instructions, but not fused: the rounding is another, amplified by the condition number where M is solved
    condition = np.linalg.cond(model.mass_matrix(q, **changed[-1]))
    scale = np.abs(model.bias_forces(q, v)).max() + np.abs(model.multiply_mass_matrix(q, values["a"])).max()
    symbols = {key: kind.sym("x", *(x.shape or (1,))) for key, x in values.items()}
    p = kind.sym("p", len(numbers))
    named = {"parameters": {name: p[k] for k, name in enumerate(numbers)}}
    for name, arguments, options in calls(model):
        takes = name not in ("jvp", "vjp", "integrate", "difference", "rate")
        for given in changed if takes else changed[:1]:
            expected = run(_Numeric(model), name, arguments, options | given, values)
            graph = run(model.symbolic, name, arguments, options | (named if given else {}), symbols)
            f = ca.Function("f", [*symbols.values(), p], graph)
            found = f.call([*values.values(), list(numbers.values())])
            assert len(found) == len(expected), name
            for x, y in zip(found, expected, strict=True):
                y = np.asarray(y)
                error = np.max(np.abs(x.full().reshape(y.shape) - y), initial=0.0)
                assert error < ROUNDING * condition * (np.max(np.abs(y), initial=0.0) + scale), (
                    name,
                    options,
                )


def test_all_joint_types_are_met():
    assert {joint.type.kind for joint in tree("attached").joints} == set(REGISTRY)


def test_no_algorithm_is_left_out():
    about_constraints = set(vars(ConstrainedCompute)) - set(dir(Compute))
    methods = {name for name in vars(Methods) if not name.startswith("_")} - about_constraints
    compared = {name for name, *_ in calls(tree("attached"))}
    assert (methods | set(FACTORS)) - NOT_SYMBOLIC == compared
    symbolic = {name for name in dir(ConstrainedSymbolic) if not name.startswith("_")}
    # compared by the tests of constraints
    elsewhere = {"constrained_dynamics", "constrained_inverse_dynamics", "independent_coordinates"}
    assert symbolic - compared - elsewhere == {"call", "function", "graph", "hessian", "poses"}
    for name in methods - NOT_SYMBOLIC:
        numeric, other = (
            inspect.signature(getattr(c, name)).parameters for c in (Methods, ConstrainedSymbolic)
        )
        # expressions of parameters differentiate as they are
        expected = [key for key in numeric if key not in ("out", "method", "sensitive_to")]
        if "coordinates" in other:
            other = [key for key in other if key != "at"]  # where constraints are chosen, on symbols
        if name in (
            "jvp",
            "vjp",
        ):  # without options: expressions with frames and wrenches differentiate as they are
            expected = expected[: len(other)]
        assert expected == list(other), name


def test_second_derivatives():
    model = alembert.library.chain(2)
    at = np.random.default_rng(0).normal(size=(3, 2))
    v = ca.SX.sym("v", 2)
    H = model.symbolic.hessian("inverse_dynamics", (at[0], v, at[2]), [1.0, 2.0])
    expected = model.hessian("inverse_dynamics", at, np.array([1.0, 2.0]))
    np.testing.assert_allclose(ca.Function("H", [v], [H])(at[1]).full(), expected, atol=1e-12)


def test_poses_of_all_bodies(model, values):
    poses = model.symbolic.poses(values["q"]).full()
    np.testing.assert_allclose(poses, model.compute.evaluate("poses", (values["q"],)), atol=20 * ROUNDING)


@pytest.fixture(scope="module")
def given(values):
    return values


def test_numbers_in_numbers_out(model, given):
    T = model.symbolic.kinetic_energy(given["q"], given["v"])
    assert isinstance(T, ca.DM)
    np.testing.assert_allclose(float(T), model.kinetic_energy(given["q"], given["v"]), rtol=ROUNDING)


def test_derivatives_of_expressions(model, given):
    """dT/dv is the momentum of the speeds, M v."""
    v = ca.MX.sym("v", model.nv)
    gradient = ca.Function("g", [v], [ca.gradient(model.symbolic.kinetic_energy(given["q"], v), v)])
    expected = model.multiply_mass_matrix(given["q"], given["v"])
    np.testing.assert_allclose(
        gradient(given["v"]).full().ravel(), expected, atol=ROUNDING * np.abs(expected).max()
    )


def test_parameters_as_expressions():
    model = tree("parameters")
    q, v, tau = (x[0] for x in states(model, 1))
    p = ca.SX.sym("p", len(model.parameters))
    values = np.array([value for _, value in model.parameters]) * 1.1
    f = ca.Function("f", [p], [model.symbolic.forward_dynamics(q, v, tau, parameters=p)])
    named = dict(zip(model.parameter_values, values, strict=True))
    expected = model.forward_dynamics(q, v, tau, parameters=named)
    condition = np.linalg.cond(model.mass_matrix(q, parameters=named))
    np.testing.assert_allclose(
        f(values).full().ravel(), expected, atol=ROUNDING * condition * np.abs(expected).max()
    )
    default = model.symbolic.forward_dynamics(q, v, tau).full().ravel()
    np.testing.assert_allclose(default, model.forward_dynamics(q, v, tau), rtol=1e-9)


def test_loops_and_couplings_are_refused(model, given):
    one = [joint.name for joint in model.joints if joint.type.nv == 1][:2]
    coupled = model.replace(couplings=(Coupling("gear", one[0], (one[1],), (2.0,)),))
    with pytest.raises(UnsupportedError, match="forward_dynamics: the coupling 'gear' would be ignored"):
        coupled.symbolic.forward_dynamics(given["q"], given["v"], given["a"])


def test_wrong_shapes_and_types_are_named():
    builder = ModelBuilder("two")
    mass = builder.parameter("m", 1.0)
    for name in ("a", "b"):
        builder.body(name, Inertia.box(1.0, (0.1, 0.2, 0.3)).scaled(mass), joint=Revolute((0, 0, 1)))
    symbolic = builder.build().symbolic
    x, y = ca.SX.sym("x", 2), np.zeros(2)
    wrong = {
        "(1, 1)": ca.SX.sym("x"),
        "(3, 1)": ca.MX.sym("x", 3),
        "(1, 2)": ca.DM.zeros(1, 2),
        "()": 1.0,
        "(3,)": np.zeros(3),
        "(2, 2)": np.zeros((2, 2)),
    }
    for shape, given in wrong.items():
        assert refusal(symbolic.forward_dynamics, given, y, y).startswith(
            f"forward_dynamics: q has shape {shape}, expected (2,)"
        )
        for name in ("integrate", "difference", "rate"):
            second = {"integrate": "dv", "difference": "q1", "rate": "v"}[name]
            message = refusal(getattr(symbolic, name), y, given)
            assert message.startswith(f"{name}: {second} has shape {shape}, expected (2,)")
    assert refusal(symbolic.bias_forces, y, 1.0).startswith("bias_forces: v has shape ()")
    assert refusal(symbolic.solve_mass_matrix, y, 1.0).startswith("solve_mass_matrix: x has shape ()")
    message = refusal(symbolic.hybrid_dynamics, y, y, accelerations={"a_joint": [1.0, 2.0]})
    assert message.startswith("hybrid_dynamics: accelerations: 'a_joint' has shape (2,), expected (1,)")
    both = {"accelerations": {"a_joint": 1.0}, "torques": {"a_joint": ca.SX(2)}}
    message = refusal(symbolic.hybrid_dynamics, y, y, **both)
    assert message == "hybrid_dynamics: a_joint is given both an acceleration and a torque; give one"
    mixed = {"accelerations": {"a_joint": x[0], "b_joint": ca.MX.sym("b")}}
    message = refusal(symbolic.hybrid_dynamics, y, y, **mixed)
    assert message.endswith("'b_joint' is MX; expected expressions of one kind")
    message = refusal(symbolic.bias_forces, y, y, wrenches={"a": x})
    assert message == "bias_forces: wrench on 'a' has shape (2, 1), expected (6,); moment, then force"
    message = refusal(symbolic.bias_forces, y, y, wrenches={"world": np.zeros(6)})
    assert message == "bias_forces: wrench on frame 'world', which does not move"
    message = refusal(symbolic.bias_forces, y, y, parameters={"k": 1.0})
    assert message.startswith("bias_forces: no parameter 'k'")
    message = refusal(symbolic.bias_forces, y, y, parameters={"m": x})
    assert message.startswith("bias_forces: parameter 'm' has shape (2, 1), expected (1,)")
    message = refusal(symbolic.frame_velocity, y, y, "a", reference="body")
    assert message.startswith("frame_velocity: reference is 'body', expected one of local")
    assert refusal(symbolic.momentum, y, y, about="a").startswith("momentum: about is 'a', expected 'center")
    message = refusal(symbolic.gravity_forces, y, parameters=x)
    assert message.startswith("gravity_forces: parameters has shape (2, 1), expected (1,)")
    for given in ("q", None, {"a": 1.0}, [x, ca.MX.sym("x")]):
        message = refusal(symbolic.gravity_forces, given)
        assert message.startswith("gravity_forces: q is ")
        assert message.endswith("expected numbers or a CasADi expression")
    message = refusal(symbolic.bias_forces, x, ca.MX.sym("v", 2))
    assert message == "bias_forces: q is SX, v is MX; expected expressions of one kind"
    for given in (x, [x[0], 1.0], ca.vertcat(x), np.zeros((2, 1)), [0, 1], (0.0, 1.0)):
        assert symbolic.bias_forces(given, y).shape == (2, 1)


def test_a_center_of_mass_needs_mass():
    builder = ModelBuilder("rock")
    builder.body("stone", Inertia.box(1.0, (1, 1, 1)), joint=Fixed())
    model = builder.build()
    with pytest.raises(
        NumericalError, match="center_of_mass: nothing that moves in the model 'rock' has mass"
    ):
        model.symbolic.center_of_mass([])
    assert float(model.symbolic.energy([], [])) == 0.0
    np.testing.assert_array_equal(model.symbolic.frame_jacobian([], "stone").shape, (6, 0))
