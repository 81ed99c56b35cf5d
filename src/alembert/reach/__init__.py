"""Inverse kinematics: `al.reach(model, tasks)`, and the tasks."""

from alembert.arguments import make_callable as _make_callable
from alembert.arguments import tell_wrong_types as _tell_wrong_types
from alembert.reach.curve import ReferenceCurve as ReferenceCurve
from alembert.reach.curve import Tracked as Tracked
from alembert.reach.curve import track_curve as track_curve
from alembert.reach.path import Trajectory as Trajectory
from alembert.reach.path import follow as follow
from alembert.reach.path import time_scaled as time_scaled
from alembert.reach.solver import Reached as Reached
from alembert.reach.solver import ReachSolver as ReachSolver
from alembert.reach.solver import reach as reach
from alembert.reach.solver import solver as solver
from alembert.reach.tasks import ReachTask as ReachTask
from alembert.reach.tasks import center_of_mass as center_of_mass
from alembert.reach.tasks import centered as centered
from alembert.reach.tasks import custom as custom
from alembert.reach.tasks import distance as distance
from alembert.reach.tasks import orientation as orientation
from alembert.reach.tasks import point_at as point_at
from alembert.reach.tasks import pose as pose
from alembert.reach.tasks import position as position
from alembert.reach.tasks import posture as posture

_tell_wrong_types(__name__)
_make_callable(__name__, reach)
