"""A hinged chain of flexible beams in Exudyn: floating frames of reference with Craig-Bampton modes, generalised-alpha.

A beam is a bar of eight-node bricks; its two ends are rigid interfaces, so that it has the six modes in which one end moves
against the other, and more if asked for.
"""

from __future__ import annotations

import itertools
import time
import warnings

import exudyn
import numpy as np
import scipy.sparse
from exudyn.FEM import FEMinterface, HCBstaticModeSelection, ObjectFFRFreducedOrderInterface
from exudyn.itemInterface import GenericJoint, MarkerBodyRigid, MarkerSuperElementRigid, ObjectGround

from benchmarks.flexible import DENSITY, LENGTH, POISSON, WIDTH, YOUNG

BRICKS = 12


def _bar() -> FEMinterface:
    """Mass and stiffness of a bar along x, by Gauss points."""
    corners = np.array(list(itertools.product((-1, 1), repeat=3)), dtype=float)
    size = np.array([LENGTH / BRICKS, WIDTH, WIDTH])
    l, m = YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)), YOUNG / (2 * (1 + POISSON))
    C = np.diag([2 * m] * 3 + [m] * 3)
    C[:3, :3] += l
    M, K = np.zeros((24, 24)), np.zeros((24, 24))
    for point in corners / np.sqrt(3.0):
        factors = 1 + corners * point
        N = factors.prod(axis=1) / 8
        d = np.stack([corners[:, k] * np.delete(factors, k, 1).prod(axis=1) for k in range(3)]) / 8
        d = d * (2 / size)[:, None]
        B = np.zeros((6, 24))
        for k in range(3):
            B[k, k::3] = d[k]
            i, j = (k + 1) % 3, (k + 2) % 3
            B[3 + k, i::3], B[3 + k, j::3] = d[j], d[i]
        weight = size.prod() / 8
        K += weight * B.T @ C @ B
        H = np.kron(N, np.eye(3))
        M += weight * DENSITY * H.T @ H
    places = [(x, y, z) for x in range(BRICKS + 1) for y in (0, 1) for z in (0, 1)]
    number = {place: k for k, place in enumerate(places)}
    n = 3 * len(places)
    total = {"M": np.zeros((n, n)), "K": np.zeros((n, n))}
    for x in range(BRICKS):
        nodes = [number[x + int(a > 0), int(b > 0), int(c > 0)] for a, b, c in corners]
        dofs = np.ravel([[3 * k, 3 * k + 1, 3 * k + 2] for k in nodes])
        total["M"][np.ix_(dofs, dofs)] += M
        total["K"][np.ix_(dofs, dofs)] += K
    fem = FEMinterface()
    grid = np.array(places, dtype=float)
    fem.nodes = {"Position": grid * size - np.array([0, WIDTH / 2, WIDTH / 2])}
    fem.massMatrix, fem.stiffnessMatrix = (scipy.sparse.csr_matrix(x) for x in total.values())
    return fem


class Beams:
    """N of them, each hinged about z to the one before, under gravity along -y."""

    def __init__(self, count: int, step: float) -> None:
        self.container = exudyn.SystemContainer()
        self.system = mbs = self.container.AddSystem()
        self.step = step
        fem = _bar()
        ends = [list(range(4)), list(range(4 * BRICKS, 4 * BRICKS + 4))]
        fem.ComputeHurtyCraigBamptonModes(
            boundaryNodesList=ends, nEigenModes=0, computationMode=HCBstaticModeSelection.RBE2
        )
        body = ObjectFFRFreducedOrderInterface(fem)
        before = mbs.AddMarker(
            MarkerBodyRigid(bodyNumber=mbs.AddObject(ObjectGround()), localPosition=[0, 0, 0])
        )
        weights = np.full(4, 0.25)
        for k in range(count):
            made = body.AddObjectFFRFreducedOrder(
                mbs, positionRef=[k * LENGTH, 0, 0], gravity=[0, -9.81, 0], name=f"beam{k}"
            )
            markers = [
                mbs.AddMarker(
                    MarkerSuperElementRigid(
                        bodyNumber=made["oFFRFreducedOrder"],
                        meshNodeNumbers=np.array(nodes),
                        weightingFactors=weights,
                    )
                )
                for nodes in ends
            ]
            mbs.AddObject(
                GenericJoint(markerNumbers=[before, markers[0]], constrainedAxes=[1, 1, 1, 1, 1, 0])
            )
            before = markers[1]
        self.modes = body.nModes
        mbs.Assemble()

    def _solve(self, steps: int, modified: bool) -> float:
        settings = exudyn.SimulationSettings()
        settings.timeIntegration.numberOfSteps = steps
        settings.timeIntegration.endTime = steps * self.step
        settings.timeIntegration.verboseMode = 0
        settings.timeIntegration.generalizedAlpha.spectralRadius = 0.8
        settings.timeIntegration.newton.useModifiedNewton = modified
        settings.linearSolverType = exudyn.LinearSolverType.EigenSparse
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the name it had before 1.13
            settings.solutionSettings.writeSolutionToFile = False
        start = time.process_time()
        self.system.SolveDynamic(settings)
        return time.process_time() - start

    def time(self, steps: int, *, modified: bool) -> float:
        """Seconds of a step, without what starts a run; `modified` Newton keeps its Jacobian over steps."""
        short, long = np.min([[self._solve(n, modified) for n in (1, 1 + steps)] for _ in range(3)], axis=0)
        return float(long - short) / steps
