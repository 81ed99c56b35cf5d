"""Spacecraft in orbit: attitude, environment, devices."""

import math

import casadi as ca
import numpy as np

from alembert.joints import Prismatic, Revolute, Spherical
from alembert.linear import linearize
from alembert.model import Inertia, ModelBuilder
from alembert.simulate import Event, Forces, GravityGradient, Table, simulate
from alembert.spacecraft import (
    Encke,
    Environment,
    Epoch,
    Exponential,
    Facet,
    Orbit,
    gyro_jacobian,
    gyro_pyramid,
    igrf,
    magnetic_unloading,
    msis_profile,
    reaction_wheel,
    sun_synchronous,
)
from alembert.spacecraft.astronomy import EQUATOR, FLATTENING
from alembert.spacecraft.environment import sunlit
from alembert.verify.case import SCRIPT, Check, Items, family
from alembert.verify.mechanisms import one_body, principal
from alembert.verify.programs import FlightProgram

case = family("spacecraft")


def _brick(moments: tuple[float, ...]) -> ModelBuilder:
    return one_body("brick", principal(100.0, moments), Spherical(), "attitude")


def _librations(moments: tuple[float, ...], n: float) -> np.ndarray:
    """Poles over n, with local axes along roll, pitch, yaw: in body axes the linear model does not change with time."""
    model = _brick(moments).build()
    gradient = Forces(model, GravityGradient(n, (0, 0, -1), (0, -1, 0)))
    return linearize(model, model.neutral(), [0, -n, 0], forces=gradient).poles() / n


@case(
    source="""DeBra, Delp, Rigid body attitude stability and natural frequencies in a circular orbit, J. Astronautical Sci. 8
    (1961) 14: librations in pitch and in roll and yaw; their regions""",
    kind="closed form",
    tags=("tree", "linearisation"),
)
def debra_delp(rate: float = 1.1e-3) -> Items:
    """Librations in a circular orbit, stable and unstable, by linear models with the gravity gradient as a force."""
    reason = "closed forms; the linear model is exact to rounding, 1e-13 of n at these moments"
    poles = _librations((120.0, 150.0, 60.0), rate)
    found = np.sort(poles.imag[poles.imag > 0.1])
    yield Check("stable: omega/n", found, [0.690219243862, 1.09544511501, 1.774428751853], 1e-9, reason)
    yield Check("stable: damping/n", np.abs(poles.real).max(), 0.0, 1e-9, reason)
    poles = _librations((100.0, 90.0, 60.0), rate)
    yield Check("Delp's other region: growth/n", poles.real.max(), 0.3200564472, 1e-9, reason)
    poles = _librations((60.0, 150.0, 120.0), rate)
    yield Check("pitch unstable: growth/n", poles.real.max(), math.sqrt(1.2), 1e-9, reason)


@case(
    source=f"The period of pitch with 60 deg amplitude, an elliptic integral; {SCRIPT}",
    kind="closed form",
    tags=("tree", "simulation"),
)
def large_pitch_libration(rate: float = 1.1e-3) -> Items:
    """A large libration in pitch under the gravity gradient: a quarter of its period."""
    model = _brick((120.0, 150.0, 60.0)).build()
    half = math.radians(60.0) / 2

    def pitch(t: float, q: np.ndarray, v: np.ndarray) -> float:
        return 2 * math.atan2(q[2], q[0]) + rate * t

    run = simulate(
        model,
        [math.cos(half), 0, math.sin(half), 0],
        [0, -rate, 0],
        duration=2500.0,
        integrator="dop853",
        tolerance=1e-11,
        gravity=GravityGradient(rate, (0, 0, -1), (0, -1, 0)),
        events=Event(pitch, direction=-1),
    )
    yield Check("quarter of the period [s]", run.time[-1], 7158.619792 / 4, 1e-5, "error control at 1e-11")


@case(
    source=f"Euler's equations of a free body, I = (10, 15, 20); {SCRIPT}",
    kind="reference",
    tags=("tree", "simulation"),
)
def torque_free_asymmetric(flights: FlightProgram, duration: float = 100.0) -> Items:
    """Attitude and rate of a tumbling asymmetric body after 100 s."""
    q, rate = flights.load().tumble((10.0, 15.0, 20.0), (0.3, 0.02, 0.25), duration)
    expected = np.array([-0.373608316577, -0.023596466205, 0.372134931995, -0.849338345394])
    reason = "error control at 1e-12; errors grow as the energy's over two periods"
    yield Check("attitude (wxyz)", q * np.sign(q @ expected), expected, 1e-8, reason)
    yield Check("rate [rad/s]", rate, (-0.038329602489, -0.344152759828, 0.135035473908), 1e-8, reason)
    _, again = flights.load().tumble((10.0, 15.0, 20.0), (0.3, 0.02, 0.25), 58.3213340588)
    yield Check("rate after a period of 58.3213340588 s [rad/s]", again, (0.3, 0.02, 0.25), 1e-8, reason)


