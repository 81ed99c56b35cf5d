"""Run files: what they refuse with file and line, what they write, and that it is the same the next time."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import alembert as al
from alembert.cli import app
from alembert.errors import ArgumentError, FileError
from alembert.model.io import toml
from alembert.study.run import TASKS, differences, json_schema, load_study, run_study

HEAD = 'format = "alembert-study"\nversion = 1\n'
SIMULATE = f"""{HEAD}name = "swing"
model = "library:pendulum"

[task]
type = "simulate"
time = 1.0
step = 0.01
position = {{ pivot = "pi/2" }}

[outputs]
folder = "out"
"""


def write(folder, text):
    path = folder / "study.toml"
    path.write_text(text)
    return path


def study(folder, task, outputs="", model="library:two_link"):
    text = f'{HEAD}model = "{model}"\n[task]\n{task}\n[outputs]\nfolder = "out"\n{outputs}\n'
    return load_study(write(folder, text))


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("time = 1.0", "tim = 1.0", ":8: task.tim: unknown key 'tim'; did you mean 'time'?"),
        ("time = 1.0", "time = -1.0", ":8: task.time: is -1, expected a positive number"),
        ("time = 1.0", 'time = "long"', ":8: task.time: "),
        ('"simulate"', '"simulte"', ":7: task.type: is 'simulte'; did you mean 'simulate'?"),
        ('type = "simulate"\n', "", ":6: task.type: is missing, expected one of simulate, "),
        ("[task]", "[tsk]", ":6: tsk: unknown key 'tsk'; did you mean 'task'?"),
        ("pivot =", "pivt =", ":10: task.position.pivt: model 'pendulum' has no joint 'pivt'; did you mean 'pivot'?"),
        ("step = 0.01", 'integrator = "rk5"', ":9: task.integrator: simulate: no integrator 'rk5'"),
        ("step = 0.01", "step = 0.03", ":9: task.step: simulate: the duration 1 s is not a multiple"),
        ("step = 0.01", "hold = [3]", ":9: task.hold[0]: is 3, expected a text"),
        ("library:pendulum", "library:pendlum", ":4: model: 'pendlum' is no model of the library; did you mean"),
        ('model = "library:pendulum"\n', "", ":1: model: is missing, expected a model file"),
        ('folder = "out"', 'bode = "x.png"', ":13: outputs.bode: the task 'simulate' has no output 'bode'"),
        ('folder = "out"', 'save = "x.doc"', ":13: outputs.save: is 'x.doc', expected a name that ends with .csv or .nc"),
        ('folder = "out"', 'save = "../x.csv"', ":13: outputs.save: is '../x.csv', expected a file in the folder"),
        ("alembert-study", "alembert-model", ":1: format: this is a model, not a study"),
        ("alembert-study", "other", ":1: format: is 'other', expected \"alembert-study\""),
        ("version = 1", "version = 7", ":2: version: is 7; this Alembert reads version 1: a newer"),
    ],
)  # fmt: skip
def test_refused_with_file_and_line(old, new, message, tmp_path):
    path = write(tmp_path, SIMULATE.replace(old, new))
    with pytest.raises(al.FileError) as caught:
        run_study(load_study(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_several_errors_at_once(tmp_path):
    lines = "\n".join(f'x{k} = "y"' for k in range(3))
    text = SIMULATE.replace("time = 1.0", "time = -1.0").replace("step = 0.01", "step = -1")
    with pytest.raises(al.FileError, match=r"(?s)task\.time.*task\.step"):
        load_study(write(tmp_path, text))
    text = SIMULATE.replace('folder = "out"', lines)
    with pytest.raises(al.FileError, match=r"outputs\.x0"):
        load_study(write(tmp_path, text))


def test_a_run_can_be_repeated_bit_for_bit(tmp_path):
    """All outputs of all kinds, twice: the same bytes."""
    pytest.importorskip("xarray")
    pytest.importorskip("matplotlib")
    outputs = 'folder = "out"\nsave = "run.nc"\nplot = "run.svg"\n'
    path = write(tmp_path, SIMULATE.replace('folder = "out"', outputs))
    first, second = (
        run_study(load_study(path, folder=tmp_path / name), command=["x"]) for name in ("a", "b")
    )
    for kind in ("save", "plot", "report"):
        assert first.files[kind].read_bytes() == second.files[kind].read_bytes(), kind
    assert first.manifest["outputs"] == second.manifest["outputs"]
    assert differences(load_study(path, folder=tmp_path / "a"), second.manifest) == []
    manifest = json.loads(first.files["manifest"].read_text())
    assert manifest["versions"]["alembert"]
    assert manifest["task"]["position"] == {"pivot": [np.pi / 2]}
    assert [entry["path"] for entry in manifest["inputs"]] == ["study.toml"]
    assert {entry["path"] for entry in manifest["outputs"]} == {"run.nc", "run.svg", "report.html"}
    assert "2026" not in first.files["report"].read_text()[:2000]  # no date in what is compared


def test_other_outputs_are_repeatable_too(tmp_path):
    pytest.importorskip("matplotlib")
    base = tmp_path / "model.toml"
    al.save(al.library.pendulum(damping=0.1), base)
    for name, outputs in (
        ("linearize", 'save = "x.mat"\nbode = "b.pdf"\npoles = "p.png"\nreport = "r.md"'),
        ("linearize", 'save = "x.npz"'),
        ("ensemble", 'save = "x.csv"\nplot = "e.png"'),
    ):
        options = (
            "members = 5\ntime = 0.1\ninterval = 0.05\nspread.position.pivot = 0.2"
            if name == "ensemble"
            else ""
        )
        found = study(tmp_path, f'type = "{name}"\n{options}', outputs, model="model.toml")
        one = run_study(found)
        contents = {kind: path.read_bytes() for kind, path in one.files.items() if kind != "manifest"}
        two = run_study(found)
        assert contents == {kind: path.read_bytes() for kind, path in two.files.items() if kind != "manifest"}
        assert [entry["path"] for entry in two.manifest["inputs"]] == ["study.toml", "model.toml"]


def test_run_and_check_by_command(tmp_path):
    path = write(tmp_path, SIMULATE)
    assert "run the study without --check first" in run("run", path, "--check", code=2).stderr
    text = run("run", path).stdout
    assert "energy kept to" in text
    assert text.count("wrote ") == 3
    assert "the same as before: 2 files, bit for bit" in run("run", path, "--check").stdout
    changed = run("run", path, "--check", "--set", "task.time=0.5", "--json", code=1)
    document = json.loads(changed.stdout)
    assert document["ok"] is False
    assert "outputs: records.csv differs" in document["differences"]
    elsewhere = run("run", path, "--folder", tmp_path / "else", "--set", "model=library:pendulum,mass=2")
    assert "else" in elsewhere.stdout
    (tmp_path / "out" / "manifest.json").write_text("{")
    assert "is no manifest" in run("run", path, "--check", code=2).stderr


@pytest.mark.parametrize("change", ["task.time", "=3", "task..time=2"])
def test_changes_that_are_none(change, tmp_path):
    with pytest.raises(al.FileError, match=r"--set .*; write for instance task\.time=2\.5"):
        load_study(write(tmp_path, SIMULATE), changes=[change])


def test_command_and_study_give_the_same(tmp_path):
    """One source: the command's records are the study's."""
    done = run_study(load_study(write(tmp_path, SIMULATE)))
    run(
        "simulate", "pendulum", "--time", 1, "--step", 0.01, "--position", "pivot=pi/2", "--save", tmp_path / "x.csv"
    )  # fmt: skip
    assert (tmp_path / "x.csv").read_bytes() == done.files["save"].read_bytes()


# --- tasks --------------------------------------------------------------------------------------------------


def test_trim(tmp_path):
    options = 'type = "trim"\nfixed = { shoulder = 0.3, elbow = 0.5 }'
    found = run_study(study(tmp_path, options))
    tau = al.library.two_link().gravity_forces([0.3, 0.5])
    assert list(found.outcome.data["tau"].values()) == pytest.approx(tau)
    assert found.outcome.data["stability"] == "unstable"
    pushed = run_study(study(tmp_path, f"{options}\nwrenches.tip = [0, 0, 0, 0, 0, 2]"))
    assert pushed.outcome.data["wrenches"] == {"tip": [0, 0, 0, 0, 0, 2]}
    assert list(pushed.outcome.data["tau"].values()) != pytest.approx(tau)


def test_linearize(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "linear.npz"
    run("linearize", "two_link", "--fixed", "shoulder=0.3", "--fixed", "elbow=0.5", "--save", path)
    arrays = np.load(path)
    model = al.library.two_link()
    trim = al.trim(model, fixed={"shoulder": 0.3, "elbow": 0.5})
    assert np.array_equal(arrays["A"], trim.linearize().A)
    assert arrays["states"].tolist() == ["q:shoulder", "q:elbow", "v:shoulder", "v:elbow"]
    document = json.loads(run("linearize", "pendulum", "--json").stdout)
    assert document["modes"][0]["frequency"] == pytest.approx(np.sqrt(9.81))
    assert document["controllable"] is True


def test_ensemble(tmp_path):
    """The draws are those of its seed, and spread as asked."""
    options = 'type = "ensemble"\nmembers = 400\ntime = 0.01\nspread.speed.shoulder = 0.5\nseed = 3'
    found = run_study(study(tmp_path, options))
    again = run_study(study(tmp_path, options + "\nposition.elbow = 0.0"))
    assert found.outcome.data == again.outcome.data
    # 400 draws: their deviation is off by 1 / sqrt(800) = 3.5 % (one standard deviation); gravity adds nothing
    assert found.outcome.data["deviation_v"]["shoulder"] == pytest.approx(0.5, rel=0.15)
    assert found.manifest["seeds"] == {"ensemble": 3}
    other = run_study(study(tmp_path, options.replace("seed = 3", "seed = 4")))
    assert other.outcome.data["mean_v"] != found.outcome.data["mean_v"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            'type = "ensemble"\nspread.position.elbw = 1',
            "task.spread.position.elbw: model 'two_link' has no joint",
        ),
        (
            'type = "ensemble"\nspread.parameters.m = 1',
            "task.spread.parameters.m: the model has no parameter 'm'",
        ),
        ('type = "ensemble"\nmembers = 0', "task.members: is 0, expected a positive whole number"),
        ('type = "simulate"\nparameters.m = 1', "task.parameters.m: the model has no parameter 'm'"),
        (
            'type = "simulate"\nposition.elbow = [1, 2]',
            "task.position.elbow: expected 1 number (angle), got 2",
        ),
        ('type = "simulate"\nhold = ["elbw"]', "task.hold: model 'two_link' has no joint 'elbw'"),
        ('type = "identify"\ndata = "none.csv"', "none.csv: cannot be read"),
        (
            'type = "simulate"\nforces.a = { type = "spring", frame_a = "tip" }',
            "task.forces.a.type: is 'spring'; did you mean 'spring_damper'?",
        ),
        (
            'type = "simulate"\nforces.a = { type = "spring_damper", frame_a = "tip", frame_b = "wrld" }',
            "task.forces.a: model 'two_link' has no frame 'wrld'; did you mean 'world'?",
        ),
        (
            'type = "simulate"\nforces.a = { type = "drag", frame = "tip", coefficient = "c", area = 1 }',
            "task.forces.a.coefficient: the model has no parameter 'c'",
        ),
        (
            'type = "simulate"\nforces.a = { type = "bushing", frame_a = "tip", frame_b = "world", stiffness = [1] }',
            "task.forces.a.stiffness: has 1 entries, expected 6",
        ),
        (
            'type = "simulate"\ngravity_field.type = "centre"',
            "task.gravity_field.type: is 'centre'; did you mean 'central'?",
        ),
        (
            'type = "ensemble"\ngravity_field = { type = "gradient", rate = -1 }',
            "task.gravity_field: GravityGradient: rate is -1.0, expected a positive rate in rad/s",
        ),
        (
            'type = "simulate"\ngravity = [0, 0, 0]\ngravity_field.type = "central"',
            "task.gravity_field: is given together with gravity, expected one of them",
        ),
        (
            'type = "simulate"\ndrives.elbw = { lag = 1 }',
            "task.drives.elbw: model 'two_link' has no joint 'elbw'",
        ),
        (
            'type = "simulate"\ndrives.elbow = { limit = 0 }',
            "task.drives.elbow: Drive: limit is 0.0, expected a pos",
        ),
        ('type = "simulate"\nrecord = ["enery"]', "task.record: simulate: record: nothing is called 'enery'"),
    ],
)
def test_refusals_of_tasks(options, message, tmp_path):
    with pytest.raises(al.FileError) as caught:
        run_study(study(tmp_path, options))
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["central", "gradient"])
def test_gravity_fields(tmp_path, kind):
    from alembert.simulate import CentralGravity, GravityGradient, simulate

    text = {
        "central": 'parameter = "pi"\ncenter = [0, 0, -3]\ngradient = false',
        "gradient": "rate = 0.3\nradial = [0, 0, 2]\nnormal = [0, 1, 0]",
    }
    field = {
        "central": CentralGravity(np.pi, (0, 0, -3), gradient=False),
        "gradient": GravityGradient(0.3, (0, 0, 2), (0, 1, 0)),
    }
    options = f'type = "simulate"\ntime = 1\nposition.elbow = 0.5\n[task.gravity_field]\ntype = "{kind}"\n{text[kind]}'
    done = run_study(study(tmp_path, options))
    run = simulate(al.library.two_link(), [0, 0.5], duration=1, gravity=field[kind])
    assert list(done.outcome.data["q"].values()) == run.q[-1].tolist()
    assert abs(run.q[-1, 0]) > 1e-3


def test_what_runs_along(tmp_path):
    """Force elements with formulas, drives and records by name: the motion that Python gives, repeatably."""
    from alembert.simulate import Bushing, Drag, Drive, Gear, SoftStop, SpringDamper, simulate

    builder = al.ModelBuilder("arm")
    builder.parameter("k", 30.0)
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    limits = al.Limits(lower=(-0.1,), upper=(0.1,))
    builder.body("upper", rod, joint=al.Revolute((0, 1, 0)), joint_name="shoulder")
    builder.body("lower", rod, joint=al.Revolute((0, 1, 0)), joint_name="elbow", parent="upper", placement=(1, 0, 0),
                 limits=limits)  # fmt: skip
    m = builder.build()
    al.save(m, tmp_path / "m.toml")
    options = """
