"""MJCF files of others, as the package gymnasium ships them: masses, joint order and body frames against MuJoCo's."""

import importlib.util
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

from alembert.errors import AlembertWarning, UnsupportedError
from alembert.model.io import mjcf, mjcf_source
from alembert.model.io.convert import to_mujoco

spec = importlib.util.find_spec("gymnasium")
FILES = sorted((Path(spec.origin).parent / "envs" / "mujoco" / "assets").glob("*.xml")) if spec else []
DRAG = "swimmer"  # moves by the drag of a fluid, which Alembert does not have


@pytest.mark.skipif(not FILES, reason="gymnasium is not installed")
def test_the_files_are_there():
    assert {"ant", "humanoid", "half_cheetah", "walker2d"} <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", [p for p in FILES if p.stem != DRAG], ids=lambda path: path.stem)
def test_masses_order_and_frames(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)  # contacts and the like
        model = mjcf.load_mjcf(path)
    peer = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(peer)
    assert (model.nq, model.nv) == (peer.nq, peer.nv)
    np.testing.assert_allclose(model.mass, peer.body_mass.sum(), rtol=1e-12)
    names = [joint.name for joint in model.joints if joint.type.nv]
    assert names == list(mjcf_source.joint_names(peer))
    rng = np.random.default_rng(0)
    for _ in range(5):
        q = model.random_configuration(rng)
        data.qpos[:] = to_mujoco(model, q, mj_model=peer)
        mujoco.mj_kinematics(peer, data)
        for body in range(1, peer.nbody):
            X = model.frame_pose(q, peer.body(body).name or f"body{body}")
            np.testing.assert_allclose(X.translation, data.xpos[body], atol=1e-12)
            np.testing.assert_allclose(X.rotation, data.xmat[body].reshape(3, 3), atol=1e-12)


@pytest.mark.parametrize("path", [p for p in FILES if p.stem == DRAG], ids=lambda path: path.stem)
def test_what_would_move_otherwise_is_refused(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlembertWarning)
        with pytest.raises(UnsupportedError, match=r"swimmer.xml.*drag by a fluid .* is not supported"):
            mjcf.load_mjcf(path)
