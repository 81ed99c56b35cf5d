"""The scenes of `alembert demo`: each a function that computes a motion and says how well it went.

To add one, write a function that returns a `Scene` and list it in `SCENES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from alembert.model import Model

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Scene:
    """A motion to look at, and lines about it for the terminal and the page."""

    title: str
    model: Model
    time: Array
    q: Array
    series: Mapping[str, Mapping[str, Array]]
    """plots: title -> lines"""
    summary: Sequence[tuple[str, str]]
    """what -> value"""
    options: Mapping[str, Any] = field(default_factory=dict)
    """more for `alembert.view.Motion`: efforts, trails, ..."""


def satellite() -> Scene:
    """A satellite turns by its momentum wheels, under two sampled control loops."""
    from alembert.simulate import Drive, Sampled, simulate

    model = _template("satellite")
    target = np.array([0.9, -0.6, 1.5])  # rad: rotation vector to turn by
    goal = model.integrate(model.neutral(), np.r_[target, np.zeros(model.nv - 3)])
    asked = np.zeros(3)

    def attitude(t: float, q: Array, v: Array) -> Array:
        """How fast to turn, from what is left to turn; it drives nothing itself."""
        asked[:] = 0.25 * model.difference(q, goal)[:3]
        asked[:] *= min(1.0, 0.12 / max(float(np.linalg.norm(asked)), 1e-9))
        return np.zeros(model.nv)

    def rate(t: float, q: Array, v: Array) -> dict[str, float]:
        """The wheels give what the body must get, with the opposite sign."""
        return {f"spin_{axis}": 80.0 * (v[k] - asked[k]) for k, axis in enumerate("xyz")}

    run = simulate(
        model,
        model.neutral(),
        duration=40.0,
        step=0.01,
        interval=0.05,
        controller=[Sampled(attitude, 0.5), Sampled(rate, 0.05, delay=0.01)],
        drives={f"spin_{axis}": Drive(limit=20.0) for axis in "xyz"},
        integrator="variational",
        progress=False,
    )
    left = float(np.linalg.norm(model.difference(run.q[-1], goal)[:3]))
    wheels = [model.v_slice(f"spin_{axis}").start for axis in "xyz"]
    momentum = float(np.max(np.abs(run.momentum)))
    largest = float(np.max(np.abs(run.v[:, wheels])) * 0.2)  # of a wheel: 0.2 kg m^2
    return Scene(
        "A satellite turns by its wheels",
        model,
        run.time,
        run.q,
        {
            "wheel speeds [rad/s]": {axis: run.v[:, k] for axis, k in zip("xyz", wheels, strict=True)},
            "left to turn [rad]": {"angle": np.linalg.norm(model.difference(run.q, goal)[:, :3], axis=-1)},
        },
        [
            ("turned by", f"{np.linalg.norm(target):.2f} rad in {run.time[-1]:g} s, {left:.0e} rad left"),
            ("control", "attitude at 2 Hz, rates at 20 Hz with 10 ms delay, torques within 20 N m"),
            ("total momentum", f"zero to {momentum:.0e} N m s; a wheel has up to {largest:.1f}"),
        ],
        {"efforts": run.efforts, "trails": []},
    )


def whip() -> Scene:
    """A chain of 12 links falls; nothing damps it."""
    from alembert import library
    from alembert.simulate import simulate

    model = library.chain(12, axes=((0.0, -1.0, 0.0),), length=0.25, mass=0.2)
    run = simulate(
        model,
        np.zeros(12),
        duration=10.0,
        interval=0.02,
        progress=False,
    )
    tip = np.linalg.norm(np.gradient(model.frame_pose(run.q, "tip").translation, run.time, axis=0), axis=-1)
    return Scene(
        "A chain of 12 links falls",
        model,
        run.time,
        run.q,
        {
            "energy [J]": {
                "kinetic": run.kinetic_energy,
                "potential": run.potential_energy,
                "total": run.energy,
            },
            "speed of the tip [m/s]": {"tip": tip},
        },
        [
            ("integrator", f"{run.integrator}, {run.steps} steps"),
            ("energy", f"kept to {run.report.energy_error:.0e} of the largest kinetic energy"),
            ("tip", f"up to {tip.max():.1f} m/s"),
        ],
        {"trails": ["tip"]},
    )


def linkage() -> Scene:
    """A four-bar linkage turns, its loop closed all the time."""
    from alembert.simulate import simulate

    model = _template("fourbar")
    state = model.assemble([1.2, -1.0, 1.6], [12.0, 0.0, 0.0], fixed=["drive"])
    run = simulate(model, state.q, state.v, duration=6.0, step=0.004, interval=0.02, progress=False)
    report = run.report
    return Scene(
        "A four-bar linkage turns freely",
        model,
        run.time,
        run.q,
        {
            "speeds [rad/s]": dict(zip(model.speed_names, run.v.T, strict=True)),
            "energy [J]": {
                "kinetic": run.kinetic_energy,
                "potential": run.potential_energy,
                "total": run.energy,
            },
        },
        [
            ("integrator", f"{report.integrator}, {run.steps} steps, projected onto the loop"),
            ("loop", f"closed to {report.constraint_error:.0e} m"),
            ("energy", f"kept to {report.energy_error:.0e} of the largest kinetic energy"),
        ],
        {"trails": ["coupler_end"]},
    )


def _template(name: str) -> Model:
    """The model that `alembert new` writes."""
    from importlib import resources

    from alembert.model.io.native import loads

    path = resources.files("alembert.study").joinpath("templates", name, "model.toml")
    return loads(path.read_text(encoding="utf-8"), name=f"{name}/model.toml")


SCENES: dict[str, Callable[[], Scene]] = {"satellite": satellite, "whip": whip, "linkage": linkage}
