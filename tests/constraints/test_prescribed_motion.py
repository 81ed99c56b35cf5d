"""Ider's control forces: the three-link case by both methods, feasibility, and loops with prescribed motions."""

import functools

import numpy as np
import pytest
from constraint_helpers import four_bars, parallelogram, tree_of

import alembert as al

START = np.radians([60.0, -10.0, -90.0])
SPEEDS = np.array([0.386, 0.0, -0.9618])


@functools.cache
def three_links():
    """Planar, links of 1 m, mass centres in the middle, no gravity; the tip's path as an equation."""
    builder = al.ModelBuilder("three links", gravity=(0, 0, 0))
    parent = "world"
    for k, (m, I) in enumerate([(30.0, 10.0), (18.0, 8.64), (18.0, 8.64)]):
        inertia = al.Inertia(m, (0.5, 0, 0), (I, 0, I, 0, 0, I))
        place = (0, 0, 0) if k == 0 else (1, 0, 0)
        builder.body(
            f"link{k}", inertia, joint=al.Revolute(), joint_name=f"joint{k}", parent=parent, placement=place
        )
        parent = f"link{k}"
    builder.frame("tip", "link2", (1, 0, 0))
    builder.equation("path", ["x - 1.9088", "y - 0.9893"], {"x": "tip.x", "y": "tip.y"})
    return builder.build()


def run(actuators, method, steps=400):
    """The classical Runge-Kutta method over 1 s; the tip has no acceleration on its path."""
    model = three_links()
    path = {"path": [0.0, 0.0]}

    def slope(q, v):
        return model.control_forces(q, v, motions=path, actuators=actuators, method=method).accelerations

    q, v, h = START, SPEEDS, 1.0 / steps
    for _ in range(steps):
        a1 = slope(q, v)
        a2 = slope(q + h / 2 * v, v + h / 2 * a1)
        a3 = slope(q + h / 2 * v + h * h / 4 * a1, v + h / 2 * a2)
        a4 = slope(q + h * v + h * h / 2 * a2, v + h * a3)
        q, v = q + h * v + h * h / 6 * (a1 + a2 + a3), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
    return np.degrees(q), model.frame_pose(q, "tip").translation[:2]


@pytest.mark.parametrize("method", ["augmented", "reduced"])
@pytest.mark.parametrize(
    ("actuators", "efforts", "final"),
    [
        (None, (-12.771, -5.752, 1.169), (80.731, -12.507, -136.090)),
        (["joint1", "joint2"], (0.0, -7.563, 1.557), (87.136, -23.201, -129.133)),
    ],
)
def test_the_three_link_arm_of_ider(method, actuators, efforts, final):
    """Values of an independent computation with the assumptions that the paper leaves open (centres, no gravity)."""
    found = three_links().control_forces(
        START, SPEEDS, motions={"path": [0.0, 0.0]}, actuators=actuators, method=method
    )
    # the initial speeds are given to four digits only (v_A = -1.0001 m/s): relative 1e-4 here and below
    np.testing.assert_allclose(found.efforts, efforts, atol=1.5e-3)
    angles, tip = run(actuators, method, steps=100)
    np.testing.assert_allclose(angles, final, atol=6e-3)
    np.testing.assert_allclose(tip, [0.90883, 0.98928], atol=3e-4)


def test_directions_may_be_given_as_a_matrix():
    model = three_links()
    by_name = model.control_forces(
        START, SPEEDS, motions={"path": [1.0, 0.5]}, actuators=["joint1", "joint2"]
    )
    by_rows = model.control_forces(
        START, SPEEDS, motions={"path": [1.0, 0.5]}, actuators=[[0, 1, 0], [0, 0, 1]]
    )
    np.testing.assert_array_equal(by_name.efforts, by_rows.efforts)
    G, gamma = model.constraint_jacobian(START), model.constraint_bias(START, SPEEDS)
    np.testing.assert_allclose(G @ by_name.accelerations + gamma, [1.0, 0.5], rtol=1e-12)
    batch = model.control_forces(
        np.stack([START] * 2), SPEEDS, motions={"path": [[1.0, 0.5], [0, 0]]}, actuators=["joint1", "joint2"]
    )
    np.testing.assert_allclose(batch.forces[0], by_name.forces, rtol=1e-12)


def test_a_loop_keeps_its_reactions():
    """A four-bar driven at one joint so that another follows, with the reaction of the motion under these efforts."""
    model = four_bars(1)
    q, v = parallelogram(model, 0.4, 0.7)
    found = model.control_forces(q, v, motions={"foot1": 3.0}, actuators=["foot0"])
    k = model.v_slice("foot1").start
    np.testing.assert_allclose(found.accelerations[k], 3.0, rtol=1e-12)
    assert np.count_nonzero(found.efforts) == 1
    np.testing.assert_allclose(model.forward_dynamics(q, v, found.efforts), found.accelerations, rtol=1e-9)
    tree = tree_of(model)
    left = tree.inverse_dynamics(q, v, found.accelerations) - found.efforts
    G = model.constraint_jacobian(q)
    assert np.linalg.norm(left - G.T @ np.linalg.lstsq(G.T, left, rcond=1e-9)[0]) < 1e-9
    assert set(found.reactions) == {"window0"}


