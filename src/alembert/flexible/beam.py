"""Beams as modal bodies, from their properties.

A beam lies along x from the origin to (L, 0, 0). With xi = x/L each field is a polynomial in xi, found by Rayleigh and
Ritz's method on Legendre polynomials of a degree that leaves ten digits right; integrals are by Gauss points, exact for
polynomials. For bending along y (along z alike; w' - L theta is the shear angle of a Timoshenko beam):

    V = 1/2 EI/L int theta'^2 + 1/2 kGA/L int (w' - L theta)^2       Euler-Bernoulli: theta = w'/L            (1)
    T = 1/2 rhoA L int w_t^2 + 1/2 rhoI L int theta_t^2 + the tip body's                                     (2)

    V = 1/2 GJ/L int theta'^2,  V = 1/2 EA/L int u'^2                torsion and axial displacement           (3)

The coordinates are measures of strain in the axes of the sections: curvatures and twist a', strains e (along x and of
shear), with a the angles of the sections to first order. What they displace and turn to second order follows from
R' = R a'~, r' = R (e_x + e), with f(a, b) = a x (b x e_x):

    u_2 = int_0^x [(x - s) f(a, a') + a x e] ds + x/2 f(a_0, a_0),    chi_kl = (u_2)_kl + (u_2)_lk            (4)
    b_2 = 1/2 int_0^x a x a' ds                                      rotation vector, beside a                (5)

Along x (4) is the foreshortening -1/2 int w'^2 of bending, across x it is what torsion makes of bending: a flat beam that
is bent on edge buckles sideways. By (5) a beam that is bent both ways twists. Nodes have all of it. The integrals over the
mass have (4) along x alone: the rest, squared, belongs to the modal masses, which are constant; the small inertia of torsion
would be outweighed by the first deflections beyond the sections' radius of gyration.

Coordinates are displacements (bending, axial, in metres) or angles (torsion) where the shape is largest: at the tip for
clamped modes.

Beams in segments are for deflections that are not small against the length. Modal segments bend: each has the shapes that
move its tip. Rigid ones have joints between them. The bending and the twist of each of k equal parts of the length h = L/k
are then gathered in the middle of the part, in springs of

    EI_y / h,   EI_z / h,   GJ / h                                                                            (6)

so that bodies of the lengths h/2, h, ..., h, h/2 follow one another (rigid finite elements). Angles are the only
coordinates; the limit is Eisler's inextensible element. Errors are h^2, those of modal segments h^3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
import scipy

from alembert.arguments import is_number
from alembert.errors import ModelError
from alembert.expression import Expression, Scalar, scalar
from alembert.flexible.beam_shapes import Shapes, family_of
from alembert.flexible.finite_elements import point_masses
from alembert.joints import Friction, JointType, Revolute, Spherical, Spring, Universal
from alembert.model.elements import SegmentChain
from alembert.model.inertia import Inertia
from alembert.model.modal import MassBeyond, ModalBody, ModalNode, Stiffening
from alembert.model.placement import Placement, plus

Array = np.ndarray
Ends = Literal["clamped", "free", "pinned", "craig-bampton"]
ENDS = ("clamped", "free", "pinned", "craig-bampton")
_X = np.array([1.0, 0.0, 0.0])
ROUNDING = 1e-9
"""of the modes, which come from an eigenproblem of condition 1e6"""
MOST = 20
"""modes of a family: the polynomials of higher degree that more would need lose digits"""
_TENTHS = {f"0.{k}": k / 10 for k in range(1, 10)}
"""nodes that every beam has, by fractions of its length: for frames, loads and pictures"""
_OF_THE_WHOLE = ("segments", "length", "ends", "damping_ratio", "tip", "nodes")
"""arguments of a beam that its segments do not have in common"""
_AXES = {"GJ": (1.0, 0.0, 0.0), "EI_y": (0.0, 1.0, 0.0), "EI_z": (0.0, 0.0, 1.0)}


@overload
def beam(length: Scalar, rhoA: Scalar, *, segments: None = None, **properties: Any) -> ModalBody: ...


@overload
def beam(length: Scalar, rhoA: Scalar, *, segments: int, **properties: Any) -> SegmentChain: ...


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
    mass_offset: tuple[float, float] = (0.0, 0.0),
    tip: Inertia | None = None,
    damping_ratio: Scalar | Sequence[Scalar] = 0.0,
    damping: tuple[Scalar, Scalar] = (0.0, 0.0),
    nodes: Mapping[str, float] | None = None,
    stiffening: Stiffening = "consistent",
    segments: int | None = None,
    rigid: bool = False,
) -> ModalBody | SegmentChain:
    """A uniform beam along x, its frame at the root.

    `bending_y` counts modes that displace along y (their stiffness is EI_z, about z), `bending_z` along z (EI_y),
    `torsion` about and `axial` along x. `rhoI_y`, `rhoI_z` are the sections' moments of inertia about y and z per
    length; torsion needs one. `kGA_y`, `kGA_z` make it a Timoshenko beam for displacements along y and z. `ends` says
    which modes: of a beam clamped at its root, free, pinned at its root, or Craig and Bampton's (that many fixed at
    both ends, and the shapes that move the tip). `tip` is a body fixed to the tip, given in a frame at (L, 0, 0); it
    shares the modes. x goes through the shear centres of the sections; `mass_offset` (y, z) is where their centres of mass
    are from there, about which `rhoI_y` and `rhoI_z` are: bending and torsion then go together.

    `damping_ratio` is that of every mode, or one for each; `damping` (a, b) adds a M + b K. `nodes` names places by
    their fraction of the length; "root", "0.1" to "0.9" and "tip" are always there.

    EI, GJ, EA and damping may be expressions of parameters; an EI with shear is a number. Length and rhoA may be so where
    the shapes do not depend on them: without a tip body, rotary inertia, shear and a mass offset.

    With `segments` the beam is cut into that many equal ones, each with the shapes that move its tip (and the modes counted
    here besides), for deflections that are not small against the length. It then is a chain of bodies, which
    `ModelBuilder.body` takes in the place of one. With `rigid` as well the segments are rigid, and joints with springs
    between them bend and twist: angles are the only coordinates.
    """
    _check_numbers(
        {"rhoI_y": rhoI_y, "rhoI_z": rhoI_z}, {"kGA_y": kGA_y, "kGA_z": kGA_z}, damping, tip, nodes
    )
    if segments is not None:
        whole = dict(locals())
        return _rigid_segments(whole) if whole.pop("rigid") else _modal_segments(whole)
    if rigid:
        raise ModelError("beam: rigid=True is of segments; give their number, segments=")
    properties = {"length": length, "rhoA": rhoA, "EI_y": EI_y, "EI_z": EI_z, "GJ": GJ, "EA": EA}
    needed = {"bending_y": "EI_z", "bending_z": "EI_y", "torsion": "GJ", "axial": "EA"}
    counts = {"bending_y": bending_y, "bending_z": bending_z, "torsion": torsion, "axial": axial}
    _check_properties(properties, counts, needed, ends)
    offset = _checked_offset(mass_offset)
    if torsion and not rhoI_y + rhoI_z + float(offset @ offset) > 0:
        raise ModelError("beam: torsion needs the sections' moments of inertia, rhoI_y or rhoI_z")
    for name, given, inertia in (("kGA_y", kGA_y, rhoI_z), ("kGA_z", kGA_z, rhoI_y)):
        if given is not None and not (given > 0 and inertia > 0):
            raise ModelError(
                f"beam: {name}={given!r}: a Timoshenko beam needs a positive one, and its sections' moment of inertia"
            )
    shears = {"EI_z": kGA_y, "EI_y": kGA_z}
    for name, value in properties.items():
        if not isinstance(value, Expression):
            continue
        numeric_only: dict[str, Any] = {"a kGA": shears.get(name)}
        if name in ("length", "rhoA"):
            numeric_only = {
                "a tip body": tip is not None,
                "rhoI_y or rhoI_z": rhoI_y or rhoI_z,
                "a kGA": kGA_y or kGA_z,
                "a mass_offset": offset.any(),
            }
        for what, given in numeric_only.items():
            if given:
                raise ModelError(
                    f"beam: {name} is an expression of parameters; with {what} it must be a number, because the shapes "
                    "depend on its value"
                )
    # where there are expressions, the beam of ones, to be scaled
    values = {
        name: 1.0 if isinstance(value, Expression) else float(value)
        for name, value in properties.items()
        if value is not None
    }
    L, line = values["length"], values["rhoA"]
    gyration = {"bending_y": rhoI_z, "bending_z": rhoI_y, "axial": 0.0}
    gyration["torsion"] = rhoI_y + rhoI_z + line * float(offset @ offset)
    shear = {"bending_y": kGA_y, "bending_z": kGA_z, "torsion": None, "axial": None}
    families = [
        family_of(kind, n, values[needed[kind]], L, line, gyration[kind], shear[kind], ends, tip)
        for kind, n in counts.items()
        if n or (ends == "craig-bampton" and properties[needed[kind]] is not None)
    ]
    if not families:
        raise ModelError(
            "beam: no modes; give bending_y, bending_z, torsion or axial, or make it rigid with an Inertia"
        )
    masses, positions, shapes, chi = _points(families, L, line, rhoI_y, rhoI_z, offset, tip)
    fractions = {"root": 0.0} | _TENTHS | {"tip": 1.0} | dict(nodes or {})
    places = [_node(name, xi, families, L) for name, xi in fractions.items()]
    beyond = {
        name: _points(families, L, line, rhoI_y, rhoI_z, offset, tip, start=float(xi))[:3]
        for name, xi in fractions.items()
    }
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
        beyond=beyond,
    )
    fields: dict[str, Any] = {name: _clean(body.array(name)) for name in _POWERS}
    body = dataclasses.replace(body, **fields)
    symbolic = {name: value for name, value in properties.items() if isinstance(value, Expression)}
    if symbolic:
        return _scaled(body, symbolic, damping_ratio, damping)
    return body.damped(damping_ratio, rayleigh=damping)


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
        _positive(name, value)
    for kind, n in counts.items():
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ModelError(f"beam: {kind} is {n!r}, expected a number of modes")
        if n and properties[needed[kind]] is None:
            about = {"bending_y": ": it turns about z", "bending_z": ": it turns about y"}.get(kind, "")
            raise ModelError(f"beam: {kind}={n} needs {needed[kind]}{about}")
        if n > MOST:
            raise ModelError(f"beam: {kind} is {n}, expected at most {MOST} modes")


def _sections(
    families: list[Shapes], xi: Array, L: float, with_chi: bool = True
) -> tuple[Array, Array, Array, Array]:
    """Displacements and rotations of the sections, and both to second order, (4) and (5), or zeros."""
    displaced, turned, _, _ = _joined(families, xi, L)
    n = displaced.shape[1]
    chi, twist = np.zeros((2, len(xi), n, n, 3))
    nodes, weights = _finest(families)
    root = _joined(families, np.zeros(1), L)[1]
    pair = "p,pkli->kli"
    for p, end in enumerate(xi if with_chi else ()):
        _, a, bend, strain = _joined(families, end * nodes, L)
        b, x = a[:, None], end * L
        chi[p] = x * np.einsum(pair, weights * (1 - nodes) * end, np.cross(b, np.cross(bend, _X)[:, :, None]))
        chi[p] += x * np.einsum(pair, weights, np.cross(b, strain[:, :, None]))
        chi[p] += x / 2 * np.cross(root[0][None], np.cross(root[0], _X)[:, None])
        twist[p] = end / 2 * np.einsum(pair, weights, np.cross(b, bend[:, :, None]))
    return displaced, turned, chi + np.swapaxes(chi, 1, 2), twist + np.swapaxes(twist, 1, 2)


def _joined(families: list[Shapes], xi: Array, L: float) -> tuple[Array, Array, Array, Array]:
    parts = [family.at(xi, L) for family in families]
    return tuple(np.concatenate(each, axis=1) for each in zip(*parts, strict=True))  # type: ignore[return-value]


def _finest(families: list[Shapes]) -> tuple[Array, Array]:
    return max((f.basis for f in families), key=lambda basis: basis.degree).points


def _carried(displaced: Array, turned: Array, chi: Array, offset: Array) -> tuple[Array, Array]:
    """phi and chi of points fixed to sections at an offset d: phi + psi x d, chi along x + psi x (psi x d)."""
    arm = np.cross(turned, offset)
    second = np.cross(turned[:, :, None], arm[:, None, :])
    return displaced + arm, chi * _X + (second + np.swapaxes(second, 1, 2)) / 2


def _points(
    families: list[Shapes],
    L: float,
    line: float,
    rhoI_y: float,
    rhoI_z: float,
    offset: Array,
    tip: Inertia | None,
    *,
    start: float | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Masses, places, phi and chi: the points of quadrature, four to a section with inertia, and the tip body's.

    Those beyond a fraction `start` of the length are without chi.
    """
    xi, weights = _finest(families)
    whole = start is None
    if start is not None:
        xi, weights = start + (1 - start) * xi, (1 - start) * weights
    fields = _sections(families, xi, L, whole)[:3]
    center = np.zeros((len(xi), 3))
    center[:, 0] = L * xi
    parts = []
    if rhoI_y or rhoI_z:
        y, z = np.sqrt(2 * rhoI_z / line), np.sqrt(2 * rhoI_y / line)
        for arm in ((0.0, y, 0.0), (0.0, -y, 0.0), (0.0, 0.0, z), (0.0, 0.0, -z)):
            d = offset + arm
            parts.append((line * L * weights / 4, center + d, *_carried(*fields, d)))
    else:
        parts.append((line * L * weights, center + offset, *_carried(*fields, offset)))
    if tip is not None:
        end = _sections(families, np.ones(1), L, whole)[:3]
        mass, places = point_masses(tip)
        for place in places:
            parts.append((np.array([mass]), np.array([[L, 0.0, 0.0]]) + place, *_carried(*end, place)))
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))  # type: ignore[return-value]


