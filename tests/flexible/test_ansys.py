"""Ansys archives and .full files, written here by the rules that the reader states.

On 18 November 2026 the same functions read the example of ansys-mapdl-reader 0.56 (file.full and HexBeam.cdb, written by
Ansys): 1283.200, 1283.200, 5781.975 and 6919.399 Hz. That its documentation has the same figures is from memory: it was not
looked up then.
"""

import struct

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from structures import straight

import alembert as al
from alembert.flexible import ansys

fl = al.flexible
WORDS = {"solver": 0, "equations": 1, "lumped": 10, "unsymmetric": 13}


def record(values, flags=None):
    integers = np.asarray(values).dtype.kind == "i"
    data = np.asarray(values, "<i4" if integers else "<f8").tobytes()
    head = (0x80000000 if integers else 0) if flags is None else flags
    return struct.pack("<iI", len(data) // 4, head) + data + struct.pack("<i", len(data) // 4)


def full(fe, *, labels=(1, 2, 3, 4, 5, 6), held=(), flags=None, mass=True, **words):
    """The bytes of a .full file of a structure whose nodes have six unknowns each."""
    M, K = (A.toarray()[:, :] for A in (fe.M, fe.K))
    n, count = len(K), len(fe.names)
    order = np.argsort(fe.dofs[:, 0] * 6 + fe.dofs[:, 1])
    M, K = (A[np.ix_(order, order)] for A in (M, K))

    def half(A):
        found = []
        for row in range(n):
            columns = [*(j for j in range(row + 1, n) if A[row, j]), row]
            found += [record(np.array(columns) + 1), record(A[row, columns])]
        return b"".join(found)

    constant = np.arange(1, n + 1)
    constant[list(held)] *= -1
    parts = {
        "labels": record(list(labels)) + record(np.array([int(x) + 1 for x in fe.names])),
        "K": half(K),
        "M": half(M),
        "dof": record(np.full(count, 6)) + record(constant),
    }
    start, at = {}, (103 * 4 + 103 * 4) // 4
    for name, part in parts.items():
        start[name] = at
        at += len(part) // 4
    header = np.zeros(100, dtype=int)
    header[[0, 1, 7, 32]] = -4, n, 6, count
    header[[18, 26, 35]] = start["K"], start["M"] * mass, start["dof"]
    for name, value in words.items():
        header[WORDS[name]] = value
    return record(np.zeros(100, dtype=int)) + record(header, flags) + b"".join(parts.values())


def archive(fe):
    lines = ["/PREP7", f"NBLOCK,6,SOLID,{len(fe.names):9d},{len(fe.names):9d}", "(3i9,6e21.13e3)"]
    for name, x in zip(fe.names, fe.positions, strict=True):
        values = x[: max(np.flatnonzero(x), default=-1) + 1]  # zeros at the end are left out
        lines.append(f"{int(name) + 1:9d}{0:9d}{0:9d}" + "".join(f"{v:.13E}".rjust(21) for v in values))
    return "\n".join([*lines, "N,R5.3,LOC,       -1,", "EBLOCK,19,SOLID"]) + "\n"


@pytest.fixture
def files(tmp_path):
    fe = straight(3)

    def written(content=None, nodes=None, **changes):
        (tmp_path / "a.cdb").write_text(archive(fe) if nodes is None else nodes)
        (tmp_path / "a.full").write_bytes(full(fe, **changes) if content is None else content)
        return tmp_path / "a.cdb", tmp_path / "a.full"

    return fe, written


def test_a_beam_is_read_back(files):
    fe, written = files
    found = fl.read_ansys(*written())
    assert found.names == ("1", "2", "3", "4")
    np.testing.assert_allclose(found.positions, fe.positions, atol=1e-13)
    ours, theirs = (fl.frequencies(x, fl.normal_modes(x, 4, held=x.names[0])) for x in (found, fe))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)  # the same numbers, through another eigenproblem


