"""Motion in time: integrators on manifolds, controllers, events and records."""

from alembert.arguments import make_callable as _make_callable
from alembert.arguments import tell_wrong_types as _tell_wrong_types
from alembert.simulate.actuators import Drive as Drive
from alembert.simulate.actuators import Gear as Gear
from alembert.simulate.choice import integrators as integrators
from alembert.simulate.comparison import Comparison as Comparison
from alembert.simulate.comparison import compare as compare
from alembert.simulate.controllers import Batched as Batched
from alembert.simulate.controllers import DynamicController as DynamicController
from alembert.simulate.controllers import Sampled as Sampled
from alembert.simulate.controllers import SymbolicLaw as SymbolicLaw
from alembert.simulate.elements import ContactFriction as ContactFriction
from alembert.simulate.elements import Forces as Forces
from alembert.simulate.ensembles import Ensemble as Ensemble
from alembert.simulate.ensembles import ensemble as ensemble
from alembert.simulate.events import Attach as Attach
from alembert.simulate.events import Dock as Dock
from alembert.simulate.events import Event as Event
from alembert.simulate.events import EventRecord as EventRecord
from alembert.simulate.events import Lock as Lock
from alembert.simulate.events import Release as Release
from alembert.simulate.events import WithParameters as WithParameters
from alembert.simulate.forces import Bushing as Bushing
from alembert.simulate.forces import CentralGravity as CentralGravity
from alembert.simulate.forces import Drag as Drag
from alembert.simulate.forces import ForceElement as ForceElement
from alembert.simulate.forces import GravityGradient as GravityGradient
from alembert.simulate.forces import SoftStop as SoftStop
from alembert.simulate.forces import SpringDamper as SpringDamper
from alembert.simulate.impacts import JointStops as JointStops
from alembert.simulate.impacts import PlaneImpact as PlaneImpact
from alembert.simulate.inputs import Table as Table
from alembert.simulate.mass_flow import MassFlow as MassFlow
from alembert.simulate.report import Report as Report
from alembert.simulate.restart import load_run as load_run
from alembert.simulate.result import Run as Run
from alembert.simulate.run import simulate as simulate
from alembert.simulate.sensors import Measured as Measured
from alembert.simulate.sensors import SensorSamples as SensorSamples
from alembert.simulate.state_filters import StateEstimate as StateEstimate
from alembert.simulate.state_filters import StateFilter as StateFilter

_tell_wrong_types(__name__)
_make_callable(__name__, simulate)
