"""The unstable middle axis."""

from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.mechanisms import rigid_body
from alembert.verify.motion import motion
from alembert.verify.programs import Program


@case(
    source="""Euler's equations of a free body, Jacobi's elliptic functions: half a period of the unstable middle
    axis""",
    kind="closed form",
    tags=("tree",),
    parameters={"moments": (1.0, 2.0, 3.0), "start": (0.01, 2.0, 0.01), "flip": 10.977572939663},
)
def dzhanibekov_flip(
    program: Program, moments: tuple[float, float, float], start: tuple[float, ...], flip: float
) -> Items:
    """A body spinning about its middle axis turns over at the time of the closed form (Dzhanibekov)."""
    model = rigid_body(moments)
    t, _, w = motion(model, program.load(model), model.neutral(), start, duration=flip)
    reason = "error control at 1e-13; the unstable motion multiplies errors by some 1e3 before the flip"
    yield Check("angular velocity [rad/s]", w[-1], (-0.01, -2.0, 0.01), 1e-9, reason)
    yield Plot("t [s]", "[rad/s]", tuple(Line(f"w{k + 1}", t, w[:, k]) for k in range(3)))
