"""Component modes, and the bodies made with them, against beams of closed form and whole finite-element models."""

import dataclasses

import numpy as np
import pytest
import scipy.linalg
from structures import mast, straight

import alembert as al

fl = al.flexible
ROOT = ["0a", "0b", "0c"]
TIP = ["4a", "4b", "4c"]


def test_a_body_of_finite_elements_is_the_beam():
    # inertia integrals of the first modes; elements of a tenth of the length err by 1e-5 in the second mode
    fe = straight(10)
    body = fl.structure_body(fe, fl.normal_modes(fe, 4, held=0), attachment=0, nodes={"tip": 10})
    other = fl.beam(1.0, 1.0, EI_y=1.0, EI_z=1.0, bending_y=2, bending_z=2)
    np.testing.assert_allclose(body.frequencies(), other.frequencies(), rtol=1e-4)
    # either body in the other's coordinates: displacement and slope of the tip, in both planes
    T = np.linalg.solve(_tip(other), _tip(body))  # q_beam = T q_body
    for field, lower in (("foreshortening_moments", "abi"), ("foreshortening_products", "abij")):
        found = body.array(field)
        want = np.einsum(f"ak,bl,{lower}->kl{lower[2:]}", T, T, other.array(field))
        # the axial force is constant in each element: second order, 1/100 of the curvature of the force over the length
        np.testing.assert_allclose(found, want, atol=2e-2 * np.abs(want).max())
    chi = np.einsum("ak,bl,abi->kli", T, T, other.node_array("tip", "foreshortening"))
    np.testing.assert_allclose(body.node_array("tip", "foreshortening"), chi, atol=1e-3 * np.abs(chi).max())


def _tip(body):
    """displacement along y, z and rotation about y, z by the modes: 4 x 4"""
    shapes, turns = body.node_array("tip", "shapes"), body.node_array("tip", "rotations")
    return np.vstack([shapes[:, 1:].T, turns[:, 1:].T])


def test_stiffening_converges_with_the_elements():
    flap = [_spinning(straight(n), n) for n in (4, 8)]
    exact = _spinning_beam()
    errors = np.abs(np.array(flap) - exact)
    # axial forces constant in each element: order 2
    assert 3 < errors[0] / errors[1] < 5
    assert errors[1] < 0.02


def _spin(body, rate=6.0):
    """lowest frequencies while it turns about z: consistent terms against the definition of the body's integrals"""
    Tr, D = body.array("foreshortening_products"), body.array("pair_products")
    W = -(rate**2) * np.diag([1.0, 1.0, 0.0])  # w~ w~
    K = body.array("stiffness") + np.einsum("ij,klij->kl", W, Tr + D)
    G = 2 * np.einsum("ij,klij->kl", rate * np.array([[0, -1.0, 0], [1, 0, 0], [0, 0, 0]]), D)
    M = body.modal_mass()
    n = len(M)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [-np.linalg.solve(M, K), -np.linalg.solve(M, G)]])
    found = np.sort(scipy.linalg.eigvals(A).imag)
    return found[found > 0]


def _spinning(fe, n):
    body = fl.structure_body(fe, fl.normal_modes(fe, 6, held=0), attachment=0, nodes={"tip": n})
    return _spin(body)[1]


def _spinning_beam():
    return _spin(fl.beam(1.0, 1.0, EI_y=1.0, EI_z=1.0, bending_y=3, bending_z=3))[1]


def test_every_basis_that_is_complete_is_the_same_body():
    # clamped, free with residuals, and Craig-Bampton: all shapes of a small truss, seen from the same attachment
    fe = mast(1)
    root = [f"0{k}" for k in "abc"]
    full = fe.size - 9
    clamped = fl.normal_modes(fe, full, held=root)
    mixed = fl.constraint_modes(fe, {"tip": ["1a", "1b", "1c"]}, held=root) + clamped
    bodies = [
        fl.structure_body(fe, m, attachment=root, nodes={"tip": ["1a", "1b", "1c"]}) for m in (clamped, mixed)
    ]
    assert [body.count for body in bodies] == [full, full]
    models = []
    for body in bodies:
        builder = al.ModelBuilder("truss", gravity=(0, 0, 0))
        builder.body("truss", body, joint=al.Revolute((0, 0, 1)), joint_name="pin")
        models.append(builder.build())
    found = []
    for model, body in zip(models, bodies, strict=True):
        tau = np.zeros(model.nv)
        tau[0] = 1.0
        a = model.forward_dynamics(model.neutral(), np.zeros(model.nv), tau)
        found.append([a[0], *(a[1:] @ body.node_array("tip", "shapes"))])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7, atol=1e-7 * abs(found[0][0]))
    # against the matrices themselves: the patch turns about z, all else is free
    place = fl.interface(fe, root)
    turn = (fe.rigid - fe.rigid[:, :3] @ _skew(place.position))[:, 5]
    free, _ = fe.held(place.unknowns)
    B = np.column_stack([turn, np.eye(fe.size)[:, free]])
    M = B.T @ (fe.M @ B)
    expected = np.linalg.solve(M, np.eye(len(M))[0])[0]
    np.testing.assert_allclose(found[0][0], expected, rtol=1e-8)


