"""Recover the inertias and frictions of a 7-dof arm from noisy encoders and torques.

    python examples/03_identify_arm.py [FOLDER]

1. An arm as its drawings describe it (the prior) differs from the arm in the laboratory (the truth).
2. A motion is found that excites all parameters within the limits of positions, speeds and torques.
3. The laboratory's arm runs it twice; encoders and torque sensors have noise.
4. Speeds and accelerations come from the filtered encoder readings; the parameters are identified.
5. The identified model predicts the torques of a motion that it has not seen.
"""

import dataclasses
import sys
import time
from pathlib import Path

import numpy as np

import alembert as al
from alembert.identify import ExcitingTrajectory, Measurements, exciting_trajectory, identify, regressor

FOLDER = Path("demo-output") / "03_identify_arm"
ENCODER_NOISE = 2e-5  # rad
TORQUE_NOISE = np.array([0.4, 0.4, 0.3, 0.3, 0.1, 0.1, 0.1])  # N m
RATE = 250.0  # Hz
PERIOD = 10.0  # s


def drawings(truth: al.Model, rng: np.random.Generator) -> al.Model:
    """The arm as designed: masses off by some 10 %, centres of mass by some mm, friction a guess."""
    bodies = []
    for body in truth.bodies:
        com = tuple(np.array(body.inertia.com) + 0.004 * rng.normal(size=3))
        inertia = dataclasses.replace(body.inertia, com=com).scaled(float(np.exp(0.1 * rng.normal())))
        bodies.append(dataclasses.replace(body, inertia=inertia))
    guess = al.Friction(viscous=(0.5,), coulomb=(0.5,), smoothing=0.01)
    joints = [dataclasses.replace(joint, friction=guess, armature=(0.2,)) for joint in truth.joints]
    return truth.replace(name="arm7", bodies=tuple(bodies), joints=tuple(joints))


def run(truth: al.Model, motion: ExcitingTrajectory, duration: float, rng: np.random.Generator):
    """Times, encoder readings and torque readings of the laboratory's arm on a motion."""
    t = np.arange(0.0, duration, 1 / RATE)
    q, v, a = motion.sample(t)
    tau = truth.inverse_dynamics(q, v, a)
    return t, q + ENCODER_NOISE * rng.normal(size=q.shape), tau + TORQUE_NOISE * rng.normal(size=tau.shape)


def main(folder: Path = FOLDER, iterations: int = 60) -> None:
    start = time.perf_counter()
    rng = np.random.default_rng(1)
    truth = al.library.make("arm7")
    prior = drawings(truth, rng)

    motion = exciting_trajectory(
        prior, duration=PERIOD, functions=5, noise=TORQUE_NOISE, iterations=iterations
    )
    print(
        f"condition number {motion.condition:.3g}, of the random motion to start with {motion.initial_condition:.3g}"
    )

    t, q, tau = run(truth, motion, 2 * PERIOD, rng)
    data = Measurements.from_time_series(prior, t, q, tau, cutoff=8.0)
    result = identify(prior, data)
    print(result)

    q0 = truth.neutral()
    actual = regressor(truth, q0, np.zeros(7), np.zeros(7)).pi
    error = result.base_values - result.base.values(actual)
    z = error / result.base_standard_errors
    print(
        f"\nbase parameters off by {np.sqrt(np.mean(z**2)):.2f} standard errors (rms), at most {np.abs(z).max():.2f}"
    )

    other = exciting_trajectory(prior, duration=6.0, functions=4, seed=7, iterations=5, progress=False)
    q, v, a = other.sample(np.arange(0.0, 6.0, 0.02))
    expected = truth.inverse_dynamics(q, v, a)
    for name, model in (("prior", prior), ("identified", result.model)):
        rms = np.sqrt(np.mean((model.inverse_dynamics(q, v, a) - expected) ** 2, axis=0))
        print(
            f"torques of another motion, rms error, {name:>10}: "
            + "  ".join(f"{x:.3f}" for x in rms)
            + "  N m"
        )

    result.plot(folder)
    print(f"plots in {folder}; {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
