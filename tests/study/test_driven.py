# ruff: noqa: E501  (a case per line)
"""Controllers and events of run files: what they do, and where errors are."""

import json

import numpy as np
import pytest
import scipy.linalg

import alembert as al
from alembert.errors import AlembertError, FileError
from alembert.study.run import load_study, run_study

HEAD = """format = "alembert-study"
version = 1
model = "library:%s"

[outputs]
report = ""

[task]
type = "simulate"
time = %s
step = 0.01
integrator = "rk4"
"""


def study(folder, body, *, model="two_link", time=5.0):
    path = folder / "study.toml"
    path.write_text(HEAD % (model, time) + body, encoding="utf-8")
    return path


def result(path):
    return run_study(load_study(path), progress=False)


PD = """
[[task.controllers]]
type = "pd"
target = { shoulder = 0.4, elbow = "pi/6" }
stiffness = { shoulder = 900, elbow = 500 }
damping = { shoulder = 60, elbow = 8 }
"""


def test_pd_holds_its_target(tmp_path):
    data = result(study(tmp_path, PD)).outcome.data
    # what gravity pulls down: torques of some 30 N m over the stiffness
    assert data["q"]["shoulder"] == pytest.approx(0.4, abs=0.1)
    assert data["q"]["elbow"] == pytest.approx(np.pi / 6, abs=0.1)
    assert data["events"] == []


def test_controllers_add_up_and_are_limited(tmp_path):
    model = al.library.two_link()
    body = """
[[task.controllers]]
type = "pd"
target = { elbow = 100 }
stiffness = { elbow = 5 }
limit = { elbow = 2 }

[[task.controllers]]
type = "python"
function = "law.py:law"
period = 0.02
delay = 0.01
"""
    (tmp_path / "law.py").write_text("def law(t, q, v):\n    return {'shoulder': 1.5}\n")
    done = result(study(tmp_path, body, time=0.5))
    sampled = al.simulate.Sampled(lambda t, q, v: [1.5, 0.0], 0.02, 0.01)
    run = al.simulate(
        model,
        model.neutral(),
        duration=0.5,
        step=0.01,
        integrator="rk4",
        controller=[lambda t, q, v: np.array([0.0, 2.0]), sampled],
    )
    # the limit holds from the start: the same motion but for the rounding of clipped numbers
    np.testing.assert_allclose(list(done.outcome.data["q"].values()), run.q[-1], atol=1e-12)
    assert json.dumps(done.manifest["inputs"]).count("law.py") == 1


def test_feedback_balances_an_acrobot(tmp_path):
    model = al.library.acrobot()
    upright = [np.pi / 2, 0.0]
    linear = al.linearize(model, upright)
    P = scipy.linalg.solve_continuous_are(linear.A, linear.B, np.eye(4), np.eye(1))
    K = (linear.B.T @ P)[0]
    body = f"""position = {{ shoulder = "pi/2 + 0.05" }}

[[task.controllers]]
type = "feedback"
target = {{ shoulder = "pi/2" }}
gains = {{ elbow = {K.tolist()} }}
"""
    data = result(study(tmp_path, body, model="acrobot", time=8.0)).outcome.data
    np.testing.assert_allclose(list(data["q"].values()), upright, atol=1e-3)


def test_events_stop_or_are_noted(tmp_path):
    body = """position = { pivot = 1.0 }

[[task.events]]
quantity = "pivot"
below = 0.5
action = "note"
name = "half"

[[task.events]]
quantity = "frame:bob.position.z"
below = -0.999
"""
    model = al.library.pendulum()
    frame = next(iter(model.frames)).name
    done = result(study(tmp_path, body.replace("bob", frame), model="pendulum"))
    first, second = done.outcome.data["events"]
    assert first["name"] == "half"
    assert second["name"] == f"frame:{frame}.position.z below -0.999"
    assert 0 < first["time"] < second["time"] < 5
    assert done.outcome.data["time"] == second["time"]  # it ended there
    z = model.frame_pose([done.outcome.data["q"]["pivot"]], frame).translation[2]
    assert z == pytest.approx(-0.999, abs=1e-8)  # speed times the tolerance of the instant


