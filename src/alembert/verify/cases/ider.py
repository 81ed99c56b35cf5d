"""Ider 1989: control forces for kinematical constraints, joint drives for flexible robots."""

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from alembert.joints import Revolute
from alembert.model import WORLD, Inertia, Model, ModelBuilder
from alembert.verify.case import Check, Items, Line, Plot, case
from alembert.verify.papers import acc1989


def three_link(lengths: tuple[float, ...], masses: tuple[float, ...], moments: tuple[float, ...]) -> Model:
    builder = ModelBuilder("ider", gravity=(0, 0, 0))
    parent, at = WORLD, 0.0
    for k, (l, m, moment) in enumerate(zip(lengths, masses, moments, strict=True)):
        link = Inertia(m, (l / 2, 0, 0), (moment, 0, moment, 0, 0, moment))
        builder.body(
            f"link{k + 1}",
            link,
            joint=Revolute(),
            joint_name=f"joint{k + 1}",
            parent=parent,
            placement=(at, 0, 0),
        )
        parent, at = f"link{k + 1}", l
    builder.frame("A", parent, (at, 0, 0))
    return builder.equation("path", ["x - 1.9088", "y - 0.9893"], {"x": "A.x", "y": "A.y"}).build()


@case(
    source=acc1989(
        "Ider (control forces)",
        "equations (17)-(19), three-link example; end values computed independently",
    ),
    kind="reference",
    tags=("loops", "simulation", "acc1989"),
    parameters={
        "lengths": (1.0, 1.0, 1.0),
        "masses": (30.0, 18.0, 18.0),
        "moments": (10.0, 8.64, 8.64),
        "start_deg": (60.0, -10.0, -90.0),
        "rates": (0.386, 0.0, -0.9618),
        "speed": -1.0,
    },
    missing="""places of the mass centres (middle of the links here) and gravity (none here); curves only in
    figures; h in (22) is misprinted and was derived anew""",
)
def ider_three_link(
    lengths: tuple[float, ...],
    masses: tuple[float, ...],
    moments: tuple[float, ...],
    start_deg: tuple[float, ...],
    rates: tuple[float, ...],
    speed: float,
) -> Items:
    """A prescribed end-effector path, with reactions along the constraint and with two motors only."""
    model = three_link(lengths, masses, moments)
    q0, v0 = np.deg2rad(start_deg), np.array(rates)
    place = model.frame_pose(q0, "A").translation[:2]
    yield Check("start of the path [m]", place, (1.9088, 0.9893), 5e-5, "four printed digits")
    J = model.frame_jacobian(q0, "A", reference="local_world_aligned")[3:5]
    yield Check("velocity at the start [m/s]", J @ v0, (speed, 0.0), 2e-4, "four digits of the printed rates")
    v0 = v0 + np.linalg.pinv(J) @ (np.array([speed, 0.0]) - J @ v0)

    def solve(q: np.ndarray, v: np.ndarray, motors: Any) -> tuple[np.ndarray, np.ndarray]:
        """(17): M y' + Q + Z^T nu = F with B y' = h; Z = B, or the directions of the motors."""
        found = model.control_forces(q, v, motions={"path": [0.0, 0.0]}, actuators=motors)
        return found.accelerations, found.efforts

    published = {
        "reactions": (None, (80.731, -12.507, -136.090), (-12.771, -5.752, 1.169)),
        "two motors": (["joint2", "joint3"], (87.136, -23.201, -129.133), (0.0, -7.563, 1.557)),
    }
    lines = []
    for name, (directions, angles, moments_0) in published.items():
        found = solve_ivp(
            lambda t, y, d=directions: np.concatenate([y[3:], solve(y[:3], y[3:], d)[0]]),
            (0.0, 1.0),
            np.concatenate([q0, v0]),
            rtol=1e-11,
            atol=1e-12,
            method="DOP853",
            t_eval=np.linspace(0, 1, 51),
        )
        q = found.y[:3].T
        digits = "three printed decimals; the start differs by the four digits of the printed rates"
        yield Check(f"{name}: angles at 1 s [deg]", np.rad2deg(q[-1]), angles, 2e-2, digits)
        yield Check(
            f"{name}: moments at the start [N m]", solve(q0, v0, directions)[1], moments_0, 5e-3, digits
        )
        reduced = model.control_forces(
            q[25], found.y[3:, 25], motions={"path": [0.0, 0.0]}, actuators=directions, method="reduced"
        )
        both = np.max(np.abs(reduced.efforts - solve(q[25], found.y[3:, 25], directions)[1]))
        yield Check(f"{name}: (17) and (18) at 0.5 s [N m]", both, 0.0, 1e-10, "rounding")
        tip = model.frame_pose(q[-1], "A").translation[:2]
        yield Check(
            f"{name}: end of the path [m]",
            tip,
            place + np.array([speed, 0.0]),
            1e-9,
            "constraints on accelerations, integrated",
        )
        lines.append(Line(f"{name}: joint 1", found.t, np.rad2deg(q[:, 0])))
    yield Plot("t [s]", "[deg]", tuple(lines))


@case(
    source=acc1989(
        "Ider (joint drives)",
        "place of the point A at the start",
    ),
    kind="published",
    tags=("tree", "acc1989"),
    parameters={"link1": 1.0, "point": 1.8, "angles_deg": (80.0, -160.0), "m": (30.0, 15.0)},
    missing="""area moment of link 2, boundary conditions of the modes, gravity: only the rigid kinematics are
    used; L2 in (30)-(31) is read as the distance of A""",
)
def ider_flexible_start(
    link1: float, point: float, angles_deg: tuple[float, float], m: tuple[float, float]
) -> Items:
    """The point A on the second link at the start of the path."""
    builder = ModelBuilder("ider_flexible", gravity=(0, 0, 0))
    builder.body("one", Inertia.rod(m[0], (0, 0, 0), (link1, 0, 0)), joint=Revolute(), joint_name="theta1")
    rod = Inertia.rod(m[1], (0, 0, 0), (2.7, 0, 0))
    builder.body("two", rod, joint=Revolute(), joint_name="theta2", parent="one", placement=(link1, 0, 0))
    model = builder.frame("A", "two", (point, 0, 0)).build()
    place = model.frame_pose(np.deg2rad(angles_deg), "A").translation
    yield Check("x, y of A [m]", place[:2], (0.4862, -0.7878), 5e-5, "four printed digits")
