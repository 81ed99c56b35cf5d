"""Balance an acrobot: find a posture, linearise about it, look at its modes, stabilise it.

python examples/02_linearise.py
"""

import numpy as np

import alembert as al


def main() -> None:
    model = al.library.acrobot()

    # The elbow is held bent by 0.4 rad; where must the shoulder be, and what must the motor do?
    posture = al.trim(model, q=[np.pi / 2, 0.0], fixed={"elbow": 0.4}, free=["shoulder", "elbow_motor"])
    print(posture)
    print(f"{posture.stability}, centre of mass at x = {model.center_of_mass(posture.q)[0]:.1e} m\n")

    linear = posture.linearize(outputs=["elbow", "frame:tip.position"])
    print(linear)
    print("controllable:", linear.controllable())
    print("observable:  ", linear.observable(), "\n")

    # One motor for two joints: poles are placed, the modes cannot be decoupled.
    regulator = al.linear.place_poles(linear, [-4 + 1j, -4 - 1j, -6 + 1j, -6 - 1j])
    start = model.integrate(posture.q, [0.03, -0.05])
    run = al.simulate(model, start, duration=3.0, interval=0.5, controller=regulator)
    for t, off in zip(run.time, model.difference(posture.q, run.q), strict=True):
        print(f"t = {t:.1f} s: {off[0]:+.2e}, {off[1]:+.2e} rad from the posture")

    # How do the poles of the hanging arm move when rates are fed back to both motors?
    arm = al.library.two_link()
    hanging = al.linearize(arm, [-np.pi / 2, 0.0], outputs=["v"])
    locus = hanging.root_locus(np.eye(2), np.linspace(0.0, 4.0, 5))
    print("\nrate feedback on the hanging two-link:")
    for gain, poles in zip(locus.gains, locus.poles, strict=True):
        print(f"  {gain:3.1f} N m s/rad: " + ", ".join(f"{pole:.3f}" for pole in poles))

    print("\nthe derivatives behind all this:")
    al.check.derivatives(model)


if __name__ == "__main__":
    main()
