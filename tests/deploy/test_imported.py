"""Units of co-simulation as controllers and force elements: what they do is what the model in them does."""

import re
import zipfile
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, NumericalError, UnsupportedError
from alembert.deploy import UnitError, compiler, imported
from alembert.simulate import Sampled

pytest.importorskip("fmpy")
pytestmark = pytest.mark.skipif(not compiler.has_compiler(), reason="no C compiler")
STIFFNESS, MASS = 40.0, 0.5


def slider(name, mass, springs=()):
    builder = al.ModelBuilder(name, gravity=(0, 0, 0))
    builder.body(
        name,
        al.Inertia.point(mass),
        joint=al.Prismatic((1, 0, 0)),
        joint_name="slide",
        spring=al.Spring(springs) if springs else None,
    )
    return builder.build()


@pytest.fixture(scope="module", params=[2, 3])
def absorber(request, tmp_path_factory):
    """A mass on a spring whose foot is an input."""
    t, q, v, foot = ca.SX.sym("t"), ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("foot")
    law = ca.Function("law", [t, q, v, foot], [STIFFNESS * (foot - q)])
    path = tmp_path_factory.mktemp("unit") / "absorber.fmu"
    al.deploy.fmu(
        slider("absorber", MASS),
        path,
        version=request.param,
        controller=law,
        inputs=["foot"],
        step=1e-3,
        v0=[0.4],
    )
    return al.deploy.load_fmu(path)


@pytest.fixture(scope="module")
def cart():
    """Its own spring is the other end of the absorber's."""
    return slider("cart", 2.0, (STIFFNESS,))


def both(duration):
    """Cart and absorber in one model."""
    builder = al.ModelBuilder("both", gravity=(0, 0, 0))
    for name, mass in (("cart", 2.0), ("absorber", MASS)):
        builder.body(name, al.Inertia.point(mass), joint=al.Prismatic((1, 0, 0)), joint_name=name)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    force = STIFFNESS * (q[1] - q[0])
    law = ca.Function("law", [t, q, v], [ca.vertcat(force, -force)])
    options = {
        "controller": law,
        "step": 1e-3,
        "integrator": "rk4",
        "duration": duration,
        "interval": duration,
    }
    return al.simulate(builder.build(), [0.1, 0.0], [0.0, 0.4], **options).q[-1]


def test_coupling_converges_to_one_model(absorber, cart):
    """Of first order in the period, as (1) of the module says: half of it, half of the error."""
    expected, errors = both(0.2), []
    for period in (4e-3, 2e-3):
        law = absorber.controller(
            cart,
            inputs={"foot": "q:slide"},
            outputs={"q.slide": ("slide", STIFFNESS)},
            period=period,
            name="absorber",
        )
        run = al.simulate(cart, [0.1], duration=0.2, step=1e-3, integrator="rk4", controller=law)
        told = run.measurements["absorber"]
        with pytest.raises(ArgumentError, match="be one of a batch"):
            al.simulate(cart, [[0.1], [0.2]], duration=0.2, step=1e-3, integrator="rk4", controller=law)
        assert told.values.shape == (round(0.2 / period) + 1, len(absorber.outputs))
        place = told.values[-1, absorber.outputs.index("q.slide")]
        errors.append(np.abs([run.q[-1, 0] - expected[0], place - expected[1]]).max())
        # a second run starts the unit anew
        again = al.simulate(cart, [0.1], duration=0.2, step=1e-3, integrator="rk4", controller=law)
        np.testing.assert_array_equal(again.q, run.q)
    assert errors[0] < 2e-2
    assert 1.6 < errors[0] / errors[1] < 2.5


def test_what_a_unit_tells(absorber):
    assert f"FMI {absorber.version}, 1 inputs, 2 outputs, 0 parameters" in repr(absorber)
    assert absorber.inputs == ("foot",)
    assert absorber.variables["q.slide"].unit == "m"
    assert absorber.step == 1e-3


