"""Beams as modal bodies, from their properties.

A beam lies along x from the origin to (L, 0, 0). With xi = x/L each field is a polynomial in xi, found by Rayleigh and
Ritz's method on Legendre polynomials of a degree that leaves ten digits right; integrals are by Gauss points, exact for
polynomials. For bending along y (along z alike; w' - L theta is the shear angle of a Timoshenko beam):

    V = 1/2 EI/L int theta'^2 + 1/2 kGA/L int (w' - L theta)^2       Euler-Bernoulli: theta = w'/L            (1)
    T = 1/2 rhoA L int w_t^2 + 1/2 rhoI L int theta_t^2 + the tip body's                                     (2)

    V = 1/2 GJ/L int theta'^2,  V = 1/2 EA/L int u'^2                torsion and axial displacement           (3)

    chi_kl = -e_x 1/L int_0^xi (w_k' w_l') in each plane             foreshortening of the centre line        (4)

Coordinates are displacements (bending, axial, in metres) or angles (torsion) where the shape is largest: at the tip for
clamped modes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, overload

import numpy as np
import scipy.linalg
from numpy.polynomial import legendre

from alembert.errors import ModelError
from alembert.expression import Expression, Scalar
from alembert.model.inertia import Inertia
from alembert.model.modal import ModalBody, ModalNode, Stiffening
from alembert.model.modal_chain import ModalChain

Array = np.ndarray
Ends = Literal["clamped", "free", "pinned", "craig-bampton"]
ENDS = ("clamped", "free", "pinned", "craig-bampton")
DEGREES = 16
"""polynomials beyond the number of modes: the n-th frequency is then right to some ten digits"""
ROUNDING = 1e-9
"""of the modes, which come from an eigenproblem of condition 1e6"""
TENTHS = {f"0.{k}": k / 10 for k in range(1, 10)}
"""nodes that every beam has, by fractions of its length: for frames, loads and pictures"""
MOST = 20
"""modes of a family: the polynomials of higher degree that more would need lose digits"""


@dataclass(frozen=True)
class _Basis:
    """Legendre polynomials on [0, 1] at Gauss points: values, slopes and curvatures with respect to xi."""

    degree: int

    @property
    def points(self) -> tuple[Array, Array]:
        """xi and weights, exact for products of three polynomials"""
        return _gauss(3 * self.degree // 2 + 4)

    def at(self, xi: Any, derivative: int = 0) -> Array:
        """points x polynomials"""
        found = legendre.legvander(2 * np.atleast_1d(np.asarray(xi, dtype=float)) - 1, self.degree)
        for _ in range(derivative):
            found = found @ _derivative(self.degree + 1)
        return found


@cache
def _gauss(count: int) -> tuple[Array, Array]:
    x, w = legendre.leggauss(count)
    return (x + 1) / 2, w / 2


@dataclass(frozen=True)
class _Shapes:
    """Modes of one family as polynomials, by columns: `w` the displacement, `turn` the rotation of the section."""

    kind: str
    names: tuple[str, ...]
    basis: _Basis
    w: Array
    turn: Array
    """radians per unit of the mode"""
    stiffness: Array
    rigidity: float
    """EI, GJ or EA"""
    shear: float | None = None
    """kGA of a Timoshenko beam"""

    def at(self, xi: Any) -> tuple[Array, Array, Array]:
        """points x modes x 3: displacement and rotation of the section, and slopes dw/dx (points x modes x 3, times L)"""
        P, P1 = self.basis.at(xi), self.basis.at(xi, 1)
        w, slope, turn = P @ self.w, P1 @ self.w, P @ self.turn
        return (
            _along(_DISPLACES[self.kind], w),
            _along(_TURNS[self.kind], turn),
            _along(_DISPLACES[self.kind], slope),
        )

    def loads(self, xi: float, L: float) -> Array:
        """Moment and force in a section per unit of each mode (modes x 6): EI theta', kGA (w' - theta) or -(EI w'')', ..."""
        slope, bend, third = (
            (self.basis.at(xi, k) @ part)[0] for k, part in ((1, self.w), (1, self.turn), (3, self.w))
        )
        if self.kind == "axial":
            force, moment = self.rigidity * slope / L, 0 * bend
        elif self.kind == "torsion":
            force, moment = 0 * slope, self.rigidity * bend / L
        else:
            moment = self.rigidity * bend / L
            angle = slope / L - (self.basis.at(xi) @ self.turn)[0]
            force = -self.rigidity * third / L**3 if self.shear is None else self.shear * angle
        turns, displaces = (np.array(x[self.kind], dtype=float) for x in (_TURNS, _DISPLACES))
        return np.hstack([moment[:, None] * turns, force[:, None] * displaces])