type = "simulate"
time = 0.5
step = 0.01
integrator = "rk4"
record = ["energy", "frame:lower.position@10"]
drives.shoulder = { lag = 0.1, gear = { ratio = 10.0, inertia = 1e-3 } }

[task.forces.cord]
type = "spring_damper"
frame_a = "world"
frame_b = "lower"
stiffness = "2 * k"
length = 0.8
tension_only = true

[task.forces.mount]
type = "bushing"
frame_a = "world"
frame_b = "upper"
stiffness = [0, "k / 3", 0, 0, 0, 0]

[task.forces.air]
type = "drag"
frame = "lower"
coefficient = 1.2
area = 0.3
wind = [1, 0, 0]

[task.forces.stop]
type = "soft_stop"
stiffness = 500
damping = 2
"""
    done = run_study(study(tmp_path, options, model="m.toml", outputs='save = "run.csv"'))
    k = al.Expression("k")
    forces = [
        SpringDamper("world", "lower", 2 * k, length=0.8, tension_only=True),
        Bushing("world", "upper", (0, k / 3, 0, 0, 0, 0)),
        Drag("lower", 1.2, 0.3, wind=(1, 0, 0)),
        SoftStop(500, 2),
    ]
    run = simulate(m, [0, 0], duration=0.5, step=0.01, integrator="rk4", forces=forces,
                   drives={"shoulder": Drive(lag=0.1, gear=Gear(10.0, 1e-3))})  # fmt: skip
    assert list(done.outcome.data["q"].values()) == run.q[-1].tolist()
    assert done.outcome.data["energy_error"] < 1e-3
    assert "frame:lower.position.x [m]" in done.files["save"].read_text().partition("\n")[0]
    assert done.manifest["task"]["forces"]["cord"]["stiffness"] == "2 * k"
    members = 'type = "ensemble"\ntime = 0.1\nstep = 0.01\nmembers = 3\nspread.speed.elbow = 1\n'
    air = 'forces.air = { type = "drag", frame = "lower", coefficient = 40, area = 1 }\n'
    with_air, without = (
        run_study(study(tmp_path, members + more, model="m.toml")).outcome.data["mean_v"]
        for more in (air, "")
    )
    assert with_air != without


def test_failures_keep_their_kind(tmp_path, monkeypatch):
    """No solution is exit code 1, not supported 3, with file and line all the same."""
    options = 'type = "trim"\nposition.shoulder = 0.5\nfree = ["q:elbow"]'
    with pytest.raises(al.NumericalError, match=r"study\.toml:7: task\.free: trim: no equilibrium"):
        run_study(study(tmp_path, options))

    def unsupported(*_):
        raise al.UnsupportedError("integrator x and loops do not go together")

    monkeypatch.setattr(TASKS["trim"], "run", unsupported)
    with pytest.raises(al.UnsupportedError, match=r"study\.toml:4: task: integrator x and"):
        run_study(study(tmp_path, options))


def series(model, count=400, **columns):
    rng = np.random.default_rng(0)
    time = np.arange(count) * 0.01
    phase = rng.uniform(0, 6, size=(3, model.nv))
    w = np.array([2.0, 3.1, 5.3])[:, None]
    angle = w[:, None] * time[None, :, None] + phase[:, None]
    q, v, a = (
        np.sin(angle).sum(0),
        (w[:, None] * np.cos(angle)).sum(0),
        -(w[:, None] ** 2 * np.sin(angle)).sum(0),
    )
    return time, q, v, a, model.inverse_dynamics(q, v, a)


def table(path, model, time, **parts):
    names = ["time [s]", *(f"{kind}.{name}" for kind in parts for name in model.speed_names)]
    np.savetxt(
        path, np.column_stack([time, *parts.values()]), delimiter=",", header=",".join(names), comments=""
    )


@pytest.mark.parametrize("measured", ["q", "qv", "qva"])
def test_identify(measured, tmp_path):
    """From clean data the base parameters of the truth come back."""
    truth = al.library.two_link(masses=(1.4, 0.8))
    time, q, v, a, tau = series(truth)
    parts = {"q": q, "v": v, "a": a}
    table(tmp_path / "log.csv", truth, time, **{key: parts[key] for key in measured}, tau=tau)
    done = run_study(study(tmp_path, 'type = "identify"\ndata = "log.csv"\nwindow = 9', 'model = "new.toml"'))
    assert done.outcome.data["excited"] == done.outcome.data["base_parameters"]
    new = al.load(done.files["model"])
    x = np.random.default_rng(1).normal(size=(3, 50, 2))
    # differentiating with local polynomials of degree 4 over 9 samples of 0.01 s: some 1e-5 of the efforts
    expected = truth.inverse_dynamics(*x)
    np.testing.assert_allclose(new.inverse_dynamics(*x), expected, atol=2e-4 * np.abs(expected).max())
    assert [entry["path"] for entry in done.manifest["inputs"]] == ["study.toml", "log.csv"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: is empty"),
        ("time,q.shoulder\n1\n", ":2: has 1 values, expected 2"),
        ("time,q.shoulder\n1,a\n", ":2: could not convert string to float: 'a'"),
        ("tme,q.shoulder\n1,2\n", ":1: has no column 'time'; did you mean 'tme'?"),
        ("time,q.shoulder\n1,2\n", ":1: has no column 'q.elbow'"),
    ],
)
def test_data_that_cannot_be_read(text, message, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(al.FileError) as caught:
        run_study(study(tmp_path, 'type = "identify"\ndata = "log.csv"'))
    assert str(caught.value).startswith(f"{tmp_path / 'log.csv'}{message}")


def test_data_without_efforts_is_refused(tmp_path):
    model = al.library.two_link()
    time, q, v, a, tau = series(model, 50)
    table(tmp_path / "log.csv", model, time, q=q, v=v, a=a, tau=0 * tau)
    with pytest.raises(al.FileError, match=r"task\.data: all efforts in .* are zero"):
        run_study(study(tmp_path, 'type = "identify"\ndata = "log.csv"'))


def test_loops_are_closed_at_the_start(tmp_path):
    builder = al.ModelBuilder("four_bar", gravity=(0, -9.81, 0))
    rod = al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    builder.body("crank", rod, joint=al.Revolute())
    builder.body("coupler", rod, joint=al.Revolute(), parent="crank", placement=(1, 0, 0))
    builder.body("rocker", rod, joint=al.Revolute(), placement=(1, 0, 0))
    builder.frame("a", "coupler", (1, 0, 0)).frame("b", "rocker", (1, 0, 0))
    builder.loop("pin", al.Revolute(), "a", "b")
    al.save(builder.build(), tmp_path / "m.toml")
    options = (
        'type = "simulate"\ntime = 0.1\nstep = 0.01\nhold = ["crank_joint"]\n'
        "position = { crank_joint = 1.4, coupler_joint = -1.5, rocker_joint = 1.3 }"
    )
    found = run_study(study(tmp_path, options, model="m.toml"))
    assert found.outcome.data["constraint_error"] < 1e-8
    records = np.loadtxt(found.files["save"], delimiter=",", skiprows=1)
    assert records[0, 1] == 1.4


# --- the schema ---------------------------------------------------------------------------------------------


def test_the_schema_knows_all_tasks_and_describes_all_options():
    schema = json_schema()
    assert set(schema["properties"]["task"]["discriminator"]["mapping"]) == set(TASKS)
    for kind, task in TASKS.items():
        for name, field in task.model_fields.items():
            assert name == "type" or field.description, f"{kind}.{name}"
    assert json.loads(run("schema", "study").stdout) == schema


def test_the_task_in_a_report_can_be_run_again(tmp_path):
    found = load_study(write(tmp_path, SIMULATE))
    path = run_study(load_study(found.path, changes=['outputs.report="r.md"'])).files["report"]
    text = path.read_text().partition("```toml\n")[2].partition("```")[0]
    again = toml.parse(HEAD + text, "x").data
    assert again["task"]["position"] == {"pivot": [np.pi / 2]}
    assert load_study(write(tmp_path, HEAD + text)).task == found.task


def test_verify_needs_no_model(tmp_path):
    text = f'{HEAD}[task]\ntype = "verify"\ncases = ["a01_pendulum_period"]\njobs = 1\n'
    done = run_study(load_study(write(tmp_path, text)))
    assert done.outcome.ok
    assert done.outcome.data["status"] == {"a01_pendulum_period": "passed"}


def test_optimise(tmp_path):
    """From rest to rest with the least effort; without gravity and friction the torque is linear in time."""
    al.save(al.library.pendulum().replace(gravity=(0, 0, 0)), tmp_path / "m.toml")
    options = 'type = "optimise"\ntime = 2.0\nsteps = 50\nend = { pivot = 1.0 }'
    done = run_study(study(tmp_path, options, model="m.toml"))
    # min 1/2 int tau^2 of a double integrator with I = 1: cost = 6 d^2 / T^3; the discrete one is 1/N^2 of it above
    assert done.outcome.data["cost"] == pytest.approx(6 / 2**3, rel=2e-3)
    rows = np.loadtxt(done.files["save"], delimiter=",", skiprows=1)
    assert rows[-1, 1:3] == pytest.approx([1.0, 0.0], abs=1e-7)
    with pytest.raises(al.FileError, match=r"task\.end\.pivt: model 'pendulum' has no joint 'pivt'"):
        run_study(study(tmp_path, options.replace("pivot", "pivt"), model="m.toml"))
    with pytest.raises(al.FileError, match=r"task\.end\.pivot: expected 1 number \(angle\), got 2"):
        run_study(study(tmp_path, options.replace("1.0", "[1.0, 2.0]"), model="m.toml"))
    with pytest.raises(al.FileError, match=r"task\.free: model 'pendulum' has no joint 'x'"):
        run_study(study(tmp_path, options + '\nfree = ["x"]', model="m.toml"))
    builder = al.ModelBuilder("held", gravity=(0, 0, 0))
    builder.body("arm", al.Inertia.sphere(1.0, 0.1), joint=al.Revolute((0, 0, 1)), joint_name="pivot")
    builder.body("tip", al.Inertia.sphere(1.0, 0.1), parent="arm", joint=al.Fixed(), joint_name="weld")
    al.save(builder.build(), tmp_path / "held.toml")
    with pytest.raises(al.FileError, match=r"task\.free: names 'weld', a joint that does not move"):
        run_study(study(tmp_path, options + '\nfree = ["weld"]', model="held.toml"))


def test_optimise_from_a_guess_and_by_its_command(tmp_path, monkeypatch):
    """A run file is taken by `alembert optimise` as by `alembert run`, a saved solution as a guess."""
    monkeypatch.chdir(tmp_path)
    task = 'type = "optimise"\ntime = 1.0\nsteps = 20\nend = { pivot = 1.0 }'
    text = f'{HEAD}model = "library:pendulum"\n[task]\n{task}\n'
    path = write(tmp_path, f'{text}[outputs]\nsave = "s.npz"\nhtml = "s.html"\n')
    first = json.loads(run("optimise", path, "--json").stdout)
    assert set(first["files"]) == {"save", "html", "report", "manifest"}
    path = write(tmp_path, text.replace("steps = 20", f'steps = 20\nguess = "{first["files"]["save"]}"'))
    again = json.loads(run("optimise", path, "--json").stdout)["result"]
    assert again["iterations"] < first["result"]["iterations"]
    assert again["cost"] == pytest.approx(first["result"]["cost"], rel=1e-9)
    given = [
        "--solver",
        "ipopt",
        "--steps",
        "10",
        "--end",
        "pivot=pi/4",
        "--time",
        "0.5,3",
        "--cost",
        "effort",
    ]
    other = json.loads(run("optimise", path, *given, "--save", "t.csv", "--json").stdout)
    assert (other["result"]["solver"], other["result"]["steps"]) == ("ipopt", 10)
    names, *rows = (tmp_path / other["files"]["save"]).read_text().splitlines()
    assert names == "time [s],q.pivot [rad],v.pivot [rad/s],tau.pivot [N m]"
    assert float(rows[-1].split(",")[1]) == pytest.approx(np.pi / 4, abs=1e-7)
    assert "task.solver" in run("optimise", path, "--solver", "simplex", code=2).stderr
    path = write(tmp_path, text.replace(task, 'type = "simulate"'))
    assert "its task is 'simulate', not 'optimise'" in run("optimise", path, code=2).stderr
    with pytest.raises(al.AlembertError, match="cannot be read: No such file"):
        run_study(load_study(write(tmp_path, text.replace("steps = 20", 'guess = "none.npz"'))))


def test_optimise_without_a_solution(tmp_path):
    """The motor's limits make it impossible: exit code 1, and what was reached is written."""
    task = 'type = "optimise"\ntime = 0.1\nsteps = 20\niterations = 30\nend = { hinge = "pi" }'
    text = f'{HEAD}model = "library:cart_pole"\n[task]\n{task}\n'
    path = write(tmp_path, text)
    result = run("run", path, "--json", code=1)
    assert json.loads(result.stdout)["result"]["success"] is False


