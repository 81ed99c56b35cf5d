"""Optimal control: published problems, each solved by the sweep in time, on one page.

Run `python examples/05_optimal_control.py [OUTPUT_FOLDER] [NAME ...]`. It takes some seconds (minutes when
kernels are compiled for the first time), prints a table, and leaves `demo-output/optimal.html` with the motions, to open
in a browser. Names choose among the problems.
"""

import sys
from pathlib import Path
from time import perf_counter

import casadi as ca
import numpy as np

import alembert as al
from alembert.optimal import Problem, System, continuation, duration, effort, running, terminal
from alembert.view import write_page

OUTPUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output")
HANGING, UPRIGHT = [-np.pi / 2, 0.0], [np.pi / 2, 0.0]


def swing_up():
    """Two driven links swing up in 1 s (Leyendecker et al. 2009, section 7.1)."""
    model = al.library.two_link()
    problem = Problem(model, 1.0, start={"q": HANGING, "v": 0}, end={"q": UPRIGHT, "v": 0})
    return problem.solve(100)


def arm():
    """The same arm from lying to standing in 2 s: it swings down first (Sohl and Bobrow 2001, section 5.1)."""
    problem = Problem(al.library.two_link(), 2.0, start={"q": [0.0, 0.0], "v": 0}, end={"q": UPRIGHT, "v": 0})
    guess = {"time": [0.0, 1.0, 2.0], "q": [[0.0, 0.0], [-3.1, 3.5], UPRIGHT]}
    return problem.solve(100, guess=guess)


def acrobot(first=-np.pi / 2):
    """Only the elbow is driven: 4 s to swing up from hanging (Sohl and Bobrow 2001, section 5.2)."""
    problem = Problem(
        al.library.acrobot(lengths=(1.0, 1.0)),
        4.0,
        start={"q": [first, 0.0], "v": 0},
        end={"q": UPRIGHT, "v": 0},
    )
    return problem.solve(200)


def acrobot_from_1_0():
    """The acrobot from q1 = -1.0, as published."""
    return acrobot(-1.0)


def acrobot_from_1_3():
    """The acrobot from q1 = -1.3, as published."""
    return acrobot(-1.3)


def branched_acrobot():
    """A trunk on a passive joint, lifted by two legs, from q1 = -1.0 (Sohl and Bobrow 2001, section 5.3)."""
    problem = Problem(
        al.library.branched_acrobot(),
        4.0,
        start={"q": [-1.0, 0.0, 0.0], "v": 0},
        end={"q": {"base": np.pi / 2}, "v": 0},
    )
    return problem.solve(100)


def obstacle():
    """The arm reaches round a disc: a bound on the path, made larger step by step (continuation)."""

    def problem(radius):
        def clearance(s):
            return ca.sumsqr(s.frame("tip").translation - np.array([1.3, 0.0, 0.9]))

        return Problem(
            al.library.two_link(),
            1.0,
            start={"q": [-0.3, 0.5], "v": 0},
            end={"q": [1.2, 0.3], "v": 0},
            path={"clearance": (clearance, radius**2, np.inf)},
        )

    return continuation(problem, [0.1, 0.3], 50).last


