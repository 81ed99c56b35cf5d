"""Optimal control: published problems, each solved by the sweep in time, on one page.

Run `python examples/05_optimal_control.py [OUTPUT_FOLDER]`. It takes some seconds (more when kernels are compiled for the
first time), prints a table, and leaves `demo-output/optimal.html` with the motions, to open in a browser.
"""

import sys
from pathlib import Path
from time import perf_counter

import casadi as ca
import numpy as np

import alembert as al
from alembert.optimal import Problem, System, duration, effort, running, terminal
from alembert.view import write_page

OUTPUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo-output")
HANGING, UPRIGHT = [-np.pi / 2, 0.0], [np.pi / 2, 0.0]


def swing_up():
    """Two driven links swing up in 1 s (Leyendecker et al. 2009, section 7.1)."""
    model = al.library.two_link()
    problem = Problem(model, 1.0, start={"q": HANGING, "v": 0}, end={"q": UPRIGHT, "v": 0})
    return problem.solve(100)


def acrobot(first=-np.pi / 2):
    """Only the elbow is driven: 4 s to swing up (Sohl and Bobrow 2001, section 5.2)."""
    problem = Problem(
        al.library.acrobot(lengths=(1.0, 1.0)),
        4.0,
        start={"q": [first, 0.0], "v": 0},
        end={"q": UPRIGHT, "v": 0},
    )
    return problem.solve(200)


def branched_acrobot():
    """A trunk on a passive joint, lifted by two legs (Sohl and Bobrow 2001, section 5.3)."""
    problem = Problem(
        al.library.branched_acrobot(),
        4.0,
        start={"q": [-np.pi / 2, 0.3, -0.3], "v": 0},
        end={"q": {"base": np.pi / 2}, "v": 0},
    )
    return problem.solve(100)


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


def two_wheels(full):
    """The same without the wheel about z, from the motion with three."""
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
    return problem.solve(35)


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


def van_der_pol():
    """The damped oscillator: 2.86696."""
    oscillator = System(["x1", "x2"], ["u"], lambda s: [(1 - s.x2**2) * s.x1 - s.x2 + s.u, s.x1])
    cost = running(lambda s: s.x1**2 + s.x2**2 + s.u**2)
    return Problem(oscillator, 5.0, start={"x1": 0, "x2": 1}, cost=cost).solve(100)


def main():
    OUTPUT.mkdir(parents=True, exist_ok=True)
    motions = []
    print("| problem | cost | duration [s] | steps | iterations | seconds |")
    print("|---|---|---|---|---|---|")
    solved = {}
    for make in (
        swing_up,
        acrobot,
        branched_acrobot,
        satellite,
        pitcher,
        brachistochrone,
        bryson_denham,
        van_der_pol,
    ):
        begin = perf_counter()
        solution = make()
        show(make, solution, perf_counter() - begin)
        solved[make] = solution
    begin = perf_counter()
    underactuated = two_wheels(solved[satellite])
    show(two_wheels, underactuated, perf_counter() - begin)
    for make, solution in {**solved, two_wheels: underactuated}.items():
        if solution.model is not None:
            motions.append(solution.motion((make.__doc__ or "").split(":")[0]))
    page = write_page(OUTPUT / "optimal.html", motions, title="Optimal control")
    print(f"The page is {page}.")


def show(make, solution, seconds):
    assert solution.success, solution.diagnosis()
    print(
        f"| {make.__name__.replace('_', ' ')} | {solution.cost:.8g} | {solution.duration:.6g} | {solution.steps} | "
        f"{solution.iterations} | {seconds:.1f} |"
    )


if __name__ == "__main__":
    main()
