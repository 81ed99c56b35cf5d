"""Against Pinocchio."""

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.random_models import (
    states,
)


@case(
    source="Pinocchio (Carpentier, Mansard 2018): computeABADerivatives on a seven-joint arm",
    kind="independent program",
    tags=("tree", "differential", "sensitivity"),
    parameters={"count": 50},
    needs=("pinocchio",),
)
def pinocchio_derivatives(count: int) -> Items:
    """Derivatives of forward dynamics with respect to configuration, speeds and efforts."""
    import dataclasses

    import pinocchio as pin

    from alembert.verify.in_pinocchio import in_pinocchio

    model = library.arm7()
    model = model.replace(
        joints=tuple(dataclasses.replace(j, friction=None, spring=None, rotors=()) for j in model.joints)
    )
    other = in_pinocchio(model)
    data = other.createData()
    q, v, tau = states(model, count)
    found = model.forward_dynamics_derivatives(q, v, tau)
    theirs = []
    for state in zip(q, v, tau, strict=True):
        pin.computeABADerivatives(other, data, *state)
        theirs.append((data.ddq_dq.copy(), data.ddq_dv.copy(), data.Minv.copy()))
    reason = "1e-9: condition number of the arm times rounding of some thousand operations"
    for k, (name, ours) in enumerate((("dq", found.dq), ("dv", found.dv), ("dtau", found.dtau))):
        expected = np.array([t[k] for t in theirs])
        if name == "dtau":
            expected = np.triu(expected) + np.swapaxes(np.triu(expected, 1), -1, -2)
        error = np.max(np.abs(ours - expected)) / np.max(np.abs(expected))
        yield Check(f"{name}: relative difference", error, 0.0, 1e-9, reason)
