"""Standard input data: files written here from sums over point masses, in the ways of several programs, read back.

On 18 November 2026 the blocks of a published file (balken1m of EMBS_ModelicaLib, by PY_SID: J in six rows, a frame that
is fixed to no node) were read: 0.785 kg, the centre half a metre along x, 8.36 Hz by its Ke and Me. Its Ct does not fit its
Me (|Ct|^2 > m Me), so that a model refuses the body with a sentence.
"""

import numpy as np
import pytest

import alembert as al

fl = al.flexible
N, POINTS = 2, 7
PRODUCTS = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2))


@pytest.fixture(scope="module")
def points():
    """Masses, places, phi and chi of points; the first does not move, and is away from the origin."""
    rng = np.random.default_rng(5)
    m, x = rng.uniform(0.5, 2.0, POINTS), rng.normal(size=(POINTS, 3))
    phi, chi = rng.normal(size=(POINTS, N, 3)), rng.normal(size=(POINTS, N, N, 3))
    phi[0] = chi[0] = 0.0
    return m, x, phi, (chi + np.swapaxes(chi, 1, 2)) / 2


def rates(f, x):
    """Sum of f . W x over points, W = w w' - |w|^2, by its six products of rates."""

    def at(*axes):
        w = np.eye(3)[list(axes)].sum(axis=0)
        return float(np.einsum("pi,ij,pj->", f, np.outer(w, w) - w @ w * np.eye(3), x))

    return [at(i) if i == j else at(i, j) - at(i) - at(j) for i, j in PRODUCTS]


def taylor(name, m0, m1=None, *, last=False, structure=3):
    """`m1` is (modes, rows, columns)."""
    lines = [name, f" order = {0 if m1 is None else 1}", f" nrow = {len(m0)}", f" ncol = {m0.shape[1]}"]
    lines += [f" nq = {N}", " nqn = 0", f" structure = {structure}"]
    lines += [f" m0( {i + 1}, {j + 1}) = {value:.15E}" for (i, j), value in np.ndenumerate(m0)]
    for (q, i, j), value in np.ndenumerate(np.zeros((0, 0, 0)) if m1 is None else m1):
        at = (i + 1, j + 1, q + 1) if last else (i + 1, q + 1, j + 1)
        lines.append(" m1({}, {}, {}) = {:.15E}".format(*at, value))
    return [*lines, f"end {name}"]