def _node(name: str, xi: float, families: list[Shapes], L: float) -> ModalNode:
    _check_fraction(name, xi)
    displaced, turned, chi, twist = _sections(families, np.array([float(xi)]), L)
    loads = np.concatenate([family.loads(float(xi), L) for family in families])
    parts: list[Any] = [(L * xi, 0.0, 0.0), displaced[0], turned[0], chi[0], _clean(loads)]
    turning: Any = twist[0] if len({family.kind for family in families} - {"axial"}) > 1 else None
    return dataclasses.replace(ModalNode(name, *parts), turning=turning)


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
    unit: ModalBody, symbolic: Mapping[str, Expression], ratio: Any, rayleigh: tuple[Scalar, Scalar]
) -> ModalBody:
    """The beam with expressions in the places of ones; shapes over xi are the same."""

    def times(values: Any, **powers: float) -> Any:
        """Nested numbers times powers of the expressions."""
        factors = [f"({symbolic[name]}) ** {power:g}" for name, power in powers.items() if name in symbolic]
        if not factors:
            return values
        if isinstance(values, tuple):
            return tuple(times(x, **powers) for x in values)
        return Expression(" * ".join([f"({values})", *factors])) if values else 0.0

    def massive(values: Any, length: int) -> Any:
        return times(values, rhoA=1, length=length)

    stiff = {"bending_y": {"EI_z": 1.0, "length": -3.0}, "bending_z": {"EI_y": 1.0, "length": -3.0}}
    stiff |= {"torsion": {"GJ": 1.0, "length": -1.0}, "axial": {"EA": 1.0, "length": -1.0}}
    of_mode = [stiff[mode.rsplit("_", 1)[0]] for mode in unit.modes]

    def loads(rows: Any) -> Any:
        """Forces have the factors of the stiffness, moments a length more."""
        return tuple(
            times(row[:3], **(powers | {"length": powers["length"] + 1})) + times(row[3:], **powers)
            for row, powers in zip(rows, of_mode, strict=True)
        )

    def mass_of(beyond: MassBeyond | None) -> MassBeyond | None:
        if beyond is None:
            return None
        parts = {
            name: massive(getattr(beyond, name), 1 if name == "mass" else _POWERS[name])
            for name in (field.name for field in dataclasses.fields(MassBeyond))
        }
        return MassBeyond(**parts)

    nodes = tuple(
        dataclasses.replace(
            node,
            position=times(node.position, length=1),
            rotations=times(node.rotations, length=-1),
            foreshortening=times(node.foreshortening, length=-1),
            loads=loads(node.loads),
            beyond=mass_of(node.beyond),
            turning=None if node.turning is None else times(node.turning, length=-2),
        )
        for node in unit.nodes
    )
    fields: dict[str, Any] = {name: massive(getattr(unit, name), power) for name, power in _POWERS.items()}
    fields["stiffness"] = tuple(
        times(row, **powers) for row, powers in zip(unit.stiffness, of_mode, strict=True)
    )
    # a slope is one times the length
    units = ("m",) * unit.count if "length" in symbolic else unit.units
    whole = dataclasses.replace(unit, mass=massive(unit.mass, 1), nodes=nodes, units=units, **fields)
    whole = whole.damped(rayleigh=rayleigh)
    own = unit.damped(ratio).damping
    if not any(x for row in own for x in row):
        return whole
    _check_ratio(
        unit, ratio, [{name: p for name, p in powers.items() if name in symbolic} for powers in of_mode]
    )
    # 2 zeta omega m is as the roots of mass and stiffness
    rows: Any = tuple(
        times(row, rhoA=0.5, **{name: (power + (name == "length")) / 2 for name, power in powers.items()})
        for row, powers in zip(own, of_mode, strict=True)
    )
    total = zip(rows, whole.damping, strict=True)
    C = tuple(tuple(plus(x, y) for x, y in zip(row, more, strict=True)) for row, more in total)
    return dataclasses.replace(whole, damping=C)


