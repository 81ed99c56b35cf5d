"""Against MuJoCo."""

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.programs import PROGRAMS
from alembert.verify.random_models import states


@case(
    source="""MuJoCo (Todorov, Erez, Tassa 2012): mj_forward, mj_inverse, mj_fullM on random trees of its joint
    types, without contacts""",
    kind="independent program",
    tags=("tree", "differential", "random"),
    parameters={"count": 300},
    needs=("mujoco",),
)
def mujoco_random_trees(count: int) -> Items:
    """Forward and inverse dynamics, mass matrix and energies on random trees, fixed and floating."""
    from alembert.verify.cases.pinocchio_random_trees import _against

    yield from _against("mujoco", ("revolute", "prismatic", "spherical", "fixed"), count)


@case(
    source="MuJoCo (Todorov, Erez, Tassa 2012): mj_forward on the humanoid of alembert.library",
    kind="independent program",
    tags=("tree", "differential"),
    parameters={"count": 200},
    needs=("mujoco",),
)
def mujoco_humanoid(count: int) -> Items:
    """Accelerations of a floating humanoid."""
    import dataclasses

    model = library.humanoid()
    plain = [dataclasses.replace(j, friction=None, spring=None, rotors=(), armature=()) for j in model.joints]
    model = model.replace(joints=tuple(plain))
    other = PROGRAMS["mujoco"].load(model)
    q, v, tau = states(model, count)
    theirs = np.array([other.forward_dynamics(*s) for s in zip(q, v, tau, strict=True)])
    ours = model.forward_dynamics(q, v, tau)
    error = np.max(np.abs(ours - theirs).max(axis=1) / np.abs(theirs).max(axis=1))
    yield Check("relative difference", error, 0.0, 1e-10, "5e5 eps: condition numbers up to 1e5")
