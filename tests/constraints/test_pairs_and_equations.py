"""Pairs that are no joints (rods, guides, rolling), equations of the user's, and custom joints that close loops."""

import functools

import casadi as ca
import numpy as np
import pytest
from constraint_helpers import dense_solution, opposite, possible_speeds, tree_of
from test_constraint_equations import RATE, rate_along

import alembert as al
from alembert import library
from alembert.constraints import equations
from alembert.joints import PAIRS, REGISTRY
from alembert.joints.joint import rotation_about
from alembert.model import Frame, LoopJoint
from alembert.spatial import Pose, quaternion

EXAMPLES = {
    "distance": al.Distance(0.7),
    "point_on_plane": al.PointOnPlane((0.0, 0.6, 0.8), 0.1),
    "point_on_line": al.PointOnLine((0.6, 0.8, 0.0)),
    "point_on_surface": al.PointOnSurface("z - 0.3 * x**2 + sin(y)"),
    "point_on_curve": al.PointOnCurve(("x - cos(z)", "y - sin(z)")),
    "rolling_sphere": al.RollingSphere(0.2),
    "rolling_disc": al.RollingDisc(0.3, (0.0, 0.8, 0.6)),
    "skate": al.Skate((0.0, 1.0, 0.0)),
    "point_on_parametric_curve": al.PointOnParametricCurve(("cos(s)", "sin(2 * s)", "0.3 * s")),
    "point_on_parametric_surface": al.PointOnParametricSurface(
        ("(1 + 0.3 * cos(u)) * cos(w)", "(1 + 0.3 * cos(u)) * sin(w)", "0.3 * sin(u)")
    ),
}


def crank(q):
    """A custom joint: a turn by q about z, at radius 0.3, with a rise of 0.1 sin q."""
    R = rotation_about((0.0, 0.0, 1.0), ca.cos(q[0]), ca.sin(q[0]))
    return Pose(R, ca.vertcat(0.3 * ca.cos(q[0]), 0.3 * ca.sin(q[0]), 0.1 * ca.sin(q[0])))


CRANK = al.Custom.from_function(
    crank,
    [("turn", "rad")],
    fit=lambda X: ca.atan2(X.rotation[1, 0] - X.rotation[0, 1], X.rotation[0, 0] + X.rotation[1, 1]),
)


@functools.cache
def mechanism():
    """A random tree with every pair, an equation of each sort and a custom joint; assembled."""
    tree = library.random_tree(
        11, bodies=9, kinds=("revolute", "spherical", "prismatic"), floating=True, branching=0
    )
    names = [body.name for body in tree.bodies]
    frames, loops = [], []
    # each has its own place: 'custom' keeps its own however many there are
    pairs = [*list(EXAMPLES.items())[:8], ("custom", CRANK), *list(EXAMPLES.items())[8:]]
    for k, (kind, pair) in enumerate(pairs):
        ground = "rolling" in kind or kind == "skate"
        frames += [Frame(f"{kind}_b", names[-1 - k % 4], al.Placement((0.1 * k, 0.2, -0.1)))]
        if not ground:
            frames += [
                Frame(f"{kind}_a", names[k % 3], al.Placement.from_rpy((0.3, -0.2, 0.1 * k), (0.0, 0.1, 0.2)))
            ]
        loops.append(LoopJoint(kind, pair, "world" if ground else f"{kind}_a", f"{kind}_b"))
    equations = (
        al.Equation(
            "cam",
            ("q - 0.1 * cos(z) - x * s",),
            {
                "q": tree.coordinate_names[-1],
                "z": f"{names[2]}.z",
                "x": f"{names[5]}.yx",
                "s": f"{names[5]}.x",
            },
            names[1],
        ),
        al.Equation(
            "drift",
            ("x_dot - 2 * y * s_dot",),
            {"x": f"{names[4]}.x", "y": f"{names[4]}.y", "s": tree.coordinate_names[-1]},
        ),
    )
    return tree.replace(frames=(*tree.frames, *frames), loops=tuple(loops), equations=equations)


NAMES = (*EXAMPLES, "custom", "cam", "drift")


@functools.cache
def closed_by(name):
    model = mechanism()
    q = model.random_configuration(3)
    return model.assemble(q, active=[name]).q


def test_every_pair_has_an_example():
    # tests/constraints/test_touching_surfaces.py has that one: it takes long to compile
    assert set(EXAMPLES) | {"touching_surfaces"} == set(PAIRS)
    assert not set(PAIRS) & set(REGISTRY)


