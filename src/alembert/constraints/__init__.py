"""Loop joints and couplings: constraint equations, rank, constrained dynamics, assembly."""

from typing import TYPE_CHECKING, Any

from alembert.constraints.api import Constraints as Constraints

if TYPE_CHECKING:
    from alembert.constraints.results import ConstrainedDerivatives as ConstrainedDerivatives
    from alembert.constraints.results import ConstrainedEfforts as ConstrainedEfforts
    from alembert.constraints.results import (
        ConstrainedInverseDerivatives as ConstrainedInverseDerivatives,
    )
    from alembert.constraints.results import ConstrainedResult as ConstrainedResult
    from alembert.constraints.results import ConstraintAnalysis as ConstraintAnalysis
    from alembert.constraints.results import ControlForces as ControlForces
    from alembert.constraints.results import ImpulseResult as ImpulseResult
    from alembert.constraints.results import IndependentCoordinates as IndependentCoordinates
    from alembert.constraints.results import State as State

_RESULTS = {
    "ConstrainedDerivatives",
    "ConstrainedEfforts",
    "ConstrainedInverseDerivatives",
    "ConstrainedResult",
    "ConstraintAnalysis",
    "ControlForces",
    "ImpulseResult",
    "IndependentCoordinates",
    "State",
}


def __getattr__(name: str) -> Any:
    if name not in _RESULTS:
        raise AttributeError(f"module 'alembert.constraints' has no attribute {name!r}")
    from alembert.constraints import results

    return getattr(results, name)
