"""A biped of five links walks: one stride of two steps with impacts, at the least effort, and a page of it.

    python 07_walking.py [folder]

In each step one foot stands, the other swings. When the swinging foot hits the ground, it sticks, and the other one leaves:
the same bodies, held elsewhere. So a stride is two phases, of two trees of the same bodies, with links that keep the
momentum about the new foot. The second step leads to where the first one began.
"""

import sys
from pathlib import Path

import casadi as ca
import numpy as np

import alembert as al
from alembert.library.examples import BLUE, ORANGE, STEEL, rod
from alembert.optimal import Phases, Problem, effort, same_bodies

STEP, TIME = 0.4, 0.45
"""length [m] and time [s] of a step"""
HINGE = al.Revolute((0.0, 1.0, 0.0))
LINKS = {"shank": (3.2, 0.4), "thigh": (6.8, 0.4), "torso": (20.0, 0.625)}
"""mass [kg] and length [m], those of the robot RABBIT; as rods"""


def link(kind, up):
    mass, length = LINKS[kind]
    return al.Inertia.rod(mass, (0, 0, 0), (0, 0, length if up else -length))


def standing_on(side):
    """The tree that is held by the foot of this side; all hinges but the one at the ground have motors."""
    other = "right" if side == "left" else "left"
    builder = al.ModelBuilder(f"on the {side} foot")
    leg, hip = (0, 0, LINKS["shank"][1]), (0, 0, LINKS["thigh"][1])
    builder.body(f"{side} shank", link("shank", True), joint=HINGE, joint_name="ankle")
    builder.body(
        f"{side} thigh",
        link("thigh", True),
        joint=HINGE,
        joint_name="knee",
        parent=f"{side} shank",
        placement=leg,
    )
    builder.body(
        "torso", link("torso", True), joint=HINGE, joint_name="hip", parent=f"{side} thigh", placement=hip
    )
    builder.body(
        f"{other} thigh", link("thigh", False), joint=HINGE, joint_name="swinging hip", parent="torso"
    )
    builder.body(
        *(f"{other} shank", link("shank", False)),
        joint=HINGE,
        joint_name="swinging knee",
        parent=f"{other} thigh",
        placement=(0, 0, -LINKS["thigh"][1]),
    )
    builder.frame("foot", f"{other} shank", (0, 0, -LINKS["shank"][1]))
    return builder.build()


def step(model):
    """From wherever the step before leads to a foot that stands a step ahead."""
    return Problem(
        model,
        TIME,
        end={
            "length": (lambda s: s.frame("foot").translation[0], STEP),
            "height": (lambda s: s.frame("foot").translation[2], 0.0),
        },
        limits={
            "q": {"knee": (-1.2, -0.02), "swinging knee": (0.02, 1.6)},
            "tau": {"knee": 150.0, "hip": 150.0, "swinging hip": 150.0, "swinging knee": 150.0},
        },
        path={
            "clearance": (
                lambda s: s.frame("foot").translation[2] - 0.04 * ca.sin(np.pi * s.t / s.duration),
                *(-0.002, np.inf),
            ),
            "lean": (lambda s: s.q[0] + s.q[1] + s.q[2], -0.1, 0.3),
        },
        actuated=["knee", "hip", "swinging hip", "swinging knee"],
        cost=effort(),
    )


def changed(s):
    """The same configuration in the tree that is held by the other foot: angles between bodies change their sign."""
    return ca.vertcat(ca.sum1(s.q), -s.q[4], -s.q[3], -s.q[2], -s.q[1])


def stride():
    left, right = standing_on("left"), standing_on("right")
    links = {
        "right": same_bodies(right, configuration=changed),
        "left": same_bodies(left, configuration=changed),
    }
    walk = Phases({"left": step(left), "right": step(right)}, links=links, cyclic=True)
    # the swinging knee bends in the middle of a step
    first, last = np.array([-0.2, -0.2, 0.45, 0.3, 0.1]), np.array([0.25, -0.1, -0.1, -0.4, 0.1])
    one = {"time": [0, TIME / 2, TIME], "q": [first, (first + last) / 2 + [0, 0, 0, -0.2, 0.6], last]}
    return walk, {"left": one, "right": one}


