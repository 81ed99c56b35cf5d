"""Linear models with uncertain parameters: exact against linear models, minimal, and what mu says of them."""

import dataclasses

import numpy as np
import pytest

import alembert as al
from alembert import control
from alembert.errors import UnsupportedError


@pytest.fixture(scope="module")
def arm():
    builder = al.ModelBuilder("arm")
    payload, length = builder.parameter("payload", 3.0), builder.parameter("length", 1.0)
    builder.body(
        "upper", al.Inertia.point(4.0, (0, 0, -0.5)), joint=al.Revolute((0, 1, 0)), joint_name="shoulder"
    )
    builder.body(
        "fore",
        al.Inertia.point(payload, (0, 0, -1.0 * length)),
        joint=al.Revolute((0, 1, 0)),
        joint_name="elbow",
        parent="upper",
        placement=(0, 0, -1.0),
        armature=(0.2,),
    )
    builder.frame("tip", "fore", (0, 0, -1.0 * length))
    return builder.build()


RANGES = {"payload": (1.0, 5.0), "length": (0.8, 1.2)}
Q = np.array([0.3, 0.5])


def family(arm, uncertain, outputs, **values):
    p = {**{name: (low + high) / 2 for name, (low, high) in uncertain.items()}, **values}
    return al.linearize(
        arm, Q, None, arm.gravity_forces(Q, parameters=p), outputs=outputs, parameter_values=p
    )


@pytest.mark.parametrize("outputs", [["q"], ["q", "frame:tip.position"], ["frame:tip.acceleration"]])
def test_the_transformation_is_the_linear_model(arm, outputs):
    found = al.linearize(arm, Q, None, arm.gravity_forces(Q), outputs=outputs, uncertain=RANGES)
    assert found.certificate.exact
    assert found.certificate.error < 1e-11  # rounding times the condition of the mass matrix
    for values in ({}, {"payload": 1.7, "length": 1.15}, {"payload": 5.0, "length": 0.8}):
        made, other = found.at(**values), family(arm, RANGES, outputs, **values)
        for name in "ABCD":
            np.testing.assert_allclose(getattr(made, name), getattr(other, name), rtol=0, atol=1e-10)
        assert made.output_names == other.output_names
        np.testing.assert_allclose(found.linear(**values).A, other.A, rtol=0, atol=1e-12)
    assert dict(found.copies) == found.certificate.least  # no transformation has fewer copies
    assert "exact to rounding" in str(found)


def test_copies_of_a_pendulum():
    """e'' = -g/l e + u/(m l^2): by hand l twice, m once (Belcastro's kind of realisation)."""
    builder = al.ModelBuilder("pendulum")
    m, length = builder.parameter("m", 1.0), builder.parameter("l", 1.0)
    builder.body(
        "bob", al.Inertia.point(m, (0, 0, -1.0 * length)), joint=al.Revolute((0, 1, 0)), joint_name="hinge"
    )
    found = al.linearize(builder.build(), [0.0], uncertain={"m": (0.5, 2), "l": (0.5, 1.5)})
    assert dict(found.copies) == {"m": 1, "l": 2}
    plant = found.at(m=2.0, l=0.5)
    assert plant.A[1, 0] == pytest.approx(-9.81 / 0.5, rel=1e-4)
    assert plant.B[1, 0] == pytest.approx(1 / (2.0 * 0.25), rel=1e-12)


def test_mu_of_the_closed_loop(arm):
    """Below one every sample is stable, and the perturbation that mu names puts a pole on the axis."""
    payload = {"payload": (1.0, 5.0)}
    found = al.linearize(arm, Q, None, arm.gravity_forces(Q), outputs=["q"], uncertain=payload)
    K = control.lqg(found.nominal.to_statespace(), [50, 50, 1, 1], 0.01, [1, 1], [1e-3, 1e-3]).controller
    peak = found.mu(K, tolerance=0.1)
    assert peak.lower <= peak.upper
    assert peak.upper < 1
    for values in found.system.matrix.sampled(20):
        assert control.feedback(found.at(**values), K, sign=1).is_stable
    assert peak.delta is not None
    d = np.diag(peak.delta).real
    names = [name for name, n in found.copies.items() for _ in range(n)]
    values = {
        name: np.mean(RANGES[name]) + np.ptp(RANGES[name]) / 2 * x for name, x in zip(names, d, strict=True)
    }
    poles = control.feedback(found.at(**values), K, sign=1).poles()
    assert np.abs(poles - 1j * peak.frequency).min() < 1e-5 * np.abs(poles).max()


