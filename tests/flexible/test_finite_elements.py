"""Finite elements made here: exact statics, rigid motions, mass properties, refusals."""

import numpy as np
import pytest
import scipy.sparse as sp
from structures import TUBE, UNIT, mast, straight

import alembert as al

fl = al.flexible


def test_tip_loads_give_the_deflections_of_beam_theory():
    # members are exact for loads at their ends, with shear as well
    soft = fl.CrossSection(2.0, 300.0, 5.0, 7.0, 11.0, kGA_y=13.0, kGA_z=17.0)
    fe = straight(3, soft, length=1.5)
    L = 1.5
    for direction, expected in {
        "x": {"x": L / 300},
        "y": {"y": L**3 / 21 + L / 13, "rz": L**2 / 14},
        "z": {"z": L**3 / 15 + L / 17, "ry": -(L**2) / 10},
        "rx": {"rx": L / 11},
        "rz": {"rz": L / 7, "y": L**2 / 14},
    }.items():
        f = np.zeros(fe.size)
        f[fe.unknowns(3, direction)] = 1.0
        u = fe.static(f, fe.unknowns(0))[fe.unknowns(3)]
        want = np.zeros(6)
        for name, value in expected.items():
            want[["x", "y", "z", "rx", "ry", "rz"].index(name)] = value
        np.testing.assert_allclose(u, want, atol=1e-11)  # rounding times a condition of 1e4


def test_a_member_looks_the_same_from_every_side():
    rng = np.random.default_rng(1)
    R = al.spatial.so3.exp(rng.normal(size=3))
    R = np.array(R, dtype=float)
    section = fl.CrossSection(1.0, 50.0, 2.0, 3.0, 4.0, rhoI_y=0.1, rhoI_z=0.2)
    toward = (0.1, 1.0, 0.2)
    plain = fl.framework({"a": (0, 0, 0), "b": (1, 0, 0)}, [fl.Member("a", "b", section, toward=toward)])
    turned = fl.framework(
        {"a": (0, 0, 0), "b": R[:, 0]}, [fl.Member("a", "b", section, toward=tuple(R @ toward))]
    )
    T = np.kron(np.eye(4), R)
    for name in "MK":
        A, B = (getattr(fe, name).toarray() for fe in (plain, turned))
        np.testing.assert_allclose(T @ A @ T.T, B, atol=1e-12)
    u = rng.normal(size=12)
    np.testing.assert_allclose(T @ plain.geometric(u) @ T.T, turned.geometric(T @ u).toarray(), atol=1e-11)


def test_mass_properties_come_from_the_rigid_motions():
    body = al.Inertia(3.0, (0.1, 0.2, -0.1), (0.4, 0.01, 0.5, 0.02, 0.03, 0.6))
    section = fl.CrossSection(2.0, 100.0, 1.0, 1.0, 1.0, rhoI_y=0.3, rhoI_z=0.4)
    fe = fl.framework(
        {"a": (1, 0, 0), "b": (1, 2, 0)}, [fl.Member("a", "b", section)], masses=[fl.LumpedMass("b", body)]
    )
    report = fe.report("a")
    com = (4.0 * np.array([1, 1, 0]) + 3.0 * np.array([1.1, 2.2, -0.1])) / 7
    np.testing.assert_allclose(fe.mass, 7.0)
    np.testing.assert_allclose(fe.center, com)
    J = np.array(body.matrix(), dtype=float)
    for mass, place in ((4.0, np.array([1.0, 1, 0])), (3.0, np.array([1.1, 2.2, -0.1]))):
        d = place - com
        J = J + mass * (d @ d * np.eye(3) - np.outer(d, d))
    # the rod of length 2 about its middle; its y axis points to -x: rhoI_z is about z, rhoI_y about x, both about y
    J = J + np.diag([4 * 4 / 12, 0.0, 4 * 4 / 12]) + 2.0 * np.diag([0.3, 0.7, 0.4])
    np.testing.assert_allclose(report.inertia, J, atol=1e-12)
    assert report.rigid == 6
    assert report.mechanisms == 0
    assert not report.problems
    assert "rigid motions without strain: 6 of 6" in str(report)
    np.testing.assert_allclose(report.effective_masses.sum(axis=0)[:3] <= 1 + 1e-9, True)


