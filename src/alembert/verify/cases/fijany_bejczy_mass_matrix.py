"""Fijany and Bejczy 1989."""

import numpy as np

from alembert import library
from alembert.verify.case import Check, Items, case
from alembert.verify.papers import acc1989
from alembert.verify.programs import Program
from alembert.verify.random_models import ROUNDING_REASON


@case(
    source=acc1989(
        "Fijany, Bejczy",
        "variant of Newton-Euler based algorithm, (25)-(30)",
    ),
    kind="published",
    tags=("tree", "acc1989", "random"),
    parameters={"joints": 6, "seed": 8},
)
def fijany_bejczy_mass_matrix(program: Program, joints: int, seed: int) -> Items:
    """The mass matrix of a random 6R arm, column by column from unit accelerations.

    (10) of the paper omits H x V' and (13) prints j + 1; (25)-(30) are right.
    """
    model = library.random_tree(seed, bodies=joints, kinds=("revolute",), branching=0.0)
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(3):
        q = model.random_configuration(rng)
        X = [model.frame_pose(q, body.name) for body in model.bodies]
        Z = [x.rotation @ np.array(j.type.axis) for x, j in zip(X, model.joints, strict=True)]  # type: ignore[attr-defined]
        O = [x.translation for x in X]
        A = np.zeros((joints, joints))
        for i in range(joints):
            F, N = np.zeros(3), np.zeros(3)
            for j in reversed(range(i, joints)):
                inertia = model.bodies[j].inertia
                m, R = model.value(inertia.mass), X[j].rotation
                c = R @ np.array([model.value(x) for x in inertia.com])
                xx, xy, yy, xz, yz, zz = (model.value(x) for x in inertia.tensor)
                K = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T + m * (
                    c @ c * np.eye(3) - np.outer(c, c)
                )
                V = np.cross(Z[i], O[j] - O[i])
                if j + 1 < joints:
                    N = N + np.cross(O[j + 1] - O[j], F)
                F = F + m * V + np.cross(Z[i], m * c)
                N = N + K @ Z[i] + m * np.cross(c, V)
                A[j, i] = A[i, j] = Z[j] @ N
        M = program.load(model).mass_matrix(q)
        worst = max(worst, float(np.max(np.abs(M - A)) / np.max(np.abs(A))))
    yield Check("relative difference", worst, 0.0, 1e-13, ROUNDING_REASON)
