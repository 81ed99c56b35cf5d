"""What a new user gets wrong in the first hour, and what he reads then: function, argument, what came, what to do."""

import math
import pickle
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import alembert as al
from alembert.arguments import told_elsewhere

PENDULUM = al.library.pendulum()


def refused(text, function, kind=al.ArgumentError):
    with pytest.raises(kind, match=re.escape(text)):
        function()


def test_a_number_for_an_inertia():
    refused(
        "body 'bob': inertia is 1.0, expected an Inertia, such as Inertia.box(mass, size)",
        lambda: al.ModelBuilder().body("bob", 1.0, joint=al.Revolute()),
        al.ModelError,
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: al.Inertia.rod("m", (0, 0, 0), (1, 0, 0)),
        lambda: al.Inertia.box("m", (1, 1, 1)),
        lambda: al.Inertia.cylinder("m", 1.0, 1.0),
        lambda: al.Inertia.sphere("m", 1.0),
        lambda: al.Inertia.point("m"),
    ],
)
def test_a_parameter_by_its_name_as_a_text(make):
    refused("mass is 'm', expected a number or an Expression", make, al.ModelError)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"limits": (-1, 1)},
            r"joint 'a_joint': limits is \(-1, 1\), expected one such as al.Limits\(lower=-1",
        ),
        (
            {"friction": 0.1},
            r"joint 'a_joint': friction is 0.1, expected one such as al.Friction\(viscous=0.1\)",
        ),
        (
            {"spring": 10.0},
            r"joint 'a_joint': spring is 10.0, expected one such as al.Spring\(stiffness=10\)",
        ),
        ({"rotors": 2.0}, "joint 'a_joint': rotors is 2.0, expected a list of Rotors"),
        ({"rotors": [2.0]}, "joint 'a_joint': rotors has 2.0, expected a Rotor"),
        ({"visuals": 3}, "body 'a': visuals is 3, expected a list of Visuals"),
    ],
)
def test_numbers_for_what_a_joint_has(given, message):
    with pytest.raises(al.ModelError, match=message):
        al.ModelBuilder().body("a", al.Inertia.point(1.0), joint=al.Revolute(), **given)


def test_what_builders_are_given():
    builder = al.ModelBuilder()
    refused("parameter: name is 3, expected a text", lambda: builder.parameter(3, 1.0))
    base = builder.body("a", al.Inertia.point(1.0), joint=al.Revolute())
    refused(
        "type is None, expected a joint type such as Revolute()",
        lambda: base.build().replace_joint("a_joint", type=None),
        al.ModelError,
    )
    with pytest.raises(TypeError) as error:
        builder.body("b", al.Inertia.point(1.0), joint=al.Revolute(), damping=0.1)
    assert "friction=" in error.value.__notes__[0]


def test_efforts_pass_by_drives():
    model, drives = al.library.two_link(), {"elbow": al.simulate.Drive(limit=1.0)}
    with pytest.warns(al.AlembertWarning, match="efforts= act on 'elbow' past its drive"):
        al.simulate(model, [0, 0], duration=0.1, step=0.01, efforts={"elbow": 100.0}, drives=drives)


def test_an_event_that_gives_no_number():
    model = al.library.two_link()
    event = al.simulate.Event(lambda t, q, v: q, "both")
    with pytest.raises(al.ArgumentError, match=r"event 'both' gave array\(\[0., 0.\]\), expected a number"):
        al.simulate(model, [0, 0], duration=0.1, step=0.01, events=event)


def test_states_and_names_where_numbers_are_expected():
    model = al.library.two_link()
    refused("expected real numbers; model.configuration(...)", lambda: model.mass_matrix({"elbow": 0.1}))
    state = model.assemble({"elbow": 0.3})
    assert np.array_equal(state.q, [0.0, 0.3])
    refused("expected numbers; they are its .q and .v", lambda: al.simulate(model, state, duration=1.0))


def test_an_axis_by_its_letter():
    refused("revolute axis is 'z', expected 3 numbers", lambda: al.Revolute("z"), al.ModelError)


def test_a_builder_says_what_it_is():
    builder = al.ModelBuilder("two")
    assert repr(builder.body("a", al.Inertia.point(1.0), joint=al.Free())) == "<ModelBuilder 'two': 1 body>"


def test_names_in_other_letters():
    refused(
        "no integrator 'RK4'; did you mean 'rk4'?",
        lambda: al.simulate(PENDULUM, duration=1.0, integrator="RK4"),
    )


