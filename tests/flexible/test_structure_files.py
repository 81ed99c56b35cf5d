"""Structures from files: small decks and matrices written here, read back, and refused where they are hostile."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from structures import component, straight

import alembert as al

fl = al.flexible

DECK = """SOL 103
CEND
BEGIN BULK
$ a frame in millimetres, tonnes and seconds
GRID    1               0.      0.      0.
GRID,2,,100.,0.,0.
GRID*                  3                           100.0             0.0+
*                  200.0
CBAR    10      5       1       2       0.      1.      0.
CBAR,11,5,2,3,1
CONM2   20      3               1.5-3   0.      0.      1.      + A
+ A     2.      0.1     3.      0.      0.      4.
PBAR    5       7       50.     200.    300.    400.
MAT1    7       70.+3           .3      2.7-9
SPC1    1       123456  1
ENDDATA
"""


def output4(path, matrices):
    """Dense matrices as text."""
    text = ""
    for name, matrix in matrices.items():
        rows, columns = matrix.shape
        text += f"{columns:8d}{rows:8d}{2:8d}{2:8d}{name:8s}1P,3E24.16\n"
        for k, column in enumerate(matrix.T):
            numbers = [f"{x:24.16E}" for x in column]
            text += f"{k + 1:8d}{1:8d}{rows:8d}\n"
            text += "".join("".join(numbers[i : i + 3]) + "\n" for i in range(0, rows, 3))
        text += f"{columns + 1:8d}{1:8d}{1:8d}\n{1.0:24.16E}\n"
    return write(path, text)


def write(path, text):
    path.write_text(text)
    return path


def test_a_deck_of_bars_is_the_framework_it_says(tmp_path):
    fe = fl.read_nastran(write(tmp_path / "frame.bdf", DECK), units="mm-t-s")
    section = fl.CrossSection.of(70e9, 2700.0, 50e-6, G=70e9 / 2.6, I_z=200e-12, I_y=300e-12, J=400e-12)
    body = al.Inertia(1.5, (0, 0, 1e-3), (2e-3, -1e-4, 3e-3, 0, 0, 4e-3))
    expected = fl.framework(
        {1: (0, 0, 0), 2: (0.1, 0, 0), 3: (0.1, 0, 0.2)},
        [fl.Member(1, 2, section, toward=(0, 1, 0)), fl.Member(2, 3, section, toward=(-0.1, 0, 0))],
        masses=[fl.LumpedMass(3, body)],
    )
    for name in "MK":
        A, B = (getattr(x, name).toarray() for x in (fe, expected))
        np.testing.assert_allclose(A, B, rtol=1e-9, atol=1e-12 * np.abs(B).max())
    assert fe.report(1).rigid == 6


def test_sections_of_beams(tmp_path):
    """Mass besides that of the material, and shear: rigid for bars unless said, flexible for beams unless said."""
    text = """GRID,1,,0.,0.,0.
