"""Tasks in C, and static schedules of task graphs."""

import subprocess

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, NumericalError
from alembert.spacecraft import FlightSoftware, FlightTask, SharedFunction, task_schedule

SOURCE = """
int spin_down(double t, const double *in, double *out) {
    out[0] = -0.5 * in[0];   /* efforts about z */
    out[1] += 1.0;           /* how often it was asked */
    return in[0] > 10.0 ? 7 : 0;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    (folder / "task.c").write_text(SOURCE)
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", "task.so", "task.c"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler")
    return folder / "task.so"


def test_a_task_in_c(library):
    """The law in C and the same in Python give the same motion, to the bit: both are two products in doubles."""
    builder = al.ModelBuilder("disc", gravity=(0, 0, 0))
    builder.body("disc", al.Inertia.box(10.0, (1, 1, 1)), joint=al.Revolute(), joint_name="turn")
    model = builder.build()
    writes = {"torque": 0.0, "asked": 0.0}
    law = SharedFunction(library, "spin_down", ("rate", "asked"), writes)

    def push(t, m):
        return {"efforts": {"turn": m["torque"][0]}}

    def in_python(t, m):
        return {"torque": -0.5 * m["rate"], "asked": m["asked"] + 1}

    sensors = al.simulate.Measured(al.Sensor("rate", "joint_rate", "turn"), 0.1)
    found = []
    for function in (law, in_python):
        software = FlightSoftware([FlightTask("law", function, 0.1, ("rate", "asked"), writes)])
        hand = al.simulate.Sampled(push, 0.1, reads=("torque",), posts={"nothing": 0.0})
        run = al.simulate(
            model, None, [2.0], duration=1.0, step=0.1, integrator="rk4", sensors=sensors,
            controller=[*software.controllers(), hand], progress=False,
        )  # fmt: skip
        found.append(run)
    assert np.array_equal(found[0].q, found[1].q)
    assert found[0].v[-1, 0] < 1.9
    assert found[0].measurements["asked"].values[-1, 0] == 11
    with pytest.raises(NumericalError, match=r"spin_down of task.so returned 7 at t = 0 s"):
        law(0.0, {"rate": np.array([20.0]), "asked": np.zeros(1)})


def test_bad_libraries(library, tmp_path):
    with pytest.raises(ArgumentError, match="cannot be loaded"):
        SharedFunction(tmp_path / "none.so", "f", (), {})
    with pytest.raises(ArgumentError, match="has no function 'turn'"):
        SharedFunction(library, "turn", (), {})


def graph():
    """A fork and a join: a (1) before b (3), c (2), d (2), all before e (1); f (1) after b."""
    given = {
        "a": (1, (), "a"), "b": (3, ("a",), "b"), "c": (2, ("a",), "c"), "d": (2, ("a",), "d"),
        "e": (1, ("b", "c", "d"), "e"), "f": (1, ("b",), "f"),
    }  # fmt: skip

    def nothing(t, m):
        return {}

    return [
        FlightTask(name, nothing, 20e-3, reads, {writes: 0.0}, duration=1e-3 * d)
        for name, (d, reads, writes) in given.items()
    ]


def test_critical_path_first():
    """Two processors: a, then b beside c; d comes as c ends; e and f side by side. 10 ms of work, a longest path of 5 ms."""
    found = task_schedule(graph(), 2)
    starts = {x.name: round(1e3 * x.start, 9) for x in found.placed}
    assert starts == {"a": 0, "b": 1, "c": 1, "d": 3, "f": 4, "e": 5}
    assert found.length == pytest.approx(6e-3)
    assert found.least == pytest.approx(5e-3)
    assert found.efficiency == pytest.approx(10 / 12)
    assert found.latency("a", "e") == pytest.approx(6e-3)
    assert "6 tasks on 2 processors: 6 ms of a period of 20 ms" in str(found)
    assert task_schedule(graph(), 3).length == pytest.approx(
        5e-3
    )  # no schedule is shorter than the longest path
    assert task_schedule(graph(), 1).length == pytest.approx(10e-3)


def test_the_latency_of_a_schedule_is_that_of_the_software():
    found = task_schedule(graph(), 2)
    software = FlightSoftware(found.delayed(graph()))
    assert software.latency("a", "b", "e") == pytest.approx((found.latency("a", "e"),) * 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: task_schedule(graph(), 0), "processors is 0"),
        (lambda: task_schedule([]), "no tasks"),
        (lambda: task_schedule([*graph(), FlightTask("g", print, 0.1, duration=0.01)]), r"periods of 0.02, 0.1 s"),
        (lambda: task_schedule([FlightTask("g", print, 0.1)]), "'g' has no duration"),
        (
            lambda: task_schedule(
                [
                    FlightTask("g", print, 0.1, ("y",), {"x": 0}, duration=0.01),
                    FlightTask("h", print, 0.1, ("x",), {"y": 0}, duration=0.01),
                ]
            ),
            "in a circle, g -> h -> g",
        ),
        (
            lambda: task_schedule([FlightTask(x, print, 0.1, duration=0.06) for x in "gh"]),
            "take 0.12 s on 1 processors and are asked every 0.1 s; 2 processors at least",
        ),
        (lambda: task_schedule(graph(), 2).latency("a", "z"), "no task 'z'"),
    ],
)  # fmt: skip
def test_bad_graphs(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