def test_an_event_by_a_function(tmp_path):
    (tmp_path / "watch.py").write_text("def late(t, q, v):\n    return t\n")
    body = """[[task.events]]
function = "watch.py:late"
above = 0.305
"""
    done = result(study(tmp_path, body, time=1.0))
    assert done.outcome.data["time"] == pytest.approx(0.305, abs=1e-9)
    assert json.dumps(done.manifest["inputs"]).count("watch.py") == 1


REFUSED = [
    ('type = "pd"', 'type = "pdd"', "15: task.controllers[0].type: is 'pdd'; did you mean 'pd'?"),
    ('type = "pd"\n', "", "14: task.controllers[0].type: is missing, expected one of pd, feedback, python"),
    ("elbow = 500", "elbo = 500", "17: task.controllers[0].stiffness.elbo: model 'two_link' has no joint 'elbo'; did you mean 'elbow'?"),
    ("stiffness", "stifness", "17: task.controllers[0].stifness: unknown key 'stifness'; did you mean 'stiffness'?"),
    ("elbow = 8", "elbow = [1, 2]", "18: task.controllers[0].damping.elbow: expected 1 number (angle), got 2"),
    (PD, PD + "delay = 0.1\n", "19: task.controllers[0].delay: is given without a period"),
    (PD, PD + "limit = { knee = 1 }\n", "19: task.controllers[0].limit.knee: model 'two_link' has no degree of freedom 'knee'"),
    (PD, '[[task.controllers]]\ntype = "feedback"\ngains = { elbow = [1, 2] }\n', "15: task.controllers[0].gains.elbow: has 2 gains, expected 4: of 2 displacements, then of 2 speeds"),
    (PD, '[[task.controllers]]\ntype = "python"\nfunction = "law"\n', "15: task.controllers[0].function: is 'law', expected FILE.py:NAME"),
    (PD, '[[task.controllers]]\ntype = "python"\nfunction = "no.py:law"\n', "there is no such file"),
    (PD, '[[task.controllers]]\ntype = "python"\nfunction = "bad.py:lw"\n', "has no function 'lw'; did you mean 'law'?"),
    (PD, '[[task.controllers]]\ntype = "python"\nfunction = "bad.py:law"\n', "bad.py:2: ZeroDivisionError: division by zero"),
    (PD, '[[task.controllers]]\ntype = "python"\nfunction = "syntax.py:law"\n', "syntax.py:1: SyntaxError:"),
    (PD, '[[task.events]]\nquantity = "elbow"\n', "13: task.events[0]: expected either above or below"),
    (PD, "[[task.events]]\nabove = 1\n", "13: task.events[0]: expected either quantity or function"),
    (PD, '[[task.events]]\nquantity = "elbw"\nabove = 1\n', "14: task.events[0].quantity: nothing is called 'elbw'; did you mean 'elbow'?"),
    (PD, '[[task.events]]\nquantity = "frame:tip.position"\nabove = 1\n', "has 3 components, expected one of frame:tip.position.x,"),
    (PD, '[[task.events]]\nquantity = "frame:tip.position.w"\nabove = 1\n', "'frame:tip.position' has no component 'w'; there is x, y, z"),
    (PD, '[[task.events]]\nquantity = "tau:elbow"\nabove = 1\n', "'tau:elbow' depends on accelerations or efforts; events can watch what the state tells"),
    (PD, '[[task.events]]\nfunction = "bad.py:two"\nabove = 1\n', "task.events[0].function: returned 2 numbers, expected one"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_refusals(tmp_path, old, new, message):
    (tmp_path / "bad.py").write_text(
        "def law(t, q, v):\n    return 1 / 0\n\ndef two(t, q, v):\n    return q\n"
    )
    (tmp_path / "syntax.py").write_text("def law(:\n")
    assert old in PD
    path = study(tmp_path, PD.replace(old, new))
    with pytest.raises(AlembertError) as caught:
        result(path)
    assert message in str(caught.value)


ENSEMBLE = """format = "alembert-study"
version = 1
model = "%s"

[outputs]
report = ""

[task]
type = "ensemble"
time = 1.0
step = 0.01
interval = 0.5
members = 6
spread.speed = { %s = 0.3 }
"""


@pytest.mark.parametrize(
    "field", ["", "[task.gravity_field]\ntype = 'central'\nparameter = 50\ncenter = [0, 0, -3]\n"]
)
def test_events_see_the_energy_and_momentum_that_records_have(tmp_path, field):
    """That of force elements and gravity fields belongs to it: kept energy passes no value; momentum is about the origin."""
    builder = al.ModelBuilder("ball", gravity=(0, 0, -9.81))
    builder.body("ball", al.Inertia.sphere(2.0, 0.1), joint=al.Free(), joint_name="flight")
    al.save(builder.frame("hook", "world", (0, 0, 1)).build(), tmp_path / "ball.toml")
    spring = "[task.forces.spring]\ntype = 'spring_damper'\nframe_a = 'hook'\nframe_b = 'ball'\nstiffness = 80\nlength = 0.5\n"
    event = "[[task.events]]\nquantity = '%s'\nabove = %r\naction = 'note'\nname = '%s'\n"
    state = "position = { flight = [0.3, 0, 0, 1, 0, 0, 0] }\nspeed = { flight = [0, 0, 0, 0, 1, 0] }\n"
    record = "record = ['energy', 'momentum']\n"
    text = (
        HEAD.replace("library:%s", "ball.toml").replace('report = ""', 'report = ""\nsave = "run.nc"') % 1.0
    )
    path = tmp_path / "study.toml"
    path.write_text(text + state + record + spring + field, encoding="utf-8")
    result(path)
    before = al.simulate.load_run(tmp_path / "study-results" / "run.nc", **loaded(tmp_path, field))
    energy, spin = before.channel("energy").values[:, 0], before.channel("momentum").values[:, 0]
    assert np.ptp(energy) < 1e-4 * np.max(before.kinetic_energy)  # rk4 at 10 ms
    half = (spin.min() + spin.max()) / 2
    watched = event % ("energy", float(energy.max()) + 1e-3, "energy") + event % (
        "momentum.angular.x",
        float(half),
        "spin",
    )
    path.write_text(text + state + record + spring + field + watched, encoding="utf-8")
    events = result(path).outcome.data["events"]
    rises = np.flatnonzero((spin[:-1] < half) & (spin[1:] >= half))
    assert [e["name"] for e in events] == ["spin"] * len(rises)
    for found, k in zip(events, rises, strict=True):
        assert before.time[k] <= found["time"] <= before.time[k + 1]


def loaded(folder, field):
    """What acted, for `load_run`, which holds no objects."""
    forces = [al.simulate.SpringDamper("hook", "ball", 80.0, length=0.5)]
    pull = {"gravity": al.simulate.CentralGravity(50.0, (0, 0, -3))} if field else {}
    return {"forces": forces, **pull}


def test_members_are_driven_and_watched(tmp_path):
    """Each as it would be alone: controllers of both kinds, and an event that some of them meet."""
    path = tmp_path / "study.toml"
    (tmp_path / "law.py").write_text("def push(t, q, v):\n    return [0.5, -0.2 * v[1]]\n", encoding="utf-8")
    python = '\n[[task.controllers]]\ntype = "python"\nfunction = "law.py:push"\n'
    event = '\n[[task.events]]\nquantity = "v:elbow"\nabove = 0.3\naction = "note"\nname = "fast"\n'
    path.write_text(ENSEMBLE % ("library:two_link", "elbow") + PD + python + event, encoding="utf-8")
    done = result(path)
    data = done.outcome.data
    assert "law.py" in {file["path"] for file in done.manifest["inputs"]}
    model, k, d = al.library.two_link(), np.array([900, 500]), np.array([60, 8])
    ends, times = [], []
    for member in range(6):
        rng = np.random.default_rng([0, member])
        _, dv = rng.normal(size=2), np.array([0.0, 0.3]) * rng.normal(size=2)

        def law(t, q, v):
            return k * ([0.4, np.pi / 6] - q) - d * v + [0.5, -0.2 * v[1]]

        watch = al.simulate.Event(lambda t, q, v: v[1] - 0.3, "fast", 1, "note")
        run = al.simulate(
            model, [0, 0], dv, duration=1.0, step=0.01, integrator="rk4", controller=law, events=watch
        )
        ends.append(run.q[-1])
        times += [event.time for event in run.events][:1]
    np.testing.assert_allclose(list(data["mean_q"].values()), np.mean(ends, axis=0), rtol=0, atol=1e-9)
    assert data["events"] == {"fast": (len(times), pytest.approx(np.mean(times)))}


def test_members_close_their_loops(tmp_path):
    path = tmp_path / "study.toml"
    al.save(four_bar(), tmp_path / "bar.toml")
    spread = 'spread.position = { crank = 0.1 }\nposition = { crank = 1.4, coupler = -1.4, rocker = 1.4 }\nhold = ["crank"]\n'
    text = ENSEMBLE.replace("time = 1.0", "time = 0.2").replace("interval = 0.5", "")  # it folds up later
    path.write_text(text % ("bar.toml", "crank") + spread, encoding="utf-8")
    data = result(path).outcome.data
    assert data["failed"] == {}
    assert data["deviation_q"]["crank"] > 0.01


def four_bar():
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    for name, parent in (("crank", "world"), ("coupler", "crank"), ("rocker", "world")):
        place = (0, 0, 0) if name == "crank" else (1, 0, 0)
        builder.body(name, rod, joint=al.Revolute(), joint_name=name, parent=parent, placement=place)
    for name in ("coupler", "rocker"):
        builder.frame(f"end of {name}", name, (1, 0, 0))
    return builder.loop("pin", al.Revolute(), "end of coupler", "end of rocker").build()


def test_quantities_that_differ_between_members_are_refused(tmp_path):
    builder = al.ModelBuilder("pendulum")
    length = builder.parameter("length", 1.0)
    builder.body(
        "bob", al.Inertia.point(1.0, (0, 0, -length)), joint=al.Revolute((0, 1, 0)), joint_name="pivot"
    )
    builder.frame("tip", "bob", (0, 0, -length))
    al.save(builder.build(), tmp_path / "pendulum.toml")
    path = tmp_path / "study.toml"
    spread = "spread.parameters = { length = 0.1 }\n"
    event = '\n[[task.events]]\nquantity = "%s"\nabove = 0.0\n'
    for quantity in ("pivot", "v:pivot"):
        path.write_text(ENSEMBLE % ("pendulum.toml", "pivot") + spread + event % quantity, encoding="utf-8")
        assert result(path).outcome.data["failed"] == {}
    path.write_text(
        ENSEMBLE % ("pendulum.toml", "pivot") + spread + event % "frame:tip.position.x", encoding="utf-8"
    )
    with pytest.raises(
        AlembertError, match=r"events\[0\].quantity: 'frame:tip.position.x' may depend on parameters"
    ):
        result(path)


def test_bands_of_members_with_bodies_that_bend(tmp_path):
    """Modes are coordinates, too, and have panels in the figure."""
    builder = al.ModelBuilder("rod", gravity=(0, 0, 0))
    rod = al.flexible.beam(length=1.0, rhoA=1.0, EI_y=5.0, bending_y=0, bending_z=1)
    builder.body("rod", rod, joint=al.Revolute((0, 1, 0)), joint_name="hinge")
    al.save(builder.build(), tmp_path / "rod.toml")
    text = ENSEMBLE.replace('report = ""', 'report = ""\nplot = "bands.svg"').replace(
        "time = 1.0", "time = 0.1"
    )
    path = tmp_path / "study.toml"
    path.write_text(
        text.replace("interval = 0.5", "interval = 0.05") % ("rod.toml", "hinge"), encoding="utf-8"
    )
    assert result(path).files["plot"].stat().st_size > 1000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two", r"controller\[0\] takes \(t, q\), expected a function of t, q, v"),
        ("wrong", r"law.py:2: IndexError"),  # also where the file is named from its own folder
    ],
)
def test_faults_of_laws(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "law.py").write_text(
        "def wrong(t, q, v):\n    return q['elbow']\ndef two(t, q):\n    return q\n"
    )
    body = f'\n[[task.controllers]]\ntype = "python"\nfunction = "law.py:{name}"\n'
    study(tmp_path, body, time=0.1)
    with pytest.raises(FileError, match=message):
        result("study.toml")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('[[task.events]]\nquantity = "frame:tp.position.z"\nbelow = 0\n', "has no frame 'tp'; did you mean"),
        ("[task.events]\nbelow = 0\n", r"expected a list of tables: \[\[task.events\]\] in TOML"),
    ],
)
def test_faults_of_events(body, message, tmp_path):
    with pytest.raises(FileError, match=message):
        result(study(tmp_path, f"\n{body}", time=0.1))