_DISPLACES = {"bending_y": (0, 1, 0), "bending_z": (0, 0, 1), "torsion": (0, 0, 0), "axial": (1, 0, 0)}
_TURNS = {"bending_y": (0, 0, 1), "bending_z": (0, -1, 0), "torsion": (1, 0, 0), "axial": (0, 0, 0)}


def _along(axis: tuple[int, ...], values: Array) -> Array:
    return values[:, :, None] * np.array(axis, dtype=float)


@overload
def beam(length: Scalar, rhoA: Scalar, *, segments: None = None, **properties: Any) -> ModalBody: ...


@overload
def beam(length: Scalar, rhoA: Scalar, *, segments: int, **properties: Any) -> ModalChain: ...


def beam(  # type: ignore[misc]
    length: Scalar,
    rhoA: Scalar,
    *,
    EI_y: Scalar | None = None,
    EI_z: Scalar | None = None,
    GJ: Scalar | None = None,
    EA: Scalar | None = None,
    bending_y: int = 0,
    bending_z: int = 0,
    torsion: int = 0,
    axial: int = 0,
    ends: Ends = "clamped",
    rhoI_y: float = 0.0,
    rhoI_z: float = 0.0,
    kGA_y: float | None = None,
    kGA_z: float | None = None,
    tip: Inertia | None = None,
    damping_ratio: float = 0.0,
    damping: tuple[float, float] = (0.0, 0.0),
    nodes: Mapping[str, float] | None = None,
    stiffening: Stiffening = "consistent",
    segments: int | None = None,
) -> ModalBody | ModalChain:
    """A uniform beam along x, its frame at the root.

    `bending_y` counts modes that displace along y (their stiffness is EI_z, about z), `bending_z` along z (EI_y),
    `torsion` about and `axial` along x. `rhoI_y`, `rhoI_z` are the sections' moments of inertia about y and z per
    length; torsion needs one. `kGA_y`, `kGA_z` make it a Timoshenko beam for displacements along y and z. `ends` says
    which modes: of a beam clamped at its root, free, pinned at its root, or Craig and Bampton's (that many fixed at
    both ends, and the shapes that move the tip). `tip` is a body fixed to the tip, given in a frame at (L, 0, 0); it
    shares the modes.

    `damping_ratio` is that of every mode; `damping` (a, b) adds a M + b K. `nodes` names places by their fraction of
    the length; "root", "0.1" to "0.9" and "tip" are always there. Length, rhoA, EI, GJ and EA may be expressions of
    parameters, unless there is a tip body, rotary inertia, shear or a damping ratio.

    With `segments` the beam is cut into that many equal ones, each with the shapes that move its tip (and the modes counted
    here besides), for deflections that are not small against the length. It then is a chain of bodies, which
    `ModelBuilder.body` takes in the place of one.
    """
    if segments is not None:
        common = {name: value for name, value in locals().items() if name not in _OF_THE_WHOLE}
        return _cut(segments, length, ends, damping_ratio, tip, nodes or {}, common)
    properties = {"length": length, "rhoA": rhoA, "EI_y": EI_y, "EI_z": EI_z, "GJ": GJ, "EA": EA}
    needed = {"bending_y": "EI_z", "bending_z": "EI_y", "torsion": "GJ", "axial": "EA"}
    counts = {"bending_y": bending_y, "bending_z": bending_z, "torsion": torsion, "axial": axial}
    _check_properties(properties, counts, needed, ends)
    if torsion and not rhoI_y + rhoI_z > 0:
        raise ModelError("beam: torsion needs the sections' moments of inertia, rhoI_y or rhoI_z")
    for name, given, inertia in (("kGA_y", kGA_y, rhoI_z), ("kGA_z", kGA_z, rhoI_y)):
        if given is not None and not (given > 0 and inertia > 0):
            raise ModelError(
                f"beam: {name}={given!r}: a Timoshenko beam needs a positive one, and its sections' moment of inertia"
            )
    symbolic = [name for name, value in properties.items() if isinstance(value, Expression)]
    if symbolic:
        numeric_only = {
            "tip": tip is not None,
            "rhoI_y": rhoI_y,
            "rhoI_z": rhoI_z,
            "kGA_y": kGA_y,
            "kGA_z": kGA_z,
        }
        numeric_only |= {"damping_ratio": damping_ratio}
        for name, given in numeric_only.items():
            if given:
                raise ModelError(
                    f"beam: {symbolic[0]} is an expression of parameters; with {name} it must be a number, because "
                    "the shapes or the damping depend on its value"
                )
        ones: dict[str, Any] = {"EI_y": 1.0, "EI_z": 1.0, "GJ": 1.0, "EA": 1.0, **counts}
        unit = beam(
            1.0,
            1.0,
            **ones,
            ends=ends,
            nodes=nodes,
            stiffening=stiffening,
        )
        return _scaled(unit, properties, damping)
    values = {name: float(value) for name, value in properties.items() if value is not None}  # type: ignore[arg-type]
    L, line = values["length"], values["rhoA"]
    gyration = {"bending_y": rhoI_z, "bending_z": rhoI_y, "torsion": rhoI_y + rhoI_z, "axial": 0.0}
    shear = {"bending_y": kGA_y, "bending_z": kGA_z, "torsion": None, "axial": None}
    families = [
        _family(kind, n, values[needed[kind]], L, line, gyration[kind], shear[kind], ends, tip)
        for kind, n in counts.items()
        if n or (ends == "craig-bampton" and properties[needed[kind]] is not None)
    ]
    if not families:
        raise ModelError(
            "beam: no modes; give bending_y, bending_z, torsion or axial, or make it rigid with an Inertia"
        )
    masses, positions, shapes, chi = _points(families, L, line, rhoI_y, rhoI_z, tip)
    places = [
        _node(name, xi, families, L)
        for name, xi in ({"root": 0.0} | TENTHS | {"tip": 1.0} | dict(nodes or {})).items()
    ]
    K = _clean(scipy.linalg.block_diag(*(family.stiffness for family in families)))
    body = ModalBody.of_points(
        masses,
        positions,
        shapes,
        stiffness=K,
        foreshortening=chi,
        nodes=places,
        modes=[name for family in families for name in family.names],
        attachment="root",
        stiffening=stiffening,
        units=[_unit(name) for family in families for name in family.names],
    )
    fields: dict[str, Any] = {name: _clean(body.array(name)) for name in _POWERS}
    body = dataclasses.replace(body, **fields)
    C: Any = _clean(body.damped(damping_ratio, rayleigh=damping).array("damping"))
    return dataclasses.replace(body, damping=C)


