"""What joints and their attachments refuse, and how they say it."""

import contextlib
from dataclasses import dataclass
from typing import ClassVar

import casadi as ca
import numpy as np
import pytest

from alembert.errors import AlembertWarning, ModelError
from alembert.expression import Expression
from alembert.joints import (
    REGISTRY,
    Custom,
    Cylindrical,
    Friction,
    Gimbal,
    JointType,
    Limits,
    Prismatic,
    Revolute,
    Rotor,
    Screw,
    Spring,
    Universal,
    register,
)
from alembert.joints.joint import ANGLE
from alembert.spatial import Pose, so3
from refusals import model_refusal as refusal


@pytest.mark.parametrize("joint", [Revolute, Prismatic, Screw, Cylindrical])
def test_axes_are_unit_vectors(joint):
    kind = joint.kind
    assert refusal(joint, (0, 3, 4)) == (
        f"{kind} axis is (0.0, 3.0, 4.0) of length 5, expected a unit vector; "
        "divide by its length: (0.0, 0.6, 0.8)"
    )
    assert refusal(joint, (0, 0, 0)).endswith(
        "of length 0, expected a unit vector; an axis needs a direction"
    )
    assert refusal(joint, (0, 1)) == f"{kind} axis has 2 entries, expected 3"
    assert refusal(joint, (0, float("nan"), 1)) == f"{kind} axis[1] is nan, expected a finite number"
    assert refusal(joint, 1.0) == f"{kind} axis is 1.0, expected 3 numbers"
    assert refusal(joint, "xyz") == f"{kind} axis is 'xyz', expected 3 numbers"


def test_axes_written_with_few_digits_are_normalised():
    with pytest.warns(
        AlembertWarning, match=r"revolute axis \(0.70711, .* has length 1.000004\d+ and is normalised"
    ):
        axis = Revolute((0.70711, 0.70711, 0.0)).axis
    assert np.linalg.norm(axis) == pytest.approx(1.0, abs=1e-15)


def test_normalising_twice_changes_nothing():
    for seed in range(200):
        axis = np.random.default_rng(seed).normal(size=3)
        once = Revolute(np.round(axis / np.linalg.norm(axis), 10)).axis
        assert Revolute(once).axis == once


def test_axes_of_parameters_are_left_to_the_model():
    a = Expression("a")
    assert Revolute((a, 0.0, 1.0)).axis == (a, 0.0, 1.0)
    assert Universal((a, 0.0, 0.0), (1.0, 0.0, 0.0)).first[0] == a


def test_universal_axes_span_a_plane():
    assert refusal(Universal, (0, 0, 1), (0, 0, -1)) == (
        "universal axes (0.0, 0.0, 1.0) and (0.0, 0.0, -1.0) are parallel; they must span a plane"
    )
    assert refusal(Universal, (0, 0, 2), (0, 1, 0)).startswith("universal first axis is")
    assert refusal(Universal, (0, 0, 1), (0, 2, 0)).startswith("universal second axis is")


def test_screw_pitch_is_a_number():
    assert refusal(Screw, pitch="fine") == "screw pitch is 'fine', expected a number or an Expression"


@pytest.mark.parametrize("sequence", ["zz", "zzx", "xyy", "abc", "zyxz", 3, None])
def test_gimbal_sequences(sequence):
    assert refusal(Gimbal, sequence) == (
        f"gimbal sequence is {sequence!r}, expected three of x, y, z, neighbours different ('zyx')"
    )


# --- the registry -------------------------------------------------------------------------------------------


def test_a_kind_is_registered_once():
    @dataclass(frozen=True)
    class Another(JointType):
        kind: ClassVar[str] = "revolute"

    assert refusal(register, Another) == "joint type 'revolute' is already registered by Revolute"
    assert REGISTRY["revolute"] is Revolute
    assert register(Revolute) is Revolute


