"""Joint types: one protocol, one file per family, one registry."""

from alembert.joints.attachments import Friction, Limits, Rotor, Spring
from alembert.joints.custom import Custom
from alembert.joints.cylindrical import Cylindrical
from alembert.joints.fixed import Fixed
from alembert.joints.free import Free
from alembert.joints.gimbal import Gimbal
from alembert.joints.joint import REGISTRY, JointType, register
from alembert.joints.planar import Planar
from alembert.joints.prismatic import Prismatic
from alembert.joints.revolute import Revolute
from alembert.joints.screw import Screw
from alembert.joints.spherical import Spherical
from alembert.joints.translational import Translational
from alembert.joints.universal import Universal

__all__ = [
    "REGISTRY",
    "Custom",
    "Cylindrical",
    "Fixed",
    "Free",
    "Friction",
    "Gimbal",
    "JointType",
    "Limits",
    "Planar",
    "Prismatic",
    "Revolute",
    "Rotor",
    "Screw",
    "Spherical",
    "Spring",
    "Translational",
    "Universal",
    "register",
]
