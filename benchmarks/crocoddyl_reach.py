"""The reach of a 7-dof arm with Crocoddyl's FDDP: `python crocoddyl_reach.py PROBLEM.json`, in an environment of its own.

Crocoddyl 3.2.1 computes wrong dynamics, without an error, with a Pinocchio newer than 4.0.0; hence the environment, and
the accelerations among the results. The problem file has the bodies of the arm and the numbers of the problem;
what is printed last is JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import crocoddyl  # type: ignore[import-not-found]
import numpy as np
import pinocchio as pin


def _arm(bodies: list[dict]) -> pin.Model:
    """A chain of joints about z."""
    model = pin.Model()
    last = 0
    for k, body in enumerate(bodies):
        place = pin.SE3(np.array(body["rotation"]), np.array(body["translation"]))
        last = model.addJoint(last, pin.JointModelRZ(), place, f"joint{k + 1}")
        xx, xy, yy, xz, yz, zz = body["tensor"]
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        model.appendBodyToJoint(
            last, pin.Inertia(body["mass"], np.array(body["com"]), tensor), pin.SE3.Identity()
        )
    model.armature = np.array([body["armature"] for body in bodies])
    return model


def shooting(given: dict) -> crocoddyl.ShootingProblem:
    """Half the squared efforts over time, and at the end half the weighted squared distance from the goal at rest."""
    model = _arm(given["bodies"])
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)
    running, final = (crocoddyl.CostModelSum(state, model.nv) for _ in range(2))
    effort = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, model.nv))
    running.addCost("effort", effort, 1.0)
    there = np.concatenate([given["goal"], np.zeros(model.nv)])
    rest = crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelState(state, there, model.nv))
    final.addCost("goal", rest, given["weight"])
    steps = given["steps"]

    def action(costs: crocoddyl.CostModelSum, step: float) -> crocoddyl.IntegratedActionModelEuler:
        free = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, costs)
        return crocoddyl.IntegratedActionModelEuler(free, step)

    x0 = np.concatenate([given["start"], np.zeros(model.nv)])
    stage = action(running, given["duration"] / steps)
    problem = crocoddyl.ShootingProblem(x0, [stage] * steps, action(final, 0.0))
    problem.nthreads = 1
    return problem


def main(given: dict) -> dict:
    problem = shooting(given)
    model = problem.terminalModel.state.pinocchio
    q, v, tau = (np.array(given[name]) for name in ("q", "v", "tau"))
    dynamics = problem.runningModels[0].differential
    data = dynamics.createData()
    dynamics.calc(data, np.concatenate([q, v]), tau)
    found = {"accelerations": data.xout.tolist()}
    steps, nv = given["steps"], model.nv
    share = np.linspace(0, 1, steps + 1)[:, None]
    start, goal = np.array(given["start"]), np.array(given["goal"])
    slope = np.tile((goal - start) / given["duration"], (steps + 1, 1))
    guess = [*np.hstack([start + share * (goal - start), slope])]
    guess[0] = problem.x0
    per_iteration, stages = [], []
    for _ in range(given["repeats"]):
        solver = crocoddyl.SolverFDDP(problem)
        solver.th_stop = 1e-9
        began = time.perf_counter()
        converged = solver.solve(guess, [np.zeros(nv)] * steps, 200, False)
        per_iteration.append((time.perf_counter() - began) / max(1, solver.iter))
        xs, us = solver.xs, solver.us
        for _ in range(20):
            began = time.perf_counter()
            problem.calc(xs, us)
            problem.calcDiff(xs, us)
            stages.append((time.perf_counter() - began) / steps)
    found |= {"converged": bool(converged), "cost": float(solver.cost), "iterations": int(solver.iter)}
    versions = {"crocoddyl": crocoddyl.__version__, "pin": pin.__version__}
    return found | {"iteration": min(per_iteration), "stage": min(stages), "versions": versions}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()))))