def test_a_controller_without_return():
    def law(t, q, v):
        -q

    refused(
        "a controller returned None, expected efforts, (1,); is a return missing?",
        lambda: al.simulate(PENDULUM, [0.1], duration=1.0, controller=law),
    )
    refused(
        "a controller returned 'on', expected efforts, (1,)",
        lambda: al.simulate(PENDULUM, [0.1], duration=1.0, controller=lambda t, q, v: "on"),
    )


def test_errors_of_functions_that_users_give_are_theirs():
    """With the line where they happened, also where a sentence says more."""
    for law, found in ((lambda t, q, v: 1 / 0, ZeroDivisionError), (lambda t, q, v: q.no, AttributeError)):
        with pytest.raises(found):
            al.simulate(PENDULUM, [0.1], duration=1.0, controller=law)
    with pytest.raises(al.NumericalError, match="simulate: numbers overflow") as raised:
        al.simulate(PENDULUM, [0.1], duration=1.0, controller=lambda t, q, v: [math.exp(1e5)])
    assert isinstance(raised.value.__cause__, OverflowError)


@pytest.mark.parametrize("name", ["run.csv", "run.nc"])
def test_a_folder_that_is_not_there(tmp_path, name):
    if name.endswith(".nc"):
        pytest.importorskip("xarray")
    run = al.simulate(PENDULUM, [0.1], duration=0.1)
    refused(
        f"{tmp_path / 'none' / name}: cannot be written: No such file or directory",
        lambda: run.save(tmp_path / "none" / name),
        al.FileError,
    )


def test_linear_models_are_taken_as_they_are():
    """`al.linearize` and then `al.control`: the way that everybody tries."""
    linear = al.linearize(PENDULUM, [np.pi])
    found = al.control.lqr(linear, [10, 1], 1.0)
    assert np.allclose(found.K, al.linear.lqr(linear, [10, 1], 1.0).K)
    loop = found.loop()
    assert al.control.margins(L=loop).phase_deg == al.control.margins(loop).phase_deg
    both = al.control.series(linear, al.control.static(np.eye(2)))
    assert np.allclose(both.poles(), linear.to_statespace().poles())
    refused(
        "al.linear.lqr(linear, Q, R) makes one about its point",
        lambda: al.simulate(PENDULUM, [3.0], duration=1.0, controller=found),
    )


@pytest.mark.parametrize(
    ("plant", "hint"),
    [
        (PENDULUM, "plant is of type Model, expected a StateSpace; al.linearize(model, q) makes one"),
        (3.0, "plant is of type float, expected a StateSpace; StateSpace(A, B, C, D) makes one"),
        (None, "plant is of type NoneType, expected a StateSpace; al.control.tf(...)"),
    ],
)
def test_no_system(plant, hint):
    refused(f"lqr: {hint}", lambda: al.control.lqr(plant, 1.0))


def test_systems_of_other_packages():
    scipy_signal = pytest.importorskip("scipy.signal")
    refused(
        "al.control.from_scipy(...) makes one",
        lambda: al.control.lqr(scipy_signal.StateSpace(-1, 1, 1, 0), 1),
    )
    control = pytest.importorskip("control")
    refused("al.control.from_control(...) makes one", lambda: al.control.lqr(control.tf([1], [1, 1]), 1))


def test_completion_shows_what_users_need():
    shown = set(dir(al))
    assert {"load", "simulate", "linearize", "control", "optimal", "view", "__version__"} <= shown
    assert not {"arguments", "forking", "lowering", "meaning"} & shown
    assert set(al.library.names()) <= set(dir(al.library))
    assert "Any" not in dir(al.library)
    assert "lqr" in dir(al.control)
    assert "riccati" not in dir(al.control)


def test_what_is_not_covered_names_the_page_that_says_what_to_do_instead():
    """Below the message, in tracebacks too; a package that is not installed is no limit."""
    error = al.UnsupportedError("loops do not go with it")
    assert str(error) == "loops do not go with it"
    told = "".join(traceback.format_exception(error))
    assert told.endswith(f"What is not covered, and what to do instead: {al.UnsupportedError.page}\n")
    assert traceback.format_exception(pickle.loads(pickle.dumps(error))) == traceback.format_exception(error)
    assert not hasattr(al.UnsupportedError("plot: matplotlib is not installed"), "__notes__")


