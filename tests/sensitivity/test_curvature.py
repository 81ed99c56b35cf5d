"""Contracted second derivatives of inverse dynamics in closed form are those of automatic differentiation."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert.joints import REGISTRY
from alembert.sensitivity.curvature import INVERSE_DYNAMICS_CURVATURE, has_curvature
from alembert.sweeps import expressions

KINDS = {"revolute", "prismatic", "screw"}


def tree(model):
    model.symbolic
    return model._tree


def without_rotors(**given):
    """Branched, with springs, friction and armature."""
    model = al.library.random_tree(attachments=True, **given)
    return model.replace(joints=tuple(replace(j, rotors=()) for j in model.joints))


@pytest.mark.parametrize(
    "model",
    [
        al.library.arm7(),
        without_rotors(seed=3, bodies=6, kinds=sorted(KINDS)),
        without_rotors(seed=8, bodies=5, kinds=sorted(KINDS)),
    ],
    ids=["arm", "tree 3", "tree 8"],
)
def test_against_automatic_differentiation(model):
    assert has_curvature(tree(model))
    symbols = dict(zip("qvam", (ca.SX.sym(name, model.nv) for name in "qvam"), strict=True))
    q, v, a, m = symbols.values()
    found = expressions(INVERSE_DYNAMICS_CURVATURE, tree(model), symbols, ca.SX(0, 1))
    S = ca.dot(m, model.symbolic.inverse_dynamics(q, v, a))
    slopes = [ca.gradient(S, x) for x in (q, v, a)]
    wanted = {
        "qq": ca.jacobian(slopes[0], q),
        "vq": ca.jacobian(slopes[1], q),
        "vv": ca.jacobian(slopes[1], v),
        "aq": ca.jacobian(slopes[2], q),
    }
    both = ca.Function("both", [q, v, a, m], [found[name] for name in wanted] + list(wanted.values()))
    rng = np.random.default_rng(0)
    for _ in range(3):
        values = [x.full() for x in both(*rng.normal(size=(4, model.nv)))]
        for one, two in zip(values[:4], values[4:], strict=True):
            np.testing.assert_allclose(one, two, rtol=0, atol=1e-12 * max(1.0, np.abs(two).max()))  # rounding


def test_which_joints_have_it():
    found = {
        kind
        for kind in set(REGISTRY) - {"fixed"}
        if has_curvature(tree(al.library.random_tree(seed=1, bodies=2, kinds=[kind], attachments=False)))
    }
    assert found == KINDS
