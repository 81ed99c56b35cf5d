"""What no flexible body can have, and deflections that are too large for its modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert.errors import ModelError
from alembert.expression import evaluate, floats

if TYPE_CHECKING:
    from alembert.model.modal import ModalBody

Array = np.ndarray
SYMMETRY = 1e-9
"""how far a matrix may be from symmetric, relative to its largest entry: written digits"""
TABLE = 1e-6
"""how far integrals may be from the sums over the masses of the nodes, relative to the largest: written digits"""


def check(body: ModalBody, what: str, values: Mapping[str, float]) -> None:
    """Refuse what no body can have: matrices that are not symmetric and positive, modes that are not independent."""
    for name, matrix in (
        ("modal mass", body.modal_mass(values)),
        ("stiffness", body.array("stiffness", values)),
        ("damping", body.array("damping", values)),
        ("second_moment", body.array("second_moment", values)),
    ):
        size = np.abs(matrix).max(initial=0.0)
        gap = np.abs(matrix - matrix.T)
        if gap.max(initial=0.0) > SYMMETRY * size:
            i, j = (int(k) for k in np.unravel_index(int(gap.argmax()), gap.shape))
            raise ModelError(
                f"{what}: the matrix of {name} is not symmetric: entry [{i}, {j}] is {matrix[i, j]:.6g}, entry "
                f"[{j}, {i}] is {matrix[j, i]:.6g}"
            )
        least = np.linalg.eigvalsh((matrix + matrix.T) / 2).min(initial=0.0)
        if least < -SYMMETRY * size:
            raise ModelError(
                f"{what}: the matrix of {name} is not positive; it has an eigenvalue of {least:.6g}"
            )
    mass = body.modal_mass(values)
    scale = np.sqrt(np.diagonal(mass))
    if not np.all(scale > 0):
        mode = body.modes[int(np.argmin(scale))]
        raise ModelError(f"{what}: mode {mode!r} moves no mass")
    least = np.linalg.eigvalsh(mass / np.outer(scale, scale)).min()
    if least < 1e-10:
        raise ModelError(
            f"{what}: the modes are not independent; their mass matrix, scaled to a unit diagonal, has the eigenvalue "
            f"{least:.3g}, most of it in the modes {' and '.join(map(repr, _largest(body, mass, scale)))}"
        )
    _check_pairs(body, what, values)
    _check_total(body, what, values)
    _check_table(body, what, values)


def _largest(body: ModalBody, mass: Array, scale: Array) -> list[str]:
    """The two modes with the largest parts in the combination that moves least."""
    least = np.abs(np.linalg.eigh(mass / np.outer(scale, scale))[1][:, 0])
    return [body.modes[k] for k in np.sort(np.argsort(-least, kind="stable")[:2])]


def _check_pairs(body: ModalBody, what: str, values: Mapping[str, float]) -> None:
    """What belongs to two modes belongs to them in either order: chi_kl = chi_lk, D_kl = D_lk'."""
    D = body.array("pair_products", values)
    pairs = [("pair_products", D, np.transpose(D, (1, 0, 3, 2)))]
    for name in ("foreshortening_moments", "foreshortening_products"):
        if getattr(body, name) is not None:
            T = body.array(name, values)
            pairs.append((name, T, np.swapaxes(T, 0, 1)))
    for node in body.nodes:
        if node.foreshortening is not None:
            chi = floats(node.foreshortening, values)
            pairs.append((f"foreshortening of node {node.name!r}", chi, np.swapaxes(chi, 0, 1)))
        if node.turning is not None:
            turning = floats(node.turning, values)
            pairs.append((f"turning of node {node.name!r}", turning, np.swapaxes(turning, 0, 1)))
    for name, matrix, other in pairs:
        gap = np.abs(matrix - other).reshape(body.count, body.count, -1).max(axis=-1)
        if gap.max() > SYMMETRY * np.abs(matrix).max():
            k, l = (body.modes[int(i)] for i in np.unravel_index(gap.argmax(), gap.shape))
            raise ModelError(
                f"{what}: {name} of the modes {k!r} and {l!r} differ from those of {l!r} and {k!r}, by {gap.max():.3g}"
            )


def _check_total(body: ModalBody, what: str, values: Mapping[str, float]) -> None:
    """The mass matrix of the undeformed body, 6 + modes wide, is positive: then the integrals fit one another."""
    M = body.mass_matrix(np.zeros(body.count), values)
    least, size = np.linalg.eigvalsh(M).min(), np.abs(M).max()
    if least < -SYMMETRY * size:
        raise ModelError(
            f"{what}: its integrals over the mass do not fit one another: the mass matrix of body and modes has the "
            f"eigenvalue {least:.6g}"
        )


