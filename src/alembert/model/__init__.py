"""Models: their parts, the builder, topology, files."""

from alembert.arguments import tell_wrong_types_in as _tell_wrong_types_in
from alembert.model.builder import ModelBuilder
from alembert.model.elements import (
    WORLD,
    Actuator,
    Body,
    Box,
    Capsule,
    Coupling,
    Cylinder,
    Ellipsoid,
    Equation,
    Frame,
    Joint,
    LoopJoint,
    Mesh,
    Sensor,
    Sphere,
    Visual,
)
from alembert.model.inertia import Inertia
from alembert.model.modal import ModalBody, ModalNode
from alembert.model.model import Model
from alembert.model.placement import Placement

__all__ = [
    "WORLD",
    "Actuator",
    "Body",
    "Box",
    "Capsule",
    "Coupling",
    "Cylinder",
    "Ellipsoid",
    "Equation",
    "Frame",
    "Inertia",
    "Joint",
    "LoopJoint",
    "Mesh",
    "ModalBody",
    "ModalNode",
    "Model",
    "ModelBuilder",
    "Placement",
    "Sensor",
    "Sphere",
    "Visual",
]

for _record in (ModelBuilder, Inertia):
    _tell_wrong_types_in(_record)