_OF_THE_WHOLE = ("segments", "length", "ends", "damping_ratio", "tip", "nodes")
"""arguments of a beam that its segments do not have in common"""


def _cut(
    count: int,
    length: Scalar,
    ends: str,
    damping_ratio: float,
    tip: Inertia | None,
    nodes: Mapping[str, float],
    given: Mapping[str, Any],
) -> ModalChain:
    """Equal segments; a node where two of them meet is the tip of the first."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ModelError(f"beam: segments is {count!r}, expected a number of segments")
    if ends not in ("clamped", "craig-bampton"):
        raise ModelError(
            f"beam: segments={count} and ends={ends!r}: segments have shapes that move their tips"
        )
    if damping_ratio:
        raise ModelError(
            f"beam: damping_ratio={damping_ratio!r} is about the modes of the whole beam; with segments give damping=(a, b)"
        )
    part: Any = length  # what is no number is refused with the properties of the first segment
    if isinstance(length, Expression):
        part = Expression(f"({length.text}) / {count}")
    elif isinstance(length, int | float | np.number):
        part = length / count
    own: list[dict[str, float]] = [{} for _ in range(count)]
    places = {"root": (0, "root"), "tip": (count - 1, "tip")}
    for name, xi in (TENTHS | dict(nodes)).items():
        _check_fraction(name, xi)
        k = max(int(np.ceil(xi * count - 1e-12)) - 1, 0)
        own[k][name] = min(xi * count - k, 1.0)
        places[name] = (k, name)
    parts = [
        beam(part, **given, ends="craig-bampton", nodes=own[k], tip=tip if k == count - 1 else None)
        for k in range(count)
    ]
    # of the tenths, those of the whole
    kept = [
        dataclasses.replace(part, nodes=tuple(x for x in part.nodes if x.name in {"root", "tip", *own[k]}))
        for k, part in enumerate(parts)
    ]
    return ModalChain(tuple(kept), places)


def _unit(mode: str) -> str:
    return "rad" if mode.startswith("torsion") or mode.endswith("_slope") else "m"


def _clean(values: Array) -> Array:
    """Zeros for what orthogonality makes zero but for rounding: they cost no operations."""
    return np.where(np.abs(values) > ROUNDING * np.abs(values).max(initial=0.0), values, 0.0)


def _check_properties(
    properties: Mapping[str, Scalar | None], counts: Mapping[str, int], needed: Mapping[str, str], ends: str
) -> None:
    if ends not in ENDS:
        raise ModelError(f"beam: ends is {ends!r}, expected {', '.join(map(repr, ENDS))}")
    for name, value in properties.items():
        if isinstance(value, Expression) or (value is None and name not in ("length", "rhoA")):
            continue
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = float("nan")
        if not (np.isfinite(number) and number > 0):
            raise ModelError(f"beam: {name} is {value!r}, expected a positive number")
    for kind, n in counts.items():
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ModelError(f"beam: {kind} is {n!r}, expected a number of modes")
        if n and properties[needed[kind]] is None:
            raise ModelError(f"beam: {kind}={n} needs {needed[kind]}")
        if n > MOST:
            raise ModelError(f"beam: {kind} is {n}, expected at most {MOST} modes")


def _family(
    kind: str,
    n: int,
    stiffness: float,
    L: float,
    line: float,
    gyration: float,
    shear: float | None,
    ends: str,
    tip: Inertia | None,
) -> _Shapes:
    """The modes of one family, (1)-(3)."""
    basis = _Basis(n + DEGREES)
    xi, weights = basis.points
    P, P1, P2 = (basis.at(xi, k) for k in range(3))
    end, end1 = basis.at(1.0), basis.at(1.0, 1)
    root, root1 = basis.at(0.0), basis.at(0.0, 1)
    N = P.shape[1]

    def integral(a: Array, b: Array) -> Array:
        return (a.T * weights) @ b

    bends = kind.startswith("bending")
    if not bends:
        # one unknown: the angle, or the displacement
        K = stiffness / L * integral(P1, P1)
        M = (gyration if kind == "torsion" else line) * L * integral(P, P)
        if tip is not None:
            moment = float(np.asarray(tip.matrix())[0, 0]) if kind == "torsion" else float(tip.mass)  # type: ignore[arg-type]
            M = M + moment * end.T @ end
        held, moves, rigid = root, end, 1 if ends == "free" else 0
        w, turn = (np.zeros((N, N)), np.eye(N)) if kind == "torsion" else (np.eye(N), np.zeros((N, N)))
    elif shear is None:
        # w; theta = w'/L
        slope = P1 / L
        K = stiffness / L**3 * integral(P2, P2)
        M = line * L * integral(P, P) + gyration * L * integral(slope, slope)
        held, moves = np.vstack([root, root1]), np.vstack([end, end1 / L])
        if tip is not None:
            M = M + _tip_mass(tip, kind, end, end1 / L)
        rigid = {"free": 2, "pinned": 1}.get(ends, 0)
        w, turn = np.eye(N), _derivative(N) / L
    else:
        # w and theta L
        zero = np.zeros_like(P)
        bend, angle = np.hstack([zero, P1]) / L, np.hstack([P1, -P])
        K = stiffness / L * integral(bend, bend) + shear / L * integral(angle, angle)
        both, theta = np.hstack([P, zero]), np.hstack([zero, P]) / L
        M = line * L * integral(both, both) + gyration * L * integral(theta, theta)
        o = np.zeros_like(root)
        held = np.block([[root, o], [o, root]])
        moves = np.block([[end, o], [o, end / L]])
        if tip is not None:
            M = M + _tip_mass(tip, kind, np.hstack([end, o]), np.hstack([o, end / L]))
        rigid = {"free": 2, "pinned": 1}.get(ends, 0)
        w, turn = np.hstack([np.eye(N), np.zeros((N, N))]), np.hstack([np.zeros((N, N)), np.eye(N)]) / L
    conditions = {
        "clamped": held,
        "pinned": held[:1],
        "free": held[:0],
        "craig-bampton": np.vstack([held, moves]),
    }[ends]
    Z = scipy.linalg.null_space(conditions) if len(conditions) else np.eye(K.shape[0])
    _, vectors = scipy.linalg.eigh(Z.T @ K @ Z, Z.T @ M @ Z)
    found = Z @ vectors[:, rigid : rigid + n]
    names = [f"{kind}_{k + 1}" for k in range(n)]
    found = found / _largest(basis, (turn if kind == "torsion" else w) @ found)
    if ends == "craig-bampton":
        static = _static_shapes(K, held, moves)
        found = np.hstack([static, found])
        names = [f"{kind}_tip", f"{kind}_slope"][: len(moves)] + names
    return _Shapes(
        kind, tuple(names), basis, w @ found, turn @ found, _symmetric(found.T @ K @ found), stiffness, shear
    )


def _tip_mass(tip: Inertia, kind: str, end: Array, angle: Array) -> Array:
    """Of a body at the tip that moves in the plane of bending."""
    m, offset = float(tip.mass), float(tip.com[0])  # type: ignore[arg-type]
    J = np.asarray(tip.matrix())[2, 2] if kind == "bending_y" else np.asarray(tip.matrix())[1, 1]
    moved = end + offset * angle
    return m * moved.T @ moved + J * angle.T @ angle


@cache
def _derivative(N: int) -> Array:
    """The matrix that differentiates a Legendre series with respect to xi."""
    D = np.zeros((N, N))
    for k in range(1, N):
        c = np.zeros(k + 1)
        c[k] = 1.0
        d = legendre.legder(c) * 2.0
        D[: len(d), k] = d
    return D


def _largest(basis: _Basis, coefficients: Array) -> Array:
    """The largest value of each shape, with its sign."""
    values = basis.at(np.linspace(0.0, 1.0, 401)) @ coefficients
    # of values that are equal but for rounding, the one nearest to the tip
    size = np.abs(values)
    at = [int(np.flatnonzero(column >= (1 - 1e-6) * column.max())[-1]) for column in size.T]
    return values[at, np.arange(values.shape[1])]


def _static_shapes(K: Array, held: Array, moves: Array) -> Array:
    """Unit motions of the tip with the root held, at least energy."""
    conditions = np.vstack([held, moves])
    count = len(conditions)
    system = np.block([[K, conditions.T], [conditions, np.zeros((count, count))]])
    right = np.zeros((len(system), len(moves)))
    right[-len(moves) :] = np.eye(len(moves))
    return np.linalg.solve(system, right)[: len(K)]


def _symmetric(K: Array) -> Array:
    return (K + K.T) / 2


def _sections(families: list[_Shapes], xi: Array, L: float) -> tuple[Array, Array, Array]:
    """Displacements and rotations of the sections, and chi of the centre line, (4)."""
    displaced, turned, _ = _joined(families, xi)
    chi = np.zeros((len(xi), displaced.shape[1], displaced.shape[1], 3))
    nodes, weights = _finest(families)
    for p, end in enumerate(xi):
        slopes = _joined(families, end * nodes)[2][:, :, 1:]
        chi[p, :, :, 0] = -end / L * np.einsum("p,pki,pli->kl", weights, slopes, slopes)
    return displaced, turned, chi


def _joined(families: list[_Shapes], xi: Array) -> tuple[Array, Array, Array]:
    parts = [family.at(xi) for family in families]
    return tuple(np.concatenate(each, axis=1) for each in zip(*parts, strict=True))  # type: ignore[return-value]


def _finest(families: list[_Shapes]) -> tuple[Array, Array]:
    return max((f.basis for f in families), key=lambda basis: basis.degree).points


def _carried(displaced: Array, turned: Array, chi: Array, offset: Array) -> tuple[Array, Array]:
    """phi and chi of points fixed to sections at an offset, which turn with them: phi + psi x d, chi + psi x (psi x d)."""
    arm = np.cross(turned, offset)
    second = np.cross(turned[:, :, None], arm[:, None, :])
    return displaced + arm, chi + (second + np.swapaxes(second, 1, 2)) / 2


def _points(
    families: list[_Shapes], L: float, line: float, rhoI_y: float, rhoI_z: float, tip: Inertia | None
) -> tuple[Array, Array, Array, Array]:
    """Masses, places, phi and chi: the points of quadrature, four to a section with inertia, and the tip body's."""
    xi, weights = _finest(families)
    fields = _sections(families, xi, L)
    center = np.zeros((len(xi), 3))
    center[:, 0] = L * xi
    parts = []
    if rhoI_y or rhoI_z:
        y, z = np.sqrt(2 * rhoI_z / line), np.sqrt(2 * rhoI_y / line)
        for offset in ((0.0, y, 0.0), (0.0, -y, 0.0), (0.0, 0.0, z), (0.0, 0.0, -z)):
            d = np.array(offset)
            parts.append((line * L * weights / 4, center + d, *_carried(*fields, d)))
    else:
        parts.append((line * L * weights, center, fields[0], fields[2]))
    if tip is not None:
        end = _sections(families, np.ones(1), L)
        for mass, place in _point_masses(tip):
            parts.append((np.array([mass]), np.array([[L, 0.0, 0.0]]) + place, *_carried(*end, place)))
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))  # type: ignore[return-value]


