"""Real robots against Pinocchio: joint order, masses, inertias, and the pose and velocity of every link.

All of them load as they are, with one warning at most, except `ur3.urdf`, which has no links. `alex_psyonic_hands.urdf`
is not comparable: Pinocchio refuses it, as joints in it mimic others that do not exist.
"""

import contextlib
import importlib.util
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from reference_kinematics import poses, velocities

from alembert import AlembertWarning, FileError, UnsupportedError, load
from alembert.model.io.convert import from_pinocchio, to_pinocchio
from alembert.model.io.urdf import load_urdf

pin = pytest.importorskip("pinocchio")

TOLERANCE = 1e-12  # of poses of order 1 m, chains of up to 20 links; some 5e-15 is seen


def _robots() -> list[Path]:
    spec = importlib.util.find_spec("pinocchio")
    if spec is None or spec.origin is None:
        return []
    root = next(parent for parent in Path(spec.origin).parents if parent.name == "cmeel.prefix")
    return sorted((root / "share" / "example-robot-data" / "robots").rglob("*.urdf"))


EMPTY, NOT_COMPARABLE = "ur3.urdf", "alex_psyonic_hands.urdf"
ROBOTS = [pytest.param(path, id=f"{path.parent.parent.name}-{path.stem}") for path in _robots()]
GOOD = [robot for robot in ROBOTS if robot.values[0].name not in (EMPTY, NOT_COMPARABLE)]


def _load(path: Path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)
        # pr2.urdf has <turnGravityOff> for Gazebo on many of its links; Pinocchio leaves that out as well
        return load_urdf(path, **options)


@pytest.mark.skipif(not ROBOTS, reason="example-robot-data is not installed")
def test_there_are_robots():
    assert len(GOOD) > 60


@pytest.mark.parametrize("path", GOOD)
def test_agrees_with_pinocchio(path):
    rng = np.random.default_rng(len(path.name))
    root = "world"
    for floating in (False, True):
        if floating and root == "world":
            assert _load(path, floating=True).nv == _load(path).nv + 6  # Pinocchio keeps the name
            continue
        model = _load(path, floating=floating)
        root = model.joints[0].child if model.joints[0].name == "root_joint" else "world"
        peer = pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if floating else []))
        _compare(model, peer, rng)


def _compare(model, peer, rng):
    moving = [joint for joint in model.joints if joint.type.nv]
    assert [joint.name for joint in moving] == list(peer.names)[1:]
    np.testing.assert_allclose(model.mass, sum(I.mass for I in peer.inertias), rtol=1e-14)
    for joint, inertia in zip(moving, list(peer.inertias)[1:], strict=True):
        ours = model.total_inertia_of(joint.child)
        np.testing.assert_allclose(ours.mass, inertia.mass, rtol=1e-14)
        if inertia.mass > 0:
            np.testing.assert_allclose(ours.com, inertia.lever, atol=TOLERANCE)
            np.testing.assert_allclose(ours.matrix(), inertia.inertia, atol=TOLERANCE)

    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    q_pin, v_pin = to_pinocchio(model, q, v, pin_model=peer)
    back_q, back_v = from_pinocchio(model, q_pin, v_pin, pin_model=peer)
    np.testing.assert_allclose(back_q, q, atol=1e-15)
    np.testing.assert_allclose(back_v, v, atol=1e-15)
    data = peer.createData()
    pin.forwardKinematics(peer, data, q_pin, v_pin)
    pin.updateFramePlacements(peer, data)
    X, V = poses(model, q), velocities(model, q, v)
    links = [k for k, frame in enumerate(peer.frames) if frame.type == pin.FrameType.BODY]
    assert {peer.frames[k].name for k in links} - {"universe", "world"} == {b.name for b in model.bodies}
    for k in links:
        name = peer.frames[k].name
        if name == "universe":
            continue
        np.testing.assert_allclose(X[name].rotation, data.oMf[k].rotation, atol=TOLERANCE)
        np.testing.assert_allclose(X[name].translation, data.oMf[k].translation, atol=TOLERANCE)
        peers = pin.getFrameVelocity(peer, data, k)
        np.testing.assert_allclose(V[name], np.r_[peers.angular, peers.linear], atol=10 * TOLERANCE)


@pytest.mark.parametrize("path", ROBOTS)
def test_loads_in_one_obvious_step(path):
    """With one warning at most, which names the file; strictly, every refusal names the line."""
    if path.name == EMPTY:
        with pytest.raises(FileError, match=f"{path}:6: the robot has no links"):
            load(path)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = load(path)
    assert model.nv > 0 or not [joint for joint in model.joints if joint.type.nv]
    assert [str(warning.message).startswith(f"{path}: ") for warning in caught] in ([], [True])
    changed = any("strict=True" in str(warning.message) for warning in caught)
    refused = pytest.raises((FileError, UnsupportedError), match=re.escape(str(path)) + r":\d+: ")
    with warnings.catch_warnings(), refused if changed else contextlib.nullcontext():
        warnings.simplefilter("ignore", AlembertWarning)
        assert load(path, strict=True) == model


def test_limits_agree_with_pinocchio():
    path = next(path for path in _robots() if path.name == "talos_reduced.urdf")
    model, peer = _load(path), pin.buildModelFromUrdf(str(path))
    np.testing.assert_array_equal(model.lower_limits, peer.lowerPositionLimit)
    np.testing.assert_array_equal(model.upper_limits, peer.upperPositionLimit)
    np.testing.assert_array_equal(model.velocity_limits, peer.upperVelocityLimit)
    np.testing.assert_array_equal(model.effort_limits, peer.upperEffortLimit)


def test_meshes_of_a_package_are_found_above_the_file():
    path = next(path for path in _robots() if path.name == "panda.urdf")
    shapes = [visual.shape for body in _load(path).bodies for visual in body.visuals]
    assert shapes
    assert all(Path(shape.path).is_file() for shape in shapes)