def _check_ratio(unit: ModalBody, ratio: Any, powers: list[dict[str, float]]) -> None:
    """Ratios are of modes of the whole, which must not depend on the expressions; nor their order, if there are several."""
    pairs = [(i, j) for i in range(unit.count) for j in range(i) if powers[i] != powers[j]]
    M = unit.modal_mass()
    for i, j in pairs:
        why = "move together" if M[i, j] else "change places by frequency" if np.size(ratio) > 1 else ""
        if why:
            raise ModelError(
                f"beam: damping_ratio is {ratio!r}, but {unit.modes[j]!r} and {unit.modes[i]!r} may {why} as expressions "
                "in their stiffness change; give damping=(a, b), or one ratio for all"
            )


def _modal_segments(given: Mapping[str, Any]) -> SegmentChain:
    """Equal segments; a node where two of them meet is the tip of the first."""
    count, length = given["segments"], given["length"]
    _check_segments(given)
    own: list[dict[str, float]] = [{} for _ in range(count)]
    places: dict[str, tuple[int, Scalar | str]] = {"root": (0, "root"), "tip": (count - 1, "tip")}
    for name, xi in (_TENTHS | dict(given["nodes"] or {})).items():
        _check_fraction(name, xi)
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


def _rigid_segments(given: Mapping[str, Any]) -> SegmentChain:
    """Rigid bodies with the springs (6) between them."""
    _check_segments(given)
    count, offset = given["segments"], _checked_offset(given["mass_offset"])
    L, line = (_positive(name, given[name]) for name in ("length", "rhoA"))
    left_out = ("EA", "kGA_y", "kGA_z", "bending_y", "bending_z", "torsion", "axial")
    for name in left_out:
        if given[name]:
            raise ModelError(
                f"beam: rigid segments bend and twist at their joints; {name} is of modal ones (rigid=False)"
            )
    stiff = {name: _positive(name, given[name]) for name in _AXES if given[name] is not None}
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
    for name, xi in ({"root": 0.0, "tip": 1.0} | _TENTHS | dict(given["nodes"] or {})).items():
        _check_fraction(name, xi)
        # in parts: where it is, and where its segment begins
        at = xi * count
        k = min(max(int(np.floor(at + 0.5 - 1e-12)), 0), count)
        places[name] = (k, (at - max(k - 0.5, 0.0)) * h)
    springs = [x / h for x in stiff.values()]
    friction = Friction(tuple(b * x for x in springs)) if b else None
    hinge = _hinge([_AXES[name] for name in stiff])
    return SegmentChain(tuple(bodies), places, tuple(lengths), hinge, Spring(tuple(springs)), friction)