def written(points, *, chi=True, last=False, swapped=False, sign=1.0, six=False, without=()):
    """The text of a file: sums over the points."""
    m, x, phi, shortened = points
    shortened = shortened * chi
    I = np.eye(3)
    J = np.einsum(
        "p,pab->ab", m, np.einsum("pi,pi->p", x, x)[:, None, None] * I - np.einsum("pa,pb->pab", x, x)
    )
    both = np.einsum("p,pa,pkb->kab", m, x, phi)
    J1 = 2 * np.einsum("kii->k", both)[:, None, None] * I - both - np.swapaxes(both, 1, 2)
    S = np.einsum("p,pki->ki", m, phi)
    Cr = np.einsum("p,pki->ki", m, np.cross(x[:, None], phi))
    Cr1 = np.einsum("p,plki->lki", m, np.cross(phi[:, :, None], phi[:, None]))  # phi_l x phi_k
    Cr1 += np.einsum("p,plki->lki", m, np.cross(x[:, None, None], shortened))
    Oe = sign * np.array([rates(m[:, None] * phi[:, k], x) for k in range(N)])
    Oe1 = sign * np.array(
        [
            [
                np.add(rates(m[:, None] * phi[:, k], phi[:, l]), rates(m[:, None] * shortened[:, k, l], x))
                for k in range(N)
            ]
            for l in range(N)
        ]
    )
    if swapped:
        Oe, Oe1 = Oe[:, [0, 1, 2, 3, 5, 4]], Oe1[:, :, [0, 1, 2, 3, 5, 4]]
    if six:  # xx, yy, zz, xy, xz, yz
        rows = np.array([(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]).T
        J, J1 = J[rows[0], rows[1]][:, None], J1[:, rows[0], rows[1]][:, :, None]
    Me = np.einsum("p,pki,pli->kl", m, phi, phi)
    Ct1 = np.einsum("p,pkli->lki", m, shortened) if chi else None
    lines = ["  2  2", "part", "new modal", "refmod", f" mass = {m.sum():.15E}", f" nelastq = {N}"]
    lines += [" ielastq(1) = 'first bending'", " ielastq(2) = torsion", "end refmod", "frame"]
    for number, p in ((1, 0), (2, POINTS - 1)):
        second = np.swapaxes(shortened[p], 1, 2) if chi else None  # [l, i, k]
        lines += [f"new node = {number}", " rframe = body ref"]
        lines += taylor("origin", x[p][:, None], phi[p][:, :, None], last=last)
        lines += taylor("phi", phi[p].T, second, last=last)
        lines += taylor("psi", 0.1 * phi[p].T) + taylor("AP", I) + ["end node"]
    lines += ["end frame"]
    mdCM1 = S[:, :, None]
    for name, m0, m1 in (
        ("mdCM", (m @ x)[:, None], mdCM1), ("J", J, J1), ("Ct", S, Ct1), ("Cr", Cr, Cr1), ("Me", Me, None),
        ("Oe", Oe, Oe1), ("Ke", np.diag([3.0, 5.0]), None), ("De", np.diag([0.1, 0.2]), None),
    ):  # fmt: skip
        if name not in without:
            lines += taylor(name, m0, m1, last=last)
    return "\n".join([*lines, "end modal", "end part", ""])


def expected(points, chi=True):
    m, x, phi, shortened = points
    return al.ModalBody.of_points(
        m,
        x - x[0],
        phi,
        stiffness=np.diag([3.0, 5.0]),
        foreshortening=shortened * chi,
        damping=np.diag([0.1, 0.2]),
    )


def printed(text):
    """In the layout of published files (PY_SID's beam of EMBSlib): wide columns, D exponents, blocks that are not needed."""
    lines = ["    2   2    :No. nodes, No. modes:File created using PY_SID!"]
    for line in text.splitlines()[1:]:
        left, equals, right = (part.strip() for part in line.partition("="))
        left = {"new modal": "new modal", "ielastq(1)": "ielastq (   1)", "ielastq(2)": "ielastq (   2)"}.get(
            left, left
        )
        if left.startswith("m"):
            right = right.replace("E", "D")
        if left == "Oe":
            # quadratic forms of rates, which follow from the others
            lines += [
                "           Ge",
                "                order                 =    0",
                "                nrow = 2",
            ]
            lines += ["                m0( 1, 6)             = 1.00000000000D+00", "           end Ge"]
        shown = f"     {left:<27}" + (f" = {right:>20}" if equals or left == "new modal" else "")
        lines.append(shown.rstrip())
    return "\n".join(lines) + "\n"


def test_the_layout_of_published_files(tmp_path, points):
    plain, wide = tmp_path / "plain.SID_FEM", tmp_path / "wide.SID_FEM"
    text = written(points).replace("'first bending'", "Eigen Mode    7 :       51.626 Hz")
    plain.write_text(text)
    wide.write_text(printed(text))
    one, two = (fl.read_sid(path, attachment=1, nodes={"tip": 2}) for path in (plain, wide))
    assert two.modes == ("Eigen_Mode_7_51_626_Hz", "torsion")
    assert one == two


@pytest.mark.parametrize(
    "way",
    [{}, {"last": True}, {"swapped": True}, {"sign": -1.0}, {"chi": False}, {"six": True, "swapped": True}],
    ids=str,
)
def test_the_body_is_that_of_the_points(tmp_path, points, way):
    """Its mass matrix at any deflection, its nodes, in every program's way to write it."""
    path = tmp_path / "body.SID_FEM"
    path.write_text(written(points, **way))
    body = fl.read_sid(path, attachment=1, nodes={"tip": 2})
    other = expected(points, way.get("chi", True))
    assert body.modes == ("first_bending", "torsion")
    assert body.stiffening == ("consistent" if way.get("chi", True) else "inconsistent")
    q = np.random.default_rng(1).normal(size=(5, N))
    ours, theirs = body.mass_matrix(q), other.mass_matrix(q)
    np.testing.assert_allclose(ours, theirs, atol=1e-12 * np.abs(theirs).max())
    for name in ("stiffness", "damping"):
        np.testing.assert_allclose(body.array(name), other.array(name))
    _, x, phi, chi = points
    tip = body.node("tip")
    np.testing.assert_allclose(tip.position, x[-1] - x[0])
    np.testing.assert_allclose(tip.shapes, phi[-1])
    np.testing.assert_allclose(tip.foreshortening, chi[-1] * way.get("chi", True), atol=1e-14)
    builder = al.ModelBuilder("flies")
    builder.body("body", body, joint=al.Free())
    assert builder.build().nv == 6 + N  # the checks of integrals pass


@pytest.mark.parametrize("chi", [True, False])
def test_modes_may_move_the_attachment(tmp_path, points, chi):
    """A frame that is fixed to no node: the body is that of the points seen from a node which moves and turns."""
    m, x, phi, shortened = points
    path = tmp_path / "free.SID_FEM"
    path.write_text(written(points, chi=chi, six=True))
    body = fl.read_sid(path, attachment=2, nodes={"tip": 1}, stiffening=None if chi else "inconsistent")
    nodes = [
        al.ModalNode(name, x[p], phi[p], 0.1 * phi[p], shortened[p] * chi)
        for name, p in (("root", POINTS - 1), ("tip", 0))
    ]
    other = al.ModalBody.of_points(
        m, x, phi, stiffness=np.diag([3.0, 5.0]), foreshortening=shortened * chi, nodes=nodes, attachment="root",
        stiffening=body.stiffening,
    )  # fmt: skip
    q = np.random.default_rng(2).normal(size=(5, N))
    theirs = other.mass_matrix(q)
    np.testing.assert_allclose(body.mass_matrix(q), theirs, atol=1e-12 * np.abs(theirs).max())
    for name in ("position", "shapes", "rotations", "foreshortening"):
        for node in ("root", "tip"):
            np.testing.assert_allclose(body.node_array(node, name), other.node_array(node, name), atol=1e-12)


def test_units(tmp_path, points):
    path = tmp_path / "body.SID_FEM"
    path.write_text(written(points))
    ours, other = fl.read_sid(path, attachment=1, units="mm-t-s"), expected(points)
    assert ours.mass == pytest.approx(1e3 * other.mass)
    q = np.array([0.2, -0.3])
    scale = np.array([1e-3] * 3 + [1.0] * 3 + [1.0] * N)  # turns have arms in mm; modes are lengths
    theirs = 1e3 * other.mass_matrix(1e3 * q) * np.outer(scale, scale)
    np.testing.assert_allclose(ours.mass_matrix(q), theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
    np.testing.assert_allclose(ours.frequencies(), other.frequencies())


def test_what_does_not_fit_is_refused(tmp_path, points):
    def message(text, error=al.FileError, **options):
        path = tmp_path / "bad.SID_FEM"
        path.write_text(text)
        with pytest.raises(error) as found:
            fl.read_sid(path, **({"attachment": 1} | options))
        return str(found.value)

    good = written(points)
    assert "no block 'Oe'" in message(written(points, without=("Oe",)))
    assert "no mass or number of modes" in message("part\nend part\n")
    assert "there is 1, 2" in message(good, al.ArgumentError, attachment=9)
    assert "stiffening is 'consistent', came 'ruthless'" in message(
        good, al.ArgumentError, stiffening="ruthless"
    )
    assert "is no number" in message(good.replace("nelastq = 2", "nelastq = two"))
    assert "Oe differs by" in message(good.replace("\nend Oe", "\n m0( 1, 1) = 1e3\nend Oe"))
    lines = good.splitlines()
    k = lines.index("mdCM")
    at = next(i for i in range(k, len(lines)) if lines[i].startswith(" m1"))
    changed = [*lines[:at], lines[at].partition("=")[0] + "= 1e3", *lines[at + 1 :]]
    assert "the terms m1 of mdCM differ from Ct" in message("\n".join(changed))
    k = lines.index("Cr")
    cut = [x for i, x in enumerate(lines) if not (x.startswith(" m1") and k < i < lines.index("end Cr"))]
    assert "block Cr has order 0" in message("\n".join(cut))
    assert "indices, expected 3" in message(good.replace(" m1(1, 1, 1)", " m1(1, 1)", 1))
    assert "beyond the sizes that 2 modes give" in message(good.replace("m0( 1, 2)", "m0( 1, 9)"))
    assert "has axes of its own (AP)" in message(
        good.replace(
            "AP\n order = 0\n nrow = 3\n ncol = 3\n nq = 2\n nqn = 0\n structure = 3\n m0( 1, 1) = 1.",
            "AP\n m0( 1, 1) = 0.",
            1,
        )
    )
    more = good.replace("phi\n order", "phi\n m0( 1, 9) = 1.0\n order", 1)
    assert "node 1 has entries beyond the sizes that 2 modes give" in message(more)
    assert "a mode moves no mass" in message(good.replace("nelastq = 2", "nelastq = 3"))
    stressed = good.replace("end modal", "ksigma\n m0( 1, 1) = 5.0\nend ksigma\nend modal")
    assert "forces of an initial stress (ksigma)" in message(stressed, al.UnsupportedError)
    assert "the name of the attachment, 1" in message(good, al.ArgumentError, nodes={"root": 2})
    assert "node 1 has no psi" in message(good.replace("psi\n", "xsi\n"))
    with pytest.raises(al.FileError, match="No such file"):
        fl.read_sid(tmp_path / "none.SID_FEM", attachment=1)