def _skew(p):
    """columns: e x p for e = x, y, z, as rigid motions about p subtract them"""
    return np.column_stack([np.zeros((3, 3)), *(np.cross(np.eye(3)[a], p) for a in range(3))])


def test_residual_modes_mend_static_answers():
    fe = straight(12, planar=True)
    force = {"tip": (12, "y")}
    f = np.zeros(fe.size)
    f[fe.unknowns(12, "y")] = 1.0
    exact = fe.static(f, fe.unknowns(0))
    modes = fl.normal_modes(fe, 2, held=0)
    both = modes + fl.residual_modes(fe, force, modes, held=0)
    for basis, small in ((modes, 0.05), (both, 1e-9)):
        V = basis.shapes
        u = V @ np.linalg.solve(V.T @ (fe.K @ V), V.T @ f)
        assert abs(u - exact).max() < small * abs(exact).max()
    attached = fl.attachment_modes(fe, force, held=0)
    np.testing.assert_allclose(attached.shapes[:, 0], exact)
    # free: the residual is orthogonal to what is kept and to rigid motion
    kept = fl.normal_modes(fe, 3)
    rest = fl.residual_modes(fe, force, kept).shapes
    size = np.sqrt(rest.T @ (fe.M @ rest))[0, 0]
    assert abs(kept.shapes.T @ (fe.M @ rest)).max() < 1e-8 * size
    assert abs(fe.rigid.T @ (fe.M @ rest)).max() < 1e-8 * size


def test_a_loaded_interface_gives_the_modes_of_the_loaded_beam():
    fe = straight(12, planar=True)
    w = fl.normal_modes(fe, 2, held=0, loaded={12: al.Inertia.point(1.0)})
    lumped = straight(12, planar=True, masses=[fl.LumpedMass(12, al.Inertia.point(1.0))])
    # FLEXIBLE case 3: tip mass of 1; twelve cubic elements err by 1e-6 in the second frequency
    np.testing.assert_allclose(fl.frequencies(lumped, w), [1.5572978612, 16.2500851582], rtol=1e-5)


def test_modes_up_to_a_frequency():
    fe = straight(8, planar=True)
    assert fl.normal_modes(fe, 5, held=0, frequency=100.0).count == 3
    both = fl.normal_modes(fe, 2, held=0) + fl.normal_modes(fe, 1, held=0)
    assert both.names == ("mode_1", "mode_2", "mode_1_2")
    assert fl.orthonormal(fe, both).count == 2


def test_matrices_alone_make_a_body_without_stiffening():
    fe = mast(4)
    bare = fl.FiniteElements.of_matrices(fe.M, fe.K, fe.positions, fe.dofs, names=fe.names)
    modes = fl.normal_modes(bare, 6, held=ROOT)
    with pytest.raises(al.ModelError, match="needs the geometric stiffness"):
        fl.structure_body(bare, modes, attachment=ROOT)
    rough = fl.structure_body(bare, modes, attachment=ROOT, nodes={"tip": TIP}, stiffening="inconsistent")
    exact = fl.structure_body(fe, modes, attachment=ROOT, nodes={"tip": TIP}, damping_ratio=0.01)
    plain = dataclasses.replace(exact, stiffening="inconsistent")
    for field in ("second_moment", "shape_moments", "first_moment"):
        np.testing.assert_allclose(rough.array(field), plain.array(field), atol=1e-12)
    np.testing.assert_allclose(rough.modal_mass(), plain.modal_mass(), atol=1e-12)
    # products by masses at the nodes: exact for M, some percent in what M does not tell
    np.testing.assert_allclose(rough.array("shape_products"), plain.array("shape_products"), atol=0.02)
    np.testing.assert_allclose(
        np.diag(exact.array("damping")), 0.02 * exact.frequencies() * np.diag(exact.modal_mass())
    )
    rough.check("rough", {})
    exact.check("exact", {})


