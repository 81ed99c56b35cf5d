"""Spacecraft: devices and flight software against closed forms."""

import math

import casadi as ca
import numpy as np
import scipy

from alembert.joints import Fixed, Free, Friction, Prismatic, Revolute, Spring
from alembert.linear import linearize
from alembert.model import WORLD, Inertia, Model, ModelBuilder
from alembert.simulate import Event, MassFlow, Sampled, SymbolicLaw, simulate
from alembert.spacecraft import (
    AttitudeFilter,
    Encke,
    Environment,
    Exponential,
    Facet,
    FlightSoftware,
    FlightTask,
    Hardware,
    Orbit,
    Thruster,
    control_moment_gyro,
    deployable_rim,
    gains,
    microgravity,
    momentum_balance,
    quaternion_feedback,
    quest,
    reaction_wheel,
    slosh_pendulum,
    spun_up,
    triad,
    yo_yo,
)
from alembert.spatial import quaternion
from alembert.verify.case import SCRIPT, Check, Items, family
from alembert.verify.mechanisms import one_body, principal

case = family("spacecraft")


def _hub(mass: float, moments: tuple[float, ...]) -> ModelBuilder:
    return one_body("hub", principal(mass, moments))


def _damper(builder: ModelBuilder) -> None:
    builder.body(
        "damper", Inertia.point(5.0), joint=Prismatic((0, 0, 1)), joint_name="damper", parent="hub",
        placement=(1, 0, 0), spring=Spring((20.0,)), friction=Friction((2.0,)),
    )  # fmt: skip


@case(
    source=f"Likins, Attitude stability criteria for dual spin spacecraft, J. Spacecraft 4 (1967) 1638; {SCRIPT}",
    kind="reference",
    tags=("tree", "linearisation"),
)
def dual_spin() -> Items:
    """A damper on a despun platform, and on a body that spins about its axis of least or of most inertia."""
    reason = "the linear model is exact; the digits given"
    rotor = 150.0
    builder = _hub(995.0 - 100.0, (500.0 - 0.51 * rotor, 500.0 - 0.51 * rotor, 200.0))
    reaction_wheel(builder, "rotor", "hub", (0, 0, 1), inertia=rotor, mass=100.0)
    _damper(builder)
    model = builder.build()
    v = np.zeros(model.nv)
    v[model.v_slice("rotor")] = 2.0
    yield _root("despun platform", model, v, -1.858988e-5 + 0.596752669j, 1e-9, reason)
    for axial, root, name in (
        (350.0, 8.43682e-4 + 0.599872j, "least"),
        (700.0, -5.595543e-4 + 0.800089j, "most"),
    ):
        builder = _hub(995.0, (500.0, 500.0, axial))
        _damper(builder)
        model = builder.build()
        v = np.zeros(model.nv)
        v[2], v[4] = 2.0, -2.0 * 5.0 / 1000.0  # about the centre of mass
        yield _root(f"spinning about the axis of {name} inertia", model, v, root, 6e-7, reason)


def _root(name: str, model: Model, v: np.ndarray, expected: complex, tolerance: float, reason: str) -> Check:
    poles = linearize(model, model.neutral(), v).poles()
    found = poles[np.argmin(np.abs(poles - expected))]
    return Check(f"{name}: growth, frequency [1/s]", [found.real, found.imag], [expected.real, expected.imag],
                 tolerance, reason)  # fmt: skip


@case(
    source=f"Three wheels with limits on their torque; Euler's equations of a gyrostat by DOP853 at 1e-13, {SCRIPT}",
    kind="reference",
    tags=("tree", "simulation"),
)
def three_saturated_wheels(inertia: float = 0.159154943092) -> Items:
    """Wheels at 500, 200 and -150 rpm are asked for more than 0.2 N m until 0.5 s: the attitude at 1 s."""
    moments = np.array([900.0, 800.0, 600.0]) - inertia - 2 * 0.51 * inertia
    builder = _hub(1000.0, tuple(moments))
    wheels = [
        reaction_wheel(builder, f"wheel_{k}", "hub", axis, inertia=inertia, torque=0.2)
        for k, axis in zip("xyz", np.eye(3), strict=True)
    ]
    model = builder.build()
    law = SymbolicLaw(lambda t, m: {"wheels": ca.if_else(t < 0.5 - 1e-9, ca.DM([0.2, 0.1, -0.5]), 0)})
    software = FlightSoftware((FlightTask("law", law, 0.1, (), {"wheels": np.zeros(3)}),))
    rpm = math.pi / 30
    run = simulate(
        model, None, [0.08, 0.01, 0, 0, 0, 0, 500 * rpm, 200 * rpm, -150 * rpm], duration=1.0, step=0.01,
        integrator="rk4", controller=software.controllers(Hardware(model, {"wheels": wheels}, 0.1)),
    )  # fmt: skip
    q = run.q[-1, 3:7]
    expected = (1.9985399392035e-2, 2.4564771606365e-3, 8.4535627895e-6)
    reason = "RK4 at a rate of 0.1 rad/s: (0.01 * 0.1)^4 = 1e-12 of 0.02; all digits are given"
    yield Check("modified Rodrigues parameters", q[1:] / (1 + q[0]), expected, 2e-14, reason)
    balance = momentum_balance(run)
    yield Check(
        "balance of momentum", balance.angular_error, 0.0, 1e-12, "RK4 at 0.01 s keeps it to rounding"
    )


