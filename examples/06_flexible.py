"""Flexible bodies: a spin-up in three fidelities, a two-link arm, a satellite with panels, a beam that flies.

Run `python examples/06_flexible.py [OUTPUT_FOLDER]`. It takes some seconds and leaves four pages in `demo-output` to open in
a browser: spin-up.html, two-link-arm.html, satellite.html, flying-beam.html. A slider exaggerates small deformations.
"""

import sys
import warnings
from pathlib import Path

import casadi as ca
import numpy as np

import alembert as al
from alembert.flexible import beam
from alembert.simulate import ForceElement, simulate
from alembert.view import write_page

OUTPUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output")


def spun_up(**level: object) -> tuple[al.simulate.Run, np.ndarray]:
    """A boom of 10 m, brought to 6 rad/s in 15 s; the run, and how far its tip lags behind in the turning axes."""
    builder = al.ModelBuilder("spin-up", gravity=(0, 0, 0))
    boom = beam(10.0, 1.2, EI_z=1.4e4, **level)
    builder.body("boom", boom, joint=al.Revolute((0, 0, 1)), joint_name="hub")
    builder.frame("tip", "boom", node="tip")
    model = builder.build()
    t = ca.SX.sym("t")
    angle = 6 / 15 * (t**2 / 2 + (7.5 / np.pi) ** 2 * (ca.cos(np.pi * t / 7.5) - 1))
    turn = ca.Function("turn", [t], [angle])
    run = simulate(
        model, model.neutral(), duration=15.0, prescribed={"hub": turn}, interval=0.05, tolerance=1e-6
    )
    x, y, _ = run.channel("frame:tip.position").values.T
    return run, -np.sin(run.q[:, 0]) * x + np.cos(run.q[:, 0]) * y


def spin_up() -> list[al.view.Animation]:
    """Modes with foreshortening, segments, and modes without: the last diverges, as in programs that leave it out."""
    modes, lag = spun_up(bending_y=3)
    parts, other = spun_up(segments=2)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loose, wrong = spun_up(bending_y=1, stiffening="inconsistent")
    print(f"   largest lag: {lag.min():.4f} m with modes, {other.min():.4f} m with segments")
    print(f"   without foreshortening {np.abs(wrong).max():.3g} m; the run says: {said[-1].message}")
    assert abs(lag.min() - other.min()) < 0.01
    until = int(np.argmax(np.abs(wrong) > 3))  # afterwards the tip is further away than the boom is long
    lags = {
        "three modes": lag,
        "two segments": other,
        "no foreshortening": np.where(wrong > -3, wrong, np.nan),
    }
    lines = {name: np.nan_to_num(line, nan=-3.0) for name, line in lags.items()}
    series = {"lag of the tip [m], cut at 3 m": lines}
    right = al.view.Animation(
        modes.model, modes.time, modes.q, series=series, title="Three modes", trails=["tip"]
    )
    apart = al.view.Animation(parts.model, parts.time, parts.q, title="Two segments", trails=["tip"])
    short = loose.time[:until]
    diverges = al.view.Animation(
        loose.model,
        short,
        loose.q[:until],
        series={"lag of the tip [m]": {"no foreshortening": wrong[:until], "three modes": lag[:until]}},
        title="No foreshortening: wrong",
        notes={
            "it diverges": f"the tip is 3 m away after {short[-1]:.1f} s and {np.abs(wrong).max():.1g} m after 15 s"
        },
    )
    return [right, apart, diverges]


def two_link_arm() -> list[al.view.Animation]:
    """Two flexible links swing; loads in their sections are channels."""
    builder = al.ModelBuilder("flexible arm", gravity=(0, 0, -9.81))
    link = beam(1.0, 0.5, EI_y=6.0, bending_z=2, damping_ratio=0.01)
    builder.body("upper", link, joint=al.Revolute((0, 1, 0)), joint_name="shoulder")
    builder.body("lower", link, joint=al.Revolute((0, 1, 0)), joint_name="elbow", parent="upper", node="tip")
    builder.body("hand", al.Inertia.sphere(0.2, 0.05), joint=al.Fixed(), parent="lower", node="tip")
    model = builder.build()
    run = simulate(model, model.configuration({"shoulder": -0.3}), duration=3.0, interval=0.01)
    moments = {name: run.channel(f"section:{name}.0.5").values[:, 1] for name in ("upper", "lower")}
    print(f"   bending moment in the middle of the upper link up to {np.abs(moments['upper']).max():.2f} N m")
    strain = {name: run.channel(f"strain_energy:{name}").values[:, 0] for name in ("upper", "lower")}
    series = {"bending moment in the middle [N m]": moments, "strain energy [J]": strain}
    return [al.view.Animation(model, run.time, run.q, series=series, title="Two-link arm")]


