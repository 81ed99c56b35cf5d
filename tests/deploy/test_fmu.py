"""FMUs: FMPy finds nothing wrong with them, and what they compute is what `al.simulate` does."""

import shutil
import zipfile

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, UnsupportedError, library
from alembert.deploy import CompilerError, compiler

fmpy = pytest.importorskip("fmpy")
pytestmark = pytest.mark.skipif(not compiler.has_compiler(), reason="no C compiler")
START = {"q0": [0.4, -0.3], "v0": [0.1, 0.2]}


def columns(result, prefix, model_names):
    return np.column_stack([result[f"{prefix}.{name}"] for name in model_names])


@pytest.fixture(scope="module", params=[2, 3])
def unit(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("fmu") / "arm.fmu"
    model = library.two_link()
    last = model.bodies[-1].name
    return model, al.deploy.fmu(model, path, version=request.param, step=2e-3, frames=[last], **START)


def test_the_description_is_valid(unit):
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(unit[1])) == []


def test_co_simulation_is_the_same_motion(unit):
    model, path = unit
    found = fmpy.simulate_fmu(str(path), fmi_type="CoSimulation", stop_time=1.0, output_interval=0.01)
    run = al.simulate(model, **START, duration=1.0, step=2e-3, interval=0.01, integrator="rk4")
    # the same scheme and the same expressions, in other roundings
    np.testing.assert_allclose(columns(found, "q", model.coordinate_names), run.q, atol=1e-11)
    np.testing.assert_allclose(columns(found, "v", model.speed_names), run.v, atol=1e-10)
    last = model.bodies[-1].name
    X = model.frame_pose(run.q, last)
    places = np.column_stack([found[f"frame.{last}.{x}"] for x in "xyz"])
    np.testing.assert_allclose(places, X.translation, atol=1e-11)


def test_model_exchange_is_the_same_motion(unit):
    model, path = unit
    found = fmpy.simulate_fmu(
        str(path), fmi_type="ModelExchange", stop_time=0.5, output_interval=0.05, relative_tolerance=1e-9
    )
    run = al.simulate(model, **START, duration=0.5, step=1e-3, interval=0.05, integrator="rk4")
    np.testing.assert_allclose(columns(found, "q", model.coordinate_names), run.q, atol=1e-6)  # of CVode


def test_efforts_drive_and_derivatives_are_exact(unit):
    model, path = unit
    description = fmpy.read_model_description(str(path))
    reference = {v.name: v.valueReference for v in description.modelVariables}
    folder = fmpy.extract(str(path))
    kind = {"2.0": fmpy.fmi2.FMU2Model, "3.0": fmpy.fmi3.FMU3Model}[description.fmiVersion]
    token = description.guid if description.fmiVersion == "2.0" else description.instantiationToken
    slave = kind(
        guid=token,
        unzipDirectory=folder,
        modelIdentifier=description.modelExchange.modelIdentifier,
        instanceName="one",
    )
    try:
        slave.instantiate()
        if description.fmiVersion == "2.0":
            slave.setupExperiment(startTime=0.0)
            put, take = slave.setReal, slave.getReal
        else:
            put, take = slave.setFloat64, slave.getFloat64
        slave.enterInitializationMode()
        tau = np.array([0.7, -0.2])
        inputs = [reference[f"effort.{name}"] for name in model.speed_names]
        put(inputs, list(tau))
        slave.exitInitializationMode()
        q, v = (np.array(START[name]) for name in ("q0", "v0"))
        accelerations = [reference[f"a.{name}"] for name in model.speed_names]
        np.testing.assert_allclose(take(accelerations), model.forward_dynamics(q, v, tau), rtol=1e-12)
        d = model.forward_dynamics_derivatives(q, v, tau)
        for names, prefix, block in ((model.coordinate_names, "q", d.dq), (model.speed_names, "v", d.dv)):
            for k, name in enumerate(names):
                known = [reference[f"{prefix}.{name}"]]
                found = slave.getDirectionalDerivative(accelerations, known, [1.0])
                np.testing.assert_allclose(found, block[:, k], rtol=1e-10, atol=1e-12)
        found = slave.getDirectionalDerivative(accelerations, inputs[:1], [1.0])
        np.testing.assert_allclose(found, d.dtau[:, 0], rtol=1e-10)
        slave.terminate()
        slave.freeInstance()
    finally:
        shutil.rmtree(folder)