@case(
    source="Fedor, Theory and design curves for a yo-yo de-spin mechanism for satellites, NASA TN D-708 (1961)",
    kind="closed form",
    tags=("loops", "simulation"),
)
def yo_yo_despin() -> Items:
    """Two masses on cords take the spin out of a drum: time and length of cord, and what 0.8 of it leaves."""
    inertia, radius, mass, spin, first = 2.0, 0.25, 0.1, 4 * math.pi, 1e-2
    builder = ModelBuilder("drum", gravity=(0, 0, 0))
    builder.body(
        "drum", Inertia(50.0, (0, 0, 0), (2, 0, 2, 0, 0, inertia)), joint=Revolute(), joint_name="spin"
    )
    for name, angle in (("a", 0.0), ("b", math.pi)):
        yo_yo(builder, name, "drum", mass=mass, radius=radius, angle=angle)
    model = builder.build()
    c = (
        inertia / (2 * mass * radius**2) + 1
    )  # spin = w0 (c - f^2)/(c + f^2) at the angle f, which grows at w0
    begin = spin * (c - first**2) / (c + first**2)
    q = {"spin": 0.0} | {f"{k}_turn": first for k in "ab"} | {f"{k}_cord": radius * first for k in "ab"}
    v = {"spin": begin} | {f"{k}_turn": spin for k in "ab"} | {f"{k}_cord": radius * spin for k in "ab"}
    run = simulate(
        model, q, v, duration=2.0, integrator="dop853", tolerance=1e-11,
        events=Event(lambda t, q, v: v[0], direction=-1),
    )  # fmt: skip
    reason = "error control at 1e-11, from an exact state with 0.01 rad unwound"
    yield Check("time [s]", run.time[-1] + first / spin, 1.009724918, 1e-8, reason)
    cord = model.q_slice("a_cord").start
    yield Check("cord [m]", run.q[-1, cord], 3.172144385112, 1e-7, reason)
    k = int(np.argmin(np.abs(run.q[:, cord] - 0.8 * 3.172144385112)))
    f2 = (run.q[k, cord] / radius) ** 2
    yield Check("spin there / the law of the angle", run.v[k, 0] / spin, (c - f2) / (c + f2), 1e-8, reason)
    yield Check(
        "what 0.8 of the cord leaves", (1 - 0.64) / (1 + 0.64), 0.219512195, 5e-10, "nine digits are given"
    )


@case(source="Tsiolkovsky's equation: dv = c ln(m0/m1)", kind="closed form", tags=("tree", "simulation"))
def rocket_equation() -> Items:
    """A burn that takes half of the mass, in one straight line."""
    builder = ModelBuilder("rocket", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 50.0)
    builder.body("hub", Inertia.box(50.0, (1, 1, 1)), joint=Free(), joint_name="flight")
    builder.body("tank", Inertia.point(fuel), joint=Fixed(), parent="hub")
    model = builder.build()
    jet = Thruster("jet", "hub", (1, 0, 0), 100.0, specific_impulse=300.0)
    seconds = 40.0 / jet.flow
    run = simulate(
        model, duration=seconds, step=seconds / 100, integrator="rk4", controller=MassFlow([jet], "fuel")
    )
    expected = 300.0 * 9.80665 * math.log(100.0 / 60.0)
    reason = "RK4: a fifth of the fourth power of 0.4 kg a step over 60 kg, 4e-10"
    yield Check("speed [m/s]", run.v[-1, 3], expected, 4e-10 * expected, reason)
    assert run.controller_states is not None
    yield Check("propellant left [kg]", run.controller_states[-1, 0], 10.0, 1e-12, "rounding")