GRID,2,,1.,0.,0.
{element},1,3,1,2,0.,1.,0.
{property}
MAT1,1,1.+9,,.25,1000.
"""
    given = {"G": 0.4e9, "I_z": 1e-4, "I_y": 2e-4, "J": 3e-4, "line_mass": 5.0}
    tube = fl.CrossSection.tube(1e9, 1000.0, 0.1, 0.01, nu=0.25)
    for element, card, section in (
        ("CBAR", "PBAR,3,1,.01,1.-4,2.-4,3.-4,5.", fl.CrossSection.of(1e9, 1e3, 0.01, **given)),
        (
            "CBAR",
            "PBAR,3,1,.01,1.-4,2.-4,3.-4,5.\n,,,,,,,,\n,.5,.8",
            fl.CrossSection.of(1e9, 1e3, 0.01, **given, shear=(0.5, 0.8)),
        ),
        (
            "CBEAM",
            "PBEAM,3,1,.01,1.-4,2.-4,,3.-4,5.",
            fl.CrossSection.of(1e9, 1e3, 0.01, **given, shear=(1.0, 1.0)),
        ),
        ("CBAR", "PBARL,3,1,,TUBE\n,.1,.09,5.", dataclasses.replace(tube, rhoA=tube.rhoA + 5.0)),
    ):
        fe = fl.read_nastran(write(tmp_path / "one.bdf", text.format(element=element, property=card)))
        expected = fl.framework(
            {1: (0, 0, 0), 2: (1, 0, 0)}, [fl.Member(1, 2, section, toward=(0.0, 1.0, 0.0))]
        )
        for name in "MK":
            A, B = (getattr(x, name).toarray() for x in (fe, expected))
            np.testing.assert_allclose(A, B, rtol=1e-9, atol=1e-12 * np.abs(B).max())
    for element, card, said in (
        ("CBAR", "PBAR,3,1,.01,1.-4,2.-4,3.-4\n,,,,,,,,\n,,,1.-5", "I12 is 1e-05, expected zero"),
        ("CBEAM", "PBEAM,3,1,.01,1.-4,2.-4,1.-5,3.-4", "I12 is 1e-05, expected zero"),
        ("CBEAM", "PBEAM,3,1,.01,1.-4,2.-4,,3.-4\n,,,,,,,,\n,YES,1.,.02", "sections that change along"),
    ):
        with pytest.raises(al.FileError, match=said):
            fl.read_nastran(write(tmp_path / "one.bdf", text.format(element=element, property=card)))


def test_rods_springs_and_sections(tmp_path):
    text = """GRID,1,,0.,0.,0.
