"""One page about a controller: what it says against what is known otherwise."""

import dataclasses

import numpy as np
import pytest

import alembert as al
from alembert import control
from alembert.linear import decoupled_pd
from alembert.simulate import DynamicController
from alembert.study.certification import _settles


@pytest.fixture(scope="module")
def masses():
    """Two carts with a spring of unknown stiffness: the LQG of `control.lqg` is stable for 0.942 < k < 1.345."""
    builder = al.ModelBuilder("masses", gravity=(0, 0, 0))
    k = builder.parameter("stiffness", 1.0)
    slide = al.Prismatic((1, 0, 0))
    builder.body("first", al.Inertia.point(1.0), joint=slide, joint_name="a")
    builder.body(
        "second", al.Inertia.point(1.0), joint=slide, joint_name="b", parent="first", spring=al.Spring((k,))
    )
    builder.frame("end", "second")
    return builder.build()


@pytest.fixture(scope="module")
def law(masses):
    """The force on the first, the place of the second measured."""
    linear = al.linearize(masses, [0.0, 0.0], inputs=["a"], outputs=["frame:end.position"])
    plant = linear.to_statespace()["end.position.x", :]
    T = np.array(
        [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1.0]]
    )  # places from relative coordinates
    through = np.linalg.solve(T, np.array([[0.0], [0], [0], [1]]))
    design = control.lqg(plant, T.T @ np.diag([0.0, 1, 0, 0]) @ T, 0.1, 1.0, 0.01, through=through)
    return DynamicController(design.controller, about=linear)


def test_what_breaks_first_is_the_published_interval(masses, law, tmp_path):
    """Stable exactly for 0.9421823041 < k < 1.3452287536; the ranges of mu end at the nearer of the two."""
    found = al.certify(masses, law, {"stiffness": (0.96, 1.04)}, members=8, duration=20.0, tolerance=0.02)
    (alone,) = found.alone
    assert alone.low == pytest.approx(0.9421823041, abs=1e-6)
    assert np.isinf(alone.high) or alone.high == pytest.approx(1.3452287536, abs=1e-6)
    assert found.worst_decay < 0
    assert found.mu is not None
    reach = (1.0 - 0.9421823041) / 0.04
    assert 1 / found.mu.upper < reach * (1 + 1e-9)  # what is proven is true
    assert 1 / found.mu.upper > 0.9 * reach  # and not much less
    assert found.holds
    page = found.save(tmp_path / "loop.html").read_text()
    for text in ("What holds", "What breaks first", "stiffness", "data:image/png"):
        assert text in page
    with pytest.raises(al.ArgumentError, match=r"ends with '.txt', expected .html"):
        found.save(tmp_path / "loop.txt")
    with pytest.raises(al.ArgumentError, match=r"kind is 'bode'"):
        found.plot("bode")
    # a peak that a logarithmic axis does not reach points out of the picture
    for frequency, marker, side in ((0.0, "<", "left"), (np.inf, ">", "right"), (1.0, "o", "")):
        moved = dataclasses.replace(found, mu=dataclasses.replace(found.mu, frequency=frequency))
        peak = moved.plot("mu").axes[0].lines[-1]
        assert peak.get_marker() == marker
        assert str(peak.get_label()).endswith(f"far to the {side}" if side else "rad/s")


def test_a_loop_that_does_not_hold(masses, law):
    found = al.certify(masses, law, {"stiffness": (0.8, 1.2)}, members=6, duration=60.0)
    assert not found.ok
    assert found.worst_decay > 0
    assert found.worst["stiffness"] < 0.9421823041
    assert any("Within the ranges the loop is unstable" in text for text in found.breaks)
    assert "does not hold" in str(found)
    assert found.mu is not None
    assert found.mu.upper > 0.2 / (1 - 0.9421823041)  # what is proven is no more than what holds


