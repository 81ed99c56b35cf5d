"""Beams in segments, for deflections that are not small against the length.

Modal segments bend: each has the shapes that move its tip. Rigid ones have joints between them. The bending and the twist
of each of k equal parts of the length h = L/k are then gathered in the middle of the part, in springs of

    EI_y / h,   EI_z / h,   GJ / h                                                                     (1)

so that bodies of the lengths h/2, h, ..., h, h/2 follow one another (rigid finite elements). Angles are the only
coordinates; the limit is Eisler's inextensible element. Errors are h^2, those of modal segments h^3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, scalar
from alembert.joints import Friction, JointType, Revolute, Spherical, Spring, Universal
from alembert.model.elements import SegmentChain
from alembert.model.inertia import Inertia
from alembert.model.modal import ModalBody
from alembert.model.placement import Placement

TENTHS = {f"0.{k}": k / 10 for k in range(1, 10)}
"""nodes that every beam has, by fractions of its length: for frames, loads and pictures"""
_OF_THE_WHOLE = ("segments", "length", "ends", "damping_ratio", "tip", "nodes")
"""arguments of a beam that its segments do not have in common"""
_AXES = {"GJ": (1.0, 0.0, 0.0), "EI_y": (0.0, 1.0, 0.0), "EI_z": (0.0, 0.0, 1.0)}


def modal(given: Mapping[str, Any], beam: Callable[..., Any]) -> SegmentChain:
    """Equal segments, made by `beam`; a node where two of them meet is the tip of the first."""
    count, length = given["segments"], given["length"]
    _check(given)
    own: list[dict[str, float]] = [{} for _ in range(count)]
    places: dict[str, tuple[int, Scalar | str]] = {"root": (0, "root"), "tip": (count - 1, "tip")}
    for name, xi in (TENTHS | dict(given["nodes"] or {})).items():
        check_fraction(name, xi)
        k = max(int(np.ceil(xi * count - 1e-12)) - 1, 0)
        own[k][name] = min(xi * count - k, 1.0)
        places[name] = (k, name)
    common = {name: value for name, value in given.items() if name not in _OF_THE_WHOLE}
    # what is no number is refused with the properties of the first segment
    part: Any = length / count if isinstance(length, int | float | np.number | Expression) else length
    parts: list[ModalBody] = [
        beam(part, **common, ends="craig-bampton", nodes=own[k], tip=given["tip"] if k == count - 1 else None)
        for k in range(count)
    ]
    # of the tenths, those of the whole
    kept = [
        dataclasses.replace(part, nodes=tuple(x for x in part.nodes if x.name in {"root", "tip", *own[k]}))
        for k, part in enumerate(parts)
    ]
    return SegmentChain(tuple(kept), places)


def rigid(given: Mapping[str, Any]) -> SegmentChain:
    """Rigid bodies with the springs (1) between them."""
    _check(given)
    count, offset = given["segments"], checked_offset(given["mass_offset"])
    L, line = (positive(name, given[name]) for name in ("length", "rhoA"))
    left_out = ("EA", "kGA_y", "kGA_z", "bending_y", "bending_z", "torsion", "axial")
    for name in left_out:
        if given[name]:
            raise ModelError(
                f"beam: rigid segments bend and twist at their joints; {name} is of modal ones (rigid=False)"
            )
    stiff = {name: positive(name, given[name]) for name in _AXES if given[name] is not None}
    if not stiff:
        raise ModelError("beam: rigid segments need the stiffness of their joints: EI_y, EI_z or GJ")
    polar = given["rhoI_y"] + given["rhoI_z"]
    if "GJ" in stiff and not polar + float(offset @ offset) > 0:
        raise ModelError("beam: torsion needs the sections' moments of inertia, rhoI_y or rhoI_z")
    a, b = given["damping"]
    if a:
        raise ModelError(
            f"beam: damping=({a!r}, {b!r}): joints between rigid segments take b K; a M is of modal ones"
        )
    h = L / count
    lengths: list[Scalar] = [h / 2, *[h] * (count - 1), h / 2]
    bodies = [_rod(x, line, given["rhoI_y"], given["rhoI_z"], offset) for x in lengths]
    if given["tip"] is not None:
        bodies[-1] = bodies[-1] + given["tip"].at(Placement((lengths[-1], 0.0, 0.0)))
    places: dict[str, tuple[int, Scalar | str]] = {}
    for name, xi in ({"root": 0.0, "tip": 1.0} | TENTHS | dict(given["nodes"] or {})).items():
        check_fraction(name, xi)
        # in parts: where it is, and where its segment begins
        at = xi * count
        k = min(max(int(np.floor(at + 0.5 - 1e-12)), 0), count)
        places[name] = (k, (at - max(k - 0.5, 0.0)) * h)
    springs = [x / h for x in stiff.values()]
    friction = Friction(tuple(b * x for x in springs)) if b else None
    hinge = _hinge([_AXES[name] for name in stiff])
    return SegmentChain(tuple(bodies), places, tuple(lengths), hinge, Spring(tuple(springs)), friction)


def _check(given: Mapping[str, Any]) -> None:
    count, ends, ratio = given["segments"], given["ends"], given["damping_ratio"]
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ModelError(f"beam: segments is {count!r}, expected a number of segments")
    if ends not in ("clamped", "craig-bampton"):
        raise ModelError(
            f"beam: segments={count} and ends={ends!r}: segments have shapes that move their tips"
        )
    if ratio:
        raise ModelError(
            f"beam: damping_ratio={ratio!r} is about the modes of the whole beam; with segments give damping=(a, b)"
        )


def _hinge(axes: list[tuple[float, ...]]) -> JointType:
    """About one axis, about two with z first, or about all."""
    if len(axes) == 3:
        return Spherical()
    return Revolute(axes[0]) if len(axes) == 1 else Universal(*axes)


def _rod(h: Scalar, line: Scalar, rhoI_y: float, rhoI_z: float, offset: np.ndarray) -> Inertia:
    m: Scalar = line * h
    long = m * h * h / 12
    tensor = ((rhoI_y + rhoI_z) * h, 0.0, long + rhoI_y * h, 0.0, 0.0, long + rhoI_z * h)
    return Inertia(m, (h / 2, float(offset[1]), float(offset[2])), tensor)


def positive(name: str, value: Any) -> Scalar:
    """A property of a beam: a positive number or an expression."""
    if isinstance(value, Expression):
        return value
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (np.isfinite(number) and number > 0):
        raise ModelError(f"beam: {name} is {value!r}, expected a positive number")
    return scalar(number, name)


def check_numbers(
    inertias: Mapping[str, Any], shears: Mapping[str, Any], damping: Any, tip: Any, nodes: Any
) -> None:
    """The other arguments of a beam."""
    for name, value in {**inertias, **shears}.items():
        if value is not None and not (_is_number(value) and value >= 0):
            raise ModelError(f"beam: {name} is {value!r}, expected a number that is not negative")
    if not (
        isinstance(damping, tuple | list | np.ndarray)
        and len(damping) == 2
        and all(isinstance(x, Expression) or _is_number(x) for x in damping)
    ):
        raise ModelError(f"beam: damping is {damping!r}, expected two numbers (a, b), of a M + b K")
    if tip is not None and not isinstance(tip, Inertia):
        raise ModelError(f"beam: tip is {tip!r}, expected an Inertia, given in a frame at the tip")
    if nodes is not None and not isinstance(nodes, Mapping):
        raise ModelError(f"beam: nodes is {nodes!r}, expected names with their fractions of the length")
    for name, place in (("root", 0.0), ("tip", 1.0)):
        if nodes and name in nodes and nodes[name] != place:
            raise ModelError(
                f"beam: node {name!r} is at {nodes[name]!r}; every beam has one of that name at {place:g}"
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and bool(np.isfinite(value))


def checked_offset(mass_offset: Any) -> np.ndarray:
    """(0, y, z)"""
    try:
        offset = np.array([0.0, *(float(x) for x in mass_offset)])
    except (TypeError, ValueError):
        offset = np.zeros(0)
    if offset.shape != (3,) or not np.isfinite(offset).all():
        raise ModelError(f"beam: mass_offset is {mass_offset!r}, expected two numbers, y and z")
    return offset


def check_fraction(name: str, xi: Any) -> None:
    if not (isinstance(xi, int | float) and 0 <= xi <= 1):
        raise ModelError(f"beam: node {name!r} is at {xi!r}, expected a fraction of the length, 0 to 1")
