"""Spatial operators as objects (Rodriguez, Jain, Kreutz-Delgado 1992), and what is computed with them.

    ops = operators(model, q)
    V = ops.phi.T @ (ops.H.T @ v)                   # the velocities of all bodies, O(n)
    a = ops.mass_matrix.inverse @ tau               # [I - H psi K]^T D^-1 [I - H psi K] tau, O(n)
    (I + ops.H @ ops.phi @ ops.K).inverse           # I - H psi K

Operators act on columns stacked over the moving bodies (six entries each, body axes, angular first) or over
the speeds. Bodies are numbered base first, so that phi, psi and [I + H phi K] are *upper* block triangular;
the paper numbers them from the tips and has them lower. Nothing dense is formed but by `dense()`.
"""

from alembert.arguments import make_callable
from alembert.operators.algebra import Blocks, I, Identity, Operator, Product, Recursion, Sum
from alembert.operators.of_model import (
    SpatialOperators,
    admittance,
    diagonalising_velocities,
    innovations,
    operators,
    velocities_from_diagonal,
)

__all__ = [
    "Blocks",
    "I",
    "Identity",
    "Operator",
    "Product",
    "Recursion",
    "SpatialOperators",
    "Sum",
    "admittance",
    "diagonalising_velocities",
    "innovations",
    "operators",
    "velocities_from_diagonal",
]

make_callable(__name__, operators)
