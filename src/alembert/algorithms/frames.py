"""Frames of a model from the poses, velocities and Jacobian columns of its nodes, over any batch.

V_B is a motion of body B in its own axes; a frame C sits on B at the constant X_BC. References for 6-vectors:

    local                  frame axes, about the frame's origin
    world                  world axes, about the world's origin
    local_world_aligned    world axes, about the frame's origin
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from alembert.errors import ArgumentError
from alembert.spatial import Pose

QUIET = np.errstate(over="ignore", invalid="ignore")
"""states that are not finite have been told of by the kernels, numbers that overflow are by those who ask"""
Reference = Literal["local", "world", "local_world_aligned"]


def check_reference(function: str, reference: str) -> None:
    if not isinstance(reference, str) or reference not in get_args(Reference):
        raise ArgumentError(
            f"{function}: reference is {reference!r}, expected one of {', '.join(get_args(Reference))}"
        )


def check_about(function: str, about: str) -> None:
    if not isinstance(about, str) or about not in ("center_of_mass", "world"):
        raise ArgumentError(f"{function}: about is {about!r}, expected 'center_of_mass' or 'world'")


def pose(X_W: np.ndarray, node: int, offset: Pose) -> Pose:
    """X_WC from the node poses (..., n, 12), rotation by rows first."""
    if node < 0:
        shape = X_W.shape[:-2]
        return Pose(
            np.broadcast_to(offset.rotation, (*shape, 3, 3)).copy(),
            np.broadcast_to(offset.translation, (*shape, 3)).copy(),
        )
    R = X_W[..., node, :9].reshape(*X_W.shape[:-2], 3, 3)
    p = X_W[..., node, 9:]
    return Pose(R @ offset.rotation, p + _apply(R, offset.translation))


@QUIET
def to_frame(offset: Pose, motion: np.ndarray) -> np.ndarray:
    """Ad(X_BC)^-1 on motions (..., 6) of the body: the frame's motion in its own axes."""
    R = np.swapaxes(offset.rotation, -1, -2)
    angular, linear = motion[..., :3], motion[..., 3:]
    turned = [_apply(R, angular), _apply(R, linear - np.cross(offset.translation, angular))]
    return np.concatenate(turned, axis=-1)


def carried(offset: Pose, F: np.ndarray) -> np.ndarray:
    """Ad(X_BC)^-T on wrenches (..., 6) at the frame: those on the body."""
    moment, force = _apply(offset.rotation, F[..., :3]), _apply(offset.rotation, F[..., 3:])
    return np.concatenate([moment + np.cross(offset.translation, force), force], axis=-1)


@QUIET
def about(p: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Wrenches (..., 6) about the origin, about the points p (..., 3)."""
    return np.concatenate([F[..., :3] - np.cross(p, F[..., 3:]), F[..., 3:]], axis=-1)


@QUIET
def refer(X_WC: Pose, motion: np.ndarray, reference: Reference) -> np.ndarray:
    """A frame's own motion (..., 6) in another reference."""
    if reference == "local":
        return motion
    R = X_WC.rotation
    angular = _apply(R, motion[..., :3])
    linear = _apply(R, motion[..., 3:])
    if reference == "world":
        linear = linear + np.cross(X_WC.translation, angular)
    return np.concatenate([angular, linear], axis=-1)


@QUIET
def jacobian(columns: np.ndarray, moves: np.ndarray, X_WC: Pose, reference: Reference) -> np.ndarray:
    """(..., 6, nv) from the joints' columns (..., nv, 6) in the world; `moves` says which of them move the frame."""
    J = np.where(moves[:, None], columns, 0.0)
    if reference != "world":
        # about the frame's origin: v_C = v_O + w x p
        p = X_WC.translation[..., None, :]
        J = np.concatenate([J[..., :3], J[..., 3:] + np.cross(J[..., :3], p)], axis=-1)
        if reference == "local":
            R = X_WC.rotation
            J = np.concatenate([J[..., :3] @ R, J[..., 3:] @ R], axis=-1)
    return np.swapaxes(J, -1, -2)


@QUIET
def acceleration_in(
    X_WC: Pose, velocity: np.ndarray, acceleration: np.ndarray, reference: Reference
) -> np.ndarray:
    """The time derivative of `refer(X, velocity, reference)`."""
    if reference == "local_world_aligned":
        turning = np.cross(velocity[..., :3], velocity[..., 3:])
        acceleration = np.concatenate([acceleration[..., :3], acceleration[..., 3:] + turning], axis=-1)
    return refer(X_WC, acceleration, reference)


def _apply(R: np.ndarray, x: np.ndarray) -> np.ndarray:
    return (R @ x[..., None])[..., 0]
