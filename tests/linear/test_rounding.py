"""What is zero but for rounding, and what only looks small beside something stiff."""

import numpy as np
import pytest

import alembert as al
from alembert import Friction, Inertia, ModelBuilder, Placement, Prismatic, Revolute, Spring

G = 9.81


def level_arm(*, damping=0.0):
    """Three links that turn about the vertical; axes and gravity are along no axis of the world, so nothing cancels."""
    builder = ModelBuilder("level_arm")
    parent = "world"
    for k in range(3):
        placement = (
            Placement.from_rpy((0, 0, 0.3 * k), translation=(0.5, 0.1, 0))
            if k
            else Placement.from_rpy((0.3, 0.7, 0.2))
        )
        builder.body(
            f"link{k}",
            Inertia.rod(1.0 + k, (0, 0, 0), (0.5, 0.1, 0)),
            joint=Revolute((0, 0, 1)),
            parent=parent,
            placement=placement,
            friction=Friction((damping,)) if damping else None,
        )
        parent = f"link{k}"
    model = builder.build()
    up = model.frame_pose(model.neutral(), "link0").rotation[:, 2]
    return model.replace(gravity=tuple(-G * up))


def pendulum_and_spring(stiffness, *, damping=0.0):
    """Side by side on one cart, so that they feel each other."""
    friction = Friction((damping,)) if damping else None
    builder = ModelBuilder("beside")
    builder.body(
        "cart",
        Inertia.point(1.0, (0, 0, 0)),
        joint=Prismatic((1, 0, 0)),
        spring=Spring((stiffness,)),
        friction=friction,
    )
    bob = Inertia.point(1.0, (0, 0, -1))
    builder.body("bob", bob, joint=Revolute((0, 1, 0)), parent="cart", friction=friction)
    return builder.build()


def test_weights_in_balance_have_no_stiffness():
    """Their rounding, some 1e-14, looked like slow growing and dying motions, and the equilibrium unstable."""
    model = level_arm()
    linear = al.linearize(model, [0.3, 0.4, -0.2])
    assert 0 < np.abs(linear.A[3:, :3]).max() < 1e-12
    assert [mode.kind for mode in linear.modes()] == 3 * ["rigid"]
    assert al.trim(model, q=[0.3, 0.4, -0.2]).stability == "marginal"
    damped = al.linearize(level_arm(damping=0.1), [0.3, 0.4, -0.2]).modes()
    assert [mode.kind for mode in damped] == 3 * ["rigid"] + 3 * ["real"]
    assert all(mode.stable for mode in damped.modes[3:])


@pytest.mark.parametrize("stiffness", [1e4, 1e10, 1e14])
@pytest.mark.parametrize("damping", [0.0, 0.01])
def test_slow_modes_beside_stiff_springs(stiffness, damping):
    """The cart hardly moves, by g m / k: omega^2 = g/l (1 + m g / (k l) + ...)."""
    modes = al.linearize(pendulum_and_spring(stiffness, damping=damping), np.zeros(2)).modes()
    assert [mode.kind for mode in modes] == ["oscillation", "oscillation"]
    rounding = (
        1e-16 * stiffness / G if damping else 1e-12
    )  # of the eigenvalues of A; Rayleigh's quotient has none
    assert modes[0].frequency == pytest.approx(np.sqrt(G), rel=2 * G / stiffness + rounding)
    # (m1 + m2) x'' + m2 l phi'' = -k x, m2 x'' + m2 l phi'' = -m2 g phi: fast, the bob stays behind
    assert modes[1].frequency == pytest.approx(np.sqrt(stiffness), rel=2 * G / stiffness + 1e-6)


def test_slow_instability_beside_a_stiff_spring():
    model = pendulum_and_spring(1e12, damping=100.0)
    assert al.trim(model, q=[0.0, np.pi]).stability == "unstable"
    assert al.trim(model).stability == "stable"
    assert al.trim(pendulum_and_spring(1e12)).stability == "marginal"


def test_masses_that_float_together():
    """Two stiffly tied pairs with a soft spring between them: one rigid mode, one slow and two fast ones."""
    builder = ModelBuilder("pairs", gravity=(0, 0, 0))
    parent = "world"
    for k, stiffness in enumerate((0.0, 1e8, 2.0, 1e8)):
        builder.body(
            f"m{k}",
            Inertia.point(1.0, (0, 0, 0)),
            joint=Prismatic((1, 0, 0)),
            parent=parent,
            spring=Spring((stiffness,)) if stiffness else None,
        )
        parent = f"m{k}"
    modes = al.linearize(builder.build(), np.zeros(4)).modes()
    assert [mode.kind for mode in modes] == ["rigid"] + 3 * ["oscillation"]
    # pairs of 2 kg on a spring of 2 N/m; the small parts that the fast springs give are 1e-8 of it
    assert modes[1].frequency == pytest.approx(np.sqrt(2.0), rel=1e-7)


def test_a_spinning_body_has_three_poles_that_precess():
    """About its axis of symmetry: nutation at (1 - C/A) w in body axes, everything else stays or drifts."""
    builder = ModelBuilder("top", gravity=(0, 0, 0))
    builder.body("body", Inertia(2.0, (0, 0, 0), (1.0, 0.0, 1.0, 0.0, 0.0, 1.5)), joint=al.Spherical())
    model = builder.build()
    w = 3.0
    modes = al.linearize(model, model.neutral(), [0, 0, w]).modes()
    kinds = [mode.kind for mode in modes]
    assert kinds == ["rigid"] + 2 * ["oscillation"]
    np.testing.assert_allclose(modes.frequencies[1:], [0.5 * w, w], rtol=1e-12)


def test_a_humanoid_in_the_air_has_damped_joints_and_nothing_else():
    """Six speeds of the base have no damping; in free fall its attitude moves it sideways, which is a chain of zeros."""
    model = al.library.humanoid()
    for gravity, rigid in (((0, 0, 0), 37), (model.gravity, 35)):
        modes = al.linearize(model.replace(gravity=gravity), model.neutral()).modes()
        kinds = [mode.kind for mode in modes]
        assert (kinds.count("rigid"), kinds.count("real"), len(kinds)) == (rigid, 31, rigid + 31)
