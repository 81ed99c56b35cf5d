"""Flexible bodies from standard input data, SID (Wallrapp 1994; `.SID_FEM` files): integrals of a body and its nodes.

A file is `part`, `new modal`, then blocks. Matrices are Taylor series m0 + m1_q q in the modal coordinates, entry by entry,
m0(row, column) and m1(row, q, column). With F_k = int phi_k x' and Q_kl = int phi_k phi_l' + chi_kl x':

    mdCM = s + S_q q,    J,    Ct = S_k + Tt_kl q_l,    Cr = vee(F_k + Q_kl q_l),    Me, Ke, De                 (1)
    Oe_k = W : (F_k + Q_kl q_l) for the six products of rates in W = w w' - |w|^2                              (2)

J is 3 x 3, or six rows: xx, yy, zz, xy, xz, yz (FEMBS and others). J's second term and Cr give F_k; Cr's and Oe's second
terms give the antisymmetric and the symmetric part of Q_kl. Programs differ in the order of the indices of m1, and in the
order of products and the sign in (2): they are found by what must agree, the second term of mdCM with Ct, and Oe with F_k.

Modes may move the attachment (free modes, a mean-axis frame): all is then made relative to it, as in
`ModalBody.of_points`, with d = x - x_A, c_k and psi_k the motion of the attachment and P_k = psi_k~:

    phi_k <- phi_k - c_k - P_k d                                                                                (3)
    chi_kl <- chi_kl - chi_Akl - P_k (phi_l - c_l) - P_l (phi_k - c_k) + 1/2 (P_k P_l + P_l P_k) d              (4)
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from alembert.arguments import unknown
from alembert.errors import ArgumentError, FileError, UnsupportedError
from alembert.expression import evaluate
from alembert.flexible.finite_elements import UnitSystem, unit_system
from alembert.flexible.nastran_output import lines_of
from alembert.model.modal import ModalBody, ModalNode, Stiffening, relative_nodes
from alembert.spatial.arrays import skew

Array = np.ndarray
MOST = 500_000_000
"""bytes of a file"""
DIGITS = 1e-4
"""how far what must agree may differ, relative to the largest entry: printed digits"""
_ENTRY = re.compile(r"m([01])\s*\(\s*(\d+)\s*,\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)$")
_SIZES = ("order", "nrow", "ncol", "nq", "nqn", "structure")


@dataclass
class _Series:
    """A matrix: its sizes, and entries of both terms by their indices."""

    sizes: dict[str, int] = field(default_factory=dict)
    entries: dict[int, dict[tuple[int, ...], float]] = field(default_factory=lambda: {0: {}, 1: {}})

    def constant(self, shape: tuple[int, int]) -> Array:
        if self.sizes.get("structure") == 4:
            return np.eye(shape[0])
        found = np.zeros(shape)
        for (i, j), value in self.entries[0].items():
            found[i - 1, j - 1] = value
            if self.sizes.get("structure") == 2:
                found[j - 1, i - 1] = value
        return found

    def linear(self, shape: tuple[int, int], n: int, last: bool) -> Array | None:
        """(modes, rows, columns), or None; `last` if the mode is the last of the three indices."""
        if not self.entries[1]:
            return None
        found = np.zeros((n, *shape))
        for (i, a, b), value in self.entries[1].items():
            q, j = (b, a) if last else (a, b)
            found[q - 1, i - 1, j - 1] = value
            if self.sizes.get("structure") == 2:
                found[q - 1, j - 1, i - 1] = value
        return found


def read_sid(
    path: str | Path,
    *,
    attachment: Any,
    nodes: Mapping[str, Any] | Sequence[Any] = (),
    units: str | UnitSystem = "SI",
    stiffening: Stiffening | None = None,
) -> ModalBody:
    """A body from a file of standard input data, its frame at the node `attachment`; modes may move it.

    `nodes` names those for joints, frames and loads. Bodies are consistent if the file has the geometric stiffness of
    accelerations and of forces at all these nodes, otherwise inconsistent.
    """
    name = str(path)
    blocks, places, labels, mass = _parsed(Path(path))
    n = len(labels)
    scale = unit_system(units)
    L, m_, t = scale.length, scale.mass, scale.time

    def series(key: str) -> _Series:
        if key not in blocks:
            raise FileError(
                f"{name}: no block {key!r}; expected mdCM, J, Ct, Cr, Me, Oe and Ke of standard input data"
            )
        return blocks[key]

    try:
        S = series("Ct").constant((n, 3))
        last = _mode_is_last(name, series("mdCM"), S, n)
        mass_, s = mass * m_, series("mdCM").constant((3, 1))[:, 0] * m_ * L
        six = series("J").sizes.get("nrow") == 6
        J = _tensors(series("J").constant((6, 1))[None])[0] if six else series("J").constant((3, 3))
        Cr, Me = series("Cr").constant((n, 3)), series("Me").constant((n, n))
        Ke = series("Ke").constant((n, n))
        De = blocks["De"].constant((n, n)) if "De" in blocks else np.zeros((n, n))
        J1, Cr1 = series("J").linear((6, 1) if six else (3, 3), n, last), series("Cr").linear((n, 3), n, last)
        Ct1, Oe1 = series("Ct").linear((n, 3), n, last), series("Oe").linear((n, 6), n, last)
        Oe = series("Oe").constant((n, 6))
    except IndexError:
        raise FileError(f"{name}: a matrix has entries beyond the sizes that {n} modes give it") from None
    if not (np.linalg.eigvalsh((Me + Me.T) / 2) > 0).all():
        raise FileError(f"{name}: Me of the {n} modes is not positive definite: a mode moves no mass")
    if "ksigma" in blocks and any(blocks["ksigma"].entries[0].values()):
        raise UnsupportedError(
            f"{name}: the body has forces of an initial stress (ksigma), which are not read; write it without, or at rest"
        )
    for key, given in (("J", J1), ("Cr", Cr1), ("Oe", Oe1)):
        if given is None:
            raise FileError(f"{name}: block {key} has order 0; its terms m1, linear in the modes, are needed")
    assert J1 is not None
    assert Cr1 is not None
    assert Oe1 is not None
    F = _second(_tensors(J1) if six else J1) / 2 + _antisymmetric(Cr)
    order, sign = _products(name, F, Oe)
    Q = _antisymmetric(np.moveaxis(Cr1, 0, 1)) + sign * _symmetric(np.moveaxis(Oe1, 0, 1), order)  # [k, l]
    A = (Q - np.swapaxes(Q, 0, 1)) / 2
    # where Q has more than the inertia its trace is not Me; the two are then told apart by nothing, and need not be
    mixed = bool(np.abs(np.einsum("klii->kl", Q) - Me).max() > DIGITS * np.abs(Me).max())
    D = Me[:, :, None, None] / 3 * np.eye(3) + A if mixed else Q
    Tt = np.zeros((n, n, 3)) if Ct1 is None else np.moveaxis(Ct1, 0, 1)
    fields: dict[str, Any] = {
        "second_moment": (np.trace(J) / 2 * np.eye(3) - J) * m_ * L**2,
        "shape_moments": S * m_,
        "shape_products": np.swapaxes(F, 1, 2) * m_ * L,
        "pair_products": D * m_,
        "stiffness": (Ke + Ke.T) / 2 * m_ / t**2,
        "damping": (De + De.T) / 2 * m_ / t,
        "foreshortening_moments": (Tt + np.swapaxes(Tt, 0, 1)) / 2 * m_ / L,
        "foreshortening_products": ((Q - D) + np.swapaxes(Q - D, 0, 1)) / 2 * m_,
    }
    named = dict(nodes) if isinstance(nodes, Mapping) else {str(node): node for node in nodes}
    if str(named.get("root", attachment)) != str(attachment):
        raise ArgumentError(
            f"read_sid: nodes has 'root' for node {named['root']!r}; that is the name of the attachment, {attachment!r}"
        )
    made = [
        _node(name, label, which, places, n, last, scale)
        for label, which in ({"root": attachment} | named).items()
    ]
    level: Stiffening = stiffening or ("consistent" if mixed or Ct1 is not None else "inconsistent")
    if mixed and level != "consistent":
        raise ArgumentError(
            f"read_sid: {name} has inertia and geometric stiffness in one (Oe); stiffening is 'consistent', came {level!r}"
        )
    fields["first_moment"] = s
    return _at_attachment(ModalBody(labels, mass_, **fields, nodes=tuple(made), stiffening=level))


def _parsed(path: Path) -> tuple[dict[str, _Series], dict[str, dict[str, _Series]], tuple[str, ...], float]:
    """Matrices of the body, those of its nodes, names of the modes, and the mass."""
    lines = lines_of(path, MOST)
    blocks: dict[str, _Series] = {}
    places: dict[str, dict[str, _Series]] = {}
    modes: dict[int, str] = {}
    facts: dict[str, float] = {}
    node: dict[str, _Series] | None = None
    series: _Series | None = None
    inside = ""
    for number, raw in enumerate(lines, start=1):
        left, _, right = (part.strip() for part in raw.partition("="))
        word = left.removeprefix("new ").strip()
        if (
            not left
            or left in ("part", "new modal", "frame", "new frame")
            or left[:1] in "!#"
            or left.split()[0].isdigit()
        ):
            continue
        if left.startswith("end"):
            name = left[3:].strip()
            node = None if name == "node" else node
            series, inside = None, ""
        elif word == "node":
            node = places.setdefault(right, {})
        elif left == "refmod":
            inside = left
        elif inside == "refmod":
            mode = re.fullmatch(r"ielastq\s*\(\s*(\d+)\s*\)", left)
            if mode:
                modes[int(mode[1])] = right.strip("'\" ")
            elif left in ("mass", "nelastq"):
                facts[left] = _value(path, number, right)
        elif series is None and not right:
            series = (blocks if node is None else node).setdefault(left, _Series())
        elif series is not None and left in _SIZES:
            series.sizes[left] = int(_value(path, number, right))
        elif series is not None and (entry := _ENTRY.match(left)):
            indices = tuple(int(x) for x in entry.groups()[1:] if x is not None)
            if len(indices) != 2 + int(entry[1]) or min(indices) < 1:
                raise FileError(
                    f"{path}:{number}: {left!r} has {len(indices)} indices, expected {2 + int(entry[1])}"
                )
            series.entries[int(entry[1])][indices] = _value(path, number, right)
    n = int(facts.get("nelastq", 0))
    if not (0 < n < 10_000 and facts.get("mass", 0.0) > 0):
        raise FileError(
            f"{path}: no mass or number of modes (refmod: mass, nelastq); it is no file of standard input data"
        )
    taken = [modes.get(k + 1, "") for k in range(n)]
    names = [
        f"mode_{k + 1}" if not x or taken.count(x) > 1 else re.sub(r"\W+", "_", x)
        for k, x in enumerate(taken)
    ]
    if len(set(names)) < n:
        names = [f"mode_{k + 1}" for k in range(n)]
    return blocks, places, tuple(names), facts["mass"]


def _value(path: Path, number: int, text: str) -> float:
    try:
        value = float(text.replace("D", "E").replace("d", "e"))
    except ValueError:
        value = float("nan")
    if not np.isfinite(value):
        raise FileError(f"{path}:{number}: {text!r} is no number")
    return value


def _mode_is_last(name: str, mdCM: _Series, S: Array, n: int) -> bool:
    """Whether m1 is (row, column, mode): then its terms in mdCM are those of Ct."""
    off = []
    for last in (False, True):
        try:
            found = mdCM.linear((3, 1), n, last)
        except IndexError:
            off.append(np.inf)
            continue
        off.append(0.0 if found is None else float(np.abs(found[:, :, 0] - S).max()))
    if not min(off) <= DIGITS * np.abs(S).max() + 1e-300:
        raise FileError(
            f"{name}: the terms m1 of mdCM differ from Ct by {min(off):.3g}; they are the same integrals"
        )
    return off[1] < off[0]


def _tensors(rows: Array) -> Array:
    """3 x 3 from six rows (..., 6, 1)."""
    xx, yy, zz, xy, xz, yz = np.moveaxis(rows[..., 0], -1, 0)
    return np.stack([np.stack(row, axis=-1) for row in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))], axis=-2)


def _second(J: Array) -> Array:
    """int x x' and the like from tensors of inertia."""
    return np.trace(J, axis1=-2, axis2=-1)[..., None, None] / 2 * np.eye(3) - J