def test_lists_and_numbers_for_names():
    point, base = al.Inertia.point(1.0), al.ModelBuilder()
    for text, make in (
        ("body has the name ['a'], expected a non-empty text", lambda: base.body(["a"], point)),
        (
            "joint 'a_joint': parent is ['b'], expected the name of a body",
            lambda: base.body("a", point, joint=al.Free(), parent=["b"]),
        ),
        ("frame 'f': body is 3, expected the name of a body", lambda: base.frame("f", 3)),
        (
            "loop 'l': frame_b is None, expected the name of a frame",
            lambda: base.loop("l", al.Fixed(), "f", None),
        ),
        (
            "coupling 'c': joint is ['a'], expected the name of a joint",
            lambda: base.coupling("c", ["a"], "b", 1),
        ),
        ("actuator 'm': joint is ('a',), expected the name of a joint", lambda: base.actuator("m", ("a",))),
        (
            "sensor 's': target is ['f'], expected the name of a frame",
            lambda: base.sensor("s", "gyro", ["f"]),
        ),
    ):
        refused(text, make, al.ModelError)


@pytest.mark.parametrize(
    ("formulas", "message"),
    [
        (3, "equation 'e': formulas is 3, expected a list of texts"),
        (["x - y", 3], "equation 'e': a formula is 3, expected a text such as 'x - y'"),
        ("x = 0.1", "equation 'e': 'x = 0.1' has an =, expected what is to vanish: 'x - y' for x = y"),
    ],
)
def test_what_is_no_formula(formulas, message):
    refused(message, lambda: al.ModelBuilder().equation("e", formulas, {"x": "a"}), al.ModelError)


def test_fields_of_copies():
    two = al.library.two_link()
    refused("replace_joint: no field 'limit'; did you mean", lambda: two.replace_joint("elbow", limit=3))
    refused("replace_body: no field 'mass'; there is name", lambda: two.replace_body("upper", mass=3.0))
    refused(
        "body 'upper': inertia is 3, expected an Inertia, such as",
        lambda: two.replace_body("upper", inertia=3),
        al.ModelError,
    )
    refused(
        "translation is 3, expected 3 numbers",
        lambda: two.replace_joint("elbow", placement=3),
        al.ModelError,
    )
    moved = two.replace_joint("elbow", placement=(2.0, 0.0, 0.0))
    assert moved.joint("elbow").placement == al.Placement((2.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: al.simulate(PENDULUM, duration=1.0, controller=lambda t, q: -q),
            "simulate: controller takes (t, q), expected a function of t, q, v",
        ),
        (
            lambda: al.simulate(PENDULUM, duration=1.0, prescribed={"pivot": lambda t, q, v: (0, 0, 0)}),
            "simulate: prescribed 'pivot' takes (t, q, v), expected a function of t",
        ),
        (
            lambda: al.simulate(PENDULUM, duration=1.0, wrenches={"bob": lambda t: np.zeros(6)}),
            "simulate: wrench on 'bob' takes (t), expected a function of t, q, v",
        ),
        (
            lambda: al.simulate.Event(lambda q: q[0]),
            "Event: function takes (q), expected a function of t, q, v",
        ),
        (
            lambda: al.simulate.Event(lambda t, q, v: q[0], action=lambda q, v: (q, v)),
            "Event: action takes (q, v), expected a function of t, q, v",
        ),
        (
            lambda: al.simulate.Sampled(lambda q, v: -q, 0.1),
            "Sampled: law takes (q, v), expected a function of t, q, v",
        ),
        (
            lambda: al.simulate.Sampled(lambda t, q, v: -q, 0.1, reads=("encoder",)),
            "Sampled: law takes (t, q, v), expected a function of t, readings",
        ),
        (
            lambda: al.simulate(PENDULUM, duration=1.0, efforts=lambda t: [0.0]),
            "expected numbers; a function of time and state is given as controller=",
        ),
    ],
)
def test_functions_of_something_else(make, message):
    refused(message, make)


def test_a_run_that_ends_early_says_so():
    """With no restitution a point rests on the plane at the first touch; a stop of one's own ends a run as well."""
    builder = al.ModelBuilder("drop")
    builder.body("ball", al.Inertia.point(1.0), joint=al.Prismatic((0, 0, 1)), joint_name="height")
    drop, floor = builder.build(), al.simulate.PlaneImpact("ball")
    run = al.simulate(drop, [1.0], duration=2.0, events=floor)
    assert "ended at t = 0.451524 s, and not at 2 s: event 'ball on the plane' stopped it" in str(run.report)
    whole = al.simulate(drop, [1.0], duration=0.4, events=floor)
    assert "ended at" not in str(whole.report)


