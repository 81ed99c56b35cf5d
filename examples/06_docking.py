"""A vehicle docks off the centre of a target; when it is captured, the controller takes over the mass of both.

The chaser drifts in, its port captures the target's with an impulse, and the pair, which now turns about another centre, is
brought to rest by the target's wheels with gains for the inertia of both. Run it with: python examples/06_docking.py
"""

import numpy as np

import alembert as al
from alembert import spacecraft as sc

builder = al.ModelBuilder("pair", gravity=(0, 0, 0))
builder.body("target", al.Inertia.box(800.0, (2, 2, 2)), joint=al.Free(), joint_name="target_flight")
axes = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
wheels = [
    sc.reaction_wheel(builder, f"wheel_{k}", "target", a, inertia=0.2, torque=2.0, speed=600.0)
    for k, a in axes.items()
]
builder.body("chaser", al.Inertia.box(300.0, (1, 1, 1)), joint=al.Free(), joint_name="chaser_flight")
sc.docking_port(builder, "port", "target", (1.0, 0.6, 0.0))  # off the centre
sc.docking_port(builder, "probe", "chaser", (-0.5, 0, 0), quaternion_wxyz=(0, 0, 0, 1))
model = builder.build()

q0, v0 = model.neutral(), np.zeros(model.nv)
q0[model.q_slice("chaser_flight")][:] = [2.2, 0.6, 0.0, 1, 0, 0, 0]
v0[model.v_slice("chaser_flight").start + 3] = -0.05
event, capture = sc.docking(model, "port", "probe", reach=0.2, speed=0.1, angle=0.1)

alone = np.diag([800.0 / 6 * 4] * 3)
# of both about their common centre, when they touch
d = np.array([1.7, 0.6, 0.0])
m = 800.0 * 300.0 / 1100.0
both = alone + np.diag([300.0 / 6] * 3) + m * (d @ d * np.eye(3) - np.outer(d, d))


def control(t, m):
    """Gains for the inertia of what there is; once the chaser is at the port it stays noted, in a message to itself."""
    gap = np.linalg.norm(m["chaser"] - m["target"][:3] - [1.5, 0.6, 0.0])
    docked = max(float(m["docked"][0]), float(gap < 0.21))
    J = both if docked else alone
    stiffness, damping = sc.gains(J, 0.15)
    h = sc.wheel_momentum(wheels, [m[f"wheel_{k}_speed"][0] for k in axes])
    u = sc.quaternion_feedback(
        m["target"][3:], m["rate"], inertia=J, stiffness=stiffness, damping=damping, momentum=h
    )
    return {"wheels": sc.wheel_torques(wheels, u), "docked": [docked]}


sensors = [
    al.simulate.Measured(al.Sensor("target", "frame", "target"), 0.1),
    al.simulate.Measured(al.Sensor("chaser", "point", "chaser"), 0.1),
    sc.gyro("rate", "target", period=0.1),
    *sc.wheel_speeds(wheels, period=0.1),
]
reads = ("target", "chaser", "rate", "docked", *(f"wheel_{k}_speed" for k in axes))
task = sc.FlightTask("control", control, 0.1, reads, {"wheels": np.zeros(3), "docked": np.zeros(1)})
hardware = sc.Hardware(model, {"wheels": wheels}, 0.1)
run = al.simulate(
    model,
    q0,
    v0,
    duration=80.0,
    step=0.1,
    integrator="rk4",
    events=[event],
    sensors=sensors,
    controller=sc.FlightSoftware([task]).controllers(hardware, sensors),
    progress=False,
)

happened = run.events[0]
print(f"{happened.name} at {happened.time:.3f} s, {happened.quantities['speed']:.3f} m/s")
h = model.momentum(run.q, run.v, about="world")
print(f"momentum kept to {np.abs(h - h[0]).max():.1e} of {np.abs(h[0]).max():.3g} N m s")
turn = np.degrees(2 * np.arccos(np.clip(np.abs(run.q[:, 3]), 0, 1)))
print(f"turned by at most {turn.max():.2f} deg, at the end {turn[-1]:.3f} deg")
assert turn.max() > 10 * turn[-1]
