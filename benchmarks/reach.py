"""Inverse kinematics of an arm with seven joints, against Pinocchio's loop in Python (closed-loop inverse kinematics, CLIK).

Both get the same poses, drawn by random configurations within the joint limits, and the same start. Times are of the
processor (`time.process_time`); the peer's loop is that of Pinocchio's documentation (damped pseudo-inverse of the Jacobian
of log6), with full steps, which serve it best. It knows no joint limits: it is started again at random until it ends within
them, as ours is; a second row leaves the limits out on both sides.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pinocchio as pin

from alembert import reach
from alembert.engine.kernel import limit_threads
from alembert.errors import AlembertWarning
from alembert.spatial import Pose
from benchmarks import models
from benchmarks.rows import Row

FRAME = "panda_hand"
TOLERANCE = 1e-9


def rows(*, quick: bool, notes: dict[str, Any]) -> Iterator[Row]:
    model, other = models.alembert_model("panda7"), models.pinocchio_model("panda7")
    count, few = (500, 50) if quick else (10_000, 300)
    rng = np.random.default_rng(1)
    q = np.array([model.random_configuration(rng) for _ in range(count)])
    X = model.frame_pose(q, FRAME)
    solver = reach.solver(model, [reach.pose(FRAME, Pose(X.rotation[0], X.translation[0]))])
    start = (model.space.limits("lower") + model.space.limits("upper")) / 2
    singles = [Pose(X.rotation[k], X.translation[k]) for k in range(few)]
    with warnings.catch_warnings(), limit_threads(1):
        warnings.simplefilter("ignore", AlembertWarning)
        batch = _least(lambda: solver(X, start=start), 3) / count
        found = solver(X, start=start)
        single = _least(lambda: [solver(x, start=start) for x in singles], 3) / few
        first = solver(X, start=start, restarts=0)
    there = [pin.SE3(x.rotation, x.translation) for x in singles]
    theirs, solved = _clik(other, there, start, limited=True)
    loose, _ = _clik(other, there, start, limited=False)
    with warnings.catch_warnings(), limit_threads(1):
        warnings.simplefilter("ignore", AlembertWarning)
        ours = _least(lambda: [solver(x, start=start, limits=False) for x in singles], 3) / few
        many = _least(lambda: solver(X, start=start, limits=False), 3) / count
    share = float(np.mean(found.reached))
    notes["reach"] = {
        "reached": share,
        "reached from the first start": float(np.mean(first.reached)),
        "reached by the peer": solved / few,
        "iterations": float(np.mean(found.iterations)),
    }
    label = "inverse kinematics to 1e-9"
    peer = "Pinocchio, CLIK in Python"
    yield Row(
        "reach_single",
        f"{label}, one pose",
        "panda7",
        single,
        peer=peer,
        theirs=theirs,
        measure="ratio",
        goal=20.0,
    )
    yield Row(
        "reach_batch",
        f"{label}, batch of {count}, per pose",
        "panda7",
        batch,
        peer=peer,
        theirs=theirs,
        measure="ratio",
        goal=100.0,
    )
    for key, what, taken, goal in (
        ("single", "one pose", ours, 20.0),
        ("batch", f"batch of {count}, per pose", many, 100.0),
    ):
        yield Row(
            f"reach_free_{key}",
            f"{label} without limits, {what}",
            "panda7",
            taken,
            peer=peer,
            theirs=loose,
            measure="ratio",
            goal=goal,
        )
    yield Row(
        "reach_missed",
        f"{label}: missed of {count}",
        "panda7",
        1 - share,
        unit="",
        measure="ours",
        goal=0.005,
    )


def _clik(model: Any, targets: list[Any], start: np.ndarray, *, limited: bool) -> tuple[float, int]:
    """Seconds for each pose that it reached, and how many it did."""
    data = model.createData()
    frame = model.getFrameId(FRAME)
    low, high = model.lowerPositionLimit, model.upperPositionLimit
    rng = np.random.default_rng(0)
    taken, solved = 0.0, 0
    for target in targets:
        begin = time.process_time()
        for attempt in range(51):
            q = start.copy() if attempt == 0 else rng.uniform(low, high)
            found = _descend(model, data, frame, target, q)
            if found is not None and (not limited or (np.all(found >= low) and np.all(found <= high))):
                taken += time.process_time() - begin
                solved += 1
                break
    return taken / max(solved, 1), solved


def _descend(model: Any, data: Any, frame: int, target: Any, q: np.ndarray) -> np.ndarray | None:
    for _ in range(60):
        pin.forwardKinematics(model, data, q)
        pin.updateFramePlacement(model, data, frame)
        difference = target.actInv(data.oMf[frame])
        error = pin.log(difference).vector
        if np.linalg.norm(error) < TOLERANCE:
            return q
        J = pin.Jlog6(difference) @ pin.computeFrameJacobian(model, data, q, frame)
        q = pin.integrate(model, q, -J.T @ np.linalg.solve(J @ J.T + 1e-12 * np.eye(6), error))
    return None


def _least(call: Callable[[], Any], times: int) -> float:
    call()
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best
