"""Geared rotors against the manipulator equations of Chen and Ou (1989), written out densely.

With mu the gear ratio, J the inertia and e the axis of the rotor of joint i, which is mounted on link i - 1,
z the joint axes, A' the mass matrix and w, al' the angular velocities and accelerations (the latter without
joint accelerations):

    A_ri = A'_ri + mu_i J_i z_r . e_i  (r < i),   A_rr = A'_rr + mu_r^2 J_r      (44)-(45)
    sum_i A_ri qdd_i = tau_r - bias'_r + G_r
    G_r = -mu_r J_r al'_{r-1} . e_r + sum_{i > r} mu_i J_i qd_i (w_{i-1} x z_r) . e_i      (46)
    K = K' + sum_i (1/2 mu_i^2 J_i qd_i^2 + mu_i J_i qd_i w_{i-1} . e_i),   H = H' + sum_i mu_i J_i qd_i e_i

The data are those of the seven-link arm there (masses, inertias, joint offsets, rotors). The orientations of
its links are in a figure only: here all link frames are parallel at q = 0 and each joint turns about the axis
of its rotor.
"""

import dataclasses

import numpy as np
import pytest
from dynamics_helpers import ROUNDING, observed_order, runge_kutta, states

from alembert import WORLD, Inertia, ModelBuilder, Revolute, Rotor

MASSES = (104.2, 55.4, 28.8, 20.4, 11.1, 4.7, 4.7)
INERTIAS = (
    (2.05, 2.05, 0.7),
    (0.4, 0.4, 0.3),
    (0.6, 0.6, 0.2),
    (0.2, 0.2, 0.2),
    (0.1, 0.1, 0.04),
    (0.03, 0.03, 0.03),
    (0.03, 0.03, 0.03),
)
OFFSETS = (
    (0, 0, 0),
    (0, 0, 0.5),
    (0.3, 0.1, 0),
    (0.1, 0, 0.3),
    (0.3, -0.1, 0),
    (0.08, 0, 0.4),
    (0.19, -0.08, 0),
)
RATIOS = (160.0, 160.0, 200.0, 200.0, 200.0, 200.0, 160.0)
ROTORS = (0.003, 0.003, 0.0003, 0.0003, 0.0002, 0.0002, 0.0002)
AXES = ((0, 0, 1), (1, 0, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0))
N = 7


def arm(*, first_ratio=RATIOS[0], oblique=False, gravity=-9.81, center=(0.0, 0.0, 0.0)):
    """`oblique` gives the rotors (but the first) axes of their own, off the joint axes."""
    rng = np.random.default_rng(1)
    builder = ModelBuilder("rrc", gravity=(0.0, 0.0, gravity))
    for i in range(N):
        axis = np.array(AXES[i], dtype=float)
        if oblique and i:
            axis = rng.normal(size=3)
        rotor = Rotor(RATIOS[i] if i else first_ratio, ROTORS[i], tuple(axis / np.linalg.norm(axis)))
        builder.body(
            f"link{i + 1}",
            Inertia(MASSES[i], center, _diagonal(INERTIAS[i])),
            joint=Revolute(AXES[i]),
            joint_name=f"joint{i + 1}",
            parent=f"link{i}" if i else WORLD,
            placement=OFFSETS[i],
            rotors=(rotor,),
        )
    return builder.build()


def _diagonal(moments):
    xx, yy, zz = moments
    return (xx, 0.0, yy, 0.0, 0.0, zz)


def without_rotors(model):
    return model.replace(joints=tuple(dataclasses.replace(joint, rotors=()) for joint in model.joints))


def axes(model, q):
    """z_i, e_i and mu_i J_i in the world."""
    z, e, gear = [], [], []
    for i, joint in enumerate(model.joints):
        rotor = joint.rotors[0]
        R_parent = np.eye(3) if i == 0 else model.frame_pose(q, f"link{i}").rotation
        z.append(R_parent @ np.array(joint.type.axis))
        e.append(R_parent @ np.array(rotor.axis))
        gear.append(rotor.ratio * rotor.inertia)
    return np.array(z), np.array(e), np.array(gear)


