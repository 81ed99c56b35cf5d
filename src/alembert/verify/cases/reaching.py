"""Inverse kinematics whose answer is known: an arm with a redundant elbow, and a bay of a variable-geometry truss."""

import numpy as np

from alembert.joints import Revolute
from alembert.library import truss_arm
from alembert.model import Inertia, ModelBuilder
from alembert.reach import distance, reach
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import SCRIPT


@case(
    source=f"An arm with a ball at shoulder and wrist (links 0.36, 0.42, 0.4, 0.126 m): {SCRIPT}",
    kind="reference",
    tags=("tree",),
)
def elbow_circle() -> Items:
    """Where the hand of a redundant arm is, and the circle about the line from shoulder to wrist that its elbow stays on."""
    y, z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    axes = (z, y, z, (0.0, -1.0, 0.0), z, y, z)
    lengths = {1: 0.36, 3: 0.42, 5: 0.4}  # below the joints of shoulder, elbow and wrist
    builder = ModelBuilder("arm", gravity=(0, 0, 0))
    parent = "world"
    for k, axis in enumerate(axes):
        builder.body(
            f"link{k + 1}",
            Inertia.sphere(1.0, 0.05),
            joint=Revolute(axis),
            joint_name=f"q{k + 1}",
            parent=parent,
            placement=(0.0, 0.0, lengths.get(k, 0.0)),
        )
        parent = f"link{k + 1}"
    builder.frame("hand", parent, (0.0, 0.0, 0.126))
    model = builder.build()
    target = model.frame_pose(np.array([0.3, 0.6, -0.4, -1.2, 0.5, 0.8, -0.2]), "hand")
    published = (0.690204467943, 0.058247845803, 0.530584630682)
    yield Check("hand [m]", target.translation, published, 1e-12, "half a unit of the last digit printed")
    starts = np.random.default_rng(0).uniform(-1.5, 1.5, (20, model.nq))
    found = [reach(model, {"hand": target}, start=q) for q in starts]
    q = np.array([one.q for one in found])
    missed = max(
        np.abs(X.translation - target.translation).max()
        for X in (model.frame_pose(one.q, "hand") for one in found)
    )
    yield Check("reached from 20 places, off by [m]", missed, 0.0, 1e-9, "what the search is asked for")
    shoulder, elbow, wrist = (model.frame_pose(q, f"link{k}").translation for k in (2, 4, 6))
    along = (wrist - shoulder) / np.linalg.norm(wrist - shoulder, axis=-1, keepdims=True)
    radius = np.linalg.norm(np.cross(elbow - shoulder, along), axis=-1)
    reason = (
        "a hand within 1e-9 m and 1e-9 rad: the wrist 1e-9 m off, and the elbow up to three times as much"
    )
    yield Check("circle of the elbow [m]", radius, np.full(len(q), 0.231333493403), 4e-9, reason)


@case(
    source="""A bay of the truss of Naccarato and Hughes (1989), base and longerons 1 m: the nodes of a triangle of side s
    are at the height sqrt(1 - (1 + s^2 - s)/3)""",
    kind="closed form",
    tags=("loops",),
)
def octahedral_bay() -> Items:
    """Three members of a truss are made 0.8 or 1.2 m long: how high their nodes stand."""
    model = truss_arm(1)
    nodes = [f"bay1.node{k}" for k in (1, 2, 3)]
    for side, height in ((0.8, 0.848528137), (1.2, 0.765941686)):
        members = [
            distance(a, side, relative_to=b) for a, b in zip(nodes, nodes[1:] + nodes[:1], strict=True)
        ]
        q = reach(model, members).q
        reason = "half a unit of the last digit printed, and lengths to 1e-9 m"
        found = [model.frame_pose(q, node).translation[2] for node in nodes]
        yield Check(f"side {side:g} m: heights [m]", found, [height] * 3, 2e-9, reason)
