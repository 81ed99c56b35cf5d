"""Published motions by several integrators; others are cases of `alembert.verify`, which `tests/verify` runs."""

import numpy as np
import pytest

import alembert as al
from alembert.simulate import simulate


def test_pendulum_position():
    """IFToMM benchmark A01: a point mass of 1 kg on 1 m, released horizontally; position after 10 s in closed form."""
    m = al.library.pendulum()
    for integrator, options in (
        ("dop853", {"tolerance": 1e-12, "absolute_tolerance": 1e-13}),
        ("rk4", {"step": 5e-4}),
    ):
        run = simulate(m, [-np.pi / 2], duration=10.0, integrator=integrator, interval=0.1, **options)
        x, _, z = m.frame_pose(run.q[-1], "tip").translation
        assert (x, z) == pytest.approx((-0.275087462576, -0.961419205099), abs=1e-10)


def test_intermediate_axis():
    """Dzhanibekov's body, I = (1, 2, 3), w0 = (0.01, 2, 0.01): the flip in closed form (elliptic integral)."""
    builder = al.ModelBuilder("nut", gravity=(0, 0, 0))
    builder.body("nut", al.Inertia(1.0, (0, 0, 0), (1.0, 0.0, 2.0, 0.0, 0.0, 3.0)), joint=al.Spherical())
    m = builder.build()
    flip = 10.977572939663
    run = simulate(m, m.neutral(), [0.01, 2, 0.01], duration=flip, integrator="dop853", tolerance=1e-12,
                   absolute_tolerance=1e-14)  # fmt: skip
    # the unstable motion multiplies errors by exp(2 t/sqrt(3)) up to the flip, some 1e3, and shrinks them again
    assert run.v[-1] == pytest.approx([-0.01, -2.0, 0.01], abs=1e-9)
    run = simulate(
        m,
        m.neutral(),
        [0.01, 2, 0.01],
        duration=flip,
        step=flip / 20000,
        interval=flip / 10,
        integrator="rk4",
    )
    assert run.v[-1] == pytest.approx([-0.01, -2.0, 0.01], abs=1e-9)


def test_heavy_top():
    """The fast top of the Lie-group literature, m = 15, spinning at 150 rad/s about its axis: attitude after 0.2 s."""
    builder = al.ModelBuilder("top")
    inertia = al.Inertia(15.0, (0, 1, 0), (0.234375, 0.0, 0.46875, 0.0, 0.0, 0.234375))
    builder.body("top", inertia, joint=al.Spherical())
    m = builder.build()
    expected = np.array([-0.70827915, 0.43878109, 0.54572840, 0.08939975])
    for integrator, options in (("dop853", {"tolerance": 1e-12}), ("rk4", {"step": 2e-5, "interval": 0.1})):
        run = simulate(m, m.neutral(), [0, 150, -4.61538], duration=0.2, integrator=integrator, **options)
        np.testing.assert_allclose(run.q[-1], expected, rtol=0, atol=1e-8)
