"""Motion in time: integrators on manifolds, controllers, events and records."""

from alembert.simulate.controllers import Drive as Drive
from alembert.simulate.controllers import Sampled as Sampled
from alembert.simulate.events import Event as Event
from alembert.simulate.events import EventRecord as EventRecord
from alembert.simulate.result import Report as Report
from alembert.simulate.result import Run as Run
from alembert.simulate.run import simulate as simulate
