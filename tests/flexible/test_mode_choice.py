"""Which modes to keep: rankings, identities, condensation, and completeness over configurations."""

import numpy as np
import pytest
from structures import TUBE, mast, straight

import alembert as al

fl = al.flexible


def test_condensed_structures_keep_statics_and_rigid_motion():
    fe = straight(12, fl.CrossSection(1.0, 1e6, 1.0, 1.0, 1.0, rhoI_y=1e-3, rhoI_z=1e-3))
    keep = fe.unknowns([0, 3, 6, 9, 12])
    small = fl.guyan(fe, keep)
    f = np.zeros(small.size)
    f[small.unknowns(12, "y")] = 1.0
    tip = small.static(f, small.unknowns(0))[small.unknowns(12, "y")]
    np.testing.assert_allclose(tip, 1 / 3, rtol=1e-8)
    np.testing.assert_allclose(small.rigid_mass, fe.rigid_mass, atol=1e-10)
    exact = fl.frequencies(fe, fl.normal_modes(fe, 6, held=0))
    rough = fl.frequencies(small, fl.normal_modes(small, 6, held=0))
    better = fl.improved_reduction(fe, keep, held=0)
    close = fl.frequencies(better, fl.normal_modes(better, 6, held=0))
    assert (rough >= exact * (1 - 1e-9)).all()  # a restriction is too stiff
    assert abs(close / exact - 1).max() < 0.1 * abs(rough / exact - 1).max()
    # the condensed structure flies as the whole does
    bodies = [
        fl.structure_body(x, fl.normal_modes(x, 4, held=0), attachment=0, nodes={"tip": 12})
        for x in (fe, small)
    ]
    sums = [
        np.einsum("kki,k->i", b.array("foreshortening_moments"), 1 / np.diag(b.modal_mass())) for b in bodies
    ]
    np.testing.assert_allclose(sums[0], sums[1], rtol=1 / 16, atol=1e-9)  # order 2 in a quarter of the length
    np.testing.assert_allclose(*(b.array("second_moment") for b in bodies), atol=1e-9)
    with pytest.raises(al.ArgumentError, match="guyan: no unknowns to keep"):
        fl.guyan(fe, [])
    with pytest.raises(al.ArgumentError, match="move no mass"):
        fl.improved_reduction(straight(12), keep)  # rotations about the axis have no inertia


def test_nodes_without_unknowns_are_not_asked():
    """What is condensed is gone; a table may have nodes that no unknown belongs to."""
    fe = straight(4)
    small = fl.guyan(fe, np.concatenate([fe.unknowns(0), fe.unknowns(4)]))
    assert small.names == ("0", "4")
    with pytest.raises(al.ArgumentError, match="no node 2"):
        fl.structure_body(small, fl.normal_modes(small, 2, held=0), attachment=0, nodes={"middle": 2})
    np.testing.assert_allclose(small.positions, fe.positions[[0, 4]])
    bare = fl.FiniteElements.of_matrices(
        small.M, small.K, np.vstack([small.positions, [9, 9, 9]]), small.dofs
    )
    for call in (
        lambda: fl.normal_modes(bare, 1, held=3),
        lambda: fl.constraint_modes(bare, {"tip": 2}, held=3),
        lambda: fl.attachment_modes(bare, {"tip": (2, "y")}, held=3),
        lambda: fl.structure_response(bare, {"f": (3, "y")}, {"s": (2, "y")}, [1.0], held=1),
        lambda: fl.structure_body(
            bare, fl.normal_modes(bare, 1, held=1), attachment=1, nodes={"a": 3}, stiffening="inconsistent"
        ),
    ):
        with pytest.raises(
            al.ArgumentError, match="node 3 has no unknowns, and cannot be held, loaded or seen"
        ):
            call()
    for call in (
        lambda: fl.craig_bampton(fe, 0, {"tip": 0}, 2),
        lambda: fl.constraint_modes(fe, {"a": [2, 3], "b": [3, 4]}),
    ):
        with pytest.raises(al.ArgumentError, match=r"node '[03]' is in two interfaces, or in one and held"):
            call()


