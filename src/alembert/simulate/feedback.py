"""Controllers of a run, sorted by what can be compiled; those in continuous time as functions of the state."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from alembert.engine.codegen import FunctionSource
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError
from alembert.model import Model
from alembert.simulate.actuators import Drives
from alembert.simulate.controllers import Law, Sampled, efforts_of
from alembert.simulate.tangent import SymbolicManifold

Array = np.ndarray


class Feedback:
    """`symbolic_laws` are CasADi functions of t, q and v, `laws` Python ones; `sampled` are asked at instants only."""

    def __init__(self, model: Model, controller: Any, drives: Drives | None) -> None:
        self.model, self.drives = model, drives
        self.symbolic_laws: list[ca.Function] = []
        self.laws: list[Law] = []
        given = (
            controller if isinstance(controller, list | tuple) else [] if controller is None else [controller]
        )
        sampled = []
        for k, law in enumerate(given):
            who = f"controller[{k}]" if isinstance(controller, list | tuple) else "controller"
            if isinstance(law, Sampled):
                sampled.append(law)
            elif isinstance(law, ca.Function):
                self.symbolic_laws.append(_checked_law(self.model, law, who))
            elif callable(law):
                self.laws.append(law)
            else:
                raise ArgumentError(
                    f"simulate: {who} is {law!r}, expected a function u(t, q, v), a casadi.Function or Sampled(...)"
                )
        self.sampled = tuple(sampled)

    @cached_property
    def law(self) -> ca.Function | None:
        """All symbolic controllers and the saturation of their drives, as one function of `SX`."""
        if not self.symbolic_laws:
            return None
        model = self.model
        inputs = [ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)]
        total = ca.SX.zeros(model.nv)
        for law in self.symbolic_laws:
            total = total + ca.SX(law(*inputs))
        if self.drives is not None:
            for k, limit in enumerate(self.drives.limit):
                if np.isfinite(limit):
                    total[k] = ca.fmin(ca.fmax(total[k], -limit), limit)
        return ca.Function("law", inputs, [ca.densify(total)])

    @cached_property
    def _law_kernel(self) -> Kernel:
        model, law = self.model, self.law
        assert law is not None
        arguments = [Argument("t", (1,)), Argument("q", (model.nq,)), Argument("v", (model.nv,))]
        key = f"simulate:law:{law.serialize()}"
        return Kernel(
            "controller", arguments, [Argument("u", (model.nv,))], key=key, build=lambda: FunctionSource(law)
        )

    @cached_property
    def slopes(self) -> Kernel:
        """du/dq (tangent) and du/dv of the symbolic controllers."""
        model, law = self.model, self.law
        assert law is not None
        arguments = [Argument("t", (1,)), Argument("q", (model.nq,)), Argument("v", (model.nv,))]
        results = [Argument("dq", (model.nv, model.nv)), Argument("dv", (model.nv, model.nv))]

        def build() -> FunctionSource:
            t, q, v = (ca.SX.sym(a.name, a.size) for a in arguments)
            d = ca.SX.sym("d", model.nv)
            u = ca.SX(law(t, SymbolicManifold(model).integrate(q, d), v))
            dq = ca.substitute(ca.jacobian(u, d), d, ca.SX.zeros(model.nv))
            dv = ca.substitute(ca.jacobian(u, v), d, ca.SX.zeros(model.nv))
            return FunctionSource(ca.Function("slopes", [t, q, v], [ca.densify(dq), ca.densify(dv)]))

        return Kernel("controller", arguments, results, key=f"simulate:slopes:{law.serialize()}", build=build)

    def command(self, t: Any, q: Array, v: Array) -> Array:
        """What the continuous controllers ask for, saturated; t is a time, or (..., 1) times."""
        total = np.zeros(self.model.nv)
        for law in self.laws:
            total = total + efforts_of(self.model, law, t, q, v, batch=q.shape[:-1], who="a controller")
        if self.drives is not None:
            total = self.drives.saturate(total)
        if self.law is not None:
            total = total + self._law_kernel(np.atleast_1d(np.asarray(t, dtype=float)), q, v)
        return total


def _checked_law(model: Model, law: ca.Function, who: str) -> ca.Function:
    sizes = [law.numel_in(k) for k in range(law.n_in())]
    results = [law.numel_out(k) for k in range(law.n_out())]
    if sizes != [1, model.nq, model.nv] or results != [model.nv]:
        raise ArgumentError(
            f"simulate: {who} maps sizes {sizes} to {results}, expected a casadi.Function of t (1), q ({model.nq}) and "
            f"v ({model.nv}) that gives {model.nv} efforts"
        )
    return law if law.is_a("SXFunction") else law.expand()
