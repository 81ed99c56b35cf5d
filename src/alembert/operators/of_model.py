"""The operators of a model at one configuration.

What the operators give in O(n), for many configurations at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import casadi as ca
import numpy as np

from alembert.algorithms import kernels
from alembert.algorithms.algorithm import Options, graph
from alembert.algorithms.evaluation import FrameLike, Parameters
from alembert.algorithms.frames import jacobian, pose
from alembert.algorithms.results import Innovations
from alembert.algorithms.table import TABLE
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, NumericalError
from alembert.model import Model, Placement
from alembert.operators.algebra import Blocks, I, Identity, Operator, Recursion, diagonal
from alembert.spatial import Ad_dual, Pose
from alembert.sweeps import operators as steps
from alembert.sweeps.program import unroll
from alembert.sweeps.tree import Tree, Where

Array = np.ndarray


def innovations(model: Model, q: Any, *, parameters: Parameters = None) -> Innovations:
    """The innovations factors of the mass matrix (lemma 0.1 of Rodriguez, Jain, Kreutz-Delgado 1992), for q (..., nq).

    Of a model with loops or couplings, those of `mass_matrix` in all coordinates: that of the tree. So are the speeds below.
    """
    return Innovations(*_run(model, "innovations", parameters, q))


def diagonalising_velocities(model: Model, q: Any, v: Any, *, parameters: Parameters = None) -> Array:
    """n = [I + H phi K]^T v, with which the kinetic energy is 1/2 n^T D n; (..., nv) in O(n)."""
    return _run(model, "diagonalising_velocities", parameters, q, v)


def velocities_from_diagonal(model: Model, q: Any, n: Any, *, parameters: Parameters = None) -> Array:
    """The speeds v of which `diagonalising_velocities` makes n."""
    return _run(model, "velocities_from_diagonal", parameters, q, n)


def admittance(model: Model, q: Any, frames: Sequence[FrameLike], *, parameters: Parameters = None) -> Array:
    """Lambda = J M^-1 J^T of several frames together, (..., 6 k, 6 k): accelerations due to wrenches on them.

    A frame is a name, or (name, placement) for a place on a body or frame; its six rows and columns are in
    its own axes about its origin. O(n) for the bodies, then one climb per frame and one product per pair. Loops and
    couplings hold: with them it is J E (E^T M E)^-1 E^T J^T, by dense solution.
    """
    if model.is_constrained:
        return _closed_admittance(model, q, frames, parameters)
    kernel = _admittance_kernel(model, model.compute.carriers("admittance", frames))
    return model.compute.checked(
        "admittance", kernel, model.compute.with_parameters("admittance", parameters, q)
    )


_PROGRAMS = {
    program.name: program
    for program in (steps.INNOVATIONS, steps.DIAGONALISING_VELOCITIES, steps.VELOCITIES_FROM_DIAGONAL)
}


def _closed_admittance(model: Model, q: Any, frames: Sequence[FrameLike], parameters: Parameters) -> Array:
    places = model.compute.carriers("admittance", frames)
    found = model.constrained_compute.reduction("admittance", "independent", q, parameters)
    s, M = found.s, found.mass_matrix().reshape(-1, *2 * found.E.shape[-1:])
    columns, X_W = model.compute.kernel("subspaces")(s.q, *s.last)
    parts = []
    for node, place in places:
        if node < 0:
            parts.append(np.zeros((len(s), 6, model.nv)))
            continue
        X = pose(X_W, node, _offset(model, place, s.parameters))
        parts.append(jacobian(columns, model.compute.tree.support[node], X, "local"))
    X = np.concatenate(parts, axis=1) @ found.E
    result = X @ np.linalg.solve(M, np.swapaxes(X, -1, -2))
    return result.reshape(*s.shape, *result.shape[1:])


def _offset(model: Model, place: Where, parameters: Array | None) -> Pose:
    """A place on its body, at each row of the parameters."""
    if parameters is None:
        return place.pose()
    found = [place.pose(dict(zip(model.parameter_values, row, strict=True))) for row in parameters.tolist()]
    return Pose(np.array([X.rotation for X in found]), np.array([X.translation for X in found]))


def _run(model: Model, name: str, parameters: Parameters, *given: Any) -> Any:
    return model.compute.checked(
        name, _kernel(model, name), model.compute.with_parameters(name, parameters, *given)
    )


@lru_cache(maxsize=64)
def _kernel(model: Model, name: str) -> Kernel:
    program = _PROGRAMS[name]
    return kernels.program_kernel(model, model.compute.tree, program, tuple(program.given))


@lru_cache(maxsize=64)
def _admittance_kernel(model: Model, located: tuple[tuple[int, Placement], ...]) -> Kernel:
    inputs = kernels.arguments(model, model.compute.tree, steps.OPERATORS, ("q",))

    def build() -> KernelSource:
        return FunctionSource(graph(model, TABLE["admittance"], Options(frames=located)).function)

    size = 6 * len(located)
    key = f"{model.fingerprint}:admittance:{located!r}"
    return Kernel("admittance", inputs, [Argument("Lambda", (size, size))], key=key, build=build)


@dataclass(frozen=True, eq=False)
class SpatialOperators:
    """The operators of a model at one configuration, by their names in 002: those of its tree, whatever loops it has.

    J_r and R are what armature and rotors add: D = H P H^T + J_r, K = E_phi G + R D^-1. Both are zero for a
    tree of plain bodies, and only then do tau_bar P = tau_bar P tau_bar^T, E_psi = E_phi tau_bar,
    M = P - E_psi P E_psi^T and H psi M psi^T H^T = D hold. Everything else here holds always.
    """

    model: Model
    parameters: Mapping[str, float]
    H: Blocks
    M: Blocks
    E_phi: Blocks
    P: Blocks
    D: Blocks
    G: Blocks
    K: Blocks
    Upsilon: Blocks
    J_r: Blocks
    R: Blocks
    I: ClassVar[Identity] = I

    @cached_property
    def phi(self) -> Recursion:
        """(I - E_phi)^-1: composite bodies, all joints locked."""
        return Recursion(self.E_phi)

    @cached_property
    def tau_bar(self) -> Operator:
        """I - G H."""
        return I - self.G @ self.H

    @cached_property
    def E_psi(self) -> Blocks:
        """E_phi - K H."""
        E = self.E_phi - self.K @ self.H
        assert isinstance(E, Blocks)
        return E

    @cached_property
    def psi(self) -> Recursion:
        """(I - E_psi)^-1: articulated bodies, all joints free."""
        return Recursion(self.E_psi)

    @cached_property
    def Omega(self) -> Operator:
        """psi^T H^T D^-1 H psi: the bodies' accelerations due to forces on them. Its diagonal is Upsilon."""
        X = self.H @ self.psi
        return X.T @ self.D.inverse @ X

    @cached_property
    def mass_matrix(self) -> Operator:
        """[I + H phi K] D [I + H phi K]^T; its inverse is lemma 0.3."""
        L = I + self.H @ self.phi @ self.K
        return L @ self.D @ L.T

    def B(self, frames: Sequence[FrameLike]) -> Blocks:
        """From forces at frames (frame axes, about their origins) to forces on bodies: J = B^T phi^T H^T."""
        entries = {}
        for j, (node, placement) in enumerate(self.model.compute.carriers("B", frames)):
            if node >= 0:
                width = self.M.rows[node] - 6  # forces on the frame of a body with modes are none on these
                entries[node, j] = np.vstack([Ad_dual(placement.pose(self.parameters)), np.zeros((width, 6))])
        return Blocks(self.M.rows, (6,) * len(frames), entries)

    def jacobian(self, frames: Sequence[FrameLike]) -> Operator:
        """From speeds to the velocities of frames, in frame axes at their origins."""
        return (self.H @ self.phi @ self.B(frames)).T


