"""Beams as modal bodies against the frequencies of Euler, Bernoulli and Timoshenko, held, free, spinning and loaded.

L = EI = rhoA = 1 unless said. References are roots of the characteristic equations or high-order solutions, to the digits
shown; tolerances are half a unit of the last digit shown, or the truncation of the modes where that is what is compared.
"""

import functools

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.optimize
from scipy.spatial.transform import Rotation

import alembert as al
from alembert import Expression, Inertia, ModelError
from alembert.flexible import beam
from alembert.flexible.beam import _joined, _sections
from alembert.flexible.beam_shapes import family_of
from alembert.model.modal import ModalBody, ModalNode

DIGITS = 6e-11  # half a unit in the eleventh digit of frequencies, relative


def frequencies(K, M):
    squares = scipy.linalg.eigh(K, M, eigvals_only=True)
    return np.sqrt(np.maximum(squares, 0.0))


def whole(body):
    """Mass matrix of the undeformed body free to move: (angular, linear, modes)."""
    s, E, Ek, S = (
        body.array(x) for x in ("first_moment", "second_moment", "shape_products", "shape_moments")
    )
    F = np.swapaxes(Ek, 1, 2)
    C = np.stack([F[:, 2, 1] - F[:, 1, 2], F[:, 0, 2] - F[:, 2, 0], F[:, 1, 0] - F[:, 0, 1]])
    skew = np.array([[0, -s[2], s[1]], [s[2], 0, -s[0]], [-s[1], s[0], 0]])
    J = np.trace(E) * np.eye(3) - E
    return np.block([[J, skew, C], [skew.T, body.mass * np.eye(3), S.T], [C.T, S, body.modal_mass()]])


def free(body, kept):
    """Elastic frequencies with the rigid motions `kept` (indices of the whole mass matrix) free."""
    index = [*kept, *range(6, 6 + body.count)]
    M = whole(body)[np.ix_(index, index)]
    K = np.zeros_like(M)
    K[len(kept) :, len(kept) :] = body.array("stiffness")
    return frequencies(K, M)[len(kept) :]


def stiffened(body, acceleration=(0, 0, 0), rates=((0, 0, 0),) * 3):
    """K with the motion of the frame: Tt and Tr are the matrices of the twelve unit loads."""
    Tt, Tr = body.array("foreshortening_moments"), body.array("foreshortening_products")
    softened = np.einsum("kli,i->kl", Tt, acceleration) + np.einsum("klij,ij->kl", Tr, rates)
    softened = softened + np.einsum("klij,ij->kl", body.array("pair_products"), rates)
    return body.array("stiffness") + (softened + softened.T) / 2


def spinning(body, rate, radius=0.0):
    """About z, with the root at a radius on the x axis."""
    rates = -(rate**2) * np.diag([1.0, 1.0, 0.0])
    return stiffened(body, (-(rate**2) * radius, 0, 0), rates)


@pytest.mark.parametrize("plane", ["y", "z"])
def test_cantilever(plane):
    body = beam(1.0, 1.0, **{f"bending_{plane}": 3, f"EI_{'z' if plane == 'y' else 'y'}": 1.0})
    np.testing.assert_allclose(body.frequencies(), [3.5160152685, 22.0344915647, 61.6972144135], rtol=DIGITS)
    assert body.modes == (f"bending_{plane}_1", f"bending_{plane}_2", f"bending_{plane}_3")


