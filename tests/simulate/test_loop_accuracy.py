"""How well conservative mechanisms with loops keep their energy and stay closed, over ten seconds."""

import numpy as np
import pytest

import alembert as al
from alembert.simulate import simulate
from alembert.verify.mechanisms import bricard, four_bars, parallelogram

pytestmark = pytest.mark.filterwarnings("ignore::alembert.errors.AlembertWarning")


def windows():
    m = four_bars(2)  # IFToMM A02, which goes through its singular configuration twice a turn
    return m, *parallelogram(m, 0.0, -1.0)


def folding():
    m = bricard()  # IFToMM A04, redundant everywhere
    return m, np.zeros(m.nq), np.zeros(m.nv)


@pytest.mark.parametrize("case", [windows, folding])
def test_energy_and_closure_with_error_control(case):
    m, q, v = case()
    run = simulate(m, q, v, duration=10.0, interval=0.1, tolerance=1e-10)
    assert run.integrator == "dop853"
    assert np.max(np.abs(run.energy - run.energy[0])) <= 1e-8 * abs(run.energy[0])
    assert np.max(np.abs([m.constraint_residual(x) for x in run.q])) <= 1e-12
    speeds = np.array([m.constraint_jacobian(x) @ y for x, y in zip(run.q, run.v, strict=True)])
    assert np.max(np.abs(speeds)) <= 1e-12 * max(1.0, np.max(np.abs(run.v)))


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler", "adams_bashforth4"])
def test_closure_does_not_depend_on_the_scheme(integrator):
    """Projection ends at rounding, whatever error the step has made."""
    m, q, v = windows()
    run = simulate(m, q, v, duration=1.0, step=0.01, integrator=integrator)
    assert np.max(np.abs([m.constraint_residual(x) for x in run.q])) <= 1e-12


def test_projection_of_a_state_that_has_drifted():
    """From a hundredth of the size of a loop away: 1e-12 in position, and in speed."""
    m = four_bars(2)
    rng = np.random.default_rng(0)
    start = parallelogram(m, 0.7, 1.0)
    for _ in range(5):
        state = m.project(start[0] + 5e-3 * rng.normal(size=m.nq), start[1] + 0.1 * rng.normal(size=m.nv))
        assert np.max(np.abs(m.constraint_residual(state.q))) <= 1e-12
        assert np.max(np.abs(m.constraint_jacobian(state.q) @ state.v)) <= 1e-12


def test_a_mechanism_that_comes_to_rest_at_the_end_of_a_run():
    """Speeds of rounding size are no reason to refuse a state, though errors are as large as they."""
    builder = al.ModelBuilder("swing", gravity=(0, -9.81, 0))
    bar = al.Inertia.rod(1.0, (0, 0, 0), (0, -1, 0))
    beam = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("left", bar, joint=al.Revolute())
    builder.body("right", bar, joint=al.Revolute(), placement=(1, 0, 0))
    builder.body("beam", beam, joint=al.Revolute(), parent="left", placement=(0, -1, 0))
    builder.frame("end", "beam", (1, 0, 0))
    builder.frame("foot", "right", (0, -1, 0))
    builder.loop("pin", al.Revolute(), "end", "foot")
    m = builder.build()
    q0 = np.zeros(3)
    q0[m.q_slice("left_joint")] = q0[m.q_slice("right_joint")] = 0.9
    q0[m.q_slice("beam_joint")] = -0.9

    def stop(t, q, v):
        return v[0]

    whole = simulate(m, q0, duration=3.0, tolerance=1e-11, events=al.simulate.Event(stop, direction=-1))
    again = simulate(m, q0, duration=float(whole.time[-1]), tolerance=1e-11)
    np.testing.assert_allclose(again.q[-1], q0, rtol=0, atol=1e-7)
