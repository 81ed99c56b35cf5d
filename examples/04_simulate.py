"""Simulation that keeps the physics: integrators compared, flight software, events, a batch.

Run `python examples/04_simulate.py [OUTPUT_FOLDER]`. It takes some seconds and leaves one page,
`demo-output/simulate.html`, to open in a browser, and the records of one run as CSV.
"""

import sys
from pathlib import Path
from time import perf_counter

import casadi as ca
import numpy as np
import report

import alembert as al
from alembert.simulate import Drive, Event, Sampled, simulate

OUTPUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output")


def conservation(page: report.Page) -> None:
    """A double pendulum for 100 s: the variational scheme keeps the energy, the explicit ones lose or gain it."""
    model = al.library.two_link()
    curves = {}
    for integrator, step in (("midpoint", 0.01), ("rk4", 0.02), ("variational", 0.01)):
        run = simulate(model, [-0.9, 0.4], duration=100.0, step=step, interval=0.1, integrator=integrator)
        error = np.abs(run.energy - run.energy[0]) / np.max(run.kinetic_energy)
        curves[f"{integrator}, {1e3 * step:g} ms"] = (run.time[1:], np.maximum.accumulate(error)[1:])
        print(
            f"   {integrator:12} energy error after 10 s {error[:100].max():.1e}, after 100 s {error.max():.1e}"
        )
    page.section("Energy over a long time", "The largest error so far, over the largest kinetic energy.")
    page.add(report.log_plot(curves, x_label="time [s]", y_label="energy error"))


def satellite(page: report.Page) -> None:
    """Momentum wheels turn a satellite: a rate loop at 20 Hz, an attitude loop at 2 Hz, both sampled."""
    model = al.library.satellite()
    target = np.array([0.0, 0.0, 0.4])  # rad: rotation vector to turn by
    goal = model.integrate(model.neutral(), np.r_[target, np.zeros(model.nv - 3)])
    asked = np.zeros(3)

    def attitude(t, q, v):
        """Guidance: how fast to turn, from what is left to turn; it drives nothing itself."""
        asked[:] = 0.15 * model.difference(q, goal)[:3]
        return np.zeros(model.nv)

    def rate(t, q, v):
        """The rotors give what the body must get, with the opposite sign."""
        return {f"spin_{axis}": 60.0 * (v[k] - asked[k]) for k, axis in enumerate("xyz")}

    run = simulate(
        model,
        model.neutral(),
        duration=40.0,
        step=0.01,
        interval=0.1,
        controller=[Sampled(attitude, 0.5), Sampled(rate, 0.05, delay=0.01, quantum=1e-4)],
        drives={f"spin_{axis}": Drive(limit=20.0) for axis in "xyz"},
        integrator="variational",
    )
    left = np.linalg.norm(model.difference(run.q[-1], goal)[:3])
    print("   " + str(run.report).replace("\n", "\n   "))
    print(f"   left to turn: {left:.1e} rad of {np.linalg.norm(target):.1f}")
    assert left < 0.02
    assert (
        max(np.max(np.abs(run.momentum)), 0) < 1e-11
    )  # it started at rest and internal torques do not change that
    page.section(
        "A satellite turned by its wheels",
        "Two sampled loops at different rates, with delay and quantisation.",
    )
    page.text(str(run.report))
    OUTPUT.mkdir(parents=True, exist_ok=True)
    print(f"   records: {run.to_csv(OUTPUT / 'satellite.csv')}")


def events(page: report.Page) -> None:
    """A pendulum swings; its lowest points are located and the run stops after the third."""
    model = al.library.pendulum()
    seen = []

    def lowest(t, q, v):
        seen.append(t)

    stop = Event(lambda t, q, v: 2.5 - len(seen), "third", direction=-1)
    run = simulate(
        model,
        [-np.pi / 2],
        duration=10.0,
        tolerance=1e-11,
        events=[Event(lambda t, q, v: q[0], "lowest", action=lowest), stop],
    )
    halves = np.diff([event.time for event in run.events if event.name == "lowest"])
    print(
        f"   half periods {halves[0]:.10f} and {halves[1]:.10f} s; in closed form {2.3678419475762 / 2:.10f} s"
    )
    assert np.allclose(halves, 2.3678419475762 / 2, rtol=0, atol=1e-8)
    page.section("Events", f"Half periods of a pendulum: {halves[0]:.10f} s and {halves[1]:.10f} s.")


def batch(page: report.Page) -> None:
    """A thousand arms fall under a controller that is compiled into the loop."""
    model = al.library.arm7()
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    home = np.array([0.0, 0.5, 0.0, -1.5, 0.0, 1.0, 0.0])
    law = ca.Function("hold", [t, q, v], [200 * (home - q) - 20 * v + model.symbolic.gravity_forces(q)])
    starts = home + np.random.default_rng(0).normal(scale=0.3, size=(1000, 7))
    options = {"duration": 2.0, "step": 1e-3, "interval": 0.1, "controller": law, "integrator": "rk4"}
    simulate(model, starts[:16], **options | {"duration": 0.1})  # compiles
    begin = perf_counter()
    run = simulate(model, starts, **options)
    elapsed = perf_counter() - begin
    alone = simulate(model, starts[7], **options)
    assert np.array_equal(alone.q, run.q[7])
    each = 1e6 * elapsed / 2000 / len(starts)
    line = f"{len(starts)} motions of 2000 steps in {elapsed:.2f} s: {each:.2f} us per RK4 step"
    print(f"   {line}; one alone has the same bits")
    page.section("A batch", line)


def main() -> None:
    page = report.Page("Simulation")
    for number, part in enumerate((conservation, satellite, events, batch), 1):
        print(f"{number}. {part.__doc__}\n")
        part(page)
        print()
    path = page.write(OUTPUT / "simulate.html")
    print(f"The results are in {path}: open it in a browser.")


if __name__ == "__main__":
    main()