@case(
    source="""Gyrostat about its third axis: omega^2 = ((I3 - I2) s + h) ((I3 - I1) s + h)/(I1 I2) (Hughes, Spacecraft
    Attitude Dynamics, chapter 6)""",
    kind="closed form",
    tags=("tree", "linearisation"),
)
def gyrostat(spin: float = 0.1) -> Items:
    """A body with a rotor about the axis of intermediate inertia: a rotor makes it stable, another one unstable."""
    for h, part, expected in ((15.0, "frequency", 0.0228217732), (-5.0, "growth", 0.0176776695)):
        Jr = 0.5
        builder = _brick((400.0 - 0.51 * Jr, 600.0 - 0.51 * Jr, 500.0 - Jr))
        reaction_wheel(builder, "rotor", "brick", (0, 0, 1), inertia=Jr)
        model = builder.build()
        poles = linearize(model, model.neutral(), [0, 0, spin, h / Jr]).poles()
        inner = poles[
            np.abs(np.abs(poles.imag) - spin) > 0.03
        ]  # the others are the turn of the axes themselves
        found = np.abs(inner.imag).max() if part == "frequency" else poles.real.max()
        yield Check(
            f"h = {h:g}: {part} [rad/s]", found, expected, 1e-9, "exact linear model; ten digits are given"
        )


@case(
    source=f"Conservation of momentum: a hub and its wheel; {SCRIPT}",
    kind="closed form",
    tags=("tree", "simulation"),
)
def wheel_against_hub(inertia: float = 0.159154943092) -> Items:
    """A wheel at 100 rpm takes 0.2 N m from 5 s on; hub and wheel at 10 s."""
    builder = one_body("hub", principal(10.0, (2, 2, 2)), Revolute(), "turn")
    reaction_wheel(builder, "wheel", "hub", (0, 0, 1), inertia=inertia)
    model = builder.build()
    torque = Table([0.0, 5.0], [0.0, 0.2], "hold")
    run = simulate(
        model, None, [0.35, 100 * math.pi / 30], duration=10.0, step=0.1, integrator="rk4", efforts={"wheel": torque},
    )  # fmt: skip
    reason = "motion of second degree: RK4 is exact but for rounding"
    yield Check("hub [rad/s]", run.v[-1, 0], -0.15, 1e-12, reason)
    yield Check("hub [rad]", run.q[-1, 0], 2.25, 1e-12, reason)
    yield Check("wheel [rad/s]", run.v[-1, 1], 17.2551608191, 1e-9, "ten decimals are given")


@case(
    source="""Kurokawa, Survey of theory and steering laws of single-gimbal control moment gyros, J. Guidance 30 (2007)
    1331: the pyramid with cos(beta) = 0.6""",
    kind="closed form",
    tags=("tree",),
)
def gyro_pyramid_momentum() -> Items:
    """Four gyros on a pyramid: manipulability, a singular set of angles, momentum at saturation, in the multibody model."""
    builder = one_body("hub", Inertia.box(100.0, (1, 1, 1)))
    skew = math.degrees(math.acos(0.6))
    gyros = gyro_pyramid(builder, "cmg", "hub", skew_deg=skew, momentum=1.0, rotor_inertia=0.01)
    model = builder.build()

    def momentum(angles: np.ndarray) -> np.ndarray:
        q, v = model.neutral(), np.zeros(model.nv)
        for gyro, angle in zip(gyros, angles, strict=True):
            q[model.q_slice(gyro.name)] = angle
            v[model.v_slice(gyro.rotor)] = gyro.speed
        return model.momentum(q, v)[:3]

    A, _ = gyro_jacobian(gyros, np.zeros(4))
    yield Check("sqrt(det(A A')) at zero", math.sqrt(np.linalg.det(A @ A.T)), 1.152, 1e-12, "rounding")
    singular = np.radians([-90, 0, 90, 0])
    A, _ = gyro_jacobian(gyros, singular)
    yield Check("det(A A') at (-90, 0, 90, 0) deg", np.linalg.det(A @ A.T), 0.0, 1e-12, "rounding")
    yield Check("H there", momentum(singular), (1.2, 0, 0), 1e-12, "rounding, in the multibody model")
    for name, u, expected in (
        ("x", (1, 0, 0), 3.2),
        ("z", (0, 0, 1), 3.2),
        ("111", (1, 1, 1), 3.164190038944),
    ):
        way = np.array(u) / np.linalg.norm(u)
        angles = []
        for gyro in gyros:
            s, g = np.array(gyro.spin_axis), np.array(gyro.gimbal_axis)
            angles.append(math.atan2(way @ np.cross(g, s), way @ s))
        yield Check(
            f"saturation along {name}",
            momentum(np.array(angles)) @ way,
            expected,
            1e-11,
            "12 digits are given",
        )