def four_bar():
    """A closed loop: the crank of a four-bar linkage lifts its coupler and comes to rest."""
    builder = al.ModelBuilder("four_bar", gravity=(0.0, 0.0, -9.81))
    axis = (0.0, -1.0, 0.0)
    lengths = {"crank": 0.4, "coupler": 1.1, "rocker": 0.9}
    rods = {name: al.Inertia.rod(2.0 * l, (0, 0, 0), (l, 0, 0)) for name, l in lengths.items()}
    visuals = {
        name: [
            al.Visual(
                al.Capsule(0.03, l), al.Placement.from_rpy((0.0, np.pi / 2, 0.0), (l / 2, 0.0, 0.0)), color
            )
        ]
        for (name, l), color in zip(
            lengths.items(),
            [(0.88, 0.48, 0.18, 1.0), (0.16, 0.38, 0.68, 1.0), (0.5, 0.55, 0.6, 1.0)],
            strict=True,
        )
    }
    hinge = al.Revolute(axis)
    builder.body("crank", rods["crank"], joint=hinge, joint_name="drive", visuals=visuals["crank"])
    builder.body(
        *("coupler", rods["coupler"]),
        joint=hinge,
        joint_name="knee",
        parent="crank",
        placement=(lengths["crank"], 0, 0),
        visuals=visuals["coupler"],
    )
    builder.body(
        "rocker",
        rods["rocker"],
        joint=hinge,
        joint_name="pivot",
        placement=(1.2, 0, 0),
        visuals=visuals["rocker"],
    )
    builder.frame("coupler_end", "coupler", (lengths["coupler"], 0, 0))
    builder.frame("rocker_end", "rocker", (lengths["rocker"], 0, 0))
    builder.loop("pin", hinge, "coupler_end", "rocker_end").actuator("motor", "drive")
    model = builder.build()
    start = model.assemble([0.0, 0.8, 1.8], fixed=["drive"]).q
    problem = Problem(
        model, 1.0, start={"q": start, "v": 0}, end={"q": {"drive": 2.0}, "v": 0}, actuated=["drive"]
    )
    return problem.solve(50)


def satellite(rotors=3, guess=None):
    """Wheels turn a free body by the rotation vector (pi/14)(1, 2, 3) in 5 s (Leyendecker et al. 2009, 7.2)."""
    model = al.library.satellite(rotors=rotors, torque=1e3)
    axis = np.pi / 14 * np.array([1.0, 2.0, 3.0])
    angle = np.linalg.norm(axis)
    wxyz = np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis / angle]
    problem = Problem(
        model,
        5.0,
        start={"q": model.neutral(), "v": 0},
        end={"q": {"attitude": {"orientation": wxyz}}, "v": 0},
    )
    return problem.solve(50, guess=guess)


def two_wheels():
    """The same without the wheel about z, from the motion with three."""
    full = satellite()
    guess = {"time": full.time, "q": full.q[:, :-1], "v": full.v[:, :-1], "controls": full.controls[:, :-1]}
    return satellite(2, guess)


def pitcher():
    """A pitch: the largest speed of the hand along y, at a time that is free (Leyendecker et al. 2009, 7.3)."""
    model = al.library.pitcher()
    q = model.neutral()
    q[-1] = np.pi / 4
    problem = Problem(
        model,
        (0.1, 1.0),
        start={"q": q, "v": 0},
        end={
            "hand forward": (lambda s: s.frame("hand").translation[1], (0.0, np.inf)),
            "hand up": (lambda s: s.frame("hand").translation[2], (0.0, np.inf)),
        },
        limits={
            "q": {"torso": (-1.2, 1.6), "elbow": (0.0, 2.5)},
            "v": 40.0,
            "tau": {"torso": 150.0, "shoulder": 100.0, "elbow": 60.0},
        },
        cost=terminal(lambda s: -s.velocity("hand")[1]) + 1e-3 * effort(),
    )
    back, forward = model.neutral(), model.neutral()
    back[0], back[-1] = -0.8, 1.8
    forward[0], forward[1:5], forward[-1] = 1.0, (0.8, 0.6, 0.0, 0.0), 0.3
    guess = {"time": [0.0, 0.3, 0.5], "q": np.array([q, back, forward])}
    return problem.solve(35, guess=guess)


def brachistochrone():
    """The fastest slide from (0, 10) to (10, 5): 1.8016031225 s."""
    slide = System(
        ["x", "y", "v"],
        ["slope"],
        lambda s: [s.v * ca.cos(s.slope), s.v * ca.sin(s.slope), -9.80665 * ca.sin(s.slope)],
    )
    problem = Problem(
        slide, (0.5, 5.0), start={"x": 0, "y": 10, "v": 0}, end={"x": 10, "y": 5}, cost=duration()
    )
    guess = {"time": [0, 2], "x": [[0, 10, 0], [10, 5, 9.9]], "controls": [[-1.0], [0.3]]}
    return problem.solve(100, guess=guess)


