"""Numbers by the names of joints: which of their dimensions are batches, and which the joint's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray


def with_own_axis(parts: Sequence[tuple[Array, int]], states: Sequence[Any] = ()) -> list[Array]:
    """(..., width) of values and widths; one number per state will do where the width is 1.

    A last dimension of length 1 is then the joint's own, as for joints of more degrees of freedom: (N, 1) are N states. Only
    where the batch of the others (values that leave no choice, and `states`, (..., n)) is just that shape, say (N, 1), are
    they one number for each of its states; anything else would make N x N states of N.
    """
    clear: list[tuple[int, ...]] = [np.shape(x)[:-1] for x in states]
    found: list[Array | None] = []
    for x, width in parts:
        if width == 1 and x.ndim >= 2 and x.shape[-1] == 1:
            found.append(None)
            continue
        full = x[..., None] if width == 1 and x.shape[-1:] != (1,) else x
        clear.append(full.shape[:-1])
        found.append(full)
    if all(x is not None for x in found):
        return [x for x in found if x is not None]
    try:
        batch = np.broadcast_shapes(*clear)
    except ValueError:  # the caller says so
        batch = ()
    return [
        full if full is not None else x[..., None] if x.shape == batch else x
        for full, (x, _) in zip(found, parts, strict=True)
    ]