def test_what_is_no_polynomial_gets_a_block_of_its_size():
    """A spring at an angle: its moment arm goes with the sine of a parameter."""
    builder = al.ModelBuilder("tilted")
    builder.parameter("tilt", 0.2)
    arm = (al.Expression("exp(4*tilt)"), 0, 0)
    builder.body("bob", al.Inertia.point(1.0, arm), joint=al.Revolute((0, 1, 0)), joint_name="hinge")
    model = builder.build().replace(gravity=(0, 0, 0))
    wide = al.linearize(model, [0.0], uncertain={"tilt": (-1.5, 1.5)})
    assert wide.certificate.error < 1e-8 or not wide.certificate.exact
    blocks = [block.kind for block in wide.blocks]
    assert ("full" in blocks) == (not wide.certificate.exact)
    M, n = wide.open(), sum(block.rows for block in wide.blocks)
    assert M.shape == (sum(block.columns for block in wide.blocks) + 2, n + 1)
    narrow = al.linearize(model, [0.0], uncertain={"tilt": (0.19, 0.21)})
    assert narrow.certificate.exact


def test_loops():
    model = _four_bar()
    q = model.neutral()
    found = al.linearize(
        model, q, uncertain={"coupler": (0.5, 2.0)}, outputs=["q:crank", "frame:rod_end.acceleration"]
    )
    assert found.certificate.exact  # the mass matrix of independent speeds is a polynomial of the mass
    assert dict(found.copies) == found.certificate.least == {"coupler": 1}
    other = found.linear(coupler=1.7)
    for name in "ABCD":  # rounding, entries of order one
        np.testing.assert_allclose(getattr(found.at(coupler=1.7), name), getattr(other, name), atol=1e-12)


def test_the_part_that_outputs_see():
    """A cart on rails that carries a pendulum: its place acts on nothing, and goes unless it is measured."""
    builder = al.ModelBuilder("crane")
    load = builder.parameter("load", 2.0)
    builder.body("cart", al.Inertia.point(5.0), joint=al.Prismatic((1, 0, 0)), joint_name="rail")
    builder.body(
        "rope",
        al.Inertia.point(load, (0, 0, -1)),
        joint=al.Revolute((0, 1, 0)),
        joint_name="swing",
        parent="cart",
    )
    model = builder.build()
    found = al.linearize(
        model, [0.0, 0.0], inputs=["rail"], outputs=["q:swing"], uncertain={"load": (1.0, 3.0)}
    )
    part = found.seen()
    assert part.nominal.state_names == ("q:swing", "v:swing")
    assert part.seen() is part
    for load in (1.0, 2.6):
        both = [x.at(load=load).frequency_response([0.3, 2.0, 20.0]).response for x in (found, part)]
        np.testing.assert_allclose(both[0], both[1], rtol=1e-9)  # rounding next to the poles
        np.testing.assert_allclose(part.linear(load=load).A, part.at(load=load).A, atol=1e-12)


@pytest.fixture
def loaded():
    """An arm whose payload is not in the middle of the ranges below; or the same with a body that a coupling turns along."""

    def build(coupled):
        builder = al.ModelBuilder("loaded")
        payload = builder.parameter("payload", 2.0)
        hinge = al.Revolute((0, 1, 0))
        builder.body("one", al.Inertia.point(1.0, (1.0, 0, 0)), joint=hinge, joint_name="a")
        builder.body(
            "two", al.Inertia.point(payload, (1.0, 0, 0)), joint=hinge, joint_name="b", parent="one",
            placement=(1.0, 0, 0),
        )  # fmt: skip
        if coupled:
            builder.body("idle", al.Inertia.point(0.1), joint=al.Revolute((0, 0, 1)), joint_name="c")
            builder.coupling("copy", "c", ["a"], [1.0])
        return builder.build()

    return build


