"""Models with loops and couplings, kept by projection after every step."""

import numpy as np
import pytest

import alembert as al
from alembert.errors import AlembertError, UnsupportedError
from alembert.simulate import simulate


@pytest.fixture(scope="module")
def four_bar():
    """IFToMM benchmark A02 with two windows: all bars of 1 m and 1 kg, one degree of freedom."""
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    up, along = al.Inertia.rod(1.0, (0, 0, 0), (0, 1, 0)), al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    hinge = al.Revolute((0, 0, 1))
    for k in range(3):
        builder.body(f"v{k}", up, joint=hinge, placement=(float(k), 0, 0), joint_name=f"foot{k}")
        builder.frame(f"top{k}", f"v{k}", (0, 1, 0))
    for k in range(2):
        builder.body(f"h{k}", along, joint=hinge, parent=f"v{k}", placement=(0, 1, 0), joint_name=f"head{k}")
        builder.frame(f"end{k}", f"h{k}", (1, 0, 0))
        builder.loop(f"loop{k}", al.Revolute((0, 0, 1)), f"end{k}", f"top{k + 1}")
    return builder.build()


def start(m):
    v = np.zeros(m.nv)
    for k in range(3):
        v[m.v_slice(f"foot{k}")] = -1.0
    for k in range(2):
        v[m.v_slice(f"head{k}")] = 1.0
    return np.zeros(m.nq), v


def test_four_bar(four_bar):
    """B0 after 10 s and the energy, from the benchmark; loops closed to rounding at every record."""
    m = four_bar
    run = simulate(m, *start(m), duration=10.0, interval=0.1, tolerance=1e-10)
    assert run.integrator == "dop853"
    X = m.frame_pose(run.q[-1], "top0")
    assert X.translation[:2] == pytest.approx((0.3284581115, 0.9445185382), abs=1e-6)
    assert run.energy == pytest.approx(np.full(len(run.time), 35.835), abs=1e-6)
    assert run.report.constraint_error < 1e-10
    assert "loops and couplings closed to" in str(run.report)


@pytest.mark.parametrize("integrator", ["radau", "bdf", "cvode", "cvode_adams", "rk45"])
def test_other_integrators_on_a_closed_loop(four_bar, integrator):
    """All agree with dop853 to their tolerance, and end on the surface."""
    m = four_bar
    reference = simulate(m, *start(m), duration=1.0, interval=0.25, tolerance=1e-11)
    run = simulate(m, *start(m), duration=1.0, interval=0.25, integrator=integrator, tolerance=1e-7,
                   absolute_tolerance=1e-8)  # fmt: skip
    # multistep formulas keep the error of a step, not of the run, below the tolerance
    np.testing.assert_allclose(run.q, reference.q, rtol=0, atol=1e-4)
    assert run.report.constraint_error < 1e-12


def test_rk4_on_a_closed_loop(four_bar):
    run = simulate(four_bar, *start(four_bar), duration=0.5, step=0.01)
    assert run.integrator == "rk4"
    assert run.report.energy_error < 1e-6
    assert run.report.constraint_error < 1e-10


def test_coupled_joints():
    """Two wheels geared together turn like one with both inertias."""
    builder = al.ModelBuilder("gear", gravity=(0, 0, 0))
    for name in "ab":
        builder.body(
            name, al.Inertia.cylinder(1.0, 0.5, 0.1, (0, 0, 1)), joint=al.Revolute((0, 0, 1)), joint_name=name
        )
    m = builder.build().replace(couplings=(al.Coupling("gear", "b", ("a",), (-2.0,)),))
    run = simulate(m, [0.1, -0.2], duration=1.0, step=0.05, efforts={"a": 1.0})
    inertia = 0.125 * (1 + 4)
    np.testing.assert_allclose(run.q[:, 0], 0.1 + run.time**2 / (2 * inertia), rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.q[:, 1], -2 * run.q[:, 0], rtol=0, atol=1e-12)


def test_refusals(four_bar):
    q, v = start(four_bar)
    with pytest.raises(
        UnsupportedError, match=r"integrator 'generalised_alpha' and a model with loops .*'loop0'"
    ):
        simulate(four_bar, q, v, duration=1.0, step=0.1, integrator="generalised_alpha")
    with pytest.raises(UnsupportedError, match="integrator 'ida' and a model with loops or couplings do not"):
        simulate(four_bar, q, v, duration=1.0, integrator="ida")
    with pytest.raises(UnsupportedError, match="prescribed motion and a model with loops or couplings"):
        simulate(four_bar, q, v, duration=1.0, prescribed={"foot0": 0.0})
    q[0] = 0.3
    with pytest.raises(AlembertError, match="loop"):
        simulate(four_bar, q, v, duration=1.0)
