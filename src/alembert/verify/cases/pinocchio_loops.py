"""Against Pinocchio."""

import numpy as np

from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import four_bars, parallelogram


@case(
    source="""Pinocchio (Carpentier and others 2021): constraintDynamics on the N-four-bar mechanism (IFToMM A02)""",
    kind="independent program",
    tags=("loops", "differential", "iftomm"),
    parameters={"windows": (1, 3)},
    needs=("pinocchio",),
)
def pinocchio_loops(windows: tuple[int, ...]) -> Items:
    """Accelerations of four-bars; a pin in the plane is a point contact in space there, one row of it redundant."""
    import pinocchio as pin

    from alembert.verify.in_pinocchio import in_pinocchio

    for count in windows:
        model = four_bars(count)
        other = in_pinocchio(model.replace(loops=()))
        at = {joint.child: other.getJointId(joint.name) for joint in model.joints}
        contacts, contact_data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        post, beam = (pin.SE3(np.eye(3), np.array(p)) for p in ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0)))
        for i in range(count):
            contact = pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D,
                other,
                at[f"post{i + 1}"],
                post,
                at[f"beam{i}"],
                beam,
                pin.ReferenceFrame.LOCAL,
            )
            contacts.append(contact)
            contact_data.append(contact.createData())
        data = other.createData()
        pin.initConstraintDynamics(other, data, contacts, contact_data)
        q, v = parallelogram(model, 0.4, -0.8)
        tau = np.random.default_rng(0).normal(size=model.nv)
        settings = pin.ProximalSettings(1e-14, 1e-10, 20)
        expected = pin.constraintDynamics(other, data, q, v, tau, contacts, contact_data, settings)
        found = model.constrained_dynamics(q, v, tau).accelerations
        error = np.max(np.abs(found - expected)) / np.linalg.norm(expected)
        yield Check(
            f"N = {count}: relative difference",
            error,
            0.0,
            1e-10,
            "proximal iterations there, regularised by 1e-10",
        )
