"""Linear models of a mechanism, the equilibria they are taken about, and regulators designed on them."""

from alembert.arguments import tell_wrong_types as _tell_wrong_types
from alembert.control.reachability import Reachability as Reachability
from alembert.control.responses import FrequencyResponse as FrequencyResponse
from alembert.control.responses import TimeResponse as TimeResponse
from alembert.control.robustness import RootLocus as RootLocus
from alembert.linear.equilibria import Trim as Trim
from alembert.linear.equilibria import trim as trim
from alembert.linear.linear_model import LinearModel as LinearModel
from alembert.linear.linearization import design_point as design_point
from alembert.linear.linearization import linearize as linearize
from alembert.linear.modes import Mode as Mode
from alembert.linear.modes import Modes as Modes
from alembert.linear.regulators import Regulator as Regulator
from alembert.linear.regulators import decoupled_pd as decoupled_pd
from alembert.linear.regulators import lqr as lqr
from alembert.linear.regulators import place_poles as place_poles
from alembert.linear.uncertain import Certificate as Certificate
from alembert.linear.uncertain import UncertainLinearModel as UncertainLinearModel

_tell_wrong_types(__name__)
