"""One grammar: every command has help with examples, JSON with documented keys, and errors that help."""

import json
import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import alembert as al
from alembert.cli import app
from alembert.cli.app import COMMANDS, EXIT_CODES, PANELS
from alembert.cli.demo import SCENES, DemoScene

NAMES = sorted(COMMANDS)
GROUP = get_command(app)

ERRORS = {
    "info": (["acrobto"], 2, "'acrobto' is no file and no model of the library; did you mean 'acrobot'?"),
    "convert": (["acrobot", "out.doc"], 2, "save: out.doc has the suffix '.doc'"),
    "simulate": (["pendulum", "--integrator", "rk5"], 2, "no integrator 'rk5'; did you mean 'rk45'?"),
    "linearize": (["acrobot", "--output", "tipp"], 2, "outputs: nothing is called 'tipp'"),
    "identify": (["acrobot", "none.csv"], 2, "none.csv: cannot be read: No such file or directory"),
    "run": (["none.toml"], 2, "none.toml: cannot be read: No such file or directory"),
    "verify": (["--case", "a01_pendulum_perod"], 2, "verify: no case 'a01_pendulum_perod'; did you mean"),
    "schema": (["modl"], 2, "schema: there is no kind of files 'modl'; did you mean 'model'?"),
    "bench": (["pendulum", "--batch", "0"], 2, "--batch 0: expected a positive whole number"),
    "optimise": (["two_link", "--time", "x"], 2, "--time x: expected SECONDS, or SHORTEST,LONGEST"),
    "new": (["acrobt"], 2, "new: there is no project 'acrobt'; did you mean 'acrobot'?"),
    "demo": (["satelite"], 2, "demo: there is no scene 'satelite'; did you mean 'satellite'?"),
    "view": (["none.nc"], 2, "none.nc: cannot be read: No such file or directory"),
    "build": (["arm.doc"], 2, "load: arm.doc has the suffix '.doc', expected one of .toml"),
    "cache": (["clea"], 2, "did you mean 'clear'?"),
}
DOCUMENTS = {
    "info": ["acrobot"],
    "convert": ["acrobot", "acrobot.toml"],
    "simulate": ["pendulum", "--time", "0.1"],
    "linearize": ["pendulum"],
    "identify": ["pendulum", "data.csv"],
    "run": ["study.toml"],
    "verify": ["--case", "screw_descent", "--jobs", "1"],
    "view": ["pendulum", "--html", "pendulum.html"],
    "build": ["acrobot", "--python", "acrobot.py"],
    "cache": [],
    "bench": ["pendulum", "--batch", "2", "--repeats", "1"],
    "optimise": ["pendulum", "--time", "1", "--end", "pivot=0.5", "--steps", "10"],
    "new": ["acrobot"],
    "demo": ["quick"],
}
WITHOUT_JSON = {"schema"}
STUDY = """format = "alembert-study"
version = 1
model = "library:pendulum"
[task]
type = "simulate"
time = 0.1
"""


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def quick():
    """Nothing moves."""
    model = al.library.pendulum()
    t = np.linspace(0.0, 1.0, 5)
    return DemoScene("Rest", model, t, np.zeros((5, 1)), {"angle": {"q": 0 * t}}, [("moved by", "0 m")])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    lines = ["time [s],q.pivot [rad],v.pivot,a.pivot,tau.pivot"]
    lines += [f"{k},{0.1 * k},{0.3 * k - 1},{k % 7 - 3},{k % 7 - 2.5}" for k in range(60)]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    monkeypatch.setitem(SCENES, "quick", quick)
    return tmp_path


def test_tables_cover_all_commands():
    assert set(ERRORS) == set(NAMES)
    assert set(DOCUMENTS) | WITHOUT_JSON == set(NAMES)
    assert set(GROUP.commands) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_help(name):
    for option in ("--help", "-h"):
        text = run(name, option).stdout
        assert text.startswith(f"alembert {name}") or text.startswith(f"root {name}")
        assert "Examples" in text
        assert all(line in text for line, _ in COMMANDS[name].examples)
        assert all(key in text for key in COMMANDS[name].keys)
    assert COMMANDS[name].panel in PANELS


