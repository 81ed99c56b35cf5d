"""The states that an MJCF file names: MuJoCo's initial configuration and its keyframes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from alembert.model.io import mjcf_source, xml
from alembert.model.io.convert import from_mujoco
from alembert.model.model import Model

Array = np.ndarray


def keyframes(model: Model, source: str | os.PathLike[str]) -> dict[str, tuple[Array, Array]]:
    """(q, v) by name, for the model that `load` made of the same file; "qpos0" is where MuJoCo starts.

    `model.neutral()` is another configuration where joints have a `ref`, and where free bodies do not start at the origin.
    """
    document = xml.read(source)
    mjcf_source.safe(document)
    compiled, _ = mjcf_source.compiled(document)
    states: dict[str, tuple[Any, Any]] = {"qpos0": (compiled.qpos0, np.zeros(compiled.nv))}
    for k, name in enumerate(mjcf_source.names_of(compiled, "key")):
        states[name] = (compiled.key_qpos[k], compiled.key_qvel[k])
    return {name: from_mujoco(model, q, v, mj_model=compiled) for name, (q, v) in states.items()}
