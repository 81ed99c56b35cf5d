"""What makes a model compute: its algorithms on arrays, compiled, and on CasADi expressions."""

from alembert.dynamics.api import Dynamics as Dynamics
from alembert.dynamics.results import ForwardDerivatives as ForwardDerivatives
from alembert.dynamics.results import HybridDerivatives as HybridDerivatives
from alembert.dynamics.results import HybridResult as HybridResult
from alembert.dynamics.results import InverseDerivatives as InverseDerivatives
