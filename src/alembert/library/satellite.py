from __future__ import annotations

from alembert.errors import ArgumentError
from alembert.joints import Free, Revolute
from alembert.library.robots import STEEL, Vector, disc
from alembert.model import Box, Inertia, Model, ModelBuilder, Visual

_AXES: dict[str, Vector] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def satellite(
    *,
    mass: float = 300.0,
    size: Vector = (1.2, 1.0, 1.6),
    rotors: int = 3,
    rotor_mass: float = 10.0,
    rotor_radius: float = 0.2,
    offset: float = 0.35,
    torque: float = 20.0,
) -> Model:
    """A free main body turned by momentum wheels about its x, y and z axes, without gravity.

    The main body is a uniform cuboid of `mass` [kg] and `size` [m]; each rotor a disc of `rotor_mass` [kg]
    and `rotor_radius` [m], its centre `offset` [m] out on its axis, driven by up to `torque` [N m]. With
    `rotors=2` the wheel about z is missing: the underactuated case. The problem of Leyendecker et al. 2009
    (section 7.2), who state no data.
    """
    if rotors not in (1, 2, 3):
        raise ArgumentError(f"satellite: rotors is {rotors!r}, expected 1, 2 or 3")
    builder = ModelBuilder("satellite", gravity=(0.0, 0.0, 0.0))
    builder.body(
        "main",
        Inertia.box(mass, size),
        joint=Free(),
        joint_name="attitude",
        visuals=[Visual(Box(size), color=(*STEEL[:3], 0.4))],
    )
    builder.sensor("star_tracker", "frame", "main").sensor("rate_gyro", "gyro", "main")
    for letter, axis in list(_AXES.items())[:rotors]:
        builder.body(
            f"rotor_{letter}",
            Inertia.cylinder(rotor_mass, rotor_radius, 0.05, axis),
            joint=Revolute(axis),
            joint_name=f"spin_{letter}",
            parent="main",
            placement=tuple(offset * entry for entry in axis),
            visuals=[disc(axis, rotor_radius, 0.05)],
        )
        builder.actuator(f"motor_{letter}", f"spin_{letter}", limits=(-torque, torque))
        builder.sensor(f"tachometer_{letter}", "joint_rate", f"spin_{letter}")
    return builder.build()