def test_wrenches_and_numbers(absorber):
    """A force along x of the tip is a torque by its arm."""
    model = al.library.pendulum()
    law = absorber.controller(model, inputs={"foot": 1.0}, outputs={"q.slide": ("tip.fx", 3.0)}, period=1e-2)
    law.law(0.0, {}, model.neutral(), np.zeros(1))
    found = law.law(0.01, {}, model.neutral(), np.zeros(1))
    place = found["absorber"][absorber.outputs.index("q.slide")]
    J = model.frame_jacobian(model.neutral(), "tip", reference="local")[3]
    np.testing.assert_allclose(found["efforts"], 3.0 * place * J)
    assert place > 0


def test_units_read_and_push_with_the_parameters_of_the_run(absorber):
    """A foot on the tip of a rod twice as long is twice as far away, and so is the arm of a force there."""
    builder = al.ModelBuilder("rod", gravity=(0, 0, 0))
    length = builder.parameter("length", 1.0)
    builder.body("rod", al.Inertia.box(1e9, (1, 1, 1)), joint=al.Revolute((0, -1, 0)), joint_name="hinge")
    builder.frame("tip", "rod", (length, 0.0, 0.0))
    model = builder.build()
    law = absorber.controller(
        model,
        inputs={"foot": "tip.position.x"},
        outputs={"q.slide": ("tip.fz", 1.0)},
        period=1e-2,
        name="unit",
    )
    efforts, places = [], []
    for parameters in ({}, {"length": 2.0}):
        run = al.simulate(
            model, [0.0], duration=0.05, step=1e-2, integrator="rk4", controller=law, parameters=parameters
        )
        places.append(run.measurements["unit"].values[-1, absorber.outputs.index("q.slide")])
        efforts.append(run.efforts[-1, 0])
    # the rod is too heavy to move: by x = x0(t) + foot (1 - cos w t), with the start of the unit the same in both
    t, w = 0.05, np.sqrt(STIFFNESS / MASS)
    # held feet: exact but for the steps of the unit
    np.testing.assert_allclose(places[1] - places[0], 1 - np.cos(w * t), rtol=1e-6)
    np.testing.assert_allclose(efforts, [places[0], 2 * places[1]], rtol=1e-9)


def test_what_is_refused(absorber, cart, tmp_path, monkeypatch):
    for options, message in (
        ({"inputs": {"food": "q:slide"}}, "absorber.fmu has no input 'food'"),
        ({"inputs": {"foot": "q:elbow"}}, "'foot' gets what is no output: 'q:elbow'"),
        (
            {"outputs": {"q.slide": "elbow"}},
            "acts on what is no actuator, degree of freedom or wrench: 'elbow'",
        ),
        ({"outputs": {"q.slide": "slide"}}, "'q.slide' is in m, 'slide' in N; for an output give a factor"),
        ({"parameters": {"mass": 2.0}}, "has no parameter 'mass'"),
        ({"period": -1.0}, "period is -1.0, expected a positive time"),
    ):
        with pytest.raises(ArgumentError, match=message):
            absorber.controller(cart, **options)
    law = absorber.controller(cart, period=0.01)
    law.law(0.0, {}, np.zeros(1), np.zeros(1))
    with pytest.raises(ArgumentError, match="cannot be resumed or be one of a batch"):
        law.law(0.05, {}, np.zeros(1), np.zeros(1))
    law = absorber.controller(cart, inputs={"foot": 1e308}, period=0.01)
    law.law(0.0, {}, np.zeros(1), np.zeros(1))
    with pytest.raises(UnitError, match=r"absorber\.fmu refuses doStep"):
        law.law(0.01, {}, np.zeros(1), np.zeros(1))
    monkeypatch.setattr(imported.UnitLaw, "_read", lambda self, references: [-np.inf] * len(references))
    with pytest.raises(NumericalError, match=r"the unit absorber\.fmu gives q\.slide = -inf at t = 0 s"):
        absorber.controller(cart, period=0.01).law(0.0, {}, np.zeros(1), np.zeros(1))
    with pytest.raises(ArgumentError, match="there is no file"):
        al.deploy.load_fmu(tmp_path / "none.fmu")
    (tmp_path / "broken.fmu").write_bytes(b"nothing")
    with pytest.raises(UnitError, match=r"broken\.fmu is not readable as an FMU"):
        al.deploy.load_fmu(tmp_path / "broken.fmu")
    bare = al.deploy.fmu(slider("bare", 1.0), tmp_path / "bare.fmu", platforms=[])
    with pytest.raises(UnsupportedError, match=r"bare\.fmu has binaries for no platform"):
        al.deploy.load_fmu(bare)
    with zipfile.ZipFile(bare) as archive:
        text = archive.read("modelDescription.xml").decode()
    with zipfile.ZipFile(tmp_path / "exchange.fmu", "w") as archive:
        archive.writestr("modelDescription.xml", re.sub("<CoSimulation.*</CoSimulation>", "", text))
    with pytest.raises(
        UnsupportedError, match=r"is FMI 2\.0 for model exchange only, expected co-simulation"
    ):
        al.deploy.load_fmu(tmp_path / "exchange.fmu")
    monkeypatch.setattr(imported.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnitError, match=r"pip install 'alembert\[deploy\]'"):
        al.deploy.load_fmu(bare)


