"""Spacecraft: orbits and frames, what acts on a vehicle there, its devices and its flight software."""

from alembert.spacecraft.atmosphere import Exponential as Exponential
from alembert.spacecraft.atmosphere import Profile as Profile
from alembert.spacecraft.atmosphere import cira72 as cira72
from alembert.spacecraft.atmosphere import msis_profile as msis_profile
from alembert.spacecraft.environment import Environment as Environment
from alembert.spacecraft.epochs import Epoch as Epoch
from alembert.spacecraft.frames import geodetic as geodetic
from alembert.spacecraft.frames import lvlh as lvlh
from alembert.spacecraft.gravity import OrbitGravity as OrbitGravity
from alembert.spacecraft.harmonics import Harmonics as Harmonics
from alembert.spacecraft.harmonics import egm2008 as egm2008
from alembert.spacecraft.harmonics import igrf as igrf
from alembert.spacecraft.magnetic import MagneticField as MagneticField
from alembert.spacecraft.orbits import Cowell as Cowell
from alembert.spacecraft.orbits import Encke as Encke
from alembert.spacecraft.orbits import Orbit as Orbit
from alembert.spacecraft.orbits import sun_synchronous as sun_synchronous
from alembert.spacecraft.surfaces import Facet as Facet
from alembert.spacecraft.surfaces import SolarPressure as SolarPressure
from alembert.spacecraft.surfaces import SurfaceDrag as SurfaceDrag
from alembert.spacecraft.surfaces import box as box
from alembert.spacecraft.surfaces import panel as panel
