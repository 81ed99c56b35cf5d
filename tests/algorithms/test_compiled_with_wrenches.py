"""Wrenches as arguments of compiled handles and of exported C."""

import shutil
import subprocess

import numpy as np
import pytest
from dynamics_helpers import ROUNDING, states, tree

from alembert import library
from alembert.algorithms.table import TABLE, all_with
from alembert.engine.target import host
from refusals import refusal

compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.mark.parametrize("lowering", ["specialised", "rolled"])
def test_the_handle_takes_what_the_method_takes(lowering):
    """The same kernels inside, so equal bits; two frames may sit on one body."""
    model = tree("parameters")
    q, v, tau = states(model, 9)
    frames = [model.frames[0].name, model.frames[0].body, model.bodies[-1].name]
    rng = np.random.default_rng(1)
    wrenches = {frame: rng.normal(size=(9, 6)) for frame in frames}
    wrenches[frames[1]] = wrenches[frames[1]][0]  # the same for all states
    p = np.array(list(model.parameter_values.values()))
    kernel = model.compile("forward_dynamics", wrenches=frames, lowering=lowering)
    assert [a.name for a in kernel.arguments[3:]] == [*(f"wrench on {f!r}" for f in frames), "parameters"]
    found = kernel(q, v, tau, *wrenches.values(), p)
    expected = model.forward_dynamics(q, v, tau, wrenches=wrenches)
    condition = np.linalg.cond(model.mass_matrix(q)).max()
    np.testing.assert_allclose(found, expected, atol=ROUNDING * condition * np.abs(expected).max())
    one = kernel(q[4], v[4], tau[4], *(F[4] if F.ndim > 1 else F for F in wrenches.values()), p)
    np.testing.assert_array_equal(one, found[4])


def test_derivatives_with_wrenches():
    model = library.chain(3)
    q, v, tau = np.random.default_rng(0).normal(size=(3, 3))
    frame, F = model.bodies[-1].name, np.arange(6.0)
    found = model.compile("forward_dynamics_derivatives", wrenches=[frame])(q, v, tau, F)
    expected = model.forward_dynamics_derivatives(q, v, tau, wrenches={frame: F})
    np.testing.assert_array_equal(found[1], expected.dq)


def test_long_chains_stay_small():
    """The table of wrenches is zero but for one row: code for it must not grow with the chain."""
    short, long = (library.chain(n) for n in (60, 240))
    sizes = []
    for model in (short, long):
        kernel = model.compile("forward_dynamics", wrenches=[model.bodies[3].name])
        q, v, tau = np.random.default_rng(0).normal(size=(3, model.nv))
        F = np.arange(6.0)
        expected = model.forward_dynamics(q, v, tau, wrenches={model.bodies[3].name: F})
        np.testing.assert_allclose(kernel(q, v, tau, F), expected, rtol=1e-9)
        source = kernel._build()
        sizes.append(source.steps[1].source.emit("x", 1, host()).text.count("\n"))
    assert sizes[0] == sizes[1]


@pytest.mark.skipif(compiler is None, reason="needs a C compiler")
def test_exported_algorithms_compile_and_agree(tmp_path):
    """All of them, in one program each, against the values of the expressions, which meet all joints elsewhere."""
    kinds = ("revolute", "spherical", "prismatic")
    model = library.random_tree(4, bodies=3, kinds=kinds, attachments=True, parameters=True)
    frame = model.frames[0].name
    for name in all_with("has_source"):
        options = {"wrenches": [frame, model.bodies[-1].name]} if TABLE[name].takes_wrenches else {}
        if name.startswith("frame_"):
            options = {"frame": frame, "reference": "world"} if name != "frame_pose" else {"frame": frame}
        files = model.export_c(name, tmp_path / name, **options)
        if options.get("wrenches"):
            assert f"const double *wrench_{frame}," in files[0].read_text()
        sources = [str(file) for file in files if file.suffix == ".c"]
        command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-O0", *sources, "-lm"]
        subprocess.run([*command, "-o", str(tmp_path / name / "test")], check=True, timeout=60)
        done = subprocess.run([str(tmp_path / name / "test")], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout


def test_the_header_names_the_entries(tmp_path):
    model = library.arm7()
    text = model.export_c("inverse_dynamics", tmp_path, wrenches=["tool"])[0].read_text()
    assert "q[7]  in: joint1, joint2," in text
    assert "wrench_tool[6]  in: moment, then force on tool, in its axes" in text


def test_refusals(tmp_path):
    model = library.arm7()
    assert (
        refusal(model.compile, "mass_matrix", wrenches=["tool"]) == "compile: mass_matrix takes no wrenches"
    )
    assert refusal(model.compile, "bias_forces", wrenches="tool").startswith(
        "compile: wrenches is 'tool', expected"
    )
    message = refusal(model.compile, "bias_forces", wrenches=["tool", "tool"])
    assert message == "compile: wrenches: 'tool' is named twice"
    message = refusal(model.compile, "bias_forces", wrenches=["world"])
    assert message == "compile: wrench on frame 'world', which does not move"
    assert refusal(model.compile, "bias_forces", wrenches=["hand"]).startswith(
        "model 'arm7' has no frame 'hand'"
    )
    assert refusal(model.export_c, "frame_pose", tmp_path) == "export_c: frame_pose needs a frame"
    message = refusal(model.export_c, "bias_forces", tmp_path, frame="tool")
    assert message == "export_c: bias_forces takes no frame"
    kernel = model.compile("bias_forces", wrenches=["tool"])
    q = np.zeros(7)
    assert refusal(kernel, q, q, q) == (
        "bias_forces: wrench on 'tool' has shape (7,), expected (..., 6); moment, then force"
    )
