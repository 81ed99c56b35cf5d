"""Force elements on the nodes of flexible bodies: gradients of potentials, power, and fields summed over point masses."""

import re
import warnings

import numpy as np
import pytest
from particles import rigid_points

import alembert as al
from alembert.flexible import beam
from alembert.simulate import (
    Bushing,
    CentralGravity,
    Drag,
    Forces,
    GravityGradient,
    Measured,
    SpringDamper,
)
from alembert.verify.random_models import random_modal_body as random_body


@pytest.fixture(scope="module")
def chain():
    rng = np.random.default_rng(0)
    builder = al.ModelBuilder("chain", gravity=(0, 0, 0))
    points = {}
    base, points["base"] = rigid_points(rng)
    one, points["one"] = random_body(rng, 4, 2)
    two, points["two"] = random_body(rng, 4, 3)
    builder.body("base", base, joint=al.Free(), joint_name="float")
    builder.body("one", one, joint=al.Fixed(), parent="base", placement=(0.1, 0.2, -0.3))
    builder.body("two", two, joint=al.Revolute((0, 1, 0)), joint_name="pin", parent="one", node="p1")
    for body in ("one", "two"):
        for k in range(4):
            builder.frame(f"{body}{k}", body, node=f"p{k}")
    for k, x in enumerate(points["base"][1]):
        builder.frame(f"base{k}", "base", x)
    model = builder.build()
    q, v = model.random_configuration(rng), rng.normal(size=model.nv)
    for owner in model.space.of_bodies.values():
        q[owner.q] *= 0.5
    return model, points, q, v


def slope(model, U, q):
    """dU/dq by differences: h^2 and rounding / h."""
    h, found = 1e-5, np.zeros(model.nv)
    for k in range(model.nv):
        e = np.zeros(model.nv)
        e[k] = h
        found[k] = (U(model.integrate(q, e)) - U(model.integrate(q, -e))) / (2 * h)
    return found