def _arm(payload=2.0, friction=0.0):
    builder = al.ModelBuilder("arm")
    p, c = builder.parameter("payload", payload), builder.parameter("friction", friction)
    builder.body(
        "arm", al.Inertia.point(p, (1.0, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name="hinge",
        friction=al.Friction(viscous=(c,)),
    )  # fmt: skip
    builder.frame("tip", "arm", (1.0, 0, 0))
    return builder.build()


def test_a_weight_that_the_design_did_not_have():
    """Gains for 1 kg with 2 to 4 kg: the point is held by the weight that there is, and what is asked for is told of it."""
    model = _arm()
    light = {"payload": 1.0}
    linear = al.linearize(
        model, [0.3], None, model.gravity_forces([0.3], parameters=light), outputs=["q", "v"],
        parameter_values=light,
    )  # fmt: skip
    law = decoupled_pd(linear, 6.0, 1.0)
    options = {"members": 5, "duration": 10.0, "progress": False}
    each = al.certify(model, law, {"payload": (2, 4)}, holding="each", **options)
    assert each.ok
    np.testing.assert_allclose(each.family.nominal.a, 0.0, atol=1e-12)
    assert each.deviations[:, -1].max() < 1e-6  # exp(-10 x 2/s) of 0.01, and less
    means = al.certify(model, law, {"payload": (2, 4)}, **options)
    g = al.linearize(model, [0.3]).model.gravity_forces([0.3], parameters={"payload": 1.0})[0]
    k = law.K[0, 0]
    for values, q in zip(means.values, means.runs.q[:, -1, 0], strict=True):
        # where gains, the weight and the effort that holds 3 kg balance; the horizontal arm is cos(q) long
        left = values["payload"] * g * np.cos(q) / np.cos(0.3) - 3.0 * g + k * (q - 0.3)
        assert abs(left) < 1e-4 * abs(g)  # a motion that ends after 10 s
    rough = al.linearize(model, [0.3], None, linear.tau, parameter_values={"friction": 0.5})
    with pytest.raises(al.ArgumentError, match=r"about friction = 0\.5, the model has 0; give a model with"):
        al.certify(model, decoupled_pd(rough, 6.0, 1.0), {"payload": (2, 4)})
    pushed = al.linearize(model, [0.3], None, linear.tau, wrenches={"tip": [0, 0, 0, 0, 0, 1.0]})
    with pytest.raises(al.UnsupportedError, match=r"has wrenches on tip, which would be missing"):
        al.certify(model, decoupled_pd(pushed, 6.0, 1.0), {"payload": (2, 4)})


def test_the_efforts_of_the_point_go_through_uncertain_gears():
    """Each member is held: what a gear of 2 or 4 instead of 3 makes of the efforts of the point is made up for."""
    builder = al.ModelBuilder("geared")
    gear = builder.parameter("gear", 3.0)
    builder.body("arm", al.Inertia.point(2.0, (1.0, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name="hinge")
    builder.actuator("motor", "hinge", gear=gear)
    model = builder.build()
    law = al.linear.lqr(
        al.linearize(model, [0.3], None, model.gravity_forces([0.3]), outputs=["q", "v"]),
        np.diag([100.0, 10]),
    )
    found = al.certify(model, law, {"gear": (2, 4)}, holding="each", members=5, duration=8.0, progress=False)
    assert found.ok
    assert found.deviations[:, -1].max() < 1e-5  # exp(-8 x 1/s) of 0.01


def test_a_regulator_and_a_weight_that_it_does_not_know():
    """Gains of state feedback: stable for every payload, but the point is held only where the weight is known."""
    builder = al.ModelBuilder("arm")
    payload = builder.parameter("payload", 2.0)
    builder.body(
        "arm", al.Inertia.point(payload, (1.0, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name="hinge"
    )
    model = builder.build()
    linear = al.linearize(model, [0.3], None, model.gravity_forces([0.3]), outputs=["q", "v"])
    regulator = decoupled_pd(linear, 6.0, 1.0)
    options = {"members": 5, "duration": 4.0}
    each = al.certify(model, regulator, {"payload": (1, 3)}, holding="each", **options)
    means = al.certify(model, regulator, {"payload": (1, 3)}, **options)
    assert each.ok
    assert each.deviations[:, -1].max() < 1e-6
    assert not any("they are short" in text for text in each.holds)
    brief = al.certify(model, regulator, {"payload": (1, 3)}, holding="each", members=2, duration=0.4)
    assert any(
        f"come to rest; they are short: {brief.runs.time[-1]:.3g} s, where" in text for text in brief.holds
    )
    hasty = al.certify(model, regulator, {"payload": (1, 3)}, holding="each", members=2, duration=0.1)
    assert any("not come to rest" in text and "they are short" in text for text in hasty.breaks)
    assert means.deviations[:, -1].max() > 0.05  # 1 kg more or less at 1 m against some 70 N m/rad


def test_a_sampled_controller(masses, law):
    linear = law.about
    K = control.c2d(law.law, 0.02, method="tustin")
    found = al.certify(
        masses, DynamicController(K, about=linear), {"stiffness": (0.98, 1.02)}, members=5, duration=20.0
    )
    assert found.alone[0].low == pytest.approx(0.942, abs=0.03)  # the delay costs a little
    assert found.nominal_decay < 0


def test_what_is_refused(masses, law):
    with pytest.raises(al.ArgumentError, match=r"certify: controller is 3, expected a StateSpace"):
        al.certify(masses, 3, {"stiffness": (1, 2)})
    with pytest.raises(al.ArgumentError, match=r"the point is not known: give q="):
        al.certify(masses, law.law, {"stiffness": (1, 2)})
    with pytest.raises(al.ArgumentError, match=r"holding is 'never', expected 'means' or 'each'"):
        al.certify(masses, law, {"stiffness": (1, 2)}, holding="never")
    with pytest.raises(al.ArgumentError, match=r"certify: model is of type StateSpace, expected a Model"):
        al.certify(law.law, law, {"stiffness": (1, 2)})
    with pytest.raises(al.ArgumentError, match=r"certify: uncertain is empty, expected parameters"):
        al.certify(masses, law, None)
    for given, sentence in (
        ({"tolerance": 0.0}, r"certify: tolerance is 0.0, expected a positive number"),
        ({"members": 0}, r"certify: members is 0, expected a whole number"),
        ({"seed": -1}, r"certify: seed is -1, expected a whole number of zero or more"),
        ({"duration": -1.0}, r"certify: duration is -1.0, expected a positive number"),
        ({"disturbance": [1.0, 2, 3]}, r"certify: disturbance is \[1.0, 2, 3\], expected a number or"),
    ):
        with pytest.raises(al.ArgumentError, match=sentence):
            al.certify(masses, law, {"stiffness": (1, 2)}, **given)
    design = control.lqr(law.about, 1.0)
    with pytest.raises(
        al.ArgumentError,
        match=r"is of type StateFeedback, .*; the controller of this StateFeedback is its .controller",
    ):
        al.certify(masses, design, {"stiffness": (1, 2)})


def test_a_free_flying_vehicle_with_a_closed_loop():
    """Wheels turn a hub that carries a four-bar linkage with a dish: place and turns of the wheels are left out of what has
    to settle, the transformation is exact although the masses act through the loop."""
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    dish = builder.parameter("dish", 8.0)
    builder.body("hub", al.Inertia.box(60.0, (1.0, 1.0, 1.0)), joint=al.Planar(), joint_name="flight")
    hinge = al.Revolute((0, 0, 1))
    builder.body("wheel", al.Inertia.box(2.0, (0.3, 0.3, 0.1)), joint=hinge, parent="hub")
    spring = {"spring": al.Spring((200.0,)), "friction": al.Friction((20.0,))}
    rod = al.Inertia.rod
    builder.body(
        "crank", rod(1.0, (0, 0, 0), (0, 0.3, 0)), joint=hinge, parent="hub", placement=(0.5, 0, 0), **spring
    )
    builder.body("rod", rod(1.0, (0, 0, 0), (0.6, 0, 0)), joint=hinge, parent="crank", placement=(0, 0.3, 0))
    builder.body("arm", rod(dish, (0, 0, 0), (0, 0.6, 0)), joint=hinge, parent="hub", placement=(1.1, 0, 0))
    builder.frame("rod_end", "rod", (0.6, 0, 0)).frame("pin", "arm", (0, 0.3, 0))
    builder.loop("closure", hinge, "rod_end", "pin")
    model = builder.build()
    yaw = ["q:flight.angle", "v:flight.angle"]
    linear = al.linearize(model, model.neutral(), inputs=["wheel_joint"], outputs=yaw)
    K = control.static([[6.0, 14.0]]).renamed(inputs=yaw, outputs=["wheel_joint"])
    found = al.certify(
        model, DynamicController(K, about=linear), {"dish": (6.0, 10.0)}, members=5, duration=40.0, step=0.02
    )
    assert found.family.certificate.exact
    assert found.ok
    assert {"q:wheel_joint", "v:wheel_joint", "q:flight.x", "v:flight.y"} <= set(found.left_out)
    assert not {*yaw, "q:crank_joint"} & set(found.left_out)
    assert "left out: " in str(found)


def test_what_is_not_seen_may_not_fall():
    """A cart that is held, next to a pole that stands on its tip and that nobody looks at."""
    builder = al.ModelBuilder("two")
    mass = builder.parameter("mass", 2.0)
    builder.body("cart", al.Inertia.point(mass), joint=al.Prismatic((1, 0, 0)), joint_name="x")
    pole = al.Inertia.rod(1.0, (0, 0, 0), (0, 0, 1.0))
    builder.body("pole", pole, joint=al.Revolute((0, 1, 0)), joint_name="swing")
    model = builder.build()
    K = control.static([[-4.0, -4.0]]).renamed(inputs=["q:x", "v:x"], outputs=["x"])
    found = al.certify(model, K, {"mass": (1.5, 2.5)}, q=model.neutral(), members=4, disturbance=1e-3)
    assert found.mu.upper < 1
    assert all(found.held)
    assert found.left_out_growth == pytest.approx(np.sqrt(1.5 * 9.81), rel=1e-4)  # of a rod, 3 g/2 l
    assert not found.ok
    assert "does not see is unstable by itself: q:swing, v:swing grow with up to 3.836/s" in str(found)


def test_a_motion_that_drifts_or_grows_has_not_settled():
    """Both are further from where they end at first than at last, but do not slow down."""
    t = np.linspace(0, 1, 201)[:, None]
    for settles, moved in (
        (True, np.exp(-8 * t)),
        (True, 1 + np.exp(-4 * t) * np.cos(30 * t)),
        (True, 0 * t),
        (False, t),
        (False, np.exp(t)),
        (False, np.cos(30 * t)),
        (False, np.where(t > 0.9, np.nan, t)),
    ):
        assert _settles(moved) is settles


def test_the_picture_of_mu_shows_the_bounds_of_the_parameters_as_they_are():
    """Bounds for complex parameters of a lightly damped mode are far above; they do not squash the others."""
    builder = al.ModelBuilder("sat", gravity=(0, 0, 0))
    stiffness = builder.parameter("EI", 100.0)
    builder.body("hub", al.Inertia.box(50.0, (1, 1, 1)), joint=al.Revolute(), joint_name="yaw")
    beam = al.flexible.beam(3.0, 0.5, EI_z=stiffness, bending_y=1, damping_ratio=0.01)
    builder.body("boom", beam, joint=al.Fixed(), parent="hub", placement=(0.5, 0, 0))
    model = builder.build()
    linear = al.linearize(model, model.neutral(), inputs=["yaw"], outputs=["q:yaw"])
    K = al.control.lqg(linear.to_statespace(), [10, 0, 0, 0], 1.0, 1.0, 1e-4).controller
    law = DynamicController(K, about=linear)
    found = al.certify(model, law, {"EI": (80, 120)}, members=2, duration=1.0)
    axis = found.plot("mu").axes[0]
    upper = next(line for line in axis.get_lines() if line.get_label() == "upper bound")
    assert found.mu.frequency in upper.get_xdata()
    assert upper.get_ydata().max() < axis.get_ylim()[1] <= 3.2 * max(1.0, found.mu.upper)
