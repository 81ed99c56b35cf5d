"""Parameters from measurements: regressor, base parameters, consistent inertias, identification, exciting motions."""

from alembert.arguments import make_callable as _make_callable
from alembert.arguments import tell_wrong_types as _tell_wrong_types
from alembert.identify.base import BaseParameters as BaseParameters
from alembert.identify.base import base_parameters as base_parameters
from alembert.identify.consistent import from_log_cholesky as from_log_cholesky
from alembert.identify.consistent import is_consistent as is_consistent
from alembert.identify.consistent import lifted as lifted
from alembert.identify.consistent import log_cholesky_jacobian as log_cholesky_jacobian
from alembert.identify.consistent import pseudo_inertia as pseudo_inertia
from alembert.identify.consistent import to_log_cholesky as to_log_cholesky
from alembert.identify.excitation import ExcitingTrajectory as ExcitingTrajectory
from alembert.identify.excitation import exciting_trajectory as exciting_trajectory
from alembert.identify.identification import identify as identify
from alembert.identify.measurements import Measurements as Measurements
from alembert.identify.regression import Regressor as Regressor
from alembert.identify.regression import regressor as regressor
from alembert.identify.result import Identification as Identification

_tell_wrong_types(__name__)
_make_callable(__name__, identify)