def _antisymmetric(c: Array) -> Array:
    """The antisymmetric matrices A with vee(A) = c: c_1 = A_32 - A_23, ..."""
    A = np.zeros((*c.shape, 3))
    for a, b, d in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        A[..., d, b], A[..., b, d] = c[..., a] / 2, -c[..., a] / 2
    return A


_PAIRS = ((0, 1), (1, 2), (0, 2))
"""of the last three products in Wallrapp's order"""


def _contracted(F: Array) -> Array:
    """(2) in the order xx, yy, zz, xy, yz, xz"""
    diagonal = np.einsum("...ii->...i", F)
    squares = diagonal - diagonal.sum(axis=-1, keepdims=True)
    return np.concatenate(
        [squares, np.stack([F[..., i, j] + F[..., j, i] for i, j in _PAIRS], axis=-1)], axis=-1
    )


def _symmetric(c: Array, order: tuple[int, ...]) -> Array:
    """The symmetric matrices whose contraction is c."""
    c = np.concatenate([c[..., :3], c[..., 3:][..., list(order)]], axis=-1)
    found = np.zeros((*c.shape[:-1], 3, 3))
    trace = -c[..., :3].sum(axis=-1) / 2
    for i in range(3):
        found[..., i, i] = c[..., i] + trace
    for k, (i, j) in enumerate(_PAIRS):
        found[..., i, j] = found[..., j, i] = c[..., 3 + k] / 2
    return found


