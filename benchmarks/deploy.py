"""Exports against the step in this process: an FMU's step, and that of WebAssembly in node, for a chain and an arm.

All make the same rk4 steps of 1 ms from the same state; times are of the processor. The unit's `fmi2DoStep` goes over as
many steps in one call as `al.simulate` makes between two records. WebAssembly is timed after 2000 steps, once it is
optimised.
"""

from __future__ import annotations

import base64
import ctypes
import json
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import alembert as al
from alembert.deploy import compiler
from alembert.deploy.c_program import c_program
from alembert.deploy.exported_system import Given
from alembert.deploy.live_page import web_assembly
from benchmarks import models
from benchmarks.rows import Row

STEP = 1e-3
FRAME = 1 / 60
NODE = """
const live = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
WebAssembly.instantiate(Buffer.from(live.wasm, "base64"), { m: Math }).then(({ instance }) => {
  const m = new Float64Array(instance.exports.memory.buffer);
  const part = (n) => m.subarray(live.places[n][0], live.places[n][0] + live.places[n][1]);
  for (const n of ["q", "v", "u", "p"]) part(n).set(live.starts[n]);
  part("h")[0] = live.step;
  const step = instance.exports.step_now;
  for (let k = 0; k < 2000; k++) step();
  let best = Infinity;
  for (let r = 0; r < live.repeats; r++) {
    const begin = process.cpuUsage();
    for (let k = 0; k < live.count; k++) step();
    const used = process.cpuUsage(begin);
    best = Math.min(best, (used.user + used.system) * 1e-6 / live.count);
  }
  console.log(JSON.stringify(best));
});
"""


def rows(*, quick: bool, notes: dict[str, Any]) -> Iterator[Row]:
    count, repeats = (500, 5) if quick else (2000, 10)
    notes["deploy"] = {}
    chosen = {"chain12": al.library.chain(12), "panda7": models.alembert_model("panda7")}
    for name, model in chosen.items():
        start = {"q0": model.integrate(model.neutral(), np.full(model.nv, 0.3)), "v0": np.full(model.nv, 0.1)}
        ours = _in_process(model, start, count, repeats)
        if compiler.has_compiler():
            taken = _unit(model, start, count, repeats)
            yield _row(f"deploy/fmu/{name}", "step of an FMU", name, taken, ours, 1.5)
        if shutil.which("node") is not None:
            taken = _in_node(model, start, count, repeats)
            yield _row(f"deploy/wasm/{name}", "step of WebAssembly", name, taken, ours, 3.0)
            if name == "chain12":
                label = "live page at 1 kHz: share of a frame at 60 fps that stepping takes"
                share = taken * (FRAME / STEP) / FRAME
                yield Row("deploy/frame", label, name, share, unit="", measure="ours", goal=1.0)


def _row(key: str, label: str, name: str, taken: float, ours: float, most: float) -> Row:
    """The goal is about how many times the step in this process it takes."""
    return Row(
        key,
        f"{label}, rk4, against `al.simulate`",
        name,
        taken,
        peer="this process",
        theirs=ours,
        measure="ratio",
        goal=round(1 / most, 4),
    )


def _least(call: Callable[[], Any], repeats: int) -> float:
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return best


def _in_process(model: al.Model, start: dict[str, Any], count: int, repeats: int) -> float:
    """Of one step: a long run less a short one."""

    def run(steps: int) -> Any:
        return al.simulate(
            model, **start, duration=steps * STEP, interval=steps * STEP, step=STEP, integrator="rk4"
        )

    run(count)
    run(3 * count)
    return (_least(lambda: run(3 * count), repeats) - _least(lambda: run(count), repeats)) / (2 * count)


def _unit(model: al.Model, start: dict[str, Any], count: int, repeats: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = al.deploy.fmu(model, Path(folder) / "unit.fmu", step=STEP, name="unit", **start)
        with zipfile.ZipFile(path) as archive:
            binary = next(x for x in archive.namelist() if x.startswith("binaries/"))
            library = ctypes.CDLL(archive.extract(binary, folder))
            text = archive.read("modelDescription.xml").decode()
        token = text.split('guid="')[1].split('"')[0].encode()
        library.fmi2Instantiate.restype = ctypes.c_void_p
        library.fmi2DoStep.argtypes = [ctypes.c_void_p, ctypes.c_double, ctypes.c_double, ctypes.c_int]
        library.fmi2Reset.argtypes = [ctypes.c_void_p]
        unit = library.fmi2Instantiate(b"unit", 1, token, b"", None, 0, 0)

        def run() -> None:
            library.fmi2Reset(unit)
            assert library.fmi2DoStep(unit, 0.0, count * STEP, 0) == 0

        return _least(run, repeats) / count


def _in_node(model: al.Model, start: dict[str, Any], count: int, repeats: int) -> float:
    program = c_program("benchmark", model, "live", Given(), tangents=False, **start)
    module = web_assembly(program)
    live = {
        "wasm": base64.b64encode(module.binary()).decode(),
        "places": module.places,
        "starts": program.starts,
        "step": STEP,
        "count": count,
        "repeats": repeats,
    }
    with tempfile.TemporaryDirectory() as folder:
        data, script = Path(folder) / "live.json", Path(folder) / "run.js"
        data.write_text(json.dumps(live))
        script.write_text(NODE)
        found = subprocess.run(["node", str(script), str(data)], capture_output=True, text=True, check=True)
    return float(json.loads(found.stdout))
