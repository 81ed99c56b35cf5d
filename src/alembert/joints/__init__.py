"""Joint types: one protocol, one file per family, one registry."""

from alembert.joints.attachments import Friction, Limits, Rotor, Spring
from alembert.joints.custom import Custom
from alembert.joints.free import Free, Gimbal, Spherical, Universal
from alembert.joints.guides import (
    Distance,
    PointOnCurve,
    PointOnLine,
    PointOnParametricCurve,
    PointOnParametricSurface,
    PointOnPlane,
    PointOnSurface,
    RollingDisc,
    RollingSphere,
    Skate,
    TouchingSurfaces,
)
from alembert.joints.joint import REGISTRY, JointType, register
from alembert.joints.lower_pairs import Cylindrical, Fixed, Planar, Prismatic, Revolute, Screw, Translational
from alembert.joints.pair import PAIRS, Pair, register_pair

for _type in (
    Custom,
    Cylindrical,
    Fixed,
    Spherical,
    Free,
    Gimbal,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Translational,
    Universal,
):
    register(_type)  # random models of a seed draw from them in this order

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
