"""The shipped models: sizes, data, frames; the random trees."""

import itertools

import numpy as np
import pytest

from alembert import library
from alembert.expression import Expression
from alembert.joints import REGISTRY
from alembert.library.random_tree import FACTORIES
from alembert.model import WORLD, Placement
from alembert.spatial import Pose
from refusals import refusal

SIZES = {  # bodies, nq, nv, actuators
    "pendulum": (1, 1, 1, 1),
    "two_link": (2, 2, 2, 2),
    "acrobot": (2, 2, 2, 1),
    "branched_acrobot": (3, 3, 3, 2),
    "cart_pole": (2, 2, 2, 1),
    "arm7": (7, 7, 7, 7),
    "humanoid": (32, 38, 37, 31),
    "satellite": (4, 10, 9, 3),
    "pitcher": (3, 6, 5, 5),
    "chain": (10, 10, 10, 10),
    "truss_arm": (35, 65, 60, 0),
}


def pose(model, frame, q):
    """Pose of a frame in the world, by walking down the tree."""
    frame = model.frame(frame)
    X = Pose.identity()
    for name in model.path(WORLD, frame.body)[1:]:
        joint = model.joints[model.body_index(name)]
        type = joint.type.with_constants([model.value(number) for number in joint.type.constants()])
        here = q[model.q_slice(joint.name)]
        X = X @ joint.placement.pose(model.parameter_values) @ type.placement(here)
    return X @ frame.placement.pose(model.parameter_values)


def test_names():
    assert library.names() == (*SIZES, "random_tree")
    assert library.make("acrobot") == library.acrobot()
    assert library.make("chain", n=3) == library.chain(3)
    assert refusal(library.make, "acrobat") == ("library.make: no model 'acrobat'; did you mean 'acrobot'?")


@pytest.mark.parametrize("name", library.names())
def test_models_are_documented_and_reproducible(name):
    assert getattr(library, name).__doc__
    assert library.make(name) == library.make(name)
    model = library.make(name)
    assert name in model.name
    q = model.random_configuration(0)
    assert np.all((model.lower_limits <= q) & (q <= model.upper_limits))
    for frame in model.frames:
        assert np.isfinite(pose(model, frame.name, q).matrix()).all()


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    model = library.make(name)
    assert (len(model.bodies), model.nq, model.nv, len(model.actuators)) == SIZES[name]
    assert all(body.visuals for body in model.bodies)
    for actuator in model.actuators:
        limit = model.effort_limits[model.v_slice(actuator.joint)][actuator.dof]
        if np.isfinite(limit):
            assert actuator.limits == (-limit, limit)


def test_pendulum():
    model = library.pendulum(mass=2.0, length=0.5, damping=0.1)
    assert model.mass == 2.0
    np.testing.assert_allclose(pose(model, "tip", np.array([0.0])).translation, [0, 0, -0.5])
    swung = pose(model, "tip", np.array([np.pi / 2])).translation
    np.testing.assert_allclose(swung, [0.5, 0, 0], atol=1e-15)
    assert model.joints[0].friction.viscous == (0.1,)
    assert library.pendulum().joints[0].friction is None


@pytest.mark.parametrize("make", [library.two_link, library.acrobot])
def test_two_rods_hang_and_stand(make):
    model = make(masses=(1.0, 2.0), lengths=(0.5, 0.7))
    for q, height in (((-np.pi / 2, 0), -1.2), ((np.pi / 2, 0), 1.2), ((-np.pi / 2, np.pi), 0.2)):
        tip = pose(model, "tip", np.array(q)).translation
        np.testing.assert_allclose(tip, [0, 0, height], atol=1e-15)
    rod = model.body("lower").inertia
    assert rod.com == (0.35, 0.0, 0.0)
    assert rod.tensor[2] == pytest.approx(2.0 * 0.7**2 / 12)


def test_acrobot_has_no_motor_at_its_base():
    assert [actuator.joint for actuator in library.acrobot().actuators] == ["elbow"]


def test_branched_acrobot():
    model = library.branched_acrobot()
    assert model.branches == (("trunk",), ("left_leg",), ("right_leg",))
    assert {actuator.joint for actuator in model.actuators} == {"left_hip", "right_hip"}
    feet = [
        pose(model, f"{side}_foot", np.array([np.pi / 2, 0.3, -0.3])).translation
        for side in ("left", "right")
    ]
    np.testing.assert_allclose(feet[0] * [-1, 1, 1], feet[1], atol=1e-15)


