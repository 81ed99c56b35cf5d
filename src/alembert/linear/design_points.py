"""Design points of mechanisms: what `alembert.control.codesign` varies are named parameters of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from alembert.control.codesign import DesignPoint
from alembert.errors import ArgumentError
from alembert.expression import evaluate
from alembert.linear.linearization import linearize
from alembert.model import Model

Array = np.ndarray


def design_point(
    model: Model,
    q: Any,
    *,
    controls: Sequence[str],
    disturbances: Sequence[str],
    weighed: Mapping[str, float],
    effort: Any = 1.0,
    measured: Sequence[str] = (),
    sensor: Any = None,
    structure: Callable[..., float] | None = None,
    parameter_values: Mapping[str, Any] | None = None,
) -> Callable[..., DesignPoint]:
    """A function of named parameters of the model, for `control.codesign` and `control.pareto`.

    Args:
        model, q: what is designed, and the configuration it is held in.
        controls: inputs of the controller, as `linearize` names them.
        disturbances: inputs (efforts, or `wrench:frame.fx`) that are white noise of unit intensity.
        weighed: outputs whose mean squares count, with their weights: `{"q:tip": 1.0}`.
        effort: the weight R of the controls.
        measured: outputs that the controller gets (output feedback, LQG), `sensor` the intensity of their noise.
        structure: the cost of the structure as a function of the parameters; the mass of the model when left out.
        parameter_values: of those parameters that stay as they are.
    """
    if not controls or not disturbances or not weighed:
        raise ArgumentError(
            f"design_point: controls {list(controls)}, disturbances {list(disturbances)}, weighed {list(weighed)}; expected "
            "names in each"
        )
    named = list(dict.fromkeys([*weighed, *measured]))

    def make(**values: float) -> DesignPoint:
        given = {**(parameter_values or {}), **values}
        tau = model.gravity_forces(q, parameters=given)
        linear = linearize(
            model, q, None, tau, inputs=[*controls, *disturbances], outputs=named, parameter_values=given
        )
        G = linear.to_statespace()
        rows = [G.output_names.index(name) for name in weighed]
        if np.any(G.D):
            raise ArgumentError(
                "design_point: an output follows the inputs directly (an acceleration); weigh and measure displacements and "
                "speeds"
            )
        C = G.C[rows]
        m = len(controls)
        Q = C.T @ np.diag([float(weighed[name]) for name in weighed]) @ C
        plant = G[list(measured), G.input_names[:m]] if measured else G[:, G.input_names[:m]]
        known = {**model.parameter_values, **given}
        mass = sum(float(evaluate(body.inertia.mass, known)) for body in model.bodies)
        cost = mass if structure is None else structure(**values)
        return DesignPoint(plant, G.B[:, m:], Q, effort, float(cost), sensor)

    return make