@pytest.mark.parametrize("ends", ["clamped", "free"])
def test_second_order_against_the_strains(ends):
    """(4) and (5): with curvatures and strains of the modes, sections are displaced and turned so but for third order.

    The frame of a section is integrated, R' = R a'~, r' = R (e_x + e). Half the deflection then leaves an eighth; fourth
    order moves that by the deflections, 2 %.
    """
    L, end = 1.3, 0.7
    stiff = {"bending_y": (1.0, 0.02, 3.0), "bending_z": (2.0, 0.03, None), "torsion": (1.0, 0.05, None)}
    families = [
        family_of(kind, 1, k, L, 1.0, gyration, shear, ends, None)
        for kind, (k, gyration, shear) in (stiff | {"axial": (10.0, 0.0, None)}).items()
    ]
    placed, turned, chi, twist = _sections(families, np.array([end]), L)
    start, angle, _, _ = _joined(families, np.zeros(1), L)
    q0 = np.array([1.0, -0.7, 0.9, 0.5])

    def error(q):
        def slope(x, y):
            _, _, bend, strain = (q @ part[0] for part in _joined(families, np.array([x / L]), L))
            R = y[3:].reshape(3, 3)
            return np.concatenate([R @ (strain + np.eye(3)[0]), np.cross(R, bend / L).ravel()])

        first = np.concatenate([q @ start[0], Rotation.from_rotvec(q @ angle[0]).as_matrix().ravel()])
        y = scipy.integrate.solve_ivp(slope, (0, end * L), first, rtol=1e-11, atol=1e-12).y[:, -1]
        u, b = (
            q @ a[0] + np.einsum("k,l,kli->i", q, q, b[0]) / 2 for a, b in ((placed, chi), (turned, twist))
        )
        b_exact = Rotation.from_matrix(y[3:].reshape(3, 3)).as_rotvec()
        return np.array([np.abs(y[:3] - u - [end * L, 0, 0]).max(), np.abs(b_exact - b).max()])

    np.testing.assert_allclose(error(0.04 * q0) / error(0.02 * q0), 8.0, rtol=0.05)


def test_slender_beams_with_torsion_bend_further_than_their_radius():
    """Second order of torsion with bending is not in the mass, where a small inertia of torsion would not outweigh it."""
    tube = beam(
        1.0, 1.0, EI_y=1.0, EI_z=1.0, GJ=0.7, rhoI_y=1e-4, rhoI_z=1e-4, bending_y=1, bending_z=1, torsion=1
    )
    assert tube.node_array("tip", "foreshortening")[0, 2, 2] != 0.0
    assert tube.least_inertia([0.05, 0.0, 0.2]) > 0.0


def test_tip_mass():
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=3, tip=Inertia.point(1.0))
    np.testing.assert_allclose(body.frequencies(), [1.5572978612, 16.2500851582, 50.8958428312], rtol=DIGITS)
    assert body.mass == pytest.approx(2.0, rel=1e-14)


def test_free_modes_with_a_free_root():
    """The elastic modes of a free beam, made relative to its root, are those of the free body."""
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=2, ends="free")
    np.testing.assert_allclose(free(body, [2, 4]), [22.3732854481, 61.6728228679], rtol=DIGITS)


def test_pinned_modes_with_a_pinned_root():
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=2, ends="pinned")
    np.testing.assert_allclose(free(body, [2]), [15.4182057170, 49.9648620318], rtol=DIGITS)


@pytest.mark.parametrize(
    ("n", "held", "floating"),
    [
        (0, 3.532731543, 26.83281573),
        (1, 3.517235412, 22.453836664),
        (2, 3.516220519, 22.453836664),
        (3, 3.516069788, 22.382472002),
        (4, 3.516034285, None),
    ],
)
def test_craig_bampton(n, held, floating):
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=n, ends="craig-bampton")
    assert body.modes[:2] == ("bending_y_tip", "bending_y_slope")
    assert body.frequencies()[0] == pytest.approx(held, rel=3e-10)
    if floating:
        assert free(body, [2, 4])[0] == pytest.approx(floating, rel=3e-10)


def test_bare_free_modes_of_a_cantilever():
    """Two free modes bend too little at a clamped root; residual modes are for the finite-element bodies."""
    assert beam(1.0, 1.0, EI_z=1.0, bending_y=2, ends="free").frequencies()[0] == pytest.approx(
        4.762827264, rel=3e-10
    )


@pytest.mark.parametrize(
    ("n", "flap"), [(1, 13.5721333), (2, 13.2796620), (3, 13.2035626), (4, 13.1829201), (6, 13.1728102)]
)
def test_flap_of_a_spinning_beam_with_few_modes(n, flap):
    body = beam(1.0, 1.0, EI_y=1.0, bending_z=n)
    assert frequencies(spinning(body, 12.0), body.modal_mass())[0] == pytest.approx(flap, rel=5e-9)