@case(
    source="Hill's equations: at rest in local axes (x along the track, z down) one feels n^2 (0, y, -3 z)",
    kind="closed form",
    tags=("tree", "simulation"),
)
def microgravity_by_tides() -> Items:
    """A place off the centre of mass of a craft that keeps local axes on a circular orbit."""
    orbit = Orbit.circular(400e3, 51.6)
    space = Environment(world=Encke(orbit, 0.0))
    builder = ModelBuilder("lab", gravity=(0, 0, 0))
    builder.body("hub", Inertia.sphere(1e5, 3.0), joint=Free(), joint_name="flight")
    builder.frame("rack", "hub", (4.0, 2.0, 3.0))
    model = builder.build()
    q, v = space.start(model, orbit)
    run = simulate(model, q, v, duration=600.0, step=10.0, integrator="rk4", gravity=space.gravity(degree=0))
    level = microgravity(run, "rack")
    expected = orbit.rate**2 * np.array([0.0, 2.0, -9.0])
    reason = "terms of second order, 5 m over the radius, and RK4 on an angle of 0.01 a step"
    yield Check("felt at the end [m/s^2]", level.felt[-1], expected, 1e-5 * np.abs(expected).max(), reason)
    g = 1e6 / 9.80665
    size = float(np.linalg.norm(expected)) * g
    yield Check("root mean square [1e-6 g]", level.rms, size, 1e-5 * size, reason)


@case(
    source="""Keat, DART Multibody Code (workshop on computational control of flexible aerospace systems, 1989): deploying a
    rim of 18 bodies; no data are printed. Deployed in step it has one degree of freedom, and its time is an integral""",
    kind="closed form",
    tags=("loops", "simulation"),
    missing="all dimensions: rods of 1 m and 1 kg, hinges of 2 N m/rad folded by 2 rad",
)
def rim_of_eighteen_bodies() -> Items:
    """A rim opens by springs in its hinges; all of them lock up at once, and it stands still."""
    n, k, fold, alpha = 18, 2.0, 2.0, math.pi / 9
    builder = ModelBuilder("rim", gravity=(0, 0, 0))
    rim = deployable_rim(builder, "rim", WORLD, segments=n, length=1.0, mass=1.0, stiffness=k, joint=Free())
    model = builder.build()
    run = simulate(
        model, rim.stowed(model, model.neutral(), fold), duration=0.9375, step=0.00625, integrator="rk4",
        events=rim.lock_ups(model),
    )  # fmt: skip

    def slow(s: float) -> float:
        """Corners are at cos((alpha -+ fold)/2)/sin(alpha) on rays alpha apart: 2 T = m/3 (a^2 + a b cos(alpha) + b^2)."""
        phi = fold * math.cos(s)
        a, b = (sign * math.sin((alpha - sign * phi) / 2) / 2 / math.sin(alpha) for sign in (1, -1))
        return math.sqrt((a**2 + a * b * math.cos(alpha) + b**2) / (3 * k))

    reason = "RK4 in 150 steps, hinges at 11 rad/s, whose speeds add up along the rim: 5 times 150 (0.00625 * 11)^5 = 1e-3"
    yield Check("time [s]", run.events[0].time, scipy.integrate.quad(slow, 0, math.pi / 2)[0], 1e-3, reason)
    lost = -sum(event.energy for event in run.events)
    yield Check(
        "energy that the locks take [J]", lost, n * k * fold**2 / 2, 1e-3 * n * k * fold**2 / 2, reason
    )
    yield Check("number of lock-ups", len(run.events), n, 0, "all of them")


@case(
    source="Thomson, Introduction to Space Dynamics (1961), section 7.8: damping by the jet, w = w0 (I/I0)^(l^2/k^2 - 1)",
    kind="closed form",
    tags=("tree", "simulation"),
)
def jet_damping() -> Items:
    """A tumbling rocket that burns 40 of its 100 kg from a nozzle 1 m behind its centre of mass."""
    builder = ModelBuilder("rocket", gravity=(0, 0, 0))
    fuel = builder.parameter("fuel", 50.0)
    builder.body("hub", Inertia.box(50.0, (1, 1, 1)), joint=Free(), joint_name="flight")
    builder.body("tank", Inertia.cylinder(fuel, 0.3, 1.0), joint=Fixed(), parent="hub")
    model = builder.build()
    jet = Thruster("jet", "hub", (0, 0, 1), 1.0, specific_impulse=3.0, at=(0, 0, -1.0))
    seconds, k2 = 40.0 / jet.flow, (3 * 0.3**2 + 1.0) / 12
    v = np.zeros(6)
    v[0] = 0.02
    run = simulate(
        model, None, v, duration=seconds, step=seconds / 1000, integrator="rk4", controller=MassFlow([jet], "fuel"),
    )  # fmt: skip
    ratio = (50.0 / 6 + k2 * 10.0) / (50.0 / 6 + k2 * 50.0)
    # RK4 on a fall by exp(-3) in 1000 steps: 1e-12. Speeds of 15 m/s make moments v x m v that are rounded to 2e-12 N m, on
    # 8 kg m^2 in 1000 steps of 1.2 s at random 1e-11 of the 1e-3 rad/s that are left
    reason = "rounding of moments, 1e-8"
    expected = 0.02 * ratio ** (1.0 / k2 - 1)
    yield Check(
        "rate at the end [rad/s]", float(np.linalg.norm(run.v[-1, :3])), expected, 6e-8 * expected, reason
    )