@pytest.mark.parametrize("coupled", [False, True])
def test_efforts_belong_to_the_parameters_of_the_model(loaded, coupled):
    """A family is the linear model itself where its efforts are known, and an equilibrium at every other value."""
    model = loaded(coupled)
    q = np.array([0.3, 0.7, 0.3])[: model.nq]
    given = {"inputs": ["a", "b"], "outputs": ["q:a", "q:b"]}
    found = al.linearize(model, q, None, model.gravity_forces(q), uncertain={"payload": (1.0, 5.0)}, **given)
    assert found.certificate.exact
    assert dict(found.copies) == found.certificate.least
    plain = al.linearize(model, q, None, model.gravity_forces(q), **given)
    np.testing.assert_allclose(found.at(payload=2.0).A, plain.A, atol=1e-11)  # rounding, entries of order 30
    for payload in (1.0, 3.0, 5.0):
        p = {"payload": payload}
        own = al.linearize(model, q, None, model.gravity_forces(q, parameters=p), parameter_values=p, **given)
        np.testing.assert_allclose(own.a, 0.0, atol=1e-12)
        np.testing.assert_allclose(found.linear(**p).a, 0.0, atol=1e-12)
        np.testing.assert_allclose(found.at(**p).A, own.A, atol=1e-11)
        np.testing.assert_allclose(found.at(**p).B, own.B, atol=1e-11)


def test_a_coupling_does_not_hide_that_inputs_do_not_hold_a_state(loaded):
    model = loaded(True)
    q = np.array([0.3, 0.7, 0.3])
    with pytest.raises(al.UnsupportedError, match=r"the state is held only with .* more on"):
        al.linearize(model, q, None, model.gravity_forces(q), inputs=["a"], uncertain={"payload": (1.0, 5.0)})


def _four_bar():
    builder = al.ModelBuilder("four_bar", gravity=(0, 0, 0))
    mass = builder.parameter("coupler", 1.0)
    hinge = al.Revolute((0, 1, 0))
    builder.body("crank", al.Inertia.point(0.5, (0, 0, 0.5)), joint=hinge, joint_name="crank")
    builder.body(
        "rod",
        al.Inertia.point(mass, (0.5, 0, 0)),
        joint=hinge,
        joint_name="rod",
        parent="crank",
        placement=(0, 0, 1),
    )
    builder.body(
        "rocker", al.Inertia.point(0.7, (0, 0, 0.5)), joint=hinge, joint_name="rocker", placement=(1, 0, 0)
    )
    builder.frame("rod_end", "rod", (1, 0, 0))
    builder.frame("rocker_end", "rocker", (0, 0, 1))
    builder.loop("closure", hinge, "rod_end", "rocker_end")
    return builder.build()


def test_families_without_inputs(arm):
    """What moves by itself, about hanging down."""
    found, driven = (
        al.linearize(arm, np.zeros(2), inputs=inputs, outputs=["q"], uncertain={"payload": (1, 5)})
        for inputs in ([], None)
    )
    assert found.at(payload=2.5).shape[1] == 0
    np.testing.assert_allclose(found.at(payload=2.5).A, driven.at(payload=2.5).A, rtol=0, atol=1e-10)


