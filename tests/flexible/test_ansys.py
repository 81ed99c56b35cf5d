"""Ansys archives, .full and .sub files, written here by the rules that the reader states.

On 18 November 2026 the same functions read the example of ansys-mapdl-reader 0.56 (file.full and HexBeam.cdb, written by
Ansys): 1283.200, 1283.200, 5781.975 and 6919.399 Hz. That its documentation has the same figures is from memory: it was not
looked up then. No .sub file of Ansys itself was at hand.
"""

import struct

import numpy as np
import pytest
import scipy.io
import scipy.linalg
import scipy.sparse as sp
from structures import TUBE, component, straight

import alembert as al
from alembert.flexible import structure_files

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
    """What the messages on .sub files say: matrices as text, unknowns and places by hand, and a body of them."""
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
        ({"solver": 8}, r"a .sub file has its own nodes; give it alone, read_ansys\('a.full'\)"),
        ({"labels": (1, 2, 3, 4, 5, 20)}, r"unknowns \[1, 2, 3, 4, 5, 20\]; UX to ROTZ"),
        ({"flags": 0x80000000 | 1 << 29}, r"word 103 is compressed .*/FCOMP,FULL,0"),
        ({"flags": 0}, "word 103 is not of the expected kind"),
        ({"mass": False}, "no mass or stiffness; write both"),
        ({"equations": 23}, "tables of nodes and unknowns do not fit one another"),
        ({"content": b"BEGIN BULK"}, "no record at word 0; it is no .full or .sub file"),
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
        structure_files._Records(odd).record(0, "f")
    with pytest.raises(al.FileError, match="No such file"):
        fl.read_ansys(written()[0], "/nowhere.full")
    with pytest.raises(al.FileError, match="No such file"):
        fl.read_ansys("/nowhere.cdb", written()[1])


HEADER = """
kind nmrow nmatrx nedge numdof maxn wfmax lenbac nnod kunsym kstf kmass kdamp kss nvect nWorkL lenU1 sesort
lenlst ptrLodL ntrans ptrMtx ptrXFM ptrHED name1 name2 0 0 name3 name4 ptrDOF ptrDST ptrBAC ptrTIT ptrNOD
ptrXYZ ptrEDG ptrGDF thsubs ptrPOS ptrORG stfmax ptrLodH nmodes keydim cmsMethod name5 name6 name7 name8
nvnodes ptrCTXM nWorkH ptrCG
"""
"""the words of a .sub file's header, as the Programmer's Reference lists them"""
SUB = HEADER.split()