@pytest.mark.parametrize("name", NAMES)
def test_rows_are_derivatives_of_holonomic_residuals(name):
    model, q = mechanism(), closed_by(name)
    v = np.random.default_rng(5).normal(size=model.nv)
    residual = model.constraint_residual(q, active=[name])
    assert np.max(np.abs(residual)) < 1e-12
    rate = rate_along(lambda q, v: model.constraint_residual(q, active=[name]), model, q, v, 0 * v)
    part = next(x for x in (*model.loops, *model.equations) if x.name == name)
    holonomic = np.array(part.type.holonomic if isinstance(part, LoopJoint) else part.holonomic)
    G = model.constraint_jacobian(q, active=[name])
    assert np.min(np.linalg.norm(G, axis=1)) > 0.02
    np.testing.assert_allclose(rate[holonomic], (G @ v)[holonomic], atol=RATE * 100 * np.linalg.norm(v))
    np.testing.assert_array_equal(rate[~holonomic], 0)


@pytest.mark.parametrize("name", NAMES)
def test_the_bias_is_the_rest_of_the_acceleration(name):
    model = mechanism()
    rng = np.random.default_rng(2)
    q = model.integrate(closed_by(name), 0.02 * rng.normal(size=model.nv))
    v, a = rng.normal(size=(2, model.nv))
    rate = rate_along(lambda q, v: model.constraint_jacobian(q, active=[name]) @ v, model, q, v, a)
    G, gamma = model.constraint_jacobian(q, active=[name]), model.constraint_bias(q, v, active=[name])
    scale = np.linalg.norm(G) * (np.linalg.norm(a) + v @ v)
    np.testing.assert_allclose(rate, G @ a + gamma, atol=10 * RATE * scale)


@pytest.mark.parametrize("name", NAMES)
def test_accelerations_and_reactions_agree_with_a_dense_solution(name):
    model, q = mechanism(), closed_by(name)
    v = possible_speeds(model, q, [name])
    tau = np.random.default_rng(1).normal(size=model.nv)
    found = model.constrained_dynamics(q, v, tau, active=[name])
    a, forces = dense_solution(model, q, v, tau, active=[name])
    np.testing.assert_allclose(found.accelerations, a, rtol=1e-9, atol=1e-9 * np.linalg.norm(a))
    reaction = found.reactions[name]
    if name in ("cam", "drift"):
        given = model.constraint_jacobian(q, active=[name]).T @ reaction
    else:
        loop = next(x for x in model.loops if x.name == name)
        ends = {loop.frame_b: reaction, loop.frame_a: opposite(model, q, loop, reaction)}
        ends.pop("world", None)
        tree = tree_of(model)
        zero = np.zeros(model.nv)
        given = tree.inverse_dynamics(q, zero, zero) - tree.inverse_dynamics(q, zero, zero, wrenches=ends)
    np.testing.assert_allclose(given, forces, atol=1e-8 * max(1.0, np.linalg.norm(forces)))
    # ideal: possible motions take no power from a constraint
    assert abs(given @ v) < 1e-9 * np.linalg.norm(given) * np.linalg.norm(v) + 1e-12


def test_derivatives_with_all_of_them():
    model = mechanism()
    active = ["distance", "rolling_disc", "cam", "drift", "custom"]
    q = model.assemble(model.random_configuration(3), active=active).q
    v = possible_speeds(model, q, active)
    tau = np.random.default_rng(1).normal(size=model.nv)
    d = model.constrained_dynamics_derivatives(q, v, tau, active=active)
    directions = np.linalg.svd(model.constraint_jacobian(q, active=active))[2][-3:]
    h = 1e-5
    for x in directions:
        after, before = (
            model.constrained_dynamics(model.integrate(q, k * h * x), v, tau, active=active).accelerations
            for k in (1, -1)
        )
        # a step along the surface leaves it by h^2, and central differences err by h^2
        np.testing.assert_allclose(
            d.dq @ x, (after - before) / (2 * h), atol=1e-5 * np.linalg.norm(d.dq @ x) + 1e-5
        )


def test_files_and_pickles_keep_them(tmp_path):
    model = mechanism()
    for suffix in ("toml", "yaml"):
        path = tmp_path / f"model.{suffix}"
        al.save(model, path)
        assert al.load(path) == model