def test_cart_pole():
    model = library.cart_pole(pole_length=0.6)
    np.testing.assert_allclose(
        pose(model, "tip", np.array([0.2, np.pi])).translation, [0.2, 0, 0.6], atol=1e-15
    )


def test_arm7():
    model = library.arm7()
    axes = []
    X = Pose.identity()
    for joint in model.joints:
        X = X @ joint.placement.pose()
        axes.append(X.rotation @ joint.type.axis)
    assert all(abs(a @ b) < 1e-15 for a, b in itertools.pairwise(axes))  # at right angles
    assert model.lower_limits[3] < model.upper_limits[3] < 0
    assert model.joints[0].armature == (pytest.approx(0.4),)
    geared = library.arm7(rotors=True, friction=False)
    assert all(not joint.armature and joint.friction is None for joint in geared.joints)
    rotor = geared.joints[0].rotors[0]
    assert rotor.ratio**2 * rotor.inertia == pytest.approx(model.joints[0].armature[0])
    reach = [
        np.linalg.norm(pose(model, "flange", model.random_configuration(seed)).translation - [0, 0, 0.34])
        for seed in range(200)
    ]
    assert 0.7 < max(reach) < 0.95


def test_humanoid_is_symmetrical():
    model = library.humanoid(height=1.8, mass=80.0)
    assert model.mass == pytest.approx(80.0, rel=1e-12)
    q = model.neutral()
    rng = np.random.default_rng(0)
    for joint in model.joints:
        if joint.name.startswith("left_"):
            angle = rng.uniform(joint.limits.lower, joint.limits.upper)
            q[model.q_slice(joint.name)] = q[model.q_slice(joint.name.replace("left", "right"))] = angle
    mirror = np.diag([1.0, -1.0, 1.0])
    for end in ("sole", "hand_tip"):
        left, right = (pose(model, f"{side}_{end}", q) for side in ("left", "right"))
        np.testing.assert_allclose(mirror @ left.translation, right.translation, atol=1e-14)
        np.testing.assert_allclose(mirror @ left.rotation @ mirror, right.rotation, atol=1e-14)
    for body in model.bodies:
        if body.name.startswith("left_"):
            other = model.body(body.name.replace("left", "right")).inertia
            np.testing.assert_allclose(mirror @ body.inertia.com, other.com, atol=1e-15)
            np.testing.assert_allclose(mirror @ body.inertia.matrix() @ mirror, other.matrix(), atol=1e-15)


def test_humanoid_stands_upright():
    model = library.humanoid(height=1.8)
    q = model.neutral()
    height = pose(model, "head_top", q).translation[2] - pose(model, "left_sole", q).translation[2]
    assert height == pytest.approx(1.8, rel=1e-12)


def test_satellite():
    model = library.satellite()
    assert model.gravity == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal([joint.type.axis for joint in model.joints[1:]], np.eye(3))
    assert len(library.satellite(rotors=2).actuators) == 2
    assert refusal(library.satellite, rotors=4) == "satellite: rotors is 4, expected 1, 2 or 3"


def test_pitcher():
    model = library.pitcher()
    assert [joint.type.kind for joint in model.joints] == ["revolute", "spherical", "revolute"]
    q = model.neutral()
    np.testing.assert_allclose(pose(model, "hand", q).translation, [0.2, 0, -0.67], atol=1e-15)
    q[-1] = np.pi / 2
    np.testing.assert_allclose(pose(model, "hand", q).translation, [0.2, 0.36, -0.31], atol=1e-15)


def test_chain():
    model = library.chain(5, length=0.2, mass=0.5)
    assert model.mass == 2.5
    assert [joint.type.axis for joint in model.joints[:3]] == [(0, 0, 1), (0, -1, 0), (0, 0, 1)]
    np.testing.assert_allclose(pose(model, "tip", np.zeros(5)).translation, [1.0, 0, 0])
    planar = library.chain(3, axes=[(0, 1, 0)])
    assert {joint.type.axis for joint in planar.joints} == {(0.0, 1.0, 0.0)}
    assert refusal(library.chain, 0).startswith("chain: n is 0 and axes ")