@pytest.mark.parametrize("name", NAMES)
def test_examples_use_options_that_exist(name):
    for line, _ in COMMANDS[name].examples:
        program, command, *words = shlex.split(line.partition(">")[0])
        assert (program, command) == ("alembert", name)
        known = {opt for parameter in GROUP.commands[name].params for opt in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line


def test_help_of_the_program():
    text = run("--help").stdout
    assert all(f"  {name} " in text for name in NAMES)
    assert all(str(code) in text and meaning.split()[0] in text for code, meaning in EXIT_CODES.items())
    assert "--install-completion" in text
    assert run(code=2).stdout.startswith("root COMMAND")
    assert "alembert: no command 'linearise'; did you mean 'linearize'?" in command("linearise").stderr
    found = run("--install-completion", "nosh", code=2)
    assert (
        "--install-completion serves the shell that it is called from and takes no value, got 'nosh'"
        in found.stderr
    )


@pytest.mark.parametrize("name", NAMES)
def test_one_error_per_command(name, folder):
    arguments, code, message = ERRORS[name]
    result = run(name, *arguments, code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", sorted(DOCUMENTS))
def test_json_has_the_documented_keys(name, folder):
    document = json.loads(run(name, *DOCUMENTS[name], "--json").stdout)
    optional = {key for key, text in COMMANDS[name].keys.items() if text.startswith("(")}
    assert set(COMMANDS[name].keys) - optional <= set(document) <= set(COMMANDS[name].keys)


def test_json_of_an_error():
    result = run("info", "acrobto", "--json", code=2)
    error = json.loads(result.stdout)["error"]
    assert error["type"] == "ArgumentError"
    assert error["exit_code"] == 2
    assert error["message"] in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["simulate", "pendulum", "--tme", "1"], "no option '--tme'; did you mean '--time'?"),
        (["info", "pendulum", "--debug=3"], "--debug takes no value"),
        (["build", "pendulum", "--python", "a.txt"], "--python a.txt: expected a name that ends with .py"),
        (["view", "pendulum", "--html", "page.txt"], "--html page.txt: expected a name that ends with .html"),
        (["simulat", "pendulum"], "no command 'simulat'; did you mean 'simulate'?"),
        (["simulate", "pendulum", "--position", "pivt=1"], "has no joint 'pivt'; did you mean 'pivot'?"),
        (["simulate", "pendulum", "--position", "pivot"], "--position pivot: expected NAME=VALUE"),
        (["simulate", "two_link", "--position", "elbow=1,shoulder=2"], "write --position once for each"),
        (["run", "."], ".: is a folder, expected a run file"),
        (["simulate", "pendulum", "--position", "pivot=1,2"], "--position pivot: expected 1 number (angle), got 2"),
        (["simulate", "pendulum", "--position", "pivot=x"], "--position pivot: is 'x', expected a number or a formula"),
        (["simulate", "pendulum", "--hold", "pivo"], "--hold: model 'pendulum' has no joint 'pivo'"),
        (["simulate", "pendulum", "--time", "-1"], "--time: is -1, expected a positive number"),
        (["simulate", "pendulum", "--parameter", "m=1"], "--parameter m: the model has no parameter 'm'"),
        (["simulate", "pendulum", "--save", "x.txt"], "--save x.txt: expected a name that ends with .csv or .nc"),
        (["linearize", "acrobot", "--output", "frame:tipp.position"], "has no frame 'tipp'; did you mean 'tip'?"),
        (["info", "library:chain,m=3"], "library:chain has no option 'm'"),
        (["info", "library:chain,n"], "'n' is no option, expected NAME=VALUE after the comma"),
        (["info", "library:chain,n=many"], "n is 'many', expected a number, true or false"),
        (["info", "library:chian"], "'chian' is no model of the library; did you mean 'chain'?"),
        (["info", "acrobot", "--floating"], "--floating and --package-dir are for URDF files"),
        (["info", "stdy.toml"], "stdy.toml: cannot be read: No such file or directory; did you mean 'study.toml'?"),
        (["simulate"], "Missing argument"),
    ],
)  # fmt: skip
def test_typos_and_bad_values(arguments, message, folder):
    assert message in run(*arguments, code=2).stderr