# --- outputs stay where they belong -------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["../elsewhere", "/tmp/elsewhere", "out/../../elsewhere"])
def test_the_folder_of_outputs_is_beside_the_run_file(where, tmp_path):
    (tmp_path / "study").mkdir()
    path = write(tmp_path / "study", SIMULATE.replace('folder = "out"', f'folder = "{where}"'))
    with pytest.raises(
        FileError, match=r"outputs.folder: is .*, which leads out of the folder of the run file; --folder"
    ):
        load_study(path)
    assert load_study(path, folder=tmp_path / "asked").folder == tmp_path / "asked"


def test_another_folder_is_a_path_or_a_text(tmp_path):
    path = write(tmp_path, SIMULATE)
    assert load_study(path, folder=str(tmp_path / "there")).folder == tmp_path / "there"
    with pytest.raises(
        ArgumentError, match="load_study: folder is 3, expected a path for the outputs, or None"
    ):
        load_study(path, folder=3)


def test_outputs_are_not_written_through_links(tmp_path):
    victim = tmp_path / "victim.csv"
    victim.write_text("mine")
    folder = tmp_path / "study"
    (folder / "out").mkdir(parents=True)
    (folder / "out" / "records.csv").symlink_to(victim)
    path = write(folder, SIMULATE)
    with pytest.raises(
        FileError, match=r"outputs.save: .*records.csv is a link that leads out of the folder of outputs"
    ):
        run_study(load_study(path), progress=False)
    assert victim.read_text() == "mine"
    (folder / "out" / "records.csv").unlink()
    (folder / "out").rmdir()
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(
        FileError, match=r"outputs.folder: is 'out', which leads out of the folder of the run file"
    ):
        load_study(path)


