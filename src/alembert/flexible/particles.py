"""Bodies of point masses that deform: from tables of points, or at random.

Every point is a node, so that joints, frames and loads may be at each of them, and has its mass there, so that the integrals
over the mass are checked against the table. With random masses, places and shapes no integral is zero, and all twelve unit
inertia loads matter: a term left out or wrong shows in the motion. Tests and the fuzzer draw such bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from alembert.errors import ModelError
from alembert.model.modal import ModalBody, ModalNode, Stiffening

Array = np.ndarray


def particles(
    masses: Any,
    positions: Any,
    shapes: Any,
    *,
    stiffness: Any,
    rotations: Any = None,
    foreshortening: Any = None,
    turning: Any = None,
    damping: Any = None,
    names: Sequence[str] | None = None,
    modes: Sequence[str] | None = None,
    attachment: str | None = None,
    stiffening: Stiffening = "consistent",
    units: Sequence[str] = (),
) -> ModalBody:
    """A body of point masses, each of them a node (`p0`, `p1`, ... or `names`).

    `positions` (points x 3) and `shapes` (points x modes x 3) are as in (1) of `alembert.model.modal`, `rotations` (points x
    modes x 3) turn what hangs on a point, `foreshortening` (points x modes x modes x 3) is chi, `turning` of that shape is
    the second order of the rotation vectors. Shapes are those of a body held at its frame; with
    `attachment`, the name of a point, all is made relative to that point, which becomes the frame.
    """
    m, x, phi = (np.asarray(given, dtype=float) for given in (masses, positions, shapes))
    if m.ndim != 1 or x.shape != (len(m), 3) or phi.ndim != 3 or phi.shape[::2] != (len(m), 3):
        raise ModelError(
            f"particles: masses, positions and shapes have the shapes {m.shape}, {x.shape} and {phi.shape}, expected "
            "(points,), (points, 3) and (points, modes, 3)"
        )
    labels = [f"p{k}" for k in range(len(m))] if names is None else list(names)
    if len(labels) != len(m):
        raise ModelError(f"particles: {len(labels)} names for {len(m)} points")
    for label, value in zip(labels, m, strict=True):
        if not (np.isfinite(value) and value >= 0):
            raise ModelError(
                f"particles: the mass of {label!r} is {value!r}, expected a number that is not negative"
            )
    psi = np.zeros_like(phi) if rotations is None else np.asarray(rotations, dtype=float)
    if psi.shape != phi.shape:
        raise ModelError(
            f"particles: rotations have the shape {psi.shape}, expected {phi.shape} as the shapes"
        )
    chi, eta = (None if x is None else np.asarray(x, dtype=float) for x in (foreshortening, turning))
    for name, given in (("foreshortening", chi), ("turning", eta)):
        if given is not None and given.shape != (*phi.shape[:2], *phi.shape[1:]):
            raise ModelError(
                f"particles: {name} has the shape {given.shape}, expected {(*phi.shape[:2], *phi.shape[1:])}"
            )
    chis, etas = ([None] * len(m) if x is None else list(x) for x in (chi, eta))
    nodes = []
    for k, label in enumerate(labels):
        parts: list[Any] = [x[k], phi[k], psi[k], chis[k], None, float(m[k]), None, etas[k]]
        nodes.append(ModalNode(label, *parts))
    return ModalBody.of_points(
        m,
        x,
        phi,
        stiffness=stiffness,
        damping=damping,
        foreshortening=chi,
        nodes=nodes,
        modes=modes,
        attachment=attachment,
        stiffening=stiffening,
        units=units,
    )


def random_particles(
    rng: np.random.Generator | int | None = None,
    *,
    points: int = 5,
    modes: int = 2,
    size: float = 0.3,
    foreshortening: float = 0.2,
    stiffening: Stiffening = "consistent",
) -> ModalBody:
    """Point masses at random places, within some metres, with random shapes and springs.

    `size` is that of shapes and rotations, per unit of a mode; `foreshortening` is the size of chi and of the second order
    of rotations against it, 0 for none.
    Deflections of a tenth leave the mass matrix positive.
    """
    if not (isinstance(points, int) and isinstance(modes, int) and 1 <= modes < 3 * points):
        raise ModelError(
            f"random_particles: points={points!r}, modes={modes!r}, expected whole numbers and fewer modes than three "
            "times the points"
        )
    generator = np.random.default_rng(rng)
    m, x = generator.uniform(0.1, 1.0, points), generator.normal(size=(points, 3))
    phi, psi = size * generator.normal(size=(2, points, modes, 3))
    chi = foreshortening * size * generator.normal(size=(points, modes, modes, 3))
    A = generator.normal(size=(modes, modes))
    eta = foreshortening * size * generator.normal(size=(points, modes, modes, 3))
    return particles(
        m,
        x,
        phi,
        rotations=psi,
        foreshortening=chi + np.swapaxes(chi, 1, 2),
        turning=eta + np.swapaxes(eta, 1, 2) if foreshortening else None,
        stiffness=5 * (A @ A.T + np.eye(modes)),
        damping=0.1 * np.eye(modes),
        stiffening=stiffening,
    )
