"""Running, isolating, keeping and comparing; what cases of users may look like, and what is refused."""

import json
import re
import textwrap

import numpy as np
import pytest

from alembert import flexible, library
from alembert.errors import ArgumentError, FileError, UnsupportedError
from alembert.joints import Revolute
from alembert.model import ModelBuilder
from alembert.verify import Check, Line, Plot, Results, case, compare, discover, run, run_case, select
from alembert.verify.control_plants import chiang_safonov_seven
from alembert.verify.programs import DYNAMICS
from alembert.verify.report import page
from alembert.verify.results import results
from alembert.verify.systems_and_flights import InAlembert, InPythonControl

MINE = '''
import os, time
import numpy as np
from alembert import flexible, library
from alembert.verify import Check, Plot, Line, Skipped, case

@case(source="known since Euclid", kind="closed form", tags=("mine",), parameters={"x": 2.0})
def square(x):
    """Squares & <b>more</b>."""
    yield Check("x^2 <i>", x * x, 4.0, 1e-15, "rounding")
    yield Plot("x <x>", "y", (Line("line & co", [0, 1, 2], [0, 1, 4]),))

@case(source="a wrong book", kind="published", tags=("mine",))
def wrong():
    """A wrong value."""
    yield Check("pi", np.pi, 3.0, 0.1, "one digit")
    yield Check("nan", np.nan, 3.0, 0.1, "one digit")

@case(source="an exception", kind="identity", tags=("mine",))
def raises():
    """A case that raises."""
    raise ValueError("no such thing")
    yield

@case(source="a crash", kind="identity", tags=("mine",))
def crashes():
    """A case that ends its process."""
    os._exit(3)
    yield

@case(source="a hang", kind="identity", tags=("mine",))
def hangs():
    """A case that never ends."""
    time.sleep(1000)
    yield

@case(source="a lack", kind="identity", tags=("mine",), needs=("no_such_package",))
def lacks():
    """A case that needs something."""
    yield Check("one", 1, 1, 0, "")

@case(source="a doubt", kind="identity", tags=("mine",))
def doubts():
    """A case that skips itself."""
    raise Skipped("not today")
    yield

@case(source="two programs", kind="identity", tags=("mine",))
def asks(program):
    """A case for any program."""
    model = library.arm7()
    model = model.replace(joints=tuple(__import__("dataclasses").replace(j, friction=None) for j in model.joints))
    M = program.load(model).mass_matrix(model.neutral())
    yield Check("trace", np.trace(M), np.trace(model.mass_matrix(model.neutral())), 1e-12, "rounding")
'''


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_failures_are_isolated(mine):
    heard = []
    chosen = [c for c in select(discover([mine]), tags=["mine"]) if c.name != "hangs"]
    found = run(chosen, jobs=2, timeout=300.0, done=heard.append)
    status = {outcome.name: (outcome.status, outcome.message) for outcome in found.outcomes}
    assert status["square"] == ("passed", "")
    assert status["wrong"] == ("failed", "beyond the tolerance: pi, nan")
    assert status["raises"][0] == "error"
    assert status["raises"][1].startswith("ValueError: no such thing (raises, line")
    assert status["crashes"] == ("error", "its process ended with code 3")
    assert status["lacks"] == ("skipped", "no_such_package is not installed (pip install no_such_package)")
    assert status["doubts"] == ("skipped", "not today")
    assert status["asks"][0] == "passed"
    assert [o.name for o in found.outcomes] == [c.name for c in chosen]
    assert {o.name for o in heard} == set(status)
    assert found.bad
    assert re.fullmatch(r"7 cases: 2 passed, 1 failed, 2 errors, 2 skipped in \d+ s", found.summary)


def test_what_hangs_is_stopped(mine):
    """Alone: however slow the machine is, it is never done in time."""
    (outcome,) = run([discover([mine])["hangs"]], jobs=2, timeout=2.0).outcomes
    assert (outcome.status, outcome.message) == ("error", "stopped after 2 s")


def test_results_are_kept_and_compared(mine, tmp_path):
    cases = discover([mine])
    chosen = [cases[name] for name in ("square", "wrong", "lacks")]
    first = results([run_case(c) for c in chosen], "alembert", 1.0)
    path = tmp_path / "r.json"
    path.write_text(first.to_json())
    again = Results.load(path)
    assert again.summary == first.summary
    assert np.isinf(again.outcomes[1].quantities[1].difference)
    assert [pair.verdict for pair in compare(first, again)] == [
        "same", "same", "differs", "skipped: no_such_package is not installed (pip install no_such_package)",
    ]  # fmt: skip
    content = json.loads(path.read_text())
    content["outcomes"][0]["quantities"][0]["ours"] = 4.5
    content["outcomes"][1]["quantities"][0]["passed"] = True
    del content["outcomes"][2]
    path.write_text(json.dumps(content))
    verdicts = [pair.verdict for pair in compare(first, Results.load(path))]
    assert verdicts == ["differs", "worse", "differs", "not there"]
    assert [pair.verdict for pair in compare(Results.load(path), first)][1] == "better"