def test_a_file_by_hand():
    from alembert.model.io.native import loads

    model = loads(
        """
format = "alembert-model"
version = 1

[parameters]
lift = 0.1

[bodies.shaft]
inertia = {mass = 1.0, tensor = [1, 0, 1, 0, 0, 1]}

[bodies.follower]
inertia = {mass = 1.0}

[joints.turn]
type = "revolute"
parent = "world"
child = "shaft"

[joints.slide]
type = "prismatic"
axis = [0, 0, 1]
parent = "world"
child = "follower"
placement = [1, 0, 0]

[loops.rod]
type = "distance"
distance = 1.0
frame_a = "world"
frame_b = "follower"

[equations.cam]
formulas = ["s - lift * cos(angle)"]
inputs = {s = "slide", angle = "turn"}
"""
    )
    assert model.equations[0].holonomic == (True,)
    np.testing.assert_allclose(
        model.constraint_residual([0.5, 0.3]), [np.hypot(1, 0.3) - 1, 0.3 - 0.1 * np.cos(0.5)]
    )


def test_parts_of_models_keep_their_equations():
    model = mechanism()
    mounted = library.random_tree(0, bodies=2).attach(model, to="body1", prefix="arm/")
    assert [e.name for e in mounted.equations] == ["arm/cam", "arm/drift"]
    assert mounted.equations[1].reference == "body1"
    q0 = mounted.random_configuration(0)
    mounted.constraint_jacobian(q0)  # all names are found
    assert [e.name for e in model.extract(model.bodies[0].name).equations] == ["cam"]


def test_a_disc_that_rolls_upright_and_a_hoop_on_its_edge():
    """Speeds of pure rolling are possible, sliding is not; the steady turn of a coin needs a known lean."""
    builder = al.ModelBuilder("coin")
    m, r = 2.0, 0.5
    inertia = al.Inertia(m, tensor=(m * r**2 / 4, 0, m * r**2 / 2, 0, 0, m * r**2 / 4))
    builder.body("coin", inertia, joint=al.Free()).loop("road", al.RollingDisc(r), "world", "coin")
    coin = builder.build()
    q = np.r_[0, 0, r, 1, 0, 0, 0]
    spin = 3.0
    v = np.r_[0, spin, 0, spin * r, 0, 0]
    np.testing.assert_allclose(coin.constraint_jacobian(q) @ v, 0, atol=1e-15)
    assert np.linalg.norm(coin.constraint_jacobian(q) @ np.r_[0, 0, 0, 1, 0, 0]) > 0.5
    run = al.simulate(coin, q, v, duration=1.0, step=1e-2)
    np.testing.assert_allclose(run.q[-1][:3], [spin * r, 0, r], atol=1e-9)
    # leaning by the angle b, rolling on a circle: energy is kept, as the ground does no work
    lean = np.r_[0, 0, r * np.cos(0.3), np.cos(0.15), np.sin(0.15), 0, 0]
    state = coin.project(lean, np.r_[0.2, 4.0, 0.5, 0, 0, 0])
    run = al.simulate(coin, state.q, state.v, duration=2.0, step=2e-3)
    energy = coin.energy(run.q, run.v)
    # rk4 at this step: the local error of speeds near 10 rad/s is (10 h)^5/120 of a turn
    np.testing.assert_allclose(energy, energy[0], rtol=1e-5)


