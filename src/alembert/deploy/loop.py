"""Simulation at a fixed rate next to other programs or hardware, with a report of its deadlines.

At every tick the loop takes the newest command, makes its steps, sends the state, and waits for the next tick: asleep, and
for the last `SPIN` seconds awake. Links carry commands u in and states out. A packet over UDP, little-endian, is

    bytes 0-3    "ALMB"                     bytes 8-15   number of the packet (unsigned)
    bytes 4-5    version, 1                 bytes 16-23  time [s] (double)
    bytes 6-7    1: state, 2: command       from 24      doubles: q, v of a state; u of a command

The block of shared memory has doubles only: the number of the state, time, q, v, then the number of the command and u.
Whoever writes makes the number odd before and even after, so that a reader can tell a half-written entry and read again.

`BrowserLink` puts a person into the loop: commands from the keyboard, a gamepad or the mouse, through a page in the browser.
The page asks once per frame: it sends where the sticks and keys are, each from -1 to 1, and gets the pose of every body. The
loop only reads and writes the newest values and never waits for the page. If the page is silent for `SILENCE` seconds
(closed, asleep, another window in front of it), commands are zero.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from multiprocessing import shared_memory
from typing import Any, Protocol

import numpy as np

from alembert.arguments import real, whole
from alembert.deploy.c_program import CProgram, c_program
from alembert.deploy.exported_system import Given
from alembert.engine.kernel import Argument, Kernel
from alembert.errors import ArgumentError, NumericalError
from alembert.model import Model
from alembert.view.page import SCRIPTS, STYLES, Still, asset, pose_numbers, scene_data
from alembert.view.served import ServedPage

Array = np.ndarray
MAGIC, VERSION, STATE, COMMAND = b"ALMB", 1, 1, 2
HEADER = struct.Struct("<4sHHQd")
_MADE_HERE: set[str] = set()
"""names of blocks that this process made"""
SPIN = 2e-4
"""seconds before a deadline from which the loop no longer sleeps: what a system may be late to wake it"""


class RealtimeLink(Protocol):
    """Where commands come from and states go to."""

    def receive(self, u: Array) -> None:
        """Write the newest command into u, if there is one."""
        ...

    def send(self, number: int, t: float, q: Array, v: Array) -> None: ...


def pack(kind: int, number: int, t: float, values: Array) -> bytes:
    """A packet as the module describes it."""
    return HEADER.pack(MAGIC, VERSION, kind, number, t) + np.asarray(values, dtype="<f8").tobytes()


def unpack(packet: bytes) -> tuple[int, int, float, Array] | None:
    """Kind, number, time and doubles of a packet; None if it is none of ours."""
    if len(packet) < HEADER.size or (len(packet) - HEADER.size) % 8:
        return None
    magic, version, kind, number, t = HEADER.unpack_from(packet)
    if magic != MAGIC or version != VERSION:
        return None
    return kind, number, t, np.frombuffer(packet, dtype="<f8", offset=HEADER.size).astype(float)


class UdpLink:
    """States to `to`, commands at `at`: pairs of a host and a port. Loopback unless you say otherwise."""

    def __init__(self, at: tuple[str, int] = ("127.0.0.1", 0), to: tuple[str, int] | None = None) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(at)
        self._socket.setblocking(False)
        self.to = to
        self.refused = 0
        """packets that were none of ours, or of another size"""

    @property
    def address(self) -> tuple[str, int]:
        """Where commands are awaited; port 0 was replaced by a free one."""
        host, port = self._socket.getsockname()[:2]
        return host, port

    def receive(self, u: Array) -> None:
        while True:
            try:
                packet, sender = self._socket.recvfrom(65536)
            except (BlockingIOError, ConnectionError):
                return
            found = unpack(packet)
            if (
                found is None
                or found[0] != COMMAND
                or len(found[3]) != len(u)
                or not np.all(np.isfinite(found[3]))
            ):
                self.refused += 1
                continue
            self.to = self.to or sender
            u[:] = found[3]

    def send(self, number: int, t: float, q: Array, v: Array) -> None:
        if self.to is not None:
            with contextlib.suppress(BlockingIOError, ConnectionError):
                self._socket.sendto(pack(STATE, number, t, np.concatenate([q, v])), self.to)

    def close(self) -> None:
        self._socket.close()


class SharedLink:
    """A block of shared memory under a name; the loop makes it, others attach with `create=False`."""

    def __init__(self, model: Model, inputs: int, name: str | None = None, *, create: bool = True) -> None:
        self._sizes = model.nq, model.nv, inputs
        count = 3 + sum(self._sizes)
        try:
            self.memory = shared_memory.SharedMemory(name=name, create=create, size=8 * count)
        except (FileNotFoundError, FileExistsError) as error:
            there = (
                "is there already" if create else "does not exist: the loop makes it, before others attach"
            )
            raise ArgumentError(f"SharedLink: a block {name!r} {there}") from error
        if not create:
            _leave_to_its_maker(self.memory)
            if self.memory.size < 8 * count:
                size = self.memory.size
                self.memory.close()
                raise ArgumentError(
                    f"SharedLink: the block {name!r} has {size} bytes, expected {8 * count} for the {model.nq} coordinates "
                    f"and {model.nv} speeds of {model.name!r} and {inputs} inputs"
                )
        self.name = self.memory.name
        self.refused = 0
        """commands that were not finite"""
        self._x = np.ndarray((count,), dtype=float, buffer=self.memory.buf)
        self._own = create
        if create:
            self._x[:] = 0.0
            _MADE_HERE.add(self.name)

    def receive(self, u: Array) -> None:
        at = 2 + self._sizes[0] + self._sizes[1]
        for _ in range(10):
            number = self._x[at]
            if number == 0:
                return
            found = self._x[at + 1 : at + 1 + len(u)].copy()
            if number % 2 == 0 and self._x[at] == number:
                if np.all(np.isfinite(found)):
                    u[:] = found
                else:
                    self.refused += 1
                return

    def send(self, number: int, t: float, q: Array, v: Array) -> None:
        nq, nv, _ = self._sizes
        self._x[0] += 1
        self._x[1], self._x[2 : 2 + nq], self._x[2 + nq : 2 + nq + nv] = t, q, v
        self._x[0] += 1

    def command(self, u: Array) -> None:
        """For the other side."""
        at = 2 + self._sizes[0] + self._sizes[1]
        self._x[at] += 1
        self._x[at + 1 : at + 1 + self._sizes[2]] = u
        self._x[at] += 1

    def state(self) -> tuple[float, Array, Array]:
        """For the other side: the newest time, q and v."""
        nq, nv, _ = self._sizes
        while True:
            number, found = self._x[0], self._x[1 : 2 + nq + nv].copy()
            if number % 2 == 0 and self._x[0] == number:
                return float(found[0]), found[1 : 1 + nq], found[1 + nq :]

    def close(self) -> None:
        del self._x
        self.memory.close()
        if self._own:
            self.memory.unlink()
            _MADE_HERE.discard(self.name)


def _leave_to_its_maker(memory: shared_memory.SharedMemory) -> None:
    """Python before 3.13 removes a block when any process that attached to it ends."""
    if sys.version_info < (3, 13) and os.name == "posix" and memory.name not in _MADE_HERE:
        from multiprocessing import resource_tracker

        resource_tracker.unregister(f"/{memory.name.lstrip('/')}", "shared_memory")


@dataclass(frozen=True, eq=False)
class DeadlineReport:
    """How a loop at a fixed rate kept its deadlines."""

    period: float
    lateness: Array
    """seconds after each deadline at which its tick began"""
    work: Array
    """seconds that each tick took"""
    q: Array
    v: Array

    @property
    def missed(self) -> int:
        """Ticks that began a period late or more."""
        return int(np.sum(self.lateness >= self.period))

    def within(self, seconds: float = 1e-4) -> float:
        """The share of ticks that began within so many seconds of their deadline."""
        return float(np.mean(self.lateness <= seconds))

    def histogram(self) -> str:
        """Lateness by decades, as text."""
        edges = [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, math.inf]
        counts, _ = np.histogram(self.lateness, edges)
        labels = ["< 1 us", "< 10 us", "< 100 us", "< 1 ms", "< 10 ms", "more"]
        width = max(1, int(counts.max()))
        return "\n".join(
            f"{label:>8} {n:8d} {'#' * (40 * int(n) // width)}"
            for label, n in zip(labels, counts, strict=True)
        )

    def __repr__(self) -> str:
        return (
            f"<DeadlineReport: {len(self.lateness)} ticks of {1e3 * self.period:g} ms, {self.missed} missed, "
            f"{100 * self.within():.2f} % within 100 us>"
        )


def realtime(
    model: Model,
    *,
    duration: float,
    rate: float = 1000.0,
    steps: int = 1,
    integrator: str = "semi_implicit_euler",
    link: RealtimeLink | None = None,
    controller: Any = None,
    inputs: Any = None,
    drives: Mapping[str, Any] | None = None,
    sensors: Any = (),
    forces: Any = (),
    q0: Any = None,
    v0: Any = None,
    clock: Callable[[], float] = time.perf_counter,
) -> DeadlineReport:
    """Simulate in real time: `rate` ticks a second with `steps` integrator steps each, for `duration` seconds.

    `link` brings commands and takes states (`UdpLink`, `SharedLink`, or anything with `receive` and `send`). Commands are
    the efforts of all joints, or of those in `inputs`, or what a `controller` takes; it, `drives`, `sensors` and `forces`
    are as in `al.deploy.fmu`. An ordinary operating system promises no deadlines; the report says how they were kept.
    """
    for what, value in (("duration", duration), ("rate", rate)):
        real("realtime", what, value, "a positive number", over=0.0)
    whole("realtime", "steps", steps, "a whole number from 1 on")
    given = Given(controller, inputs, drives, sensors, forces)
    program = c_program(
        "realtime", model, "realtime", given, integrator=integrator, q0=q0, v0=v0, tangents=False
    )
    h = 1.0 / rate / steps
    every = round(program.tick / h)
    if program.tick and (every < 1 or abs(every * h - program.tick) > 1e-9 * program.tick):
        raise ArgumentError(
            f"realtime: the step is {h:g} s, expected a part of {program.tick:g} s, the longest time of which all periods, "
            "delays and offsets are multiples"
        )
    advance, instant = (_kernel(program, name) for name in ("step", "instant"))
    period, count = 1.0 / rate, max(1, round(duration * rate))
    now = {name: np.array(x) for name, x in program.starts.items()} | {"t": np.zeros(1), "h": np.array([h])}
    q, v, u = now["q"], now["v"], now["u"]
    lateness, work = np.zeros(count), np.zeros(count)
    for kernel in (instant, advance):
        kernel({name: x.copy() for name, x in now.items()})  # compiled before the clock runs
    begin = clock()
    for k in range(count):
        deadline = begin + k * period
        left = deadline - clock()
        if left > SPIN:
            time.sleep(left - SPIN)
        while (moment := clock()) < deadline:
            pass
        lateness[k] = moment - deadline
        if link is not None:
            link.receive(u)
        for n in range(k * steps, (k + 1) * steps):
            now["t"][0] = n * h
            if every and n % every == 0:
                instant(now)
            advance(now)
        if not np.isfinite(q).all():
            raise NumericalError(f"realtime: the motion is no longer finite at t = {(k + 1) * period:.6g} s")
        if link is not None:
            link.send(k + 1, (k + 1) * period, q, v)
        work[k] = clock() - moment
    return DeadlineReport(period, lateness, work, q, v)


def _kernel(program: CProgram, name: str) -> Callable[[Mapping[str, Array]], None]:
    """A routine on arrays by name, which it changes; nothing where there is none."""
    if name not in program.parts.routines:
        return lambda arrays: None
    routine, plan = program.parts.routines[name], program.parts.plan(name)
    content = "".join(f.serialize() for f in program.parts.functions.values())
    kernel = Kernel(
        "realtime",
        [Argument(*item) for item in ((label, (n,)) for label, n in plan.arguments.items())],
        [Argument(*item) for item in ((label, (n,)) for label, n in plan.results.items())],
        key=f"{program.model.fingerprint}:realtime:{name}:{hashlib.sha256(content.encode()).hexdigest()}",
        build=lambda: plan,
    )
    run = kernel.fast()
    given = [label.removesuffix("_in") for label in plan.arguments]
    changed = [label for label in routine.outputs if routine.sizes[label]]
    results = [np.zeros(routine.sizes[label]) for label in changed]

    def call(arrays: Mapping[str, Array]) -> None:
        run(*(arrays[label] for label in given), *results)
        for label, x in zip(changed, results, strict=True):
            arrays[label][:] = x

    return call


PORT = 8070
SILENCE = 0.3


class BrowserLink(ServedPage):
    """For `al.deploy.realtime(..., inputs=list(link.names), link=link)`: a page that shows the model and commands it.

    `largest` has the names of the inputs (joints, or what a controller takes), and the command at full deflection of each.
    Only this machine is served. The page opens by itself; `wait()` waits until it is there.
    """

    def __init__(
        self,
        model: Model,
        largest: Mapping[str, float],
        *,
        q0: Any = None,
        port: int | None = None,
        open_browser: bool = True,
    ) -> None:
        if not isinstance(largest, Mapping) or not largest:
            raise ArgumentError(
                f"BrowserLink: largest is {largest!r}, expected inputs by name with their command at full deflection"
            )
        for name, value in largest.items():
            real("BrowserLink", f"largest of {name!r}", value, "a positive number", over=0.0)
        self.model, self.names = model, tuple(str(name) for name in largest)
        self._largest = np.array([float(x) for x in largest.values()])
        self._still = Still(model, q0)
        self._command = np.zeros(len(self.names))
        self._heard = -math.inf
        self._now: tuple[float, Array] = (0.0, self._still.q)
        self._there = threading.Event()
        own = resources.files("alembert.deploy").joinpath("assets", "pilot.js")
        self._serve(
            "BrowserLink",
            model.name,
            STYLES,
            (*SCRIPTS[:-1], "pilot.js"),
            lambda name: own.read_text(encoding="utf-8") if name == own.name else asset(name),
            answers={"scene": self._scene},
            actions={"exchange": self._exchange},
            port=port,
            first=PORT,
            open_browser=open_browser,
        )

    def wait(self, timeout: float | None = None) -> bool:
        """Until a page has sent something; whether it has."""
        return self._there.wait(timeout)

    def __repr__(self) -> str:
        return f"<BrowserLink to {self.model.name!r}, {', '.join(self.names)}, at {self.url}>"

    # --- the loop's side ------------------------------------------------------------------------------------

    def receive(self, u: Array) -> None:
        """The newest command; zero if the page is silent."""
        if len(u) != len(self.names):
            raise ArgumentError(
                f"realtime: the link to the browser has the inputs {', '.join(self.names)}, expected {len(u)}; "
                "give realtime inputs=list(link.names)"
            )
        u[:] = self._command if time.monotonic() - self._heard < SILENCE else 0.0

    def send(self, number: int, t: float, q: Array, v: Array) -> None:
        """What the page will show."""
        self._now = (t, q.copy())

    # --- the page's side ------------------------------------------------------------------------------------

    def _scene(self) -> dict[str, Any]:
        units = {}
        for joint in self.model.joints:
            if joint.type.nv == 1:
                units[joint.name] = "N m" if joint.type.speeds[0][1].startswith("rad") else "N"
        inputs = [
            {"name": name, "unit": units.get(name, ""), "largest": float(x)}
            for name, x in zip(self.names, self._largest, strict=True)
        ]
        return {"scene": scene_data(self._still), "inputs": inputs}

    def _exchange(self, action: dict[str, Any]) -> dict[str, Any]:
        given = action.get("u")
        fine = isinstance(given, list) and len(given) == len(self.names)
        # also whole numbers that no float can hold
        if fine and all(isinstance(x, int | float) and abs(x) <= sys.float_info.max for x in given or ()):
            self._command = np.clip(np.array(given, dtype=float), -1.0, 1.0) * self._largest
            self._heard = time.monotonic()
            self._there.set()
        t, q = self._now
        return {"t": t, "poses": pose_numbers(self.model, q)}
