"""Contracted second derivatives of inverse dynamics in closed form are those of automatic differentiation."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.joints import REGISTRY
from alembert.sensitivity.inverse_dynamics import INVERSE_DYNAMICS_CURVATURE, has_curvature
from alembert.sweeps import expressions

KINDS = {"revolute", "prismatic", "screw", "cylindrical", "spherical", "translational", "free"}


def tree(model):
    assert model.symbolic is not None  # attaches the algorithms
    return model.compute.tree


def between_hinges(kind, seed=4):
    """Branched, with springs, friction and armature."""
    model = al.library.random_tree(seed=seed, bodies=4, kinds=["revolute", kind], attachments=True)
    return model.replace(joints=tuple(replace(joint, rotors=()) for joint in model.joints))


@pytest.mark.parametrize("kind", ["arm", *sorted(KINDS)])
def test_against_automatic_differentiation(kind):
    model = al.library.arm7() if kind == "arm" else between_hinges(kind)
    assert has_curvature(tree(model))
    q, n = ca.SX.sym("q", model.nq), model.nv
    v, a, m, e = (ca.SX.sym(name, n) for name in "vame")
    given = {"q": q, "v": v, "a": a, "m": m}
    found = expressions(INVERSE_DYNAMICS_CURVATURE, tree(model), given, ca.SX(0, 1))
    S = ca.dot(m, model.symbolic.inverse_dynamics(model.space.integrate(q, e), v, a))
    slopes = [ca.gradient(S, x) for x in (e, v, a)]
    wanted = {"qq": (0, e), "vq": (1, e), "vv": (1, v), "aq": (2, e)}
    expected = [ca.jacobian(slopes[k], x) for k, x in wanted.values()]
    both = ca.Function("both", [q, v, a, m, e], [*(found[name] for name in wanted), *expected])
    rng = np.random.default_rng(0)
    for _ in range(3):
        at = model.random_configuration(rng), *rng.normal(size=(3, n)), np.zeros(n)
        values = [x.full() for x in both(*at)]
        for one, two in zip(values[:4], values[4:], strict=True):
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-12 * max(1.0, np.abs(two).max()))  # rounding


def test_which_joints_have_it():
    """Others have a subspace that changes, or charts that are no flows; rotors are not there."""
    found = {kind for kind in set(REGISTRY) - {"fixed"} if has_curvature(tree(between_hinges(kind)))}
    assert found == KINDS
    geared = al.library.random_tree(seed=4, bodies=4, kinds=["revolute"], attachments=True)
    assert any(joint.rotors for joint in geared.joints)
    assert not has_curvature(tree(geared))