def test_a_joint_type_says_what_it_does():
    bare = JointType()
    with pytest.raises(NotImplementedError):
        bare.coordinates
    with pytest.raises(NotImplementedError):
        bare.placement(np.zeros(1))


# --- custom joints ------------------------------------------------------------------------------------------


def turn(q):
    return Pose(so3.exp(ca.vertcat(q[0], 0, 0)), ca.vertcat(0, ca.sin(q[0]), q[0] ** 2))


ONE = [("angle", ANGLE)]


def test_custom_placement_is_the_function():
    joint = Custom.from_function(turn, ONE)
    X = joint.placement(np.array([0.4]))
    np.testing.assert_allclose(X.rotation, so3.exp(np.array([0.4, 0, 0])), atol=1e-15)
    np.testing.assert_allclose(X.translation, [0, np.sin(0.4), 0.16], atol=1e-15)
    assert joint == Custom.from_function(turn, ONE)
    assert joint == Custom(joint.labels, joint.graph)


def test_custom_function_returns_a_pose():
    assert refusal(Custom.from_function, lambda q: q, ONE) == (
        "custom joint: placement(q) returned SX, expected a Pose"
    )
    flat = lambda q: Pose(ca.SX.eye(2), ca.SX.zeros(3))  # noqa: E731
    assert refusal(Custom.from_function, flat, ONE) == (
        "custom joint: placement(q) has shapes (2, 2) and (3, 1), expected 3x3 and 3"
    )


def test_custom_rotation_is_a_rotation():
    stretched = lambda q: Pose(ca.SX.eye(3) * (1 + q[0]), ca.SX.zeros(3))  # noqa: E731
    assert "is not a rotation:" in refusal(Custom.from_function, stretched, ONE)
    mirrored = lambda q: Pose(ca.diag(ca.SX([1, 1, -1])), ca.vertcat(q, 0, 0))  # noqa: E731
    assert "is not a rotation:" in refusal(Custom.from_function, mirrored, ONE)
    broken = lambda q: Pose(ca.SX.eye(3), ca.vertcat(ca.sqrt(-1 - q[0] ** 2), 0, 0))  # noqa: E731
    assert refusal(Custom.from_function, broken, ONE).startswith("custom joint: the translation at q = [")


def test_custom_function_depends_on_q_alone():
    other = ca.SX.sym("other")
    free = lambda q: Pose(ca.SX.eye(3), ca.vertcat(q + other, 0, 0))  # noqa: E731
    assert refusal(Custom.from_function, free, ONE).startswith(
        "custom joint: placement(q) depends on more than q"
    )


def test_custom_coordinates_are_labelled():
    assert refusal(Custom.from_function, turn, []) == "custom joint has 0 coordinates, expected 1 to 6"
    assert refusal(Custom.from_function, turn, ONE * 7) == "custom joint has 7 coordinates, expected 1 to 6"
    assert refusal(Custom.from_function, turn, 1) == (
        "custom joint: coordinates are 1, expected (label, unit) pairs"
    )
    assert "expected (label, unit) pairs" in refusal(Custom.from_function, turn, ["angle"])


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (3, "custom joint graph is no text of at most 1000000 characters"),
        ("x" * 1_000_001, "custom joint graph is no text of at most 1000000 characters"),
        ("", "custom joint graph ends with '', expected '->' and 12 results"),
        ("-> 0 0", "custom joint graph ends with '-> 0 0', expected '->' and 12 results"),
        ("system 0; -> 0", "custom joint graph has the instruction 'system 0', which is none"),
        ("sin 0 0; -> 0", "custom joint graph has the instruction 'sin 0 0', which is none"),
        ("; -> 0", "custom joint graph has the instruction '', which is none"),
        ("const inf; -> 0", "custom joint graph: 'const inf' has no finite number"),
        ("const one; -> 0", "custom joint graph: 'const one' has no finite number"),
        ("sin 1; -> 0", "custom joint graph: 'sin 1' refers to '1', which is no earlier value"),
        ("sin -1; -> 0", "custom joint graph: 'sin -1' refers to '-1', which is no earlier value"),
        ("add 0 ²; -> 0", "custom joint graph: 'add 0 ²' refers to '²', which is no earlier value"),
    ],
)
def test_custom_graphs_are_read_strictly(graph, message):
    assert refusal(Custom, tuple(ONE), graph) == message


