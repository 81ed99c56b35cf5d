"""An inverted pendulum on a cart."""

import numpy as np

from alembert import library
from alembert.linear import linearize
from alembert.verify.case import Check, Items, case


@case(
    source="""Pendulum on a cart: w^2 = g (M + m) / (M l) hanging, poles +-w upright (Friedland, Control System
    Design, 1986, example 2E)""",
    kind="closed form",
    tags=("linearisation",),
    parameters={"cart": 1.0, "pole": 0.3, "length": 0.5, "gravity": 9.81},
)
def cart_pole_poles(cart: float, pole: float, length: float, gravity: float) -> Items:
    """Poles of a cart-pole, hanging and upright."""
    model = library.cart_pole(cart_mass=cart, pole_mass=pole, pole_length=length)
    w = np.sqrt(gravity * (cart + pole) / (cart * length))
    hanging = linearize(model, [0.0, 0.0])
    upright = linearize(model, [0.0, np.pi])
    reason = "a double pole at zero: sqrt(eps) for it, rounding for the others"
    yield Check("hanging: imaginary part", np.max(np.linalg.eigvals(hanging.A).imag), w, 1e-12, reason)
    yield Check(
        "upright: real parts", np.sort(np.linalg.eigvals(upright.A).real)[[0, -1]], (-w, w), 1e-7, reason
    )