@functools.cache
def spun_beams():
    """With modes in both directions, out of the plane and in it."""
    return (
        beam(1.0, 1.0, EI_y=1.0, EI_z=1.0, bending_y=16, bending_z=16),
        beam(1.0, 1.0, EI_y=1.0, bending_z=16),
        beam(1.0, 1.0, EI_z=1.0, bending_y=16),
    )


@pytest.mark.parametrize(
    ("rate", "radius", "flap"),
    [
        (2.0, 0.0, 4.13731957),
        (6.0, 0.0, 7.36037302),
        (12.0, 0.0, 13.17015049),
        (2.0, 1.0, 4.83368887),
        (6.0, 1.0, 10.44386587),
        (12.0, 1.0, 19.72154194),
    ],
)
def test_flap_and_lag_of_a_spinning_beam(rate, radius, flap):
    """Converged with 16 modes to 1e-5 at rate 12, better below: the cantilever's modes have no tension in them."""
    body, out_of_plane, in_plane = spun_beams()
    w = frequencies(spinning(body, rate, radius), body.modal_mass())
    first = frequencies(spinning(out_of_plane, rate, radius), out_of_plane.modal_mass())[0]
    assert first == pytest.approx(flap, rel=3e-5)
    lag = frequencies(spinning(in_plane, rate, radius), in_plane.modal_mass())[0]
    assert lag**2 == pytest.approx(first**2 - rate**2, rel=1e-9)
    assert w[0] == pytest.approx(lag, rel=1e-9)


def test_string_without_stiffness():
    """EI = 0: (flap/W)^2 = 1, 6, 15."""
    body = beam(1.0, 1.0, EI_y=1e-9, bending_z=20)
    w = frequencies(spinning(body, 1.0), body.modal_mass())
    np.testing.assert_allclose(w[:3] ** 2, [1.0, 6.0, 15.0], rtol=2e-2)  # modes clamp what a string does not


def test_buckling_under_its_own_weight():
    def critical(n):
        body = beam(1.0, 1.0, EI_z=1.0, bending_y=n)
        # standing: the frame accelerates upwards along the beam
        load = -np.einsum("kli,i->kl", body.array("foreshortening_moments"), (1.0, 0, 0))
        return 1 / scipy.linalg.eigh(load, body.array("stiffness"), eigvals_only=True)[-1]

    assert critical(1) == pytest.approx(7.8697148175, rel=1e-10)
    # what is left shrinks like n^-4
    assert critical(8) == pytest.approx(7.8373474389, rel=1e-5)


def test_gravity_along_the_beam():
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=10)
    hanging = frequencies(stiffened(body, (-5.0, 0, 0)), body.modal_mass())[0]
    standing = frequencies(stiffened(body, (5.0, 0, 0)), body.modal_mass())[0]
    np.testing.assert_allclose([hanging, standing], [4.4943130, 2.1184859], rtol=1e-6)


@pytest.mark.parametrize(("force", "first"), [(-(np.pi**2) / 8, 2.5345602161), (5.0, 5.7681990202)])
def test_dead_load_at_the_tip(force, first):
    """It enters through chi at the tip; modes without a load at their tip converge slowly (n^-3) to the shape under it."""
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=12)
    chi = np.array(body.node("tip").foreshortening)[:, :, 0]
    K = body.array("stiffness") - force * chi
    assert frequencies(K, body.modal_mass())[0] == pytest.approx(first, rel=3e-5)


def test_rotary_inertia_of_the_sections():
    body = beam(2.0, 3.0, EI_z=1.0, bending_y=2, rhoI_y=0.02, rhoI_z=0.03)
    E = body.array("second_moment")
    np.testing.assert_allclose(np.diagonal(E), [3.0 * 2.0**3 / 3, 0.03 * 2.0, 0.02 * 2.0], rtol=1e-12)
    slender = beam(2.0, 3.0, EI_z=1.0, bending_y=2)
    assert np.all(body.frequencies() < slender.frequencies())