def test_custom_functions_hold_elementary_operations_only():
    x = ca.SX.sym("x", 3)
    inner = ca.Function("inner", [x], [ca.norm_2(x)], {"never_inline": True})

    def hidden(q):
        return Pose(ca.SX.eye(3), ca.vertcat(inner(ca.vertcat(q, q, q)), 0, 0))

    assert "that is not kept" in refusal(Custom.from_function, hidden, ONE)


def test_damaged_custom_graphs_never_get_further_than_an_error():
    graph = Custom.from_function(turn, ONE).graph
    rng = np.random.default_rng(0)
    characters = np.array(list(" ;->0123456789abcdefghijklmnopqrstuvwxyz.²"))
    for _ in range(300):
        letters = list(graph)
        letters[rng.integers(len(letters))] = str(rng.choice(characters))
        damaged = "".join(letters)[: rng.integers(len(letters)) if rng.random() < 0.2 else None]
        with contextlib.suppress(ModelError):
            Custom(tuple(ONE), damaged)


# --- attachments --------------------------------------------------------------------------------------------


def test_limits():
    assert Limits(lower=-1, upper=2) == Limits(lower=[-1.0], upper=np.array([2.0]))
    assert refusal(Limits, lower="low") == "limit lower is 'low', expected numbers"
    assert refusal(Limits, upper=(1, None)) == "limit upper is (1, None), expected numbers"
    assert refusal(Limits, lower=float("nan")) == "limit lower is (nan,), NaN is no limit; use inf for none"
    assert refusal(Limits, velocity=-1.0) == "limit velocity is (-1.0,), expected zero or more"
    assert refusal(Limits, effort=(1, -2)) == "limit effort is (1.0, -2.0), expected zero or more"
    assert refusal(Limits, lower=(0, 2), upper=(1, 1)) == "lower limit 2.0 is above the upper limit 1.0"


def test_springs():
    assert Spring(3).stiffness == (3.0,)
    assert Spring((-1.0,)).stiffness == (-1.0,)  # an unstable one is still a spring
    assert refusal(Spring, ("k",)) == "spring stiffness[0] is 'k', expected a number or an Expression"
    assert refusal(Spring, 1.0, rest=float("inf")) == "spring rest[0] is inf, expected a finite number"


def test_friction():
    assert Friction(0.5, coulomb=[0.1]).coulomb == (0.1,)
    assert refusal(Friction, -0.5) == "viscous friction is -0.5, expected zero or more"
    assert refusal(Friction, coulomb=(0.1, -1)) == "Coulomb friction is -1.0, expected zero or more"
    assert refusal(Friction, smoothing=0.0) == ("friction smoothing speed is 0.0, expected a positive speed")
    assert Friction(Expression("b")).viscous == (Expression("b"),)


def test_rotors():
    assert Rotor(100, 1e-5).axis == (0.0, 0.0, 1.0)
    assert refusal(Rotor, 100, -1e-5) == "rotor inertia is -1e-05, expected zero or more"
    assert refusal(Rotor, None, 1e-5) == "rotor ratio is None, expected a number or an Expression"
    assert refusal(Rotor, 1, 1, (1, 1, 0)).startswith("rotor axis is (1.0, 1.0, 0.0) of length 1.41421")
    for dof in (-1, 1.0, True):
        assert refusal(Rotor, 1, 1, dof=dof) == (
            f"rotor dof is {dof!r}, expected the index of a speed of the joint"
        )