def operators(model: Model, q: Any, *, parameters: Mapping[str, float] | None = None) -> SpatialOperators:
    """The spatial operators at one configuration q (nq,)."""
    x = model.compute.numbers("operators", "q", q)
    if x.shape != (model.nq,):
        raise ArgumentError(f"operators: q has shape {x.shape}, expected ({model.nq},), one configuration")
    if not np.all(np.isfinite(x)):
        raise ArgumentError("operators: q is not finite")
    tree, function = _function(model)
    given = model.compute.with_parameters("operators", parameters, x)
    values = [value.full() for value in function.call([ca.DM(value) for value in given])]
    pivots = values[_PARTS.index("D") :: len(_PARTS)]
    if not all(np.isfinite(x).all() for x in values) or any(
        not np.linalg.eigvalsh(D).min(initial=1.0) > 0 for D in pivots
    ):
        raise NumericalError(
            f"operators: the result is not finite; {model.compute.trouble(x, parameters or {})}"
        )
    count = len(_PARTS)
    found = {name: values[k::count] for k, name in enumerate(_PARTS)}
    widths = [len(M) for M in found["M"]]

    def to_parent(blocks: Sequence[Array]) -> Blocks:
        entries = {}
        for k, parent in enumerate(tree.parents):
            if (
                parent >= 0
            ):  # on the frame of a body with modes, which do not move it, there are none on these
                block = blocks[k]
                entries[parent, k] = np.vstack(
                    [block, np.zeros((widths[parent] - len(block), block.shape[1]))]
                )
        return Blocks(tuple(widths), tuple(block.shape[1] for block in blocks), entries)

    S, P, D = found["S"], found["P_matrix"], found["D"]
    E_phi, R = to_parent(found["phi"]), to_parent(found["coupling"])
    inverses = [np.linalg.inv(d) for d in D]
    gains = [p @ s @ d for p, s, d in zip(P, S, inverses, strict=True)]
    K = [
        phi @ g + r @ d for phi, g, r, d in zip(found["phi"], gains, found["coupling"], inverses, strict=True)
    ]
    G, H, K_blocks = diagonal(gains), diagonal([s.T for s in S]), to_parent(K)
    E_psi = E_phi - K_blocks @ H
    assert isinstance(E_psi, Blocks)
    Upsilon: list[Array] = []
    for k, parent in enumerate(tree.parents):  # (3) of `alembert.sweeps.operators`
        own = S[k] @ inverses[k] @ S[k].T
        if parent >= 0:
            psi = E_psi.entries[parent, k]
            own = own + psi.T @ Upsilon[parent] @ psi
        Upsilon.append((own + own.T) / 2)
    return SpatialOperators(
        model,
        dict(zip(model.parameter_values, given[1].tolist(), strict=True)) if model.parameters else {},
        H=H,
        M=diagonal(found["M"]),
        E_phi=E_phi,
        P=diagonal(P),
        D=diagonal(D),
        G=G,
        K=K_blocks,
        Upsilon=diagonal(Upsilon),
        J_r=diagonal([np.diag(x[:, 0]) for x in found["reflected"]]),
        R=R,
    )


_PARTS = ("phi", "M", "P_matrix", "S", "D", "coupling", "reflected")


@lru_cache(maxsize=32)
def _function(model: Model) -> tuple[Tree, ca.Function]:
    """From q and the parameters to the matrices of each node, one node after the other."""
    tree, q = model.compute.tree, ca.SX.sym("q", model.nq)
    records, _ = unroll(steps.OPERATORS, tree, {"q": q}, tree.parameter_symbols)
    outputs = [ca.densify(getattr(record, name)) for record in records for name in _PARTS]
    inputs = [q, tree.parameter_symbols] if model.parameters else [q]
    return tree, ca.Function("operators", inputs, outputs)
