"""Derivatives of the dynamics in batches, with wrenches and parameters, against differences and dense solutions.

Every joint type meets automatic differentiation in `tests/test_check.py` and `test_a_thousand_states.py`.
"""

import numpy as np
import pytest

import alembert as al


@pytest.fixture(scope="module")
def branched():
    return al.library.random_tree(seed=4, bodies=7, attachments=True, floating=True)


def test_a_batch_gives_the_bits_of_single_states(branched):
    rng = np.random.default_rng(2)
    q = np.array([branched.random_configuration(rng) for _ in range(11)])
    v, x = rng.normal(size=(2, 11, branched.nv))
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        batch = getattr(branched, name)(q, v, x)
        for k in (0, 3, 10):
            single = getattr(branched, name)(q[k], v[k], x[k])
            for field, value in vars(single).items():
                if isinstance(value, np.ndarray):  # there are no wrenches here
                    np.testing.assert_array_equal(getattr(batch, field)[k], value)


def test_wrenches_and_parameters_enter_the_derivatives(branched):
    rng = np.random.default_rng(3)
    q, v, tau = branched.random_configuration(rng), rng.normal(size=branched.nv), rng.normal(size=branched.nv)
    frame = branched.bodies[-1].name
    wrench = {frame: rng.normal(size=6)}
    d = branched.forward_dynamics_derivatives(q, v, tau, wrenches=wrench)
    h = 1e-6
    for k in range(branched.nv):
        step = h * np.eye(branched.nv)[k]
        ahead, behind = (
            branched.forward_dynamics(branched.integrate(q, s), v, tau, wrenches=wrench)
            for s in (step, -step)
        )
        # central difference: truncation h^2, rounding eps/h, both times the size of the accelerations
        scale = np.abs(ahead).max() * np.linalg.cond(branched.mass_matrix(q)) ** 0.5
        np.testing.assert_allclose(d.dq[:, k], (ahead - behind) / (2 * h), atol=1e-6 * scale)


def test_wrenches_alone_may_be_a_batch(branched):
    """Then every result is one."""
    rng = np.random.default_rng(3)
    q, v, x = branched.random_configuration(rng), rng.normal(size=branched.nv), rng.normal(size=branched.nv)
    frame = branched.bodies[-1].name
    push = {frame: rng.normal(size=(4, 6))}
    for name in ("inverse_dynamics_derivatives", "forward_dynamics_derivatives"):
        d = getattr(branched, name)(q, v, x, wrenches=push)
        assert d.dq.shape == (4, branched.nv, branched.nv)
        assert d.dwrenches[frame].shape == (4, branched.nv, 6)


def test_hybrid_derivatives_against_differences(branched):
    rng = np.random.default_rng(6)
    q, v = branched.random_configuration(rng), rng.normal(size=branched.nv)
    names = [joint.name for joint in branched.joints if joint.type.nv]
    given = {name: rng.normal(size=branched.joint(name).type.nv) for name in names}
    prescribed, free = names[::2], names[1::2]

    def evaluate(q, v, given):
        result = branched.hybrid_dynamics(
            q, v, accelerations={n: given[n] for n in prescribed}, torques={n: given[n] for n in free}
        )
        return np.stack([result.accelerations, result.efforts])

    d = branched.hybrid_dynamics_derivatives(
        q, v, accelerations={n: given[n] for n in prescribed}, torques={n: given[n] for n in free}
    )
    np.testing.assert_array_equal(evaluate(q, v, given)[0], d.result.accelerations)
    h = 1e-6
    scale = np.abs(evaluate(q, v, given)).max() * np.linalg.cond(branched.mass_matrix(q)) ** 0.5
    flat = np.concatenate([given[name] for name in names])
    for k in range(branched.nv):
        e = h * np.eye(branched.nv)[k]
        by_name = [branched.split(flat + s) for s in (e, -e)]
        for value, ahead, behind in (
            (
                d.dq,
                evaluate(branched.integrate(q, e), v, given),
                evaluate(branched.integrate(q, -e), v, given),
            ),
            (d.dv, evaluate(q, v + e, given), evaluate(q, v - e, given)),
            (d.dgiven, evaluate(q, v, by_name[0]), evaluate(q, v, by_name[1])),
        ):
            np.testing.assert_allclose(value[..., k], (ahead - behind) / (2 * h), atol=1e-6 * scale)


