"""A space station with an arm that moves: momentum management by the gravity gradient over two orbits.

The arm swings 2000 kg through 90 degrees while large wheels (in the place of control moment gyros) hold the station. The law
gives up some attitude, so that the gravity gradient takes the momentum out again: the station settles at its torque
equilibrium attitude, with its wheels near rest. Run it with: python examples/07_station.py
"""

import casadi as ca
import numpy as np

import alembert as al
from alembert import spacecraft as sc
from alembert.spatial import quaternion

orbit = sc.Orbit.circular(400e3, 51.6)
space = sc.Environment(world=sc.Encke(orbit))
n = orbit.rate

builder = al.ModelBuilder("station", gravity=(0, 0, 0))
hub = al.Inertia(
    2e5, (0, 0, 0), (2.4e7, 0, 3.0e7, 0, 0, 1.1e7)
)  # stable by the gravity gradient: pitch > roll > yaw
builder.body("hub", hub, joint=al.Free(), joint_name="flight")
axes = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
wheels = [
    sc.reaction_wheel(builder, f"wheel_{k}", "hub", a, inertia=200.0, mass=500.0) for k, a in axes.items()
]
builder.body(
    "arm",
    al.Inertia.rod(500.0, (0, 0, 0), (10, 0, 0)),
    joint=al.Revolute((0, 0, 1)),
    joint_name="shoulder",
    parent="hub",
    placement=(5, 0, 0),
)
builder.body(
    "payload", al.Inertia.box(2000.0, (2, 2, 2)), joint=al.Fixed(), parent="arm", placement=(10, 0, 0)
)
model = builder.build()

J = model.mass_matrix(model.neutral())[:3, :3]
pitch, roll_yaw = sc.momentum_management(J, n, angle=0.05, momentum=4000.0)
period = 10.0


def manage(t, m):
    """Angles, rates, momenta and their integrals against the local axes give the torques of the wheels."""
    local = sc.lvlh(m["fix"][:3], m["fix"][3:])
    R = local.T @ np.asarray(quaternion.to_matrix(m["stars"]))
    angles = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    rates = m["rate"] + R.T @ [0, n, 0]
    h = sc.wheel_momentum(wheels, [m[f"wheel_{k}_speed"][0] for k in axes])
    sums = m["sums"] + period * h
    x = np.stack([angles, rates, h, sums], axis=1)
    u = np.zeros(3)
    u[1] = -(pitch @ x[1])[0]
    u[[0, 2]] = -roll_yaw @ np.r_[x[0], x[2]]
    return {"wheels": u, "sums": sums}


sensors = [
    sc.star_tracker("stars", "hub", space, period=period),
    sc.gyro("rate", "hub", period=period),
    sc.position_fix("fix", "hub", space, period=period),
    *sc.wheel_speeds(wheels, period=period),
]
task = sc.FlightTask(
    "manage",
    manage,
    period,
    reads=("stars", "rate", "fix", "sums", *(f"wheel_{k}_speed" for k in axes)),
    writes={"wheels": np.zeros(3), "sums": np.zeros(3)},
)
software = sc.FlightSoftware([task])
hardware = sc.Hardware(model, {"wheels": wheels}, period)

duration = 2 * orbit.period
t = ca.SX.sym("t")
swing = ca.Function(
    "swing", [t], [np.pi / 4 * (1 + ca.tanh((t - 900) / 120))]
)  # through 90 degrees in some ten minutes
q0, v0 = space.start(model, orbit)
gravity = space.gravity()
run = al.simulate(
    model,
    q0,
    v0,
    duration=np.ceil(duration / period) * period,
    step=2.5,
    integrator="rk4",
    gravity=gravity,
    sensors=sensors,
    controller=software.controllers(hardware, sensors),
    prescribed={"shoulder": swing},
    progress=False,
)

balance = sc.momentum_balance(run, {"gravity": gravity})
spins = run.v[:, [model.v_slice(w.name).start for w in wheels]]
h = np.array([sc.wheel_momentum(wheels, spin) for spin in spins])
r, v = space.inertial(run, "hub")
angles = []
for k in range(len(run.time)):
    R = sc.lvlh(r[k], v[k]).T @ model.frame_pose(run.q[k], "hub").rotation
    angles.append(np.degrees([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2)
angles = np.array(angles)
print(
    f"momentum of the wheels: at most {np.abs(h).max():.0f} N m s, at the end {np.linalg.norm(h[-1]):.0f} N m s"
)
print("attitude at the end [deg]:", np.round(angles[-1], 2), "at most", round(float(np.abs(angles).max()), 2))
print(balance)
assert balance.angular_error < 1e-9
