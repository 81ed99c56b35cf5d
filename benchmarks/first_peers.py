"""What other programs take from a model to their first result: to compile the same functions of the same arm.

- CasADi: its C of our expressions, compiled by gcc -O1; derivatives are its own Jacobians;
- Pinocchio: its algorithms on CasADi's scalars, written as C and compiled by gcc -O3 (`pinocchio_codegen`; the wheels have
  no CppADCodeGen);
- MJX: `jax.jit` on the processor, in double precision.

`python -m benchmarks.first_peers PEER TASK MODEL` is one measurement in a process of its own: seconds of the processor, also
of compilers that it starts, from the model in memory to the first result. It ends after `LIMIT` seconds: to compile
Pinocchio's generator alone, with its templates on CasADi's scalars, may take longer.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

PEERS = ("CasADi", "Pinocchio", "MJX")
TASKS = ("forward dynamics", "derivatives")
LIMIT = 300.0
"""seconds of the wall, after which a measurement is given up"""
FILES = {"forward dynamics": "forward", "derivatives": "forward_derivatives"}


def available(peer: str) -> bool:
    """Whether the peer and what it needs are installed."""
    if peer == "MJX":
        return (
            importlib.util.find_spec("jax") is not None and importlib.util.find_spec("mujoco.mjx") is not None
        )
    return shutil.which("gcc") is not None


def taken(peer: str, task: str, model: str) -> dict[str, float] | None:
    """Seconds in a fresh process, of the processor and of the wall; None where it did not end in time."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-m", "benchmarks.first_peers", peer, task, model]
    root = Path(__file__).parents[1]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, cwd=root, start_new_session=True
    ) as process:
        try:
            told, _ = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the compilers that it has started
            return None
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds: dict[str, float] = json.loads(told.splitlines()[-1])
    return seconds


def _processor() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _casadi(task: str, name: str, folder: str) -> Any:
    """The time begins with the expressions, which are ours."""
    import casadi as ca

    from benchmarks.models import alembert_model, states

    model = alembert_model(name)
    q, v, tau = (ca.SX.sym(x, n) for x, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    a = model.symbolic.forward_dynamics(q, v, tau)
    state = [x[0] for x in states(name, 1)]

    def first() -> Any:
        outputs = [a] if task == TASKS[0] else [a, *(ca.jacobian(a, x) for x in (q, v, tau))]
        function = ca.Function("f", [q, v, tau], outputs)
        function.generate("f.c")
        subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "f.c", "-o", "f.so", "-lm"], check=True)
        return ca.external("f", "./f.so").call(state)

    os.chdir(folder)
    return first


def _pinocchio(task: str, name: str, folder: str) -> Any:
    """The generator itself is compiled before, once; it writes all functions, gcc compiles the one."""
    import ctypes

    from benchmarks import timing
    from benchmarks.models import pinocchio_model, states_in_pinocchio
    from benchmarks.pinocchio_codegen import FLAGS, generator
    from benchmarks.pinocchio_cpp import as_text

    make = generator()
    if make is None:
        raise SystemExit("no C++ compiler")
    tree = as_text(pinocchio_model(name), states_in_pinocchio(name, 1), timing.QUICK)
    file = f"{folder}/{FILES[task]}"

    def first() -> Any:
        subprocess.run([str(make), folder], input=tree, text=True, check=True, capture_output=True)
        subprocess.run(
            ["gcc", *FLAGS, "-fPIC", "-shared", f"{file}.c", "-o", f"{file}.so", "-lm"], check=True
        )
        return ctypes.CDLL(f"{file}.so")

    return first


def _mjx(task: str, name: str, folder: str) -> Any:
    import jax
    import jax.numpy as jnp
    from mujoco import mjx

    from benchmarks.models import mujoco_model

    jax.config.update("jax_enable_x64", True)
    model = mujoco_model(name)

    def first() -> Any:
        put = mjx.put_model(model)
        data = mjx.make_data(put)

        def acceleration(q: Any, v: Any, tau: Any) -> Any:
            return mjx.forward(put, data.replace(qpos=q, qvel=v, qfrc_applied=tau)).qacc

        function = acceleration if task == TASKS[0] else jax.jacfwd(acceleration, argnums=(0, 1, 2))
        state = jnp.array(model.qpos0), jnp.zeros(model.nv), jnp.zeros(model.nv)
        return jax.block_until_ready(jax.jit(function)(*state))

    return first


def _measure(peer: str, task: str, name: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        first = {"CasADi": _casadi, "Pinocchio": _pinocchio, "MJX": _mjx}[peer](task, name, folder)
        cpu, wall = _processor(), time.perf_counter()
        result = first()
        found = {"cpu": _processor() - cpu, "wall": time.perf_counter() - wall}
        if peer != "Pinocchio" and not np.all(np.isfinite(np.asarray(result[0]))):
            raise SystemExit(f"{peer}: the result is not finite")
    return found


if __name__ == "__main__":
    print(json.dumps(_measure(*sys.argv[1:])))
