"""Drives that remember, in continuous time: what they give as states of the equations of motion, for error control.

With u the command, saturated, and r the limit of the rate, a lag of first order (T) or of second order (w, zeta) is

    x' = clip((u - x) / T, -r, r)                                                               (1)
    x' = clip(y, -r, r),   y' = w^2 (u - x) - 2 zeta w y,  and zero where it would lead y further beyond r     (2)

A drive with a limited rate and no lag follows u where it can, which is no differential equation. While u is held it goes
there on a straight line, which is part of the span between two instants:

    x(t) = x0 + clip(u - x0, -r (t - t0), r (t - t0))                                           (3)

What the joints get is x, saturated. `alembert.simulate.actuators` has the same over steps.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from alembert.simulate.actuators import Drives

Array = np.ndarray


class Lags:
    """States z: x of all lags, then y of those of second order."""

    def __init__(self, drives: Drives) -> None:
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

    @cached_property
    def _limits(self) -> tuple[Array, Array, Array]:
        """Of the rates of x, and of the efforts, in the order of x; and which of z are y."""
        return self.drives.rate[self.x], self.drives.limit[self.x], np.arange(len(self.x), self.size)

    def packed(self, memory: Array) -> Array:
        """z from (2, nv): efforts before saturation and their rates."""
        return np.concatenate([memory[0, self.x], memory[1, self.second]])

    def unpacked(self, z: Array, given: Array) -> Array:
        """(..., 2, nv) from z; degrees of freedom without a lag have what is given."""
        n = len(self.x)
        found = np.zeros((*z.shape[:-1], 2, given.shape[-1]))
        found[..., 0, :] = given
        found[..., 0, self.x] = z[..., :n]
        found[..., 1, self.second] = z[..., n:]
        return found

    def given(self, z: Array, command: Array) -> Array:
        """Efforts on the joints, of drives with a lag and of those that carry the command out at once."""
        u = self.drives.saturate(command)
        found = np.broadcast_to(u, np.broadcast_shapes(u.shape, (*z.shape[:-1], u.shape[-1]))).copy()
        limit = self._limits[1]
        found[..., self.x] = np.clip(z[..., : len(self.x)], -limit, limit)
        return found

    def rates(self, z: Array, command: Array) -> Array:
        """(1) and (2)."""
        drives, n, k = self.drives, len(self.x), len(self.first)
        u = drives.saturate(command)[self.x]
        limit = self._limits[0]
        x, y = z[:n], z[n:]
        wanted = np.concatenate([(u[:k] - x[:k]) / drives.lag[self.first], y])
        w, zeta = drives.frequency[self.second], drives.damping_ratio[self.second]
        faster = w * w * (u[k:] - x[k:]) - 2 * zeta * w * y
        faster = np.where((np.abs(y) >= limit[k:]) & (faster * y > 0), 0.0, faster)
        return np.concatenate([np.clip(wanted, -limit, limit), faster])

    def slopes(self, z: Array, command: Array) -> tuple[Array, Array, Array, Array]:
        """Of what is `given`, d/du (nv, diagonal) and d/dz (nv, size); of the `rates`, d/du (size, nv) and d/dz."""
        drives, n, k = self.drives, len(self.x), len(self.first)
        nv = len(drives.lag)
        limit, most, ys = self._limits
        open_u = (np.abs(command) < drives.limit).astype(float)
        by_u = open_u.copy()
        by_u[self.x] = 0.0
        by_z = np.zeros((nv, self.size))
        by_z[self.x, np.arange(n)] = np.abs(z[:n]) < most
        rate_u, rate_z = np.zeros((self.size, nv)), np.zeros((self.size, self.size))
        u = drives.saturate(command)
        T = drives.lag[self.first]
        free = (np.abs((u[self.first] - z[:k]) / T) < limit[:k]).astype(float)
        rate_u[np.arange(k), self.first] = free * open_u[self.first] / T
        rate_z[np.arange(k), np.arange(k)] = -free / T
        w, zeta = drives.frequency[self.second], drives.damping_ratio[self.second]
        y, xs = z[n:], np.arange(k, n)
        rate_z[xs, ys] = np.abs(y) < limit[k:]
        faster = w * w * (u[self.second] - z[k:n]) - 2 * zeta * w * y
        free = 1.0 - ((np.abs(y) >= limit[k:]) & (faster * y > 0))
        rate_u[ys, self.second] = free * open_u[self.second] * w * w
        rate_z[ys, xs], rate_z[ys, ys] = -free * w * w, -free * 2 * zeta * w
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