def forces(motion):
    """On the foot that stands, from the acceleration of the centre of mass: forward and upward [N], at the nodes."""
    model = motion.problem.model
    v = np.array([model.momentum(q, v)[3:] for q, v in zip(motion.q, motion.v, strict=True)])
    total = sum(float(body.inertia.mass) for body in model.bodies)
    push = np.gradient(v, motion.time, axis=0)
    return push[:, 0], push[:, 2] + 9.81 * total


def on_screen():
    """The same bodies in a tree that is held nowhere, to show all steps in one film."""
    builder = al.ModelBuilder("biped")
    builder.world(visuals=[rod((-0.5, 0, -0.01), (3.0, 0, -0.01), 0.01, STEEL)])
    torso, thigh, shank = (LINKS[kind][1] for kind in ("torso", "thigh", "shank"))
    builder.body(
        "torso", link("torso", True), joint=al.Free(), visuals=[rod((0, 0, 0), (0, 0, torso), 0.06, STEEL)]
    )
    for side, color in (("left", BLUE), ("right", ORANGE)):
        down = {"visuals": [rod((0, 0, 0), (0, 0, -thigh), 0.035, color)], "joint_name": f"{side} hip"}
        builder.body(f"{side} thigh", link("thigh", False), joint=HINGE, parent="torso", **down)
        down = {"visuals": [rod((0, 0, 0), (0, 0, -shank), 0.025, color)], "joint_name": f"{side} knee"}
        below = {"parent": f"{side} thigh", "placement": (0, 0, -thigh)}
        builder.body(f"{side} shank", link("shank", False), joint=HINGE, **down, **below)
    return builder.build()


def film(solution, strides):
    model, times, poses = on_screen(), [], []
    for k in range(2 * strides):
        side = ("left", "right")[k % 2]
        motion = solution[side]
        for t, q in zip(motion.time - motion.time[0], motion.q, strict=True):
            hip = motion.problem.model.frame_pose(q, "torso").translation
            lean = (q[0] + q[1] + q[2]) / 2
            standing, swinging = [-q[2], -q[1]], [q[3], q[4]]
            legs = [*standing, *swinging] if side == "left" else [*swinging, *standing]
            poses.append([hip[0] + k * STEP, 0, hip[2], np.cos(lean), 0, np.sin(lean), 0, *legs])
            times.append(k * TIME + t)
    return al.view.Animation(model, np.array(times), np.array(poses), title="A biped walks", trails=["torso"])


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    walk, guess = stride()
    solution = walk.solve(16, guess=guess)
    if not solution.success:
        sys.exit(solution.diagnosis())
    print(
        f"{solution.iterations} iterations, effort {solution.cost:.4f} (N m)^2 s for a stride of {2 * STEP} m"
    )
    for name, motion in solution.items():
        forward, upward = forces(motion)
        ratio = np.abs(forward / upward).max()
        print(
            f"{name}: {upward.min():.0f} to {upward.max():.0f} N on the ground, friction of {ratio:.2f} is enough"
        )
        assert upward.min() > 0
    one, two = solution["left"], solution["right"]
    print(f"both steps are the same to {np.abs(one.q - two.q).max():.0e} rad: nobody has asked for that")
    lost = [m.problem.model.kinetic_energy(m.q[k], m.v[k]) for m, k in ((one, -1), (two, 0))]
    print(f"the impact takes {lost[0] - lost[1]:.1f} J of {lost[0]:.1f} J")
    print(al.view.write_page(folder / "walking.html", [film(solution, 3)], title="A biped walks"))