@case(
    source="King-Hele, Satellite Orbits in an Atmosphere (1987): da/dt = -CdA/m rho sqrt(mu a), in a constant density",
    kind="closed form",
    tags=("tree", "simulation"),
)
def decay_in_constant_density() -> Items:
    """A day at 400 km in the plane of the equator."""
    orbit = Orbit(6778137.0)
    space = Environment(world=Encke(orbit, 0.0))
    model = one_body("ball", Inertia.sphere(100.0, 0.5)).build()
    q, v = space.start(model, orbit, attitude="inertial")
    air = space.drag(Facet("ball", 2.0), Exponential(4e-12, 400e3, 1e30), corotation=0.0)
    run = simulate(
        model, q, v, duration=86400.0, step=10.0, interval=86400.0, integrator="rk4", gravity=space.gravity(degree=0),
        forces=air,
    )  # fmt: skip
    r, u = space.inertial(run)
    found = Orbit.of_state(r[-1], u[-1]).semi_axis
    yield Check("semi-major axis [m]", found, 6777346.6167, 0.02, "RK4 at 10 s on a deviation of 20 km")


@case(
    source="Euler's gyroscopic torque: h times the rate of the gimbal",
    kind="closed form",
    tags=("tree", "simulation"),
)
def gyro_torque() -> Items:
    """A control moment gyro on a heavy hub: the hub's momentum after a turn of the gimbal is what the rotor has lost."""
    builder = _hub(1e6, (1e9, 1e9, 1e9))
    gyro = control_moment_gyro(
        builder, "cmg", "hub", gimbal_axis=(0, 0, 1), spin_axis=(1, 0, 0), momentum=100.0, rotor_inertia=0.1
    )
    model = builder.build()
    v = spun_up(model, np.zeros(model.nv), [gyro])
    run = simulate(
        model, None, v, duration=1.0, step=0.01, integrator="rk4",
        prescribed={"cmg": _turn, "cmg_rotor": _spin(gyro.speed)},
    )  # fmt: skip
    angle = math.radians(30.0)
    expected = -100.0 * np.array([math.cos(angle) - 1, math.sin(angle), 0.0])
    reason = "the hub turns by 1e-7 rad, and the gimbal's own momentum ends at zero"
    yield Check("momentum of the hub [N m s]", 1e9 * run.v[-1, :3], expected, 2e-5, reason)


def _turn(t: float) -> tuple[float, float, float]:
    """30 degrees in a second, from rest to rest."""
    a, w = math.radians(30.0), math.pi
    return a / 2 * (1 - math.cos(w * t)), a / 2 * w * math.sin(w * t), a / 2 * w * w * math.cos(w * t)


def _spin(speed: float) -> object:
    return lambda t: (speed * t, speed, 0.0)


@case(
    source="Black (1964), Davenport (1968), Shuster and Oh (1981): attitude from two or more directions",
    kind="identity",
    tags=("random",),
)
def attitude_from_directions(seed: int = 5) -> Items:
    """Exact directions give the attitude back; QUEST's covariance is that of a star tracker of as many stars."""
    rng = np.random.default_rng(seed)
    q = quaternion.normalize(rng.normal(size=4))
    q = q if q[0] > 0 else -q
    stars = rng.normal(size=(5, 3))
    stars /= np.linalg.norm(stars, axis=1, keepdims=True)
    seen = stars @ np.asarray(quaternion.to_matrix(q))
    two = triad((seen[0], stars[0]), (seen[1], stars[1]))
    reason = "rounding over the sine of the angle between directions"
    yield Check("TRIAD", two * np.sign(two[0]), q, 1e-12, reason)
    found, P = quest(seen, stars, np.full(5, 1e8))
    yield Check("QUEST", found, q, 1e-12, reason)
    J = sum((1e8 * (np.eye(3) - np.outer(b, b)) for b in seen), np.zeros((3, 3)))
    yield Check("its covariance: P J", P @ J, np.eye(3), 1e-12, reason)


