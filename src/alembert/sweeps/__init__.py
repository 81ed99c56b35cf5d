"""The sweeps: steps written once on `SX`, and the programs composed of them."""

from alembert.sweeps import modal as modal
from alembert.sweeps.correction import CORRECTION as CORRECTION
from alembert.sweeps.energy import COMPOSITE as COMPOSITE
from alembert.sweeps.energy import KINETIC_ENERGY as KINETIC_ENERGY
from alembert.sweeps.energy import MOMENTUM as MOMENTUM
from alembert.sweeps.energy import MOMENTUM_MATRIX as MOMENTUM_MATRIX
from alembert.sweeps.energy import POTENTIAL_ENERGY as POTENTIAL_ENERGY
from alembert.sweeps.forward_dynamics import FORWARD_DYNAMICS as FORWARD_DYNAMICS
from alembert.sweeps.forward_dynamics import HYBRID_DYNAMICS as HYBRID_DYNAMICS
from alembert.sweeps.forward_dynamics import SOLVE_MASS_MATRIX as SOLVE_MASS_MATRIX
from alembert.sweeps.inverse_dynamics import CORIOLIS_FORCES as CORIOLIS_FORCES
from alembert.sweeps.inverse_dynamics import GRAVITY_FORCES as GRAVITY_FORCES
from alembert.sweeps.inverse_dynamics import INVERSE_DYNAMICS as INVERSE_DYNAMICS
from alembert.sweeps.kinematics import ACCELERATIONS as ACCELERATIONS
from alembert.sweeps.kinematics import POSES as POSES
from alembert.sweeps.kinematics import SUBSPACES as SUBSPACES
from alembert.sweeps.kinematics import VELOCITIES as VELOCITIES
from alembert.sweeps.mass_matrix import MASS_MATRIX as MASS_MATRIX
from alembert.sweeps.program import Program as Program
from alembert.sweeps.program import expressions as expressions
from alembert.sweeps.program import seen as seen
from alembert.sweeps.tree import Tree as Tree