@pytest.mark.parametrize("step", [1, 2, 100])
def test_hybrid_derivatives_of_batches_against_a_dense_solution(branched, step):
    """All, every other or only the first joint prescribed; with a wrench."""
    rng = np.random.default_rng(8)
    q = np.array([branched.random_configuration(rng) for _ in range(9)])
    v = rng.normal(size=(9, branched.nv))
    names = [joint.name for joint in branched.joints if joint.type.nv]
    accelerations = {n: rng.normal(size=branched.joint(n).type.nv) for n in names[::step]}
    wrenches = {branched.bodies[-1].name: rng.normal(size=6)}
    d = branched.hybrid_dynamics_derivatives(q, v, accelerations=accelerations, wrenches=wrenches)
    i = branched.inverse_dynamics_derivatives(q, v, d.result.accelerations, wrenches=wrenches)
    p = np.zeros(branched.nv, dtype=bool)
    for name in accelerations:
        p[branched.v_slice(name)] = True
    tolerance = 1e-13 * max(np.linalg.cond(M) for M in i.da)  # both solve with M
    (frame,) = wrenches
    for found, rows in ((d.dq, i.dq), (d.dv, i.dv), (d.dwrenches[frame], i.dwrenches[frame])):
        expected = np.zeros_like(found)
        moved = -np.linalg.solve(i.da[:, ~p][:, :, ~p], rows[:, ~p])
        expected[:, 0, ~p] = moved
        expected[:, 1, p] = rows[:, p] + i.da[:, p][:, :, ~p] @ moved
        np.testing.assert_allclose(found, expected, atol=tolerance * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("name", ["poses", "kinetic_energy", "potential_energy", "momentum", "mass_matrix"])
def test_kinematics_and_energy_have_derivatives_too(branched, name):
    rng = np.random.default_rng(7)
    q, v = branched.random_configuration(rng), rng.normal(size=branched.nv)
    at = (q, v) if name in ("kinetic_energy", "momentum") else (q,)
    along = rng.normal(size=(len(at), branched.nv))
    kernel = branched.compile(name)
    _, change = branched.jvp(name, at, along)
    h = 1e-6
    moved = [
        kernel(
            *(
                branched.integrate(q, s * along[0]),
                *(x + s * d for x, d in zip(at[1:], along[1:], strict=True)),
            )
        )
        for s in (h, -h)
    ]
    np.testing.assert_allclose(
        change, (moved[0] - moved[1]) / (2 * h), atol=1e-7 * max(1, np.abs(change).max())
    )


@pytest.mark.parametrize("kinds", [["spherical", "revolute"], ["universal", "custom"]])
def test_hessian_is_the_derivative_of_the_gradient(kinds):
    model = al.library.random_tree(seed=8, bodies=3, kinds=kinds, attachments=False)
    rng = np.random.default_rng(9)
    q, v, a, weight = model.random_configuration(rng), *rng.normal(size=(3, model.nv))
    H = model.hessian("inverse_dynamics", (q, v, a), weight)
    n = model.nv
    np.testing.assert_allclose(H, H.T, atol=1e-12 * np.abs(H).max())
    h = 1e-5

    def value(step):
        tau = model.inverse_dynamics(model.integrate(q, step[:n]), v + step[n : 2 * n], a + step[2 * n :])
        return weight @ tau

    for i, j in rng.integers(0, 3 * n, size=(12, 2)):
        e, f = h * np.eye(3 * n)[i], h * np.eye(3 * n)[j]
        difference = (value(e + f) - value(e - f) - value(f - e) + value(-e - f)) / (4 * h * h)
        # rounding eps/h^2 = 2e-6 of the value, truncation h^2
        np.testing.assert_allclose(H[i, j], difference, atol=2e-5 * max(1.0, np.abs(H).max()))


def test_unknown_algorithms_and_wrong_counts_are_named(branched):
    q = branched.neutral()
    with pytest.raises(al.ArgumentError, match="jvp: no algorithm 'foward_dynamics'; did you mean"):
        branched.jvp("foward_dynamics", (q,), (q,))
    with pytest.raises(al.ArgumentError, match="vjp: forward_dynamics takes 3 arguments, got 1"):
        branched.vjp("forward_dynamics", (q,), np.zeros(branched.nv))


def test_the_weight_of_an_energy_may_be_a_number(branched):
    rng = np.random.default_rng(9)
    q, v = branched.random_configuration(rng), rng.normal(size=branched.nv)
    _, by_v = branched.vjp("kinetic_energy", (q, v), 1.0)
    expected = branched.multiply_mass_matrix(q, v)
    np.testing.assert_allclose(by_v, expected, atol=1e-12 * np.abs(expected).max())