def _check_segments(given: Mapping[str, Any]) -> None:
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


def _positive(name: str, value: Any) -> Scalar:
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


def _check_numbers(
    inertias: Mapping[str, Any], shears: Mapping[str, Any], damping: Any, tip: Any, nodes: Any
) -> None:
    """The other arguments of a beam."""
    for name, value in {**inertias, **shears}.items():
        if value is not None and not (is_number(value) and value >= 0):
            raise ModelError(f"beam: {name} is {value!r}, expected a number that is not negative")
    if not (
        isinstance(damping, tuple | list | np.ndarray)
        and len(damping) == 2
        and all(isinstance(x, Expression) or is_number(x) for x in damping)
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


def _checked_offset(mass_offset: Any) -> np.ndarray:
    """(0, y, z)"""
    try:
        offset = np.array([0.0, *(float(x) for x in mass_offset)])
    except (TypeError, ValueError):
        offset = np.zeros(0)
    if offset.shape != (3,) or not np.isfinite(offset).all():
        raise ModelError(f"beam: mass_offset is {mass_offset!r}, expected two numbers, y and z")
    return offset


def _check_fraction(name: str, xi: Any) -> None:
    if not (isinstance(xi, int | float) and 0 <= xi <= 1):
        raise ModelError(f"beam: node {name!r} is at {xi!r}, expected a fraction of the length, 0 to 1")
