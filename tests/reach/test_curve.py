"""Reference curves: geometry by identities; arms in sections come to lie on them; what cannot be is named."""

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, NumericalError, UnsupportedError, library, reach
from alembert.errors import ModelError
from alembert.model import Box, Capsule, Cylinder, Placement, Sphere, Visual
from alembert.model.editing import between

BENT = reach.ReferenceCurve(
    [[0, 0, 0], [0, 0, 1.0], [0.2, 0.5, 2.0], [1.0, 0.5, 2.5], [1.5, 0, 3.0]], degree=3
)


def test_weights_are_a_partition_and_derivatives_agree():
    s, h = np.linspace(0.05, 0.95, 7), 1e-6
    np.testing.assert_allclose(BENT.weights(s).sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(BENT.point([0.0, 1.0]), BENT.vertices[[0, -1]], atol=1e-15)
    # differences: h^2 of third derivatives of order 100, and rounding over h
    slope = (BENT.point(s + h) - BENT.point(s - h)) / (2 * h)
    np.testing.assert_allclose(BENT.tangent(s), slope / np.linalg.norm(slope, axis=1)[:, None], atol=1e-8)
    bezier = reach.ReferenceCurve([[0, 0, 0], [1.0, 2.0, 0], [3.0, 0, 1.0]])
    np.testing.assert_allclose(
        bezier.point(0.3), 0.49 * bezier.vertices[0] + 0.42 * bezier.vertices[1] + 0.09 * bezier.vertices[2]
    )
    line = reach.ReferenceCurve.straight([0, 3.0, 4.0], vertices=4)
    assert line.length == pytest.approx(5.0)
    np.testing.assert_allclose(line.at_fractions([0.25, 1.0]), [0.25, 1.0], atol=1e-12)
    assert "4 vertices, degree 3" in repr(line)
    assert "(2,) curves of 4 vertices" in repr(reach.ReferenceCurve([line.vertices] * 2))


def test_nearest_points_are_at_right_angles():
    p = np.array([0.8, -0.4, 1.2])
    s, d = BENT.nearest(p)
    gap = p - BENT.point(s)
    assert d == pytest.approx(np.linalg.norm(gap))
    # s to 1e-7, where the square of the distance is flat to rounding
    assert abs(gap @ BENT.tangent(s)) < 1e-6
    assert d <= np.min(np.linalg.norm(BENT.point(np.linspace(0, 1, 200)) - p, axis=1)) + 1e-12


def test_frames_follow_the_tangent_and_turn_no_more_than_it():
    s = np.linspace(0, 1, 9)
    X = BENT.poses(s)
    np.testing.assert_allclose(X.rotation[..., 2], BENT.tangent(s), atol=1e-12)
    turned = BENT.poses(s, twist=0.6)
    relative = np.swapaxes(X.rotation, 1, 2) @ turned.rotation
    np.testing.assert_allclose(relative[:, 0, 0], np.cos(0.6 * s), atol=1e-12)
    flat = reach.ReferenceCurve([[0, 0, 0], [0, 0, 1.0], [1.0, 0, 2.0], [2.0, 0, 2.0]])
    np.testing.assert_allclose(flat.poses(s).rotation[:, :, 1], [[0, 1, 0]] * 9, atol=1e-12)


def test_a_curve_gets_there_past_obstacles():
    ball = Visual(Sphere(0.4), Placement((0.4, 0.0, 1.6)))
    rod = Visual(Capsule(0.1, 2.0), Placement((-0.3, 0.5, 1.0)))
    curve = reach.ReferenceCurve.straight([0, 0, 3.0], vertices=6)
    np.testing.assert_allclose(curve.clearance(ball), 0.0, atol=1e-4)
    np.testing.assert_allclose(curve.clearance(rod), np.hypot(0.3, 0.5) - 0.1, atol=1e-12)
    np.testing.assert_allclose(
        curve.clearance(Visual(Box((0.2, 4, 9)), Placement((1, 0, 0)))), 0.9, atol=1e-12
    )
    found = curve.reach(
        [1.0, 0.2, 2.4], direction=[2.0, 0, 0], avoid=[ball, rod], clearance=0.15, length=(2.5, 3.5)
    )
    np.testing.assert_allclose(found.point(1.0), [1.0, 0.2, 2.4], atol=1e-9)
    np.testing.assert_allclose(found.tangent(1.0), [1.0, 0, 0], atol=1e-9)
    np.testing.assert_allclose(found.vertices[:2], curve.vertices[:2], atol=0)
    # between 30 places 0.12 m apart a curve comes nearer to a ball of 0.4 m by 0.06^2 / 2 / 0.55
    assert found.clearance(ball) > 0.15 - 0.004
    assert found.clearance(rod) > 0.15 - 0.02
    assert 2.5 - 1e-6 < found.length < 3.5 + 1e-6  # the slack of side conditions
    with pytest.raises(NumericalError, match=r"place 1 of 2: out of reach: length by .* m; more vertices"):
        curve.reach([[0, 0, 3.0], [0, 0, 6.0]], length=(2.0, 4.0), samples=4)
    around = Visual(Sphere(2.0), Placement((0, 0, 3.0)))
    with pytest.raises(NumericalError, match=r"clearance of obstacle 1 \(Sphere\) by"):
        curve.reach([0, 0, 3.0], avoid=[around], samples=4)


@pytest.mark.parametrize("degree", [None, 3])
def test_bounds_on_the_length_are_on_the_curve_and_not_on_its_chords(degree):
    parabola = reach.ReferenceCurve([[0, 0, 0], [0.5, 0, 0], [1, 1, 0]])  # y = x^2
    assert parabola.length == pytest.approx(np.sqrt(5) / 2 + np.arcsinh(2.0) / 4, abs=1e-12)
    curve = reach.ReferenceCurve.straight((0, 0, 3.0), vertices=6, degree=degree)
    for samples in (4, 30):  # points that keep clear of obstacles: none here
        found = curve.reach([1.0, 0.2, 2.4], length=(3.2, 3.5), samples=samples)
        assert 3.2 - 1e-6 < found.length < 3.2 + 1e-4  # by chords it was 7e-4 more
        half = found.at_fractions([0.5])[0]
        s = np.linspace(0, half, 20_001)  # chords fall short by 1e-9 of their length
        chords = np.linalg.norm(np.diff(found.point(s), axis=0), axis=-1).sum()
        assert chords == pytest.approx(found.length / 2, rel=1e-5)  # a place is interpolated in 1/400


def test_sections_of_a_chain_lie_on_a_curve():
    """Positions, directions, whole poses; a link's frame is where it begins, so that its own joint does not move it."""
    chain = library.chain(12, length=0.4)
    curve = reach.ReferenceCurve([[0, 0, 0], [1.0, 0, 0], [2.0, 1.0, 0.3], [2.8, 1.0, 1.2]])
    frames = ["link5", "link9", "tip"]
    bent = np.full(12, 0.25)
    found = reach.track_curve(chain, curve, frames, start=bent)
    for k, frame in enumerate(frames):
        p = chain.frame_pose(found.q, frame).translation
        np.testing.assert_allclose(p, curve.point(found.places[k]), atol=1e-8)
    np.testing.assert_allclose(found.distance("link4", "link5"), 0.4, atol=1e-12)
    assert "along 1 curves" in repr(found)

    snake = library.chain(7, length=0.6)
    along = reach.ReferenceCurve([[0, 0, 0], [1.0, 0.3, 0], [2.0, 0.8, 0.5], [2.6, 1.6, 1.0]])
    aimed = reach.track_curve(snake, along, ["tip"], start=np.full(7, 0.2), match="direction", axis=(1, 0, 0))
    X = snake.frame_pose(aimed.q, "tip")
    np.testing.assert_allclose(X.translation, along.vertices[-1], atol=1e-8)
    np.testing.assert_allclose(X.rotation[:, 0], along.tangent(1.0), atol=1e-8)

    builder = al.ModelBuilder("cars")
    builder.body("car1", al.Inertia.point(1.0), joint=al.Free(), joint_name="a")
    builder.body("car2", al.Inertia.point(1.0), joint=al.Free(), joint_name="b", parent="car1")
    cars = builder.build()
    many = reach.ReferenceCurve([along.vertices, along.vertices * [1, 1, 1.1]])
    posed = reach.track_curve(cars, many, ["car1", "car2"], match="pose", twist=0.5)
    for k in range(2):
        one = reach.ReferenceCurve(many.vertices[k])
        X = one.poses(posed.places[k], base=np.eye(3), twist=0.5)
        np.testing.assert_allclose(cars.frame_pose(posed.q[k], "car2").rotation, X.rotation[1], atol=1e-8)


def test_bays_of_a_truss_are_sections():
    arm = library.truss_arm(2)
    bay = between(arm, "bay1.top", "bay2.top")
    assert (bay.nv, len(bay.loops)) == (12, 3)
    assert between(arm, "world", "bay1.top").nv == 12
    with pytest.raises(ModelError, match=r"'bay1.top' does not hang from 'bay2.top': there is no section"):
        between(arm, "bay2.top", "bay1.top")
    tied = arm.replace(loops=[*arm.loops, al.LoopJoint("stay", al.Distance(2.0), "world", "bay2.node1")])
    with pytest.raises(UnsupportedError, match="is tied to the world or to another section"):
        between(tied, "bay1.top", "bay2.top")
    chain = library.chain(4)
    geared = chain.replace(couplings=[al.Coupling("gear", "joint4", ["joint1"], [1.0])])
    with pytest.raises(
        UnsupportedError, match="'link1', between 'link2' and 'link4', is tied to the world or"
    ):
        reach.track_curve(geared, reach.ReferenceCurve.straight([3.0, 0, 0]), ["link2", "link4"])
    builder = al.ModelBuilder("boom")
    builder.body("boom", al.flexible.beam(length=2.0, rhoA=1.2, EI_z=1.4e2, bending_y=1), joint=al.Revolute())
    builder.body("tool", al.Inertia.point(1.0), joint=al.Revolute(), parent="boom", node="tip")
    with pytest.raises(UnsupportedError, match="is on a flexible body: sections begin at rigid ones"):
        between(builder.build(), "boom", "tool")
    with pytest.raises(ArgumentError, match=r"truss_arm: 2 bays with side 1.0, longeron 0.5"):
        library.truss_arm(2, longeron=0.5)


def test_messages():
    line = reach.ReferenceCurve.straight([0, 0, 3.0])
    many = reach.ReferenceCurve([line.vertices] * 2)
    arm = library.chain(3)
    for call, message in (
        (lambda: reach.ReferenceCurve([[0, 0, 0], [1, 1, 1]]), r"vertices have shape \(2, 3\), expected"),
        (lambda: reach.ReferenceCurve(line.vertices, degree=6), "degree is 6, expected 2 to 5"),
        (lambda: many.nearest([0, 0, 0]), "nearest is of one curve"),
        (lambda: line.reach(np.zeros((2, 2, 3))), "end and direction are"),
        (lambda: line.reach([0, 0, 1], direction=[0, 0, 0]), "direction has no length"),
        (lambda: line.reach([0, 0, 1], hold=5), "hold is 5, expected 0 to 4"),
        (lambda: line.reach([0, 0, 1], length=(2, 1)), r"length is \(2, 1\), expected a pair of bounds"),
        (lambda: line.reach([0, 0, 1], avoid=[3]), "avoid has 3, expected shapes in the world"),
        (lambda: reach.track_curve(arm, line, []), "frames is empty"),
        (
            lambda: reach.track_curve(arm, line, ["tip"], fractions=[2.0]),
            "expected 1 growing numbers up to 1",
        ),
        (lambda: reach.track_curve(arm, line, ["tip"], match="all"), "match"),
        (
            lambda: reach.track_curve(arm, reach.ReferenceCurve(line.vertices + 1), ["tip"]),
            "the curve starts 1.73 m away from the base",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    for call, message in (
        (lambda: line.point(1.5), "s goes from 1.5 to 1.5, expected 0 to 1"),
        (lambda: line.at_fractions([0.5, np.nan]), "fractions goes from nan to nan, expected 0 to 1"),
        (lambda: line.reach([0, 0, 1], samples=0), "samples is 0, expected 2 or more"),
        (lambda: line.straight([1, 0, 0], vertices=2), "vertices is 2, expected 3 or more"),
        (lambda: line.poses([0.5], base=np.eye(2)), r"base has shape \(2, 2\), expected a rotation"),
        (lambda: line.nearest([0.5, np.nan, 0]), "expected finite numbers"),
        (
            lambda: line.reach([0, 0, 1], clearance=np.nan),
            "clearance is nan, expected metres of zero or more",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    with pytest.raises(NumericalError, match="no direction where vertices coincide"):
        reach.ReferenceCurve([[0, 0, 0], [0, 0, 0], [1.0, 0, 0]]).tangent(0.0)
    with pytest.raises(UnsupportedError, match="avoid has a Cylinder"):
        line.reach([0, 0, 1], avoid=[Visual(Cylinder(1.0, 1.0))])
    with pytest.raises(NumericalError, match="turns back on the spot, or it starts against"):
        reach.ReferenceCurve.straight([0, 0, -3.0]).poses([1.0])
    far = reach.ReferenceCurve.straight([9.0, 0, 0])
    with pytest.raises(
        NumericalError, match=r"section 1 of 1, to 'tip': out of reach: position of tip by 6 m"
    ):
        reach.track_curve(arm, far, ["tip"])
    with pytest.raises(NumericalError, match=r"curve 0 of 1: section 1"):
        reach.track_curve(arm, reach.ReferenceCurve(far.vertices[None]), ["tip"])


def test_a_thin_obstacle_between_samples_is_seen():
    """A wire across a line, nearer to the line than places on it are to each other."""
    wire = Visual(Sphere(1e-3), placement=Placement((5.013, 0.0, 0.0)))
    straight = reach.ReferenceCurve.straight([10.0, 0, 0])
    assert straight.clearance(wire) == pytest.approx(-1e-3, abs=1e-6)  # 10 m / 200 / 100^3
    two = reach.ReferenceCurve(straight.vertices + np.array([[[0, 0, 0]], [[0, 0.5, 0]]]))
    np.testing.assert_allclose(two.clearance(wire), [-1e-3, 0.499], atol=1e-6)