@case(
    source=f"{SCRIPT}, to 3e-5 m: circular 6778.137 km, 51.6 deg, J2 = 1.08262668e-3",
    kind="reference",
    tags=("tree", "simulation"),
)
def a_day_with_j2(flights: FlightProgram, step: float = 5.0) -> Items:
    """Position and node after a day with J2, as a deviation from a reference orbit (Encke); a Sun-synchronous orbit."""
    orbit = Orbit(6778137.0, 0.0, math.radians(51.6))
    r, u = flights.load().orbit(orbit, 1.08262668e-3, 86400.0, step)
    expected = (-5880870.87156, -1754413.71907, -2850694.63701)
    yield Check(
        "position [m]", r, expected, 2e-4, "the reference to 3e-5; RK4 at 5 s to 1e-4 (order 4 from 10 s)"
    )
    node = math.degrees(Orbit.of_state(r, u).node) - 360.0
    yield Check("node [deg]", node, -5.000811, 1e-6, "six decimals are given")
    secular = math.degrees(orbit.secular_rates(1.08262668e-3)[0]) * 86400.0
    yield Check("its secular part [deg]", secular, -5.002322, 1e-6, "six decimals are given")
    yield Check(
        "Sun-synchronous at 700 km [deg]",
        math.degrees(sun_synchronous(700e3)),
        98.187982,
        1e-6,
        "six decimals",
    )


@case(
    source="""SciPy's DOP853 at 3e-14 in the centre of the Earth, zonal terms by Legendre polynomials: perigee 500 km, 1 rad,
    J2 to J6""",
    kind="independent program",
    tags=("tree", "simulation"),
)
def ten_days_with_zonal_terms(step: float = 5.0) -> Items:
    """Position after ten days with J2 to J6, as a deviation from a reference orbit (Encke)."""
    terms = {2: 1.08262668e-3, 3: -2.53266e-6, 4: -1.61963e-6, 5: -2.2730e-7, 6: 5.4068e-7}
    orbit = Orbit(6878137.0, 0.001, 1.0, 0.2, 0.3, 0.1)
    environment = Environment(world=Encke(orbit))
    model = one_body("ball", Inertia.box(100.0, (1, 1, 1))).build()
    q, v = environment.start(model, orbit, attitude="inertial")
    run = simulate(
        model, q, v, duration=864000.0, step=step, interval=864000.0, integrator="rk4",
        gravity=environment.gravity(degree=6, harmonics=terms, gradient=False),
    )  # fmt: skip
    r, _ = environment.inertial(run)
    expected = (-5103507.72064, 4260920.56092, 1773651.37980)
    yield Check(
        "position [m]", r[-1], expected, 0.5, "RK4 at 5 s: 56 m at 20 s and 3.5 m at 10 s, by order 4"
    )


@case(
    source=f"Decay of a circular orbit, da/dt = -CdA/m rho sqrt(mu a), and {SCRIPT}",
    kind="reference",
    tags=("tree", "simulation"),
)
def orbit_decay() -> Items:
    """Semi-major axis after ten days of drag in an exponential atmosphere that does not turn."""
    orbit = Orbit(6778137.0)
    environment = Environment(world=Encke(orbit, j2=0.0))
    model = one_body("ball", Inertia.box(100.0, (1, 1, 1))).build()
    q, v = environment.start(model, orbit, attitude="inertial")
    air = Exponential(4e-12, 400e3, 60e3)
    run = simulate(
        model, q, v, duration=864000.0, step=5.0, interval=864000.0, integrator="rk4",
        gravity=environment.gravity(degree=0, gradient=False),
        forces=environment.drag(Facet("ball", 2.0), air, corotation=0.0),
    )  # fmt: skip
    r, u = environment.inertial(run)
    found = Orbit.of_state(r[-1], u[-1]).semi_axis
    yield Check("semi-major axis [m]", found, 6769664.3227, 0.2, "RK4 at 5 s: from 22 m at 20 s by order 4")


