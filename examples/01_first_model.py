"""A first model: build it, load one, compute with them, let them fall.

Run `python examples/01_first_model.py [OUTPUT_FOLDER]`. It takes some seconds and leaves one
page, `demo-output/first_model.html`, to open in a browser.
"""

import sys
from pathlib import Path
from time import perf_counter

import numpy as np
import report

import alembert as al

HERE = Path(__file__).parent
OUTPUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output")


def build_acrobot() -> al.Model:
    """Two rods in a vertical plane; angles are counted from the horizontal, upwards."""
    builder = al.ModelBuilder("acrobot")
    up = al.Revolute(axis=(0, -1, 0))
    builder.body("upper", al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=up, joint_name="shoulder")
    builder.body(
        "lower",
        al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)),
        joint=up,
        joint_name="elbow",
        parent="upper",
        placement=(1, 0, 0),
    )
    builder.frame("tip", "lower", (1, 0, 0))
    builder.actuator("motor", "elbow")
    return builder.build()


def step(model: al.Model, q: np.ndarray, v: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """One step of order 4 without efforts, for one state or a batch; q stays on the configuration manifold.

    Commutator-free Runge-Kutta method of Celledoni, Marthinsen and Owren (2003): the classical one, with
    displacements of q composed by `integrate` instead of added.
    """
    zero = np.zeros(model.nv)

    def slope(q, v):
        return v, model.forward_dynamics(q, v, zero)

    v1, a1 = slope(q, v)
    q2 = model.integrate(q, h / 2 * v1)
    v2, a2 = slope(q2, v + h / 2 * a1)
    v3, a3 = slope(model.integrate(q, h / 2 * v2), v + h / 2 * a2)
    v4, a4 = slope(model.integrate(q2, h * (v3 - v1 / 2)), v + h * a3)
    half = model.integrate(q, h / 12 * (3 * v1 + 2 * v2 + 2 * v3 - v4))
    q_next = model.integrate(half, h / 12 * (-v1 + 2 * v2 + 2 * v3 + 3 * v4))
    return q_next, v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def fall(model: al.Model, q: np.ndarray, *, duration: float, steps: int) -> tuple[np.ndarray, ...]:
    """Times, configurations and speeds of a motion that starts at rest."""
    v = np.zeros(model.nv)
    states = [(q, v)]
    for _ in range(steps):
        q, v = step(model, q, v, duration / steps)
        states.append((q, v))
    return np.linspace(0, duration, steps + 1), *(np.array(x) for x in zip(*states, strict=True))


def energy_error(model: al.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """|E - E(0)|, relative to the largest kinetic energy."""
    energy = model.energy(q, v)
    return np.abs(energy - energy[0]) / np.max(model.kinetic_energy(q, v))


def main() -> None:
    page = report.Page("A first model")

    print("1. Two models: one built here, one from a file\n")
    acrobot = build_acrobot()
    arm = al.load(HERE / "models" / "arm7.toml")
    print(acrobot, arm, sep="\n\n", end="\n\n")
    page.section("Two models", "One built in Python, one read from <code>models/arm7.toml</code>.")
    page.text(f"{acrobot}\n\n\n{arm}")

    print("2. Dynamics of the arm\n")
    rng = np.random.default_rng(0)
    q = arm.random_configuration(rng)
    v, tau = rng.normal(size=(2, arm.nv))
    a = arm.forward_dynamics(q, v, tau)
    back = arm.inverse_dynamics(q, v, a)
    hybrid = arm.hybrid_dynamics(q, v, accelerations={"joint4": 0.0}, torques={"joint1": tau[0]})
    kinetic = arm.kinetic_energy(q, v)
    rows = [
        ("forward dynamics, accelerations [rad/s²]", " ".join(f"{x:.2f}" for x in a)),
        ("inverse dynamics gives the efforts back to within [N m]", f"{np.abs(back - tau).max():.1e}"),
        ("hybrid dynamics, effort that holds joint4 [N m]", f"{hybrid.efforts[3]:.4f}"),
        (
            "½ vᵀ M v equals the kinetic energy to within [J]",
            f"{abs(v @ arm.mass_matrix(q) @ v / 2 - kinetic):.1e}",
        ),
    ]
    assert np.allclose(back, tau, rtol=1e-10, atol=1e-10)

    print("3. A hundred thousand states at once\n")
    count = 100_000
    qs = rng.uniform(arm.lower_limits, arm.upper_limits, size=(count, arm.nq))
    vs, taus = rng.normal(size=(2, count, arm.nv))
    arm.compile("forward_dynamics", batch=True)
    start = perf_counter()
    batch = arm.forward_dynamics(qs, vs, taus)
    elapsed = perf_counter() - start
    same = np.array_equal(batch[7], arm.forward_dynamics(qs[7], vs[7], taus[7]))
    rows += [
        (f"forward dynamics of {count} states [ms]", f"{1e3 * elapsed:.1f}"),
        ("that is, per state [µs]", f"{1e6 * elapsed / count:.3f}"),
        ("one state alone has the same bits as in the batch", "yes" if same else "no"),
    ]
    assert same
    for label, value in rows:
        print(f"   {label}: {value}")
    page.section("Dynamics of the arm", "At a random state, and at a hundred thousand of them.")
    page.table(rows)

    print("\n4. Free fall: energy stays what it was\n")
    duration = 8.0
    start_at = np.array([0.6, 0.5])
    t, qs, vs = fall(acrobot, start_at, duration=duration, steps=8000)
    page.section(
        "The acrobot falls",
        f"Released at rest, no friction, no motor; {duration:g} s. The line is the path of its tip.",
    )
    tips = acrobot.frame_pose(qs, "tip").translation[:, [0, 2]]
    page.add(report.pendulum(t, qs, tips))

    curves = {}
    pitcher = al.library.pitcher()
    thrown = pitcher.integrate(pitcher.neutral(), [0.0, 0.9, 0.6, 0.2, 0.4])
    for name, model, q0 in (
        ("acrobot", acrobot, start_at),
        ("pitcher's arm", pitcher, thrown),
    ):
        errors = []
        for steps in (4000, 8000, 16000):
            t, qs, vs = fall(model, q0, duration=duration, steps=steps)
            error = energy_error(model, qs, vs)
            curves[f"{name}, {1e3 * duration / steps:g} ms"] = (t, np.maximum.accumulate(error))
            print(f"   {name}, {steps} steps: largest energy error {error.max():.1e} of the kinetic energy")
            errors.append(error.max())
        assert errors[0] / errors[1] > 12
    page.section(
        "Energy is kept",
        "The largest error so far, relative to the largest kinetic energy, for three steps of integration. "
        "The method is of order 4: half the step, a sixteenth of the error. The pitcher's arm has a "
        "spherical shoulder, whose quaternion stays one.",
    )
    page.add(report.log_plot(curves, x_label="time [s]", y_label="energy error"))

    path = page.write(OUTPUT / "first_model.html")
    print(f"\nThe results are in {path}: open it in a browser.")


if __name__ == "__main__":
    main()