def _products(name: str, F: Array, Oe: Array) -> tuple[tuple[int, ...], float]:
    """Where xy, yz and xz are among the last three columns of Oe, and its sign: those with which it agrees with F."""
    expected = _contracted(F)
    best, choice = np.inf, ((0, 1, 2), 1.0)
    for order, sign in product(((0, 1, 2), (0, 2, 1)), (1.0, -1.0)):
        columns = sign * np.concatenate([Oe[:, :3], Oe[:, 3:][:, list(order)]], axis=1)
        off = float(np.abs(columns - expected).max())
        if off < best * (1 - 1e-6):
            best, choice = off, (order, sign)
    if best > DIGITS * np.abs(expected).max() + 1e-300:
        raise FileError(
            f"{name}: Oe differs by {best:.3g} from what J and Cr give (of up to {np.abs(expected).max():.3g}); the "
            "blocks are not of one body in one frame"
        )
    return choice


def _node(
    name: str,
    label: str,
    which: Any,
    places: Mapping[str, dict[str, _Series]],
    n: int,
    last: bool,
    scale: UnitSystem,
) -> ModalNode:
    if str(which) not in places:
        raise ArgumentError(unknown(f"read_sid: {name}: no node", which, places))
    at = places[str(which)]
    for key in ("origin", "phi", "psi"):
        if key not in at:
            raise FileError(f"{name}: node {which} has no {key}")
    turned = at["AP"].constant((3, 3)) if "AP" in at else np.eye(3)
    if np.abs(turned).max() > 0 and np.abs(turned - np.eye(3)).max() > DIGITS:
        raise FileError(
            f"{name}: node {which} has axes of its own (AP); nodes along the body's axes are read"
        )
    try:
        chi = at["phi"].linear((3, n), n, last)  # [l, i, k]
        fields: list[Any] = [
            at["origin"].constant((3, 1))[:, 0] * scale.length,
            at["phi"].constant((3, n)).T,
            at["psi"].constant((3, n)).T / scale.length,
            np.zeros((n, n, 3)) if chi is None else np.transpose(chi, (2, 0, 1)) / scale.length,
        ]
    except IndexError:
        raise FileError(
            f"{name}: node {which} has entries beyond the sizes that {n} modes give its matrices"
        ) from None
    if chi is not None:
        fields[3] = (fields[3] + np.swapaxes(fields[3], 0, 1)) / 2
    return ModalNode(label, *fields)