def test_effective_masses_of_all_modes_add_up_to_what_moves():
    fe = straight(4, fl.CrossSection(1.0, 10.0, 1.0, 1.0, 1.0, rhoI_y=0.1, rhoI_z=0.1))
    modes = fl.normal_modes(fe, 24, held=0)
    # of R' M R, all but the part that sits on the held node
    R = fe.rigid
    free, _ = fe.held(fe.unknowns(0))
    inner = fe.M[free][:, free]
    lifted = np.linalg.solve(inner.toarray(), (fe.M @ R)[free])
    whole = np.einsum("ij,ij->j", lifted, inner @ lifted) / np.diag(fe.rigid_mass)
    np.testing.assert_allclose(fl.effective_masses(fe, modes, 0).sum(axis=0), whole, rtol=1e-9)


def test_reports_name_what_is_wrong():
    held = straight(2, planar=True)
    assert any(
        "rigid motions strain it" in line or "mass is not the same" in line for line in held.report().problems
    )
    loose = fl.framework(
        {k: (k, 0, 0) for k in "0123"}, [fl.Member("0", "1", UNIT), fl.Member("2", "3", UNIT)]
    )
    assert any("without strain" in line for line in loose.report().problems)
    assert "PROBLEM" in str(loose.report())


def test_reports_of_odd_structures():
    """One node, parts that nothing joins, no mass, masses of which some unknowns have none."""
    one = fl.FiniteElements.of_matrices(np.diag([2.0, 2, 2, 0.1, 0.1, 0.1]), np.zeros((6, 6)), [[1, 2, 3.0]])
    assert not one.report(1).problems
    np.testing.assert_allclose(one.natural(6)[0], 0.0, atol=1e-9)
    with pytest.raises(al.ArgumentError, match="1 modes; 6 free unknowns have 0 besides rigid motions"):
        fl.normal_modes(one, 1)
    fe = straight(3, TUBE)
    apart = np.vstack([fe.positions, fe.positions + np.array([0, 1, 0])])
    loose = fl.FiniteElements.of_matrices(sp.block_diag([fe.M, fe.M]), sp.block_diag([fe.K, fe.K]), apart)
    assert "6 motions besides the rigid ones" in loose.report(1).problems[0]
    held = loose.report(1).held_frequencies
    assert held[5] == pytest.approx(0.0, abs=1e-2)  # of the part that nothing holds
    with pytest.raises(al.ModelError, match="6 motions besides those of a rigid body are without strain"):
        fl.normal_modes(loose, 9)
    empty = fl.FiniteElements.of_matrices(0 * fe.M, fe.K, fe.positions)
    with pytest.raises(al.ModelError, match="the mass is 0 kg; there is no centre"):
        empty.report(1)
    moves = sp.diags_array(np.where(fe.dofs[:, 1] < 3, 1.0, 0.0))
    points = fl.FiniteElements.of_matrices(moves @ fe.M @ moves, fe.K, fe.positions)
    with pytest.raises(al.ArgumentError, match="13 modes; the free unknowns with mass have 12"):
        points.natural(13)
    assert len(points.report(1, modes=20).free_frequencies) == 12
    wrong = fe.M.toarray()
    wrong[0, 6] = wrong[6, 0] = 2 * wrong[0, 0]
    with pytest.raises(
        al.ModelError, match=r"M has .* at \(0, 6\), more than .* a motion would have negative energy"
    ):
        fl.FiniteElements.of_matrices(wrong, fe.K, fe.positions)


