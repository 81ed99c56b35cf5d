"""For `test_every_method`: the checks of derivatives, products with them and Hessians."""

import dataclasses

import numpy as np
import pytest
from every_method import DIFFERENCE, covers, moved, near, slope
from scipy.linalg import null_space

from alembert.errors import UnsupportedError


@covers("forward_dynamics_derivatives", "constrained_dynamics_derivatives")
def _(c):
    """Along the constraints: the state moves on them. dtau is N (N^T M N)^-1 N^T."""
    wrenches = {c.frame: c.F}
    d = c.model.forward_dynamics_derivatives(c.q, c.v, c.tau, wrenches=wrenches)
    full = c.model.constrained_dynamics_derivatives(c.q, c.v, c.tau, wrenches=wrenches)
    near(d.dtau, c.A)
    near(full.dq, d.dq)
    near(d.dwrenches[c.frame], c.A @ c.J.T)
    _along(c, d, lambda q, v: c.model.forward_dynamics(q, v, c.tau, wrenches=wrenches))


@covers("inverse_dynamics_derivatives", "constrained_inverse_dynamics_derivatives")
def _(c):
    wrenches = {c.frame: c.F}
    d = c.model.inverse_dynamics_derivatives(c.q, c.v, c.a, wrenches=wrenches)
    smallest = np.linalg.pinv(c.N.T) @ c.N.T
    near(d.da, smallest @ c.M)
    near(d.dwrenches[c.frame], -smallest @ c.J.T)
    full = c.model.constrained_inverse_dynamics_derivatives(c.q, c.v, c.a, wrenches=wrenches)
    near(full.dv, d.dv)
    step = c.N @ np.ones(c.N.shape[1])

    def efforts(s):
        """Driven by all joints, from the dense equations at the acceleration a, which need not keep the constraints."""
        q = moved(c, step, s)
        N = null_space(c.model.constraint_jacobian(q), rcond=1e-9)
        r = c.tree.inverse_dynamics(q, c.v, c.a, wrenches=wrenches)
        return np.linalg.pinv(N.T) @ N.T @ r

    along = slope(lambda s: c.model.difference(c.q, moved(c, step, s)))
    near(d.dq @ along, slope(efforts), DIFFERENCE)
    fast = slope(lambda s: smallest @ c.tree.inverse_dynamics(c.q, c.v + s * c.x, c.a, wrenches=wrenches))
    near(d.dv @ c.x, fast, DIFFERENCE)


def _along(c, d, function):
    """dq, dv against differences on the constraint surface."""
    step = c.N @ np.ones(c.N.shape[1])

    def state(s):
        q = moved(c, step, s)
        G = c.model.constraint_jacobian(q)
        return q, c.v - np.linalg.pinv(G, rcond=1e-9) @ G @ c.v

    dq = slope(lambda s: c.model.difference(c.q, state(s)[0]))
    dv = slope(lambda s: state(s)[1])
    near(d.dq @ dq + d.dv @ dv, slope(lambda s: function(*state(s))), 10 * DIFFERENCE)
    fast = c.N @ np.arange(1.0, c.N.shape[1] + 1)
    near(d.dv @ fast, slope(lambda s: function(c.q, c.v + s * fast)), DIFFERENCE)


@covers("hybrid_dynamics_derivatives")
def _(c):
    one = c.free[0]
    k = c.model.speed_names.index(one)
    given = {name: c.tau[j] for j, name in enumerate(c.model.speed_names) if name != one}
    d = c.model.hybrid_dynamics_derivatives(c.q, c.v, accelerations={one: 0.7}, torques=given)

    def both(q, v):
        found = c.model.hybrid_dynamics(q, v, accelerations={one: 0.7}, torques=given)
        return np.stack([found.accelerations, found.efforts])

    _along(c, d, both)
    changed = slope(
        lambda s: np.stack(
            dataclasses.astuple(
                c.model.hybrid_dynamics(c.q, c.v, accelerations={one: 0.7 + s}, torques=given)
            )
        )
    )
    near(d.dgiven[..., k], changed, DIFFERENCE)


@covers("jvp", "vjp")
def _(c):
    """Of forward, inverse and hybrid dynamics through the constraints, of the terms those of the tree."""
    wrenches, rng = {c.frame: c.F}, np.random.default_rng(1)
    for name, third, d in (
        ("forward_dynamics", c.tau, c.model.forward_dynamics_derivatives(c.q, c.v, c.tau, wrenches=wrenches)),
        ("inverse_dynamics", c.a, c.model.inverse_dynamics_derivatives(c.q, c.v, c.a, wrenches=wrenches)),
    ):
        last = d.dtau if name == "forward_dynamics" else d.da
        matrices = [d.dq, d.dv, last, d.dwrenches[c.frame]]
        along = [rng.normal(size=A.shape[1]) for A in matrices]
        at = (c.q, c.v, third)
        moved_ = {c.frame: along[3]}
        value, change = c.model.jvp(name, at, along[:3], wrenches=wrenches, along_wrenches=moved_)
        near(value, getattr(c.model, name)(*at, wrenches=wrenches))
        near(change, sum(A @ x for A, x in zip(matrices, along, strict=True)))
        *gradients, by_frame = c.model.vjp(name, at, c.x, wrenches=wrenches)
        for found, A in zip([*gradients, by_frame[c.frame]], matrices, strict=True):
            near(found, c.x @ A)
    at = (c.q, c.v)
    for mode in ("jvp", "vjp"):
        given = at if mode == "jvp" else c.x
        for found, expected in zip(
            getattr(c.model, mode)("bias_forces", at, given),
            getattr(c.tree, mode)("bias_forces", at, given),
            strict=True,
        ):
            near(found, expected)
    _hybrid_products(c, wrenches, rng)


