"""Flight software, hardware, and the balance of momentum of what they do."""

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError
from alembert import spacecraft as sc
from alembert.spacecraft import (
    Encke,
    Environment,
    Epoch,
    FlightSoftware,
    FlightTask,
    Hardware,
    MagneticTorquer,
    Orbit,
    Thruster,
    box,
    control,
    estimate,
    gyro,
    gyro_jacobian,
    gyro_pyramid,
    gyro_steering,
    magnetometer,
    momentum_balance,
    position_fix,
    pulses,
    reaction_wheel,
    spun_up,
    star_tracker,
    unload,
    wheel_speeds,
)

ORBIT = Orbit.circular(500e3, 97.4)
SPACE = Environment(Epoch.of("2026-03-01T12:00:00"), Encke(ORBIT))
AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}


def hub():
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(300.0, (1.0, 1.2, 1.5)), joint=al.Free(), joint_name="flight")
    return builder


def with_wheels(**options):
    builder = hub()
    given = {"inertia": 0.03, "torque": 0.2, "speed": 600.0, **options}
    wheels = [reaction_wheel(builder, f"wheel_{name}", "hub", axis, **given) for name, axis in AXES.items()]
    return builder.build(), wheels


def test_a_message_is_read_when_it_should_be():
    """A counter keeps its memory in a message; a reader sees it at once, a delayed one later."""
    model = hub().build()
    seen = {"now": [], "late": []}

    def count(t, m):
        return {"count": m["count"] + 1}

    def copy(t, m):
        return {"copy": m["count"]}

    def look(name):
        return lambda t, m: seen[name].append((t, float(m["count"][0]), float(m["copy"][0]))) or {}

    tasks = [
        FlightTask("late", look("late"), 0.1, ("count", "copy"), priority=-1),
        FlightTask("copy", copy, 0.2, ("count",), {"copy": 0.0}, delay=0.1),
        FlightTask("count", count, 0.1, ("count",), {"count": 0.0}, priority=1),
        FlightTask("now", look("now"), 0.1, ("count", "copy"), phase=0.05),
    ]
    software = FlightSoftware(tasks)
    run = al.simulate(
        model, duration=0.5, step=0.05, integrator="rk4", controller=software.controllers(), progress=False
    )
    assert [x[1] for x in seen["late"]] == [1, 2, 3, 4, 5, 6]
    assert [x[2] for x in seen["late"]] == [0, 1, 1, 3, 3, 5]  # written at 0, 0.2, 0.4; read 0.1 later
    assert np.allclose([x[0] for x in seen["now"]], [0.05, 0.15, 0.25, 0.35, 0.45])
    assert np.allclose(run.measurements["count"].values[:, 0], [1, 2, 3, 4, 5, 6])
    again = run.resume(0.2, time=0.3)
    assert again.measurements["count"].values[0, 0] == 4  # its memory was that of the record


def test_latency_of_a_chain():
    def nothing(t, m):
        return {}

    tasks = [
        FlightTask("sense", nothing, 0.1, ("stars",), {"a": 0.0}),
        FlightTask("think", nothing, 0.2, ("a",), {"b": 0.0}, phase=0.05, delay=0.1),
        FlightTask("act", nothing, 0.05, ("b",), {"c": 0.0}),
    ]
    shortest, longest = FlightSoftware(tasks).latency("sense", "think", "act")
    assert shortest == pytest.approx(0.15)  # read at 0, used at 0.05, there at 0.15
    assert longest == pytest.approx(0.30)  # the last act before the next result
    with pytest.raises(ArgumentError, match="reads no message"):
        FlightSoftware(tasks).latency("sense", "act")
    with pytest.raises(ArgumentError, match="no task 'go'"):
        FlightSoftware(tasks).latency("go")


