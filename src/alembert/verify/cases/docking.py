"""Two free bodies dock."""

import numpy as np

from alembert.joints import Fixed, Free
from alembert.model import Frame, Inertia, LoopJoint, ModelBuilder, Placement
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    ROUNDING_REASON,
)


@case(
    source="""Plastic impact of two free bodies: momentum stays, kinetic energy falls by 1/2 d^T (J M^-1 J^T)^-1 d
    of the relative velocity d (Pfeiffer, Glocker 1996)""",
    kind="closed form",
    tags=("loops", "random"),
    parameters={"seed": 2},
)
def docking(seed: int) -> Items:
    """Momentum and energy when two free bodies are joined rigidly in flight."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder("docking", gravity=(0, 0, 0))
    for name, mass in (("craft", 5.0), ("target", 2.0)):
        builder.body(
            name,
            Inertia.box(mass, tuple(rng.uniform(0.3, 1.0, 3)), (0.1, 0, 0.05)),
            joint=Free(),
            joint_name=name,
        )
    tree_ = builder.build()
    q, v = tree_.random_configuration(rng), rng.normal(size=12)
    X = tree_.frame_pose(q, "target").inverse() @ tree_.frame_pose(q, "craft")
    model = tree_.replace(
        frames=(*tree_.frames, Frame("port", "target", Placement.from_pose(X))),
        loops=(LoopJoint("dock", Fixed(), "port", "craft"),),
    )
    after = np.asarray(model.impulse(q, v).velocities)
    M, G = tree_.mass_matrix(q), model.constraint_jacobian(q)
    h = [tree_.momentum(q, x, about="world") for x in (v, after)]
    scale = float(np.max(np.abs(h[0])))
    yield Check(
        "change of momentum / momentum", np.max(np.abs(h[1] - h[0])) / scale, 0.0, 1e-13, ROUNDING_REASON
    )
    d = G @ v
    lost = d @ np.linalg.solve(G @ np.linalg.solve(M, G.T), d) / 2
    found = (v @ M @ v - after @ M @ after) / 2
    yield Check("lost / expected", found / lost, 1.0, 1e-11, "rounding times the condition of 6 x 6")
    yield Check("relative velocity", np.max(np.abs(G @ after)), 0.0, 1e-13, ROUNDING_REASON)