def _at_attachment(body: ModalBody) -> ModalBody:
    """Seen from the attachment, (3) and (4)."""
    root = body.nodes[0]
    a, c = body.node_array(root.name, "position"), body.node_array(root.name, "shapes")
    P = np.array([skew(psi) for psi in body.node_array(root.name, "rotations")])
    chi_A = body.node_array(root.name, "foreshortening")
    m, S, D = float(evaluate(body.mass, {})), body.array("shape_moments"), body.array("pair_products")
    s = body.array("first_moment")
    s_d = s - m * a
    E_d = body.array("second_moment") - np.outer(s, a) - np.outer(a, s) + m * np.outer(a, a)
    G = body.array("shape_products") - np.einsum("i,kj->kij", a, S)  # int d phi_k'
    Tt, Tr = body.array("foreshortening_moments"), body.array("foreshortening_products")
    Tr = Tr - np.einsum("kli,j->klij", Tt, a)
    e = np.swapaxes(G, 1, 2) - np.einsum("ki,j->kij", c, s_d)  # int (phi_k - c_k) d'
    fields: dict[str, Any] = {
        "first_moment": s_d,
        "second_moment": E_d,
        "shape_moments": S - m * c - P @ s_d,
        "shape_products": G - np.einsum("i,kj->kij", s_d, c) - np.einsum("ij,klj->kil", E_d, P),
    }
    # int (phi_k - c_k)(phi_l - c_l)', and with P d
    between = D - np.einsum("ki,lj->klij", S, c) - np.einsum("ki,lj->klij", c, S)
    between += m * np.einsum("ki,lj->klij", c, c)
    crossed = np.einsum("kij,lmj->klim", e, P)
    between -= crossed + np.transpose(crossed, (1, 0, 3, 2))
    fields["pair_products"] = between + np.einsum("kia,ab,ljb->klij", P, E_d, P)
    both = np.einsum("kij,ljm->klim", P, P)
    both = (both + np.swapaxes(both, 0, 1)) / 2
    turned, moved = np.einsum("kij,ljm->klim", P, e), np.einsum("kij,lj->kli", P, S - m * c)
    fields["foreshortening_products"] = (
        Tr - np.einsum("kli,j->klij", chi_A, s_d) - turned - np.swapaxes(turned, 0, 1) + both @ E_d
    )
    fields["foreshortening_moments"] = Tt - m * chi_A - moved - np.swapaxes(moved, 0, 1) + both @ s_d
    fields["nodes"] = relative_nodes(body.nodes, root.name)
    return dataclasses.replace(body, **fields)
