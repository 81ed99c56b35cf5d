"""Functions to compile, and ways to run them at a chosen lane width."""

import ctypes
import functools
import math

import casadi as ca
import numpy as np

from alembert.engine import Argument, FunctionSource, Kernel, codegen, driver, fastcall, instructions, loader
from alembert.engine.kernel import BATCH, NO_MEMORY, batch_entry, leaving
from alembert.engine.target import host


def kernel_of(function: ca.Function, name: str = "f", key: str | None = None, **options) -> Kernel:
    """Arguments and results are vectors or matrices as the function has them."""

    def described(names, sizes):
        return [
            Argument(n, (rows,) if columns == 1 else (rows, columns))
            for n, (rows, columns) in zip(names, sizes, strict=True)
        ]

    return Kernel(
        name,
        described(function.name_in(), [function.size_in(k) for k in range(function.n_in())]),
        described(function.name_out(), [function.size_out(k) for k in range(function.n_out())]),
        key=key or str(function),
        build=lambda: FunctionSource(function),
        **options,
    )


class Lanes:
    """A function compiled for a given number of lanes, called on (states, size) arrays."""

    def __init__(
        self, function: ca.Function, lanes: int, *, chunk: int = 1000, target=None, fuse: bool | None = None
    ):
        target = target or host()
        fuse = target.fused if fuse is None else fuse
        code = codegen.emit_function(
            "f", instructions.from_casadi(function, fuse=fuse), lanes, target, chunk=chunk
        )
        inputs = [function.numel_in(k) for k in range(function.n_in())]
        self.outputs = [function.numel_out(k) for k in range(function.n_out())]
        self.work, self.workspace = code.work, code.workspace
        text = codegen.prelude(code) + code.text
        count = len(inputs) + len(self.outputs)
        if lanes == 1:
            entry, text = "f_one", text + fastcall.one_state("f", count, code.workspace)
        else:
            entry, text = "f_block", text + driver.block_function("f", count)
        self.library = loader.Library(loader.compile_ir(text, host()), [entry], code.constants, code.lists)
        address, workspace = self.library.addresses[entry], code.workspace if lanes > 1 else 0
        leaves = [leaving(size, lanes) if lanes > 1 else 0 for size in self.outputs]
        more = {"workspace": workspace, "direct": 0, "leaves": leaves}
        self.layout = driver.layout(address, 0, inputs, self.outputs, lanes, **more)
        self.batch = functools.partial(BATCH(batch_entry(lanes)), self.layout.ctypes.data)

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        arrays = [np.ascontiguousarray(x) for x in arrays]
        count = len(arrays[0])
        results = [np.full((count, size), math.pi) for size in self.outputs]
        words = [word for x in (*arrays, *results) for word in (x.ctypes.data, 8 * x.shape[1], 8)]
        assert self.batch((ctypes.c_int64 * len(words))(*words), 0, count) != NO_MEMORY
        return results


def evaluated(function: ca.Function, *arrays: np.ndarray) -> list[np.ndarray]:
    """CasADi's own evaluation of each state."""
    states = [function.call([ca.DM(x) for x in state]) for state in zip(*arrays, strict=True)]
    return [np.array([np.array(s[k]).ravel() for s in states]) for k in range(function.n_out())]


def same_bits(x: np.ndarray, y: np.ndarray) -> bool:
    """Equal in every bit, except that any NaN equals any other."""
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    if x.shape != y.shape:
        return False
    return bool(np.all((x.view(np.int64) == y.view(np.int64)) | (np.isnan(x) & np.isnan(y))))


def pendulum_like(size: int, seed: int = 0) -> ca.Function:
    """Coupled trigonometric expressions with products, quotients and square roots; well conditioned."""
    rng = np.random.default_rng(seed)
    q, v, u = (ca.SX.sym(n, size) for n in "qvu")
    A = ca.SX(ca.DM(rng.standard_normal((size, size))))
    s, c = ca.sin(q), ca.cos(q)
    x = A @ (s * v) - c * u
    for _ in range(3):
        x = (A @ x) / (2 + ca.cos(x[0])) + s * x / ca.sqrt(1 + ca.dot(v, v)) - c
        x = ca.sin(x) + x
    return ca.Function("pendulum_like", [q, v, u], [x, ca.dot(x, v)], ["q", "v", "u"], ["x", "power"])