def test_quaternions_parameters_and_a_controller(tmp_path):
    """A free body with a damping law that listens to a command."""
    builder = al.ModelBuilder("tug", gravity=(0, 0, 0))
    mass = builder.parameter("mass", 2.0)
    builder.body(
        "hull", al.Inertia(mass, (0.1, 0, 0), (0.3, 0, 0.5, 0, 0, 0.7)), joint=al.Free(), joint_name="root"
    )
    model = builder.build()
    t, q, v, w = ca.SX.sym("t"), ca.SX.sym("q", 7), ca.SX.sym("v", 6), ca.SX.sym("w")
    law = ca.Function("law", [t, q, v, w], [w * ca.DM([0.1, 0, 0.2, 1, 0, 0]) - 0.3 * v])
    v0 = np.array([0.5, -0.4, 1.0, 0.1, 0.2, 0.3])
    path = al.deploy.fmu(model, tmp_path / "tug.fmu", controller=law, inputs=["thrust"], v0=v0, step=5e-3)
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(path)) == []
    found = fmpy.simulate_fmu(
        str(path),
        fmi_type="CoSimulation",
        stop_time=1.0,
        output_interval=0.05,
        start_values={"mass": 3.0, "thrust": 2.0},
    )
    same = ca.Function("law", [t, q, v], [law(t, q, v, 2.0)])
    run = al.simulate(
        model,
        v0=v0,
        controller=same,
        duration=1.0,
        step=5e-3,
        interval=0.05,
        integrator="rk4",
        parameters={"mass": 3.0},
    )
    np.testing.assert_allclose(columns(found, "q", model.coordinate_names), run.q, atol=1e-11)


@pytest.mark.skipif(not compiler.has_zig(), reason="needs ziglang")
@pytest.mark.parametrize(("where", "magic"), [("x86_64-windows", b"d\x86"), ("aarch64-darwin", b"\xcf\xfa")])
def test_the_source_compiles_for_other_platforms(tmp_path, where, magic):
    """Objects only: Zig builds its libraries for a platform when it first links for it, which takes minutes."""
    path = al.deploy.fmu(library.pendulum(), tmp_path / "p.fmu", platforms=[])
    source, target = tmp_path / "model.c", tmp_path / "model.o"
    with zipfile.ZipFile(path) as archive:
        source.write_bytes(archive.read("sources/model.c"))
    compiler.object_file("fmu", source, target, where)
    assert target.read_bytes()[:2] == magic


def test_source_alone(tmp_path):
    path = al.deploy.fmu(library.pendulum(), tmp_path / "p.fmu", platforms=[])
    with zipfile.ZipFile(path) as archive:
        assert set(archive.namelist()) == {"modelDescription.xml", "sources/model.c"}
        assert b"fmi2DoStep" in archive.read("sources/model.c")


def test_what_is_refused(tmp_path):
    model, at = library.two_link(), tmp_path / "m.fmu"
    for options, message in (
        ({"version": 1}, "version is 1, expected 2 or 3"),
        ({"step": 0}, "step is 0, expected a positive time"),
        ({"integrator": "rk5"}, "no integrator 'rk5'"),
        ({"inputs": ["nothing"]}, "inputs: no joint or degree of freedom 'nothing'"),
        ({"q0": [1.0]}, r"q0 has shape \(1,\)"),
        ({"name": "a-b"}, "is not a name in C"),
        ({"platforms": ["amiga"]}, "no platform 'amiga'"),
        ({"frames": ["hand"]}, "hand"),
        ({"controller": ca.Function("f", [ca.SX.sym("t")], [ca.SX(2, 1)])}, "the controller takes"),
    ):
        with pytest.raises(ArgumentError, match=message):
            al.deploy.fmu(model, at, **options)
    builder = al.ModelBuilder("mast").body(
        "boom", al.flexible.beam(1.0, 2.0, EI_y=50.0, bending_z=1), joint=al.Free()
    )
    for name in ("boom", "boom.bending_z_1"):
        with pytest.raises(ArgumentError, match=r"inputs has 'boom\.bending_z_1', a mode of a flexible body"):
            al.deploy.fmu(builder.build(), at, inputs=[name])
    with pytest.raises(ArgumentError, match=r"should end in \.fmu"):
        al.deploy.fmu(model, tmp_path / "m.zip")
    with pytest.raises(UnsupportedError, match="which cannot be compiled; give a casadi"):
        al.deploy.fmu(model, at, controller=lambda t, q, v: q)


def test_no_compiler_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "has_zig", lambda: False)
    with pytest.raises(
        CompilerError, match=r"no compiler for aarch64-darwin; pip install 'alembert\[deploy\]'"
    ):
        al.deploy.fmu(library.pendulum(), tmp_path / "p.fmu", platforms=["aarch64-darwin"])