def test_two_programs(mine):
    pytest.importorskip("pinocchio")
    asks = discover([mine])["asks"]
    first, second = (
        results([run_case(asks, program)], program, 1.0) for program in ("alembert", "pinocchio")
    )
    assert [pair.verdict for pair in compare(first, second)] == ["same"]
    square = run_case(discover([mine])["square"], "pinocchio")
    assert square.message == "not posed to pinocchio"


@pytest.mark.parametrize("program", ["pinocchio", "mujoco"])
def test_what_a_program_does_not_take_over(program):
    pytest.importorskip(program)
    bent = flexible.beam(1.0, 1.0, EI_y=10.0, bending_z=1)
    model = ModelBuilder("rod").body("rod", bent, joint=Revolute()).build()
    with pytest.raises(UnsupportedError, match=f"{program}: the modes of 'rod' are not taken over"):
        DYNAMICS[program].load(model)
    with pytest.raises(UnsupportedError, match=f"{program}: friction of 'joint1' is not taken over"):
        DYNAMICS[program].load(library.arm7())


def test_exudyn():
    pytest.importorskip("exudyn")
    load = DYNAMICS["exudyn"].load
    with pytest.raises(UnsupportedError, match="exudyn: friction of 'joint1' is not taken over"):
        load(library.arm7())
    model = library.random_tree(3, bodies=2, kinds=("revolute",))
    with pytest.raises(UnsupportedError, match="exudyn: a kinematic tree gives no potential energy"):
        load(model).potential_energy(model.neutral())
    assert run_case(discover()["exudyn_random_trees"]).status == "passed"
    with pytest.raises(UnsupportedError, match="exudyn: no joint 'spherical'"):
        load(library.random_tree(3, bodies=2, kinds=("spherical",)))


def test_flights_in_basilisk():
    """Both integrate Euler's equations to 1e-9."""
    pytest.importorskip("Basilisk")
    tumbling = discover()["torque_free_asymmetric"]
    first, second = (
        results([run_case(tumbling, program)], program, 1.0) for program in ("alembert", "basilisk")
    )
    assert {pair.verdict for pair in compare(first, second)} == {"same"}


def test_two_programs_of_linear_systems(monkeypatch):
    """What both have is the same; what python-control lacks without slycot is told."""
    pytest.importorskip("control")
    names = ("control_riccati_benchmarks", "control_transmission_zero", "control_margins_of_three_poles")
    chosen = [discover()[name] for name in names]
    first, second = (
        results([run_case(c, program) for c in chosen], program, 1.0)
        for program in ("alembert", "python-control")
    )
    assert {pair.verdict for pair in compare(first, second)} == {"same"}
    asked = InPythonControl()
    G = chiang_safonov_seven()
    np.testing.assert_allclose(asked.filter_gain(G, [[2.0]], [[3.0]]), InAlembert().filter_gain(G, 2.0, 3.0))
    np.testing.assert_allclose(asked.hinf_norm(G), InAlembert().hinf_norm(G), rtol=1e-5)

    def lacking(system):
        raise NotImplementedError("no slycot")

    monkeypatch.setattr(asked._ct, "hsvd", lacking)
    with pytest.raises(UnsupportedError, match="python-control: Hankel singular values: no slycot"):
        asked.hankel_singular_values(G)


def test_the_report_is_one_page_and_escapes(mine):
    cases = discover([mine])
    found = results([run_case(cases[name]) for name in ("square", "wrong", "raises")], "alembert", 1.0)
    text = page(found)
    assert text.count("<svg") == 2
    assert "Squares &amp; &lt;b&gt;more&lt;/b&gt;" in text
    assert "x &lt;x&gt;" in text
    assert "<b>" not in text
    assert "<i>" not in text
    for outside in ("http://", "https://", "src=", "<script", "<link"):
        assert outside not in text
    assert all(word in text for word in ("processor", "numpy", found.date, "no such thing"))


def test_a_case_needs_a_kind_and_a_source():
    with pytest.raises(ArgumentError, match="case 'f': no kind 'closed from'; did you mean 'closed form'"):

        @case(source="x", kind="closed from")
        def f():
            yield

    with pytest.raises(
        ArgumentError, match="case 'g': source is empty, expected where the number comes from"
    ):

        @case(source=" ", kind="closed form")
        def g():
            yield


def test_a_case_has_to_check_something():
    @case(source="nothing", kind="identity")
    def empty():
        """Nothing."""
        yield Plot("x", "y", (Line("", [0], [1]),))

    assert run_case(empty).message == "the case has checked nothing"

    @case(source="shapes", kind="identity")
    def shapes():
        """Shapes."""
        yield Check("a", [1.0, 2.0], [1.0, 2.0, 3.0], 1, "")

    assert run_case(shapes).message == "ArgumentError: Check: 'a' has shape (2,), and (3,) was expected"


