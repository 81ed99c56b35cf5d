"""The sweeps: steps written once on `SX`, and the programs composed of them."""

from alembert.sweeps import modal as modal
from alembert.sweeps.correction import CORRECTION as CORRECTION
from alembert.sweeps.dynamics import ACCELERATIONS as ACCELERATIONS
from alembert.sweeps.dynamics import CORIOLIS_FORCES as CORIOLIS_FORCES
from alembert.sweeps.dynamics import FORWARD_DYNAMICS as FORWARD_DYNAMICS
from alembert.sweeps.dynamics import GRAVITY_FORCES as GRAVITY_FORCES
from alembert.sweeps.dynamics import HYBRID_DYNAMICS as HYBRID_DYNAMICS
from alembert.sweeps.dynamics import INVERSE_DYNAMICS as INVERSE_DYNAMICS
from alembert.sweeps.dynamics import POSES as POSES
from alembert.sweeps.dynamics import SOLVE_MASS_MATRIX as SOLVE_MASS_MATRIX
from alembert.sweeps.dynamics import SUBSPACES as SUBSPACES
from alembert.sweeps.dynamics import VELOCITIES as VELOCITIES
from alembert.sweeps.mass_matrix import COMPOSITE as COMPOSITE
from alembert.sweeps.mass_matrix import KINETIC_ENERGY as KINETIC_ENERGY
from alembert.sweeps.mass_matrix import MASS_MATRIX as MASS_MATRIX
from alembert.sweeps.mass_matrix import MOMENTUM as MOMENTUM
from alembert.sweeps.mass_matrix import MOMENTUM_MATRIX as MOMENTUM_MATRIX
from alembert.sweeps.mass_matrix import POTENTIAL_ENERGY as POTENTIAL_ENERGY
from alembert.sweeps.program import Program as Program
from alembert.sweeps.program import expressions as expressions
from alembert.sweeps.program import seen as seen
from alembert.sweeps.tree import Tree as Tree