def test_checkpoints_stay_beside_the_run_file(tmp_path):
    task = 'type = "ensemble"\nmembers = 2\ntime = 0.1\nstep = 0.05\ncheckpoint = "../blocks"'
    (tmp_path / "study").mkdir()
    path = tmp_path / "study" / "study.toml"
    path.write_text(f'{HEAD}model = "library:pendulum"\n[task]\n{task}\n')
    with pytest.raises(
        FileError, match=r"task.checkpoint: is '../blocks', which leads out of the folder of the run file"
    ):
        run_study(load_study(path), progress=False)


def test_sensors_are_measured_and_read(tmp_path):
    (tmp_path / "law.py").write_text(
        "def brake(t, measured):\n    return {'pivot': -2 * measured['rate'][0]}\n"
    )
    sensors = '[task.sensors.rate]\nkind = "joint_rate"\ntarget = "pivot"\nperiod = 0.05\nnoise = 0.01\n'
    law = (
        '[[task.controllers]]\ntype = "python"\nfunction = "law.py:brake"\nperiod = 0.05\nreads = ["rate"]\n'
    )
    path = tmp_path / "study.toml"
    head = f'{HEAD}model = "library:pendulum"\n[task]\ntype = "simulate"\ntime = 1.0\nstep = 0.01\nposition.pivot = 1.0\n'
    path.write_text(head + sensors + law)
    data = run_study(load_study(path), progress=False).outcome.data
    assert data["measurements"]["rate"]["samples"] == 21
    path.write_text(head)
    free = run_study(load_study(path), progress=False).outcome.data
    assert abs(data["v"]["pivot"]) < abs(free["v"]["pivot"])
    for change, message in (
        ((sensors, ""), "task.controllers\\[0\\].reads: there is no sensor 'rate'"),
        (('kind = "joint_rate"\n', ""), "task.sensors.rate: expected both kind and target"),
        (("noise = 0.01", "noise = -1"), "task.sensors.rate: noise is .*, expected zero or positive numbers"),
        (("period = 0.05\nreads", "reads"), "task.controllers\\[0\\].reads: is given without a period"),
    ):
        path.write_text((head + sensors + law).replace(*change))
        with pytest.raises(FileError, match=message):
            run_study(load_study(path), progress=False)