def test_timoshenko_tends_to_euler_bernoulli():
    stiff = beam(1.0, 1.0, EI_z=1.0, bending_y=2, rhoI_z=1e-7, kGA_y=1e6)
    # shear lowers the second frequency by some 20 EI/(kGA L^2)
    np.testing.assert_allclose(stiff.frequencies(), [3.5160152685, 22.0344915647], rtol=5e-5)


def test_torsion_and_axial():
    body = beam(2.0, 3.0, GJ=5.0, EA=7.0, torsion=2, axial=2, rhoI_y=0.01, rhoI_z=0.02)
    torsion = (np.array([1, 3]) * np.pi / 4) * np.sqrt(5.0 / 0.03)
    axial = (np.array([1, 3]) * np.pi / 4) * np.sqrt(7.0 / 3.0)
    np.testing.assert_allclose(body.frequencies(), np.sort([*torsion, *axial]), rtol=1e-10)


EXPRESSIONS = {
    "all": {"length": "L", "rhoA": "r", "EI_z": "EI", "bending_y": 2, "damping": (0.1, 0.02)},
    "craig-bampton": {"length": "L", "rhoA": "r", "EI_z": "EI", "bending_y": 1, "ends": "craig-bampton"},
    "two planes": {
        "length": "L",
        "EI_z": "EI",
        "EI_y": 2.0,
        "bending_y": 1,
        "bending_z": 2,
        "damping_ratio": 0.01,
    },
    "a ratio each": {"rhoA": "r", "EI_z": "EI", "bending_y": 2, "damping_ratio": [0.01, 0.02]},
    "a tip body": {
        "EI_z": "EI",
        "bending_y": 2,
        "tip": Inertia.box(1.0, (0.3, 0.2, 0.1)),
        "damping_ratio": "z",
    },
    "torsion": {"GJ": "GJ", "EI_y": "EI", "rhoI_y": 0.1, "torsion": 1, "bending_z": 1, "damping_ratio": "z"},
    "an offset": {"GJ": "GJ", "torsion": 1, "EI_z": "EI", "bending_y": 1, "mass_offset": (0.0, 0.1)},
    "damping": {"EI_z": 5.0, "bending_y": 2, "damping_ratio": ["z", "2 * z"], "damping": ("0.1 * z", "z")},
}


@pytest.mark.parametrize("given", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_expressions_scale_as_numbers_do(given):
    numbers = {"L": 2.0, "r": 3.0, "EI": 5.0, "GJ": 4.0, "z": 0.03}

    def at(kind, value):
        if isinstance(value, tuple | list):
            return type(value)(at(kind, x) for x in value)
        formula = isinstance(value, str) and value != "craig-bampton"
        return kind(value) if formula else value

    both = [
        {"length": 2.0, "rhoA": 3.0, "nodes": {"mid": 0.5}} | {name: at(kind, x) for name, x in given.items()}
        for kind in (Expression, lambda text: Expression(text).evaluate(numbers))
    ]
    symbolic, numeric = (beam(**arguments) for arguments in both)
    # a slope is a coordinate in radians, and times the length where that is an expression
    scale = np.where(
        [unit != other for unit, other in zip(symbolic.units, numeric.units, strict=True)], 2.0, 1.0
    )

    def compare(name, ours, theirs, modes):
        for axis in range(modes):
            shape = np.ones(theirs.ndim, dtype=int)
            shape[axis] = len(scale)
            theirs = theirs / scale.reshape(shape)
        # shapes come from an eigenproblem of condition 1e6, solved for L = 1 and for L = 2
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8 * np.abs(theirs).max(), err_msg=name)

    fields = {"mass": 0, "first_moment": 0, "second_moment": 0, "shape_moments": 1, "shape_products": 1}
    fields |= dict.fromkeys(("pair_products", "stiffness", "damping"), 2)
    fields |= dict.fromkeys(("foreshortening_moments", "foreshortening_products"), 2)
    for name, modes in fields.items():
        compare(name, symbolic.array(name, numbers), numeric.array(name), modes)
    fields = {"position": 0, "shapes": 1, "rotations": 1, "foreshortening": 2, "loads": 1}
    for name, modes in fields.items():
        compare(name, *(body.node_array("mid", name, numbers) for body in (symbolic, numeric)), modes)
    symbolic.check("boom", numbers)