def test_assembly_does_not_mind_rolling():
    """A rolling row says nothing about where a body may be: assembly moves it any way."""
    builder = al.ModelBuilder("ball")
    builder.body("ball", al.Inertia.sphere(1.0, 0.1), joint=al.Free())
    builder.loop("floor", al.RollingSphere(0.1), "world", "ball")
    builder.loop("rod", al.Distance(1.0), "world", "ball")
    ball = builder.build()
    state = ball.assemble(np.r_[0.5, 0.5, 0.5, 1, 0, 0, 0], np.r_[0, 0, 0, 1, 0, 0])
    np.testing.assert_allclose(np.linalg.norm(state.q[:3]), 1, atol=1e-12)
    np.testing.assert_allclose(state.q[2], 0.1, atol=1e-12)
    np.testing.assert_allclose(ball.constraint_jacobian(state.q) @ state.v, 0, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: al.Distance(0.0),
            r"^distance is 0.0, expected a positive length; Spherical\(\) joins two points$",
        ),
        (
            lambda: al.RollingSphere(-1.0),
            r"^radius of the rolling sphere is -1.0, expected a positive length$",
        ),
        (
            lambda: al.PointOnSurface("u + x"),
            r"^surface equation 'u \+ x' has 'u'; it may hold x, y and z, the point in frame a$",
        ),
        (lambda: al.PointOnSurface("1 + 2"), r"^surface equation '1 \+ 2' does not depend on x, y or z$"),
        (
            lambda: al.PointOnCurve(("x",)),
            r"^curve has 1 equations, expected 2 \(PointOnSurface takes one\)$",
        ),
        (lambda: al.Equation("e", (), {}), r"^equation 'e' has no formulas$"),
        (
            lambda: al.Equation("e", "x", 5),
            r"^equation 'e': inputs are 5, expected names and what they stand for$",
        ),
        (
            lambda: al.Equation("e", "x", {"x_dot": "j"}),
            r"^equation 'e': 'x_dot' cannot be the name of an input; it is to be an identifier$",
        ),
        (lambda: al.Equation("e", "y", {"x": "j"}), r"^equation 'e': 'y' has none of the inputs x$"),
        (
            lambda: library.random_tree(0, bodies=2).replace(
                equations=(al.Equation("e", "x", {"x": "jint1"}),)
            ),
            r"^equation 'e': input 'x' stands for 'jint1'; did you mean 'joint2'\?$",
        ),
        (
            lambda: library.random_tree(0, bodies=2).replace(
                equations=(al.Equation("e", "x", {"x": "joint1"}, "moon"),)
            ),
            r"^equation 'e' refers to the frame 'moon'; ",
        ),
        (
            lambda: library.random_tree(0, bodies=2).replace(
                equations=(al.Equation("e", "x - a", {"x": "joint2"}),)
            ),
            r"^equation 'e' uses the parameter 'a'; there is none$",
        ),
        (
            lambda: (
                library.random_tree(0, bodies=2, kinds=("revolute",))
                .replace(equations=(al.Equation("e", "x_dot * x_dot", {"x": "joint1"}),))
                .constraint_residual([0, 0])
            ),
            r"^equation 'e': 'x_dot \* x_dot' is not linear in the rates of its inputs$",
        ),
        (
            lambda: al.Custom.from_function(crank, [("turn", "rad")], fit=lambda X: X.translation[0]),
            r"^custom joint: fit of the placement at q = ",
        ),
        (
            lambda: al.Custom.from_function(crank, [("turn", "rad")], fit=lambda X: X.translation),
            r"^custom joint: fit\(X\) has shape \(3, 1\), expected \(1, 1\)$",
        ),
        (
            lambda: al.Custom.from_function(
                crank, [("turn", "rad")], fit=lambda X: X.translation[0] + ca.SX.sym("y")
            ),
            r"^custom joint: fit\(X\) depends on more than X: ",
        ),
        (
            lambda: al.joints.register_pair(type("Mine", (al.joints.Pair,), {"kind": "skate"})),
            r"^pair 'skate' is already registered by Skate$",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(al.ModelError, match=message):
        make()


@pytest.mark.parametrize("name", EXAMPLES)
def test_numbers_and_symbols_agree(name):
    """The same pair on NumPy and on `SX`."""
    pair, rng = EXAMPLES[name], np.random.default_rng(0)
    X = al.Placement.from_rpy(rng.normal(size=3), tuple(rng.normal(size=3))).pose()
    x = ca.SX.sym("x", 12)
    S = Pose(ca.reshape(x[:9], 3, 3), x[9:])
    values = ca.Function("f", [x], [ca.densify(ca.SX(pair.residual(S))), ca.densify(ca.SX(pair.rows(S)))])(
        np.r_[X.rotation.ravel(order="F"), X.translation]
    )
    np.testing.assert_allclose(np.asarray(values[0]).ravel(), pair.residual(X), atol=1e-14)
    np.testing.assert_allclose(np.asarray(values[1]), pair.rows(X), atol=1e-14)


@pytest.mark.parametrize("name", EXAMPLES)
def test_rows_of_a_kind_are_made_once(name):
    """What is kept for all loops of a kind gives what the pair gives: the same operations, at any relative pose."""
    pair, rng = EXAMPLES[name], np.random.default_rng(1)
    constants = ca.SX(ca.DM(list(pair.constants())))
    R, p, V = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("V", 6)
    rows = lambda X, _: equations.pair_rows(pair, constants, X[0])  # noqa: E731
    direct = rows([Pose(R, p)], ())
    expected = [direct.residual, direct.of_pairs[0], equations.rate_of_rows(rows, [Pose(R, p)], [V])]
    phi, turned = equations._loop_graphs(pair)
    found = [*phi(R, p), turned(R, p, V)]
    q = rng.normal(size=4)
    at = quaternion.to_matrix(q / np.linalg.norm(q)), rng.normal(size=3), rng.normal(size=6)
    for a, b in zip(found, expected, strict=True):
        numbers = [np.array(ca.Function("f", [R, p, V], [ca.densify(x)])(*at)) for x in (a, b)]
        np.testing.assert_array_equal(*numbers)
    assert equations._loop_graphs(pair)[0] is phi