def test_what_is_refused(arm):
    tau = arm.gravity_forces(Q)
    for given, message in (
        ({"mass": (1, 2)}, r"uncertain: the model has no parameter 'mass'"),
        ({"payload": (2, 1)}, r"uncertain: 'payload' is \(2, 1\), expected \(low, high\)"),
        ({}, r"uncertain is \{\}, expected a mapping"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            al.linearize(arm, Q, None, tau, uncertain=given)
    with pytest.raises(
        al.UnsupportedError, match=r"the state is held only with .* more on 'elbow', which no input gives"
    ):
        al.linearize(arm, Q, None, tau, uncertain={"payload": (1, 5)}, inputs=["shoulder"])
    with pytest.raises(al.UnsupportedError, match=r"uncertain and a batch of states do not go together"):
        al.linearize(arm, np.stack([Q, Q]), None, tau, uncertain=RANGES)
    with pytest.raises(
        al.UnsupportedError, match=r"uncertain does not go together with wrenches, forces or parameters"
    ):
        al.linearize(arm, Q, None, tau, uncertain=RANGES, parameters=["payload"])
    found = al.linearize(arm, Q, None, tau, uncertain={"payload": (1, 5)}, outputs=["q"])
    with pytest.raises(al.ArgumentError, match=r"linear: there is no parameter 'length'"):
        found.linear(length=1.0)
    with pytest.raises(
        al.ArgumentError, match=r"closed: the controller has shape \(1, 1\), expected u = K y with 2 outputs"
    ):
        found.closed(control.static([[1.0]]))
    p, m = found.nominal.D.shape
    sampled = al.control.StateSpace([[0.5]], np.ones((1, p)), np.ones((m, 1)), np.zeros((m, p)), 0.1)
    with pytest.raises(al.ArgumentError, match=r"closed: the controller is sampled every 0.1 s"):
        found.mu(sampled)


def test_parameters_that_do_nothing_here():
    """They have no copies, and stay known by name."""
    builder = al.ModelBuilder("slide")
    mass = builder.parameter("mass", 2.0)
    builder.parameter("idle", 1.0)
    builder.body("block", al.Inertia.point(mass), joint=al.Prismatic((1, 0, 0)), joint_name="rail")
    model = builder.build()
    given = {"inputs": ["rail"], "outputs": ["q"]}
    found = al.linearize(model, [0.0], uncertain={"mass": (1, 3), "idle": (0, 2)}, **given)
    assert dict(found.copies) == {"mass": 1, "idle": 0}
    np.testing.assert_allclose(found.at(mass=1.5, idle=0.2).B[1, 0], 1 / 1.5, rtol=1e-12)
    with pytest.raises(al.ArgumentError, match="the linear model does not change with idle"):
        al.linearize(model, [0.0], uncertain={"idle": (0, 2)}, **given)
    law = control.lqg(found.nominal.to_statespace(), 1.0, 1.0, 1.0, 1.0).controller
    assert 0 < found.mu(law).upper < np.inf
    # a gain is a controller too; what is none is told
    with pytest.raises(al.NumericalError, match="the nominal loop is not stable"):
        found.mu([[1.0]])
    with pytest.raises(al.ArgumentError, match="closed: controller is of type str, expected a StateSpace"):
        found.mu("lqg")


def test_families_are_joined_by_the_names_of_their_signals():
    """A loop of a family and a gain, at a value, is the loop of the system at that value."""
    builder = al.ModelBuilder("mass")
    mass = builder.parameter("m", 2.0)
    builder.body("block", al.Inertia.point(mass, (0, 0, 0)), joint=al.Prismatic((1, 0, 0)), joint_name="rail")
    builder.actuator("motor", "rail")
    family = al.linearize(builder.build(), [0.0], outputs=["q"], uncertain={"m": (1, 3)})
    law = control.static(-2.0).renamed(inputs=["q:rail"], outputs=["motor"])
    names = {"inputs": ["motor"], "outputs": ["q:rail"]}
    system = family.to_uncertain_system()
    assert system.output_names == family.at(m=2.0).output_names
    loop = control.connect(family, law, **names)
    np.testing.assert_allclose(
        loop.at(m=1.5).at(0.7j), control.connect(family.at(m=1.5), law, **names).at(0.7j), atol=1e-12
    )
    inexact = dataclasses.replace(family, certificate=dataclasses.replace(family.certificate, residual=0.1))
    with pytest.raises(UnsupportedError, match="to_uncertain_system: the transformation has a residual"):
        inexact.to_uncertain_system()
