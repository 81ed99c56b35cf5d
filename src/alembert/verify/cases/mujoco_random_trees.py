"""Against MuJoCo."""

from alembert.verify.case import Items, case


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
