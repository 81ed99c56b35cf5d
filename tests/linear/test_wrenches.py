"""Forces on bodies in equilibria and linear models: as constants, as unknowns and as inputs."""

import numpy as np
import pytest
from linear_helpers import close, differentiated, state, tree

from alembert import Inertia, ModelBuilder
from alembert.errors import NumericalError
from alembert.joints import Free, Revolute
from alembert.linear import linearize, lqr, trim
from alembert.simulate import simulate
from alembert.verify.mechanisms import four_bars, parallelogram
from refusals import refusal

G = 9.81


def craft():
    """A body with two thrusters off its centre; no gravity."""
    builder = ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hull", Inertia.box(50.0, (1.0, 0.8, 0.6)), joint=Free(), joint_name="hull")
    for name, place in (("left", (-0.5, 0.3, 0.0)), ("right", (-0.5, -0.3, 0.0))):
        builder.frame(name, "hull", place)
    return builder.build()


@pytest.mark.parametrize("group", ["0", "1"])
def test_matrices_under_wrenches_against_differences(group):
    model = tree(group)
    q, v, tau = state(model)
    n = model.nv
    rng = np.random.default_rng(5)
    first, last = model.bodies[0].name, model.bodies[-1].name
    given = {first: rng.normal(size=6), last: 3 * rng.normal(size=6)}
    linear = linearize(
        model, q, v, tau, wrenches=given, inputs=["tau:" + model.joints[0].name, f"wrench:{last}"]
    )

    def a(e=0.0, dv=0.0, F=0.0):
        return model.forward_dynamics(
            model.integrate(q, np.zeros(n) + e), v + dv, tau, wrenches=given | {last: given[last] + F}
        )

    close(linear.a, a())
    close(linear.A[n:, :n], differentiated(lambda e: a(e=e), n))
    close(linear.A[n:, n:], differentiated(lambda e: a(dv=e), n))
    close(linear.B[n:, -6:], differentiated(lambda e: a(F=e), 6))
    assert linear.input_names[-6:] == tuple(f"{last}.{x}" for x in ("mx", "my", "mz", "fx", "fy", "fz"))
    assert linear.input_units[-6:] == ("N m",) * 3 + ("N",) * 3
    np.testing.assert_array_equal(linear.wrenches[last], given[last])
    one = linearize(model, q, v, tau, wrenches=given, inputs=f"wrench:{last}.fy")
    np.testing.assert_allclose(one.B[:, 0], linear.B[:, -2], atol=1e-12)
    batch = linearize(model, np.stack([q, q]), v, tau, wrenches={last: np.stack([given[last], np.zeros(6)])})
    np.testing.assert_array_equal(batch[0].wrenches[last], given[last])
    close(batch[1].a, model.forward_dynamics(q, v, tau))


def test_a_four_bar_under_a_load():
    """One independent state and its speed; the load rides on the beam, the first post's foot holds it."""
    model = four_bars(1)
    load = {"end0": np.array([0.0, 0.0, 0.0, 1.0, -2.0, 0.0])}
    guess, _ = parallelogram(model, 0.4, 0.0)
    found = trim(model, q=guess, fixed={"foot0": 0.4}, free=["q", "tau:foot0"], wrenches=load)
    # the beam stays level: virtual work of the force and of two posts and a beam of 1 kg, for a turn to the left
    force = load["end0"]
    moment = np.cos(0.4) * force[3] + np.sin(0.4) * (force[4] - G * (0.5 + 0.5 + 1.0))
    np.testing.assert_allclose(found.tau, [moment, 0.0, 0.0], atol=1e-8)
    assert found.linearize().remark == ""
    linear = found.linearize(inputs=["tau:foot0", "wrench:end0.fx"])
    (i,) = linear.rates

    def a(e=0.0, push=0.0):  # along the loop: the dependent joints are assembled again
        q = model.assemble(model.integrate(found.q, e * np.eye(3)[i]), fixed=[model.speed_names[i]]).q
        wrench = {"end0": force + push * np.eye(6)[3]}
        return model.forward_dynamics(q, found.v, found.tau, wrenches=wrench)[[i]]

    close(linear.A[1, 0], differentiated(lambda e: a(e=e[0]), 1)[0, 0])
    close(linear.B[1, 1], differentiated(lambda e: a(push=e[0]), 1)[0, 0])
    text = refusal(trim, model, q=guess, fixed={"foot0": 0.4}, error=NumericalError)
    assert text.endswith(
        "what is fixed may take an effort to hold, free=['q', 'actuators'] or ['q', 'tau:JOINT']"
    )
    free = trim(model, q=guess, fixed={"foot0": 0.4}, free=["q", "wrench:end0.fx"])
    assert free.wrenches["end0"][3] == pytest.approx(np.tan(0.4) * 2 * G)