def bryson_denham():
    """A mass that may not go beyond 1/9: cost 4."""
    cart = System(["x", "v"], ["a"], lambda s: [s.v, s.a])
    problem = Problem(cart, 1.0, start={"x": 0, "v": 1}, end={"x": 0, "v": -1}, limits={"x": (0, 1 / 9)})
    return problem.solve(100)


def hager():
    """Hager's problem: 0.3807970780."""
    system = System(["y"], ["u"], lambda s: [s.y / 2 + s.u])
    cost = running(lambda s: (1.25 * s.y**2 + s.y * s.u + s.u**2) / 2)
    return Problem(system, 1.0, start={"y": 1}, cost=cost).solve(50)


def hypersensitive():
    """Nothing happens for most of 10000 s (Betts, example 10.7): 6.7241. Nodes lie where something does."""
    system = System(["y"], ["u"], lambda s: [-(s.y**3) + s.u])
    cost = running(lambda s: s.y**2 + s.u**2)
    problem = Problem(system, 10000.0, start={"y": 1}, end={"y": 1.5}, cost=cost)
    half = np.concatenate([np.linspace(0, 15, 301)[:-1], np.geomspace(15, 5000, 60)]) / 1e4
    nodes = np.concatenate([half, 1 - half[-2::-1]])
    guess = {"time": [0, 5, 9995, 10000], "x": [[1], [0], [0], [1.5]]}
    return problem.solve(len(nodes) - 1, nodes=nodes, transcription="radau", guess=guess)


def goddard():
    """The greatest height of a rocket (COPS): 1.01283."""
    rocket = System(
        ["h", "v", "m"],
        ["thrust"],
        lambda s: [
            s.v,
            (s.thrust - 310 * s.v**2 * ca.exp(500 * (1 - s.h))) / s.m - 1 / s.h**2,
            -s.thrust / 0.5,
        ],
    )
    problem = Problem(
        rocket,
        (0.01, 1.0),
        start={"h": 1, "v": 0, "m": 1},
        end={"m": 0.6},
        limits={"thrust": (0, 3.5), "v": (0, np.inf), "h": (1, np.inf), "m": (0.6, 1)},
        cost=terminal(lambda s: -s.h),
    )
    guess = {"time": [0, 0.2], "x": [[1, 0.05, 1], [1.01, 0.05, 0.6]], "controls": [[1.7], [1.7]]}
    return problem.solve(200, transcription="trapezoidal", guess=guess)


def van_der_pol():
    """The damped oscillator: 2.86696."""
    oscillator = System(["x1", "x2"], ["u"], lambda s: [(1 - s.x2**2) * s.x1 - s.x2 + s.u, s.x1])
    cost = running(lambda s: s.x1**2 + s.x2**2 + s.u**2)
    return Problem(oscillator, 5.0, start={"x1": 0, "x2": 1}, cost=cost).solve(100)


PROBLEMS = {
    make.__name__.replace("_", " "): make
    for make in (
        *(swing_up, arm, acrobot, acrobot_from_1_0, acrobot_from_1_3, branched_acrobot, obstacle, four_bar),
        *(satellite, two_wheels, pitcher, brachistochrone, bryson_denham, hager, hypersensitive, goddard),
        van_der_pol,
    )
}
USUAL = (
    "swing up",
    "acrobot",
    "branched acrobot",
    "obstacle",
    "satellite",
    "brachistochrone",
    "bryson denham",
)


def main():
    names = sys.argv[2:] or USUAL
    OUTPUT.mkdir(parents=True, exist_ok=True)
    motions = []
    print("| problem | cost | duration [s] | steps | iterations | seconds |")
    print("|---|---|---|---|---|---|")
    for name in names:
        begin = perf_counter()
        solution = PROBLEMS[name]()
        assert solution.success, solution.diagnosis()
        print(
            f"| {name} | {solution.cost:.8g} | {solution.duration:.6g} | {solution.steps} | "
            f"{solution.iterations} | {perf_counter() - begin:.1f} |",
            flush=True,
        )
        if solution.model is not None:
            motions.append(solution.motion((PROBLEMS[name].__doc__ or "").split(":")[0]))
    if motions:
        print(f"The page is {write_page(OUTPUT / 'optimal.html', motions, title='Optimal control')}.")


if __name__ == "__main__":
    main()
