"""C programs with integrators: compiled, they give what Python gives; they compile for boards."""

import ctypes

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, UnsupportedError, library
from alembert.deploy import compiler
from alembert.simulate import DynamicController

pytestmark = pytest.mark.skipif(not compiler.has_compiler(), reason="no C compiler")


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "midpoint", "rk4"])
def test_the_reference_vectors_agree(tmp_path, integrator):
    """Free and spherical joints: the steps are on the manifold of configurations."""
    model = library.random_tree(2, bodies=2, kinds=["spherical", "universal"], parameters=True)
    made = al.deploy.c_source(model, tmp_path, integrator=integrator, frames=[model.bodies[-1].name])
    assert [file.name for file in made.files] == ["model.h", "model.c", "model_test.c"]
    assert made.check().startswith("model: largest relative error")
    stages = {"semi_implicit_euler": 1, "midpoint": 2, "rk4": 4}[integrator]
    assert made.operations["step"] > stages * made.operations["derivatives"] > 0
    assert "operations of derivatives" in repr(made)
    assert made.arguments["q"] == model.nq
    assert made.memory > 0


def test_a_step_of_the_library_is_a_step_of_simulate(tmp_path):
    model = library.two_link()
    made = al.deploy.c_source(model, tmp_path, name="arm")
    library_file = tmp_path / "arm.so"
    compiler.shared_library("test", [made.files[1]], library_file, compiler.this_platform())
    step = ctypes.CDLL(str(library_file))
    text = made.files[0].read_text()
    assert "void arm_step(const double *t, const double *h" in text
    assert "q[2]" in text
    q, v, u, p = np.array([0.3, 0.2]), np.array([0.1, -0.4]), np.array([0.5, 0.0]), np.zeros(1)
    run = al.simulate(model, q, v, duration=0.01, step=0.01, integrator="rk4", efforts=u)
    where = [x.ctypes.data_as(ctypes.c_void_p) for x in (np.zeros(1), np.array([0.01]), u, p, q, v)]
    step.arm_step(*where)
    np.testing.assert_allclose(q, run.q[-1], rtol=1e-13)
    np.testing.assert_allclose(v, run.v[-1], rtol=1e-12)


@pytest.mark.skipif(not compiler.has_zig(), reason="needs ziglang")
@pytest.mark.parametrize("board", ["cortex-m4", "aarch64"])
def test_it_compiles_for_boards(tmp_path, board):
    made = al.deploy.c_source(
        library.pendulum(), tmp_path, precision="float" if board == "cortex-m4" else "double"
    )
    assert made.object_size(board) > 500


def test_single_precision_takes_half_and_tells_its_error(tmp_path):
    model = library.two_link()
    double = al.deploy.c_source(model, tmp_path / "double")
    single = al.deploy.c_source(model, tmp_path / "single", precision="float")
    assert 2 * single.memory == double.memory
    assert single.operations == double.operations
    assert "double" not in single.files[0].read_text() + single.files[1].read_text()
    error = float(single.check().split()[-1])
    # accelerations and ten steps, of some 300 operations each, rounded to 2^-24 = 6e-8
    assert 1e-9 < error < 1e-4
    law = al.control.c2d(
        al.control.StateSpace(
            [[-3.0]], [[1.0]], [[2.0]], [[-4.0]], input_names=("q:elbow",), output_names=("elbow",)
        ),
        0.01,
    )
    alone = al.deploy.c_controller(model, law, tmp_path / "alone", name="hold", precision="float")
    assert "void hold(const float *t, const float *y" in alone.files[0].read_text()
    assert float(alone.check().split()[-1]) < 1e-6
    with pytest.raises(UnsupportedError, match="sensors or sampled laws have a clock that counts further"):
        al.deploy.c_source(model, tmp_path, controller=law, precision="float")
    with pytest.raises(UnsupportedError, match="has loops, couplings or equations, which are closed to less"):
        al.deploy.c_source(library.truss_arm(1), tmp_path, precision="float")