def sub(
    fe,
    *,
    labels=(1, 2, 3, 4, 5, 6),
    angles=None,
    extra=(),
    modes=0,
    order="rows",
    size=80,
    edit=None,
    **words,
):
    """The bytes of a .sub file: `fe` in nodal axes turned by `angles`, its last `modes` unknowns at nodes of no place."""
    K, M = fe.K.toarray(), fe.M.toarray()
    n, count = fe.size, len(fe.names)
    virtual = -(-modes // len(labels))
    numbers = [*(int(name) + 1 for name in fe.names), *range(901, 901 + virtual)]
    rows = [node * len(labels) + labels.index(d + 1) + 1 for node, d in fe.dofs[: n - modes]]
    rows += [count * len(labels) + k + 1 for k in range(modes)]
    places = np.zeros((count + virtual, 6))
    places[:count, :3] = fe.positions
    matrices = [K, M, *extra]
    if angles is not None:
        T = np.eye(n)
        for node, turn in angles.items():
            z, x, y = (np.radians(a) for a in turn)
            about_z = np.array([[np.cos(z), -np.sin(z), 0], [np.sin(z), np.cos(z), 0], [0, 0, 1]])
            about_x = np.array([[1, 0, 0], [0, np.cos(x), -np.sin(x)], [0, np.sin(x), np.cos(x)]])
            about_y = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
            for directions in ("x y z", "rx ry rz"):
                at = fe.unknowns(node, directions)
                T[np.ix_(at, at)] = about_z @ about_x @ about_y
            places[fe.node(node), 3:] = turn
        matrices = [T.T @ A @ T for A in matrices]
    stack = np.stack(matrices, axis=1 if order == "rows" else 0).reshape(-1, n)
    parts = {
        "DOF": record(list(labels)),
        "DST": record(rows),
        "BAC": record(numbers),
        "TIT": record(np.zeros(20, dtype=int)),
        "NOD": record(numbers),
        "XYZ": b"".join(record(x) for x in places),
        "Mtx": b"".join(record(row) for row in stack),
        "LodL": record(np.zeros(n)),
    }
    values = {
        "kind": 8, "nmrow": n, "nmatrx": len(matrices), "numdof": len(labels), "nnod": len(numbers), "kstf": 1, "kmass": 1,
        "kdamp": len(extra) > 0, "kss": len(extra) > 1, "nvect": 1, "nmodes": modes, "nvnodes": virtual, "ptrHED": 103,
    }  # fmt: skip
    at = 103 + size + 3
    for name, part in parts.items():
        values["ptr" + name] = at
        at += len(part) // 4
    header = np.zeros(size, dtype=int)
    for name, value in (values | words).items():
        header[SUB.index(name)] = value
    if edit is not None:
        parts = edit(parts)
    return record(np.r_[8, np.zeros(99, dtype=int)]) + record(header) + b"".join(parts.values())


def guyan(keep=(0, 4, 8), directions="x y z rx ry rz"):
    fe = straight(8, TUBE)
    kept = np.concatenate([fe.unknowns(k, directions) for k in keep])
    found = fl.guyan(fe, kept)
    return fl.FiniteElements.of_matrices(found.M, found.K, found.positions, found.dofs, names=found.names)


@pytest.fixture
def superelement(tmp_path):
    def read(fe, *, units="SI", **changes):
        (tmp_path / "a.sub").write_bytes(sub(fe, **changes))
        return fl.read_ansys(tmp_path / "a.sub", units=units)

    return read


@pytest.mark.parametrize(
    "changes",
    [{}, {"order": "matrices"}, {"size": 60}, {"angles": {0: (30.0, 0.0, 0.0), 8: (20.0, -50.0, 70.0)}}],
)
def test_a_superelement_is_read_back(superelement, changes):
    """Row by row as it is described; also matrix by matrix, with a header of older releases, in axes of the nodes."""
    fe = guyan()
    found = superelement(fe, **changes)
    assert found.names == ("1", "5", "9")
    np.testing.assert_array_equal(found.positions, fe.positions)
    np.testing.assert_array_equal(found.dofs, fe.dofs)
    for name in "MK":  # eps, turned there and back
        A, B = (getattr(x, name).toarray() for x in (found, fe))
        np.testing.assert_allclose(A, B, atol=1e-14 * np.abs(B).max())
    w, _ = found.natural(8)
    exact = scipy.linalg.eigvalsh(fe.K.toarray(), fe.M.toarray())[6:8]
    np.testing.assert_allclose(w[6:], np.sqrt(exact), rtol=1e-6)  # rigid modes 1e9 times lower are taken off


def test_a_superelement_of_some_unknowns_in_millimetres(superelement):
    fe = guyan((0, 3, 8), "x y z rx")
    found = superelement(fe, units="mm-t-s", labels=(1, 2, 3, 4))
    np.testing.assert_allclose(found.positions, fe.positions / 1000)
    assert found.mass == pytest.approx(1000 * fe.mass)


def test_component_modes_of_a_superelement(superelement):
    """Craig and Bampton's basis through the file: frequencies of the whole beam, and a body with its mass and inertia."""
    fe, reduced = component()
    found = superelement(reduced, modes=12)
    assert (found.size, len(found.nodal), found.names) == (24, 12, ("1", "9"))
    assert found.mass == pytest.approx(fe.mass)
    assert found.points.mass.sum() == pytest.approx(fe.mass)
    np.testing.assert_allclose(found.rigid_mass, fe.rigid_mass, atol=1e-12 * fe.rigid_mass.max())
    assert not found.report(1).problems
    exact = fl.frequencies(fe, fl.normal_modes(fe, 4, held=0))
    modes = fl.normal_modes(found, 4, held=1)
    np.testing.assert_allclose(
        fl.frequencies(found, modes), exact, rtol=2e-4
    )  # twelve modes between the ends
    body = fl.structure_body(found, modes, attachment=1, nodes={"tip": 9}, stiffening="inconsistent")
    whole = fl.structure_body(fe, fl.normal_modes(fe, 4, held=0), attachment=0, nodes={"tip": 8})
    np.testing.assert_allclose(body.frequencies(), exact, rtol=2e-4)
    assert set(body.units) == {"m"}
    free, full = (_free_frequencies(x) for x in (body, whole))
    np.testing.assert_allclose(free, full, rtol=1e-3)  # couplings of the modes with rigid motion


def _free_frequencies(body):
    builder = al.ModelBuilder("free", gravity=(0, 0, 0))
    builder.body("beam", body, joint=al.Free())
    model = builder.build()
    return al.linearize(model, model.neutral()).modes().frequencies[-4:]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"kind": 9},
            r"not read: its matrices are in sparse form; let Ansys write .*\*EXPORT,K,MMF.*of_matrices",
        ),
        ({"kunsym": 1}, "its matrices are unsymmetric"),
        ({"ntrans": 1}, r"turned or mirrored copy of another one \(SETRAN, SESYMM\)"),
        ({"thsubs": 1}, "one of temperatures"),
        ({"labels": (1, 2, 3, 4, 5, 20)}, r"unknowns \[1, 2, 3, 4, 5, 20\]; UX to ROTZ"),
        ({"kmass": 0}, r"no mass or stiffness; generate it with both \(SEOPT,name,2\)"),
        ({"nmatrx": 3}, "3 matrices, but it names stiffness, mass"),
        ({"nnod": 2}, "tables of nodes and unknowns do not fit"),
        ({"nmrow": 17}, "tables of nodes and unknowns do not fit"),
        ({"nmodes": 3}, "tables of nodes and unknowns do not fit"),
        ({"nmodes": 18}, "tables of nodes and unknowns do not fit"),
        ({"nmodes": 6}, r"rigid motions of its nodes along .* take forces. Supports hold it"),
        ({"numdof": 3}, "tables of nodes and unknowns do not fit"),
        ({"ptrDST": 0}, "no table DST, damaged"),
        ({"ptrNOD": 104}, "no record at word 104"),
        ({"ptrXYZ": 10**6}, "no record at word 1000000"),
        ({"ptrMtx": 103}, "word 103 is not of the expected kind"),
        ({"kstf": 0, "kdamp": 1}, "no mass or stiffness"),
    ],
)
def test_superelements_that_are_refused(superelement, changes, words):
    fe = guyan(directions="x y z rx ry") if "labels" in changes else guyan()
    with pytest.raises(al.AlembertError, match=words):
        superelement(fe, **changes)


