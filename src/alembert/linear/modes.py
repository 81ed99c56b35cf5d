"""Natural modes: poles with their frequencies, damping ratios and shapes.

At a conservative equilibrium (no velocity terms, K = -M A21 symmetric) the modes are those of

    K phi = omega^2 M phi                                                            (1)

with real shapes that are orthogonal in M also where frequencies repeat, and rigid-body modes at omega = 0. Any
other point has the eigenvectors of A; there the kernel of A gives the rigid-body modes, since their eigenvalues
are defective and would come out as a small cloud around zero. What counts as zero is told by (3) and (4); slow modes
beside stiff springs are not zero.

To look at a mode, the model swings about its point in its shape,

    q(t) = q0 (+) a Re(phi e^(i Omega t))                                            (2)

with an amplitude a that the eye can follow and without decay or growth, whatever the pole says: a mode is a shape.
Modes that do not oscillate swing as well, at one turn in two seconds; fast and slow ones are shown at that pace too,
and their notes say by what factor.

How small a stiffness, or a pole, is rounding: entry by entry, A is known to some roundings of what it was made from: of its
own size, and, where weights are in balance (an arm with vertical axes), of the stiffness that the same weights have
elsewhere,

    |dA| <= eps (|A| + [0 0; |M^-1| k 0]),      k = m g l u u^T,    u = 1 (rad), 1/l (m)                   (3)

with the mass m of all bodies and their largest distance l from the world's origin, about which derivatives are computed.
No state is compared with another one of other units or of another stiffness.

The number of poles that are zero is found without computing poles, since rounding moves double ones by its square root:
orthogonal coordinates in which the kernel of A comes first leave the rest of A with the other poles,

    Q^T A Q = [0 *; 0 A'],                                                                                  (4)

and so on with A' until it has no kernel (the staircase of Kublanovskaya).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from alembert.errors import ArgumentError, UnsupportedError
from alembert.linear import quantities
from alembert.model import printing

if TYPE_CHECKING:
    from alembert.linear.linear_model import LinearModel
    from alembert.view import Animation

Array = np.ndarray
_SYMMETRIC = 1e-9  # of what K was made from: less is rounding, with some room for the condition of M
_SHOWN = 24  # motions on a page: some megabytes
_PACE = 2.0  # s: period of what is shown slower or faster than it is
_EASY = (0.4, 5.0)  # s: periods that are shown as they are
_FRAMES = 60  # per turn
_ANGLE = 0.35  # rad: the largest one shown
_SHARE = 0.3  # of a link's length: the largest distance shown
ROUNDINGS = 1e-12
"""what sums of some hundred terms may lose, 1e3 eps and some room"""
CLOUD = 1.5e-8
"""of the fastest pole: the square root of eps, below which stiffnesses do not reach; long chains of zeros (those of a
falling body) leave such poles, which (4) may take for others"""


@dataclass(frozen=True, eq=False)
class Mode:
    """`kind` is "oscillation" (a pair of poles), "real" (one) or "rigid" (zero)."""

    kind: str
    pole: complex
    """of a pair the one with the positive imaginary part, rad/s"""
    shape: Array
    """the displacements (nv,), the largest 1"""
    names: tuple[str, ...]

    @property
    def frequency(self) -> float:
        """omega = |pole|, rad/s."""
        return abs(self.pole)

    @property
    def damping(self) -> float:
        """zeta = -Re(pole)/|pole|; 1 for stable real poles, -1 for unstable ones, NaN for rigid-body modes."""
        return -self.pole.real / abs(self.pole) if self.pole else float("nan")

    @property
    def stable(self) -> bool:
        return self.pole.real < 0

    @property
    def period(self) -> float:
        """Of the damped oscillation, s; infinite for the others."""
        return 2 * np.pi / self.pole.imag if self.pole.imag else float("inf")

    def largest(self, count: int = 3) -> dict[str, complex]:
        """The displacements that take part most, by name."""
        order = np.argsort(-np.abs(self.shape), kind="stable")[:count]
        return {self.names[k]: self.shape[k].item() for k in order if abs(self.shape[k]) > 1e-6}


@dataclass(frozen=True, eq=False)
class Modes:
    """In the order of their frequencies, rigid-body modes first."""

    modes: tuple[Mode, ...]
    linear: LinearModel

    def __len__(self) -> int:
        return len(self.modes)

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.modes)

    def __getitem__(self, k: int) -> Mode:
        return self.modes[k]

    @property
    def frequencies(self) -> Array:
        return np.array([mode.frequency for mode in self.modes])

    @property
    def damping(self) -> Array:
        return np.array([mode.damping for mode in self.modes])

    @property
    def shapes(self) -> Array:
        """(modes, nv)"""
        return np.array([mode.shape for mode in self.modes])

    @property
    def rigid(self) -> tuple[Mode, ...]:
        return tuple(mode for mode in self.modes if mode.kind == "rigid")

    def motion(self, k: int = 0, *, amplitude: float | None = None) -> Animation:
        """Mode `k` as a motion to look at: the model swings in its shape, by `amplitude` (rad, m) at the most."""
        return _motion(self.linear, k, amplitude)

    def motions(self) -> list[Animation]:
        """Each shape once, the slowest 24 of them."""
        return self._motions(None)

    def _motions(self, amplitude: float | None) -> list[Animation]:
        # of a pair of real poles +-s the two modes have the same shape
        twins = {
            k
            for k, mode in enumerate(self.modes)
            if mode.kind == "real" and any(np.allclose(mode.shape, m.shape) for m in self.modes[:k])
        }
        shown = [k for k in range(len(self)) if k not in twins][:_SHOWN]
        return [self.motion(k, amplitude=amplitude) for k in shown]

    def to_html(
        self,
        path: str | PathLike[str],
        *,
        title: str = "",
        theme: str = "auto",
        autoplay: bool = True,
        amplitude: float | None = None,
    ) -> Path:
        """Write a page with a tab for each shape (of the slowest 24), in which the model swings."""
        from alembert.view import write_page

        motions = self._motions(amplitude)
        name = title or f"Modes of {self.linear.model.name}"
        return write_page(path, motions, title=name, theme=theme, autoplay=autoplay)

    def __rich__(self) -> Any:
        return printing.table("modes", _COLUMNS, map(_row, self.modes))

    def _repr_html_(self) -> str:
        return printing.html_text(str(self))

    def __str__(self) -> str:
        return printing.as_text(self.__rich__())


def modes(linear: LinearModel) -> Modes:
    """All modes of one linear model."""
    n = len(linear.displacements)
    if linear.whole is not None and not linear.has_modes:
        raise UnsupportedError(
            "modes: the part has displacements without their speeds, or speeds without displacements, which second-order "
            "modes have no form for; `poles` gives the eigenvalues"
        )
    if len(linear.rates) != n:
        raise UnsupportedError(
            f"modes: something rolls: {n} displacements and {len(linear.rates)} speeds are independent, which second-order "
            "modes have no form for; `poles` gives the eigenvalues"
        )
    names = tuple(linear.model.speed_names[k] for k in linear.displacements)
    if n == 0:
        return Modes((), linear)
    M, A21 = linear.mass_matrix, linear.A[n:, :n]
    K, size = -M @ A21, np.abs(M) @ np.abs(A21) + stiffness_of_weights(linear)
    still = not np.any(linear.A[:n, :n]) and not np.any(linear.A[n:, n:])
    if still and np.all(np.abs(K - K.T) <= _SYMMETRIC * (size + size.T)):
        found = _conservative(K, M, size, names)
    else:
        found = _general(linear.A, sizes(linear), names)
    return Modes(tuple(sorted(found, key=lambda mode: mode.frequency)), linear)


def _conservative(K: Array, M: Array, size: Array, names: tuple[str, ...]) -> list[Mode]:
    """(1); the quotient of Rayleigh has the digits of slow modes that fast ones take from the eigenvalue."""
    K, M = (K + K.T) / 2, (M + M.T) / 2
    shapes = scipy.linalg.eigh(K, M)[1]
    found = []
    for shape in shapes.T:
        stiffness = float(shape @ K @ shape)
        square = stiffness / float(shape @ M @ shape)
        if abs(stiffness) <= ROUNDINGS * float(np.abs(shape) @ size @ np.abs(shape)):
            found.append(Mode("rigid", 0j, _normalised(shape), names))
        elif square > 0:
            found.append(Mode("oscillation", 1j * float(np.sqrt(square)), _normalised(shape), names))
        else:
            rate = float(np.sqrt(-square))
            found += [Mode("real", complex(s), _normalised(shape), names) for s in (-rate, rate)]
    return found


def _general(A: Array, size: Array, names: tuple[str, ...]) -> list[Mode]:
    n = len(names)
    poles, vectors = np.linalg.eig(A)
    order = np.argsort(np.abs(poles), kind="stable")
    zero = count_zero(poles, A, size)
    found = []
    for pole, vector in zip(poles[order[zero:]], vectors.T[order[zero:]], strict=True):
        if pole.imag == 0:
            found.append(Mode("real", complex(pole), _normalised(vector[:n].real), names))
        elif pole.imag > 0:
            found.append(Mode("oscillation", complex(pole), _normalised(vector[:n]), names))
    if zero:
        found += [Mode("rigid", 0j, _normalised(x[:n]), names) for x in kernel(A, size).T]
    return found


def _normalised(shape: Array) -> Array:
    return shape / shape[np.argmax(np.abs(shape))]


_COLUMNS = ("kind", "pole [rad/s]", "frequency [rad/s]", "[Hz]", "damping", "largest displacements")


def _row(mode: Mode) -> tuple[str, ...]:
    sign = "±" if mode.kind == "oscillation" else ""
    pole = printing.number(mode.pole.real) + (f" {sign} {mode.pole.imag:.5g}j" if sign else "")
    shape = ", ".join(f"{name} {abs(x) * np.sign(x.real or 1):.3g}" for name, x in mode.largest().items())
    hertz = mode.frequency / (2 * np.pi)
    damping = "" if np.isnan(mode.damping) else printing.number(mode.damping, 4)
    return mode.kind, pole, f"{mode.frequency:.6g}", f"{hertz:.6g}", damping, shape


# --- to look at ---------------------------------------------------------------------------------------------


def _motion(linear: LinearModel, k: int, amplitude: float | None = None) -> Animation:
    """Mode number `k` (from 0) as a motion; `amplitude` is that of its largest displacement."""
    from alembert.view import Animation

    if linear.whole is not None and len(linear.whole.displacements) > len(linear.displacements):
        raise UnsupportedError(
            f"motion: the linear model is a part that leaves out {', '.join(linear.left_out)}, which move along; "
            "show the modes of the whole, linear.whole.modes()"
        )
    modes = linear.modes()
    if not -len(modes) <= k < len(modes):
        raise ArgumentError(f"motion: mode {k} of {len(modes)}, expected 0 to {len(modes) - 1}")
    mode = modes[k]
    period = mode.period if mode.kind == "oscillation" else np.inf
    shown = period if _EASY[0] <= period <= _EASY[1] else _PACE
    time = np.linspace(0.0, shown, _FRAMES + 1)  # one turn, which the page repeats
    phase = np.exp(2j * np.pi * time / shown)
    size = _amplitude(linear, mode) if amplitude is None else float(amplitude)
    moved = np.zeros((len(time), linear.model.nv))
    moved[:, list(linear.displacements)] = size * (phase[:, None] * mode.shape).real  # (2)
    q = linear.model.integrate(np.broadcast_to(linear.q, (len(time), linear.model.nq)), moved)
    parameters = {name: float(value) for name, value in linear.parameter_values.items()}
    if linear.model.is_constrained:
        q = linear.model.assemble(q, fixed=mode.names, parameters=parameters or None).q
    notes = {"pole": f"{mode.pole:.4g} rad/s" if mode.pole.imag else f"{mode.pole.real:.4g} rad/s"}
    if mode.kind == "oscillation":
        notes["frequency"] = f"{mode.frequency:.4g} rad/s, {mode.frequency / (2 * np.pi):.4g} Hz"
        notes["damping"] = f"{mode.damping + 0.0:.4g}, not shown"
    else:
        notes["kind"] = "rigid-body motion" if mode.kind == "rigid" else f"{_real(mode)} without oscillation"
    if shown != period and np.isfinite(period):
        factor = shown / period
        notes["shown"] = f"{factor:.3g} times slower" if factor > 1 else f"{1 / factor:.3g} times faster"
    number = k % len(modes) + 1
    return Animation(
        linear.model,
        time,
        q,
        series={"displacements": dict(zip(mode.names, moved[:, list(linear.displacements)].T, strict=True))},
        title=f"mode {number}: {_named(mode)}",
        notes=notes,
        parameters=parameters or None,
    )


def _amplitude(linear: LinearModel, mode: Mode) -> float:
    """As large as angles and distances on links stay easy to see."""
    from alembert.view.scene import typical_length

    model = linear.model
    units = model.space.speed_units
    length = _SHARE * typical_length(model, model.parameter_values | dict(linear.parameter_values))
    most = np.array([_ANGLE if units[i] == "rad/s" else length for i in linear.displacements])
    size = np.abs(mode.shape)
    return float(np.min(most[size > 0] / size[size > 0]))


def _named(mode: Mode) -> str:
    if mode.kind == "oscillation":
        return f"{mode.frequency / (2 * np.pi):.3g} Hz"
    return "rigid" if mode.kind == "rigid" else _real(mode)


def _real(mode: Mode) -> str:
    return f"{'decays' if mode.pole.real < 0 else 'grows'} in {1 / abs(mode.pole.real):.3g} s"


# --- what is rounding ---------------------------------------------------------------------------------------


def stiffness_of_weights(linear: LinearModel) -> Array:
    """k of (3), for the displacements of a linear model."""
    model, n = linear.model, len(linear.displacements)
    parameters = {name: float(np.asarray(x)) for name, x in linear.parameter_values.items()}
    values = model.parameter_values | parameters
    g = float(np.linalg.norm([quantities.number(x, values) for x in model.gravity]))
    places = [
        model.frame_pose(linear.q, b.name, parameters=parameters or None).translation for b in model.bodies
    ]
    center = model.center_of_mass(linear.q, parameters=parameters or None)
    l = float(np.linalg.norm([*places, center], axis=-1).max(initial=0.0))
    if not g or not l or not n:
        return np.zeros((n, n))
    units = quantities.displacement_units(model)
    u = np.array([1.0 / l if units[k] == "m" else 1.0 for k in linear.displacements])
    return model.mass * g * l * np.outer(u, u)


def sizes(linear: LinearModel) -> Array:
    """What (3) has after eps, of the size of A."""
    n, m = len(linear.displacements), len(linear.rates)
    found = np.abs(linear.A)
    if n == m:
        found[n:, :n] += np.abs(np.linalg.inv(linear.mass_matrix)) @ stiffness_of_weights(linear)
    return found


def zero_poles(A: Array, size: Array) -> int:
    """How many poles are zero, (4); `size` is that of the numbers that the entries were made from."""
    scale = _units(size)
    A, size = A * scale / scale[:, None], size * scale / scale[:, None]
    count = 0
    while len(A):
        found = kernel(A, size)
        if not found.shape[1]:
            break
        count += found.shape[1]
        rest = np.linalg.qr(found, mode="complete")[0][:, found.shape[1] :]
        A, size = rest.T @ A @ rest, np.abs(rest.T) @ size @ np.abs(rest)
    return count


def kernel(A: Array, size: Array) -> Array:
    """A basis of what A takes to zero but for rounding, (n, k); rows and columns count by their own size."""
    rows, columns = np.ones((2, len(A)))
    for _ in range(8):  # each time the largest entries come nearer to one
        scaled = size / rows[:, None] / columns
        rows *= np.sqrt(_or_one(scaled.max(axis=1)))
        columns *= np.sqrt(_or_one(scaled.max(axis=0)))
    _, s, Vt = np.linalg.svd(A / rows[:, None] / columns)
    rank = int(np.count_nonzero(s > ROUNDINGS * len(A)))
    found = Vt[rank:].T / columns[:, None]
    return found / _or_one(np.linalg.norm(found, axis=0))


def _units(size: Array) -> Array:
    """Scales of the states in which entries across the diagonal are alike."""
    return np.asarray(scipy.linalg.matrix_balance(size, permute=False, separate=True)[1][0])


def _or_one(x: Array) -> Array:
    return np.where(x > 0, x, 1.0)


def count_zero(poles: Array, A: Array, size: Array) -> int:
    """How many of the poles of A are zero: by (4), or so small that no model is so stiff."""
    tiny = np.abs(poles) <= CLOUD * np.abs(poles).max(initial=0.0)
    return max(zero_poles(A, size), int(np.count_nonzero(tiny)))


def settled_poles(linear: LinearModel) -> Array:
    """The eigenvalues of A by size; those that are zero but for rounding are zero."""
    poles = np.linalg.eigvals(linear.A)
    poles = poles[np.argsort(np.abs(poles), kind="stable")]
    poles[: count_zero(poles, linear.A, sizes(linear))] = 0.0
    return poles
