"""A controller alone as C, for the board that runs it: of what is measured, not of the model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from alembert.deploy.source import CSource
from alembert.engine.c_export import c_function, export_c
from alembert.errors import ArgumentError, UnsupportedError
from alembert.model import Model
from alembert.simulate.actuators import JointDrives, checked
from alembert.simulate.bound_controllers import BoundController
from alembert.simulate.controllers import Sampled
from alembert.simulate.dynamic_controllers import as_controller


def c_controller(
    model: Model,
    controller: Any,
    directory: str | os.PathLike[str],
    *,
    name: str = "controller",
    drives: Mapping[str, Any] | None = None,
    precision: str = "double",
) -> CSource:
    """Write a sampled controller as C99 for the board that runs it: NAME.h, NAME.c and NAME_test.c.

        void NAME(const double *t, const double *y, const double *r, const double *x, double *u, double *x_next)

    `controller` is a sampled `StateSpace`, `GainSchedule` or `DynamicController` as `al.simulate` takes it for `model`; y is
    what it measures and u what it gives, in their order and units (see the header), r its set points that are numbers, x its
    states. At every sample call it, give u to the drives, and copy x_next to x. Limits, anti-windup and the point about
    which it was designed are inside; limits of `drives` count where it has none of its own. Arguments of no size are left
    out. `precision="float"` writes it in single precision, for boards without arithmetic of doubles; the test program tells
    how far one sample is from that in double precision.
    """
    law = controller.law if isinstance(controller, Sampled) else controller
    given = as_controller(law)
    if given is None:
        raise UnsupportedError(
            f"c_controller: the controller is {law!r}, expected a StateSpace, a GainSchedule or a DynamicController; "
            "c_source exports other laws together with the model"
        )
    if not given.is_sampled:
        raise ArgumentError(
            f"c_controller: {given.name!r} is continuous; al.control.c2d(K, dt) makes a sampled one of it"
        )
    try:
        bound = BoundController(given, model, JointDrives.of(model, checked(drives)) if drives else None, ())
    except ArgumentError as error:
        raise ArgumentError(str(error).replace("simulate:", "c_controller:", 1)) from None
    alone = bound.alone()
    f = alone.function
    kept = [k for k in range(f.n_in()) if f.numel_in(k)]
    symbols = [ca.SX.sym(f.name_in(k), f.numel_in(k)) for k in range(f.n_in())]
    made = [k for k in range(f.n_out()) if f.numel_out(k)]
    found = f.call(symbols)
    whole = ca.Function(
        "controller",
        [symbols[k] for k in kept],
        [found[k] for k in made],
        [f.name_in(k) for k in kept],
        [f.name_out(k) for k in made],
    )
    units = {key: f" [{unit}]" if unit else "" for key, unit in alone.measured.items()}
    descriptions = {
        "t": "time [s]",
        "y": ", ".join(f"{key}{units[key]}" for key in alone.measured),
        "r": ", ".join(f"{key}{units.get(key, '')}, at first {x!r}" for key, x in alone.set_points.items()),
        "x": f"states {', '.join(given.states)}; at first {given.initial().tolist()}",
        "u": ", ".join(given.outputs),
        "x_next": f"states at the next sample, {given.dt!r} s later",
    }
    rng = np.random.default_rng(0)
    sample = {"t": np.zeros(1), "y": rng.uniform(-1, 1, len(alone.measured)), "x": given.initial()}
    sample["r"] = np.array(list(alone.set_points.values()))
    names = [f.name_in(k) for k in kept]
    files = export_c(
        whole,
        name,
        Path(directory),
        sample=[sample[key] for key in names],
        descriptions={key: text for key, text in descriptions.items() if text},
        precision=precision,
    )
    operations = {"controller": c_function(whole, name)[1]}
    sizes = {key: whole.numel_in(k) for k, key in enumerate(names)}
    sizes |= {whole.name_out(k): whole.numel_out(k) for k in range(whole.n_out())}
    return CSource(tuple(files), operations, sizes, 0)
