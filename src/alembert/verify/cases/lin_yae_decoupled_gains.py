"""Lin and Yae 1989."""

import numpy as np

from alembert.linear import decoupled_pd, linearize
from alembert.verify.case import Check, Items, case
from alembert.verify.mechanisms import lin_yae_two_link
from alembert.verify.papers import acc1989


@case(
    source=acc1989(
        "Lin, Yae",
        "decoupled PD gains (37)-(38)",
    ),
    kind="published",
    tags=("linearisation", "acc1989"),
    parameters={"frequencies": (2.0, 3.0), "damping": 0.7},
)
def lin_yae_decoupled_gains(frequencies: tuple[float, float], damping: float) -> Items:
    """The closed loop of the decoupled PD law has the asked-for frequencies and damping, joint by joint."""
    model = lin_yae_two_link()
    linear = linearize(model, [0.3, -0.4], [0.5, -0.2])
    regulator = decoupled_pd(linear, list(frequencies), damping)
    w = np.array(frequencies)
    expected = np.sort_complex(
        np.concatenate([w * (-damping + s * 1j * np.sqrt(1 - damping**2)) for s in (1, -1)])
    )
    poles = np.sort_complex(regulator.poles())
    reason = "rounding times the condition of the mass matrix"
    yield Check("real parts of the poles", poles.real, expected.real, 1e-12, reason)
    yield Check("imaginary parts of the poles", poles.imag, expected.imag, 1e-12, reason)
