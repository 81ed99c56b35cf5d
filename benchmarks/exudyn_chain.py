"""A chain as Exudyn's kinematic tree, integrated by its explicit Runge-Kutta method of order 4."""

from __future__ import annotations

import time
import warnings
from typing import Any

import exudyn
import numpy as np
from exudyn.itemInterface import NodeGenericODE2, ObjectKinematicTree

from alembert import Model

_KINDS = {(0.0, 0.0, 1.0): exudyn.JointType.RevoluteZ, (0.0, 1.0, 0.0): exudyn.JointType.RevoluteY}


class Chain:
    """Made from ours; every link hangs on the one before."""

    solvers = (exudyn.LinearSolverType.EXUdense, exudyn.LinearSolverType.EigenDense)
    """which of them is faster depends on the length"""

    def __init__(self, model: Model, q: np.ndarray, step: float) -> None:
        self.container = exudyn.SystemContainer()
        self.system = self.container.AddSystem()
        self.step, n = step, model.nv
        node = self.system.AddNode(
            NodeGenericODE2(
                referenceCoordinates=[0.0] * n,
                initialCoordinates=q.tolist(),
                initialCoordinates_t=[0.0] * n,
                numberOfODE2Coordinates=n,
            )
        )
        turns, inertias = exudyn.Matrix3DList(), exudyn.Matrix3DList()
        offsets, centers = exudyn.Vector3DList(), exudyn.Vector3DList()
        for body, joint in zip(model.bodies, model.joints, strict=True):
            X = joint.placement.pose({})
            turns.Append(np.asarray(X.rotation, dtype=float))
            offsets.Append(np.asarray(X.translation, dtype=float).ravel())
            centers.Append(np.array(body.inertia.com, dtype=float))
            xx, xy, yy, xz, yz, zz = body.inertia.tensor
            inertias.Append(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float))
        self.node = node
        self.system.AddObject(
            ObjectKinematicTree(
                nodeNumber=node,
                jointTypes=[_KINDS[joint.type.axis] for joint in model.joints],
                linkParents=list(range(-1, n - 1)),
                jointTransformations=turns,
                jointOffsets=offsets,
                linkInertiasCOM=inertias,
                linkCOMs=centers,
                linkMasses=[float(body.inertia.mass) for body in model.bodies],
                gravity=[float(g) for g in model.gravity],
            )
        )
        self.system.Assemble()

    def _solve(self, steps: int, solver: Any) -> float:
        settings = exudyn.SimulationSettings()
        settings.timeIntegration.numberOfSteps = steps
        settings.timeIntegration.endTime = steps * self.step
        settings.timeIntegration.verboseMode = 0
        settings.linearSolverType = solver
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the name it had before 1.13
            settings.solutionSettings.writeSolutionToFile = False
        start = time.perf_counter()
        self.system.SolveDynamic(settings, solverType=exudyn.DynamicSolverType.RK44)
        return time.perf_counter() - start

    def positions(self, steps: int) -> np.ndarray:
        self._solve(steps, self.solvers[0])
        return np.array(self.system.GetNodeOutput(self.node, exudyn.OutputVariableType.Coordinates))

    def time(self, steps: int, solver: Any) -> float:
        """Seconds per step, without what starts a run: a run of one step takes that."""
        short, long = np.min([[self._solve(n, solver) for n in (1, 1 + steps)] for _ in range(25)], axis=0)
        return float(long - short) / steps
