"""What the user is told when an argument is wrong or a result is not finite."""

import numpy as np
import pytest
from dynamics_helpers import states, tree

from alembert import Coupling, Fixed, Gimbal, Inertia, ModelBuilder, Revolute, Spherical, library
from alembert.errors import AlembertWarning, ArgumentError, FileError, NumericalError, UnsupportedError


@pytest.fixture(scope="module")
def model():
    """Seven speeds, eight coordinates; the wrist has two-dimensional siblings to be named in hints."""
    box = Inertia.box(1.0, (0.1, 0.2, 0.3))
    builder = ModelBuilder("arm")
    builder.body("base", box, joint=Fixed())
    builder.body("upper", box, joint=Revolute((0, 0, 1)), joint_name="shoulder", parent="base")
    builder.body("fore", box, joint=Gimbal("zyx"), joint_name="elbow", parent="upper", placement=(0.3, 0, 0))
    builder.body("hand", box, joint=Spherical(), joint_name="wrist", parent="fore", placement=(0.3, 0, 0))
    builder.frame("grip", "hand", (0.1, 0, 0))
    return builder.build()


@pytest.fixture(scope="module")
def state(model):
    return tuple(x[0] for x in states(model, 1))


def bent(model, q, angle):
    q = np.array(q)
    q[..., model.q_slice("elbow").start + 1] = angle
    return q


SHAPES = {
    "forward_dynamics": lambda m, q, v, x: m.forward_dynamics(q, v, x[:6]),
    "inverse_dynamics": lambda m, q, v, x: m.inverse_dynamics(q, v, x[:6]),
    "bias_forces": lambda m, q, v, x: m.bias_forces(q, v[:6]),
    "coriolis_forces": lambda m, q, v, x: m.coriolis_forces(q, v[:6]),
    "multiply_mass_matrix": lambda m, q, v, x: m.multiply_mass_matrix(q, x[:6]),
    "solve_mass_matrix": lambda m, q, v, x: m.solve_mass_matrix(q, x[:6]),
    "hybrid_dynamics": lambda m, q, v, x: m.hybrid_dynamics(q, v[:6]),
    "kinetic_energy": lambda m, q, v, x: m.kinetic_energy(q, v[:6]),
    "momentum": lambda m, q, v, x: m.momentum(q, v[:6]),
    "frame_velocity": lambda m, q, v, x: m.frame_velocity(q, v[:6], "grip"),
    "frame_acceleration": lambda m, q, v, x: m.frame_acceleration(q, v, x[:6], "grip"),
}
ARGUMENT = {
    "forward_dynamics": "tau",
    "inverse_dynamics": "a",
    "frame_acceleration": "a",
    "multiply_mass_matrix": "x",
    "solve_mass_matrix": "x",
}


@pytest.mark.parametrize("name", SHAPES)
def test_wrong_shape_names_function_argument_and_joint(model, state, name):
    with pytest.raises(ArgumentError) as caught:
        SHAPES[name](model, *state)
    assert str(caught.value) == (
        f"{name}: {ARGUMENT.get(name, 'v')} has shape (6,), expected (..., 7); the model has 7 degrees of "
        "freedom (joint 'elbow' has 3, joint 'wrist' has 3)"
    )


@pytest.mark.parametrize(
    "name", ["gravity_forces", "mass_matrix", "potential_energy", "center_of_mass", "momentum_matrix"]
)
def test_wrong_shape_of_coordinates(model, state, name):
    message = rf"{name}: q has shape \(7,\), expected \(..., 8\); the model has 8 coordinates"
    with pytest.raises(ArgumentError, match=message):
        getattr(model, name)(state[1])