@case(source="Shadow of a sphere: asin(R/a)/pi at beta = 0, as a cylinder", kind="closed form")
def eclipse_fraction() -> Items:
    """The part of a circular orbit at 400 km that is dark, umbra and half the penumbra."""
    sun, a = ca.DM([149597870700.0, 0, 0]), 6778137.0
    r = ca.SX.sym("r", 3)
    light = ca.Function("light", [r], [sunlit(r, sun)])
    angles = 2 * np.pi * (np.arange(4000) + 0.5) / 4000
    for beta, expected in ((0.0, 0.390099618), (60.0, 0.263328610)):
        b = math.radians(beta)
        places = a * np.stack([-np.cos(angles) * math.cos(b), np.sin(angles), np.cos(angles) * math.sin(b)])
        dark = 1 - float(np.mean(np.array(light(places))))
        yield Check(
            f"beta = {beta:g} deg", dark, expected, 1.5e-3, "a cone, not a cylinder: half a degree of 360"
        )


@case(
    source=f"Clohessy, Wiltshire, Terminal guidance system for satellite rendezvous (1960): two impulses; {SCRIPT}",
    kind="published",
    tags=("tree", "simulation"),
)
def rendezvous_impulses(rate: float = 1.1e-3, duration: float = 1500.0) -> Items:
    """From (100, -1000, 50) m at rest with the first impulse to the origin, and the second one there."""
    model = one_body("chaser", Inertia.box(10.0, (1, 1, 1))).build()
    start, first = np.array([100.0, -1000.0, 50.0]), np.array([-0.772145276, 0.140676885, 0.004365334])
    turning = np.array([0.0, 0.0, rate])
    q, v = model.neutral(), np.zeros(6)
    q[:3], v[3:] = start, first + np.cross(turning, start)
    run = simulate(
        model, q, v, duration=duration, integrator="dop853", tolerance=1e-11, gravity=GravityGradient(rate)
    )
    c, s = math.cos(rate * duration), math.sin(rate * duration)
    back = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    x = back @ run.q[-1, :3]
    R = model.frame_pose(run.q[-1], "chaser").rotation
    second = -(back @ (R @ run.v[-1, 3:] - np.cross(turning, run.q[-1, :3])))
    reason = "nine decimals of the first impulse, times some 3000 s"
    yield Check("place at the end [m]", x, np.zeros(3), 3e-6, reason)
    yield Check("second impulse [m/s]", second, (-0.670530013, -0.360676885, 0.055172966), 5e-9, reason)


@case(
    source="Beletsky, Levin, Dynamics of Space Tether Systems (1993): tension 3 n^2 m L, librations sqrt(3) n and 2 n",
    kind="closed form",
    tags=("tree", "linearisation"),
)
def vertical_tether() -> Items:
    """A rigid tether of 20 km between 100 and 400 kg at 300 km: its tension, and its librations."""
    n = math.sqrt(3.986004418e14 / 6678137.0**3)
    builder = ModelBuilder("tether", gravity=(0, 0, 0))
    builder.body("lower", Inertia.point(400.0, (0, 0, 4000.0)), joint=Spherical(), joint_name="attitude")
    builder.body(
        "upper", Inertia.point(100.0), joint=Prismatic((0, 0, -1)), joint_name="length", parent="lower",
        placement=(0, 0, -16000.0),
    )  # fmt: skip
    builder.body(
        "thread", Inertia(1e-3, (0, 0, 0), (1, 0, 1, 0, 0, 1)), joint=Prismatic((1, 0, 0)), parent="lower"
    )
    model = builder.build()
    forces = Forces(model, GravityGradient(n, (0, 0, -1), (0, -1, 0)))
    q, v = model.neutral(), np.zeros(model.nv)
    v[:3] = [0, -n, 0]
    tension = -(model.inverse_dynamics(q, v, np.zeros(model.nv)) - forces.efforts(q, v))[3]
    yield Check("tension [N]", tension, 6.424111060, 1e-8, "ten digits; the thread beside the line is 1 g")
    poles = _librations((1e6, 1e6, 1e-3), n)
    imaginary = np.sort(np.unique(np.round(poles.imag[poles.imag > 1.5], 6)))
    yield Check(
        "librations / n",
        imaginary,
        [math.sqrt(3), 2.0],
        2e-6,
        "a body of 1e9 times the inertia across its axis",
    )


