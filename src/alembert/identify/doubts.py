"""What speaks against an estimate: efforts it does not explain, parameters that no body can have.

Signs, units and zeros that are not those of the model are the usual reasons. They show in two ways: the residuals are as
large as the efforts, or least squares fits well but with negative masses, inertias or frictions, which no consistent
estimate can follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alembert.identify.base import BaseParameters
    from alembert.identify.result import Identification
    from alembert.sensitivity.regressor import Parameter

Array = np.ndarray
CAUSES = "Are signs, units, zeros of coordinates and gear ratios of the data those of the model?"
_EXPLAINED = 0.2  # the share of an effort's variance below which it is as good as not explained
_FAR = 3.0  # residuals of the consistent estimate against those of least squares, and errors of negative parameters
_POSITIVE = (0, 4, 6, 9)  # mass and moments of inertia in a ten-vector


def sentences(result: Identification) -> list[str]:
    """One for the efforts that are not explained, one for parameters that contradict any body."""
    found = []
    noise = result.noise if result.data.noise is not None else np.zeros(len(result.effort_names))
    measured = np.isfinite(result.noise)
    share = np.where(np.isnan(result.r_squared), 1.0, result.r_squared)
    poor = measured & (share < _EXPLAINED) & (result.rms > _FAR * noise)
    if np.any(poor):
        listed = ", ".join(f"{result.effort_names[k]!r} (R^2 = {share[k]:.2g})" for k in np.flatnonzero(poor))
        found.append(f"the estimate does not explain the efforts of {listed}. {CAUSES}")
    columns = [result.columns[k] for k in result.free]
    against = impossible(result.base, columns, result.base_values, result.base_standard_errors)
    worse = measured & (result.rms > _FAR * result.noise)
    if against and np.any(worse) and not found:
        k = int(np.argmax(np.where(worse, result.rms / result.noise, 0.0)))
        found.append(
            f"no bodies have the parameters that fit best ({against}): the residual of {result.effort_names[k]!r} is "
            f"{result.rms[k]:.3g}, that of least squares {result.noise[k]:.3g}. {CAUSES}"
        )
    return found


def impossible(base: BaseParameters, columns: Sequence[Parameter], values: Array, errors: Array) -> str:
    """The base parameters that are sums of positive ones and come out negative beyond their errors, the worst first."""
    positive = np.array([c.kind != "inertia" or c.index in _POSITIVE for c in columns])
    sums = np.all((base.K >= 0) & (positive | (base.K == 0)), axis=1)
    ratio = np.where(sums & np.isfinite(errors), -values / np.where(errors > 0, errors, np.inf), 0.0)
    worst = np.argsort(-ratio)[:2]
    return ", ".join(f"{base.base_names[k]} = {values[k]:.3g}" for k in worst if ratio[k] > _FAR)
