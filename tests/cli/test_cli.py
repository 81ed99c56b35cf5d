"""The command: what it prints, where errors go, and with which exit code."""

import json
import math
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import alembert as al
from alembert.cli import app, tasks
from alembert.model.io import json_schema, load, save
from alembert.study.task import checked

URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="package://gone/arm.stl"/></geometry></visual></link>
<joint name="j" type="continuous"><parent link="base"/><child link="arm"/></joint></robot>"""


@pytest.fixture
def model() -> al.Model:
    builder = al.ModelBuilder("pendulum")
    builder.body("rod", al.Inertia.rod(2.0, (0, 0, 0), (0, 0, -1)), joint=al.Revolute((0, 1, 0)),
                 limits=al.Limits((-1.0,), (float("inf"),)))  # fmt: skip
    return builder.build()


@pytest.fixture
def file(tmp_path, model):
    save(model, tmp_path / "pendulum.toml")
    return tmp_path / "pendulum.toml"


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def test_the_package_runs_as_the_command():
    command = [sys.executable, "-m", "alembert", "info", "pendulum", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["name"] == "pendulum"


def test_version():
    assert run("--version").stdout.startswith("alembert 0.")


def test_info(file, model):
    assert run("info", file).stdout == f"{model}\n"


def test_info_json(file, model):
    summary = json.loads(run("info", "--json", file).stdout)
    assert (summary["name"], summary["nq"], summary["nv"], summary["mass"]) == ("pendulum", 1, 1, 2.0)
    assert summary["coordinates"] == summary["speeds"] == ["rod_joint"]
    assert summary["model"]["joints"]["rod_joint"]["limits"] == {"lower": [-1.0], "upper": ["inf"]}


def test_the_json_content_is_the_own_format(file, model, tmp_path):
    content = json.loads(run("info", "--json", file).stdout)["model"]
    (tmp_path / "again.yaml").write_text(json.dumps(content))
    assert load(tmp_path / "again.yaml") == model


def test_convert(file, model, tmp_path):
    assert run("convert", file, tmp_path / "out.yaml").output == ""
    run("convert", tmp_path / "out.yaml", tmp_path / "back.toml")
    assert load(tmp_path / "back.toml") == model
    assert (tmp_path / "back.toml").read_text() == file.read_text()


def test_urdf_options_and_warnings(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(URDF)
    result = run("info", "--floating", "--package-dir", tmp_path, path)
    assert "7 degrees of freedom" in result.stdout
    assert result.stderr.startswith("warning: ")
    assert "arm.stl" in result.stderr
    assert "Traceback" not in result.stderr


def test_errors_are_a_paragraph_on_stderr(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text('format = "alembert-model"\nversion = 1\n[bodies.b]\nmas = 1\n')
    result = run("info", path, code=2)
    assert result.stdout == ""
    assert (
        result.stderr
        == f"error: {path}:4: bodies.b.mas: unknown key 'mas'; there is inertia, visuals, unphysical, flexible\n"
    )


def test_other_refusals(file, tmp_path):
    assert "cannot be read: No such file or directory" in run("info", tmp_path / "no.toml", code=2).stderr
    assert "takes no option 'floating'" in run("info", file, "--floating", code=2).stderr
    assert "use one of .toml, .yaml" in run("convert", file, tmp_path / "x.doc", code=2).stderr
    assert "has the suffix '.doc'" in run("info", "x.doc", code=2).stderr


def test_debug_raises(tmp_path):
    result = CliRunner().invoke(app, ["--debug", "info", str(tmp_path / "no.toml")])
    assert isinstance(result.exception, al.FileError)


def test_a_typo_is_answered_with_the_nearest_command(file):
    assert "did you mean 'info'?" in run("inof", file, code=2).stderr
    assert "did you mean 'clear'?" in run("cache", "clea", code=2).stderr


def test_schema():
    assert json.loads(run("schema").stdout) == json_schema()


def test_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ALEMBERT_CACHE", str(tmp_path / "cache"))
    assert run("cache", "show").stdout == run("cache").stdout == f"{tmp_path / 'cache'}: 0 kernels, 0.0 MB\n"
    (tmp_path / "cache").mkdir(mode=0o700)
    (tmp_path / "cache" / "kernel.alo").write_bytes(bytes(1_234_567))
    assert run("cache", "show").stdout == f"{tmp_path / 'cache'}: 1 kernel, 1.2 MB\n"
    assert run("cache", "clear").stdout == "removed 1 kernel\n"
    assert not list((tmp_path / "cache").iterdir())
    monkeypatch.setenv("ALEMBERT_CACHE", "off")
    assert run("cache").stdout == "the cache is off\n"


def test_the_entry_point(file):
    command = [sys.executable, "-m", "alembert", "info", str(file)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONIOENCODING": "ascii"}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "rod_joint (revolute)" in done.stdout


def test_bench_closes_loops(tmp_path):
    builder = al.ModelBuilder("gears")
    for name in ("driver", "driven"):
        builder.body(name, al.Inertia.cylinder(1.0, 0.1, 0.02), joint=al.Revolute(), joint_name=name)
    builder.coupling("mesh", "driven", ["driver"], [-2.0], offset=0.3)
    save(builder.build(), tmp_path / "gears.toml")
    found = json.loads(run("bench", tmp_path / "gears.toml", "--batch", 2, "--repeats", 1, "--json").stdout)
    assert all(times["call_us"] > 0 for times in found["algorithms"].values())


def test_bench_says_that_loops_do_not_close(tmp_path):
    builder = al.ModelBuilder("apart")
    builder.body("arm", al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute(), joint_name="arm")
    builder.frame("tip", "arm", (1, 0, 0))
    builder.frame("far", "world", (5, 0, 0))
    builder.loop("never", al.Spherical(), "tip", "far")
    save(builder.build(), tmp_path / "apart.toml")
    result = run("bench", tmp_path / "apart.toml", code=1)
    assert "no configuration was found at which the loops of 'apart' are closed" in result.stderr


def test_a_real_robot_in_one_step(tmp_path):
    """What is wrong with it is one warning; with --strict an error that names the line."""
    path = tmp_path / "r.urdf"
    path.write_text(
        '<robot name="r"><link name="a"/>\n<link name="b"><inertial><mass value="1"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="3"/></inertial></link>\n<gazebo/>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    shown = run("info", path)
    assert shown.stderr.startswith(f"warning: {path}: unphysical inertia kept")
    assert shown.stderr.count("warning") == 1
    assert f"error: {path}:2: body 'b': inertia violates" in run("info", path, "--strict", code=2).stderr


# --- terminals ----------------------------------------------------------------------------------------------

CLIPBOARD = "\x1b]52;c;aGVsbG8=\x07"  # writes into the clipboard of a terminal that obeys it


@pytest.mark.parametrize("name", [f"a{CLIPBOARD}", "a\x9b2J", "a\x7f"])
def test_names_with_control_characters_are_refused(name, tmp_path):
    builder = al.ModelBuilder("m").body(name, al.Inertia.point(1.0), joint=al.Fixed(), joint_name="j")
    with pytest.raises(al.ModelError, match=r"body has the name .*, which has the control character "):
        builder.build()
    with pytest.raises(al.ModelError, match=r"the model has the name .*, which has the control character "):
        al.ModelBuilder(name).build()
    path = tmp_path / "a.toml"
    path.write_text(f'format = "alembert-model"\nversion = 1\n[bodies.{json.dumps(name)}]\n')
    refused = run("info", path, code=2)
    assert not set(name) & set("\x1b\x07\x9b\x7f") & set(refused.output)


def test_nothing_that_a_file_says_reaches_the_terminal_unescaped(tmp_path):
    path = tmp_path / "a.toml"
    text = json.dumps(CLIPBOARD)
    for content in (
        f"{text} = 1",
        f"name = {text}",
        f"visuals = [{{ box = {{ size = [{text}, 1, 1] }} }}]",
        f"[parameters]\n{text} = 1",
        f"[joints.j]\ntype = {text}\nparent = {text}",
    ):
        path.write_text(f'format = "alembert-model"\nversion = 1\n{content}\n')
        assert "\x1b" not in run("info", path, code=2).output
    for content in (
        f"name = {text}\nmodel = {text}\n[task]\ntype = {text}",
        f'name = {text}\nmodel = "pendulum"\n[task]\ntype = "simulate"\ntime = 0.1\n'
        f'[[task.events]]\nname = {text}\nquantity = "kinetic_energy"\nabove = 1e-6\naction = "note"',
    ):
        path.write_text(f'format = "alembert-study"\nversion = 1\n{content}\n')
        result = CliRunner().invoke(app, ["run", str(path)])
        assert "\x1b" not in result.output
    results = tmp_path / "r.json"
    results.write_text(json.dumps({"format": CLIPBOARD}))
    assert "\x1b" not in run("verify", "--results", results, code=2).output


def test_a_grid_in_a_terminal_shows_control_characters():
    from alembert.study.report import Grid

    shown = Grid.of(CLIPBOARD, (CLIPBOARD,), [(CLIPBOARD,)]).printable()
    assert shown == Grid.of(
        "\\x1b]52;c;aGVsbG8=\\x07", ("\\x1b]52;c;aGVsbG8=\\x07",), [("\\x1b]52;c;aGVsbG8=\\x07",)]
    )


def test_lines_are_not_broken_in_pipes():
    command = [sys.executable, "-m", "alembert", "verify", "--list", "--case", "chou_pendulum"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert max(len(line) for line in result.stdout.splitlines()) > 200
    assert len(result.stdout.splitlines()) == 4


def test_a_value_that_is_no_number_says_so():
    refused = run("simulate", "pendulum", "--position", "pivot=abc", code=2)
    assert (
        "--position pivot: is 'abc', expected a number or a formula of numbers such as -pi/2: 'abc' is no number"
        in refused.stderr
    )


def test_the_command_line_starts_without_what_computes():
    """Each command imports what it needs: `alembert --help` in half a second."""
    heavy = (
        "alembert.simulate",
        "alembert.control",
        "alembert.linear",
        "alembert.optimal",
        "scipy.optimize",
        "matplotlib",
    )
    text = f"import sys, alembert.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("simulate pendulum --gravity 0,0", "--gravity: has 2 entries, expected 3"),
        ("simulate pendulum --gravity 0,0,nan", "--gravity: is nan, expected a finite number"),
        ("simulate pendulum --gravity down", "--gravity down: expected X,Y,Z"),
        ("simulate pendulum --absolute-tolerance -1", "--absolute-tolerance: is -1, expected a positive number"),
        ("simulate pendulum --position pivot=1 --position pivot=2", "--position pivot=2: 'pivot' is given twice"),
        ("simulate pendulum --position pivot=nan", "--position pivot: is nan, expected a finite number"),
        ("linearize arm7 --wrench tool=0,0,0,1,0,inf", "--wrench tool: is inf, expected a finite number"),
        ("optimise cart_pole --iterations 0", "--iterations: is 0, expected a positive whole number"),
        ("optimise cart_pole --iterations 2.5", "'--iterations': Input should be a valid integer"),
        ("optimise cart_pole --tolerance x", "'--tolerance': Input should be a valid number"),
        ("identify pendulum log.csv --include visc", "--include: is 'visc', expected 'viscous', 'coulomb' or"),
    ],
)  # fmt: skip
def test_values_of_options_that_tasks_do_not_take(line, message):
    assert message in " ".join(run(*line.split(), code=2).stderr.split())


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("simulate pendulum --gravity 0,0,-1.6", "gravity", (0.0, 0.0, -1.6)),
        ("simulate pendulum --record energy@50 --record tau", "record", ["energy@50", "tau"]),
        ("simulate pendulum --absolute-tolerance 1e-9", "absolute_tolerance", 1e-9),
        ("linearize arm7 --wrench tool=0,0,0,0,0,pi", "wrenches", {"tool": (0.0, 0.0, 0.0, 0.0, 0.0, math.pi)}),
        ("optimise cart_pole", "limits", True),
        ("optimise cart_pole --no-limits", "limits", False),
        ("optimise cart_pole --periodic", "periodic", True),
        ("optimise cart_pole --iterations 7", "iterations", 7),
        ("optimise cart_pole --time 0.5,2", "time", (0.5, 2.0)),
        ("optimise cart_pole --guess last.npz", "guess", "last.npz"),
    ],
)  # fmt: skip
def test_options_of_each_kind_reach_their_task(monkeypatch, line, name, value):
    made = []
    monkeypatch.setattr(
        tasks,
        "perform",
        lambda kind, model, given: made.append(checked(kind, tasks.task_options(kind, given))),
    )
    run(*line.split())
    assert getattr(made[0], name) == value
