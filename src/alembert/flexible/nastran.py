"""Structures from Nastran files.

A bulk data deck of bars, uniform beams, rods, springs and lumped masses is assembled here, as a `framework`, with
motion-induced stiffness. For other elements the program's own matrices are read: DMIG entries of a punch file, or an
OUTPUT4 or OUTPUT2 file of the whole set of unknowns (MGG and KGG: six to a grid point, by ascending numbers), with the deck
for the grid points. Entries may be in small, large or free fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy

from alembert.errors import FileError, UnsupportedError, warn
from alembert.flexible.finite_elements import SYMMETRIC, FiniteElements, UnitSystem, unit_system
from alembert.flexible.framework import CrossSection, LumpedMass, Member, NodeSpring, framework
from alembert.flexible.nastran_output import lines_of, read_output2, read_output4
from alembert.model.inertia import Inertia

Array = np.ndarray
MOST = 200_000_000
"""bytes of a file"""
_PASSED = {
    "PARAM", "SPC", "SPC1", "SPCADD", "EIGRL", "EIGR", "FORCE", "MOMENT", "LOAD", "GRAV", "PLOAD4", "TEMP", "TEMPD", "SET1",
    "MAT1", "PBAR", "PBARL", "PBEAM", "PROD", "CORD2R", "GRID", "DMIG", "ASET", "ASET1", "BSET1", "CSET1", "QSET1", "SPOINT",
    "ENDDATA", "TABDMP1", "DMI", "PLOTEL", "USET", "USET1", "SPCD", "DLOAD", "RLOAD1", "TLOAD1", "FREQ", "FREQ1",
    "TSTEP", "DAREA", "PELAS", "CONVM",
}  # fmt: skip
"""entries that are no elements"""


@dataclass(frozen=True)
class _Entry:
    """One entry of the bulk data: its name, where it is, and its fields from the second on."""

    name: str
    file: str
    line: int
    fields: tuple[str, ...]

    def fail(self, sentence: str) -> FileError:
        return FileError(f"{self.file}:{self.line}: {self.name}: {sentence}")

    def text(self, k: int) -> str:
        """Field k, counted as the manuals do: 1 is the name."""
        return self.fields[k - 2] if k - 2 < len(self.fields) else ""

    def number(self, k: int, default: float | None = None) -> float:
        text = self.text(k)
        if not text:
            if default is None:
                raise self.fail(f"field {k} is empty, expected a number")
            return default
        try:
            return float(_exponent(text))
        except ValueError:
            raise self.fail(f"field {k} is {text!r}, expected a number") from None

    def whole(self, k: int, default: int | None = None) -> int:
        text = self.text(k)
        if not text and default is not None:
            return default
        try:
            return int(text)
        except ValueError:
            raise self.fail(f"field {k} is {text!r}, expected a whole number") from None

    def vector(self, k: int) -> Array:
        return np.array([self.number(k + i, 0.0) for i in range(3)])


def read_nastran(
    deck: str | Path,
    *,
    matrices: str | Path | None = None,
    mass: str = "MGG",
    stiffness: str = "KGG",
    units: str | UnitSystem = "SI",
) -> FiniteElements:
    """A structure from a bulk data deck; with `matrices`, those of that file (.op2, .op4, .pch) by their names.

    Single-point constraints of the deck are not applied: a body that flies is free, and is held where it is attached.
    Nodes are named by their numbers.
    """
    entries = _entries(Path(deck))
    scale = unit_system(units)
    grids = _grids(Path(deck), entries)
    if matrices is None:
        return _assembled(entries, grids, scale)
    path = Path(matrices)
    if path.suffix.lower() in (".op2", ".op4"):
        found = _named(path, (mass, stiffness))
        nodes = sorted(grids)
        dofs = np.array([(k, d) for k in range(len(nodes)) for d in range(6)])
        for name, A in found.items():
            if A.shape != (len(dofs), len(dofs)):
                raise FileError(
                    f"{path}: {name} is {A.shape[0]} x {A.shape[1]}; the {len(nodes)} grid points of {deck} have "
                    f"{len(dofs)} unknowns. Write the matrices of the g-set (MGG, KGG)"
                )
        M, K = found[mass], found[stiffness]
    else:
        M, K, nodes, dofs = _direct(_entries(path), mass, stiffness, grids, str(path))
    seen = (np.abs(M).sum(axis=0) + np.abs(K).sum(axis=0)) > 0  # unknowns that nothing touches are none
    positions = np.array([grids[k] for k in nodes])
    return FiniteElements.of_matrices(
        M[seen][:, seen], K[seen][:, seen], positions, dofs[seen], names=[str(k) for k in nodes], units=scale
    )


def _entries(path: Path) -> list[_Entry]:
    lines = lines_of(path, MOST)
    first = next((k + 1 for k, line in enumerate(lines) if line.upper().split()[:2] == ["BEGIN", "BULK"]), 0)
    found: list[tuple[str, int, list[str]]] = []
    for k, raw in enumerate(lines[first:], start=first + 1):
        line = raw.split("$")[0].rstrip().expandtabs(8)
        if not line.strip():
            continue
        head, fields = _fields(line)
        if head.upper() == "ENDDATA":
            break
        if head.upper().startswith("INCLUDE"):
            raise FileError(f"{path}:{k}: INCLUDE is not followed; put the files together")
        if head[:1] in ("+", "*", ""):
            if not found:
                raise FileError(f"{path}:{k}: a continuation without an entry before it")
            found[-1][2].extend(fields)
        else:
            found.append((head.rstrip("*").upper(), k, fields))
    return [_Entry(name, str(path), k, tuple(fields)) for name, k, fields in found]


def _fields(line: str) -> tuple[str, list[str]]:
    """The name and eight fields of a line, four of a large-field one."""
    if "," in line:
        parts = [part.strip() for part in line.split(",")]
        wide = parts[0].endswith("*") or parts[0].startswith("*")
        count = 4 if wide else 8
        return parts[0], (parts[1 : 1 + count] + [""] * count)[:count]
    head = line[:8].strip()
    width, count = (16, 4) if "*" in head else (8, 8)
    return head, [line[8 + k * width : 8 + (k + 1) * width].strip() for k in range(count)]


def _exponent(text: str) -> str:
    """1.5-3 is 1.5e-3."""
    t = text.upper().replace("D", "E")
    if "E" not in t:
        for sign in "+-":
            at = t.rfind(sign)
            if at > 0:
                return f"{t[:at]}E{t[at:]}"
    return t


def _grids(deck: Path, entries: list[_Entry]) -> dict[int, Array]:
    systems = {0: (np.zeros(3), np.eye(3))}
    for e in entries:
        if e.name == "CORD2R":
            if e.whole(3, 0) not in (0,):
                raise e.fail("a system within a system is not read; give it in basic coordinates")
            a, b, c = e.vector(4), e.vector(7), e.vector(10)
            z = b - a
            y = np.cross(z, c - a)
            if not np.linalg.norm(y) > 1e-9 * np.linalg.norm(z) * np.linalg.norm(c - a):
                raise e.fail("its three points are on one line")
            z, y = z / np.linalg.norm(z), y / np.linalg.norm(y)
            systems[e.whole(2)] = (a, np.column_stack([np.cross(y, z), y, z]))
        elif e.name.startswith("CORD") or e.name == "GRDSET":
            raise e.fail("is not read; coordinates are expected in basic or CORD2R systems")
    found: dict[int, Array] = {}
    for e in entries:
        if e.name != "GRID":
            continue
        system, shown = e.whole(3, 0), e.whole(7, 0)
        if system not in systems:
            raise e.fail(f"there is no coordinate system {system}")
        if shown != 0:
            raise e.fail(
                f"displacements in system {shown} are not read; they are expected in basic coordinates (field 7 empty)"
            )
        origin, axes = systems[system]
        if e.whole(2) in found:
            raise e.fail(f"grid point {e.whole(2)} is there twice")
        found[e.whole(2)] = origin + axes @ e.vector(4)
    if not found:
        raise FileError(f"{deck}: no GRID entries")
    return found


def _assembled(entries: list[_Entry], grids: Mapping[int, Array], scale: UnitSystem) -> FiniteElements:
    L, m, t = scale.length, scale.mass, scale.time
    force = m * L / t**2
    weight = next((e.number(3) for e in entries if e.name == "PARAM" and e.text(2).upper() == "WTMASS"), 1.0)
    materials = {e.whole(2): e for e in entries if e.name == "MAT1"}
    properties = {
        (e.name, e.whole(2)): e for e in entries if e.name in ("PROD", "PBAR", "PBEAM", "PBARL", "PELAS")
    }
    where = {k: x * L for k, x in grids.items()}

    def material(e: _Entry, number: int) -> tuple[float, float, float]:
        if number not in materials:
            raise e.fail(f"there is no MAT1 {number}")
        card = materials[number]
        E, nu = card.number(3, 0.0), card.number(5, 0.3)
        if not E > 0:
            raise card.fail(f"E is {E!r}, expected a positive number")
        G = card.number(4, 0.0) or E / (2 * (1 + nu))
        return E * force / L**2, G * force / L**2, card.number(6, 0.0) * weight * m / L**3

    def section(e: _Entry, kind: str, number: int) -> CrossSection:
        card = next((properties[k, number] for k in (kind, "PBARL") if (k, number) in properties), None)
        if card is None:
            raise e.fail(f"there is no {kind} {number}")
        E, G, rho = material(card, card.whole(3))
        if kind == "PROD":
            A, J, extra = card.number(4), card.number(5, 0.0), card.number(7, 0.0)
            return CrossSection.of(E, rho, A * L**2, G=G, J=J * L**4, line_mass=extra * weight * m / L)
        if card.name == "PBARL":
            made, extra = _shape(card, E, G, rho, L)
            return replace(made, rhoA=made.rhoA + extra * weight * m / L)
        if card.name == "PBAR":
            A, I1, I2, J, extra, mixed = (card.number(k, 0.0) for k in (4, 5, 6, 7, 8, 20))
            factor = 0.0  # rigid
        else:  # PBEAM
            if any(card.text(k)[:1].isalpha() for k in (10, 18)) or any(
                card.number(k, 0.0) for k in range(20, 34)
            ):
                raise card.fail(
                    "sections that change along the beam, warping and offsets of its axes are not read"
                )
            A, I1, I2, mixed, J, extra = (card.number(k, 0.0) for k in (4, 5, 6, 7, 8, 9))
            factor = 1.0
        if mixed:
            raise card.fail(f"I12 is {mixed:g}, expected zero; give I1 and I2 about the principal axes")
        shear = card.number(18, factor) or None, card.number(19, factor) or None
        if not (I1 > 0 and I2 > 0 and J > 0):
            raise card.fail("I1, I2 and J are expected above zero; a member without bending is a rod")
        return CrossSection.of(
            E, rho, A * L**2, G=G, I_z=I1 * L**4, I_y=I2 * L**4, J=J * L**4, shear=shear, line_mass=extra * weight * m / L
        )  # fmt: skip

    members: list[Member] = []
    masses: list[LumpedMass] = []
    springs: list[NodeSpring] = []
    unknown: dict[str, _Entry] = {}
    for e in entries:
        if e.name in ("CROD", "CONROD"):
            if e.name == "CROD":
                s, a, b = section(e, "PROD", e.whole(3)), e.whole(4), e.whole(5)
            else:
                E, G, rho = material(e, e.whole(5))
                own = e.number(9, 0.0) * weight * m / L
                s = CrossSection.of(E, rho, e.number(6) * L**2, G=G, J=e.number(7, 0.0) * L**4, line_mass=own)
                a, b = e.whole(3), e.whole(4)
            members.append(Member(a, b, s, kind="rod"))
        elif e.name in ("CBAR", "CBEAM"):
            if any(e.number(k, 0.0) for k in range(12, 18)) or e.text(10) or e.text(11):
                raise e.fail("offsets and pin flags are not read")
            a, b = e.whole(4), e.whole(5)
            direction = e.text(6)
            if direction and direction.lstrip("-").isdigit():
                toward = where[_known(e, int(direction), where)] - where[_known(e, a, where)]
            else:
                toward = e.vector(6)
            members.append(Member(a, b, section(e, "P" + e.name[1:], e.whole(3)), toward=tuple(toward)))
        elif e.name == "CONM2":
            if e.whole(4, 0):
                raise e.fail("masses in a coordinate system of their own are not read")
            M, com = e.number(5) * weight * m, e.vector(6) * L
            I = [e.number(k, 0.0) * weight * m * L**2 for k in (10, 11, 12, 13, 14, 15)]  # 11 21 22 31 32 33
            inertia = Inertia(M, tuple(com), (I[0], -I[1], I[2], -I[3], -I[4], I[5]))
            masses.append(LumpedMass(e.whole(3), inertia))
        elif e.name in ("CELAS1", "CELAS2"):
            if e.name == "CELAS1" and ("PELAS", e.whole(3)) not in properties:
                raise e.fail(f"there is no PELAS {e.whole(3)}")
            k = e.number(3) if e.name == "CELAS2" else properties["PELAS", e.whole(3)].number(3)
            springs.append(_spring(e, k, force, L, where))
        elif e.name not in _PASSED:
            unknown.setdefault(e.name, e)
    if unknown:
        e = next(iter(unknown.values()))
        raise UnsupportedError(
            f"{e.file}:{e.line}: elements {', '.join(unknown)} are not assembled here; let Nastran write the "
            "matrices (DMIG or OUTPUT4 of MGG and KGG), and give them as matrices="
        )
    if not members and not springs:
        raise FileError(f"{entries[0].file}: no elements; give the matrices of the program as matrices=")
    used = {n for x in members for n in (x.a, x.b)} | {x.node for x in masses}
    used |= {n for s in springs for n in (s.a, s.b) if n is not None}
    for node in used:
        if node not in where:
            raise FileError(f"{entries[0].file}: an element is at grid point {node}, which is not there")
    loose = [k for k in where if k not in used]
    if loose:
        warn(
            f"{entries[0].file}: grid points without elements are left out: {', '.join(map(str, loose[:8]))}"
        )
    return framework({k: x for k, x in where.items() if k in used}, members, masses=masses, springs=springs)


def _known(e: _Entry, node: int, where: Mapping[int, Array]) -> int:
    if node not in where:
        raise e.fail(f"there is no grid point {node}")
    return node


def _spring(e: _Entry, k: float, force: float, L: float, where: Mapping[int, Array]) -> NodeSpring:
    a, c1, b, c2 = e.whole(4), e.whole(5), e.whole(6, 0), e.whole(7, 0)
    if not 1 <= c1 <= 6 or (b and c2 != c1):
        raise e.fail(
            "springs are expected between the same components, 1 to 6, of two grid points, or to ground"
        )
    if b and np.linalg.norm(where[_known(e, a, where)] - where[_known(e, b, where)]) > 0:
        raise e.fail(
            "springs are expected between grid points at one place; across a distance they would hold rotations"
        )
    stiff = [0.0] * 6
    stiff[c1 - 1] = k * (force / L if c1 <= 3 else force * L)
    return NodeSpring(a, b or None, tuple(stiff))


def _shape(card: _Entry, E: float, G: float, rho: float, L: float) -> tuple[CrossSection, float]:
    """Sections of PBARL that have closed forms, and the mass per length that comes behind their dimensions."""
    kind = card.text(5).upper()
    d, nu = [card.number(k, 0.0) * L for k in (10, 11)], E / (2 * G) - 1
    if kind == "ROD":
        return CrossSection.tube(E, rho, d[0], nu=nu), card.number(11, 0.0)
    if kind == "TUBE":
        return CrossSection.tube(E, rho, d[0], d[0] - d[1], nu=nu), card.number(12, 0.0)
    if kind == "BAR":
        return CrossSection.rectangle(E, rho, d[1], d[0], nu=nu), card.number(12, 0.0)
    raise card.fail(f"sections {kind!r} are not read; expected ROD, TUBE or BAR, or a PBAR")


def _direct(
    entries: list[_Entry], mass: str, stiffness: str, grids: Mapping[int, Array], path: str
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array, list[int], Array]:
    """DMIG matrices: entries by grid point and component, symmetric ones by one triangle.

    Scalar points (component 0) are coordinates without a node: the modes of a reduced component.
    """
    parts: dict[str, list[tuple[tuple[int, int], tuple[int, int], float]]] = {}
    for e in entries:
        if e.name != "DMIG":
            continue
        if e.text(3) == "0":
            if e.text(2) in (mass, stiffness) and e.whole(5, 2) > 2:
                raise e.fail("complex matrices are not read; give damping to structure_body")
            continue
        column = (e.whole(3), e.whole(4, 0))
        rows = parts.setdefault(e.text(2), [])
        # behind the column come groups of four: grid point, component, value, imaginary part
        for k in range(6, len(e.fields) + 2, 4):
            if e.text(k):
                rows.append(((e.whole(k), e.whole(k + 1, 0)), column, e.number(k + 2)))
    for name in (mass, stiffness):
        if name not in parts:
            raise FileError(f"{path}: no DMIG {name!r}; there is {', '.join(sorted(parts)) or 'none'}")
    keys = sorted({key for name in (mass, stiffness) for r, c, _ in parts[name] for key in (r, c)})
    for node, component in keys:
        if component and node not in grids:
            raise FileError(f"{path}: DMIG has an entry of {node}, which is no grid point of the deck")
        if not (1 <= component <= 6 or (component == 0 and node not in grids)):
            raise FileError(f"{path}: DMIG has component {component} of grid point {node}, expected 1 to 6")
    nodes = sorted({node for node, _ in keys if node in grids})
    at, order = {key: k for k, key in enumerate(keys)}, {node: k for k, node in enumerate(nodes)}
    found = []
    for name in (mass, stiffness):
        n = len(keys)
        A = scipy.sparse.lil_array((n, n))
        for row, column, value in parts[name]:
            i, j = at[row], at[column]
            if A[i, j] and abs(A[i, j] - value) > SYMMETRIC * abs(value):
                raise FileError(
                    f"{path}: DMIG {name!r} has {A[i, j]:g} and {value:g} between {row} and {column}; "
                    "symmetric matrices are expected, each entry once or in both triangles"
                )
            A[i, j] = A[j, i] = value
        found.append(A.tocsr())
    return found[0], found[1], nodes, np.array([(order[node], c - 1) if c else (-1, -1) for node, c in keys])


def _named(path: Path, names: tuple[str, str]) -> dict[str, scipy.sparse.csr_array]:
    found = read_output2(path) if path.suffix.lower() == ".op2" else read_output4(path)
    for name in names:
        if name.upper() not in found:
            there = ", ".join(sorted(found)) or "no real matrix"
            raise FileError(f"{path}: no matrix {name!r}; there is {there}")
    return {name: found[name.upper()] for name in names}
