"""Joint types: one protocol, one file per family, one registry."""

from alembert.joints.attachments import Friction as Friction
from alembert.joints.attachments import Limits as Limits
from alembert.joints.attachments import Rotor as Rotor
from alembert.joints.attachments import Spring as Spring
from alembert.joints.custom import Custom as Custom
from alembert.joints.cylindrical import Cylindrical as Cylindrical
from alembert.joints.fixed import Fixed as Fixed
from alembert.joints.free import Free as Free
from alembert.joints.gimbal import Gimbal as Gimbal
from alembert.joints.joint import REGISTRY as REGISTRY
from alembert.joints.joint import JointType as JointType
from alembert.joints.joint import register as register
from alembert.joints.planar import Planar as Planar
from alembert.joints.prismatic import Prismatic as Prismatic
from alembert.joints.revolute import Revolute as Revolute
from alembert.joints.screw import Screw as Screw
from alembert.joints.spherical import Spherical as Spherical
from alembert.joints.translational import Translational as Translational
from alembert.joints.universal import Universal as Universal
