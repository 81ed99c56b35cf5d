"""Coordinates, speeds and accelerations of other programs, and the states that their files hold."""

from alembert.model.io.convert import accelerations_from_mujoco as accelerations_from_mujoco
from alembert.model.io.convert import accelerations_from_pinocchio as accelerations_from_pinocchio
from alembert.model.io.convert import accelerations_to_mujoco as accelerations_to_mujoco
from alembert.model.io.convert import accelerations_to_pinocchio as accelerations_to_pinocchio
from alembert.model.io.convert import from_mujoco as from_mujoco
from alembert.model.io.convert import from_pinocchio as from_pinocchio
from alembert.model.io.convert import to_mujoco as to_mujoco
from alembert.model.io.convert import to_pinocchio as to_pinocchio
from alembert.model.io.mjcf import keyframes as keyframes