def test_damping_ratio():
    body = beam(1.0, 1.0, EI_z=1.0, bending_y=3, damping_ratio=0.02)
    w = body.frequencies()
    C = body.array("damping")
    np.testing.assert_allclose(np.diagonal(C) / np.diagonal(body.modal_mass()), 2 * 0.02 * w, rtol=1e-8)


def test_relative_frames_give_the_same_motion():
    """Random points and fields: the place of a point in the world is the same, to second order, from both frames."""
    rng = np.random.default_rng(5)
    n, points = 3, 4
    m, x = rng.uniform(0.5, 1.0, points), rng.normal(size=(points, 3))
    phi, psi = rng.normal(size=(points, n, 3)), rng.normal(size=(points, n, 3))
    chi = rng.normal(size=(points, n, n, 3))
    chi = chi + np.swapaxes(chi, 1, 2)
    nodes = [ModalNode(f"p{k}", x[k], phi[k], psi[k], chi[k]) for k in range(points)]
    body = ModalBody.of_points(
        m, x, phi, stiffness=np.eye(n), foreshortening=chi, nodes=nodes, attachment="p0"
    )
    from scipy.spatial.transform import Rotation

    errors = []
    for size in (1e-2, 5e-3):
        q = size * np.array([0.3, -0.7, 0.5])
        place = x + np.einsum("pki,k->pi", phi, q) + np.einsum("pkli,k,l->pi", chi, q, q) / 2
        R = Rotation.from_rotvec(psi[0].T @ q).as_matrix()
        seen = (place - place[0]) @ R
        own = np.array(
            [
                np.array(node.position)
                + np.array(node.shapes).T @ q
                + np.einsum("kli,k,l->i", np.array(node.foreshortening), q, q) / 2
                for node in body.nodes
            ]
        )
        errors.append(np.abs(seen - own).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(3.0, abs=0.1)  # what is left is of third order


def test_damping():
    """Ratios of each mode, Rayleigh's, and structural damping, which loses eta pi of a mode's energy in half a period."""
    body = beam(1.0, 1.0, EI_z=4.0, EI_y=9.0, bending_y=2, bending_z=2)
    w = body.frequencies()
    M = body.modal_mass()
    ratios = np.array([0.01, 0.02, 0.03, 0.04])
    for damped, expected in (
        (body.damped(ratios), 2 * ratios * w),
        (body.damped(rayleigh=(0.3, 1e-3)), 0.3 + 1e-3 * w**2),
        (body.damped(loss_factor=0.05), 0.05 * w),
    ):
        poles = np.sort(np.linalg.eigvals(np.linalg.solve(M, damped.array("damping"))).real)
        np.testing.assert_allclose(poles, np.sort(expected), rtol=1e-8)
    with pytest.raises(ModelError, match=r"damped: ratio has 3 entries, expected one number or 4"):
        body.damped([0.1, 0.1, 0.1])
    with pytest.raises(
        ModelError, match=r"damped: loss_factor is -1, expected a finite number that is not negative"
    ):
        body.damped(loss_factor=-1)
    with pytest.raises(ModelError, match=r"damped: loss_factor is \[0.1, 0.2\], expected one number"):
        body.damped(loss_factor=[0.1, 0.2])
    with pytest.raises(ModelError, match=r"damped: rayleigh is 0.1, expected two numbers \(a, b\)"):
        body.damped(rayleigh=0.1)
    with pytest.raises(ModelError, match=r"damped: mass or stiffness are expressions .* rayleigh=\(a, b\)"):
        beam(1.0, 1.0, EI_z=Expression("EI"), bending_y=1).damped(0.01)
    loss = body.damped(loss_factor=Expression("eta")).array("damping", {"eta": 0.05})
    np.testing.assert_allclose(loss, body.damped(loss_factor=0.05).array("damping"), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bending_y": 1}, "bending_y=1 needs EI_z"),
        ({"EI_z": -1.0, "bending_y": 1}, "EI_z is -1.0, expected a positive number"),
        ({"EI_z": 1.0, "bending_y": 1, "ends": "glued"}, "ends is 'glued'"),
        ({"EI_z": 1.0}, "no modes"),
        ({"EI_z": 1.0, "bending_y": 99}, "at most 20 modes"),
        ({"EI_z": 1.0, "bending_y": -1}, "expected a number of modes"),
        ({"GJ": 1.0, "torsion": 1}, "torsion needs the sections' moments of inertia"),
        ({"EI_z": 1.0, "bending_y": 1, "kGA_y": 10.0}, "a Timoshenko beam needs"),
        ({"EI_z": 1.0, "bending_y": 1, "nodes": {"far": 1.5}}, "node 'far' is at 1.5"),
        (
            {"EI_z": Expression("EI"), "bending_y": 1, "rhoI_z": 0.1, "kGA_y": 1.0},
            "EI_z is an expression of parameters; with a kGA it must be a number",
        ),
        (
            {"rhoA": Expression("r"), "EI_z": 1.0, "bending_y": 1, "rhoI_z": 0.1},
            "rhoA is an expression of parameters; with rhoI_y or rhoI_z it must be a number",
        ),
        (
            {
                "EI_z": Expression("EI"),
                "EI_y": 1.0,
                "bending_y": 1,
                "bending_z": 1,
                "damping_ratio": [0.1, 0.2],
            },
            r"'bending_y_1' and 'bending_z_1' may change places by frequency as expressions in their stiffness",
        ),
        (
            {"EI_z": Expression("EI"), "GJ": 1.0, "bending_y": 1, "torsion": 1, "mass_offset": (0, 0.1)}
            | {"damping_ratio": 0.1},
            r"'bending_y_1' and 'torsion_1' may move together as expressions .* give damping=\(a, b\)",
        ),
        ({"EI_z": 1.0, "bending_y": 1, "nodes": {"tip": 0.5}}, "'tip' is at 0.5; every beam has one .* at 1"),
        ({"EI_z": 1.0, "segments": 2, "nodes": {"root": 0.5}}, "'root' is at 0.5; every beam has one"),
        ({"EI_z": 1.0, "bending_y": 1, "nodes": ["far"]}, "nodes is .* expected names with their fractions"),
        ({"EI_z": 1.0, "bending_y": 1, "rhoI_z": -1.0}, "rhoI_z is -1.0, expected a number that is not neg"),
        ({"EI_z": 1.0, "bending_y": 1, "rhoI_z": np.nan}, "rhoI_z is nan, expected a number"),
        ({"EI_z": 1.0, "bending_y": 1, "rhoI_y": "thin"}, "rhoI_y is 'thin', expected a number"),
        ({"EI_z": 1.0, "bending_y": 1, "damping": 0.1}, r"damping is 0.1, expected two numbers \(a, b\)"),
        ({"EI_z": 1.0, "bending_y": 1, "damping": (0.1,)}, "expected two numbers"),
        ({"EI_z": 1.0, "bending_y": 1, "damping_ratio": "low"}, "ratio is 'low', expected a finite number"),
        ({"EI_z": 1.0, "bending_y": 1, "tip": 3.0}, "tip is 3.0, expected an Inertia"),
    ],
)
def test_messages(arguments, words):
    with pytest.raises(ModelError, match=words):
        beam(**({"length": 1.0, "rhoA": 1.0} | arguments))