def test_wrong_shape_elsewhere(model, state):
    q, v, tau = state
    for function in (model.frame_pose, model.frame_jacobian):
        with pytest.raises(
            ArgumentError, match=rf"{function.__name__}: q has shape \(7,\), expected \(..., 8\)"
        ):
            function(v, "grip")
    with pytest.raises(ArgumentError, match=r"inverse_mass_matrix: q has shape \(\), expected \(..., 8\)"):
        model.inverse_mass_matrix(1.0)
    with pytest.raises(ArgumentError, match=r"power: tau has shape \(6,\), expected \(..., 7\)"):
        model.power(q, v, tau[:6])
    with pytest.raises(ArgumentError, match=r"frame_jacobian: point has shape \(2,\), expected \(3,\)"):
        model.frame_jacobian(q, "grip", point=(1.0, 2.0))
    with pytest.raises(ArgumentError, match=r"forward_dynamics: tau has shape \(6,\), expected \(..., 7\)"):
        model.forward_dynamics(q, v, tau[:6], method="factorise")
    with pytest.raises(ArgumentError, match=r"integrate: dv has shape \(8,\), expected \(..., 7\)"):
        model.integrate(q, q)
    with pytest.raises(ArgumentError, match=r"difference: q1 has shape \(7,\), expected \(..., 8\)"):
        model.difference(q, v)
    with pytest.raises(
        ArgumentError, match=r"batch dimensions do not go together: q \(2,\), v \(3,\), tau \(\)"
    ):
        model.forward_dynamics(np.stack([q] * 2), np.stack([v] * 3), tau)


def test_names(model, state):
    q, v, tau = state
    with pytest.raises(ArgumentError, match=r"model 'arm' has no frame 'gripp'.*grip"):
        model.frame_pose(q, "gripp")
    with pytest.raises(
        ArgumentError, match="forward_dynamics: method is 'lu', expected 'sweep', 'factorise'"
    ):
        model.forward_dynamics(q, v, tau, method="lu")
    for call in (model.frame_velocity, model.frame_jacobian_rate):
        with pytest.raises(
            ArgumentError, match="reference is 'body', expected one of local, world, local_world_aligned"
        ):
            call(q, v, "grip", reference="body")
    with pytest.raises(ArgumentError, match="frame_jacobian: reference is 'body'"):
        model.frame_jacobian(q, "grip", reference="body")
    with pytest.raises(ArgumentError, match="frame_acceleration: reference is 'body'"):
        model.frame_acceleration(q, v, tau, "grip", reference="body")
    for call, arguments in ((model.momentum, (q, v)), (model.momentum_matrix, (q,))):
        with pytest.raises(ArgumentError, match="about is 'base', expected 'center_of_mass' or 'world'"):
            call(*arguments, about="base")


def test_hybrid_arguments(model, state):
    q, v, _ = state
    with pytest.raises(ArgumentError, match=r"elbow.y2 is given both an acceleration and a torque; give one"):
        model.hybrid_dynamics(q, v, accelerations={"elbow": np.zeros(3)}, torques={"elbow.y2": 1.0})
    with pytest.raises(
        ArgumentError, match=r"accelerations: no joint or degree of freedom 'sholder'.*shoulder"
    ):
        model.hybrid_dynamics(q, v, accelerations={"sholder": 1.0})
    with pytest.raises(ArgumentError, match=r"torques: 'wrist' has shape \(2,\), expected \(..., 3\)"):
        model.hybrid_dynamics(q, v, torques={"wrist": np.zeros(2)})
    with pytest.raises(ArgumentError, match=r"torques: 'wrist' has shape \(\), expected \(..., 3\)"):
        model.hybrid_dynamics(q, v, torques={"wrist": 1.0})
    with pytest.raises(ArgumentError, match=r"accelerations: 'elbow.z1' is given twice"):
        model.hybrid_dynamics(q, v, accelerations={"elbow": np.zeros(3), "elbow.z1": 0.0})
    with pytest.raises(ArgumentError, match="torques: 'shoulder' is 'much', expected numbers"):
        model.hybrid_dynamics(q, v, torques={"shoulder": "much"})
    with pytest.raises(
        ArgumentError, match=r"accelerations is \[1\], expected a mapping from names to arrays"
    ):
        model.hybrid_dynamics(q, v, accelerations=[1])
    with pytest.raises(
        ArgumentError,
        match=r"batch dimensions do not go together: torques: 'shoulder' \(2,\), torques: 'wrist' \(3,\)",
    ):
        model.hybrid_dynamics(q, v, torques={"shoulder": np.zeros((2, 1)), "wrist": np.zeros((3, 3))})
    with pytest.raises(ArgumentError, match=r"do not go together: q \(2,\), .*, accelerations \(3,\)"):
        model.hybrid_dynamics(np.stack([q, q]), v, accelerations={"shoulder": np.zeros(3)})
    with pytest.raises(
        NumericalError, match=r"hybrid_dynamics: .*; accelerations is nan at entry 0 \(shoulder\)"
    ):
        model.hybrid_dynamics(q, v, accelerations={"shoulder": np.nan})
    with pytest.raises(NumericalError, match=r"hybrid_dynamics: .*; torques is nan at entry 0 \(shoulder\)"):
        model.hybrid_dynamics(q, v, torques={"shoulder": np.nan})
    with pytest.raises(ArgumentError) as caught:
        model.hybrid_dynamics(q, v, accelerations={"quux": 1.0})
    listed = str(caught.value).split("there is ")[1].split(", ")
    assert len(listed) == len(set(listed))
    assert "shoulder" in listed