def test_large_and_small_solvers_agree():
    fe = mast(12)
    w, _ = fe.natural(12)
    try:
        fl.finite_elements.DENSE = 10
        sparse, _ = fe.natural(12)
    finally:
        fl.finite_elements.DENSE = 400
    np.testing.assert_allclose(sparse[6:], w[6:], rtol=1e-8)  # rounding times K/(first w^2 M), 1e6
    assert (w[:6] < 1e-3 * w[6]).all()


def test_units_are_turned_into_si():
    fe = straight(2)
    inch = fl.finite_elements.UNITS["in-lbf-s"]
    S = np.where(fe.dofs[:, 1] > 2, 1 / inch.length, 1.0)
    M, K = (sp.diags_array(S) @ A @ sp.diags_array(S) / inch.mass for A in (fe.M, fe.K))
    again = fl.FiniteElements.of_matrices(M, K, fe.positions / inch.length, fe.dofs, units="in-lbf-s")
    np.testing.assert_allclose(again.M.toarray(), fe.M.toarray(), atol=1e-14)
    np.testing.assert_allclose(again.K.toarray(), fe.K.toarray(), rtol=1e-12)
    np.testing.assert_allclose(again.positions, fe.positions)


def elements(**changes):
    fields = {
        "M": np.eye(6),
        "K": np.eye(6),
        "positions": np.zeros((1, 3)),
        "dofs": [(0, k) for k in range(6)],
    }
    fields |= changes
    return fl.FiniteElements(**{k: np.asarray(v) if k in ("dofs",) else v for k, v in fields.items()})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"positions": np.zeros(3)}, r"positions have shape \(3,\)"),
        ({"dofs": np.zeros((6, 2))}, "whole numbers"),
        ({"dofs": np.array([(0, k + 2) for k in range(6)])}, "direction 6 of node 0; there are 1 nodes"),
        ({"dofs": np.array([(0, 0)] * 6)}, "same direction of the same node"),
        ({"names": ("a", "b")}, "2 different names for 1 nodes"),
        ({"M": np.eye(5)}, r"M has shape \(5, 5\), expected \(6, 6\)"),
        ({"M": "x"}, "M is str, expected a matrix"),
        ({"K": np.diag([1.0, np.nan, 1, 1, 1, 1])}, "K has entries that are not finite"),
        ({"K": np.triu(np.ones((6, 6)))}, "K is not symmetric"),
        ({"M": -np.eye(6)}, "M has -1 on its diagonal"),
    ],
)
def test_bad_matrices_are_refused(changes, message):
    with pytest.raises(al.ModelError, match=message):
        elements(**changes)


