"""Where a structure loses its stability as a load grows: divergence (buckling) and flutter.

    M q'' + D q' + K(p) q = 0                                                                                (1)

A conservative load makes K singular; a follower force makes it unsymmetric, and two frequencies meet.

Maps show where gains of loops keep a structure stable, with proof masses as absorbers or actuators. A proof mass m_a hangs
at a place of a structure by a spring k_a and a damper c_a; its housing adds a mass m_t there. Tuned to a mode of frequency
w with the participation phi of the place (unit modal mass), mu = m_a phi^2, mu_t = m_t phi^2:

    "equal"       w_a = w                                                                                    (2)
    "den hartog"  w_a = w/(1 + mu),   c_a = 2 m_a w_a sqrt(3 mu/(8 (1 + mu)))                                  (3)
    "minas"       w_a^2 = w^2 (1 + mu_t)/(1 + mu_t + mu)^2,  c_a^2 = m_a^2 w^2 mu (1 + mu_t)/(1 + mu_t + mu)^3   (4)

(Den Hartog, Mechanical Vibrations; Minas, Garcia and Inman 1989.)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from alembert import arguments
from alembert.control import SecondOrder
from alembert.errors import ArgumentError
from alembert.flexible.campbell import pairs
from alembert.view import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = np.ndarray
_GROWTH = 1e-5
"""growth over frequency that counts: poles that meet on the axis are known to the square root of rounding"""
_STILL = 1e-7
"""of the largest pole: the double poles at zero of rigid motions are known to the square root of rounding"""


@dataclass(frozen=True, eq=False)
class StabilityBoundary:
    """The smallest value of the parameter at which something grows."""

    value: float
    kind: str
    """"divergence" or "flutter" """
    pole: complex
    """just beyond"""


def stability_boundary(
    system: Callable[[float], SecondOrder], low: float, high: float, *, samples: int = 40, digits: int = 8
) -> StabilityBoundary | None:
    """The first loss of stability of `system(p)` between `low` and `high`, None if there is none at the samples.

    The range is sampled, then halved. Poles that grow by less than 1e-5 of the largest frequency seen so far do not count,
    nor do those of rigid motions, within rounding of zero, where there are some at `low`.
    """
    if not (np.isfinite([low, high]).all() and low < high) or samples < 2:
        raise ArgumentError(f"stability_boundary: from {low!r} to {high!r} with {samples!r} samples")
    first = np.abs(_poles(system, low))
    reference = first.max()
    still = _STILL * reference if (first <= _STILL * reference).any() else 0.0

    def worst(p: float) -> complex | None:
        poles = _poles(system, p)
        scale = np.minimum(np.maximum(np.abs(poles), 1e-3 * np.abs(poles).min()), reference)
        grows = (poles.real > _GROWTH * scale) & (np.abs(poles) > still)
        return complex(poles[grows][np.argmax(poles[grows].real)]) if grows.any() else None

    if worst(low) is not None:
        raise ArgumentError(f"stability_boundary: the system is unstable at {low:g} already")
    grid = np.linspace(low, high, samples + 1)
    for a, b in itertools.pairwise(grid):
        pole = worst(float(b))
        if pole is None:
            continue
        below, above = float(a), float(b)
        while above - below > 10.0**-digits * max(abs(above), abs(below)):
            middle = (below + above) / 2
            found = worst(middle)
            if found is None:
                below = middle
            else:
                above, pole = middle, found
        return StabilityBoundary(above, "divergence" if abs(pole.imag) < abs(pole.real) else "flutter", pole)
    return None


def _poles(system: Any, p: float) -> Array:
    s = system(p)
    if not isinstance(s, SecondOrder):
        raise ArgumentError(
            f"stability_boundary: system({p:g}) is {type(s).__name__}, expected a SecondOrder"
        )
    return pairs(s.M, s.D, s.K)[0]


RULES = ("equal", "den hartog", "minas")


def tuned_absorber(
    frequency: float, participation: float, mass: float, *, housing: float = 0.0, rule: str = "den hartog"
) -> tuple[float, float]:
    """Stiffness and damping of an absorber by one of the rules; (2) leaves the damping at zero."""
    what = "tuned_absorber"
    arguments.choice(what, "rule", rule, RULES)
    w, m = arguments.positive(what, "frequency", frequency), arguments.positive(what, "mass", mass)
    for name, value in (("participation", participation), ("housing", housing)):
        if not arguments.is_number(value):
            raise ArgumentError(f"{what}: {name} is {value!r}, expected a number")
    mu, mu_t = m * float(participation) ** 2, float(housing) * float(participation) ** 2
    if rule == "equal":
        return m * w**2, 0.0
    if rule == "den hartog":
        own = w / (1 + mu)
        return m * own**2, 2 * m * own * float(np.sqrt(3 * mu / (8 * (1 + mu))))
    whole = 1 + mu_t + mu
    return m * w**2 * (1 + mu_t) / whole**2, m * w * float(np.sqrt(mu * (1 + mu_t) / whole**3))


def with_proof_mass(
    system: SecondOrder,
    place: Any,
    mass: float,
    stiffness: float,
    damping: float = 0.0,
    *,
    housing: float = 0.0,
    name: str = "proof_mass",
) -> SecondOrder:
    """The structure with a proof mass at `place`, the row of its displacement by the positions (or a position's number).

    It has one position more, the place of the mass, and one input more, the force between the mass and the structure
    (positive on the structure).
    """
    n = system.size
    e = np.zeros(n)
    if isinstance(place, int | np.integer):
        if not 0 <= place < n:
            raise ArgumentError(f"with_proof_mass: place {place} of {n} positions")
        e[place] = 1.0
    else:
        e = arguments.numbers("with_proof_mass", "place", place, n, batch=False)
    m = arguments.positive("with_proof_mass", "mass", mass)
    if min(stiffness, damping, housing) < 0:
        raise ArgumentError(
            f"with_proof_mass: stiffness {stiffness!r}, damping {damping!r} and housing {housing!r}, expected none negative"
        )
    between = np.append(e, -1.0)

    def wide(A: Array) -> Array:
        return np.pad(A, ((0, 1), (0, 1)))

    M = wide(system.M)
    M[:n, :n] += housing * np.outer(e, e)
    M[n, n] = m
    return SecondOrder(
        M,
        wide(system.D) + damping * np.outer(between, between),
        wide(system.K) + stiffness * np.outer(between, between),
        np.hstack([np.pad(system.F, ((0, 1), (0, 0))), between[:, None]]),
        np.pad(system.C_q, ((0, 0), (0, 1))),
        np.pad(system.C_v, ((0, 0), (0, 1))),
        (*system.input_names, name),
        system.output_names,
    )


@dataclass(frozen=True, eq=False)
class StabilityMap:
    """The largest growth (real part of a pole, 1/s) for every pair of gains: gains of the first by rows."""

    gains: tuple[Array, Array]
    growth: Array
    names: tuple[str, str]

    @property
    def stable(self) -> Array:
        return self.growth < 0

    @property
    def best(self) -> tuple[float, float]:
        """The gains with the fastest decay of the slowest pole."""
        i, j = np.unravel_index(int(self.growth.argmin()), self.growth.shape)
        return float(self.gains[0][i]), float(self.gains[1][j])

    def plot(self, *, path: str | PathLike[str] | None = None) -> Figure:
        """Where it is stable, over the gains; needs matplotlib. `path` saves it."""
        figure = figures.new_figure("plot", 6, 5)
        axes = figure.subplots()
        size = np.abs(self.growth).max() or 1.0
        mesh = axes.pcolormesh(
            *self.gains, self.growth.T, cmap="RdBu_r", vmin=-size, vmax=size, shading="nearest"
        )
        axes.contour(*self.gains, self.growth.T, levels=[0.0], colors="k")
        axes.set(xlabel=figures.plain(self.names[0]), ylabel=figures.plain(self.names[1]))
        figure.colorbar(mesh, label="largest real part of a pole [1/s]")
        return figures.save(figure, path)


def stability_map(
    system: SecondOrder, first: Any, second: Any, *, outputs: Sequence[str], control: str
) -> StabilityMap:
    """Feedback u = g1 y1 + g2 y2 of two outputs (by name) to the input `control`, for all pairs of gains."""
    what = "stability_map"
    grids = tuple(np.atleast_1d(arguments.numbers(what, "gains", g)) for g in (first, second))
    rows = []
    for name in outputs:
        if name not in system.output_names:
            raise ArgumentError(arguments.unknown(f"{what}: no output", name, system.output_names))
        rows.append(system.output_names.index(name))
    if len(rows) != 2:
        raise ArgumentError(f"{what}: {len(rows)} outputs, expected two")
    if control not in system.input_names:
        raise ArgumentError(arguments.unknown(f"{what}: no input", control, system.input_names))
    b = system.F[:, [system.input_names.index(control)]]
    growth = np.empty((len(grids[0]), len(grids[1])))
    for i, g1 in enumerate(grids[0]):
        for j, g2 in enumerate(grids[1]):
            row = np.array([[g1, g2]])
            D, K = (A - b @ row @ C[rows] for A, C in ((system.D, system.C_v), (system.K, system.C_q)))
            growth[i, j] = pairs(system.M, D, K)[0].real.max()
    return StabilityMap((grids[0], grids[1]), growth, (outputs[0], outputs[1]))
