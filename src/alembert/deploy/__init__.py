"""Models that leave Python: functional mock-up units, C programs with integrators, compilers for boards and platforms."""

from alembert.arguments import tell_wrong_types as _tell_wrong_types
from alembert.deploy.compiler import CompilerError as CompilerError
from alembert.deploy.fmu import fmu as fmu
from alembert.deploy.imported import ImportedUnit as ImportedUnit
from alembert.deploy.imported import UnitError as UnitError
from alembert.deploy.imported import load_fmu as load_fmu
from alembert.deploy.live_page import live_page as live_page
from alembert.deploy.loop import BrowserLink as BrowserLink
from alembert.deploy.loop import DeadlineReport as DeadlineReport
from alembert.deploy.loop import SharedLink as SharedLink
from alembert.deploy.loop import UdpLink as UdpLink
from alembert.deploy.loop import realtime as realtime
from alembert.deploy.source import CSource as CSource
from alembert.deploy.source import c_controller as c_controller
from alembert.deploy.source import c_source as c_source

_tell_wrong_types(__name__)