def _point_masses(body: Inertia) -> list[tuple[float, Array]]:
    """Six points on the principal axes with the mass, the centre and the tensor of a body."""
    m, c = float(body.mass), np.array([float(x) for x in body.com])  # type: ignore[arg-type]
    moments, axes = np.linalg.eigh(np.asarray(body.matrix()))
    second = np.maximum(moments.sum() / 2 - moments, 0.0)  # int x x' about the centre, on the principal axes
    points = []
    for k in range(3):
        arm = np.sqrt(3 * second[k] / m) * axes[:, k]
        points += [(m / 6, c + arm), (m / 6, c - arm)]
    return points


def _node(name: str, xi: float, families: list[_Shapes], L: float) -> ModalNode:
    _check_fraction(name, xi)
    displaced, turned, chi = _sections(families, np.array([float(xi)]), L)
    loads = np.concatenate([family.loads(float(xi), L) for family in families])
    parts: list[Any] = [(L * xi, 0.0, 0.0), displaced[0], turned[0], chi[0], _clean(loads)]
    return ModalNode(name, *parts)


def _check_fraction(name: str, xi: Any) -> None:
    if not (isinstance(xi, int | float) and 0 <= xi <= 1):
        raise ModelError(f"beam: node {name!r} is at {xi!r}, expected a fraction of the length, 0 to 1")


