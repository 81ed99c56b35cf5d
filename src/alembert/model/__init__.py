"""Models: their parts, the builder, topology, files."""

from alembert.model.builder import ModelBuilder as ModelBuilder
from alembert.model.elements import WORLD as WORLD
from alembert.model.elements import Actuator as Actuator
from alembert.model.elements import Body as Body
from alembert.model.elements import Box as Box
from alembert.model.elements import Capsule as Capsule
from alembert.model.elements import Coupling as Coupling
from alembert.model.elements import Cylinder as Cylinder
from alembert.model.elements import Frame as Frame
from alembert.model.elements import Joint as Joint
from alembert.model.elements import LoopJoint as LoopJoint
from alembert.model.elements import Mesh as Mesh
from alembert.model.elements import Sensor as Sensor
from alembert.model.elements import Sphere as Sphere
from alembert.model.elements import Visual as Visual
from alembert.model.inertia import Inertia as Inertia
from alembert.model.model import Model as Model
from alembert.model.placement import Placement as Placement
