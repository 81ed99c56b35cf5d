"""A `Program` as the functions that CasADi's solvers call: compiled functions instead of CasADi's expressions.

CasADi makes the derivatives that a solver wants from expressions, unless functions of their names are in its cache when the
solver is built (option `cache`); here they are callbacks that read from and write to the solver's own memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from alembert.optimal.blocks import Program
from alembert.optimal.iterations import IterationLog

Array = np.ndarray
Evaluate = Callable[..., tuple[Any, ...]]


DETAILS = ("inf_du", "mu", "alpha_pr", "regularization_size")
"""what IPOPT calls the slope of the Lagrangian, the barrier, the length of the step and the shift"""


class EachIteration(ca.Callback):
    """For CasADi's option `iteration_callback`: keeps a log of the iterations, and stops the solver when it says so."""

    def __init__(self, sizes: tuple[int, int], log: IterationLog) -> None:
        super().__init__()
        self._sizes, self._log = sizes, log
        self.solver: ca.Function | None = None
        """IPOPT, which tells slope, barrier, step and shift while it runs"""
        self.construct("each_iteration", {})

    def get_n_in(self) -> int:
        return ca.nlpsol_n_out()

    def get_n_out(self) -> int:
        return 1

    def get_name_in(self, k: int) -> str:
        return ca.nlpsol_out(k)

    def get_sparsity_in(self, k: int) -> Any:
        x, g = self._sizes
        size = {"f": 1, "x": x, "lam_x": x, "g": g, "lam_g": g}.get(ca.nlpsol_out(k), 0)
        return ca.Sparsity.dense(size, 1) if size else ca.Sparsity(0, 0)

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arguments: Any, results: Any) -> int:
        given = {ca.nlpsol_out(k): array(value) for k, value in enumerate(arguments)}
        self._log.add(float(given["f"][0]), given["g"], given["x"], given["lam_g"], self._details())
        array(results[0])[:] = self._log.stop
        return 0

    def _details(self) -> tuple[float, ...]:
        if self._log.report is None or self.solver is None:  # nobody looks, or nothing is known
            return ()
        told = self.solver.stats().get("iterations", {})
        return tuple(float(told[name][-1]) if told.get(name) else np.nan for name in DETAILS)


def array(buffer: Any) -> Array:
    """What CasADi hands to a callback, where it is."""
    return np.frombuffer(buffer) if buffer is not None and len(buffer) else np.empty(0)


class Called(ca.Callback):
    """A function from and to structural nonzeros. An exception in it stops the solver."""

    def __init__(
        self,
        name: str,
        inputs: dict[str, ca.Sparsity],
        outputs: dict[str, ca.Sparsity],
        evaluate: Evaluate,
        log: IterationLog,
    ) -> None:
        super().__init__()
        self._inputs, self._outputs, self._evaluate = list(inputs.items()), list(outputs.items()), evaluate
        self._log = log
        self.construct(name, {})

    def get_n_in(self) -> int:
        return len(self._inputs)

    def get_n_out(self) -> int:
        return len(self._outputs)

    def get_name_in(self, k: int) -> str:
        return self._inputs[k][0]

    def get_name_out(self, k: int) -> str:
        return self._outputs[k][0]

    def get_sparsity_in(self, k: int) -> ca.Sparsity:
        return self._inputs[k][1]

    def get_sparsity_out(self, k: int) -> ca.Sparsity:
        return self._outputs[k][1]

    def has_eval_buffer(self) -> bool:
        return True

    def eval_buffer(self, arguments: Any, results: Any) -> int:
        try:
            found = self._evaluate(*map(array, arguments))
        except BaseException as error:  # must not pass through the solver's machine code
            self._log.stop, self._log.failure = True, error
            found = (np.nan,) * len(results)
        for buffer, value in zip(results, found, strict=False):
            if buffer is not None:  # else it is not wanted
                array(buffer)[:] = value
        return 0


class Oracle:
    """The functions of `program` for a solver: `expressions` and `functions` are for `casadi.nlpsol`.

    FATROP has no callback for iterations: it is watched where it asks for second derivatives, once in each. To stop it,
    nothing is finite any more.
    """

    def __init__(self, program: Program, log: IterationLog, *, is_fatrop: bool) -> None:
        p = program
        dense = ca.Sparsity.dense
        x = {"x": dense(p.size), "p": ca.Sparsity(0, 0)}
        weights = {"lam_f": dense(1), "lam_g": dense(p.rows)}
        f, g, slope = {"f": dense(1)}, {"g": dense(p.rows)}, {"grad_f_x": dense(p.size)}
        along = {"grad_gamma_x": dense(p.size)}

        def second(w: Array, _: Array, sigma: Array, y: Array) -> Array:
            if is_fatrop:
                slope = float(np.abs(p.slope(w, float(sigma[0]), y)).max())
                log.add(*p.values(w), w, y, (slope,))
            return p.second(w, float(sigma[0]), y)

        def lagrangian(w: Array, _: Array, sigma: Array, y: Array) -> Array:
            return p.slope(w, float(sigma[0]), y)

        def stoppable(evaluate: Evaluate) -> Evaluate:
            return lambda *a: (np.nan,) * 2 if log.stop else evaluate(*a)

        table: dict[str, tuple[dict[str, Any], dict[str, Any], Evaluate]] = {
            "nlp_f": (x, f, lambda w, _: p.values(w)[:1]),
            "nlp_g": (x, g, lambda w, _: p.values(w)[1:]),
            "nlp_grad_f": (x, f | slope, lambda w, _: p.first(w)[0::2]),
            "nlp_jac_g": (x, g | {"jac_g_x": p.jacobian}, lambda w, _: p.first(w)[1::2]),
            "nlp_hess_l": (x | weights, {"triu_hess_gamma_x_x": p.hessian}, lambda *a: (second(*a),)),
        }
        if is_fatrop:
            whole, places = p.mirrored()
            both = along | {"hess_gamma_x_x": whole}
            table["nlp_grad_f"] = x, slope, lambda w, _: p.first(w)[2:3]
            table["nlp_hess_l"] = x | weights, both, lambda *a: (lagrangian(*a), second(*a)[places])
            table = {k: (*row[:2], stoppable(row[2])) for k, row in table.items()}
        table["nlp_grad"] = (  # at the end, for what is given back
            x | weights,
            f | g | along | {"grad_gamma_p": ca.Sparsity(0, 0)},
            lambda *a: (*p.values(a[0]), lagrangian(*a), 0.0),
        )
        self.functions = {name: Called(name, *row, log) for name, row in table.items()}
        w, none = ca.MX.sym("x", p.size), ca.MX(0, 0)
        self.expressions = {
            "x": w,
            "f": self.functions["nlp_f"](w, none),
            "g": self.functions["nlp_g"](w, none),
        }
