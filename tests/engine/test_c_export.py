import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest
from engine_helpers import pendulum_like
from test_codegen import BINARY, UNARY

from alembert.engine import export_c
from alembert.errors import ArgumentError, FileError, UnsupportedError

compiler = shutil.which("cc") or shutil.which("gcc")


def every_operation() -> ca.Function:
    x = ca.SX.sym("x", 2)
    A = ca.SX.sym("A", 2, 3)
    values = [f(x[0]) for f in UNARY.values()] + [f(x[0], x[1]) for f in BINARY.values()]
    sparse = ca.SX(ca.Sparsity.lower(2), ca.vertcat(x[0], 5, x[1]))
    return ca.Function("f", [x, A], [ca.vertcat(*values), A.T * x[0], sparse], ["x", "A"], ["y", "B", "L"])


@pytest.mark.skipif(compiler is None, reason="needs a C compiler")
@pytest.mark.parametrize("function", [every_operation(), pendulum_like(4)], ids=["operations", "pendulum"])
def test_compiles_without_warnings_and_agrees(function, tmp_path):
    paths = export_c(function, "exported", tmp_path / "new")
    assert [p.name for p in paths] == ["exported.h", "exported.c", "exported_test.c"]
    sources = [str(p) for p in paths if p.suffix == ".c"]
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", *sources, "-lm"]
    subprocess.run([*command, "-o", str(tmp_path / "test")], check=True, timeout=60)
    done = subprocess.run([str(tmp_path / "test")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("exported: largest relative error")
    assert float(done.stdout.split()[-1]) < 1e-13


@pytest.mark.skipif(compiler is None, reason="needs a C compiler")
@pytest.mark.parametrize("function", [every_operation(), pendulum_like(4)], ids=["operations", "pendulum"])
def test_single_precision_promotes_nothing(function, tmp_path):
    """No double is left in the source, by the compiler's word; the error is that of 24 bits."""
    paths = export_c(function, "exported", tmp_path, precision="float")
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wdouble-promotion", "-Wshadow", "-Werror"]
    assert "double" not in paths[1].read_text()
    subprocess.run(
        [compiler, "-std=c99", "-O1", *strict, "-c", str(paths[1]), "-o", str(tmp_path / "o.o")], check=True
    )
    sources = [str(p) for p in paths if p.suffix == ".c"]
    subprocess.run(
        [compiler, "-std=c99", "-O1", *strict, *sources, "-lm", "-o", str(tmp_path / "test")], check=True
    )
    done = subprocess.run([str(tmp_path / "test")], capture_output=True, text=True, timeout=60)
    # some hundred operations of 2^-24 each on numbers of order one; the sample is exact in single precision
    assert 1e-9 < float(done.stdout.split()[-1]) < 2e-5
    assert done.returncode == 0


def test_numbers_beyond_single_precision_are_refused(tmp_path):
    x = ca.SX.sym("x")
    for number in (1e-300, 1e300):
        with pytest.raises(
            UnsupportedError, match=rf"the code has the number {number!r}, which single".replace("+", r"\+")
        ):
            export_c(ca.Function("f", [x], [x + number]), "f", tmp_path, precision="float")
    with pytest.raises(ArgumentError, match="precision is 'half'"):
        export_c(ca.Function("f", [x], [x]), "f", tmp_path, precision="half")


@pytest.mark.skipif(compiler is None, reason="needs a C compiler")
def test_the_test_program_notices_an_error(tmp_path):
    x = ca.SX.sym("x", 2)
    *_, source, test = export_c(
        ca.Function("f", [x], [2 * x], ["x"], ["y"]), "f", tmp_path, sample=[np.ones(2)]
    )
    source.write_text(source.read_text().replace("+", "-"))
    subprocess.run(
        [compiler, "-std=c99", str(source), str(test), "-lm", "-o", str(tmp_path / "test")], check=True
    )
    assert subprocess.run([str(tmp_path / "test")], capture_output=True, timeout=60).returncode == 1


def test_names(tmp_path):
    x = ca.SX.sym("x")
    f = ca.Function("f", [x], [x])
    text = export_c(f, "named", tmp_path, argument_names=["q"], result_names=["a"])[0].read_text()
    assert "void named(const double *q, double *a);" in text
    with pytest.raises(ArgumentError, match=r"export_c: named has 1 arguments, got 2 names: q, v"):
        export_c(f, "named", tmp_path, argument_names=["q", "v"])
    with pytest.raises(ArgumentError, match=r"export_c: 'double' is not a name in C"):
        export_c(f, "double", tmp_path)
    with pytest.raises(ArgumentError, match=r"export_c: the name 'q' is used twice"):
        export_c(f, "named", tmp_path, argument_names=["q"], result_names=["q"])


def test_folders_that_cannot_be_written(tmp_path):
    x = ca.SX.sym("x")
    f = ca.Function("f", [x], [x])
    (tmp_path / "taken").write_text("")
    with pytest.raises(FileError, match="taken: cannot be made"):
        export_c(f, "f", tmp_path / "taken")
    (tmp_path / "f.c").mkdir()
    with pytest.raises(FileError, match="cannot be written: Is a directory"):
        export_c(f, "f", tmp_path)