def test_a_superelement_in_matrix_market_form(tmp_path):
    """What the message on .sub files says: matrices as text, unknowns and places by hand, and a body of them."""
    fe = straight(8)
    reduced = fl.guyan(fe, np.concatenate([fe.unknowns(k) for k in (0, 4, 8)]))
    for name in "MK":
        scipy.io.mmwrite(tmp_path / f"{name}.mtx", sp.coo_array(getattr(reduced, name)), precision=17)
    M, K = (scipy.io.mmread(tmp_path / f"{name}.mtx") for name in "MK")
    found = fl.FiniteElements.of_matrices(M, K, reduced.positions, reduced.dofs, names=reduced.names)
    body = fl.structure_body(
        found,
        fl.craig_bampton(found, 0, {"tip": 8}, 5),
        attachment=0,
        nodes={"tip": 8},
        stiffening="inconsistent",
    )
    np.testing.assert_allclose(
        body.frequencies()[:4], fl.frequencies(fe, fl.normal_modes(fe, 4, held=0)), rtol=0.01
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"held": [0, 1]}, r"2 of 24 unknowns are held by supports .* the free structure \(DDELE,ALL"),
        ({"lumped": 1}, "lumped masses are not read"),
        ({"unsymmetric": 1}, "unsymmetric matrices are not read"),
        ({"solver": 4}, r"no .full file of sparse matrices \(EQSLV,SPARSE\)"),
        ({"solver": 8}, r"a .sub file of a superelement is not read.*\*EXPORT,K,MMF.*of_matrices"),
        ({"solver": 9}, "a .sub file of a superelement is not read"),
        ({"labels": (1, 2, 3, 4, 5, 20)}, r"unknowns \[1, 2, 3, 4, 5, 20\]; UX to ROTZ"),
        ({"flags": 0x80000000 | 1 << 29}, r"word 103 is compressed .*/FCOMP,FULL,0"),
        ({"flags": 0}, "word 103 is not of the expected kind"),
        ({"mass": False}, "no mass or stiffness; write both"),
        ({"equations": 23}, "tables of nodes and unknowns do not fit one another"),
        ({"content": b"BEGIN BULK"}, "no record at word 0; it is no .full file"),
        ({"nodes": "/PREP7\n"}, "no NBLOCK with its format; write the archive with CDWRITE,DB"),
        ({"nodes": "NBLOCK,6,SOLID\n"}, "no NBLOCK with its format"),
        (
            {"nodes": "NBLOCK,6,SOLID\n(3i9,6e0.13e3)\n        1        0        0 x\n"},
            "no NBLOCK with its format",
        ),
        ({"equations": 0}, "tables of nodes and unknowns do not fit one another"),
        (
            {"nodes": "NBLOCK,6,SOLID\n(3i9,6e21.13e3)\n        1        0        0 x\n"},
            "a.cdb:3: .* is no line of NBLOCK",
        ),
        (
            {"nodes": "NBLOCK,6,SOLID\n(3i9,6e21.13e3)\n        1        0        0\n"},
            "node 2 is not among the 1 nodes of",
        ),
    ],
)
def test_what_is_refused(files, changes, words):
    _, written = files
    with pytest.raises(al.AlembertError, match=words):
        fl.read_ansys(*written(**changes))


def test_damaged_rows(files):
    fe, written = files
    content = bytearray(full(fe))
    word = 206 + 6 + 3 + len(fe.names) + 3 + 2  # the first column of K
    content[4 * word : 4 * word + 4] = struct.pack("<i", 999)
    with pytest.raises(al.FileError, match="unknown 1 has entries that do not fit"):
        fl.read_ansys(*written(content=bytes(content)))
    odd = written(content=record(np.zeros(1, "<i4"), 0))[1]
    with pytest.raises(al.FileError, match="word 0 ends within a number"):
        ansys._Full(odd).record(0, "f")
    with pytest.raises(al.FileError, match="No such file"):
        fl.read_ansys(written()[0], "/nowhere.full")
    with pytest.raises(al.FileError, match="No such file"):
        fl.read_ansys("/nowhere.cdb", written()[1])