def test_selection():
    cases = discover()
    assert [c.name for c in select(cases, ["a01_*"])] == ["a01_pendulum_period", "a01_pendulum_position"]
    assert {c.kind for c in select(cases, tags=["closed form", "iftomm"])} == {"closed form"}
    with pytest.raises(ArgumentError, match="verify: no case 'a01_pendulum_perod'; did you mean 'a01_pend"):
        select(cases, ["a01_pendulum_perod"])
    with pytest.raises(ArgumentError, match="verify: no tag 'iftom'; did you mean 'iftomm'"):
        select(cases, tags=["iftom"])


def test_files_that_do_not_hold_cases(tmp_path, mine):
    with pytest.raises(
        FileError, match=r"verify: .*none\.py is not a file; expected cases in \.py or \.toml"
    ):
        discover([tmp_path / "none.py"])
    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    with pytest.raises(
        FileError, match=r"has no cases; put the decorator `alembert\.verify\.case` on a function"
    ):
        discover([path])
    path.write_text("x = 1 / 0\n")
    with pytest.raises(FileError, match="does not run: ZeroDivisionError: division by zero"):
        discover([path])
    other = tmp_path / "cases.yaml"
    other.write_text("")
    with pytest.raises(FileError, match=r"ends in '\.yaml'; expected cases in \.py or \.toml"):
        discover([other])
    twice = tmp_path / "twice.py"
    twice.write_text(MINE)
    with pytest.raises(
        ArgumentError, match=r"verify: the case 'square' is in .* and in .*twice\.py; rename one"
    ):
        discover([mine, twice])
    (tmp_path / "r.json").write_text("{}")
    with pytest.raises(FileError, match="does not hold results of `alembert verify --save`"):
        Results.load(tmp_path / "r.json")
    (tmp_path / "r.json").write_text('{"format": 0}')
    with pytest.raises(FileError, match="was written in another format; run that version again"):
        Results.load(tmp_path / "r.json")


TOML = """
[[case]]
name = "pendulum_at_rest"
source = "m g l"
model = "pendulum"
algorithm = "inverse_dynamics"
arguments = { q = [1.5707963267948966], v = [0], a = [0] }
published = [9.81]
tolerance = 1e-12
reason = "rounding"
"""


def test_cases_without_code(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        TOML
        + textwrap.dedent("""
        [[case]]
        name = "pendulum_after_a_period"
        source = "period 2.3678419475762 s"
        model = "pendulum"
        algorithm = "simulate"
        arguments = { q0 = [-1.5707963267948966], duration = 2.3678419475762, integrator = "dop853" }
        published = [-1.5707963267948966]
        tolerance = 1e-7
        reason = "error control at 1e-9"
        """)
    )
    found = run(select(discover([path]), ["pendulum_*"]), jobs=1)
    assert [o.status for o in found.outcomes] == ["passed", "passed"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("tolerance", "tolerence"),
            "case 'pendulum_at_rest': no entry 'tolerence'; did you mean 'tolerance'",
        ),
        (('reason = "rounding"\n', ""), "case 'pendulum_at_rest': reason missing"),
        (("inverse_dynamics", "inverse"), "no algorithm 'inverse'; did you mean"),
        (("[[case]]", "[[cases]]"), r"'cases' is not known; expected \[\[case\]\]"),
        (('model = "pendulum"', "model = "), "Invalid value"),
        (('source = "m g l"', 'source = "m g l"\nkind = "guess"'), "no kind 'guess'; there is closed form"),
    ],
)
def test_toml_that_is_refused(tmp_path, change, message):
    path = tmp_path / "mine.toml"
    path.write_text(TOML.replace(*change))
    with pytest.raises(FileError, match=message):
        discover([path])


def test_checks():
    assert Check("x", [1.0, 2.0], [1.0, 2.5], [0.1, 1.0], "").passed
    assert not Check("x", [1.0, 2.0], [1.0, 2.5], 0.1, "").passed
    assert not Check("x", np.nan, 1.0, 1e9, "").passed
    with pytest.raises(ArgumentError, match="Check: 'poles' is complex; give real and imaginary parts"):
        Check("poles", [1j], [1j], 1e-9, "")
    assert Check("x", 1.0, 1.0, 0.0, "").margin == 0.0
    assert Check("x", 1.0, 1.5, 0.25, "").margin == 2.0


def test_the_tolerance_of_what_converges():
    """With errors of n^-2 the bound is the error itself; where they shrink faster it is more, slower less."""
    for power, passes in ((1, False), (2, True), (3, True)):
        check = Check.converging("x", lambda n, p=power: 1 + float(n) ** -p, 8, 1.0, 1e-12)
        assert check.passed is passes
    third = Check.converging("x", lambda n: 1 + 1 / n, 9, 1.0, 1e-12, fewer=3, order=1)
    assert third.tolerance == pytest.approx(1 / 9, rel=1e-9)
    assert third.reason.startswith("what is left, from the change between 3 and 9")