def test_wrenches(model, state):
    for frame in ("world", "base"):
        with pytest.raises(
            ArgumentError, match=f"forward_dynamics: wrench on frame '{frame}', which does not move"
        ):
            model.forward_dynamics(*state, wrenches={frame: np.zeros(6)})
    with pytest.raises(
        ArgumentError, match=r"wrench on 'grip' has shape \(3,\), expected \(..., 6\): moment, then force"
    ):
        model.inverse_dynamics(*state, wrenches={"grip": np.zeros(3)})
    with pytest.raises(ArgumentError, match="bias_forces: wrench on 'grip' is 'up', expected numbers"):
        model.bias_forces(*state[:2], wrenches={"grip": "up"})
    with pytest.raises(ArgumentError, match="model 'arm' has no frame 'hnd'"):
        model.forward_dynamics(*state, wrenches={"hnd": np.zeros(6)})
    for wrenches in ([1, 2], np.zeros(6)):
        for call, name in ((model.forward_dynamics, "forward_dynamics"), (model.power, "power")):
            with pytest.raises(
                ArgumentError, match=rf"^{name}: wrenches is .*expected a mapping from names to arrays"
            ):
                call(*state, wrenches=wrenches)
    with pytest.raises(ArgumentError, match=r"wrench on 'grip' \(2,\), wrench on 'fore' \(3,\)"):
        model.forward_dynamics(*state, wrenches={"grip": np.zeros((2, 6)), "fore": np.zeros((3, 6))})
    batch = (np.stack([x, x]) for x in state)
    with pytest.raises(ArgumentError, match=r"do not go together: q \(2,\), .*, wrenches \(3,\)"):
        model.forward_dynamics(*batch, wrenches={"grip": np.zeros((3, 6))})


def test_parameters():
    builder = ModelBuilder("two")
    m, length = builder.parameter("m", 1.0), builder.parameter("l", 0.5)
    box = Inertia.box(1.0, (0.1, 0.2, 0.3))
    builder.body("a", box.scaled(m), joint=Revolute((0, 0, 1)))
    builder.body("b", box, joint=Revolute((0, 0, 1)), parent="a", placement=(length, 0, 0))
    model = builder.build()
    x = np.zeros(2)
    for value in ("x", None, "1.0", 1j):
        with pytest.raises(ArgumentError, match=r"^mass_matrix: parameter 'l' is .*, expected numbers"):
            model.mass_matrix(x, parameters={"l": value})
        with pytest.raises(ArgumentError, match=r"^frame_velocity: parameter 'l' is .*, expected numbers"):
            model.frame_velocity(x, x, "b", parameters={"l": value})
    for given in ([1.0, 2.0], np.ones(2)):
        with pytest.raises(ArgumentError, match=r"^frame_pose: parameters is .*expected a mapping"):
            model.frame_pose(x, "b", parameters=given)
    with pytest.raises(
        ArgumentError, match=r"do not go together: parameter 'm' \(2,\), parameter 'l' \(3,\)"
    ):
        model.mass_matrix(x, parameters={"l": np.ones(3), "m": np.ones(2)})


