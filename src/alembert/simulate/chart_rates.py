"""What schemes with error control evaluate, in machine code: (1) of `alembert.simulate.adaptive` as one kernel.

It is made where an evaluation in Python is many calls: prescribed motion together with closed loops, and forces that read
reactions. It is traced as the stages of fixed steps are (`alembert.simulate.stepping`), with a minimal set of constraints
that is chosen where a chart starts; so is the way back to the surface of constraints. Where that set does not serve, the
answer is NaN, and Python's own evaluation is asked: it chooses another set, or says what is wrong.

The drives of prescribed motion give what is missing in the balance of their joints. With the tree's inverse dynamics
r(q, v, a), the efforts u of force elements and the forces f of the rows G,

    w = r(q, v, a) - u - G^T f                                                                          (1)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from alembert.engine.codegen import KernelSource
from alembert.engine.kernel import Argument, Kernel
from alembert.lowering.plan import Plan
from alembert.simulate.stepping import Layout, StepModel, Tracer

if TYPE_CHECKING:
    from alembert.simulate.simulation import Simulation

Array = np.ndarray


def compiles(system: Simulation) -> bool:
    """Whether the right-hand side is made of symbols, and worth a kernel of its own."""
    slow = system.prescribes or system.loads.reading is not None
    return slow and system.constrained and not (system.python or len(system.feedback.breaks))


def chart_layout(plant: StepModel) -> Layout:
    model, states = plant.model, {"x": plant.states} if plant.states else {}
    return Layout(q=model.nq, e=model.nv, v=model.nv, **states, **plant.rows)


def rates_kernel(plant: StepModel) -> Kernel:
    """`state, start, effort, [wrench], [parameters]` -> rates of (e, v, x), the state with its prescribed part, efforts
    (all but those of drives of prescribed motion), forces of the rows, and efforts that read these.

    `start` is the time.
    """
    nv, rows = plant.model.nv, plant.model.constrained_compute.rows.count
    sizes = {"rate": 2 * nv + plant.states, "q_at": plant.model.nq, "v_at": nv, "total": nv, "forces": rows}
    if plant.reading is not None:
        sizes["load"] = nv
    return _kernel(plant, "chart_rates", sizes, Tracer.chart_rates)


def settling_kernel(plant: StepModel) -> Kernel:
    """`state, start, effort, [wrench], [parameters]` -> done, what is left, and q, v as `Tracer.settled` has them."""
    return _kernel(plant, "settled", {"back": 2 + plant.model.nq + plant.model.nv}, Tracer.settled)


def _kernel(plant: StepModel, name: str, sizes: dict[str, int], trace: Callable[[Tracer], None]) -> Kernel:
    layout = chart_layout(plant)
    given = [Argument("state", (layout.size,)), Argument("start", (1,)), *plant.arguments]

    def build() -> KernelSource:
        tracer = Tracer(plant, layout)
        trace(tracer)
        inside = {name: size for name, size in tracer.temporaries.items() if name not in sizes}
        return Plan({a.name: a.size for a in given}, sizes, inside, tracer.body, tracer.sources)

    key, kernels = f"simulate:{plant.key}:{name}", plant.model.compute.kernels
    if key not in kernels:
        results = [Argument(result, (size,)) for result, size in sizes.items()]
        kernels[key] = Kernel("simulate", given, results, key=key, build=build)
    return kernels[key]


class ChartRates:
    """The rates under efforts that are held, in the chart that was begun last."""

    def __init__(self, system: Simulation, effort: Array, within: float) -> None:
        self.system, self.effort, self._within = system, effort, within
        self._rates, self._settling, self._layout = system.chart_code
        self._last = [system.parameter_array()] if system.model.parameters else []
        if system.loads.has_wrenches:  # constant, or held: no law reads the state
            at = system.model.neutral(), np.zeros(system.model.nv)
            self._last.insert(0, system.loads.wrench_array(within, *at, system.parameters))
        self._chart = np.zeros(self._layout.size)

    def begin(self, q: Array, v: Array) -> None:
        """A chart about q."""
        chosen = self.system.chosen(q, v, unique=self.system.loads.reading is not None)
        self._chart = self._layout.numeric(0, 0, q=q, chosen=chosen)

    def __call__(self, t: float, y: Array) -> Array | None:
        """The rates of y = (e, v, x); None where they are not known."""
        state, start = self._chart.copy(), self._layout["e"].start
        state[start : start + len(y)] = y
        rate: Array = self._rates(state, np.array([t]), self.effort, *self._last)[0]
        return rate if np.isfinite(rate).all() else None

    def settled(self, t: float, q: Array, v: Array) -> tuple[Array, Array] | None:
        """A state with its prescribed part put in place, and loops closed around it; None where that is not known."""
        state, layout = self._chart.copy(), self._layout
        state[layout["q"]], state[layout["v"]] = q, v
        back: Array = self._settling(state, np.array([t]), self.effort, *self._last)
        if not (back[0] and np.isfinite(back).all()):
            return None
        return back[2 : 2 + len(q)].copy(), back[2 + len(q) :].copy()

    def efforts(self, times: Array, q: Array, v: Array, x: Array) -> Array | None:
        """(N, nv): all that drives, controllers and tables give at times (N,); None where it is not known."""
        system, loads = self.system, self.system.loads
        given = {"q": q, "v": v, "chosen": self._chart[self._layout["chosen"]]}
        if x.shape[-1]:
            given["x"] = x
        found = self._rates(self._layout.numeric(0, 0, **given), times[:, None], self.effort, *self._last)
        rate, q, v, total, f, *load = found
        if not np.isfinite(rate).all():
            return None
        acting = sum(load, np.zeros_like(total))
        if loads.elements is not None:
            kept, other, _, _ = loads.elements_at(times[:, None], q, v, along_time=True)
            acting = acting + kept + other
        if not system.prescribes:
            return total - acting
        nv, rows, p = system.model.nv, system.model.constrained_compute.rows, system.prescribed
        a = np.ascontiguousarray(rate[:, nv : 2 * nv])
        wrenches = loads.wrenches_at(float(times[0]), q[0], v[0], self._within)
        r = rows.primary.inverse_dynamics(q, v, a, wrenches=wrenches, parameters=system.parameters)
        G = rows.terms(q, v, *self._last[-1:] * bool(system.model.parameters))[1]
        return np.where(p, r - np.einsum("bi,bij->bj", f, G), total) - acting  # (1)
