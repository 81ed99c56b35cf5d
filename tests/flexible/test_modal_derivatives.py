"""Static modal derivatives: the second derivative of nonlinear statics, and the foreshortening of beams."""

import numpy as np
import pytest

import alembert as al

fl = al.flexible


def frame():
    """An L of beams, whose modes bend and stretch at once."""
    section = fl.CrossSection.of(7e10, 2700.0, 1e-4, I_y=2e-9, I_z=3e-9, J=4e-9)
    nodes = {0: (0, 0, 0), 1: (0.3, 0, 0), 2: (0.6, 0, 0), 3: (0.6, 0.3, 0.1), 4: (0.6, 0.6, 0.2)}
    return fl.framework(nodes, [fl.Member(k, k + 1, section) for k in range(4)])


def test_they_are_the_second_derivatives_of_statics():
    """u(s) under the forces s K phi of the energy 1/2 u'K u + 1/2 u'K_g(u) u, whose first even term is s^2 theta / 2."""
    fe = frame()
    modes = fl.normal_modes(fe, 2, held=0)
    found = fl.modal_derivatives(fe, modes, held=0)
    assert found.count == 3
    free, _ = fe.held(fe.unknowns(0))
    K, forces = fe.K.toarray(), fe.geometric
    for column, along in ((0, [1.0, 0.0]), (2, [0.0, 1.0])):
        phi = modes.shapes @ along
        s = 1e-4 / np.abs(phi).max()
        ends = []
        for size in (s, -s):
            u = size * phi
            for _ in range(30):
                G = forces(u).toarray()
                g = K @ u + G @ u + forces.gradient(u, u) / 2 - size * (K @ phi)
                # the slope without the smallest terms: Newton's method is corrected by the next step
                u[free] -= np.linalg.solve((K + G)[np.ix_(free, free)], g[free])
            assert np.abs(g[free]).max() < 1e-9 * np.abs(size * (K @ phi)[free]).max()
            ends.append(u)
        theta = (ends[0] + ends[1]) / s**2
        # the next even term is s^2 of it: some 1e-4 of bending radii; rounding over s^2
        np.testing.assert_allclose(found.shapes[:, column], theta, atol=1e-3 * np.abs(theta).max())


def test_of_a_beam_they_are_the_foreshortening():
    section = fl.CrossSection.of(7e10, 2700.0, 1e-4, I_y=2e-9, I_z=3e-9, J=4e-9)
    fe = fl.framework(
        {k: (0.1 * k, 0, 0) for k in range(7)}, [fl.Member(k, k + 1, section) for k in range(6)]
    )
    modes = fl.normal_modes(fe, 2, held=0)  # bending in both planes
    found = fl.modal_derivatives(fe, modes, held=0)
    body = fl.structure_body(fe, modes, attachment=0, nodes={"tip": 6})
    scale = 1 / np.array([np.abs(modes.shapes[fe.dofs[:, 1] < 3, k]).max() for k in range(2)])
    tip = fe.unknowns(6, "x y z")
    chi = body.node_array("tip", "foreshortening")
    for column, (k, l) in ((0, (0, 0)), (2, (1, 1))):
        ours = found.shapes[tip, column] * scale[k] * scale[l]
        np.testing.assert_allclose(ours, chi[k, l], atol=1e-8 * np.abs(chi).max())


def test_messages():
    fe = frame()
    modes = fl.normal_modes(fe, 2, held=0)
    with pytest.raises(al.ModelError, match="the modes move what is held"):
        fl.modal_derivatives(fe, modes, held=4)
    bare = fl.FiniteElements.of_matrices(fe.M, fe.K, fe.positions, fe.dofs)
    with pytest.raises(al.ModelError, match="no members that know their axial forces"):
        fl.modal_derivatives(bare, fl.ComponentModes(modes.shapes, modes.names), held=0)