def test_algorithms_that_would_ignore_loops_or_couplings_refuse(model, state):
    looped = ModelBuilder("loop")
    box = Inertia.box(1.0, (0.1, 0.1, 0.1))
    for name in ("a", "b"):
        looped.body(name, box, joint=Revolute((0, 0, 1)))
    looped.loop("rope", Spherical(), "a", "b")
    looped = looped.build()
    refused = r"hybrid_dynamics: the loop 'rope' .*model.replace\(loops=\(\)\)"
    with pytest.raises(UnsupportedError, match=refused):
        looped.compile("hybrid_dynamics")
    with pytest.raises(ArgumentError, match=r"compile: inverse_dynamics of a model with loops.* needs at="):
        looped.compile("inverse_dynamics")
    with pytest.raises(UnsupportedError, match="hybrid_dynamics: the loop 'rope'"):
        looped.export_c("hybrid_dynamics", "unused")
    assert looped.kinetic_energy([0.0, 0.0], [1.0, 1.0]) > 0
    coupled = looped.replace(loops=(), couplings=(Coupling("gear", "a_joint", ("b_joint",), (2.0,)),))
    with pytest.raises(UnsupportedError, match="inverse_dynamics: the coupling 'gear' would be ignored"):
        coupled.symbolic.inverse_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    # forward dynamics keeps it: with a = 2 b and both inertias 1/600, b'' = (2 tau_a + tau_b) / (5/600)
    found = coupled.forward_dynamics([0.0, 0.0], [0.0, 0.0], [1.0, 0.5])
    np.testing.assert_allclose(found, (600.0, 300.0), rtol=1e-12)
    assert coupled.replace(couplings=()).forward_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]).shape == (2,)


def test_an_input_that_is_not_finite_is_named(model, state):
    q, v, tau = (np.array(x) for x in state)
    v[4] = np.nan
    with pytest.raises(NumericalError) as caught:
        model.forward_dynamics(q, v, tau)
    assert str(caught.value).startswith(
        "forward_dynamics: the result is not finite; v is nan at entry 4 (wrist."
    )
    q[0] = np.inf
    with pytest.raises(NumericalError, match=r"inverse_dynamics: .* q is inf at entry 0 \(shoulder\)"):
        model.inverse_dynamics(q, v, tau)
    with pytest.raises(
        NumericalError, match=r"frame_pose: the result is not finite; q is inf at entry 0 \(shoulder\)"
    ):
        model.frame_pose(q, "grip")
    with pytest.raises(NumericalError, match="wrenches is nan"):
        model.forward_dynamics(*state, wrenches={"grip": np.full(6, np.nan)})
    other = tree("parameters")
    index, name = next((k, name) for k, (name, _) in enumerate(other.parameters) if name.startswith("mass"))
    x = (y[0] for y in states(other, 1))
    with pytest.raises(NumericalError, match=rf"parameters is nan at entry {index} \({name}\)"):
        other.forward_dynamics(*x, parameters={name: np.nan})


@pytest.mark.filterwarnings("error")
def test_large_results_are_not_warned_of():
    """Squares of these overflow, of which NumPy warns in some of its functions; the numbers themselves are fine."""
    chain = library.chain(120)
    large, zero = np.full(120, 1e200), np.zeros(120)
    for errors in ("warn", "raise"):
        with np.errstate(all=errors):
            found = chain.inverse_dynamics(zero, zero, large)
            assert np.isfinite(found).all()
            assert np.abs(found).max() > 1e200
            with pytest.raises(NumericalError, match="the result is not finite; a is nan at entry 7"):
                chain.inverse_dynamics(zero, zero, np.where(np.arange(120) == 7, np.nan, large))