def test_mechanisms_have_no_modes():
    """Two beams with a hinge about z between them: what is free of strain besides rigid motion is refused."""
    nodes = {"a": (0, 0, 0), "b": (1, 0, 0), "c": (1, 0, 0), "d": (2, 0, 0)}
    members = [fl.Member("a", "b", TUBE), fl.Member("c", "d", TUBE)]
    for about_z, loose in ((0.0, True), (1.0, False)):
        hinge = fl.NodeSpring("b", "c", (1e7, 1e7, 1e7, 1e5, 1e5, about_z))
        fe = fl.framework(nodes, members, springs=[hinge])
        assert (fe.report().mechanisms == 1) == loose
        if loose:
            with pytest.raises(
                al.ModelError, match="1 motions besides those of a rigid body are without strain"
            ):
                fl.normal_modes(fe, 3)
        else:
            assert fl.normal_modes(fe, 3).count == 3


def test_rankings_agree_with_gramians():
    fe = straight(10, planar=True)
    modes = fl.normal_modes(fe, 4, held=0)
    zeta = 0.002
    ranked = fl.rank_modes(
        fe,
        modes,
        attachment=0,
        actuators={"tip": (10, "y")},
        sensors={"middle": (5, "y")},
        damping_ratio=zeta,
    )
    V, w = ranked.modes.shapes, ranked.frequencies
    F, C = V.T[:, fe.unknowns(10, "y")], V[fe.unknowns(5, "y")]
    G = al.control.SecondOrder(np.eye(4), np.diag(2 * zeta * w), np.diag(w**2), F, C).to_statespace()
    hankel = al.control.hankel_singular_values(G)
    found = np.sort(np.repeat(ranked.hankel, 2))[::-1]
    np.testing.assert_allclose(
        hankel, found, rtol=0.03
    )  # modes far apart: couplings are of the order of zeta
    assert ranked.best(1).count == 1
    assert ranked.up_to(30.0).count == 2
    assert ranked.heavy(0.7).count <= 3
    assert "Hankel" in str(ranked)
    alone = fl.rank_modes(fe, modes, attachment=0)
    assert not alone.hankel.any()
    for call, message in (
        (lambda: ranked.best(9), "9 of 4 modes"),
        (lambda: ranked.up_to(1.0), "no mode up to 1 rad/s; the first is at 3.5"),
        (lambda: ranked.heavy(2.0), "heavy: share is 2.0, expected a number above 0, at most 1"),
        (
            lambda: fl.rank_modes(fe, modes, attachment=0, sensors=[1]),
            r"rank_modes: sensors are \[1\], expected",
        ),
        (lambda: fl.rank_modes(fe, modes, attachment=0, damping_ratio=0.0), "damping_ratio is 0.0"),
        (
            lambda: fl.rank_modes(fe, modes, attachment=0, actuators={"a": (1, "w")}),
            "'a' has no direction 'w'",
        ),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()


def test_all_modes_carry_all_mass():
    # a truss held at three nodes: all modes carry what is not at these nodes
    fe = mast(1)
    root = ["0a", "0b", "0c"]
    shares = [
        fl.carried_mass(
            fl.structure_body(
                fe, fl.normal_modes(fe, n, held=root), attachment=root, stiffening="inconsistent"
            )
        )
        for n in (1, 9)
    ]
    assert shares[0][0] < 1e-6
    free, _ = fe.held(fe.unknowns(root))
    center = fe.positions[[fe.node(n) for n in root]].mean(axis=0)
    R = fe.rigid - fe.rigid[:, :3] @ np.column_stack([np.zeros((3, 3)), *np.cross(np.eye(3), center)])
    inner = (fe.M @ R)[free]
    carried = inner.T @ np.linalg.solve(fe.M[free][:, free].toarray(), inner)
    whole = np.linalg.eigvals(np.linalg.solve(R.T @ (fe.M @ R), carried)).real
    np.testing.assert_allclose(np.sort(whole), shares[1], rtol=1e-6)
    beam = fl.beam(1.0, 1.0, EI_z=1.0, bending_y=10)
    assert fl.carried_mass(beam)[-1] == pytest.approx(1.0, abs=1e-3)


def two_beams(modes):
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    beam = fl.beam(1.0, 1.0, EI_z=1.0, bending_y=modes)
    builder.body("inner", beam, joint=al.Revolute((0, 0, 1)), joint_name="shoulder")
    builder.body("outer", beam, joint=al.Revolute((0, 0, 1)), joint_name="elbow", parent="inner", node="tip")
    return builder.build()


def test_completeness_finds_the_worst_configuration_and_the_mode_that_helps():
    model = two_beams(5)
    angles = np.linspace(0.0, 2.5, 6)
    q = np.zeros((6, model.nq))
    q[:, model.q_slice("elbow").start] = angles
    found = fl.completeness(model, {"inner": 1, "outer": 1}, q, modes=2)
    assert (found.errors >= -1e-9).all()
    error, at, _ = found.worst
    # by an assembly with those modes alone
    small = two_beams(1)
    qs = small.neutral()
    qs[small.q_slice("elbow")] = angles[at]
    M = small.mass_matrix(qs)
    elastic = [small.space.of_bodies[name].v.start for name in ("inner", "outer")]
    K = np.diag([float(b.flexible.array("stiffness")[0, 0]) for b in small.bodies if b.flexible is not None])
    w = np.sqrt(np.linalg.eigvals(np.linalg.solve(M[np.ix_(elastic, elastic)], K)).real)
    np.testing.assert_allclose(np.sort(w), found.kept[at], rtol=1e-6)
    assert error > 0.05
    name, left = found.helps[0]
    body, mode = name.split(".")
    again = fl.completeness(model, {"inner": 1, "outer": 1, body: ["bending_y_1", mode]}, q[[at]], modes=2)
    assert again.worst[0] == pytest.approx(left, rel=1e-9)
    assert left < error
    assert "most would help" in str(found)
    free = fl.completeness(model, {"inner": 2, "outer": 2}, q, modes=2, joints="free")
    assert free.errors.min() > -1e-9
    assert free.errors.max() < 0.1


def test_bad_scans_are_refused():
    model = two_beams(5)
    q = np.zeros((1, model.nq))
    for call, message in (
        (lambda: fl.completeness(model, {}, q, joints="loose"), "joints is 'loose'"),
        (lambda: fl.completeness(model, {"inner": 9}, q), "keep 9 of the 5 modes of 'inner'"),
        (lambda: fl.completeness(model, {"inner": ["x"]}, q), "'inner' has no mode 'x'"),
        (
            lambda: fl.completeness(model, {"inner": 1.5}, q),
            "keep 1.5 of 'inner', expected a number of modes or",
        ),
        (lambda: fl.completeness(model, ["inner"], q), r"keep is \['inner'\], expected bodies with how many"),
        (lambda: fl.completeness(model, {}, "home"), "configurations is 'home', expected numbers"),
        (lambda: fl.completeness(model, {"hand": 1}, q), "no flexible body 'hand'"),
        (lambda: fl.completeness(model, {"inner": 0, "outer": 0}, q), "no modes are kept"),
        (lambda: fl.completeness(model, {}, q[:, 1:]), "configurations have shape"),
        (lambda: fl.completeness(al.library.two_link(), {}, np.zeros((1, 2))), "no flexible bodies"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()
    builder = al.ModelBuilder("coupled")
    for name in ("a", "b"):
        builder.body(
            name, al.Inertia.point(1.0, (1, 0, 0)), joint=al.Revolute((0, 0, 1)), joint_name=f"{name}_joint"
        )
    builder.coupling("gear", "a_joint", ["b_joint"], [2.0])
    with pytest.raises(al.UnsupportedError, match="loops or couplings"):
        fl.completeness(builder.build(), {}, np.zeros((1, 2)))
