"""Tolerances of the constrained algorithms."""

from alembert.model.methods import CLOSED as CLOSED
from alembert.model.methods import RANK as RANK

CLOSURE = 1e-12
"""What `project` and `assemble` reach, relative to the size of each loop."""
NEAR = 1e-7
"""How far off the surface the minimal set that is kept may be taken for that of the state."""
CONSISTENT = 1e-7
"""How well rows that were dropped must be satisfied, relative to the terms in them."""
STILL = 1e-6
"""Speeds below it [SI] count as this: at rest, errors of an integrator may be larger than the speeds themselves."""
GOOD = 1e-3
"""Smallest pivot of Lambda, with unit diagonal, at which it is used for motions: the error is some eps/GOOD^2."""
CLEAR = 1e-2
"""The same for derivatives and efforts."""
REGULAR = 1e-10
"""Smallest singular value or pivot, relative to the largest, at which a driven set gives all motions."""
FEASIBLE = 1e-8
"""Smallest singular value, in the metric of the mass matrix, at which actuators can bring about prescribed motions."""
OFF = 1e-3
"""Tolerances of rank and consistency grow with the distance of a state from the surface, up to this."""
BREAKS = 1e-4
"""How far a given acceleration may be from keeping the constraints, relative to the terms there."""