def test_one_bad_state_of_a_batch_is_named_and_the_others_are_right(model):
    q, v, tau = states(model, 6)
    expected = model.forward_dynamics(q, v, tau)
    v[4, 2] = np.nan
    with pytest.warns(
        AlembertWarning,
        match=r"forward_dynamics: 1 of 6 states have no finite result, the first at 4; v is nan",
    ):
        a = model.forward_dynamics(q, v, tau)
    np.testing.assert_array_equal(np.delete(a, 4, axis=0), np.delete(expected, 4, axis=0))
    assert np.isnan(a[4]).any()
    with pytest.warns(AlembertWarning, match=r"the first at \(1, 1\)"):
        model.forward_dynamics(q.reshape(2, 3, -1), v.reshape(2, 3, -1), tau.reshape(2, 3, -1))


@pytest.mark.parametrize("angle", [np.pi / 2, -np.pi / 2, np.pi / 2 + 1e-8])
def test_gimbal_lock_is_named(model, state, angle):
    q, v, tau = state
    q = bent(model, q, angle)
    message = r"joint 'elbow': gimbal lock: the middle angle of the sequence 'zyx' is -?90"
    with pytest.raises(NumericalError, match="forward_dynamics: .*" + message):
        model.forward_dynamics(q, v, tau)
    with pytest.raises(NumericalError, match="solve_mass_matrix: .*" + message):
        model.solve_mass_matrix(q, tau)
    with pytest.raises(NumericalError, match="hybrid_dynamics: .*" + message):
        model.hybrid_dynamics(q, v, accelerations={"wrist": np.zeros(3)})
    held = model.hybrid_dynamics(
        q, v, accelerations={"elbow": np.ones(3)}
    )  # nothing is solved for at the elbow
    np.testing.assert_array_equal(held.accelerations[model.v_slice("elbow")], 1.0)
    assert np.isfinite(model.inverse_dynamics(q, v, tau)).all()


def test_gimbal_lock_in_a_batch(model):
    q, v, tau = states(model, 5)
    expected = model.forward_dynamics(q, v, tau)
    q[3] = bent(model, q[3], np.pi / 2)
    with pytest.warns(
        AlembertWarning, match=r"1 of 5 states have no finite result, the first at 3; joint 'elbow': gimbal"
    ):
        a = model.forward_dynamics(q, v, tau)
    assert np.isnan(a[3]).all()
    np.testing.assert_array_equal(np.delete(a, 3, axis=0), np.delete(expected, 3, axis=0))


def test_several_reasons_in_a_batch(model):
    """Each is told, with how many states it concerns."""
    q, v, tau = (x.reshape(2, 3, -1) for x in states(model, 6))
    q[0, 2] = bent(model, q[0, 2], np.pi / 2)
    q[1, 0] = bent(model, q[1, 0], -np.pi / 2)
    tau[1, 1, 0] = np.nan
    v[1, 2, 1] = np.inf
    with pytest.warns(AlembertWarning) as caught:
        a = model.forward_dynamics(q, v, tau)
    message = str(caught[0].message)
    assert message.startswith(
        "forward_dynamics: 4 of 6 states have no finite result, the first at (0, 2); joint 'elbow': gimbal lock"
    )
    assert "; tau is nan at entry 0 (shoulder) (2, the first at (1, 1))" in message
    np.testing.assert_array_equal(np.isnan(a).any(axis=-1), [[False, False, True], [True, True, True]])


def test_an_armature_on_the_gimbal_lifts_the_lock(model, state):
    q, v, tau = state
    geared = model.replace_joint("elbow", armature=(0.1, 0.1, 0.1))
    a = geared.forward_dynamics(bent(model, q, np.pi / 2), v, tau)
    assert np.isfinite(a).all()


