"""Against Pinocchio."""

import numpy as np

from alembert.verify.case import Check, Items, Skipped, case
from alembert.verify.random_models import (
    states,
)

ROBOTS = {
    "panda": ("panda_description/urdf/panda.urdf", False),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
    "solo12": ("solo_description/robots/solo12.urdf", True),
}


@case(
    source="""Pinocchio (Carpentier and others 2019): aba and rnea on robots of example-robot-data, each program
    reading the URDF file""",
    kind="independent program",
    tags=("tree", "differential"),
    parameters={"count": 100},
    needs=("pinocchio",),
)
def pinocchio_robots(count: int) -> Items:
    """Forward and inverse dynamics of robots read from their files."""
    import dataclasses
    import warnings
    from pathlib import Path

    import pinocchio as pin

    from alembert.errors import AlembertWarning
    from alembert.model.io.convert import accelerations_to_pinocchio, to_pinocchio
    from alembert.model.io.urdf import load_urdf

    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    if not folder.is_dir():
        raise Skipped("the robots are not installed (pip install example-robot-data)")
    reason = "1e-10 is 5e5 eps: condition numbers up to 1e6 (light hands on heavy trunks)"
    for name, (path, floating) in ROBOTS.items():
        file = folder / path
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlembertWarning)
            model = load_urdf(file, floating=floating, unphysical="warn")
        # Pinocchio's algorithms know neither the friction nor the mimic joints of the file
        joints = tuple(dataclasses.replace(joint, friction=None) for joint in model.joints)
        model = dataclasses.replace(model, joints=joints, couplings=())
        root = [pin.JointModelFreeFlyer()] if floating else []
        other = pin.buildModelFromUrdf(str(file), *root)
        data = other.createData()
        q, v, x = states(model, count)
        qp, vp = to_pinocchio(model, q, v, pin_model=other)
        _, xp = to_pinocchio(model, q, x, pin_model=other)
        theirs = np.array([pin.aba(other, data, *s).copy() for s in zip(qp, vp, xp, strict=True)])
        ours = accelerations_to_pinocchio(model, q, v, model.forward_dynamics(q, v, x), pin_model=other)
        error = np.max(np.abs(ours - theirs).max(axis=1) / np.abs(theirs).max(axis=1))
        yield Check(f"{name}: accelerations", error, 0.0, 1e-10, reason)