def test_a_body_refuses_what_no_body_has():
    good = beam(1.0, 1.0, EI_z=1.0, bending_y=2)
    import dataclasses

    def check(**changes):
        dataclasses.replace(good, **changes).check("body 'boom'", {})

    check()
    with pytest.raises(
        ModelError,
        match=r"'boom': the matrix of stiffness is not symmetric: entry \[0, 1\] is 0.5, entry \[1, 0\] is 0",
    ):
        check(stiffness=[[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ModelError, match="stiffness is not positive; it has an eigenvalue of -1"):
        check(stiffness=[[1.0, 0.0], [0.0, -1.0]])
    with pytest.raises(ModelError, match="do not fit one another"):
        check(mass=0.1)
    same = np.array(good.pair_products)
    same[:] = same[0, 0]
    with pytest.raises(ModelError, match=r"not independent; .* in the modes 'bending_y_1' and 'bending_y_2'"):
        check(pair_products=same)
    turned = np.array(good.pair_products)
    turned[0, 1, 0, 1] += 1.0
    with pytest.raises(
        ModelError, match=r"pair_products of the modes 'bending_y_1' and 'bending_y_2' differ from"
    ):
        check(pair_products=turned)
    uneven = np.array(good.foreshortening_moments)
    uneven[0, 1] += 1.0
    with pytest.raises(ModelError, match=r"foreshortening_moments of the modes .* differ .* by 1"):
        check(foreshortening_moments=uneven)
    with pytest.raises(ModelError, match=r"first_moment has 2 entries, expected 3"):
        check(first_moment=(0.0, 0.0))
    with pytest.raises(ModelError, match="needs foreshortening_moments"):
        check(foreshortening_moments=None)
    with pytest.raises(ModelError, match=r"no node 'middle'; there are 'root', '0.1', .*, 'tip'"):
        good.node("middle")


@pytest.mark.parametrize(
    ("modes", "hinged", "floating", "in_space"),
    [(1, 0.45, 0.42, 0.095), (2, 0.18, 0.14, 0.04), (3, 0.10, 0.068, 0.024), (6, 0.038, 0.021, 0.012)],
)
def test_how_far_bodies_bend(modes, hinged, floating, in_space):
    """The table of docs/flexible-bodies.md: where deflections leave no inertia, under a uniform load."""
    planar, hinge = np.eye(6)[:, 2:5], np.eye(6)[:, 2:3]
    flat = beam(1.0, 1.0, EI_z=1.0, bending_y=modes)
    stiff = {"EI_y": 1.0, "EI_z": 1.0, "GJ": 1.0, "rhoI_y": 1e-3, "rhoI_z": 1e-3}
    whole = beam(1.0, 1.0, **stiff, bending_y=modes, bending_z=modes, torsion=modes)

    def largest(body, moved):
        shape = np.linalg.solve(body.array("stiffness"), body.array("shape_moments")[:, 1])
        shape /= shape @ body.node_array("tip", "shapes")[:, 1]
        return scipy.optimize.brentq(lambda x: body.least_inertia(x * shape, moved=moved), 0.0, 1.0)

    found = [largest(flat, hinge), largest(flat, planar), largest(whole, np.eye(6))]
    np.testing.assert_allclose(found, [hinged, floating, in_space], rtol=0.05)


def test_what_hangs_on_a_beam_without_a_node_is_told():
    """A block at the tip that forgets node= would stay where the beam is straight; a hub near the root is none."""
    builder = al.ModelBuilder("boom")
    boom = al.flexible.beam(length=2.0, rhoA=1.0, EI_z=500.0, bending_y=1)
    builder.body("boom", boom, joint=al.Revolute((0, 0, 1)), joint_name="hinge")
    builder.body(
        "block",
        al.Inertia.point(1.0),
        joint=al.Fixed(),
        joint_name="weld",
        parent="boom",
        placement=(2, 0, 0),
    )
    builder.frame("hub", "boom", (0, 0.1, 0)).frame("tip", "boom", node="tip")
    with pytest.warns(al.AlembertWarning) as told:
        builder.build()
    assert len(told) == 1
    assert "joint 'weld' is on the flexible body 'boom' without a node" in str(told[0].message)
    assert "give node='tip'" in str(told[0].message)
