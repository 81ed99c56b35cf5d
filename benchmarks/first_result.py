"""The wait for the first result: fresh processes with an empty cache, in seconds of processor time and of the wall.

`python first_result.py MODEL TASK` is one of those processes. The same model with other masses follows in the same process:
most of its machine code is there already.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.rows import Row

TASKS = ("forward dynamics", "derivatives", "rk4 run", "variational run", "optimal control")
MODELS = {
    "acrobot": 1.0,
    "arm7": 1.0,
    "panda": 1.0,
    "satellite": 1.0,
    "solo12": 2.0,
    "humanoid": 2.0,
    "talos with couplings": 2.0,
    "40 four-bar windows": 2.0,
}
"""with the goal for each of its tasks but optimal control, in seconds of processor time"""
SOLVE = 2.0
"""the goal for any first solve"""
SOLVED = {
    **dict.fromkeys(("acrobot", "arm7"), ("",)),
    "satellite": ("", " by ipopt", " by fatrop", " by radau"),
    "four-bar window": ("", " by ipopt", " by radau"),
}
"""models, and the ways in which their problem is solved: another solver or transcription"""
AGAIN = 0.2
SECOND = ("arm7, then ur5", "chain7, then chain9")
"""models of the same joints, one after the other"""


def rows(*, quick: bool) -> list[Row]:
    from benchmarks.rows import Row

    cells = [(model, task, goal) for model, goal in MODELS.items() for task in TASKS[:-1]]
    cells += [(model, TASKS[-1] + way, SOLVE) for model, ways in SOLVED.items() for way in ways]
    found = []
    for model, task, goal in cells:
        if quick and model not in ("acrobot", "arm7"):
            continue
        taken = _fresh(model, task)
        label = f"first {task}, nothing cached"
        found.append(
            Row(f"first/{task}", f"{label}, processor", model, taken["cpu"], measure="ours", goal=goal)
        )
        found.append(Row(f"first/{task}/wall", f"{label}, wall", model, taken["wall"]))
        label = f"{task} of a heavier one afterwards, processor"
        found.append(Row(f"again/{task}", label, model, taken["again"], measure="ours", goal=AGAIN))
    return found + _beside_peers(quick)


def _beside_peers(quick: bool) -> list[Row]:
    """The same functions of the same arm in other programs, and of other models after an arm."""
    from benchmarks import first_peers
    from benchmarks.rows import Row

    found = []
    for task in first_peers.TASKS[: 1 if quick else None]:
        ours = _fresh("panda7", task)["cpu"]
        for peer in filter(first_peers.available, first_peers.PEERS):
            label = f"first {task}, nothing cached, processor"
            taken = first_peers.taken(peer, task, "panda7")
            theirs = None if taken is None else taken["cpu"]
            if theirs is None:
                label += f" ({peer} did not end in {first_peers.LIMIT:g} s)"
            found.append(Row(f"first/{task}/{peer}", label, "panda7", ours, peer=peer, theirs=theirs))
    for pair in SECOND[: 1 if quick else None]:
        for task in TASKS:
            label = f"{task} of a second model, processor"
            seconds = _fresh(pair, task)["again"]
            found.append(Row(f"second/{task}", label, pair, seconds, measure="ours", goal=AGAIN))
    return found


def _fresh(model: str, task: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "ALEMBERT_CACHE": str(Path(folder) / "cache"),
            "ALEMBERT_INTERPRETER": "",
            "OPENBLAS_NUM_THREADS": "1",
        }
        script = [sys.executable, __file__, model, task]
        found = subprocess.run(script, capture_output=True, text=True, env=environment, check=True)
        return json.loads(found.stdout.splitlines()[-1])


def _model(name: str) -> Any:
    import alembert as al

    if name in al.library.names():
        return al.library.make(name)
    if name.startswith("chain"):
        return al.library.chain(int(name[5:]))
    if "four-bar" in name:
        from alembert.verify.mechanisms import four_bars

        return four_bars(40 if name.startswith("40") else 1)
    if name == "panda7":
        sys.path.insert(0, str(Path(__file__).parents[1]))
        from benchmarks.models import alembert_model

        return alembert_model(name)
    import pinocchio

    robots = Path(pinocchio.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    files = {
        "panda": "panda_description/urdf/panda.urdf",
        "ur5": "ur_description/urdf/ur5_robot.urdf",
        "solo12": "solo_description/robots/solo12.urdf",
        "talos with couplings": "talos_data/robots/talos_full_v2.urdf",
    }
    return al.load(robots / files[name], floating=name not in ("panda", "ur5"))


def _changed(model: Any) -> Any:
    """The same model, heavier."""
    import dataclasses

    def heavier(I: Any) -> Any:
        return dataclasses.replace(I, mass=1.0713 * I.mass, tensor=tuple(1.0713 * x for x in I.tensor))

    bodies = tuple(dataclasses.replace(body, inertia=heavier(body.inertia)) for body in model.bodies)
    return model.replace(bodies=bodies)


def _run(model: Any, task: str) -> None:
    import numpy as np

    import alembert as al

    q, v, tau = model.neutral(), np.zeros(model.nv), np.zeros(model.nv)
    goal = model.integrate(q, np.full(model.nv, 0.1))
    actuated = list(model.speed_names) if model.name == "satellite" else None
    if model.loops:
        from alembert.verify.mechanisms import parallelogram

        q, goal, actuated = parallelogram(model, 0.3, 0.0)[0], parallelogram(model, 0.6, 0.0)[0], ["foot0"]
    if task == "forward dynamics":
        model.forward_dynamics(q, v, tau)
    elif task == "derivatives":
        model.forward_dynamics_derivatives(q, v, tau)
    elif task.endswith("run"):
        al.simulate(model, q, v, duration=0.05, step=1e-3, integrator=task.split()[0])
    else:
        way = task.partition(" by ")[2]
        options = {"transcription" if way == "radau" else "solver": way} if way else {}
        problem = al.optimal.Problem(
            model,
            1.0,
            start={"q": q, "v": v},
            end={"q": goal, "v": v},
            cost=al.optimal.effort(),
            limits=None,
            actuated=actuated,
        )
        problem.solve(40, **options)


def _measure(name: str, task: str) -> dict[str, float]:
    import warnings

    warnings.simplefilter("ignore")
    import alembert.optimal
    import alembert.simulate  # noqa: F401

    first, _, second = name.partition(", then ")
    model = _model(first)
    found = {}
    for key, each in (("cpu", model), ("again", _model(second) if second else _changed(model))):
        cpu, wall = time.process_time(), time.perf_counter()
        _run(each, task)
        found[key] = time.process_time() - cpu
        found.setdefault("wall", time.perf_counter() - wall)
    return found


if __name__ == "__main__":
    print(json.dumps(_measure(*sys.argv[1:])))