def test_a_satellite_points_and_unloads():
    """Star tracker, gyro, filter, wheels, torquers, gravity gradient, drag and light; the balance of momentum to 1e-10."""
    model, wheels = with_wheels()
    torquer = MagneticTorquer("torquer", "hub", 30.0)
    field = SPACE.magnetic_field(6)
    sensors = [
        star_tracker("stars", "hub", SPACE, period=0.2, noise=5e-5, dropout=0.1),
        gyro("rate", "hub", period=0.2, noise_density=1e-5, walk_density=1e-7, bias=2e-4),
        magnetometer("field", "hub", SPACE, period=0.2, magnetic=field),
        position_fix("fix", "hub", SPACE, period=0.2),
        *wheel_speeds(wheels, period=0.2),
    ]
    J = model.mass_matrix(model.neutral())[:3, :3]
    software = FlightSoftware(
        [
            estimate(period=0.2),
            control(wheels, inertia=J, period=0.2, bandwidth=0.15),
            unload(wheels, torquer, gain=2e-3, period=0.2),
        ]
    )
    hardware = Hardware(model, {"wheels": wheels, "torquers": [torquer]}, 0.2, magnetic=field)
    q, v = SPACE.start(model, ORBIT)
    v[:3] += [0.002, -0.001, 0.001]
    v[model.v_slice("wheel_y")] = 100.0
    forces = {"gravity": SPACE.gravity(), "drag": SPACE.drag(box("hub", (1.0, 1.2, 1.5)))}
    run = al.simulate(
        model, q, v, duration=60.0, step=0.2, integrator="rk4", gravity=forces["gravity"], forces=forces["drag"],
        controller=software.controllers(hardware, sensors), sensors=sensors, progress=False,
    )  # fmt: skip
    w = run.v[-1, :3]
    assert np.linalg.norm(w - [0, -ORBIT.rate, 0]) < 5e-4
    bias = run.measurements["filter"].values[-1, 4:7]
    assert np.allclose(bias, 2e-4, atol=5e-5)
    speeds = run.v[[0, -1], model.v_slice("wheel_y").start]
    assert abs(speeds[1]) < abs(speeds[0])  # unloading
    balance = momentum_balance(run, forces)
    assert balance.angular_error < 1e-10
    assert balance.linear_error < 1e-9  # RK4 at 0.2 s over the deviation from the orbit
    assert set(balance.impulses) == {"gravity", "drag", "actuators"}
    assert "angular to" in str(balance)
    with pytest.raises(ArgumentError, match="leave interval= out"):
        momentum_balance(
            al.simulate(model, q, v, duration=2.0, step=0.1, interval=0.2, integrator="rk4", progress=False)
        )


def test_gyros_turn_the_craft():
    """Gimbals follow their rates; the torque on the craft is what was asked for, and momentum is kept."""
    builder = hub()
    gyros = gyro_pyramid(builder, "cmg", "hub", momentum=15.0, rotor_inertia=0.05, rate=1.0, torque=20.0)
    model = builder.build()

    def steer(t, m):
        angles = [float(m[f"{g.name}_angle"][0]) for g in gyros]
        u = np.array([1.0, 0.0, 0.0]) if t < 4.0 - 1e-9 else np.array([-1.0, 0.0, 0.0])
        return {"gimbals": gyro_steering(gyros, angles, u) if t < 8.0 - 1e-9 else np.zeros(4)}

    sensors = [
        al.simulate.Measured(al.Sensor(f"{g.name}_angle", "joint_position", g.name), 0.05) for g in gyros
    ]
    reads = tuple(s.name for s in sensors)
    software = FlightSoftware([FlightTask("steer", steer, 0.05, reads, {"gimbals": np.zeros(4)})])
    hardware = Hardware(model, {"gimbals": gyros}, 0.05)
    v = spun_up(model, np.zeros(model.nv), gyros)
    run = al.simulate(
        model, None, v, duration=9.0, step=0.005, integrator="rk4", sensors=sensors,
        controller=software.controllers(hardware, sensors), progress=False,
    )  # fmt: skip
    h = model.momentum(run.q, run.v)[:, :3]
    assert np.abs(h - h[0]).max() < 1e-6
    w = run.v[:, 0]
    at_4 = int(np.argmin(np.abs(run.time - 4.0)))
    J = model.mass_matrix(model.neutral())[0, 0]
    assert w[at_4] * J == pytest.approx(4.0, rel=0.1)  # 1 N m for 4 s, with the servo's lag
    assert abs(w[-1]) < 0.1 * w[at_4]
    angles = [run.q[-1, model.q_slice(g.name).start] for g in gyros]
    _, H = gyro_jacobian(gyros, angles)
    assert np.linalg.norm(H) < 1.0