def test_what_is_refused(tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match="step is -1, expected a positive time"):
        al.deploy.c_source(library.pendulum(), tmp_path, step=-1)
    made = al.deploy.c_source(library.pendulum(), tmp_path)
    with pytest.raises(ArgumentError, match="no board 'z80'"):
        made.object_size("z80")
    test = made.files[2]
    test.write_text(test.read_text().replace("worst = 0.0;\n  int k", "worst = 1.0;\n  int k"))
    with pytest.raises(
        al.deploy.CompilerError, match="the compiled code differs: model: largest relative error 1"
    ):
        made.check()
    made.files[1].write_text("nonsense")
    with pytest.raises(al.deploy.CompilerError, match="the compiler failed"):
        made.check()
    monkeypatch.setattr(compiler.shutil, "which", lambda name: None)
    with pytest.raises(al.deploy.CompilerError, match="programs for aarch64 need qemu-aarch64 or"):
        made.check("aarch64")
    monkeypatch.setattr(compiler, "has_zig", lambda: False)
    with pytest.raises(al.deploy.CompilerError, match="boards need Zig"):
        made.object_size("cortex-m4")


def test_a_controller_alone_is_the_one_in_the_loop(tmp_path):
    """Called with what the model shows at every sample, it gives the efforts of the run, at its limits too."""
    model = library.two_link()
    names = [f"q:{x}" for x in model.speed_names]
    K = al.control.c2d(
        al.control.StateSpace(
            -6 * np.eye(2),
            2 * np.eye(2),
            9 * np.eye(2),
            -30 * np.eye(2),
            input_names=names,
            output_names=model.speed_names,
        ),
        0.01,
    )
    first, second = model.speed_names
    law = DynamicController(K, references={names[0]: 0.6}, limits={first: 4.0})
    made = al.deploy.c_controller(model, law, tmp_path, name="hold")
    assert made.arguments == {"t": 1, "y": 2, "r": 1, "x": 2, "u": 2, "x_next": 2}
    assert made.check().startswith("hold: largest relative error")
    assert "operations of controller" in repr(made)
    assert f"u[2]  out: {first}, {second}" in made.files[0].read_text()
    run = al.simulate(
        model, [0.1, -0.2], duration=0.2, step=1e-3, interval=0.01, integrator="rk4", controller=law
    )
    shared = tmp_path / "hold.so"
    compiler.shared_library("test", [made.files[1]], shared, compiler.this_platform())
    function = ctypes.CDLL(str(shared)).hold
    x, u, following = np.zeros(2), np.zeros(2), np.zeros(2)
    for k in range(20):
        arrays = (run.time[k : k + 1].copy(), run.q[k].copy(), np.array([0.6]), x, u, following)
        function(*(a.ctypes.data_as(ctypes.c_void_p) for a in arrays))
        np.testing.assert_allclose(u, run.efforts[k], rtol=1e-12, atol=1e-12)  # the same operations
        x[:] = following
    assert np.abs(run.efforts[:, 0]).max() == 4.0


def test_what_controllers_are_refused(tmp_path):
    model = library.two_link()
    K = al.control.StateSpace([[-1.0]], [[1.0]], [[1.0]], input_names=("q:none",))
    with pytest.raises(ArgumentError, match=r"'controller' is continuous; al\.control\.c2d"):
        al.deploy.c_controller(model, K, tmp_path)
    with pytest.raises(
        ArgumentError, match="c_controller: 'controller' reads what is no output of the model"
    ):
        al.deploy.c_controller(model, al.control.c2d(K, 0.1), tmp_path)
    with pytest.raises(
        UnsupportedError, match="expected a StateSpace, a GainSchedule or a DynamicController"
    ):
        al.deploy.c_controller(model, lambda t, q, v: q, tmp_path)
    made = al.deploy.c_source(library.pendulum(), tmp_path)
    with pytest.raises(ArgumentError, match="no emulator for 'cortex-m4'"):
        made.check("cortex-m4")
