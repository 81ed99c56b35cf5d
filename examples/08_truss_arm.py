"""A truss of five bays, whose members change their length, reaches past two cubes along a reference curve, and a page of it.

    python 08_truss_arm.py [folder]

An arm of 15 degrees of freedom is told where it ends, and a curve with six control vertices says the rest: how it keeps
clear of the cubes, and how long it is. The bays then follow the curve one after the other (Naccarato and Hughes, 1989).
"""

import sys
from pathlib import Path

import numpy as np

import alembert as al
from alembert.model import Box, Placement, Visual

BAYS, STEPS, CLEARANCE = 5, 50, 0.6
CUBES = [
    Visual(Box((1.0, 1.0, 1.0)), Placement(at), (0.75, 0.25, 0.2, 1.0))
    for at in ((2.2, -0.2, 3.2), (-0.9, 0.4, 4.5))
]

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    arm = al.library.truss_arm(BAYS)
    tip = arm.frame_pose(arm.neutral(), "tip").translation
    ends = tip + np.linspace(0, 1, STEPS)[:, None] * (3.5, 1.0, -2.5)
    straight = al.reach.ReferenceCurve.straight(tip, vertices=6)
    curves = straight.reach(ends, length=(0.6 * tip[2], 1.15 * tip[2]), avoid=CUBES, clearance=CLEARANCE)
    found = al.reach.track_curve(arm, curves, [f"bay{k}.top" for k in range(1, BAYS + 1)])
    off = np.abs(arm.frame_pose(found.q, "tip").translation - ends).max()
    print(
        f"the tip is on its path to {off:.0e} m, loops are closed to {np.abs(arm.constraint_residual(found.q)).max():.0e} m"
    )
    near = min(float(np.min(curves.clearance(cube))) for cube in CUBES)
    long = f"{curves.length.min():.2f} to {curves.length.max():.2f} m long"
    print(f"the curve keeps {near:.2f} m away from the cubes, and is {long}")
    members = {
        f"bay {k}": {
            f"{a}-{b}": found.distance(f"bay{k}.node{a}", f"bay{k}.node{b}")
            for a, b in ((1, 2), (2, 3), (3, 1))
        }
        for k in range(1, BAYS + 1)
    }
    lengths = np.array([line for lines in members.values() for line in lines.values()])
    print(f"actuated members are {lengths.min():.3f} to {lengths.max():.3f} m long")
    film = al.view.Animation(
        arm.replace(visuals=[*arm.visuals, *CUBES]),
        np.linspace(0, 5, STEPS),
        found.q,
        series={f"members of {name} [m]": lines for name, lines in members.items()},
        title="A truss reaches past two cubes",
        trails=["tip"],
    )
    print(al.view.write_page(folder / "truss_arm.html", [film], title="A truss reaches past two cubes"))