@case(
    source="Farrenkopf, Analytic steady-state accuracy solutions for two common spacecraft attitude estimators (1978)",
    kind="identity",
)
def attitude_filter_steady_state() -> Items:
    """Star tracker and gyro: the filter's covariance at rest solves the discrete Riccati equation of one axis."""
    h, noise, walk, sigma = 0.5, 1e-5, 1e-6, 5e-5
    state = AttitudeFilter.start([1.0, 0, 0, 0], noise=noise, walk=walk, angle=1e-3, bias=1e-3)
    for _ in range(3000):
        state = state.propagate(np.zeros(3), h).with_attitude([1.0, 0, 0, 0], sigma)
    A = np.array([[1.0, -h], [0.0, 1.0]])
    Q = np.array(
        [[noise**2 * h + walk**2 * h**3 / 3, -(walk**2) * h**2 / 2], [-(walk**2) * h**2 / 2, walk**2 * h]]
    )
    H, unit = np.array([[1.0], [0.0]]), np.diag([1e-5, 1e-6])
    inner = np.linalg.inv(unit)
    before = unit @ scipy.linalg.solve_discrete_are(
        (inner @ A @ unit).T, unit @ H / 1e-5, inner @ Q @ inner, np.array([[(sigma / 1e-5) ** 2]])
    ) @ unit  # fmt: skip
    gain = before @ H / (H.T @ before @ H + sigma**2)
    after = before - gain @ H.T @ before
    found = state.P[np.ix_([0, 3], [0, 3])]
    reason = "the filter converges in some 100 samples; Joseph's form keeps 1e-12"
    yield Check("covariance / units", inner @ found @ inner, inner @ after @ inner, 1e-8, reason)


@case(
    source="Wie, Space Vehicle Dynamics and Control (1998), section 7.3: stiffness J w^2, damping 2 zeta w J",
    kind="closed form",
    tags=("tree", "simulation"),
)
def quaternion_feedback_response(bandwidth: float = 0.1) -> Items:
    """A small angle under quaternion feedback every 5 ms goes as an oscillator of that bandwidth and damping."""
    model = _hub(100.0, (20.0, 30.0, 40.0)).build()
    J = np.diag([20.0, 30.0, 40.0])
    stiffness, damping = gains(J, bandwidth, 0.6)

    def law(t: object, m: object, at: object) -> dict[str, object]:
        u = quaternion_feedback(
            at.q[3:7], at.v[:3], inertia=J, stiffness=stiffness, damping=damping  # type: ignore[attr-defined]
        )  # fmt: skip
        return {"efforts": ca.vertcat(u, 0, 0, 0)}

    angle = 1e-3
    run = simulate(
        model, [0, 0, 0, math.cos(angle / 2), math.sin(angle / 2), 0, 0], duration=20.0, step=0.005, interval=20.0,
        integrator="rk4", controller=Sampled(SymbolicLaw(law), 0.005, state=True),
    )  # fmt: skip
    t, z = 20.0, 0.6
    w = bandwidth * math.sqrt(1 - z * z)
    expected = math.exp(-z * bandwidth * t) * (math.cos(w * t) + z * bandwidth / w * math.sin(w * t))
    found = 2 * math.asin(run.q[-1, 4]) / angle
    yield Check(
        "angle at 20 s / the first", found, expected, 5e-4, "held for 5 ms: half of that late, 0.1 rad/s"
    )


@case(
    source="Abramson, The dynamic behavior of liquids in moving containers, NASA SP-106 (1966): the pendulum's frequency",
    kind="closed form",
    tags=("tree", "linearisation"),
)
def slosh_under_thrust() -> Items:
    """A pendulum of propellant in a tank that is pushed: sqrt(a/L (1 + m/M)) where the tank is free to move sideways."""
    builder = ModelBuilder("tank", gravity=(0, 0, -2.0))
    builder.body("slide", Inertia.point(80.0), joint=Prismatic((1, 0, 0)), joint_name="slide")
    slosh_pendulum(builder, "slosh", "slide", mass=20.0, length=0.5, at=(0, 0, 0))
    model = builder.build()
    poles = linearize(model, model.neutral(), np.zeros(model.nv)).poles()
    found = np.sort(poles.imag[poles.imag > 0.1])
    expected = [math.sqrt(2.0 / 0.5), math.sqrt(2.0 / 0.5 * (1 + 20.0 / 80.0))]
    yield Check("frequencies [rad/s]", found, expected, 1e-9, "exact linear model")
