"""JointDrives: how the efforts that controllers ask for reach the joints.

A command u, saturated, passes a lag of first or second order,

    T x' = u - x,        x'' + 2 zeta w x' + w^2 x = w^2 u                              (1)

then a limit of its rate, then the saturation. Over a step the command is held and (1) solved exactly; the joint gets
the mean of x over the step, so that momentum and work are those of the drive. A drive with a geared rotor adds that
rotor to the model (equation (4) of `alembert.joints.attachments`), and its friction: b of the motor counts ratio^2 b at
the joint, Coulomb's c counts ratio c.

In continuous time, for error control:

With u the command, saturated, and r the limit of the rate, a lag of first order (T) or of second order (w, zeta) is

    x' = clip((u - x) / T, -r, r)                                                               (1)
    x' = clip(y, -r, r),   y' = w^2 (u - x) - 2 zeta w y,  and zero where it would lead y further beyond r     (2)

A drive with a limited rate and no lag follows u where it can, which is no differential equation. While u is held it goes
there on a straight line, which is part of the span between two instants:

    x(t) = x0 + clip(u - x0, -r (t - t0), r (t - t0))                                           (3)

What the joints get is x, saturated. `alembert.simulate.actuators` has the same over steps.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import scipy

from alembert.arguments import check_known, is_number, real
from alembert.engine.kernel import Kernel
from alembert.errors import ArgumentError
from alembert.expression import Expression
from alembert.joints import Friction, Rotor
from alembert.model import Joint, Model
from alembert.simulate.elements import function_kernel
from alembert.spatial.arrays import clip

Array = np.ndarray


@dataclass(frozen=True)
class Gear:
    """A motor with a rotor of `inertia` [kg m^2] that turns `ratio` times as fast as the joint.

    Friction is the motor's: `viscous` [N m s], `coulomb` [N m]. The rotor spins about `axis` in the joint frame, by
    default the joint's own axis.
    """

    ratio: float
    inertia: float
    viscous: float = 0.0
    coulomb: float = 0.0
    axis: tuple[float, ...] | None = None
    dof: int = 0

    def __post_init__(self) -> None:
        if not (is_number(self.ratio) and self.ratio != 0):
            raise ArgumentError(f"Gear: ratio is {self.ratio!r}, expected a number other than zero")
        for name in ("inertia", "viscous", "coulomb"):
            value = getattr(self, name)
            real("Gear", name, value, "zero or more", least=0.0)

    def on(self, joint: Joint, function: str = "simulate") -> Joint:
        """The joint with the rotor and its friction."""
        if any(rotor.dof == self.dof for rotor in joint.rotors):
            raise ArgumentError(
                f"{function}: drives: joint {joint.name!r} has a rotor in the model already; leave out one of them"
            )
        if not 0 <= self.dof < joint.type.nv:
            raise ArgumentError(
                f"{function}: drives: a gear on dof {self.dof} of joint {joint.name!r}, which has {joint.type.nv}"
            )
        axis = self.axis if self.axis is not None else getattr(joint.type, "axis", None)
        if axis is None:
            raise ArgumentError(
                f"{function}: drives: a {joint.type.kind} joint has no axis for the rotor of {joint.name!r}; "
                "give Gear(axis=...)"
            )
        rotor = Rotor(self.ratio, self.inertia, tuple(axis), self.dof)
        return dataclasses.replace(joint, rotors=(*joint.rotors, rotor), friction=self._friction(joint))

    def _friction(self, joint: Joint) -> Friction | None:
        if not (self.viscous or self.coulomb):
            return joint.friction
        own, zeros = joint.friction or Friction(), (0.0,) * joint.type.nv
        added = {"viscous": self.ratio**2 * self.viscous, "coulomb": abs(self.ratio) * self.coulomb}
        parts = {}
        for name, more in added.items():
            values = list(getattr(own, name) or zeros)
            values[self.dof] = values[self.dof] + more
            parts[name] = tuple(values) if any(isinstance(x, Expression) or x for x in values) else ()
        return Friction(parts["viscous"], parts["coulomb"], own.smoothing)


@dataclass(frozen=True)
class Drive:
    """How one joint's drive carries out a command: a lag, then its rate limit, then its saturation.

    `limit` bounds the effort [N m or N], `rate` how fast it changes [per second]. The lag is of first order with time
    constant `lag` [s], or of second order with natural `frequency` [rad/s] and `damping_ratio`. With a `gear`, limit
    and rate are the motor's: at the joint they are `ratio` times as large.
    """

    limit: float = math.inf
    rate: float = math.inf
    lag: float = 0.0
    frequency: float = 0.0
    damping_ratio: float = 1.0
    gear: Gear | None = None

    def __post_init__(self) -> None:
        for name in ("limit", "rate"):
            value = getattr(self, name)
            if value != math.inf:
                real("Drive", name, value, "a positive number", over=0.0)
        real("Drive", "lag", self.lag, "zero or a time in seconds", least=0.0)
        for name in ("frequency", "damping_ratio"):
            real("Drive", name, getattr(self, name), "zero or more", least=0.0)
        if self.lag and self.frequency:
            raise ArgumentError(
                f"Drive: lag {self.lag:g} s and frequency {self.frequency:g} rad/s, expected a lag of first or of "
                "second order"
            )
        if self.gear is not None and not isinstance(self.gear, Gear):
            raise ArgumentError(f"Drive: gear is {self.gear!r}, expected a Gear")

    def at_joint(self, name: str) -> float:
        """A field, limit and rate as they are at the joint."""
        value = float(getattr(self, name))
        scaled = self.gear is not None and name in ("limit", "rate")
        return value * abs(self.gear.ratio) if scaled and self.gear is not None else value


def with_gears(model: Model, drives: Mapping[str, Drive], function: str = "simulate") -> Model:
    """The model with the rotors of its drives."""
    joints = list(model.joints)
    for name, drive in drives.items():
        if isinstance(drive, Drive) and drive.gear is not None:
            check_known(f"{function}: drives: a gear needs a joint, there is no", name, model.joint_indices)
            k = model.joint_index(name)
            joints[k] = drive.gear.on(joints[k], function)
    return model if joints == list(model.joints) else model.replace(joints=tuple(joints))


@dataclass(frozen=True, eq=False)
class JointDrives:
    """The drives of all degrees of freedom, as vectors over the speeds.

    Their state is (..., 2, nv): the effort before it is saturated, and its rate.
    """

    limit: Array
    rate: Array
    lag: Array
    frequency: Array
    damping_ratio: Array

    @classmethod
    def of(cls, model: Model, drives: Mapping[str, Drive], function: str = "simulate") -> JointDrives:
        fields = {}
        defaults = (
            ("limit", np.inf),
            ("rate", np.inf),
            ("lag", 0.0),
            ("frequency", 0.0),
            ("damping_ratio", 1.0),
        )
        for name, default in defaults:
            given: dict[str, Array] = {}
            for joint, drive in drives.items():
                if not isinstance(drive, Drive):
                    raise ArgumentError(f"{function}: drives[{joint!r}] is {drive!r}, expected a Drive")
                width = model.joint(joint).type.nv if joint in model.joint_indices else 1
                given[joint] = np.full(width, drive.at_joint(name))
            named, values = model.compute.by_name(function, given, "drives")
            fields[name] = np.where(named, values, default)
        return cls(**fields)

    @property
    def remember(self) -> bool:
        """Whether what a drive gives depends on what it gave before."""
        return bool(np.any(np.isfinite(self.rate)) or np.any(self.lag > 0) or np.any(self.frequency > 0))

    @property
    def busy(self) -> Array:
        """(nv,): where a drive makes something else of a command."""
        return np.isfinite(self.limit) | np.isfinite(self.rate) | (self.lag > 0) | (self.frequency > 0)

    def saturate(self, command: Array) -> Array:
        return np.clip(command, -self.limit, self.limit)

    @cached_property
    def _maps(self) -> dict[float, tuple[Array, Array]]:
        return {}

    def _map(self, h: float) -> tuple[Array, Array]:
        """(nv, 2, 2): how deviations from the command (x - u, x') go over a step, and (nv, 2) their mean x - u."""
        if h not in self._maps:
            nv = len(self.lag)
            over, mean = np.zeros((nv, 2, 2)), np.zeros((nv, 2))
            for k in range(nv):
                if self.frequency[k] > 0:
                    w, zeta = self.frequency[k], self.damping_ratio[k]
                    A = np.array([[0.0, 1.0, 0.0], [-(w * w), -2 * zeta * w, 0.0], [1.0, 0.0, 0.0]])
                    whole = scipy.linalg.expm(A * h)  # the third state is the integral of x - u
                    over[k], mean[k] = whole[:2, :2], whole[2, :2] / h
                elif self.lag[k] > 0:
                    x = h / self.lag[k]
                    over[k, 0, 0], mean[k, 0] = math.exp(-x), -math.expm1(-x) / x
            self._maps[h] = over, mean
        return self._maps[h]

    @property
    def follows_at_once(self) -> Array:
        """(nv,): where a drive limits the rate alone, without a lag."""
        return np.isfinite(self.rate) & (self.lag == 0) & (self.frequency == 0)

    def advance(
        self, before: Array, command: Array, h: float, last: Array | None = None
    ) -> tuple[Array, Array]:
        """The mean effort over a step of h, and the state at its end, from that at its start.

        `command` is the mean over the step, `last` what is asked for at its end, where this is not the same.
        """
        over, mean = self._map(h)
        asked = self.saturate(command)
        start, rate = before[..., 0, :], before[..., 1, :]
        off = start - asked
        end = asked + over[:, 0, 0] * off + over[:, 0, 1] * rate
        end_rate = over[:, 1, 0] * off + over[:, 1, 1] * rate
        given = asked + mean[:, 0] * off + mean[:, 1] * rate
        reach = self.rate * h
        limited = np.clip(end, start - reach, start + reach)
        fast = limited != end
        given = np.where(fast, (start + limited) / 2, given)
        end_rate = np.where(fast & (self.frequency > 0), (limited - start) / h, end_rate)
        at_once = self.follows_at_once
        if np.any(at_once):
            ramp = self._ramp(start, asked, asked if last is None else self.saturate(last), h)
            given, limited = (np.where(at_once, x, y) for x, y in zip(ramp, (given, limited), strict=True))
        return self.saturate(given), np.stack(np.broadcast_arrays(limited, end_rate), axis=-2)

    def _ramp(self, start: Array, middle: Array, last: Array, h: float) -> tuple[Array, Array]:
        """The mean over a step and the end of what follows a command at once, at most at the rate: towards it until they
        meet, then along with it. The command goes on a line through `middle` to `last`."""
        rate = np.where(np.isfinite(self.rate), self.rate, 0.0)
        slope, first = 2 * (last - middle) / h, 2 * middle - last
        way = np.sign(first - start)
        nearer = rate - way * slope
        meets = np.abs(first - start) < nearer * h
        t = np.where(meets, np.abs(first - start) / np.where(meets, nearer, 1.0), h)
        there = start + way * rate * t
        end = there + np.clip(slope, -rate, rate) * (h - t)
        return (t * (start + there) + (h - t) * (there + end)) / (2 * h), end


def no_state(batch: tuple[int, ...], nv: int) -> Array:
    """JointDrives that give nothing."""
    return np.zeros((*batch, 2, nv))


def checked(drives: Any, function: str = "simulate") -> Mapping[str, Drive]:
    if drives is None:
        return {}
    if not isinstance(drives, Mapping):
        raise ArgumentError(f"{function}: drives is {drives!r}, expected a mapping from joints to Drive(...)")
    return drives


class Lags:
    """States z: x of all lags, then y of those of second order."""

    def __init__(self, drives: JointDrives) -> None:
        self.drives = drives
        second = drives.frequency > 0
        self.first = np.flatnonzero((drives.lag > 0) & ~second)
        self.second = np.flatnonzero(second)
        self.x = np.concatenate([self.first, self.second])
        """the degrees of freedom of z"""
        self.ramps = np.flatnonzero(np.isfinite(drives.rate) & (drives.lag == 0) & ~second)
        """those of (3)"""

    @property
    def size(self) -> int:
        return len(self.x) + len(self.second)

    def unpacked(self, z: Array, given: Array) -> Array:
        """(..., 2, nv) from z; degrees of freedom without a lag have what is given."""
        n = len(self.x)
        found = np.zeros((*z.shape[:-1], 2, given.shape[-1]))
        found[..., 0, :] = given
        found[..., 0, self.x] = z[..., :n]
        found[..., 1, self.second] = z[..., n:]
        return found

    def symbolic(self, z: ca.SX, command: ca.SX) -> tuple[ca.SX, ca.SX]:
        """What the joints get, and z' by (1) and (2), from z and the command."""
        drives, n, k = self.drives, len(self.x), len(self.first)
        limit = drives.limit.tolist()

        def clipped(x: ca.SX, most: float) -> ca.SX:
            return clip(x, most) if np.isfinite(most) else x

        u = [clipped(command[i], limit[i]) for i in range(len(limit))]
        given, rates = list(u), []
        for j, i in enumerate(self.x.tolist()):
            given[i] = clipped(z[j], limit[i])
            wanted = (u[i] - z[j]) / drives.lag[i] if j < k else z[n + j - k]
            rates.append(clipped(wanted, drives.rate[i]))
        for j, i in enumerate(self.second.tolist()):
            w, zeta, most = drives.frequency[i], drives.damping_ratio[i], float(drives.rate[i])
            x, y = z[k + j], z[n + j]
            faster = w * w * (u[i] - x) - 2 * zeta * w * y
            if np.isfinite(most):
                faster = ca.if_else(ca.logic_and(ca.fabs(y) >= most, faster * y > 0), 0.0, faster)
            rates.append(faster)
        return ca.vertcat(*given), ca.vertcat(ca.SX(0, 1), *rates)

    @cached_property
    def _kernels(self) -> tuple[Kernel, Kernel]:
        """Of z and the command: `symbolic`, and the derivatives of both by the command, then by z."""
        nv, n = len(self.drives.lag), self.size or None
        z, u = ca.SX.sym("z", self.size), ca.SX.sym("u", nv)
        values = ca.Function("lags", [z, u], list(self.symbolic(z, u)))
        slopes = [ca.jacobian(y, x) for y in values(z, u) for x in (u, z)]
        derivatives = ca.Function("slopes", [z, u], slopes)
        shapes = {
            "given_u": (nv, nv),
            "given_z": n and (nv, n),
            "rates_u": n and (n, nv),
            "rates_z": n and (n, n),
        }
        key, given = f"simulate:lags:{values.serialize()}", {"z": n, "u": nv}
        return (
            function_kernel("drives", key, given, {"given": nv, "rates": n}, lambda: values),
            function_kernel("drives", f"{key}:slopes", given, shapes, lambda: derivatives),
        )

    def _numbers(self, kernel: Kernel, z: Array, command: Array) -> tuple[Array, ...]:
        """Results of no size are left out."""
        found = kernel(z, command) if self.size else kernel(command)
        return found if isinstance(found, tuple) else (found,)

    def given(self, z: Array, command: Array) -> Array:
        """Efforts on the joints, of drives with a lag and of those that carry the command out at once."""
        return self._numbers(self._kernels[0], z, command)[0]

    def rates(self, z: Array, command: Array) -> Array:
        """(1) and (2)."""
        return self._numbers(self._kernels[0], z, command)[1] if self.size else z

    def slopes(self, z: Array, command: Array) -> tuple[Array, Array, Array, Array]:
        """Of what is `given`, d/du (nv, nv) and d/dz (nv, size); of the `rates`, d/du (size, nv) and d/dz."""
        by_u, *more = self._numbers(self._kernels[1], z, command)
        nv = len(command)
        by_z, rate_u, rate_z = more or (np.zeros((nv, 0)), np.zeros((0, nv)), np.zeros((0, 0)))
        return by_u, by_z, rate_u, rate_z


class Ramp:
    """(3) over a span that begins at `start` with `before`, towards a command that is held."""

    def __init__(self, lags: Lags, start: float, before: Array, command: Array) -> None:
        drives, k = lags.drives, lags.ramps
        self.start, self.where, self.rate = start, k, drives.rate[k]
        self.before, self.target = before[k], drives.saturate(command)[k]

    def at(self, t: float) -> Array:
        reach = self.rate * max(t - self.start, 0.0)
        return self.before + np.clip(self.target - self.before, -reach, reach)

    @property
    def ends(self) -> Array:
        """When they arrive, of those that are under way."""
        left = np.abs(self.target - self.before)
        return np.unique((self.start + left / self.rate)[left > 0])