def test_what_is_refused_leaves_nothing_in_the_builder():
    """A cell of a notebook that is mended and run again."""
    builder, point = al.ModelBuilder(), al.Inertia.point(1.0)
    for wrong in ({"joint": "revolute"}, {"joint": al.Revolute(), "spring": 3}, {"parent": "a"}):
        with pytest.raises(al.ModelError):
            builder.body("b", point, **wrong)
    with pytest.raises(TypeError):
        builder.body("b", point, joint=al.Revolute(), damping=1)
    assert builder.body("b", point, joint=al.Revolute()).build().nv == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: al.Inertia.box(1.0, (1, 2, -3)), r"box size[2] is -3, expected no less than zero"),
        (lambda: al.Inertia.sphere(1.0, -1), "radius is -1, expected no less than zero"),
        (lambda: al.Inertia.cylinder(1.0, 1.0, -2), "length is -2, expected no less than zero"),
        (lambda: al.Revolute("-Y"), "revolute axis is '-Y', expected 3 numbers: (0, -1, 0)"),
        (lambda: al.Expression("500 km"), "'500 km' is not a formula: units are not written"),
    ],
)
def test_lengths_letters_and_units(make, message):
    refused(message, make, al.ModelError)


@pytest.mark.parametrize(
    ("call", "takes"),
    [
        (lambda: al.reach(), "reach takes model, tasks and by name start="),
        (lambda: al.reach.pose("hand"), "pose takes frame, target and by name"),
        (lambda: al.identify(PENDULUM), "identify takes model, data and by name"),
        (lambda: al.Inertia.rod(1.0), "rod takes mass, start, end"),
    ],
)
def test_forgotten_arguments(call, takes):
    with pytest.raises(TypeError) as error:
        call()
    assert error.value.__notes__[0].startswith(takes)


def test_names_of_other_programs():
    """They are told where the thing is here; each such place is one that is there."""
    refused(
        "no integrator 'ode45'; did you mean 'rk45'?",
        lambda: al.simulate(PENDULUM, duration=1.0, integrator="ode45"),
    )
    with pytest.raises(AttributeError, match=r"no attribute 'lqr'; it is al.linear.lqr\(linear, Q, R\)"):
        al.lqr
    with pytest.raises(AttributeError, match=r"no attribute 'step_response'; it is G.step_response"):
        al.control.step_response
    with pytest.raises(AttributeError, match=r"it is G.is_stable, with G a system"):
        al.control.is_stable
    system = al.control.tf([1], [1, 1])
    for name, told in vars(al.control)["_MATLAB"].items():
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}; it is {told}")):
            getattr(al.control, name)
        for owner, place in re.findall(r"(G\.)?([a-z_A-Z0-9]+)\(", told):
            assert hasattr(system if owner else al.control, place), told
    for name, told in vars(al)["_ELSEWHERE"].items():
        found = al
        for part in re.match(r"al\.([\w.]+)", told)[1].split("."):
            found = getattr(found, part)
        assert callable(found), name


def test_a_design_is_flown_about_its_point():
    """A design of `al.control` as the message says it: about the point of the linear model."""
    cart = al.library.cart_pole()
    linear = al.linearize(cart, [0.0, np.pi])
    design = al.control.lqr(linear, [1, 5, 1, 1], 0.1)
    refused(
        "DynamicController(design.controller, about=linear)",
        lambda: al.simulate(cart, [0.0, 3.0], duration=1.0, controller=design),
    )
    law = al.simulate.DynamicController(design.controller, about=linear)
    same = [
        al.simulate(cart, [0.0, 3.0], duration=2.0, controller=u).q[-1]
        for u in (law, al.linear.lqr(linear, [1, 5, 1, 1], 0.1))
    ]
    assert np.allclose(*same, atol=1e-6)  # the tolerance of error control is 1e-8


def test_warnings_name_the_line_of_the_user():
    arm = al.library.arm7()
    with pytest.warns(al.AlembertWarning, match="beyond limits at the equilibrium") as told:
        al.trim(arm, np.full(7, 3.0), free=["tau"])
    assert told[0].filename == __file__


def test_responses_until_a_time():
    system = al.control.tf([1], [1, 1])
    step = system.step_response(5)
    assert step.t[-1] == 5
    assert np.isclose(np.ravel(step.y)[-1], 1 - np.exp(-5), rtol=1e-9)
    assert np.allclose(system.sampled(0.1).impulse_response(0.3).t, [0, 0.1, 0.2, 0.3])