def test_thrusters_give_their_impulse():
    """A pulse of 0.13 s in periods of 0.1 s is exact; one below the minimum is not given; propellant is counted."""
    model = hub().build()
    thrusters = [
        Thruster("a", "hub", (1, 0, 0), 10.0, minimum=0.05),
        Thruster("b", "hub", (0, 1, 0), 10.0, minimum=0.05, at=(0.5, 0, 0)),
    ]

    def fire(t, m):
        return {"jets": pulses(t, [0.13, 0.02])} if t < 0.25 else {}

    software = FlightSoftware([FlightTask("fire", fire, 0.3, (), {"jets": np.zeros(4)})])
    hardware = Hardware(model, {"jets": thrusters}, 0.1)
    run = al.simulate(
        model,
        duration=1.0,
        step=0.1,
        integrator="rk4",
        controller=software.controllers(hardware),
        progress=False,
    )
    assert np.allclose(run.v[-1, 3:] * 300.0, [1.3, 0, 0], atol=1e-12)
    assert run.measurements["propellant"].values[-1, 0] == pytest.approx(1.3 / (220 * 9.80665))
    assert momentum_balance(run).linear_error < 1e-12


def test_a_wheel_stops_at_its_speed():
    model, wheels = with_wheels(speed=50.0)
    software = FlightSoftware(
        [FlightTask("law", lambda t, m: {"wheels": [0.2, 0.0, 0.0]}, 0.1, (), {"wheels": np.zeros(3)})]
    )
    hardware = Hardware(model, {"wheels": wheels}, 0.1)
    options = {
        "duration": 12.0, "step": 0.1, "integrator": "rk4", "controller": software.controllers(hardware), "progress": False,
    }  # fmt: skip
    run = al.simulate(model, **options)
    speed = run.v[:, model.v_slice("wheel_x").start]
    assert 49.5 < speed.max() < 50.5
    v = np.zeros(model.nv)
    v[model.v_slice("wheel_x")] = 80.0
    with pytest.raises(ArgumentError, match="'wheel_x' turns at 80 rad/s at t = 0 s, expected at most 50"):
        al.simulate(model, None, v, **options)