@case(source=f"Law m = k H x B/B^2: an exponential across the field; {SCRIPT}", kind="closed form")
def magnetic_momentum_unloading() -> Items:
    """Momentum (3, 4, 0) in a field along (0, 1, 1), after the time 1/k."""
    B, H, n = 3e-5 * np.array([0.0, 1.0, 1.0]), np.array([3.0, 4.0, 0.0]), 400
    for _ in range(n):
        middle = H + np.cross(magnetic_unloading(H, B, 1.0), B) / (2 * n)
        H = H + np.cross(magnetic_unloading(middle, B, 1.0), B) / n
    expected = (1.103638324, 2.735758882, 1.264241118)
    yield Check("momentum [N m s]", H, expected, 1e-5, "the midpoint rule: 4/(6 n^2)")


@case(
    source="""NRLMSIS 2.0 (Emmert and others 2021), value of the package pymsis: 400 km over 0 N, 0 E, 2020-01-01T12 UTC,
    F10.7 = 150, ap = 7""",
    kind="independent program",
    needs=("pymsis",),
)
def density_of_the_upper_atmosphere() -> Items:
    """A table of density over height made by MSIS, at one of its heights."""
    table = msis_profile(Epoch.of("2020-01-01T12:00:00"), f107=150.0, ap=7.0)
    reason = "pymsis takes version 2.1, the value is of 2.0"
    yield Check("density [kg/m^3]", float(table.at(400e3)), 4.754317e-12, 4.8e-15, reason)


@case(
    source="""IAGA, International Geomagnetic Reference Field, 14th generation; values of the package ppigrf at
    60 N, 5.3 E, 1 km, 28 March 2021""",
    kind="independent program",
)
def geomagnetic_field() -> Items:
    """East, north and up at a place on the ground."""
    latitude, longitude, height = math.radians(60.0), math.radians(5.3), 1000.0
    e2 = FLATTENING * (2 - FLATTENING)
    N = EQUATOR / math.sqrt(1 - e2 * math.sin(latitude) ** 2)
    c, s, cl, sl = math.cos(latitude), math.sin(latitude), math.cos(longitude), math.sin(longitude)
    r = np.array([(N + height) * c * cl, (N + height) * c * sl, (N * (1 - e2) + height) * s])
    B = -1e9 * np.array(igrf(2021 + 86 / 365).slope(ca.DM(r))).ravel()
    axes = np.array([[-sl, cl, 0], [-s * cl, -s * sl, c], [c * cl, c * sl, s]])
    reason = "a day of a field that changes by up to 60 nT a year"
    yield Check("east, north, up [nT]", axes @ B, (463.783, 15173.140, -48852.947), 0.5, reason)


@case(
    source="""A plate in sunlight (Montenbruck, Gill, Satellite Orbits, section 3.4): P = 4.56e-6, 10 m^2, 30 deg,
    0.3 mirrored, 0.2 scattered""",
    kind="closed form",
    tags=("tree",),
)
def plate_in_sunlight() -> Items:
    """Force on a plate that mirrors 0.3 and scatters 0.2 of the light, along its normal and across."""
    model = one_body("ball", Inertia.box(100.0, (1, 1, 1))).build()
    environment = Environment(Epoch.of("2026-03-01T12:00:00"))
    q, v = environment.start(model, Orbit(6778137.0), attitude="inertial")
    s = np.array(environment.sun(0.0)).ravel() - q[:3]
    distance = float(np.linalg.norm(s))
    s /= distance
    side = np.cross(s, [0, 0, 1.0])
    side /= np.linalg.norm(side)
    n = math.cos(math.pi / 6) * s - math.sin(math.pi / 6) * side
    across = math.sin(math.pi / 6) * s + math.cos(math.pi / 6) * side
    plate = Facet("ball", 10.0, tuple(n), specular=0.3, diffuse=0.2)
    pressure = 4.56e-6 * (distance / 149597870700.0) ** 2
    light = environment.solar_pressure(plate, shadow=False, pressure=pressure)
    f = Forces(model, light).efforts(q, v)[3:]
    yield Check(
        "force [N]", [f @ n, f @ across], (-4.972543446e-5, -1.382176544e-5), 1e-13, "ten digits are given"
    )
