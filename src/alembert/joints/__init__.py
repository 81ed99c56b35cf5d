"""Joint types: one protocol, one file per family, one registry."""

from alembert.joints.attachments import Friction, Limits, Rotor, Spring
from alembert.joints.custom import Custom
from alembert.joints.cylindrical import Cylindrical
from alembert.joints.fixed import Fixed
from alembert.joints.free import Free
from alembert.joints.gimbal import Gimbal
from alembert.joints.guides import Distance, PointOnCurve, PointOnLine, PointOnPlane, PointOnSurface
from alembert.joints.joint import REGISTRY, JointType, register
from alembert.joints.pair import PAIRS, Pair, register_pair
from alembert.joints.parametric import PointOnParametricCurve, PointOnParametricSurface
from alembert.joints.planar import Planar
from alembert.joints.prismatic import Prismatic
from alembert.joints.revolute import Revolute
from alembert.joints.rolling import RollingDisc, RollingSphere, Skate
from alembert.joints.screw import Screw
from alembert.joints.spherical import Spherical
from alembert.joints.touching import TouchingSurfaces
from alembert.joints.translational import Translational
from alembert.joints.universal import Universal

__all__ = [
    "PAIRS",
    "REGISTRY",
    "Custom",
    "Cylindrical",
    "Distance",
    "Fixed",
    "Free",
    "Friction",
    "Gimbal",
    "JointType",
    "Limits",
    "Pair",
    "Planar",
    "PointOnCurve",
    "PointOnLine",
    "PointOnParametricCurve",
    "PointOnParametricSurface",
    "PointOnPlane",
    "PointOnSurface",
    "Prismatic",
    "Revolute",
    "RollingDisc",
    "RollingSphere",
    "Rotor",
    "Screw",
    "Skate",
    "Spherical",
    "Spring",
    "TouchingSurfaces",
    "Translational",
    "Universal",
    "register",
    "register_pair",
]