GRID,2,,1.,0.,0.
GRID,3,,0.,1.,0.
GRID,4,,1.,0.,0.
CROD,1,1,1,2
CONROD,2,2,3,1,.02,3.-4,,5.
CBAR,3,3,1,3,0.,0.,1.
CELAS2,4,7.,2,2,4,2
CBAR,5,4,4,3,0.,0.,1.
PROD,1,1,.01,7.-4
PBARL,3,1,,TUBE,,,,
,.1,.09
PBARL,4,1,,BAR,,,,
,.1,.2
MAT1,1,1.+9,,.25,1000.
"""
    fe = fl.read_nastran(write(tmp_path / "rods.bdf", text))
    tube, box = np.pi * (0.1**2 - 0.09**2), 0.02
    # with the 5 kg/m of the CONROD besides
    assert fe.mass == pytest.approx(
        1000 * (0.01 + 0.02 * np.sqrt(2) + tube + box * np.sqrt(2)) + 5 * np.sqrt(2)
    )
    # rods twist between nodes that have rotations; nothing else turns node 2
    thin = fl.read_nastran(write(tmp_path / "thin.bdf", text.replace("3.-4", "").replace("7.-4", "")))
    assert abs(fe.K - thin.K).max() == 0
    more = text + "CROD,6,1,1,4\n"
    twist = [fl.read_nastran(write(tmp_path / "x.bdf", x)).K for x in (more, more.replace("7.-4", ""))]
    i, j = fe.unknowns(1, "rx")[0], fe.unknowns(4, "rx")[0]
    assert (twist[0] - twist[1])[i, j] == pytest.approx(-4e8 * 7e-4)  # G J / L
    assert abs(twist[0] - twist[1]).sum() == pytest.approx(4 * 4e8 * 7e-4)
    i, j = fe.unknowns(2, "y")[0], fe.unknowns(4, "y")[0]
    assert fe.K[i, j] == pytest.approx(-7.0)


def matrix_lines(A, fe, form):
    lines = []
    A = sp.coo_array(sp.tril(A))
    for r, c, v in zip(*A.coords, A.data, strict=True):
        (a, d), (b, e) = fe.dofs[r], fe.dofs[c]
        lines.append(form(int(a) + 1, int(d) + 1, int(b) + 1, int(e) + 1, float(v)))
    return "\n".join(lines) + "\n"


def test_component_modes_of_a_punch_file(tmp_path):
    """A component by Craig and Bampton: two grid points and twelve scalar points, in millimetres and tonnes."""
    fe, reduced = component()
    deck = write(tmp_path / "a.bdf", "GRID,1,,0.,0.,0.\nGRID,9,,1000.,0.,0.\nSPOINT,101,THRU,112\n")
    keys = [(9 if node else 1, d + 1) for node, d in reduced.dofs[:12]] + [(101 + k, 0) for k in range(12)]
    scale = np.array([1.0 if d < 3 else 1000.0 for _, d in reduced.dofs])  # of rotations; modes have any unit
    lines = []
    for name, A in (("MAAX", reduced.M / 1000), ("KAAX", reduced.K / 1000)):
        A = A.toarray() * scale * scale[:, None]
        lines.append(f"DMIG,{name},0,6,2")
        for k in range(24):
            for j in range(k + 1):
                (a, d), (b, e) = keys[k], keys[j]
                lines.append(f"DMIG*,{name},{b},{e or ''},\n*,{a},{d or ''},{A[k, j]:.16e},")
    punch = write(tmp_path / "a.pch", "\n".join(lines) + "\n")
    found = fl.read_nastran(deck, matrices=punch, mass="MAAX", stiffness="KAAX", units="mm-t-s")
    assert (found.size, len(found.nodal), found.names) == (24, 12, ("1", "9"))
    np.testing.assert_allclose(found.rigid_mass, fe.rigid_mass, atol=1e-9 * fe.rigid_mass.max())
    exact = fl.frequencies(fe, fl.normal_modes(fe, 4, held=0))
    modes = fl.normal_modes(found, 4, held=1)
    np.testing.assert_allclose(
        fl.frequencies(found, modes), exact, rtol=2e-4
    )  # twelve modes between the ends


def test_matrices_of_other_programs_are_read_back(tmp_path):
    fe = straight(3)
    grids = "".join(f"GRID,{k + 1},,{x[0]!r},0.,0.\n" for k, x in enumerate(fe.positions.tolist()))
    deck = write(tmp_path / "beam.bdf", grids)
    punch = "".join(
        f"DMIG,{name},0,6,2\n"
        + matrix_lines(A, fe, lambda a, d, b, e, v, n=name: f"DMIG*,{n},{b},{e},\n*,{a},{d},{v:.10e},")
        for name, A in (("MAAX", fe.M), ("KAAX", fe.K))
    )
    direct = fl.read_nastran(
        deck, matrices=write(tmp_path / "beam.pch", punch), mass="MAAX", stiffness="KAAX"
    )
    nodes = write(tmp_path / "beam.inp", "*HEADING\n*NODE\n" + grids.replace("GRID,", "").replace(",,", ","))
    files = [
        write(tmp_path / f"{n}.mtx", matrix_lines(A, fe, lambda *x: "{}, {}, {}, {}, {:.10e}".format(*x)))
        for n, A in (("mass", fe.M), ("stiffness", fe.K))
    ]
    abaqus = fl.read_abaqus(nodes, mass=files[0], stiffness=files[1])
    lines = [
        x.split(", ") for x in files[1].read_text().splitlines()
    ]  # some entries above the diagonal, each once
    mixed = "\n".join(", ".join((*x[2:4], *x[:2], x[4]) if k % 3 else x) for k, x in enumerate(lines))
    turned = write(tmp_path / "turned.mtx", mixed)
    found = [direct, abaqus, fl.read_abaqus(nodes, mass=files[0], stiffness=turned)]
    path = output4(tmp_path / "beam.op4", {"MGG": fe.M.toarray(), "KGG": fe.K.toarray()})
    found.append(fl.read_nastran(deck, matrices=path))
    for other in found:
        for name in "MK":
            A, B = (getattr(x, name).toarray() for x in (fe, other))
            np.testing.assert_allclose(A, B, atol=1e-9 * np.abs(A).max())  # ten digits
    assert found[0].names == ("1", "2", "3", "4")


def fem(modes, K, lumped, positions, shapes):
    count = len(positions)
    lines = ["** RECORD GROUP 1, HEADER", f" REV0 {count} {modes} 0 0 0", "** RECORD GROUP 2, NODES"]
    lines += [" ".join(str(k + 1) for k in range(count))]
    for group, axis in ((5, 0), (6, 1), (7, 2)):
        lines += [f"** RECORD GROUP {group}, COORDINATES", *(f"{x[axis]:.16e}" for x in positions)]
    lines += ["** RECORD GROUP 8, MODE SHAPES"]
    for k in range(modes):
        lines += [
            f"**    NORMAL MODE SHAPE #  {k + 1}",
            *(" ".join(f"{v:.16e}" for v in row) for row in shapes[k]),
        ]
    lines += ["** RECORD GROUP 10, MODAL STIFFNESS", *(" ".join(f"{v:.16e}" for v in row) for row in K)]
    lines += ["** RECORD GROUP 11, LUMPED", *(" ".join(f"{v:.16e}" for v in row) for row in lumped)]
    return "\n".join(lines) + "\n"


def lumped_beam(count=8):
    """All mass at the nodes, so that a .fem file loses nothing."""
    soft = fl.CrossSection(0.0, 1e4, 1.0, 2.0, 3.0)
    ball = al.Inertia(0.25, (0, 0, 0), (0.02, 0, 0.03, 0, 0, 0.04))
    nodes = {k + 1: (k / count, 0, 0) for k in range(count + 1)}
    members = [fl.Member(k, k + 1, soft) for k in range(1, count + 1)]
    return fl.framework(nodes, members, masses=[fl.LumpedMass(k, ball) for k in nodes])


def test_a_modal_file_of_mbdyn_is_the_body(tmp_path):
    fe = lumped_beam()
    modes = fl.normal_modes(fe, 3, held=1)
    shapes = modes.shapes.T.reshape(3, -1, 6)
    K = modes.shapes.T @ (fe.K @ modes.shapes)
    lumped = np.tile([0.25, 0.25, 0.25, 0.02, 0.03, 0.04], (9, 1))
    text = fem(3, K, lumped, fe.positions, shapes)
    body = fl.read_mbdyn(write(tmp_path / "beam.fem", text), attachment=1, nodes={"tip": 9})
    other = fl.structure_body(fe, modes, attachment=1, nodes={"tip": 9}, stiffening="inconsistent")
    np.testing.assert_allclose(body.frequencies(), other.frequencies(), rtol=1e-10)
    np.testing.assert_allclose(body.array("second_moment"), other.array("second_moment"), atol=1e-12)
    scale = (
        body.node_array("tip", "shapes")[:, 1:]
        @ np.ones(2)
        / (other.node_array("tip", "shapes")[:, 1:] @ np.ones(2))
    )
    np.testing.assert_allclose(
        body.array("shape_products")[:2],
        (scale[:, None, None] * other.array("shape_products"))[:2],
        atol=1e-10,
    )
    for change, message in (
        (("REV0 9", "REV0 x"), "the header is"),
        (("GROUP 11", "GROUP 14"), "no record group 11"),
        (("GROUP 1,", "GROUP 15,"), "no '\\*\\* RECORD GROUP 1'"),
        (
            ("** RECORD GROUP 10, MODAL STIFFNESS\n", "** RECORD GROUP 10\n1.0\n"),
            "has 10 entries, expected 9",
        ),
        (("1.0000000000000000e+00\n", "abc\n"), "no numbers"),
    ):
        with pytest.raises(al.FileError, match=message):
            fl.read_mbdyn(write(tmp_path / "bad.fem", text.replace(*change)), attachment=1)
    with pytest.raises(al.FileError, match="add up to 0"):
        zero = fem(3, K, 0 * lumped, fe.positions, shapes)
        fl.read_mbdyn(write(tmp_path / "bad.fem", zero), attachment=1)
    with pytest.raises(al.ArgumentError, match="no node 77"):
        fl.read_mbdyn(tmp_path / "beam.fem", attachment=77)
    with pytest.raises(al.ArgumentError, match="has no geometric stiffness"):
        fl.read_mbdyn(tmp_path / "beam.fem", attachment=1, stiffening="consistent")
    with pytest.raises(al.FileError, match="No such file"):
        fl.read_mbdyn(tmp_path / "none.fem", attachment=1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (("50.  ", "x.5  "), al.FileError, r"bad.bdf:13: PBAR: field 4 is 'x.5', expected a number"),
        (("CBAR    10      5 ", "CBAR    10      6 "), al.FileError, "there is no PBAR 6"),
        (("MAT1    7 ", "MAT1    8 "), al.FileError, "there is no MAT1 7"),
        (("70.+3", "-1.  "), al.FileError, "E is -1.0"),
        (("GRID    1 ", "GRID    2 "), al.FileError, "grid point 2 is there twice"),
        (("GRID    1       ", "GRID    1       9"), al.FileError, "there is no coordinate system 9"),
        (("CBAR,11,5,2,3,1", "CBAR,11,5,2,9,1"), al.FileError, "at grid point 9, which is not there"),
        (("CBAR,11,5,2,3,1", "CBAR,11,5,2,3,8"), al.FileError, "there is no grid point 8"),
        (("CBAR,11,5,2,3,1", "CBAR,11,5,2,x,1"), al.FileError, "field 5 is 'x', expected a whole number"),
        (("CBAR,11,5,2,3,1", "CBAR,11,5,2,3,1\n,12"), al.FileError, "offsets and pin flags"),
        (
            ("CBAR,11,5,2,3,1", "CQUAD4,11,5,1,2,3,4"),
            al.UnsupportedError,
            "elements CQUAD4 are not assembled here",
        ),
        (("CBAR,11,5,2,3,1", "INCLUDE 'x.bdf'"), al.FileError, "INCLUDE is not followed"),
        (("CBAR,11,5,2,3,1", "CORD1C,1"), al.FileError, "CORD1C: is not read"),
        (("CBAR,11,5,2,3,1", "CORD2R,4,3"), al.FileError, "a system within a system"),
        (("CBAR,11,5,2,3,1", "CELAS2,4,7.,2,2,3,2"), al.FileError, "at one place"),
        (("CBAR,11,5,2,3,1", "CELAS2,4,7.,2,2,3,1"), al.FileError, "same components"),
        (
            ("PBAR    5       7       50.     200.", "PBAR    5       7       50.     0.  "),
            al.FileError,
            "above zero",
        ),
        (
            ("PBAR    5       7       50.     200.", "PBARL   5       7               HAT "),
            al.FileError,
            "sections 'HAT'",
        ),
        (
            ("CONM2   20      3               ", "CONM2   20      3       2       "),
            al.FileError,
            "system of their own",
        ),
        (("GRID,2,,100.,0.,0.", "GRID,2,,100.,0.,0.,4"), al.FileError, "displacements in system 4"),
        (("GRID,2,,100.,0.,0.", "GRID,2,,,"), al.ModelError, "has no length"),
        (("$ a frame", "+ x"), al.FileError, "a continuation without an entry"),
        (("1.5-3", "     "), al.FileError, "field 5 is empty"),
    ],
)
def test_bad_decks_are_refused(tmp_path, change, error, message):
    with pytest.raises(error, match=message):
        fl.read_nastran(write(tmp_path / "bad.bdf", DECK.replace(*change)), units="mm-t-s")


def test_other_bad_files_are_refused(tmp_path):
    deck = write(tmp_path / "a.bdf", "GRID,1,,0.,0.,0.\n")
    inp = write(tmp_path / "a.inp", "*NODE\n1, 0., 0., 0.\n")
    good = write(tmp_path / "good.mtx", "1,1, 1,1, 2.0\n")

    def abaqus(nodes=inp, matrix=good):
        return lambda: fl.read_abaqus(nodes, mass=good, stiffness=matrix)

    def punch(text):
        return lambda: fl.read_nastran(
            deck, matrices=write(tmp_path / "a.pch", text), mass="M", stiffness="K"
        )

    pair = "DMIG,M,{0},1,,{0},1,1.0\nDMIG,K,{0},{1},,{0},{1},1.0\n"
    for call, error, message in (
        (lambda: fl.read_nastran(tmp_path / "none.bdf"), al.FileError, "No such file"),
        (lambda: fl.read_nastran(write(tmp_path / "e.bdf", "PARAM,X,1\n")), al.FileError, "no GRID entries"),
        (lambda: fl.read_nastran(deck), al.FileError, "no elements"),
        (punch("DMIG,M,1,1,,1,1,1.0\n"), al.FileError, "no DMIG 'K'; there is M"),
        (punch(pair.format(7, 1)), al.FileError, "an entry of 7, which is no grid point"),
        (punch(pair.format(1, 0)), al.FileError, "component 0 of grid point 1"),
        (
            punch("DMIG,M,0,6,4\n" + pair.format(1, 1)),
            al.FileError,
            "a.pch:1: DMIG: complex matrices are not read",
        ),
        (
            punch(pair.format(1, 1) + "DMIG,K,1,2,,1,1,1.0\nDMIG,K,1,1,,1,2,2.0\n"),
            al.FileError,
            r"DMIG 'K' has 1 and 2 between \(1, 2\) and \(1, 1\); symmetric",
        ),
        (punch(pair.format(1, 9)), al.FileError, "component 9 of grid point 1"),
        (
            abaqus(write(tmp_path / "h.inp", "*NODE\n1, 0.\n1, 2.\n")),
            al.FileError,
            "h.inp:3: node 1 is there twice",
        ),
        (
            lambda: fl.read_nastran(write(tmp_path / "p.bdf", "GRID,1,,0.,0.,0.\nCELAS1,1,9,1,1\n")),
            al.FileError,
            "p.bdf:2: CELAS1: there is no PELAS 9",
        ),
        (
            lambda: fl.read_nastran(write(tmp_path / "q.bdf", "CORD2R,1,,0.,0.,0.,0.,0.,1.\n,0.,0.,2.\n")),
            al.FileError,
            "q.bdf:1: CORD2R: its three points are on one line",
        ),
        (abaqus(write(tmp_path / "g.inp", "*HEADING\n")), al.FileError, r"no \*NODE"),
        (abaqus(write(tmp_path / "b.inp", "*NODE\n1, x\n")), al.FileError, "b.inp:2: '1, x' is no line"),
        (abaqus(write(tmp_path / "c.inp", "*TRANSFORM\n")), al.UnsupportedError, "TRANSFORM is not read"),
        (abaqus(tmp_path / "none.inp"), al.FileError, "No such file"),
        (abaqus(matrix=write(tmp_path / "b.mtx", "1 1 2.0\n")), al.UnsupportedError, "do not tell the nodes"),
        (abaqus(matrix=write(tmp_path / "c.mtx", "1,1,1,1,nan\n")), al.FileError, "expected node, freedom"),
        (abaqus(matrix=write(tmp_path / "d.mtx", "** none\n")), al.FileError, "no entries"),
        (abaqus(matrix=write(tmp_path / "e.mtx", "2,1,2,1,1.\n")), al.FileError, "node 2 is not among"),
        (
            abaqus(matrix=write(tmp_path / "f.mtx", "1,11,1,11,1.\n")),
            al.UnsupportedError,
            "degree of freedom 11",
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def test_bad_output4_is_refused(tmp_path):
    deck = write(tmp_path / "a.bdf", "GRID,1,,0.,0.,0.\n")
    path = output4(tmp_path / "a.op4", {"MGG": np.eye(3), "KGG": np.eye(3)})
    with pytest.raises(al.FileError, match=r"the 1 grid points of .* have 6"):
        fl.read_nastran(deck, matrices=path)
    with pytest.raises(al.FileError, match="no matrix 'MAA'; there is KGG, MGG"):
        fl.read_nastran(deck, matrices=path, mass="MAA")


def test_grid_points_without_elements_are_named(tmp_path):
    with pytest.warns(al.AlembertWarning, match="left out: 99"):
        fe = fl.read_nastran(write(tmp_path / "a.bdf", DECK.replace("ENDDATA", "GRID,99,,1.,1.,1.\nENDDATA")))
    assert len(fe.names) == 3
