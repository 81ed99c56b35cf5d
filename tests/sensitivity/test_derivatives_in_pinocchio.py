"""Derivatives of dynamics against Pinocchio's, on robots and on random trees of its joint types.

Its closed forms hold for joints whose subspace does not change; of gimbal, universal and planar joints they miss the part
that comes from dS/dq (4.1), so that there its own accelerations are differenced instead.
"""

import dataclasses

import numpy as np
import pytest

from alembert import library
from alembert.model.io.convert import accelerations_from_pinocchio, to_pinocchio

pin = pytest.importorskip("pinocchio")
from alembert.verify.in_pinocchio import JOINTS, in_pinocchio  # noqa: E402

TURNING = ("universal", "gimbal", "planar")
AGREEMENT = 1e-9  # what the derivatives promise; found 1e-15 for inverse dynamics, 1e-13 times the condition for forward


def states(model, count):
    rng = np.random.default_rng(5)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    return q, *rng.normal(size=(2, count, model.nv))


def plain(model):
    joints = [dataclasses.replace(j, friction=None, spring=None, rotors=()) for j in model.joints]
    return model.replace(joints=tuple(joints))


MODELS = {
    "arm": lambda: plain(library.arm7()),
    "humanoid": lambda: plain(library.humanoid()),
    "chain": lambda: library.chain(40),
    "tree": lambda: library.random_tree(
        32, bodies=8, kinds=[k for k in JOINTS if k not in TURNING], floating=True
    ),
}


def close(found, expected, tolerance=AGREEMENT):
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@pytest.mark.parametrize("name", MODELS)
def test_inverse_and_forward_dynamics(name):
    model = MODELS[name]()
    other = in_pinocchio(model)
    data = other.createData()
    q, v, x = states(model, 60)
    f, i = model.forward_dynamics_derivatives(q, v, x), model.inverse_dynamics_derivatives(q, v, x)
    T = to_pinocchio(model, q[0], np.eye(model.nv), pin_model=other)[1].T  # the same for all q
    U = np.linalg.inv(T)
    (qp, vp), xp = to_pinocchio(model, q, v, pin_model=other), to_pinocchio(model, q, x, pin_model=other)[1]
    condition = np.linalg.cond(model.mass_matrix(q))
    for k in range(len(q)):
        pin.computeRNEADerivatives(other, data, qp[k], vp[k], xp[k])
        close(i.dq[k], T.T @ data.dtau_dq @ T)
        close(i.dv[k], T.T @ data.dtau_dv @ T)
        close(i.da[k], T.T @ (np.triu(data.M) + np.triu(data.M, 1).T) @ T)
        pin.computeABADerivatives(other, data, qp[k], vp[k], xp[k])
        rounding = max(AGREEMENT, 1e-15 * condition[k])
        close(f.dq[k], U @ data.ddq_dq @ T, rounding)
        close(f.dv[k], U @ data.ddq_dv @ T, rounding)
        close(f.dtau[k], U @ (np.triu(data.Minv) + np.triu(data.Minv, 1).T) @ U.T, rounding)


@pytest.mark.parametrize("kind", TURNING)
def test_joints_that_turn_their_axes(kind):
    """Against differences of its accelerations, of fourth order with h = 1e-3: 1e-12 h^-1 of rounding, h^4 of a fifth
    derivative of some hundred."""
    model = library.random_tree(1, bodies=4, kinds=[kind, "revolute"])
    assert kind in {joint.type.kind for joint in model.joints}
    other = in_pinocchio(model)
    data = other.createData()

    def accelerations(q, v, x):
        (qp, vp), xp = (
            to_pinocchio(model, q, v, pin_model=other),
            to_pinocchio(model, q, x, pin_model=other)[1],
        )
        return accelerations_from_pinocchio(
            model, qp, vp, pin.aba(other, data, qp, vp, xp).copy(), pin_model=other
        )

    h = 1e-3
    for q, v, x in zip(*states(model, 5), strict=True):
        d = model.forward_dynamics_derivatives(q, v, x)

        def slope(moved):
            near, far = (moved(s * h) - moved(-s * h) for s in (1, 2))
            return (8 * near - far) / (12 * h)

        for k, e in enumerate(np.eye(model.nv)):
            by_q = slope(lambda s, e=e, q=q, v=v, x=x: accelerations(model.integrate(q, s * e), v, x))
            by_v = slope(lambda s, e=e, q=q, v=v, x=x: accelerations(q, v + s * e, x))
            assert np.abs(d.dq[:, k] - by_q).max() <= 1e-6 * np.abs(d.dq).max()
            assert np.abs(d.dv[:, k] - by_v).max() <= 1e-6 * np.abs(d.dv).max()