def test_bad_questions_are_refused():
    fe = straight(2)
    for call, message in (
        (lambda: fe.node("tip"), "no node 'tip'"),
        (lambda: fe.unknowns(0, "w"), "no direction 'w'"),
        (lambda: fe.held([99]), "unknown 99 of 18"),
        (lambda: fl.guyan(fe, [0.5]), r"unknowns are \[0.5\], expected their numbers, such as fe.unknowns"),
        (lambda: fl.guyan(fe, "y"), "unknowns are 'y', expected their numbers"),
        (lambda: fe.natural(0), "0 modes of 18"),
        (lambda: fe.natural(12, fe.unknowns(0)), "12 modes; the free unknowns with mass have 10"),
        (lambda: fl.finite_elements.unit_system("furlongs"), "no units 'furlongs'"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()
    with pytest.raises(al.NumericalError, match="the stiffness is singular"):
        fe.static(np.ones(fe.size), [])
    with pytest.raises(al.ModelError, match="5 unknowns and 1 nodes"):
        fl.FiniteElements.of_matrices(np.eye(5), np.eye(5), np.zeros((1, 3)))
    with pytest.raises(al.ModelError, match="no free unknown has mass"):
        elements(M=np.zeros((6, 6))).natural(1)
    with pytest.raises(al.NumericalError, match="the stiffness is not positive"):
        elements(K=np.ones((6, 6)) + np.diag([0.0, 0, 0, 0, 0, -0.5])).natural(1, [0])
    with pytest.raises(al.ModelError, match="positions are expected as numbers"):
        fl.FiniteElements.of_matrices(np.eye(3), np.eye(3), [["a", "b", "c"]])
    assert fe.with_names({2: "tip"}).node("tip") == 2
    named = fl.FiniteElements.of_matrices(fe.M, fe.K, dict(zip("abc", fe.positions, strict=True)))
    assert named.node("c") == 2
    assert repr(named) == "<FiniteElements: 3 nodes, 18 unknowns, 1 kg>"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fl.CrossSection(1.0, -1.0), "EA is -1.0, expected a number that is not negative"),
        (lambda: fl.CrossSection(1.0, 0.0), "EA is 0.0, expected a positive number"),
        (lambda: fl.CrossSection.tube(1.0, 1.0, 0.1, 0.2), "a tube of radius 0.1 and thickness 0.2"),
        (lambda: fl.framework({1: (0, 0, 0), "1": (1, 0, 0)}, []), "two nodes have the same name"),
        (lambda: fl.framework({1: (0, 0)}, []), "three numbers"),
        (lambda: fl.framework({1: (0, 0, 0)}, [fl.Member(1, 2, UNIT)]), "member 0 has no node 2"),
        (lambda: two(fl.Member(1, 2, UNIT, kind="rope")), "member 0 is a 'rope'"),
        (lambda: two(fl.Member(1, 1, UNIT)), "has no length"),
        (lambda: two(fl.Member(1, 2, fl.CrossSection(1.0, 1.0))), "a beam, needs EI_y"),
        (lambda: two(fl.Member(1, 2, UNIT, toward=(1, 0, 0))), "lies along its direction"),
        (lambda: two(springs=[fl.NodeSpring(1, None, (1.0,))]), "expected six numbers"),
    ],
)
def test_bad_frameworks_are_refused(make, message):
    with pytest.raises(al.ModelError, match=message):
        make()


def two(*members, **options):
    return fl.framework({1: (0, 0, 0), 2: (1, 0, 0)}, members or [fl.Member(1, 2, UNIT)], **options)


def test_springs_join_nodes_and_ground():
    k = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
    fe = two(springs=[fl.NodeSpring(1, None, k)])
    f = np.zeros(fe.size)
    f[fe.unknowns(1)] = k
    np.testing.assert_allclose(fe.static(f, [])[fe.unknowns(1)], 1.0, rtol=1e-9)
    nodes = {"a": (0, 0, 0), "b": (1, 0, 0), "c": (1, 0, 0), "d": (2, 0, 0)}
    hinge = (1e6, 1e6, 1e6, 1e6, 1e6, 0.0)
    arm = fl.framework(
        nodes,
        [fl.Member("a", "b", UNIT), fl.Member("c", "d", UNIT)],
        springs=[fl.NodeSpring("b", "c", hinge)],
    )
    assert arm.report().mechanisms == 1  # the hinge


def test_sections_of_usual_shapes():
    tube = fl.CrossSection.tube(200e9, 7800.0, 0.02)
    assert tube.EI_y == pytest.approx(200e9 * np.pi / 4 * 0.02**4)
    assert pytest.approx(200e9 / 2.6 * np.pi / 2 * 0.02**4) == tube.GJ
    # Timoshenko and Goodier, Theory of Elasticity: 0.1406 a^4 of a square, 0.2287 a b^3 of 2:1
    assert pytest.approx(0.1406, abs=5e-5) == fl.CrossSection.rectangle(2.6, 1.0, 1.0, 1.0).GJ
    assert pytest.approx(2 * 0.2287, abs=1e-4) == fl.CrossSection.rectangle(2.6, 1.0, 2.0, 1.0).GJ
