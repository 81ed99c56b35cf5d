"""Jacobians of dynamics of every joint type on thousands of random states, against automatic differentiation."""

import numpy as np
import pytest

from alembert import check, library
from alembert.check.states import _regular
from alembert.joints import REGISTRY

STATES = 200  # of each joint type: some two and a half thousand together
RELATIVE = 1e-9


@pytest.mark.parametrize("kind", sorted(set(REGISTRY) - {"fixed"}))
def test_dynamics(kind):
    model = library.random_tree(7, bodies=2, kinds=(kind, "revolute"), attachments=True)
    rng = np.random.default_rng(3)
    q = np.array([_regular(model, rng) for _ in range(STATES)])
    v, x = 2 * rng.normal(size=(2, STATES, model.nv))
    wrench = rng.normal(size=(STATES, 6))
    push = {check._wrench_frame(model): wrench}
    f = model.forward_dynamics_derivatives(q, v, x, wrenches=push)
    i = model.inverse_dynamics_derivatives(q, v, x, wrenches=push)
    condition = np.linalg.cond(model.mass_matrix(q))
    for name, last, found in (
        ("forward_dynamics", "tau", {"q": f.dq, "v": f.dv, "tau": f.dtau}),
        ("inverse_dynamics", "a", {"q": i.dq, "v": i.dv, "a": i.da}),
    ):
        oracle = check._ad(model, name, None)
        forward = name == "forward_dynamics"
        for k in range(STATES):
            J = oracle({"q": q[k], "v": v[k], last: x[k], "wrench": wrench[k]})
            size = max(np.linalg.norm(J[key]) for key in found)
            tolerance = max(RELATIVE, 1e-14 * condition[k]) if forward else RELATIVE
            for key, jacobian in found.items():
                # a small one has its digits from larger ones: a millionth of these is what counts
                scale = max(np.linalg.norm(J[key]), 1e-6 * size)
                assert np.linalg.norm(jacobian[k] - J[key]) <= tolerance * scale, (name, key, k)