def _with(name, part):
    return lambda parts: parts | {name: part(parts[name]) if callable(part) else part}


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_with("NOD", record([1, 5, 5])), "tables of nodes and unknowns do not fit"),
        (_with("DST", record([*range(1, 18), 17])), "tables of nodes and unknowns do not fit"),
        (_with("DST", record([*range(1, 18), 99])), "tables of nodes and unknowns do not fit"),
        (
            _with("DST", record(list(range(1, 19))[::-1])),
            "rigid motions of its nodes",
        ),  # rows in another order
        (_with("XYZ", lambda x: record(np.full(6, np.nan)) + x[60:]), "node 1 has no place"),
        (
            _with("XYZ", lambda x: record(np.array([0, 1.0, 0, 0, 0, 0])) + x[60:]),
            "rigid motions of its nodes",
        ),
        (_with("Mtx", lambda x: record(np.full(18, np.nan)) + x[156:]), "not finite, or are not symmetric"),
        (_with("Mtx", lambda x: record(np.arange(18.0)) + x[156:]), "not finite, or are not symmetric"),
        (
            _with("Mtx", lambda x: record(np.arange(17.0)) + x[148:]),
            "record 1 of its matrices has 17 numbers, expected 18",
        ),
        (_with("Mtx", lambda x: x[:-100]), "no record at word"),
        (_with("Mtx", lambda x: x[156:] + x[:156]), "not finite, or are not symmetric"),
    ],
)
def test_damaged_superelements(superelement, edit, words):
    with pytest.raises(al.FileError, match=words):
        superelement(guyan(), edit=edit)


def test_other_superelements(superelement, tmp_path):
    """Supports, damping, stress stiffness, single unknowns in turned axes, and a .full file without its nodes."""
    fe = guyan()
    held = fl.FiniteElements(
        fe.M, fe.K + sp.diags_array(np.r_[1e3, np.zeros(17)]), fe.positions, fe.dofs, fe.names
    )
    with pytest.raises(al.FileError, match=r"motions of its nodes along x.* take forces. Supports hold it"):
        superelement(held)
    damping = 0.01 * fe.K.toarray()
    with pytest.warns(al.AlembertWarning, match="its damping is left out"):
        found = superelement(fe, extra=[damping])
    np.testing.assert_allclose(found.M.toarray(), fe.M.toarray(), atol=1e-14)
    superelement(fe, extra=[0 * damping, 0 * damping])
    with pytest.raises(al.UnsupportedError, match=r"generated under load .*PSTRES,OFF"):
        superelement(fe, extra=[0 * damping, damping])
    flat = guyan(directions="x y z rx ry")
    with pytest.raises(al.UnsupportedError, match="node 1 has axes of its own and unknowns along some"):
        superelement(
            flat,
            edit=_with("XYZ", lambda x: record(np.array([0, 0, 0, 9.0, 0, 0])) + x[60:]),
            labels=(1, 2, 3, 4, 5),
        )
    (tmp_path / "b.full").write_bytes(full(straight(3)))
    with pytest.raises(al.FileError, match=r"it is no .sub file; .* read_ansys\('nodes.cdb', 'b.full'\)"):
        fl.read_ansys(tmp_path / "b.full")