def test_a_pendulum_under_a_horizontal_force():
    """Force fixed in the bob's frame, at right angles to the rod: it holds m g sin(angle)."""
    builder = ModelBuilder("bob")
    builder.body(
        "bob", Inertia.point(2.0, (0, 0, -1.0)), joint=Revolute((0.0, -1.0, 0.0)), joint_name="pivot"
    )
    model = builder.frame("tip", "bob", (0, 0, -1.0)).build()
    push = {"tip": [0, 0, 0, 5.0, 0, 0]}
    found = trim(model, wrenches=push)
    assert np.sin(found.q[0]) == pytest.approx(5.0 / (2 * G), rel=1e-12)
    assert "wrench:tip.fx" in str(found)
    assert found.linearize().remark == ""
    held = trim(model, fixed={"pivot": 0.4}, free=["wrench:tip.fx"])
    assert held.wrenches["tip"][3] == pytest.approx(2 * G * np.sin(0.4), rel=1e-12)
    assert held.free == ("wrench:tip.fx",)
    np.testing.assert_array_equal(np.delete(held.wrenches["tip"], 3), 0)


def test_a_base_that_nothing_carries():
    builder = ModelBuilder("stool")
    builder.body("stool", Inertia.box(10.0, (1.0, 1.0, 1.0)), joint=Free(), joint_name="base")
    assert refusal(trim, builder.build(), error=NumericalError) == (
        "trim: no equilibrium found: joint 'base.vz' lacks 98.1 N at the best point, with q:base.wx, q:base.wy, q:base.wz, "
        "q:base.vx, q:base.vy, q:base.vz free; nothing carries the base: free forces on it as well, such as 'wrench:FOOT' "
        "for a frame FOOT"
    )


def test_ground_carries_a_standing_body():
    """Efforts and forces at two feet: equilibrium of a free body, nearest to no force at all: equal shares."""
    builder = ModelBuilder("stool")
    builder.body("stool", Inertia.box(10.0, (1.0, 1.0, 1.0)), joint=Free(), joint_name="base")
    for name, x in (("left", -0.5), ("right", 0.5)):
        builder.frame(name, "stool", (x, 0.0, -0.5))
    model = builder.build()
    found = trim(model, fixed={"q": model.neutral()}, free=["wrench:left.fz", "wrench:right.fz"])
    for name in ("left", "right"):
        np.testing.assert_allclose(found.wrenches[name], [0, 0, 0, 0, 0, 5 * G], atol=1e-9)
    whole = trim(model, fixed={"q": model.neutral()}, free=["wrench:left", "wrench:right"])
    assert np.abs(whole.residual).max() < 1e-9
    text = refusal(trim, model, fixed={"q": model.neutral()}, free=["wrench:left.fz"], error=NumericalError)
    assert "with wrench:left.fz free" in text


def test_thrusters_hold_a_craft():
    """Two thrusters with two axes each reach six states in a plane; the regulator's efforts are their wrenches'."""
    model = craft()
    inputs = ["wrench:left.fx", "wrench:left.fy", "wrench:right.fx"]
    whole = linearize(model, model.neutral(), inputs=inputs)
    plane = whole.reduced(["hull.wz", "hull.vx", "hull.vy"])
    regulator = lqr(plane, 1.0, 0.01)
    assert regulator.poles().real.max() < 0
    q = model.integrate(model.neutral(), [0, 0, 0.3, 0.2, -0.1, 0])
    v = np.array([0, 0, 0.02, 0.1, 0.0, 0])
    u = regulator.inputs(q, v)
    left, right = np.array([0, 0, 0, u[0], u[1], 0]), np.array([0, 0, 0, u[2], 0, 0])
    np.testing.assert_allclose(
        model.forward_dynamics(q, v, regulator.efforts(q, v)),
        model.forward_dynamics(q, v, np.zeros(6), wrenches={"left": left, "right": right}),
        atol=1e-12,
    )
    run = simulate(model, q, v, duration=60.0, step=0.05, controller=regulator)
    assert np.abs(model.difference(model.neutral(), run.q[-1])).max() < 1e-4
    assert whole.reduced(inputs="right.fx").wrench_inputs == ((0, "right", 3),)


def test_refusals():
    model = craft()
    q = model.neutral()
    assert (
        refusal(linearize, model, q, inputs=["wrench:lef"])
        == "linearize: inputs: no frame 'lef'; did you mean 'left'?"
    )
    assert refusal(linearize, model, q, inputs=["wrench:left.fw"]).startswith(
        "linearize: inputs: no frame 'left.fw'"
    )
    assert refusal(linearize, model, q, wrenches={"left": [1.0, 2.0]}) == (
        "linearize: wrench on 'left' has shape (2,), expected (..., 6): moment, then force"
    )
    assert refusal(trim, model, wrenches={"left": np.zeros((2, 6))}) == (
        "trim: wrench on 'left' has shape (2, 6), expected (6,): moment, then force"
    )
    assert refusal(trim, model, wrenches={"nose": np.zeros(6)}).startswith("trim: wrenches: no frame 'nose'")
    assert refusal(trim, model, wrenches=3.0) == (
        "trim: wrenches is 3.0, expected a mapping from names to arrays"
    )
    assert refusal(linearize, model, q, inputs=["wrench:world"]).startswith("linearize: ")
    assert refusal(trim, model, fixed={"wrench:left": 1.0}).startswith(
        "trim: fixed: no joint, degree of freedom or"
    )