def test_a_truss_node_turns_as_its_neighbours_do():
    fe = mast(4)
    turn = fe.rigid_about("2a") @ np.array([0, 0, 0, 0.1, -0.2, 0.3])
    np.testing.assert_allclose(fl.interface(fe, "2a").motion @ turn, [0, 0, 0, 0.1, -0.2, 0.3], atol=1e-12)


def test_bad_choices_are_refused():
    fe = straight(4, planar=True)
    modes, other = fl.normal_modes(fe, 2, held=0), fl.normal_modes(straight(2), 1, held=0)
    assert repr(modes) == "<ComponentModes of 10 unknowns: mode_1, mode_2>"
    for call, message in (
        (lambda: fl.interface(fe, []), "no nodes"),
        (lambda: fl.normal_modes(fe, 0), "count is 0"),
        (lambda: fl.normal_modes(fe, 2, held=0, frequency=1.0), "no mode up to 1 rad/s"),
        (
            lambda: fl.attachment_modes(fe, {"tip": (4, "x")}, held=0),
            "attachment_modes: forces: 'tip' has no direction 'x'; there are y, rz",
        ),
        (lambda: fl.attachment_modes(fe, {}, held=0), "attachment_modes: forces: none are given"),
        (
            lambda: fl.attachment_modes(fe, {"tip": 4}, held=0),
            r"attachment_modes: forces: 'tip' is 4, expected a node \(or nodes\) and directions, such as {'tip': ",
        ),
        (
            lambda: fl.residual_modes(fe, {"tip": (4, 1)}, modes, held=0),
            r"'tip' is \(4, 1\), expected a node",
        ),
        (lambda: fl.residual_modes(fe, [4], modes), r"residual_modes: forces are \[4\], expected by name a"),
        (lambda: fl.craig_bampton(fe, 0, [4], 1), r"interfaces are \[4\], expected by name a node or nodes"),
        (lambda: fl.craig_bampton(fe, 0, {"tip": None}, 1), "nodes are None, expected the name of a node"),
        (lambda: fl.normal_modes(fe, 1, held=2.5), "nodes are 2.5, expected the name of a node or a list"),
        (lambda: fl.normal_modes(fe, 1, loaded={4: 2.0}), "node 4 has 2.0, expected an Inertia"),
        (lambda: modes.only([2]), r"only \[2\] of 2; they are counted from 0 to 1"),
        (lambda: modes + other, "shapes of 10 and of 18 unknowns are not of one structure"),
        (lambda: fl.frequencies(fe, other), "shapes of 18 unknowns; expected modes of this structure"),
        (lambda: fl.orthonormal(fe, 3), "3; expected modes of this structure, which has 10 unknowns"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()
    rigid = fl.ComponentModes(fe.rigid[:, [1, 5]], ("y", "rz"))
    with pytest.raises(al.ModelError, match="motions of a rigid body"):
        fl.structure_body(straight(2), fl.ComponentModes(straight(2).rigid, tuple("abcdef")), attachment=0)
    with pytest.raises(al.ModelError, match="the node 'root' is 1; every body has one at its attach"):
        fl.structure_body(straight(2), other, attachment=0, nodes={"root": 1})
    still = fl.ComponentModes(np.zeros((fe.size, 1)), ("none",))
    for shapes in (still, rigid):
        assert fl.orthonormal(fe, shapes).count == 0


def test_bodies_have_all_their_mass():
    """Structures that are held to ground, or that have unknowns in a plane only, are no bodies that fly."""
    for fixed, said in (
        ({2: "x y z rx ry rz"}, r"held to ground, its motion along x, y, z, rx, ry, rz takes forces"),
        ({k: "z rx ry" for k in range(3)}, r"along x, y and z the mass is .*, 0 kg; a body in space needs"),
    ):
        fe = straight(2, fixed=fixed)
        with pytest.raises(al.ModelError, match=said):
            fl.structure_body(fe, fl.normal_modes(fe, 1, held=0), attachment=0)
