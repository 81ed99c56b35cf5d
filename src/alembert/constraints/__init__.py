"""Loop joints and couplings: constraint equations, rank, constrained dynamics, assembly.

One saddle-point system. With the mass matrix M of the tree and the rows G of loops, couplings and equations (`equations`),

    M x - G^T f = b,     G x = c                                                                       (1)

and a minimal set R of independent rows of G for G where some follow from others. The right-hand sides are

    ============== ===================== ======================= ===============================================
    accelerations  b = tau - bias        c = -gamma              `dynamics.constrained_dynamics`
    impulses       b = 0                 c = -G v                `dynamics.impulse`
    positions      b = 0                 c = -phi, -G v          `assembly.project` (`assemble` in another metric)
    derivatives    columns for q, v, tau and parameters          `derivatives.constrained_dynamics_derivatives`
    efforts        (W, 0) for M, (S, R^T) for R                  `dynamics.constrained_inverse_dynamics`, derivatives
    prescribed     rows of drives besides those of constraints   `prescribed`: hybrid dynamics, control forces
    statics        E^T (M a + bias) = E^T tau, G E = 0           `reduced`: independent speeds, tangent space
    ============== ===================== ======================= ===============================================

and two factorisations serve them all: compiled (`factors`, `compiled`, `drives`), by the minimal set that is kept from call
to call; and, where the kept set does not serve a state (its rows have become dependent, or others are not kept by it), and
for systems too large to compile, orthogonal factors of rows that are chosen at the state itself (`saddle`). `solver` tries
them in this order. Compiled functions give a status that says whether they served, so that no state gets a result from a set
that is wrong for it.

A model's constraints are one `rows.ConstraintRows` with all kernels; some of them active, one `system.ConstraintSystem`,
which keeps the minimal set (of each thread), measures how far states are off the surface, and knows what to call
redundant, singular and contradicting rows. `compute` has the methods. `connected` holds several models together.
"""

from alembert.constraints.compute import ConstrainedCompute as ConstrainedCompute
from alembert.constraints.results import ConstrainedDerivatives as ConstrainedDerivatives
from alembert.constraints.results import ConstrainedEfforts as ConstrainedEfforts
from alembert.constraints.results import ConstrainedInverseDerivatives as ConstrainedInverseDerivatives
from alembert.constraints.results import ConstrainedResult as ConstrainedResult
from alembert.constraints.results import ConstraintAnalysis as ConstraintAnalysis
from alembert.constraints.results import ControlForces as ControlForces
from alembert.constraints.results import ImpulseResult as ImpulseResult
from alembert.constraints.results import IndependentCoordinates as IndependentCoordinates
from alembert.constraints.results import State as State
