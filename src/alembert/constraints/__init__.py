"""Loop joints and couplings: constraint equations, rank, constrained dynamics, assembly."""

from alembert.constraints.api import Constraints as Constraints
from alembert.constraints.results import ConstrainedDerivatives as ConstrainedDerivatives
from alembert.constraints.results import ConstrainedEfforts as ConstrainedEfforts
from alembert.constraints.results import ConstrainedResult as ConstrainedResult
from alembert.constraints.results import ConstraintAnalysis as ConstraintAnalysis
from alembert.constraints.results import ControlForces as ControlForces
from alembert.constraints.results import ImpulseResult as ImpulseResult
from alembert.constraints.results import IndependentCoordinates as IndependentCoordinates
from alembert.constraints.results import State as State
