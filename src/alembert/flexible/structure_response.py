"""Frequency responses of structures of many unknowns, from their lowest modes and what the others do statically.

    G(jw) = C [ sum_k phi_k phi_k' / (w_k^2 - w^2 + 2 j zeta_k w_k w) + K^-1 - sum_k phi_k phi_k' / w_k^2 ] F        (1)

The last two terms are the residual flexibility of the modes left out (quasi-static correction).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from alembert import arguments
from alembert.control.responses import FrequencyResponse
from alembert.errors import ArgumentError
from alembert.flexible.component_modes import interface, normal_modes
from alembert.flexible.finite_elements import DIRECTIONS, FiniteElements

Array = np.ndarray


def structure_response(
    fe: FiniteElements,
    forces: Mapping[str, tuple[Any, str]],
    sensors: Mapping[str, tuple[Any, str]],
    frequency: Any,
    *,
    held: Any,
    modes: int = 20,
    damping_ratio: Any = 0.005,
) -> FrequencyResponse:
    """(1) for forces and displacements by name with a node (or nodes) and directions; the nodes `held` are at rest."""
    w = np.atleast_1d(arguments.numbers("structure_response", "frequency", frequency))
    F, inputs = _rows(fe, forces)
    C, outputs = _rows(fe, sensors)
    found = normal_modes(fe, modes, held=held)
    Phi = found.shapes
    own = np.sqrt(np.einsum("ij,ij->j", Phi, fe.K @ Phi))
    zeta = np.broadcast_to(np.asarray(damping_ratio, dtype=float), own.shape)
    if not (zeta >= 0).all() or ((zeta == 0).any() and np.isin(w, own).any()):
        raise ArgumentError(
            f"structure_response: damping_ratio is {damping_ratio!r}, expected positive numbers"
        )
    static = C @ fe.static(F.T, fe.unknowns(held))
    c, f = C @ Phi, F @ Phi
    weights = 1 / (own**2 - w[:, None] ** 2 + 2j * zeta * own * w[:, None]) - 1 / own**2
    response = np.einsum("wk,ok,ik->woi", weights, c, f, optimize=True) + static
    return FrequencyResponse(w, response, outputs, inputs)


def _rows(fe: FiniteElements, places: Mapping[str, tuple[Any, str]]) -> tuple[Array, tuple[str, ...]]:
    rows, names = [], []
    for name, (nodes, directions) in places.items():
        motion = interface(fe, nodes).motion
        for d in directions.split():
            if d not in DIRECTIONS:
                raise ArgumentError(
                    arguments.unknown(f"structure_response: {name!r} has no direction", d, DIRECTIONS)
                )
            rows.append(motion[[DIRECTIONS.index(d)]].toarray()[0])
            names.append(f"{name}_{d}" if len(directions.split()) > 1 else name)
    if not rows:
        raise ArgumentError("structure_response: no forces or no sensors")
    return np.array(rows), tuple(names)
