"""Against Pinocchio."""

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.programs import PROGRAMS
from alembert.verify.random_models import states


@case(
    source="Pinocchio (Carpentier and others 2019): aba, rnea, crba on random trees of its joint types",
    kind="independent program",
    tags=("tree", "differential", "random"),
    parameters={"count": 300},
    needs=("pinocchio",),
)
def pinocchio_random_trees(count: int) -> Items:
    """Forward and inverse dynamics, mass matrix and energies on random trees, fixed and floating."""
    from alembert.verify.in_pinocchio import JOINTS

    yield from _against("pinocchio", (*JOINTS, "fixed"), count)


def _against(name: str, kinds: tuple[str, ...], count: int) -> Items:
    reason = "1e-10 is 5e5 eps: another order of operations, condition numbers up to 1e6"
    for floating in (False, True):
        model = library.random_tree(21 + floating, bodies=13, kinds=kinds, floating=floating)
        other = PROGRAMS[name].load(model)
        q, v, x = states(model, count)
        label = "floating" if floating else "fixed"
        theirs = np.array([other.forward_dynamics(*s) for s in zip(q, v, x, strict=True)])
        yield Check(
            f"{label}: accelerations", _error(model.forward_dynamics(q, v, x), theirs), 0.0, 1e-10, reason
        )
        theirs = np.array([other.inverse_dynamics(*s) for s in zip(q, v, x, strict=True)])
        yield Check(f"{label}: efforts", _error(model.inverse_dynamics(q, v, x), theirs), 0.0, 1e-10, reason)
        few = q[:20]
        theirs = np.array([other.mass_matrix(s) for s in few])
        yield Check(f"{label}: mass matrices", _error(model.mass_matrix(few), theirs), 0.0, 1e-10, reason)
        theirs = np.array([other.potential_energy(s) for s in few])
        ours = model.potential_energy(few)
        yield Check(
            f"{label}: change of potential",
            np.max(np.abs((ours - ours[0]) - (theirs - theirs[0]))) / np.max(np.abs(ours)),
            0.0,
            1e-10,
            reason,
        )


def _error(found: np.ndarray, expected: np.ndarray) -> float:
    """Relative to the size of the vector or matrix, state by state."""
    axes = tuple(range(1, np.ndim(found)))
    return float(np.max(np.abs(found - expected).max(axis=axes) / np.abs(expected).max(axis=axes)))
