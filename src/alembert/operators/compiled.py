"""What the operators give in O(n), for many configurations at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from alembert.algorithms import kernels
from alembert.algorithms.algorithm import Options, graph
from alembert.algorithms.evaluation import FrameLike, Parameters
from alembert.algorithms.frames import jacobian, pose
from alembert.algorithms.results import Innovations
from alembert.algorithms.table import TABLE
from alembert.engine.codegen import FunctionSource, KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.model import Model, Placement
from alembert.spatial import Pose
from alembert.sweeps import operators as steps
from alembert.sweeps.tree import Where

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