# --- random trees -------------------------------------------------------------------------------------------


def test_every_kind_of_the_registry_has_an_example():
    assert set(FACTORIES) == set(REGISTRY)
    for kind in REGISTRY:
        assert library.example_joint(kind, 0).kind == kind
        assert library.example_joint(kind, 0) == library.example_joint(kind, 0)
    assert refusal(library.example_joint, "revolut") == (
        "example_joint: no example of the joint type 'revolut'; did you mean 'revolute'?"
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_cover_the_registry(seed):
    model = library.random_tree(seed, bodies=len(REGISTRY))
    assert {joint.type.kind for joint in model.joints} == set(REGISTRY)
    assert len(model.bodies) == len(model.frames) == len(REGISTRY)


def test_random_trees_are_reproducible():
    options = {"bodies": 9, "attachments": True, "parameters": True, "floating": True}
    assert library.random_tree(4, **options) == library.random_tree(4, **options)
    assert library.random_tree(4, **options) != library.random_tree(5, **options)


def test_random_tree_options():
    chain = library.random_tree(1, bodies=20, branching=0.0, kinds=["revolute", "prismatic"])
    assert chain.parents == tuple(range(-1, 19))
    assert [joint.type.kind for joint in chain.joints].count("revolute") == 10
    bushy = library.random_tree(1, bodies=20, branching=1.0, kinds=["revolute"])
    assert len(bushy.branches) > 5
    assert library.random_tree(2, floating=True).joints[0].type.kind == "free"
    plain = library.random_tree(3, bodies=24)
    assert plain.parameters == ()
    assert all(not (j.spring or j.friction or j.armature or j.rotors) for j in plain.joints)
    assert refusal(library.random_tree, bodies=0).startswith("random_tree: 0 bodies of the kinds (")
    assert refusal(library.random_tree, kinds=[]) == (
        "random_tree: 12 bodies of the kinds (), expected at least one of each"
    )


def test_random_trees_have_all_attachments_and_parameters():
    model = library.random_tree(0, bodies=40, attachments=True, parameters=True)
    for attachment in ("spring", "friction", "armature", "rotors"):
        assert any(getattr(joint, attachment) for joint in model.joints)
    assert any(joint.limits.lower for joint in model.joints)
    used = {"".join(letter for letter in name if not letter.isdigit()) for name in model.parameter_values}
    assert used >= {"mass", "com", "place_x", "place_roll", "tilt", "stiffness", "viscous", "armature", "g"}
    assert isinstance(model.gravity[2], Expression)
    assert any(joint.placement.is_identity for joint in model.joints)
    heavier = {name: 2 * value for name, value in model.parameter_values.items() if name.startswith("mass")}
    assert model.replace(parameters=heavier).mass > model.mass


@pytest.mark.parametrize("seed", range(30))
def test_random_trees_are_physical(seed):
    model = library.random_tree(seed, attachments=True, parameters=bool(seed % 2), floating=bool(seed % 3))
    q = model.random_configuration(seed)
    for joint in model.joints:
        assert joint.type.problem(q[model.q_slice(joint.name)]) is None
    for body in model.bodies:
        assert np.linalg.eigvalsh(body.inertia.matrix(model.parameter_values))[0] > 0


def test_random_trees_can_be_taken_apart():
    model = library.random_tree(7, bodies=14, attachments=True, parameters=True)
    merged = model.merge_fixed()
    q = model.random_configuration(1)
    for frame in model.frames:
        X = pose(model, frame.name, q)
        np.testing.assert_allclose(pose(merged, frame.name, q).matrix(), X.matrix(), atol=1e-13)
    mount = model.frames[-1].name
    both = model.attach(library.chain(2), to=mount, placement=Placement((1, 0, 0)), prefix="arm_")
    assert both.nv == model.nv + 2
    q_both = both.neutral()
    for joint in model.joints:
        q_both[both.q_slice(joint.name)] = q[model.q_slice(joint.name)]
    tip = pose(both, "arm_tip", q_both).translation
    np.testing.assert_allclose(tip, pose(model, mount, q).point(np.array([3.0, 0, 0])), atol=1e-13)
    assert both.extract("arm_link1").nv == 2
