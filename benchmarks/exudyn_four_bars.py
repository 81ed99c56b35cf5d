"""A row of four-bar windows in Exudyn: planar bodies with revolute joints, integrated by its implicit solvers."""

from __future__ import annotations

import time
import warnings
from typing import Any

import exudyn
import numpy as np
from exudyn.itemInterface import (
    Force,
    MarkerBodyPosition,
    NodeRigidBody2D,
    ObjectGround,
    ObjectJointRevolute2D,
    ObjectRigidBody2D,
)

SOLVERS = (exudyn.DynamicSolverType.TrapezoidalIndex2, exudyn.DynamicSolverType.GeneralizedAlpha)


class FourBars:
    """IFToMM A02 with `windows` windows, from upright with the tops moving at 1 m/s."""

    def __init__(self, windows: int) -> None:
        self.container = exudyn.SystemContainer()
        self.system = self.container.AddSystem()
        add = self.system
        ground = add.AddObject(ObjectGround(referencePosition=[0, 0, 0]))
        posts = [self._rod([i, 0.5, 0.0], [0.5, 0.0, -1.0], (0, -0.5), (0, 0.5)) for i in range(windows + 1)]
        beams = [self._rod([i + 0.5, 1.0, 0.0], [1.0, 0.0, 0.0], (-0.5, 0), (0.5, 0)) for i in range(windows)]
        for i, post in enumerate(posts):
            foot = add.AddMarker(MarkerBodyPosition(bodyNumber=ground, localPosition=[i, 0, 0]))
            add.AddObject(ObjectJointRevolute2D(markerNumbers=[foot, post[0]]))
        for i, beam in enumerate(beams):
            add.AddObject(ObjectJointRevolute2D(markerNumbers=[posts[i][1], beam[0]]))
            add.AddObject(ObjectJointRevolute2D(markerNumbers=[posts[i + 1][1], beam[1]]))
        self.node = posts[0][2]
        add.Assemble()

    def _rod(self, place: list[float], speed: list[float], *ends: tuple[float, float]) -> list[Any]:
        add = self.system
        node = add.AddNode(NodeRigidBody2D(referenceCoordinates=place, initialVelocities=speed))
        body = add.AddObject(ObjectRigidBody2D(physicsMass=1.0, physicsInertia=1 / 12, nodeNumber=node))
        center = add.AddMarker(MarkerBodyPosition(bodyNumber=body, localPosition=[0, 0, 0]))
        add.AddLoad(Force(markerNumber=center, loadVector=[0, -9.81, 0]))
        markers = [
            add.AddMarker(MarkerBodyPosition(bodyNumber=body, localPosition=[*end, 0])) for end in ends
        ]
        return [*markers, node]

    def run(self, steps: int, duration: float, solver: Any) -> tuple[float, float]:
        """Seconds that it took, and the angle of the first post at the end."""
        settings = exudyn.SimulationSettings()
        settings.timeIntegration.numberOfSteps = steps
        settings.timeIntegration.endTime = duration
        settings.timeIntegration.verboseMode = 0
        settings.timeIntegration.newton.useModifiedNewton = True
        settings.linearSolverType = exudyn.LinearSolverType.EigenSparse
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            settings.solutionSettings.writeSolutionToFile = False
            start = time.perf_counter()
            self.system.SolveDynamic(settings, solverType=solver)
        taken = time.perf_counter() - start
        found = self.system.GetNodeOutput(self.node, exudyn.OutputVariableType.Coordinates)
        return taken, float(np.asarray(found).ravel()[2])