def test_exit_codes(folder, monkeypatch):
    held = ["linearize", "two_link", "--position", "shoulder=0.5", "--free", "q:elbow"]
    assert "trim: no equilibrium found" in run(*held, code=1).stderr
    text = run("convert", "pitcher", "x.urdf", code=3).stderr
    assert "What is not covered, and what to do instead: docs/limits.md" in text
    assert (Path(__file__).parents[2] / al.UnsupportedError.page).exists()

    def fault(*_, **__):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("alembert.cli.files.load_model", fault)
    text = run("info", "acrobot", code=4).stderr
    assert "ZeroDivisionError: division by zero" in text
    assert "--debug shows where" in text

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("alembert.cli.files.load_model", interrupt)
    assert "interrupted; what was not written yet is lost" in run("info", "acrobot", code=130).stderr

    def missing(*_, **__):
        raise ModuleNotFoundError("No module named 'xarray'", name="xarray")

    monkeypatch.setattr("alembert.cli.files.load_model", missing)
    text = run("info", "acrobot", code=3).stderr
    assert 'pip install "alembert[data]"' in text
    assert "docs/limits.md" not in text

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied", "secret.toml")

    monkeypatch.setattr("alembert.cli.files.load_model", forbidden)
    assert "secret.toml: Permission denied" in run("info", "acrobot", code=2).stderr


def test_options_of_all_commands_stand_anywhere(folder):
    assert run("info", "acrobot", "--quiet").output == run("--quiet", "info", "acrobot").output == ""
    assert run("convert", "acrobot", "a.toml", "-v").stderr.startswith("a.toml: <Model 'acrobot'")
    result = CliRunner().invoke(app, ["info", "--debug", "none.toml"])
    assert isinstance(result.exception, al.FileError)


def test_models_of_the_library():
    assert run("info", "library:chain,n=3").stdout.startswith("chain_3: 3 bodies")
    assert set(json.loads(run("info", "--json").stdout)["library"]) == set(al.library.names())
    assert "acrobot" in run("info").stdout


def test_a_folder_does_not_hide_the_library(folder):
    """`alembert new pendulum` leaves one of that name."""
    run("new", "pendulum")
    assert run("info", "pendulum").stdout.startswith("pendulum: 1 body")


def command(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "alembert", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_quiet_when_piped(folder):
    """No colours, no bars, no lines of tables."""
    done = command("simulate", "pendulum", "--time", "0.1", "--position", "pivot=1")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "pivot" in done.stdout
    assert not set(done.stdout) & set("─│┃━╭╰")
    assert "\x1b" not in command("simulate", "--help").stdout


def test_completion(folder, monkeypatch, capsys):
    """Scripts for the shells, and what they ask for."""

    def ran(*arguments, **environment):
        monkeypatch.setattr(sys, "argv", ["alembert", *arguments])
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit):
            runpy.run_module("alembert", run_name="__main__")
        return "".join(capsys.readouterr())

    for shell in ("bash", "zsh", "fish"):
        text = ran("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
        assert "_ALEMBERT_COMPLETE" in text

    def asked(words, count):
        return ran(
            _ALEMBERT_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(count),
            _TYPER_COMPLETE_ARGS=words,
        ).split()  # fmt: skip

    assert "simulate" in asked("alembert sim", 1)
    assert "acrobot" in asked("alembert info acr", 2)
    assert "study.toml" in asked("alembert run st", 2)
    assert asked("alembert simulate acrobot --position el", 4) == ["elbow="]
    assert "rk4" in asked("alembert simulate acrobot --integrator rk", 4)