def test_a_joint_that_moves_nothing():
    """Massless at these parameters: the articulated inertia of its joint is zero."""
    builder = ModelBuilder("light")
    m = builder.parameter("m", 1.0)
    inertia = Inertia(1.0, (0.1, 0.0, 0.0), Inertia.box(1.0, (0.1, 0.1, 0.1)).tensor).scaled(m)
    builder.body("link", inertia, joint=Revolute((0, 0, 1)))
    model = builder.build()
    with pytest.raises(
        NumericalError, match="joint 'link_joint': nothing that moves with link_joint has inertia"
    ):
        model.forward_dynamics([0.0], [0.0], [1.0], parameters={"m": 0.0})


def test_configurations_are_checked_on_request(model):
    q = model.neutral()
    model.check_configuration(q)
    with pytest.raises(ArgumentError, match=r"check_configuration: q has shape \(3,\), expected \(..., 8\)"):
        model.check_configuration(q[:3])
    broken = q.copy()
    broken[0] = np.nan
    with pytest.raises(ArgumentError, match="joint 'shoulder': q is not finite"):
        model.check_configuration(broken)
    broken = q.copy()
    broken[model.q_slice("wrist")] *= 2
    with pytest.raises(ArgumentError, match="joint 'wrist': "):
        model.check_configuration(broken)


def test_export_and_compile_name_what_there_is(model, tmp_path):
    with pytest.raises(ArgumentError, match="export_c: no algorithm 'dynamics'"):
        model.export_c("dynamics", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"file.below: cannot be made: Not a directory"):
        model.export_c("mass_matrix", tmp_path / "file" / "below")
    with pytest.raises(ArgumentError, match="export_c: directory is None, expected a path"):
        model.export_c("mass_matrix", None)


def test_the_short_way_for_one_state_says_the_same():
    """After the first call single states go straight to machine code; messages and results are those of the long way."""
    model = library.two_link()
    rng = np.random.default_rng(2)
    q, v, x = rng.normal(size=(3, 2))
    for name in ("forward_dynamics", "inverse_dynamics"):
        method = getattr(model, name)
        first = method(q, v, x)
        assert model.compute._direct[name] is not None
        np.testing.assert_array_equal(method(q, v, x), first)
        np.testing.assert_array_equal(method(q, np.stack([v, v]), x), np.stack([first, first]))
        np.testing.assert_array_equal(method(q.tolist(), v, x), first)
        out = np.empty(2)
        assert method(q, v, x, out=out) is out
        np.testing.assert_array_equal(out, first)
        with pytest.raises(NumericalError, match=rf"^{name}: the result is not finite; v is nan at entry 1"):
            method(q, np.array([0.0, np.nan]), x)
        with pytest.raises(ArgumentError, match=rf"^{name}: v has shape \(3,\), expected \(..., 2\)"):
            method(q, np.zeros(3), x)


def test_a_coordinate_on_which_nothing_depends_may_be_anything():
    """Results are looked at, not inputs; `check_configuration` looks at these."""
    model = library.satellite()
    q = model.neutral()
    q[0] = np.nan
    assert np.all(np.isfinite(model.mass_matrix(q)))
    with pytest.raises(ArgumentError, match=r"^check_configuration: joint 'attitude': q is not finite"):
        model.check_configuration(q)


def test_a_call_after_a_good_one_is_told_in_the_same_words(model, state):
    """Which goes straight to the compiled function."""
    q, v, _ = state
    for _ in range(2):
        model.frame_pose(q, "grip"), model.integrate(q, v), model.mass_matrix(q)
    for function, name in (
        (lambda q: model.frame_pose(q, "grip"), "frame_pose"),
        (lambda q: model.integrate(q, v), "integrate"),
        (model.mass_matrix, "mass_matrix"),
    ):
        with pytest.raises(ArgumentError, match=rf"^{name}: q has shape \(7,\), expected \(..., 8\)"):
            function(q[:-1])
        with pytest.raises(NumericalError, match=f"^{name}: the result is not finite; q is nan at entry 0"):
            function(np.nan * q)