def link_rates(model, q, v):
    """w_{i-1} and al'_{i-1} of the link that carries rotor i; the base is at rest."""
    zero = np.zeros(model.nv)
    w, al = [np.zeros(3)], [np.zeros(3)]
    for i in range(1, N):
        w.append(model.frame_velocity(q, v, f"link{i}", reference="local_world_aligned")[:3])
        al.append(model.frame_acceleration(q, v, zero, f"link{i}", reference="local_world_aligned")[:3])
    return np.array(w), np.array(al)


@pytest.fixture(scope="module", params=[False, True], ids=["along", "oblique"])
def model(request):
    return arm(oblique=request.param, center=(0.05, -0.02, 0.1))


def test_mass_matrix_and_bias_of_the_geared_arm(model):
    plain = without_rotors(model)
    for q, v, _ in zip(*states(model, 5), strict=True):
        z, e, gear = axes(model, q)
        ratio = np.array([joint.rotors[0].ratio for joint in model.joints])
        A = plain.mass_matrix(q)
        coupling = np.triu(z @ (gear * e.T), 1)
        A = A + coupling + coupling.T + np.diag(ratio * gear)
        np.testing.assert_allclose(model.mass_matrix(q), A, rtol=0, atol=ROUNDING * np.abs(A).max())
        w, al = link_rates(model, q, v)
        G = -gear * np.sum(al * e, axis=1)
        for r in range(N):
            for i in range(r + 1, N):
                G[r] += gear[i] * v[i] * np.cross(w[i], z[r]) @ e[i]
        bias = plain.bias_forces(q, v) - G
        scale = np.abs(bias).max()
        np.testing.assert_allclose(model.bias_forces(q, v), bias, rtol=0, atol=ROUNDING * scale)
        assert np.abs(G).max() > 1e-4 * scale  # the gyroscopic terms are seen


def test_kinetic_energy_and_angular_momentum_of_the_geared_arm(model):
    plain = without_rotors(model)
    for q, v, _ in zip(*states(model, 5), strict=True):
        _, e, gear = axes(model, q)
        ratio = np.array([joint.rotors[0].ratio for joint in model.joints])
        w, _ = link_rates(model, q, v)
        K = plain.kinetic_energy(q, v) + np.sum(ratio * gear * v**2 / 2 + gear * v * np.sum(w * e, axis=1))
        np.testing.assert_allclose(model.kinetic_energy(q, v), K, rtol=ROUNDING)
        H = plain.momentum(q, v, about="world")
        H[:3] += (gear * v) @ e
        np.testing.assert_allclose(
            model.momentum(q, v, about="world"), H, rtol=0, atol=ROUNDING * np.abs(H).max()
        )


# --- the validation cases of the paper -------------------------------------------------------------------

COUNTS = [100, 200, 400]
V0 = np.array([0.3, -0.5, 0.8, 1.0, -0.7, 0.9, 1.2])
Q0 = np.array([0.2, 0.4, -0.6, 0.8, 0.3, -0.5, 0.7])


def vertical_momentum(model, q, v):
    return model.momentum(q, v, about="world")[2]


def drive(t):
    """Efforts on all joints but the first."""
    return np.array([0.0, *(20.0 * np.cos(3.0 * t + k) / k for k in range(1, N))])


CASES = {
    "I": (arm(oblique=True), None, lambda m, q, v: m.energy(q, v)),
    "IIa": (arm(first_ratio=1.0, oblique=True, gravity=0.0), drive, vertical_momentum),
    "IIb": (arm(first_ratio=1.0, oblique=True), drive, vertical_momentum),
}


@pytest.mark.parametrize("case", CASES)
def test_validation_case(case):
    """(I) no efforts: K + V constant; (II) none on a vertical first joint, mu = 1, e = z: H . z constant."""
    model, tau, value = CASES[case]
    start = value(model, Q0, V0)
    drifts = []
    for steps in COUNTS:
        q, v = runge_kutta(model, Q0, V0, duration=1.0, steps=steps, tau=tau)
        drifts.append(abs(value(model, q, v) - start))
    assert np.max(np.abs(v - V0)) > 0.3  # something happened
    if max(drifts) < 1e-11 * max(abs(start), 1.0):
        pytest.fail("no drift to measure: the motion is too slow for these steps")
    assert 3.6 < observed_order(drifts, COUNTS) < 5.6
    assert drifts[-1] < 1e-5 * max(abs(start), 1.0)