def satellite() -> list[al.view.Animation]:
    """A satellite turns about an axis by a torque there and back; its panels shake, and momentum comes back to zero."""
    builder = al.ModelBuilder("satellite with panels", gravity=(0, 0, 0))
    box = al.Visual(al.Box((1.0, 1.0, 1.0)), color=(0.6, 0.6, 0.65, 1.0))
    builder.body(
        "hub", al.Inertia.box(20.0, (1.0, 1.0, 1.0)), joint=al.Free(), joint_name="flight", visuals=[box]
    )
    panel = beam(3.0, 0.8, EI_z=20.0, bending_y=2, damping_ratio=0.005)
    for name, angle in (("right", 0.0), ("left", np.pi)):
        where = al.Placement.from_rpy((0, 0, angle), (0.5 * np.cos(angle), 0, 0))
        builder.body(name, panel, joint=al.Fixed(), parent="hub", placement=where)
    model = builder.build()

    def thrusters(t, poses, velocities):
        torque = ca.if_else(t < 4, 1.5 * ca.sin(np.pi * t / 2), 0.0)
        return ca.vertcat(0, 0, torque, 0, 0, 0)

    run = simulate(
        model, duration=12.0, step=0.01, interval=0.05, forces=[ForceElement(("hub",), wrenches=thrusters)]
    )
    bends = {name: run.channel(f"q:{name}").values[:, 0] for name in ("right", "left")}
    print(f"   panels bend by {1e3 * np.abs(bends['right']).max():.1f} mm; both alike, and opposite in space")
    assert np.allclose(bends["right"], bends["left"], atol=1e-9)
    left = np.abs(run.momentum[-1]).max()
    print(f"   angular momentum at the end {left:.1e} N m s: the torque there and back leaves none")
    assert left < 1e-6  # Simpson's rule on steps of 0.01 s leaves 1e-8
    turn = 2 * np.arctan2(run.q[:, 6], run.q[:, 3])
    series = {"tip of the panels [m]": bends, "angle of the hub [rad]": {"about z": turn}}
    return [al.view.Animation(model, run.time, run.q, series=series, title="Satellite with panels")]


def flying_beam() -> list[al.view.Animation]:
    """Simo and Vu-Quoc's beam: thrown by a force and a moment at its end, it bends far; in segments."""
    builder = al.ModelBuilder("flying beam", gravity=(0, 0, 0))
    body = beam(10.0, 1.0, EI_z=500.0, rhoI_z=10.0, kGA_y=1e4, EA=1e4, segments=4)
    builder.body("beam", body, joint=al.Planar(), joint_name="flight")
    builder.frame("end", "beam", node="tip")
    model = builder.build()
    push = ForceElement(("end",), wrenches=lambda t, X, V: ca.SX([0, 0, -80, 8, 0, 0]))
    thrown = simulate(model, duration=2.5, step=2.5e-3, interval=0.05, integrator="rk4", forces=[push])
    flight = simulate(
        model, thrown.q[-1], thrown.v[-1], duration=5.0, step=2.5e-3, interval=0.05, integrator="rk4"
    )
    speed = flight.momentum[:, 3] / model.mass
    spin = flight.momentum[:, 2]
    print(
        f"   in flight: {speed[-1]:.4f} m/s, thrown with 2; angular momentum kept to {np.ptp(spin):.0e} of {spin[0]:.0f}"
    )
    time = np.concatenate([thrown.time, 2.5 + flight.time[1:]])
    q = np.concatenate([thrown.q, flight.q[1:]])
    strain = sum(
        np.concatenate(
            [r.channel(f"strain_energy:{b.name}").values[s:, 0] for r, s in ((thrown, 0), (flight, 1))]
        )
        for b in model.bodies
    )
    series = {"strain energy [J]": {"all segments": strain}}
    notes = {"speed of the centre of mass in flight": f"{speed[-1]:.4f} m/s (2 expected)"}
    return [al.view.Animation(model, time, q, series=series, title="Flying beam", notes=notes)]


def main() -> None:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for title, make in (
        ("Spin-up", spin_up),
        ("Two-link arm", two_link_arm),
        ("Satellite", satellite),
        ("Flying beam", flying_beam),
    ):
        print(title)
        name = title.lower().replace(" ", "-")
        print(f"   page: {write_page(OUTPUT / f'{name}.html', make(), title=title)}")


if __name__ == "__main__":
    main()