def test_modes_have_their_own_panel_and_name():
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free(), joint_name="root")
    beam = al.flexible.beam(5.0, 2.0, EI_z=100.0, bending_y=2)
    builder.body("boom", beam, joint=al.Fixed(), parent="hub", placement=(0.5, 0, 0))
    model = builder.build()
    run = al.simulate(model, duration=1.0, efforts={"root": [0, 0, 1, 0, 0, 0]})
    labels = [axis.get_ylabel() for axis in run.plot("boom").axes]
    assert labels[:2] == ["modal coordinates [m]", "modal speeds [m/s]"]
    assert "positions [m]" in [axis.get_ylabel() for axis in run.plot().axes]
    rows = al.linearize(model, model.neutral(), outputs="boom").output_names
    assert rows == ("q:boom.bending_y_1", "q:boom.bending_y_2")
    refused(
        "nothing is called 'hub'; there is energy",
        lambda: al.simulate(model, duration=1.0, record="hub"),
    )
    refused(
        "; for a frame write 'frame:hub.position'",
        lambda: al.simulate(model, duration=1.0, record="hub.place"),
    )


def test_what_is_not_in_a_model():
    two = al.library.two_link()
    with pytest.raises(AttributeError, match=r"no attribute 'simulate'; it is al.simulate\(model, ...\)"):
        two.simulate
    with pytest.raises(AttributeError) as error:
        two.mass_matrx
    assert (error.value.name, error.value.obj) == ("mass_matrx", two)  # of which Python makes a suggestion
    assert pickle.loads(pickle.dumps(two)) == two
    refused("model: name is 3, expected a text", lambda: two.replace(name=3), al.ModelError)
    refused("no field 'mass'; there is name, bodies, joints", lambda: two.replace(mass=3))
    refused("chain: n is 2.5, expected a whole number", lambda: al.library.chain(2.5))


def test_what_results_call_otherwise():
    two = al.library.two_link()
    run = al.simulate(two, duration=0.1)
    linear = al.linearize(two, [0.0, 0.0])
    found = al.reach(al.library.arm7(), al.reach.position("tool", [0.4, 0.0, 0.4]))
    for thing, name, told in (
        (run, "t", "run.time"),
        (run, "tau", "run.efforts"),
        (linear, "bode", 'linear.plot("bode")'),
        (linear.to_statespace(), "step", "G.step_response()"),
        (found, "success", "found.reached"),
    ):
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}; it is {told}")):
            getattr(thing, name)
        assert hasattr(thing, re.match(r"\w+\.(\w+)", told)[1])


def test_properties_that_fail_keep_their_errors():
    @told_elsewhere({})
    class Failing:
        @property
        def inside(self):
            return [].missing

    with pytest.raises(AttributeError, match="'list' object has no attribute 'missing'"):
        Failing().inside


@pytest.mark.parametrize(
    ("drives", "message"),
    [
        ({"elbow": 3}, "model_system: drives['elbow'] is 3, expected a Drive"),
        (
            {"elbo": al.simulate.Drive(limit=1.0)},
            "model_system: drives: no joint or degree of freedom 'elbo'",
        ),
        ([3], "model_system: drives is [3], expected a mapping"),
        (
            {"elbo": al.simulate.Drive(gear=al.simulate.Gear(10.0, 1e-4))},
            "model_system: drives: a gear needs a joint, there is no 'elbo'",
        ),
    ],
)
def test_drives_of_a_system_are_named_after_it(drives, message):
    refused(message, lambda: al.optimal.model_system(al.library.two_link(), drives=drives))


def test_poses_of_lists():
    pose = al.Pose([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0.4, 0, 0.5])
    assert np.array_equal(pose.matrix()[:3, 3], [0.4, 0, 0.5])
    refused("Pose: translation is [0, 0], expected numbers of shape (3,)", lambda: al.Pose(np.eye(3), [0, 0]))
    refused(
        "Pose: rotation is (0, 0, 90), expected numbers of shape (3, 3)",
        lambda: al.Pose((0, 0, 90), np.zeros(3)),
    )


def test_folders_of_packages(tmp_path):
    """One folder by its name is not a list of letters."""
    path, mesh = tmp_path / "arm.urdf", tmp_path / "packages" / "arm" / "link.stl"
    mesh.parent.mkdir(parents=True)
    mesh.write_text("solid link\nendsolid link\n")
    path.write_text(
        '<robot name="arm"><link name="base"><visual><geometry><mesh filename="package://arm/link.stl"/>'
        "</geometry></visual></link></robot>"
    )
    model = al.load(path, package_dirs=str(tmp_path / "packages"))  # a warning would be an error
    assert Path(model.bodies[0].visuals[0].shape.path) == mesh
    refused("load: package_dirs is 1, expected a folder or a list", lambda: al.load(path, package_dirs=1))
    refused(f"load: {tmp_path} is a folder, expected a file", lambda: al.load(tmp_path))