def nothing(t, m):
    return {}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FlightTask("a", nothing, 0.0), "period is 0.0"),
        (lambda: FlightTask("a", nothing, 0.1, phase=-1.0), "phase"),
        (lambda: FlightTask("a", nothing, 0.1, duration=0.2), "never ends"),
        (lambda: FlightTask("a", None, 0.1), "expected a function"),
        (
            lambda: FlightSoftware([FlightTask(name, nothing, 0.1, writes={"x": 0}) for name in "ab"]),
            "written by 'a' and 'b'",
        ),
        (lambda: FlightSoftware([FlightTask("a", nothing, 0.1), FlightTask("a", nothing, 0.1)]), "two tasks"),
        (
            lambda: FlightSoftware([FlightTask(x, nothing, 0.1, duration=0.06) for x in "ab"]),
            "120 % of the processor",
        ),
        (lambda: Hardware(hub().build(), {"x": [1]}, 0.1), "expected wheels"),
        (lambda: Hardware(hub().build(), {"x": [MagneticTorquer("m", "hub", 1.0)]}, 0.1), "needs a field"),
        (lambda: Hardware(hub().build(), {}, 0.0), "period"),
        (lambda: FlightTask("a", lambda t, m: {"y": 1}, 0.1)(0.0, {}), "expected one that it writes"),
        (lambda: FlightTask("a", lambda t, m: 1, 0.1)(0.0, {}), "expected messages by name"),
        (lambda: control([], inertia=np.eye(3), period=0.1, target="sun"), "expected 'lvlh'"),
        (lambda: control([], inertia=-np.eye(3), period=0.1), "positive 3 x 3"),
        (lambda: unload([], MagneticTorquer("m", "hub", 1.0), gain=0.0, period=0.1), "gain"),
    ],
)  # fmt: skip
def test_bad_software(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_contradictions_are_named():
    model, wheels = with_wheels()
    software = FlightSoftware([FlightTask("a", nothing, 0.1, ("stars",))])
    with pytest.raises(ArgumentError, match="no task writes 'wheels'"):
        software.controllers(Hardware(model, {"wheels": wheels}, 0.1))
    with pytest.raises(ArgumentError, match="'stars', which no sensor or task delivers"):
        software.controllers(None, [gyro("rate", "hub", period=0.1)])
    with pytest.raises(ArgumentError, match="reads no sensor"):
        al.simulate(
            model, duration=1.0, step=0.1, integrator="rk4", controller=software.controllers(), progress=False
        )
    twice = [al.simulate.Sampled(nothing, 0.1, posts={"x": 0.0}) for _ in range(2)]
    with pytest.raises(ArgumentError, match="posted twice"):
        al.simulate(model, duration=1.0, step=0.1, integrator="rk4", controller=twice, progress=False)
    wrong = al.simulate.Sampled(lambda t, m: {"x": np.zeros(2)}, 0.1, posts={"x": 0.0})
    with pytest.raises(ArgumentError, match="posted 'x' of shape"):
        al.simulate(model, duration=1.0, step=0.1, integrator="rk4", controller=wrong, progress=False)


def test_a_proof_mass_pushes_the_craft_the_other_way():
    """5 kg under 2 N: to the end of its stroke, and on without force; momentum is kept all the way."""
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(300.0, (1, 1, 1)), joint=al.Free(), joint_name="flight")
    device = sc.proof_mass(builder, "shaker", "hub", (0, 0, 2), mass=5.0, force=2.0, stroke=0.1)
    model = builder.build()
    law = al.simulate.SymbolicLaw(lambda t, m: {"push": ca.SX(3.0)})
    task = sc.FlightTask("push", law, 0.01, (), {"push": 0.0})
    hardware = sc.Hardware(model, {"push": [device]}, 0.01)
    run = al.simulate(
        model, duration=1.0, step=0.01, integrator="rk4", progress=False,
        controller=sc.FlightSoftware([task]).controllers(hardware),
    )  # fmt: skip
    speed = run.v[:, model.v_slice("shaker").start]
    share = 2.0 * (1 / 5.0 + 1 / 300.0)  # relative acceleration
    pushed = run.time < np.sqrt(2 * 0.1 / share)
    np.testing.assert_allclose(speed[pushed], share * run.time[pushed], rtol=1e-12, atol=1e-14)
    assert speed[-1] == speed[-20] < np.sqrt(2 * 0.1 * share) + 0.01 * share  # at most a period more
    np.testing.assert_allclose(model.momentum(run.q, run.v, about="world"), 0.0, atol=1e-13)
    assert run.measurements["saturated"].values[-1, 0] == 1.0
    with pytest.raises(ArgumentError, match=r"proof_mass 'x': stroke is 0\.0, expected a positive number"):
        sc.proof_mass(builder, "x", "hub", (1, 0, 0), mass=1.0, stroke=0.0)


def test_a_gyro_of_variable_speed_gives_torque_about_its_rotor_too():
    """The message has the rotor's torque behind the rate of the gimbal: with the gimbal still, it is a reaction wheel."""
    builder = hub()
    gyro = sc.control_moment_gyro(
        builder, "cmg", "hub", gimbal_axis=(0, 0, 1), spin_axis=(1, 0, 0), momentum=15.0, rotor_inertia=0.05,
        variable_speed=True,
    )  # fmt: skip
    model = builder.build()
    law = al.simulate.SymbolicLaw(lambda t, m: {"gyro": ca.vertcat(0.0, 0.5)})
    task = sc.FlightTask("spin", law, 0.05, (), {"gyro": np.zeros(2)})
    hardware = sc.Hardware(model, {"gyro": [gyro]}, 0.05)
    v = spun_up(model, np.zeros(model.nv), [gyro])
    run = al.simulate(
        model, None, v, duration=1.0, step=0.05, integrator="rk4", progress=False,
        controller=sc.FlightSoftware([task]).controllers(hardware),
    )  # fmt: skip
    tau = np.zeros(model.nv)
    tau[model.v_slice(gyro.rotor)] = 0.5
    # all turn about one axis: accelerations stay as they are at the start
    expected = v + model.forward_dynamics(model.neutral(), v, tau)
    np.testing.assert_allclose(run.v[-1], expected, rtol=1e-10, atol=1e-10)
    assert run.v[-1, 0] < -1e-3
