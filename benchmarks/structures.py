"""Structures of finite elements: import and reduction, frequency responses, completeness over configurations."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import alembert as al
from benchmarks.rows import Row, against

fl = al.flexible
SIDE = 58
"""nodes along an edge of the panel: 20,184 unknowns"""


def panel(side: int) -> Any:
    """A square grillage of beams, 2 m wide, with a stiffer edge where it is attached."""
    section = fl.CrossSection.rectangle(70e9, 2700.0, 0.01, 0.01)
    edge = fl.CrossSection.rectangle(70e9, 2700.0, 0.02, 0.02)
    step = 2.0 / (side - 1)
    nodes = {i * side + j + 1: (i * step, j * step, 0.0) for i in range(side) for j in range(side)}
    members = []
    for i in range(side):
        for j in range(side):
            k = i * side + j + 1
            if j + 1 < side:
                members.append(fl.Member(k, k + 1, edge if i == 0 else section))
            if i + 1 < side:
                members.append(fl.Member(k, k + side, section))
    return fl.framework(nodes, members)


def write(fe: Any, folder: Path) -> dict[str, Path]:
    """As Abaqus writes it: nodes, and one triangle of each matrix."""
    paths = {"nodes": folder / "panel.inp"}
    lines = [
        f"{name}, {x:.9g}, {y:.9g}, {z:.9g}" for name, (x, y, z) in zip(fe.names, fe.positions, strict=True)
    ]
    paths["nodes"].write_text("*NODE\n" + "\n".join(lines) + "\n")
    numbers = np.array([int(name) for name in fe.names])
    for name, A in (("mass", fe.M), ("stiffness", fe.K)):
        A = A.tocoo()
        keep = A.coords[0] >= A.coords[1]
        r, c, v = A.coords[0][keep], A.coords[1][keep], A.data[keep]
        table = np.column_stack(
            [numbers[fe.dofs[r, 0]], fe.dofs[r, 1] + 1, numbers[fe.dofs[c, 0]], fe.dofs[c, 1] + 1, v]
        )
        paths[name] = folder / f"{name}.mtx"
        np.savetxt(paths[name], table, fmt=["%d", "%d", "%d", "%d", "%.16e"], delimiter=",")
    return paths


def arm(count: int = 10, modes: int = 3) -> al.Model:
    """Hinged beams with as many modes in each of two planes: for ten of them 60 modes."""
    builder = al.ModelBuilder("arm", gravity=(0, 0, 0))
    link = fl.beam(1.0, 1.0, EI_y=100.0, EI_z=100.0, bending_y=modes, bending_z=modes)
    for k in range(count):
        where: dict[str, Any] = {"parent": f"link{k - 1}", "node": "tip"} if k else {}
        builder.body(f"link{k}", link, joint=al.Revolute((0, 0, 1)), joint_name=f"hinge{k}", **where)
    return builder.build()


def cpu(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def rows(*, quick: bool) -> list[Row]:
    side = 20 if quick else SIDE
    fe = panel(side)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        paths = write(fe, Path(folder))
        taken, read = cpu(
            lambda: fl.read_abaqus(paths["nodes"], mass=paths["mass"], stiffness=paths["stiffness"])
        )
    root = [str(k + 1) for k in range(side)]
    reduced, _ = cpu(
        lambda: fl.structure_body(
            read,
            fl.normal_modes(read, 30, held=root),
            attachment=root,
            nodes={"corner": str(side * side)},
            stiffening="inconsistent",
        )
    )
    label = f"{read.size} unknowns from files to a body of 30 modes (reading {taken:.1f} s), CPU seconds"
    found.append(
        Row("structures/import", label, "panel", taken + reduced, unit="s", measure="ours", goal=10.0)
    )
    found.append(_response(quick))
    model = arm()
    rng = np.random.default_rng(0)
    q = np.stack([model.random_configuration(rng) for _ in range(100)])
    keep = {f"link{k}": ["bending_y_1", "bending_z_1"] for k in range(10)}
    fl.completeness(model, keep, q[:2])
    scan, _ = cpu(lambda: fl.completeness(model, keep, q))
    label = "completeness of 100 configurations, 10 bodies, 60 modes, CPU seconds"
    found.append(Row("structures/completeness", label, "arm", scan, unit="s", measure="ours", goal=2.0))
    return found


def _response(quick: bool) -> Row:
    """1000 states at 1000 frequencies beside python-control, of which every fiftieth frequency is computed."""
    import control

    section = fl.CrossSection(1.0, 1e4, 1.0, 1.0, 1.0, rhoI_y=1e-3, rhoI_z=1e-3)
    n = 20 if quick else 84
    fe = fl.framework(
        {k: (10 * k / n, 0, 0) for k in range(n + 1)},
        [fl.Member(k, k + 1, section) for k in range(n)],
        fixed=[0],
    )
    M, K = fe.M.toarray(), fe.K.toarray()
    F = np.zeros((len(M), 2))
    F[fe.unknowns(n, "y z"), [0, 1]] = 1.0
    D = 1e-3 * K + 0.01 * M
    D[np.arange(3, len(M), 100), np.arange(3, len(M), 100)] += 0.5  # dampers, so that damping is not modal
    system = al.control.SecondOrder(M, D, K, F, F.T)
    w = np.geomspace(0.01, 100, 1000)
    ours, _ = cpu(lambda: system.frequency_response(w))
    G = system.to_statespace()
    peer = control.ss(G.A, G.B, G.C, G.D)
    some, _ = cpu(lambda: control.frequency_response(peer, w[::50]))
    label = f"frequency response, {2 * len(M)} states with dampers at 1000 frequencies"
    return against("structures/response", label, "beam", ours, "python-control", 50 * some, 20.0)
