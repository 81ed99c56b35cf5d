"""Controls that zigzag from point to point.

Where the cost and the motion see only weighted sums of the controls of neighbouring points, as on singular arcs,
transcriptions with controls at the nodes leave their differences open: the sums are right, and the controls alternate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from alembert.optimal.outcome import Iterate
    from alembert.optimal.stages import Stages

SIZE, RUN = 0.1, 6
"""second differences, in terms of the range of a control, and how many of them in a row alternate in a zigzag; where a
control jumps once, two do"""


def zigzags(stages: Stages, it: Iterate) -> list[str]:
    """Controls that do."""
    if not stages.scheme.node_controls or not np.isfinite(it.u).all():
        return []
    names = stages.problem.plant.controls
    begin = stages.plant.chart.point
    first = it.x[:1, begin : begin + len(names)]
    values = np.concatenate([first, it.u.reshape(-1, len(names))])
    found = []
    for name, column in zip(names, values.T, strict=True):
        bends = np.diff(column, 2)
        bends = np.where(np.abs(bends) > SIZE * max(float(np.ptp(column)), 1e-6), np.sign(bends), 0.0)
        run = longest = 0
        for product in bends[1:] * bends[:-1]:
            run = run + 1 if product < 0 else 0
            longest = max(longest, run)
        if longest >= RUN:
            found.append(name)
    return found


def sentence(stages: Stages, it: Iterate) -> str:
    """What to say of them; empty where there are none."""
    names = zigzags(stages, it)
    if not names:
        return ""
    return (
        f"{', '.join(names)} zigzag{'s' if len(names) == 1 else ''} from node to node, which {stages.scheme.name!r} "
        "leaves open where the cost hardly depends on it: add a small cost on it, or choose 'rk4' or 'midpoint'"
    )
