"""A model built in Exudyn as a kinematic tree, and asked in Alembert's coordinates."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

import numpy as np

from alembert.errors import UnsupportedError
from alembert.joints.closure import across
from alembert.model import WORLD, Model
from alembert.verify.programs import OtherDynamics, check_tree

Array = np.ndarray
exudyn: Any = import_module("exudyn")
items: Any = import_module("exudyn.itemInterface")
"""its types are those of an older release"""

JOINTS = {"revolute": exudyn.JointType.RevoluteZ, "prismatic": exudyn.JointType.PrismaticZ}


class InExudyn(OtherDynamics):
    """`alembert.verify.programs.Dynamics` by Exudyn: its mass matrix and its forces; it gives no potential energy."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._container = exudyn.SystemContainer()
        self._system = self._container.AddSystem()
        _add_tree(self._system, model)
        self._system.Assemble()
        self._solver = exudyn.MainSolverImplicitSecondOrder()
        self._settings = exudyn.SimulationSettings()
        self._settings.timeIntegration.verboseMode = 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the name it had before 1.13
            self._settings.solutionSettings.writeSolutionToFile = False
        self._solver.InitializeSolver(self._system, self._settings)

    def mass_matrix(self, q: Any) -> Array:
        self._set(q, np.zeros(self.model.nv))
        self._solver.ComputeMassMatrix(self._system)
        return np.array(self._solver.GetSystemMassMatrix())

    def bias_forces(self, q: Any, v: Any) -> Array:
        self._set(q, v)
        self._solver.ComputeODE2RHS(self._system)
        return -np.array(self._solver.GetSystemResidual())[: self.model.nv]

    def forward_dynamics(self, q: Any, v: Any, tau: Any) -> Array:
        return np.linalg.solve(self.mass_matrix(q), np.asarray(tau) - self.bias_forces(q, v))

    def inverse_dynamics(self, q: Any, v: Any, a: Any) -> Array:
        return self.mass_matrix(q) @ np.asarray(a) + self.bias_forces(q, v)

    def potential_energy(self, q: Any) -> float:
        raise UnsupportedError("exudyn: a kinematic tree gives no potential energy")

    def _set(self, q: Any, v: Any) -> None:
        data = self._system.systemData
        data.SetODE2Coordinates(np.asarray(q, dtype=float))
        data.SetODE2Coordinates_t(np.asarray(v, dtype=float))


def _add_tree(system: Any, model: Model) -> None:
    """Hinges and slides; anything else is refused. Links have their joint's axis along z."""
    check_tree("exudyn", model, JOINTS, ("spring", "friction", "rotors", "armature"))
    turns, inertias = exudyn.Matrix3DList(), exudyn.Matrix3DList()
    offsets, centers = exudyn.Vector3DList(), exudyn.Vector3DList()
    kinds, parents, masses = [], [], []
    numbers, axes = {WORLD: -1}, {WORLD: np.eye(3)}
    for k, (body, joint) in enumerate(zip(model.bodies, model.joints, strict=True)):
        X, R = joint.placement.pose({}), _with_z_along(joint.type.axis)  # type: ignore[attr-defined]
        before = axes[joint.parent]
        turns.Append(before.T @ np.asarray(X.rotation, dtype=float) @ R)
        offsets.Append(before.T @ np.asarray(X.translation, dtype=float).ravel())
        centers.Append(R.T @ [model.value(x) for x in body.inertia.com])
        inertias.Append(R.T @ body.inertia.matrix() @ R)
        masses.append(model.value(body.inertia.mass))
        kinds.append(JOINTS[joint.type.kind])
        parents.append(numbers[joint.parent])
        numbers[body.name], axes[body.name] = k, R
    n, zero = model.nv, [0.0] * model.nv
    node = system.AddNode(
        items.NodeGenericODE2(
            referenceCoordinates=zero,
            initialCoordinates=zero,
            initialCoordinates_t=zero,
            numberOfODE2Coordinates=n,
        )
    )
    system.AddObject(
        items.ObjectKinematicTree(
            nodeNumber=node,
            jointTypes=kinds,
            linkParents=parents,
            jointTransformations=turns,
            jointOffsets=offsets,
            linkInertiasCOM=inertias,
            linkCOMs=centers,
            linkMasses=masses,
            gravity=[model.value(g) for g in model.gravity],
        )
    )


def _with_z_along(axis: Any) -> Array:
    """A rotation whose third column is the axis."""
    z = np.asarray(axis, dtype=float)
    return np.stack([*across(z), z], axis=1)
