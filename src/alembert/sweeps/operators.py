"""The quantities behind the spatial operators (Rodriguez, Jain, Kreutz-Delgado 1992), body by body.

The articulated sweep leaves P, D and U = P S with every body. In the notation of that paper, with H^T = S,
phi(P, B) = Ad(X_PB)^-T and what armature (J_r) and rotors (r, on the parent) add:

    D = S^T P S + J_r,   G = P S D^-1,   K = (phi P S + (r; 0)) D^-1                        (1)
    psi = phi - K S^T                                                                       (2)
    Y = psi^T Y_P psi + S D^-1 S^T                                  outward                 (3)

K and psi lead from a body to its parent. Without rotors K = phi G and psi = phi (1 - G S^T), as the paper has them;
in general psi, not phi tau_bar, is what keeps the mass matrix [I + H phi K] D [I + H phi K]^T.

    n = v + K^T V_P,   T = 1/2 n^T D n                              outward                 (4)
    Lambda_ij = B_i^T psi^T(c, i) Y_c psi(c, j) B_j                 two climbs              (5)

(5) is J_i M^-1 J_j^T for frames i and j, c the outermost body that carries both, B the frame's phi on its
body. The paper has zero for it unless one body carries the other; that holds only where nothing moves inboard of
the branches.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from alembert.spatial import Ad_dual, Force, Motion, Pose
from alembert.spatial.arrays import symmetric
from alembert.sweeps.dynamics import eliminate, force_columns, move, place, place_in_world, subspace_in_world
from alembert.sweeps.node import Record
from alembert.sweeps.program import Pairs, Program, inward, outward, unroll
from alembert.sweeps.tree import Tree


def rest(b: Record) -> None:
    """The articulated sweep of a tree that nothing moves or drives."""
    zero = ca.SX(3, 1)
    b.P = b.node.inertia.articulated()
    b.z = b.reaction = Force(zero, zero)
    b.c = Motion(zero, zero)
    b.tau = ca.SX(b.node.nv, 1)


def gain(b: Record) -> None:
    """(1)"""
    U_P = force_columns(b.X, b.U) if b.node.rotor_momentum is None else b.U_P
    b.K = b.factor.solve(U_P.T).T


def propagate_admittance(b: Record) -> None:
    """(2), (3)"""
    b.psi = Ad_dual(b.X) - b.K @ b.S.T
    b.Upsilon = b.S @ b.factor.solve(b.S.T)
    if b.is_offered("Upsilon"):
        b.Upsilon = symmetric(b.Upsilon + b.psi.T @ b.receive("Upsilon") @ b.psi)


def describe(b: Record) -> None:
    """What the operators are made of, as matrices; phi and the coupling lead to all that the parent's speeds are."""
    reflected, r, nv = b.node.reflected_inertia, b.rotor_momentum(), b.node.nv
    b.phi = _to_parent(b, Ad_dual(b.X))
    b.M = b.node.inertia.matrix()
    b.reflected = ca.SX(nv, 1) if reflected is None else ca.diag(reflected)
    b.coupling = _to_parent(b, ca.SX(6, nv) if r is None else ca.vertcat(r, ca.SX(3, nv)))


def _to_parent(b: Record, F: ca.SX) -> ca.SX:
    """Forces on the parent's frame and, where its modes move the place, on its modes."""
    return ca.vertcat(F, b.T_P.T @ F) if b.has("T_P") else F


def describe_articulated(b: Record) -> None:
    b.P_matrix = b.P.matrix()


def diagonalise(b: Record) -> None:
    """(4)"""
    b.n = b.v + b.K.T @ b.receive("V").vector()


def undiagonalise(b: Record) -> None:
    """(4) for v"""
    b.speeds = b.n - b.K.T @ b.receive("V").vector()
    b.V = b.X.motion_inverse(b.receive("V")) + Motion.from_vector(b.S @ b.speeds)


def gain_in_world(b: Record) -> None:
    b.K_W = force_columns(b.receive("X_W"), b.K)


def _innovate(outer: Record, inner: Record) -> tuple[tuple[ca.SX, ca.SX], ...]:
    """Blocks of I + H phi K and of D, from the columns of the Jacobian and the gains, both in the world."""
    if outer is inner:
        unit = ca.SX.eye(outer.node.nv)
        return (unit, unit), (outer.D, outer.D)
    below = ca.SX(outer.node.nv, inner.node.nv)
    return (below, inner.columns.T @ outer.K_W), (below, below.T)


_ARTICULATE = (outward(rest), inward(eliminate), outward(gain))

OPERATORS = Program(
    "operators",
    {"q": "q"},
    (outward(place), *_ARTICULATE, outward(describe), outward(describe_articulated)),
    gravity=False,
    passive=False,
)
INNOVATIONS = Program(
    "innovations",
    {"q": "q"},
    (
        outward(place),
        outward(place_in_world),
        outward(subspace_in_world),
        *_ARTICULATE,
        outward(gain_in_world),
    ),
    pairs=Pairs(("L", "D"), _innovate),
    gravity=False,
    passive=False,
)
DIAGONALISING_VELOCITIES = Program(
    "diagonalising_velocities",
    {"q": "q", "v": "v"},
    (outward(place), outward(move), *_ARTICULATE, outward(diagonalise)),
    {"n": "v"},
    gravity=False,
    passive=False,
)
VELOCITIES_FROM_DIAGONAL = Program(
    "velocities_from_diagonal",
    {"q": "q", "n": "v"},
    (outward(place), *_ARTICULATE, outward(undiagonalise)),
    {"speeds": "v"},
    gravity=False,
    passive=False,
)
_ADMITTANCE = Program(
    "admittance",
    {"q": "q"},
    (outward(place), *_ARTICULATE, outward(propagate_admittance)),
    gravity=False,
    passive=False,
)


def admittance(tree: Tree, frames: Sequence[tuple[int, Pose]], q: ca.SX, parameters: ca.SX) -> ca.SX:
    """(5) for frames given by their nodes and poses on them, 6 rows and columns per frame."""
    records, _ = unroll(_ADMITTANCE, tree, {"q": q}, parameters)
    climbs: list[dict[int, ca.SX]] = []
    modal: list[dict[int, ca.SX]] = []
    """the forces on the modes of the nodes on the way, which couple branches that hang on the same body"""
    for node, X in frames:
        carried, climb, on_modes = Ad_dual(X), {}, {}
        for k in tree.ancestors[node] if node >= 0 else ():
            climb[k] = carried
            carried = records[k].psi @ carried
            if records[k].has("psi_P"):
                on_modes[tree.parents[k]] = records[k].T_P.T @ carried
                carried = records[k].psi_P @ carried
        climbs.append(climb)
        modal.append(on_modes)
    result = ca.SX(6 * len(frames), 6 * len(frames))
    for i, one in enumerate(climbs):
        for j, other in enumerate(climbs[: i + 1]):
            common = next((k for k in one if k in other), None)
            if common is not None:
                block = one[common].T @ records[common].Upsilon @ other[common]
                if common in modal[i] and common in modal[j]:
                    block = block + modal[i][common].T @ records[common].factor.solve(modal[j][common])
                result[6 * i : 6 * i + 6, 6 * j : 6 * j + 6] = block
                result[6 * j : 6 * j + 6, 6 * i : 6 * i + 6] = block.T
    return result
