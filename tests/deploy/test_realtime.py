"""The loop at a fixed rate: its motion is the simulation's, commands arrive, its report adds up. No test asks for speed."""

import subprocess
import sys

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, NumericalError, library
from alembert.deploy import loop as rt

HARDWARE = """
import socket, sys
import numpy as np
from alembert.deploy.loop import COMMAND, STATE, pack, unpack
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.settimeout(20)
to = ("127.0.0.1", int(sys.argv[1]))
here.sendto(b"noise", to)
here.sendto(pack(COMMAND, 0, 0.0, np.zeros(2)), to)
print("ready", flush=True)
while True:
    kind, number, t, x = unpack(here.recvfrom(65536)[0])
    here.sendto(pack(COMMAND, number, t, 30 * (np.array([0.5, -0.2]) - x[:2]) - 9 * x[2:]), to)
    if t >= 1.4:
        break
"""


class Instant:
    """A clock that jumps: the loop runs as fast as it can."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 3e-4
        return self.now


def test_the_motion_is_that_of_simulate():
    model = library.two_link()
    start = {"q0": [0.4, -0.3], "v0": [0.1, 0.2]}
    report = rt.realtime(model, duration=0.2, rate=500, steps=2, integrator="rk4", clock=Instant(), **start)
    run = al.simulate(model, **start, duration=0.2, step=1e-3, integrator="rk4")
    np.testing.assert_allclose(report.q, run.q[-1], atol=1e-12)
    assert len(report.lateness) == 100
    assert np.all(report.lateness >= 0)
    assert "100 ticks of 2 ms" in repr(report)
    assert 0 <= report.missed <= 100
    assert 0 <= report.within(1e-3) <= 1
    assert report.histogram().count("\n") == 5


def test_loops_states_and_samples_in_real_time(crank):
    model, start = crank
    law = al.control.c2d(
        al.control.StateSpace(
            [[-3.0]], [[1.0]], [[2.0]], [[-4.0]], input_names=("v:crank",), output_names=("crank",)
        ),
        0.02,
    )
    options = {"integrator": "rk4", "controller": law, **start}
    report = rt.realtime(model, duration=0.2, rate=500, clock=Instant(), **options)
    run = al.simulate(model, duration=0.2, step=2e-3, interval=0.1, **options)
    np.testing.assert_allclose(report.q, run.q[-1], atol=1e-11)  # the same operations
    with pytest.raises(ArgumentError, match=r"the step is 0\.0076923\d* s, expected a part of 0\.02 s"):
        rt.realtime(model, duration=0.2, rate=130, clock=Instant(), **options)


def test_hardware_in_another_process_is_heard():
    """A PD law over UDP, in a process of its own: without it the arm, which has no gravity, would stay."""
    model = library.two_link().replace(gravity=(0.0, 0.0, 0.0))
    link = rt.UdpLink()
    other = subprocess.Popen(
        [sys.executable, "-c", HARDWARE, str(link.address[1])], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline().strip() == "ready"
        report = rt.realtime(model, duration=1.5, rate=500, link=link, q0=[0.3, 0.0])
        other.wait(30)
    finally:
        other.kill()
        link.close()
    assert link.refused == 1
    assert len(report.work) == 750
    assert abs(report.q[0] - 0.3) > 1e-3


SHARED = """
import sys, time
import numpy as np
from alembert import library
from alembert.deploy import SharedLink
model = library.two_link()
there = SharedLink(model, 2, sys.argv[1], create=False)
there.command(np.full(2, np.nan))
print("ready", flush=True)
end = time.monotonic() + 20
while time.monotonic() < end:
    t, q, v = there.state()
    if t >= 0.4:
        break
    if t > 0:
        there.command(30 * (np.array([0.5, -0.2]) - q) - 9 * v)
    time.sleep(1e-3)
there.close()
"""


def test_shared_memory_with_another_process():
    """The same law through shared memory; when the other process ends, the block stays for the next one."""
    model = library.two_link().replace(gravity=(0.0, 0.0, 0.0))
    link = rt.SharedLink(model, 2)
    other = subprocess.Popen(
        [sys.executable, "-c", SHARED, link.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout.readline().strip() == "ready"
        report = rt.realtime(model, duration=0.5, rate=500, link=link, q0=[0.3, 0.0])
        assert other.communicate(timeout=30)[1] == ""
        assert other.returncode == 0
        again = rt.SharedLink(model, 2, link.name, create=False)
        np.testing.assert_array_equal(again.state()[1], report.q)
        again.close()
        assert link.refused > 0  # what was not a number did not act
        assert abs(report.q[0] - 0.3) > 1e-3
        with pytest.raises(ArgumentError, match=r"has \d+ bytes, expected \d+ for the \d+ coordinates"):
            rt.SharedLink(library.chain(600), 600, link.name, create=False)
        with pytest.raises(ArgumentError, match="is there already"):
            rt.SharedLink(model, 2, link.name)
    finally:
        other.kill()
        link.close()
    with pytest.raises(ArgumentError, match="does not exist: the loop makes it"):
        rt.SharedLink(model, 2, link.name, create=False)


def test_shared_memory_carries_commands_and_states():
    model = library.pendulum()
    link = rt.SharedLink(model, 1)
    there = rt.SharedLink(model, 1, link.name, create=False)
    try:
        u = np.zeros(1)
        link.receive(u)
        assert u[0] == 0.0
        there.command(np.array([2.5]))
        link.receive(u)
        assert u[0] == 2.5
        report = rt.realtime(model, duration=0.05, rate=1000, link=link, clock=Instant())
        t, q, v = there.state()
        np.testing.assert_allclose(t, 0.05)
        np.testing.assert_array_equal(q, report.q)
        np.testing.assert_array_equal(v, report.v)
        assert v[0] != 0.0
    finally:
        there.close()
        link.close()


def test_packets():
    packet = rt.pack(rt.STATE, 7, 0.25, [1.0, 2.0])
    assert packet[:4] == b"ALMB"
    kind, number, t, x = rt.unpack(packet)
    assert (kind, number, t, x.tolist()) == (1, 7, 0.25, [1.0, 2.0])
    for bad in (b"", packet[:-1], b"XXXX" + packet[4:]):
        assert rt.unpack(bad) is None


def test_what_is_refused():
    model = library.pendulum()
    for options, message in (
        ({"duration": 0}, "duration is 0, expected a positive number"),
        ({"duration": 1, "rate": -1}, "rate is -1, expected a positive number"),
        ({"duration": 1, "steps": 0}, "steps is 0, expected a whole number"),
    ):
        with pytest.raises(ArgumentError, match=message):
            rt.realtime(model, **options)

    class Wild:
        def receive(self, u):
            u[:] = np.inf

        def send(self, number, t, q, v):
            pass

    with pytest.raises(NumericalError, match="no longer finite at t ="):
        rt.realtime(model, duration=1.0, link=Wild(), clock=Instant())