def test_one_number_per_state():
    """(N,) means the same as (N, 1), as in hybrid dynamics, and the motions may be the only batch."""
    model = four_bars(1)
    q, v = parallelogram(model, 0.4, 0.7)
    wanted = np.linspace(-1.0, 2.0, 5)
    given = {"actuators": ["foot0"]}
    each = [model.control_forces(q, v, motions={"foot1": x}, **given).efforts for x in wanted]
    for shape in ((5,), (5, 1)):
        motions = {"foot1": wanted.reshape(shape)}
        found = model.control_forces(np.tile(q, (5, 1)), v, motions=motions, **given)
        np.testing.assert_allclose(found.efforts, each, rtol=1e-12)
        np.testing.assert_allclose(
            model.control_forces(q, v, motions=motions, **given).efforts, each, rtol=1e-12
        )
    with pytest.raises(
        al.ArgumentError, match=r"^control_forces: the batch dimensions do not go together: q \(3,\),"
    ):
        model.control_forces(np.tile(q, (3, 1)), v, motions={"foot1": wanted}, **given)
    with pytest.raises(
        al.NumericalError, match=r"^control_forces: motions: 'foot1' has entries that are not finite"
    ):
        model.control_forces(q, v, motions={"foot1": np.nan}, **given)


def test_least_norm_of_redundant_actuators():
    """Two motions by three motors: the motion is the wanted one, and no smaller forces bring it about."""
    model = three_links()
    given = {"motions": {"path": [1.0, 0.5]}, "actuators": ["joint0", "joint1", "joint2"]}
    found = model.control_forces(START, SPEEDS, method="least norm", **given)
    G, gamma = model.constraint_jacobian(START), model.constraint_bias(START, SPEEDS)
    np.testing.assert_allclose(G @ found.accelerations + gamma, [1.0, 0.5], rtol=1e-10)
    tree = tree_of(model)
    np.testing.assert_allclose(
        tree.inverse_dynamics(START, SPEEDS, found.accelerations), found.efforts, atol=1e-10
    )
    # other forces with the same effect differ by what moves the path not at all: orthogonal to the smallest
    T = G @ tree.inverse_mass_matrix(START)
    idle = np.linalg.svd(T)[2][2]
    assert abs(idle @ found.forces) < 1e-10 * np.linalg.norm(found.forces)
    # as many actuators as motions: the same as the other methods
    square = {**given, "actuators": ["joint1", "joint2"]}
    forces = [
        model.control_forces(START, SPEEDS, method=m, **square).forces for m in ("augmented", "least norm")
    ]
    np.testing.assert_allclose(*forces, rtol=1e-9)
    # a loop between: the driven joints of a four-bar share the effort
    bars = four_bars(1)
    q, v = parallelogram(bars, 0.4, 0.7)
    shared = bars.control_forces(
        q, v, motions={"foot1": 3.0}, actuators=["foot0", "foot1"], method="least norm"
    )
    one = bars.control_forces(q, v, motions={"foot1": 3.0}, actuators=["foot0"])
    np.testing.assert_allclose(shared.accelerations, one.accelerations, rtol=1e-9)
    np.testing.assert_allclose(bars.forward_dynamics(q, v, shared.efforts), shared.accelerations, rtol=1e-9)
    assert np.linalg.norm(shared.forces) < 0.8 * np.linalg.norm(one.forces)
    with pytest.raises(
        al.ArgumentError, match=r"3 actuators .* for 2 prescribed motions; as many are needed, or method="
    ):
        model.control_forces(START, SPEEDS, **given)


def test_what_cannot_be_done():
    model = three_links()
    with pytest.raises(
        al.NumericalError,
        match=r"^control_forces: not feasible: the prescribed motions and the constraints depend",
    ):
        model.control_forces(
            [0.0, 0.0, 0.0], SPEEDS, motions={"path": [0.0, 0.0]}, actuators=["joint1", "joint2"]
        )
    with pytest.raises(
        al.NumericalError, match=r"^control_forces: not feasible: the actuators and the reactions depend"
    ):
        model.control_forces(START, SPEEDS, motions={"path": [0.0, 0.0]}, actuators=["joint1", "joint1"])
    with pytest.raises(
        al.ArgumentError,
        match=r"^control_forces: 1 actuators \(joint1\) for 2 prescribed motions; as many are",
    ):
        model.control_forces(START, SPEEDS, motions={"path": [0.0, 0.0]}, actuators=["joint1"])
    with pytest.raises(al.ArgumentError, match=r"^control_forces: no method 'magic'; "):
        model.control_forces(START, SPEEDS, motions={"path": [0.0, 0.0]}, method="magic")
    with pytest.raises(
        al.ArgumentError, match=r"^control_forces: motions are \{\}, expected accelerations by constraint"
    ):
        model.control_forces(START, SPEEDS, motions={})
    with pytest.raises(
        al.ArgumentError, match=r"^control_forces: actuators has shape \(3,\), expected names or directions"
    ):
        model.control_forces(START, SPEEDS, motions={"path": [0.0, 0.0]}, actuators=[0.0, 1.0, 0.0])
    # two carts that do not touch: the motor of one cannot move the other
    builder = al.ModelBuilder("carts", gravity=(0, 0, 0))
    for name in "ab":
        builder.body(name, al.Inertia.point(1.0, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)))
    carts = builder.build()
    with pytest.raises(
        al.NumericalError,
        match=r"^control_forces: not feasible: the actuators \(b_joint\) cannot bring about the",
    ):
        carts.control_forces([0, 0], [0, 0], motions={"a_joint": 1.0}, actuators=["b_joint"])
    with pytest.raises(
        al.NumericalError, match=r"cannot bring about the .* \(accelerations of 1 are missing\); choose"
    ):
        carts.control_forces(
            [0, 0], [0, 0], motions={"a_joint": 1.0}, actuators=["b_joint"], method="least norm"
        )