_POWERS = {
    "first_moment": 2,
    "second_moment": 3,
    "shape_moments": 1,
    "shape_products": 2,
    "pair_products": 1,
    "foreshortening_moments": 0,
    "foreshortening_products": 1,
}
"""of the length, in the integrals over the mass of a beam; all are proportional to rhoA"""


def _scaled(
    unit: ModalBody, properties: Mapping[str, Scalar | None], rayleigh: tuple[float, float]
) -> ModalBody:
    """The beam of unit length and density with the properties in their places."""
    L, line = _text(properties["length"]), _text(properties["rhoA"])

    def times(values: Any, factor: str) -> Any:
        if isinstance(values, tuple):
            return tuple(times(x, factor) for x in values)
        return Expression(f"{values!r} * {factor}") if values else 0.0

    def length(power: int) -> str:
        return f"({L}) ** {power}"

    fields = {
        name: times(getattr(unit, name), f"({line}) * {length(power)}") for name, power in _POWERS.items()
    }
    factors = []
    for mode in unit.modes:
        kind = mode.rsplit("_", 1)[0]
        which, power = {"bending_y": ("EI_z", 3), "bending_z": ("EI_y", 3), "axial": ("EA", 1)}[kind]
        factors.append(f"({_text(properties[which])}) / {length(power)}")

    def loads(rows: Any) -> Any:
        """Forces have the factors of the stiffness, moments a length more."""
        return tuple(
            times(row[:3], f"{factor} * ({L})") + times(row[3:], factor)
            for row, factor in zip(rows, factors, strict=True)
        )

    K = tuple(times(row, factor) for row, factor in zip(unit.stiffness, factors, strict=True))
    a, b = rayleigh
    mass, K0 = unit.modal_mass(), unit.array("stiffness")
    C = tuple(
        tuple(
            Expression(
                f"{float(a * mass[i, j])!r} * ({line}) * ({L}) + {float(b * K0[i, j])!r} * {factors[i]}"
            )
            for j in range(unit.count)
        )
        for i in range(unit.count)
    )
    nodes = tuple(
        ModalNode(
            node.name,
            times(node.position, length(1)),
            node.shapes,
            times(node.rotations, length(-1)),
            times(node.foreshortening, length(-1)),
            loads(node.loads),
        )
        for node in unit.nodes
    )
    return dataclasses.replace(
        unit,
        mass=Expression(f"({line}) * ({L})"),
        **fields,
        stiffness=K,
        damping=C if a or b else unit.damping,
        nodes=nodes,
        units=("m",) * unit.count,  # a slope times the length
    )


def _text(value: Scalar | None) -> str:
    return value.text if isinstance(value, Expression) else repr(value)