DAMPER = """
from pythonfmu import Fmi2Causality, Fmi2Slave, Real


class Damper(Fmi2Slave):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.rate, self.gain = 0.0, 0.5
        self.register_variable(Real("rate", causality=Fmi2Causality.input))
        self.register_variable(Real("gain", causality=Fmi2Causality.parameter, variability="tunable"))
        torque = lambda: -self.gain * self.rate
        self.register_variable(Real("torque", causality=Fmi2Causality.output, getter=torque))

    def do_step(self, t, dt):
        return True
"""


@pytest.fixture(scope="module", params=[2, 3])
def of_others(request, tmp_path_factory):
    """A damper that PythonFMU has made (FMI 2); in a container of FMPy, which has a binary of its own, it is FMI 3."""
    builder = pytest.importorskip("pythonfmu.builder")
    folder = tmp_path_factory.mktemp("others")
    (folder / "damper.py").write_text(DAMPER)
    path = Path(builder.FmuBuilder.build_FMU(folder / "damper.py", dest=folder))
    if request.param == 3:
        path = contained(path, folder / "contained.fmu")
    return al.deploy.load_fmu(path)


def contained(inner, path):
    from fmpy import model_description as fmi
    from fmpy import read_model_description
    from fmpy.container_fmu.cli import create_container_fmu
    from fmpy.container_fmu.config import Component, Configuration

    description = read_model_description(str(inner))
    own = {variable.name: variable for variable in description.modelVariables}

    def variable(name, causality, start=None, variability="continuous"):
        return fmi.ModelVariable(
            type="Float64", name=name, causality=causality, variability=variability, start=start
        )

    outer = [
        variable("rate", "input", "0"),
        variable("gain", "parameter", "0.5", "tunable"),
        variable("torque", "output"),
    ]
    whole = fmi.ModelDescription(
        fmiVersion="3.0",
        modelName="contained",
        instantiationToken="{a container}",
        modelVariables=[variable("time", "independent"), *outer],
        coSimulation=fmi.CoSimulation(modelIdentifier="container_fmu", fixedInternalStepSize=1e-3),
        defaultExperiment=fmi.DefaultExperiment(stepSize="1e-3"),
    )
    part = Component("damper", inner, description)
    mappings = {x: [(part, own[x.name])] for x in outer}
    (path.parent / "unpacked").mkdir()
    create_container_fmu(Configuration(False, whole, [part], [], mappings), path.parent / "unpacked", path)
    return path


def test_units_of_other_tools_do_what_they_say(of_others):
    model = al.library.two_link()
    law = of_others.controller(
        model, inputs={"rate": "v:elbow"}, outputs={"torque": "elbow"}, parameters={"gain": 0.8}, period=1e-3
    )
    options = {"q0": [0.3, 0.1], "duration": 0.05, "step": 1e-3, "integrator": "rk4"}
    run = al.simulate(model, controller=law, **options)
    same = Sampled(lambda t, q, v: np.array([0.0, -0.8 * v[1]]), period=1e-3)
    expected = al.simulate(model, controller=same, **options)
    # the same products and steps, but for what compiled code fuses
    np.testing.assert_allclose(run.q, expected.q, atol=1e-13)
    assert of_others.parameters == ("gain",)
