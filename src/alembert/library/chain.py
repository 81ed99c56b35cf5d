from __future__ import annotations

from collections.abc import Sequence

from alembert.errors import ArgumentError
from alembert.joints import Revolute
from alembert.library.shapes import BLUE, ORANGE, rod
from alembert.model import WORLD, Inertia, Model, ModelBuilder


def chain(
    n: int = 10,
    *,
    axes: Sequence[Sequence[float]] = ((0.0, 0.0, 1.0), (0.0, -1.0, 0.0)),
    length: float = 1.0,
    mass: float = 1.0,
) -> Model:
    """A serial chain of `n` equal links on revolute joints, stretched out along x at q = 0.

    Each link is a solid cylinder of `length` [m] and `mass` [kg], a tenth as thick as long. The joints turn
    about `axes` in turn: by default about z and about -y alternately; one axis makes the chain planar.
    """
    if n < 1 or not axes:
        raise ArgumentError(f"chain: n is {n} and axes {axes!r}, expected at least one of each")
    builder = ModelBuilder(f"chain_{n}")
    for k in range(n):
        axis = tuple(float(entry) for entry in axes[k % len(axes)])
        builder.body(
            f"link{k + 1}",
            Inertia.cylinder(mass, 0.05 * length, length, (1.0, 0.0, 0.0), (length / 2, 0.0, 0.0)),
            joint=Revolute(axis),
            joint_name=f"joint{k + 1}",
            parent=f"link{k}" if k else WORLD,
            placement=(length if k else 0.0, 0.0, 0.0),
            visuals=[rod((0.0, 0.0, 0.0), (length, 0.0, 0.0), 0.05 * length, (BLUE, ORANGE)[k % 2])],
        )
        builder.actuator(f"motor{k + 1}", f"joint{k + 1}")
    builder.frame("tip", f"link{n}", (length, 0.0, 0.0))
    return builder.build()
