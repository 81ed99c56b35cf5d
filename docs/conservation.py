"""Draw the pictures of docs/integrators.md: what integrators keep over long runs, and their orders.

python docs/conservation.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

import alembert as al

FOLDER = Path(__file__).parent / "images"
COLOURS = {"variational": "#0072b2", "rk4": "#d55e00", "midpoint": "#009e73", "dop853": "#cc79a7"}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    _store(conservation(), "conservation.png")
    figure, slopes = orders()
    _store(figure, "orders.png")
    for name, slope in slopes.items():
        print(f"{name}: {slope:.2f}")


def conservation() -> Figure:
    figure = Figure(figsize=(9, 8.5), layout="constrained")
    energy, momentum, closure = figure.subplots(3, 1)
    _energy(energy)
    _momentum(momentum)
    _closure(closure)
    for axis in (energy, momentum, closure):
        axis.set_yscale("log")
        axis.grid(alpha=0.3)
        axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        axis.set_xlabel("time [s]")
    return figure


def _energy(axis: Any) -> None:
    model, h = al.library.two_link(), 0.01
    for name in ("midpoint", "rk4", "variational"):
        run = al.simulate(model, [-0.9, 0.4], duration=400.0, step=h, interval=0.1, integrator=name)
        error = np.abs(run.energy - run.energy[0]) / run.kinetic_energy.max()
        axis.plot(run.time[1:], np.maximum.accumulate(error)[1:], color=COLOURS[name], label=name)
    axis.set_title(
        f"a double pendulum, steps of {h} s: the largest error of the energy so far", fontsize="medium"
    )
    axis.set_ylabel("of the kinetic energy")


def _momentum(axis: Any) -> None:
    model, h = al.library.satellite(), 0.02
    v = np.r_[0.1, -0.2, 0.05, 0.02, 0.0, 0.01, 1.0, 2.0, 3.0]

    def torques(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.r_[np.zeros(6), 5 * np.sin(t), 3 * np.cos(2 * t), -2 * np.sin(3 * t)]

    for name in ("midpoint", "rk4", "dop853", "variational"):
        given: dict[str, Any] = {"interval": 0.1} if name == "dop853" else {"step": h, "interval": 0.1}
        run = al.simulate(
            model, model.neutral(), v, duration=40.0, controller=torques, integrator=name, **given
        )
        H = run.momentum[:, :3]
        error = np.linalg.norm(H - H[0], axis=-1) / np.linalg.norm(H[0])
        axis.plot(run.time[1:], np.maximum(error[1:], 1e-17), color=COLOURS[name], label=name)
    axis.set_title(
        f"a satellite turned by its rotors, steps of {h} s: change of the angular momentum", fontsize="medium"
    )
    axis.set_ylabel("relative")


def _closure(axis: Any) -> None:
    model, q, v = four_bar()
    for name in ("rk4", "variational"):
        run = al.simulate(model, q, v, duration=20.0, step=0.01, interval=0.05, integrator=name)
        error = np.abs(run.energy - run.energy[0]) / run.kinetic_energy.max()
        gap = np.abs(model.constraint_residual(run.q)).max(axis=-1)
        axis.plot(
            run.time[1:], np.maximum.accumulate(error)[1:], color=COLOURS[name], label=f"{name}: energy"
        )
        shown = np.maximum(np.maximum.accumulate(gap)[1:], 1e-17)
        axis.plot(run.time[1:], shown, ":", color=COLOURS[name], label=f"{name}: loops [m]")
    axis.set_title("a four-bar linkage with two windows, steps of 0.01 s", fontsize="medium")
    axis.set_ylabel("error")


def four_bar() -> tuple[al.Model, np.ndarray, np.ndarray]:
    """IFToMM benchmark A02 with two windows."""
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    up, along = al.Inertia.rod(1.0, (0, 0, 0), (0, 1, 0)), al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    hinge = al.Revolute((0, 0, 1))
    for k in range(3):
        builder.body(f"v{k}", up, joint=hinge, placement=(float(k), 0, 0), joint_name=f"foot{k}")
        builder.frame(f"top{k}", f"v{k}", (0, 1, 0))
    for k in range(2):
        builder.body(f"h{k}", along, joint=hinge, parent=f"v{k}", placement=(0, 1, 0), joint_name=f"head{k}")
        builder.frame(f"end{k}", f"h{k}", (1, 0, 0))
        builder.loop(f"loop{k}", hinge, f"end{k}", f"top{k + 1}")
    model = builder.build()
    v = np.zeros(model.nv)
    for k in range(3):
        v[model.v_slice(f"foot{k}")] = -1.0
    for k in range(2):
        v[model.v_slice(f"head{k}")] = 1.0
    return model, np.zeros(model.nq), v


def orders() -> tuple[Figure, dict[str, float]]:
    """On a body on a spherical joint with a pendulum: errors of (q, v) after half a second."""
    builder = al.ModelBuilder("ball")
    inertia = al.Inertia.box(1.0, (0.2, 0.3, 0.5), (0, 0.1, -0.3))
    builder.body("arm", inertia, joint=al.Spherical())
    builder.body("tip", al.Inertia.box(1.0, (0.2, 0.3, 0.5)), joint=al.Revolute((0.6, 0.8, 0)), parent="arm",
                 placement=(0.1, 0.2, -0.3))  # fmt: skip
    model = builder.build()
    rng = np.random.default_rng(1)
    q, v = model.integrate(model.neutral(), rng.uniform(-0.4, 0.4, model.nv)), rng.uniform(-1, 1, model.nv)
    fine = al.simulate(model, q, v, duration=0.5, step=5e-5, interval=0.5, integrator="rk4")
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axis = figure.subplots()
    slopes = {}
    fixed = [
        (name, order) for name, order, kind, _, _ in al.simulate.integrators() if kind.startswith("fixed")
    ]
    for (name, order), marker in zip(fixed, "os^vD<>P*", strict=True):
        steps = 0.5 / np.array([20, 40, 80, 160, 320])
        errors = []
        for h in steps:
            run = al.simulate(model, q, v, duration=0.5, step=h, interval=0.5, integrator=name)
            errors.append(
                np.linalg.norm(np.r_[model.difference(fine.q[-1], run.q[-1]), run.v[-1] - fine.v[-1]])
            )
        slopes[name] = float(np.polyfit(np.log(steps[2:]), np.log(errors[2:]), 1)[0])
        axis.loglog(steps, errors, marker=marker, markersize=4, label=f"{name}: {slopes[name]:.2f} ({order})")
    axis.set_xlabel("step [s]")
    axis.set_ylabel("error of the state")
    axis.set_title("slopes over the last three steps, and orders", fontsize="medium")
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure, slopes


def _store(figure: Figure, name: str) -> None:
    figure.savefig(FOLDER / name, dpi=90)
    Image.open(FOLDER / name).convert("RGB").quantize(64).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
