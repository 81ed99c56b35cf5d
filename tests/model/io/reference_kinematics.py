"""Plain NumPy kinematics of a model, independent of the sweeps: poses and body velocities of all frames."""

import numpy as np

from alembert import Model
from alembert.model import WORLD
from alembert.spatial import Pose
from alembert.spatial.se3 import Ad


def poses(model: Model, q: np.ndarray) -> dict[str, Pose]:
    """X_WF of the world, every body and every frame."""
    X = {WORLD: Pose(np.eye(3), np.zeros(3))}
    for joint in model.joints:
        X_PF = joint.placement.pose(model.parameter_values)
        X[joint.child] = X[joint.parent] @ X_PF @ joint.type.placement(q[model.q_slice(joint.name)])
    for frame in model.frames:
        X[frame.name] = X[frame.body] @ frame.placement.pose(model.parameter_values)
    return X


def velocities(model: Model, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
    """V_WB_B of every body, angular first."""
    V = {WORLD: np.zeros(6)}
    for joint in model.joints:
        q_joint, v_joint = q[model.q_slice(joint.name)], v[model.v_slice(joint.name)]
        X = joint.placement.pose(model.parameter_values) @ joint.type.placement(q_joint)
        V[joint.child] = Ad(X.inverse()) @ V[joint.parent] + joint.type.subspace(q_joint) @ v_joint
    return V