def _hybrid_products(c, wrenches, rng):
    """Against differences of hybrid dynamics while the state moves on the constraints, and what is given changes."""
    n, one = c.model.nv, c.model.speed_names.index(c.free[0])
    free = np.ones(n)
    free[one] = 0
    step, dtau, da = c.N @ np.ones(c.N.shape[1]), *rng.normal(size=(2, n))
    dF, w = rng.normal(size=6), rng.normal(size=(2, n))

    def at(s):
        q = moved(c, step, s)
        G = c.model.constraint_jacobian(q)
        return q, c.v - np.linalg.pinv(G, rcond=1e-9) @ G @ c.v, c.tau + s * dtau, c.a + s * da, free

    def both(s):
        q, v, tau, a, _ = at(s)
        found = c.model.hybrid_dynamics(
            q,
            v,
            accelerations={c.free[0]: a[one]},
            torques={x: tau[k] for k, x in enumerate(c.model.speed_names) if k != one},
            wrenches={c.frame: c.F + s * dF},
        )
        return np.stack(dataclasses.astuple(found))

    along = (
        slope(lambda s: c.model.difference(c.q, at(s)[0])),
        slope(lambda s: at(s)[1]),
        dtau,
        da,
        0 * free,
    )
    name, here = "hybrid_dynamics", (c.q, c.v, c.tau, c.a, free)
    value, change = c.model.jvp(name, here, along, wrenches=wrenches, along_wrenches={c.frame: dF})
    near(value, both(0))
    near(change, slope(both), 10 * DIFFERENCE)
    *gradients, by_frame = c.model.vjp(name, here, tuple(w), wrenches=wrenches)
    dots = [g @ x for g, x in zip([*gradients, by_frame[c.frame]], [*along, dF], strict=True)]
    near(sum(dots), np.sum(w * np.asarray(change)))
    near(gradients[2][one], 0)  # the effort of what is prescribed is found, not given
    near(gradients[3], gradients[3] * (1 - free))
    # all free: forward dynamics
    _, (da_, dtau_) = c.model.jvp(name, (*here[:4], 0 * free + 1), along)
    near(da_, c.model.jvp("forward_dynamics", here[:3], along[:3])[1])
    near(dtau_, dtau)


@covers("hessian", "second_derivatives")
def _(c):
    """Of forward, inverse and hybrid dynamics, symmetric, the derivative of the gradient; of the terms those of the tree."""
    at = (c.q, c.v, c.tau)
    H = c.model.hessian("forward_dynamics", at, c.x)
    near(H, H.T)
    tensor = c.model.second_derivatives("forward_dynamics", at)
    near(np.tensordot(c.x, tensor, axes=1), H)
    # linear in tau: d2/dtau2 = 0, and d2/(dv dtau) = 0 (friction aside, which does not depend on tau)
    n = c.model.nv
    near(H[2 * n :, n:], 0)
    near(c.model.hessian("kinetic_energy", at[:2], 1.0), c.tree.hessian("kinetic_energy", at[:2], 1.0))
    free = np.ones(n)
    free[[c.model.speed_names.index(x) for x in c.free]] = 0
    _hessian_along(c, "inverse_dynamics", (c.a,), c.x)
    _hessian_along(c, "hybrid_dynamics", (c.tau, c.a, free), (c.x, c.tau))
    _hessian_along(c, "hybrid_dynamics", (c.tau, c.a, 0 * free + 1), (c.x, c.tau))
    with pytest.raises(
        UnsupportedError, match="hessian: inverse_dynamics_derivatives of a model with loops, couplings"
    ):
        c.model.hessian("inverse_dynamics_derivatives", at, c.x)


def _hessian_along(c, name, given, weight):
    """Against differences of the gradient (which comes from the constrained system) along the constraints."""
    n, wrenches = c.model.nv, {c.frame: c.F}
    at = (c.q, c.v, *given)
    H = c.model.hessian(name, at, weight, wrenches=wrenches)
    near(H, H.T)
    tensor = c.model.second_derivatives(name, at, wrenches=wrenches)
    parts = zip(weight, tensor, strict=True) if isinstance(tensor, tuple) else [(weight, tensor)]
    near(sum(np.tensordot(w, x, axes=1) for w, x in parts), H)
    near(H[2 * n :, n:], 0)  # linear in what is given and the wrench, apart from the configuration
    near(c.model.hessian(name, (np.stack([c.q, c.q]), *at[1:]), weight, wrenches=wrenches)[1], H)
    step, rng = c.N @ np.ones(c.N.shape[1]), np.random.default_rng(2)
    fast, dF = c.N @ rng.normal(size=c.N.shape[1]), rng.normal(size=6)
    changes = rng.normal(size=(len(given), n)) * [[k < 2] for k in range(len(given))]  # free is a choice

    def state(s):
        q = moved(c, step, s)
        G = c.model.constraint_jacobian(q)
        v = c.v + s * fast
        v = v - np.linalg.pinv(G, rcond=1e-9) @ G @ v
        return q, v, *(x + s * d for x, d in zip(given, changes, strict=True))

    def gradient(s):
        *found, by_frame = c.model.vjp(name, state(s), weight, wrenches={c.frame: c.F + s * dF})
        return np.concatenate([*found, by_frame[c.frame]])

    along = np.concatenate(
        [slope(lambda s: c.model.difference(c.q, state(s)[0])), slope(lambda s: state(s)[1]), *changes, dF]
    )
    near(H @ along, slope(gradient), 10 * DIFFERENCE)