def test_springs_and_bushings_between_deformed_nodes(chain):
    model, _, q, v = chain
    springs = Forces(
        model,
        [
            SpringDamper("one0", "two3", stiffness=30.0, length=0.2),
            Bushing("one2", "base", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
        ],
    )
    efforts = springs.efforts(q)
    np.testing.assert_allclose(
        efforts, -slope(model, springs.potential, q), atol=1e-6 * np.abs(efforts).max()
    )
    damper = Forces(model, [SpringDamper("one0", "two3", damping=2.0)])
    ends = [model.frame_velocity(q, v, x, reference="local_world_aligned")[3:] for x in ("one0", "two3")]
    r = model.frame_pose(q, "two3").translation - model.frame_pose(q, "one0").translation
    rate = (ends[1] - ends[0]) @ r / np.linalg.norm(r)
    assert damper.efforts(q, v) @ v == pytest.approx(-2.0 * rate**2, rel=1e-12)


def test_drag_at_a_deformed_node(chain):
    model, _, q, v = chain
    drag = Forces(model, [Drag("two2", coefficient=1.1, area=0.3)])
    u = model.frame_velocity(q, v, "two2", reference="local_world_aligned")[3:]
    F = -0.5 * 1.225 * 1.1 * 0.3 * np.linalg.norm(u) * u
    J = model.frame_jacobian(q, "two2", reference="local_world_aligned")[3:]
    np.testing.assert_allclose(drag.efforts(q, v), J.T @ F, atol=1e-12 * np.linalg.norm(F) * np.abs(J).max())


def test_fields_of_gravity_are_sums_over_the_points(chain):
    """Exactly where the field is linear; of a centre far away but for what is smaller by (size / distance)^2."""
    model, points, q, _ = chain
    place = lambda q: [  # noqa: E731
        (m[k], model.frame_pose(q, f"{body}{k}").translation)
        for body, (m, _, _) in points.items()
        for k in range(len(m))
    ]
    orbit = GravityGradient(0.7, radial=(0, 1, 0))
    linear = Forces(model, [orbit])
    u = np.array([0.0, 1.0, 0.0])
    U = lambda q: 0.7**2 / 2 * sum(m * (x @ x - 3 * (u @ x) ** 2) for m, x in place(q))  # noqa: E731
    expected = -slope(model, U, q)
    np.testing.assert_allclose(linear.efforts(q), expected, atol=1e-6 * np.abs(expected).max())
    center, mu = np.array([300.0, -200.0, 100.0]), 1e6
    central = Forces(model, [CentralGravity(mu, tuple(center))])
    U = lambda q: -sum(mu * m / np.linalg.norm(x - center) for m, x in place(q))  # noqa: E731
    assert central.potential(q) == pytest.approx(U(q), rel=1e-6)
    expected = -slope(model, U, q)
    # the field changes by (4/370)^2 over the bodies, beyond its gradient
    np.testing.assert_allclose(central.efforts(q), expected, atol=1.2e-4 * np.abs(expected).max())


def test_an_accelerometer_at_the_tip():
    """At rest it feels the weight, in axes that turn with the tip."""
    builder = al.ModelBuilder("cantilever", gravity=(0, -9.81, 0))
    builder.body("beam", beam(1.0, 0.1, EI_z=1.0, bending_y=2), joint=al.Fixed())
    builder.frame("tip", "beam", node="tip")
    builder.sensor("imu", "accelerometer", "tip")
    model = builder.build()
    rest = al.trim(model)
    run = al.simulate(model, rest.q, duration=0.1, sensors=[Measured("imu", period=0.05)])
    felt = run.measurements["imu"].values[-1]
    turned = model.frame_pose(rest.q, "tip").rotation
    np.testing.assert_allclose(felt, turned.T @ [0, 9.81, 0], atol=1e-6)
    assert felt[0] == pytest.approx(-1.4, abs=0.3)  # the tip slopes by PL^3/6EI = 0.16 downwards


def test_damping_of_modes_counts_in_every_scheme():
    """What damping takes is work: energy and work balance, and the variational scheme is damped as the others are."""
    builder = al.ModelBuilder("cantilever", gravity=(0, 0, 0))
    body = beam(
        1.0, 1.0, EI_z=1.0, EI_y=1.2, bending_y=2, bending_z=1, damping_ratio=0.05, damping=(0.1, 1e-4)
    )
    builder.body("beam", body, joint=al.Fixed())
    model = builder.build()
    start = np.array([0.05, 0.01, 0.02])
    exact = al.simulate(model, start, duration=1.0, interval=0.05)
    assert exact.energy[-1] < 0.8 * exact.energy[0]
    np.testing.assert_allclose(exact.energy - exact.energy[0], exact.work, atol=1e-6 * exact.energy[0])
    stepped = al.simulate(model, start, duration=1.0, step=1e-3, interval=0.05, integrator="variational")
    # second order: (h omega)^2 / 24 of a phase of 22 rad
    np.testing.assert_allclose(stepped.q, exact.q, atol=1e-3 * np.abs(start).max())


def test_runs_say_where_deflections_are_not_small():
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    builder.body("arm", beam(1.0, 1.0, EI_z=1.0, bending_y=1), joint=al.Revolute((0, 0, 1)), joint_name="pin")
    model = builder.build()
    with pytest.warns(
        al.AlembertWarning, match=r"'arm' is displaced by up to 0.4 m, which is 0.4 of its extent; modes"
    ):
        al.simulate(model, [0.0, 0.4], duration=0.01, step=1e-3)
    batch = np.array([[0.0, 0.01], [0.0, 0.02]])
    assert al.simulate(model, batch, duration=0.01, step=1e-3).q.shape == (2, 11, 2)


@pytest.fixture(scope="module")
def overbent():
    """A boom that slides, its fourth shape bent so far that displacements of second order make inertia negative."""
    builder = al.ModelBuilder("boom", gravity=(0, 0, 0))
    builder.body(
        "boom", beam(1.0, 1.0, EI_z=1.0, bending_y=4), joint=al.Prismatic((1, 0, 0)), joint_name="slide"
    )
    model = builder.build()
    q = model.neutral()
    q[model.space.of_bodies["boom"].q] = [0.01, 0.0, 0.0, 0.05]
    return model, q, np.zeros(model.nv)


FAR = (
    r"body 'boom' is deflected too far for its modes \(boom.bending_y_4 = 0.05\): .* negative \(-.* segments"
)


def test_a_mass_matrix_that_deflection_makes_indefinite_is_told(overbent):
    """Never finite numbers from negative inertias; a batch tells the states, and a body at rest works."""
    model, q, v = overbent
    assert np.linalg.eigvalsh(model.mass_matrix(q))[0] < 0
    for call in (
        lambda: model.forward_dynamics(q, v, v),
        lambda: model.inverse_mass_matrix(q),
        lambda: model.hybrid_dynamics(q, v, accelerations={"boom.bending_y_1": 0.0}),
        lambda: al.simulate(model, q, duration=0.01, step=1e-3, integrator="rk4"),
    ):
        with pytest.raises(al.NumericalError, match=FAR):
            call()
    both = np.stack([model.neutral(), q])
    with pytest.warns(
        al.AlembertWarning, match=f"1 of 2 states have no finite result, the first at 1; {FAR}"
    ):
        a = model.forward_dynamics(both, np.zeros((2, model.nv)), np.ones((2, model.nv)))
    assert np.isfinite(a[0]).all()


def test_implicit_steps_tell_it_too(overbent):
    """A motion comes there by accelerations without bound, which no step follows."""
    model, _, v = overbent
    fast = v.copy()
    fast[-1] = 8.0
    with pytest.raises(
        al.NumericalError, match=r"after t = .*'boom' is deflected too far .*\(boom.bending_y_4"
    ):
        al.simulate(model, model.neutral(), fast, duration=0.05, step=2.5e-4, integrator="generalised_alpha")


def test_inertia_that_no_joint_moves_is_not_blamed():
    """A thin beam has none about its axis, which a bent one makes negative: in a plane that is not why steps fail."""
    builder = al.ModelBuilder("arm", gravity=(0, -9.81, 0))
    body = beam(1.5, 1.2, EI_z=100.0, bending_y=3, damping=(0.1, 0.01))
    builder.body("boom", body, joint=al.Revolute((0, 0, 1)), joint_name="pin")
    load = al.Inertia.point(0.3, (0.1, 0, 0))
    builder.body("load", load, joint=al.Revolute((0, 0, 1)), joint_name="wrist", parent="boom", node="tip")
    model = builder.build()
    q = np.array([0.3, 0.05, -0.02, 0.01, 0.4])
    assert body.least_inertia(q[1:4]) < 0
    assert body.least_inertia(q[1:4], moved=model.frame_jacobian(q, "boom", reference="local")) > 0
    with pytest.raises(al.NumericalError, match=r"the step is too long for the motion"):
        al.simulate(model, q, duration=0.5, step=1e-3, integrator="rk4", progress=False)


def test_a_thin_beam_in_flight_has_no_inertia_about_its_axis():
    """The joint and the speed are named, by dynamics and by runs; with rotary inertia it flies."""

    def flying(gyration):
        builder = al.ModelBuilder("flying", gravity=(0, 0, 0))
        boom = beam(1.0, 1.0, EI_z=1.0, bending_y=2, rhoI_y=gyration, rhoI_z=gyration)
        builder.body("boom", boom, joint=al.Free(), joint_name="float")
        return builder.build()

    thin, words = flying(0.0), r"joint 'float': nothing that moves with float.wx has inertia"
    with pytest.raises(al.NumericalError, match=words):
        thin.forward_dynamics(thin.neutral(), np.zeros(8), np.ones(8))
    for how in ({"integrator": "rk4", "step": 1e-3}, {}):
        with pytest.raises(al.NumericalError, match=words):
            al.simulate(thin, thin.neutral(), np.full(8, 0.1), duration=0.1, **how)
    thick = flying(1e-3)
    assert np.isfinite(thick.forward_dynamics(thick.neutral(), np.zeros(8), np.ones(8))).all()


def test_error_control_tells_it_too():
    """Steps that shrink to nothing before the inertia is negative: the body is named with the others that may be why."""
    builder = al.ModelBuilder("boom", gravity=(0, 0, -9.81))
    stiff = {"EI_y": 60.0, "EI_z": 70.0, "GJ": 40.0, "rhoI_y": 0.01, "rhoI_z": 0.01}
    body = beam(1.0, 2.0, **stiff, bending_y=3, bending_z=3, torsion=3, ends="craig-bampton")
    builder.body("boom", body, joint=al.Revolute((0, 0, 1)), joint_name="hub")
    builder.body("load", al.Inertia.sphere(0.6, 0.05), joint=al.Fixed(), parent="boom", node="tip")
    model = builder.build()
    with pytest.raises(al.NumericalError, match=r"cannot go on .* 'boom' is deflected too far for its modes"):
        al.simulate(model, model.neutral(), duration=0.3, tolerance=1e-6, progress=False)


@pytest.mark.parametrize(("weight", "told"), [(1.0, False), (4.0, True)])
def test_heavy_beams_that_twist_are_told(weight, told):
    """A flat beam on edge buckles sideways under 12.85 sqrt(EI GJ) / L^3; what one body leaves out is a share of that."""
    builder = al.ModelBuilder("flat", gravity=(0, 0, -weight))
    body = beam(1.0, 1.0, EI_z=1.0, GJ=1.0, rhoI_y=0.01, bending_y=2, torsion=2)
    builder.body("flat", body, joint=al.Fixed())
    model = builder.build()

    def all_told(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        return [str(x.message) for x in found]

    words = r"body 'flat' is heavy: .* by (\d+)% .* segments"
    for call, name in (
        (lambda: al.trim(model), "trim"),
        (lambda: al.simulate(model, model.neutral(), duration=0.01, step=1e-3, progress=False), "simulate"),
    ):
        found = all_told(call)
        assert len(found) == told
        if told:  # two shapes each, and eleven nodes for the integral: some per cent
            assert float(re.match(f"{name}: {words}", found[0])[1]) == pytest.approx(
                100 * weight / 12.85, rel=0.1
            )
    upright = al.ModelBuilder("mast", gravity=(-weight, 0, 0))
    upright.body("flat", body, joint=al.Fixed())
    assert not all_told(lambda: al.trim(upright.build()))