def _check_table(body: ModalBody, what: str, values: Mapping[str, float]) -> None:
    """Where the nodes have the mass of the body, the integrals are sums over them."""
    nodes = [node for node in body.nodes if node.mass is not None]
    if not nodes:
        return
    m, x, phi = (floats(tuple(getattr(n, f) for n in nodes), values) for f in ("mass", "position", "shapes"))
    sums = {
        "mass": m.sum(),
        "first_moment": m @ x,
        "second_moment": np.einsum("p,pi,pj->ij", m, x, x),
        "shape_moments": np.einsum("p,pki->ki", m, phi),
        "shape_products": np.einsum("p,pi,pkj->kij", m, x, phi),
        "pair_products": np.einsum("p,pki,plj->klij", m, phi, phi),
    }
    if all(node.foreshortening is not None for node in nodes):
        chi = floats(tuple(node.foreshortening for node in nodes), values)
        sums["foreshortening_moments"] = np.einsum("p,pkli->kli", m, chi)
        sums["foreshortening_products"] = np.einsum("p,pkli,pj->klij", m, chi, x)
    for name, expected in sums.items():
        if getattr(body, name) is None:
            continue
        given = body.array(name, values)
        gap = np.abs(given - expected)
        if gap.max() > TABLE * np.abs(expected).max():
            at = tuple(int(k) for k in np.unravel_index(int(gap.argmax()), gap.shape))
            entry = f"{name}[{', '.join(map(str, at))}]" if at else name
            raise ModelError(
                f"{what}: {entry} is {given[at]:.9g}, but the masses of its {len(nodes)} nodes give {expected[at]:.9g}; "
                "integrals and node table must be of the same body, in the same axes and units"
            )


def overbent(
    body: ModalBody,
    name: str,
    q: Any,
    values: Mapping[str, float] | None = None,
    *,
    limit: float = 1e-14,
    moved: Any = None,
) -> str | None:
    """The sentence for the worst of the deflections q (..., modes) of the body of that name, if one is too large.

    `moved` (..., 6, speeds) is how its frame can move, if not in every way.
    """
    x = np.reshape(np.asarray(q, dtype=float), (-1, body.count))
    ways = None if moved is None else np.reshape(np.asarray(moved, dtype=float), (len(x), 6, -1))
    least = body.least_inertia(x, values, moved=ways) if body.is_consistent else np.zeros(0)
    less = least.min(initial=0.0) < -limit
    share = 1.0
    if ways is not None and len(least):
        # steps do not come to where there is none left: accelerations grow without bound
        share = float(np.min(least / np.maximum(body.least_inertia(0 * x, values, moved=ways), 1e-6)))
        less = share < 0.4
    if not less:
        return None
    worst = x[int(np.argmin(least))]
    k = int(np.argmax(np.abs(worst)))
    takes = (
        f"make its inertia negative ({least.min():.2g} of what it is at rest)"
        if least.min() < 0
        else f"leave {share:.0%} of its inertia"
    )
    return (
        f"body {name!r} is deflected too far for its modes ({name}.{body.modes[k]} = {worst[k]:.3g}): there its "
        f"displacements of second order {takes}; cut it into segments (al.flexible.beam(..., segments=4)), make it stiffer, "
        "begin with less deflection, or give inertia to an axis that has none"
    )


HEAVY = 0.1
"""of the stiffness: what weight may take without the beam's mass knowing"""


def heavy(body: ModalBody, name: str, pull: Any, values: Mapping[str, float] | None = None) -> str | None:
    """The sentence for a beam so heavy that torsion with bending in its own mass matters, for weights per mass (..., 3).

    In its nodes torsion turns the plane of bending; its mass knows foreshortening alone (`alembert.flexible.beam`). What is
    left out, over the mass between the nodes, is a geometric stiffness, here against the stiffness of the modes.
    """
    nodes = [node for node in body.nodes if node.beyond is not None and node.foreshortening is not None]
    g = np.reshape(np.asarray(pull, dtype=float), (-1, 3))
    if not (body.is_consistent and len(nodes) > 1 and g.any()):
        return None
    nodes.sort(key=lambda node: float(evaluate(node.position[0], values or {})))
    mass = np.array([float(evaluate(node.beyond.mass, values or {})) for node in nodes])  # type: ignore[union-attr]
    between = -np.diff(mass)
    weights = (np.append(between, 0.0) + np.append(0.0, between)) / 2
    weights[-1] += mass[-1]
    chi = np.array([body.node_array(node.name, "foreshortening", values) for node in nodes])
    across = np.einsum("p,pkli->kli", weights, chi)[..., 1:]
    if not across.any():
        return None
    K = body.array("stiffness", values)
    most = max(
        np.abs(np.linalg.eigvals(np.linalg.solve(K, across @ x[1:]))).max() for x in np.unique(g, axis=0)
    )
    if not most > HEAVY:
        return None
    return (
        f"body {name!r} is heavy: torsion with bending in its own mass, which one body leaves out, would change its "
        f"stiffness by {most:.0%} (at 100 % it buckles sideways); cut it into segments (al.flexible.beam(..., segments=4))"
    )


def fastest_mode(model: Any, values: Mapping[str, float]) -> tuple[str, float]:
    """The mode of a model's flexible bodies that oscillates fastest while its frame is held, and how fast; rigid: 0."""
    found = ("", 0.0)
    for name in model.space.of_bodies:
        body = model.body(name).flexible
        frequency = float(body.frequencies(values)[-1])
        if frequency > found[1]:
            own = np.diagonal(body.array("stiffness", values)) / np.diagonal(body.modal_mass(values))
            found = f"{name}.{body.modes[int(np.argmax(own))]}", frequency
    return found
