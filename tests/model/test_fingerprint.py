"""The digest of a model's content: another for every change of any part, the same for equal content."""

import copy
import dataclasses
import itertools
import sys
import types
from dataclasses import dataclass

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError
from alembert.meaning import meaning
from alembert.model.model import fingerprint


@dataclass(frozen=True)
class Record:
    content: object


def digest(content):
    return fingerprint(Record(content))


def everything():
    """A model with a record of every kind."""
    tree = al.library.random_tree(3, bodies=30, attachments=True, parameters=True)
    first, second = [joint.name for joint in tree.joints if joint.type.nv == joint.type.nq == 1][:2]
    return tree.replace(
        loops=(al.LoopJoint("loop", al.Distance(1.0), tree.bodies[0].name, tree.bodies[-1].name),),
        couplings=(al.Coupling("coupling", first, (second,), (2.0,), 0.5),),
        equations=(al.Equation("equation", ("x - 0.1",), {"x": f"{tree.bodies[-1].name}.x"}),),
        actuators=(al.Actuator("motor", first, 0, 3.0, (-1.0, 1.0)),),
        sensors=(al.Sensor("gyro", "gyro", tree.bodies[-1].name),),
        visuals=tuple(
            al.Visual(shape, color=(0.1, 0.2, 0.3, 1.0))
            for shape in (
                al.Box((1.0, 2.0, 3.0)),
                al.Sphere(1.0),
                al.Ellipsoid((1.0, 2.0, 3.0)),
                al.Cylinder(1.0, 2.0),
                al.Capsule(1.0, 2.0),
                al.Mesh("shape.obj"),
            )
        ),
    )


def changed(value):
    """The value in all ways that differ in one leaf (a number, a name, ...), by the path of the leaf."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            for path, other in changed(getattr(value, field.name)):
                result = copy.copy(value)
                object.__setattr__(result, field.name, other)
                result.__dict__.pop("fingerprint", None)
                yield f".{field.name}{path}", result
    elif isinstance(value, tuple):
        for k, entry in enumerate(value):
            for path, other in changed(entry):
                yield f"[{k}]{path}", (*value[:k], other, *value[k + 1 :])
        yield "[:-1]", value[:-1] if value else ("one more",)
    elif isinstance(value, float):
        yield "", np.nextafter(value, 7.0).item()
    elif isinstance(value, bool | None):
        yield "", not value
    elif isinstance(value, int):
        yield "", value + 1
    elif isinstance(value, str):
        yield "", value + "'"
    else:
        assert isinstance(value, al.Expression)
        yield "", value + 1.0


def test_every_leaf_of_a_model_counts():
    model = everything()
    found = {fingerprint(model): "the model itself"}
    kinds = set()
    for path, other in changed(model):
        kinds.add(path.rpartition(".")[2])
        assert found.setdefault(fingerprint(other), path) == path
    assert len(found) > 1000
    assert {"mass", "com[2]", "axis[0]", "quaternion[3]", "gear", "kind", "formulas[0]", "color[3]"} <= kinds


def test_order_counts():
    model = everything()
    for field in ("bodies", "joints", "frames", "parameters", "visuals"):
        items = getattr(model, field)
        assert len(items) > 1
        assert fingerprint(dataclasses.replace(model, **{field: items[::-1]})) != model.fingerprint


def test_numbers_count_with_all_their_bits_and_their_kind():
    values = [
        0.0,
        -0.0,
        1.0,
        1,
        True,
        None,
        False,
        0,
        np.nan,
        np.inf,
        -np.inf,
        5e-324,
        "1.0",
        "",
        (),
        ((),),
        (1.0,),
    ]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(float("nan")) == digest(float("nan"))


def test_nesting_counts():
    values = [
        (1.0, 2.0, 3.0),
        ((1.0, 2.0), (3.0,)),
        ((1.0,), (2.0, 3.0)),
        ((1.0, 2.0, 3.0),),
        ((1.0,), (2.0,), (3.0,)),
        ("ab", "c"),
        ("a", "bc"),
        ("a", "b", "c"),
        ("a', 'b", "c"),
        (1.0, "a", 2.0),
        (1.0, 2.0, "a"),
        ("a", 1.0, 2.0),
        (al.Sphere(1.0), al.Box((1.0, 1.0, 1.0))),
        (al.Box((1.0, 1.0, 1.0)), al.Sphere(1.0)),
        (al.Cylinder(1.0, 2.0),),
        (al.Capsule(1.0, 2.0),),
    ]
    for a, b in itertools.combinations(values, 2):
        assert digest(a) != digest(b), (a, b)


# --- joints of users --------------------------------------------------------------------------------------------

CRANK = """
from dataclasses import dataclass
import alembert as al
from alembert.joints.joint import ANGLE, JointType, rotation_about
from alembert.spatial.arrays import cos, sin, vector

PHASE = 0.0

def offset(q):
    return q[0] + PHASE

class Base(JointType):
    @property
    def coordinates(self):
        return (("angle", ANGLE),)

@dataclass(frozen=True)
class Crank(Base):
    kind = "crank"
    radius: float = 0.1

    def placement(self, q):
        c, s = cos(offset(q)), sin(offset(q))
        return al.Pose(rotation_about((0.0, 0.0, 1.0), c, s), vector(self.radius * c, self.radius * s, 0 * c))
"""


def crank(source, monkeypatch):
    """A model with the user's joint, and the masses that it shows."""
    module = types.ModuleType("cranks")
    monkeypatch.setitem(sys.modules, "cranks", module)
    exec(compile(source, "cranks.py", "exec"), vars(module))
    builder = al.ModelBuilder("crank")
    builder.body("pin", al.Inertia.point(2.0), joint=module.Crank(0.5))
    return builder.build()


def test_the_code_of_a_users_joint_counts(monkeypatch):
    before = crank(CRANK, monkeypatch)
    assert crank(CRANK, monkeypatch) == before
    for old, new in (
        ("self.radius * c", "2.0 * self.radius * c"),  # a method
        ("PHASE = 0.0", "PHASE = 0.1"),  # what a function that it calls reads
        ("q[0] + PHASE", "q[0] - PHASE"),  # a function that it calls
        ('"angle", ANGLE', '"turn", ANGLE'),  # a property of what it is derived from
        ('kind = "crank"', 'kind = "cranky"'),
    ):
        assert old in CRANK
        assert crank(CRANK.replace(old, new), monkeypatch) != before, new


def test_an_edited_joint_does_not_find_the_old_machine_code(monkeypatch):
    """The mass that a pin on a circle shows is m r^2, and its machine code is kept between processes."""
    for factor in (1.0, 2.0):
        source = CRANK.replace("self.radius", f"{factor} * self.radius")
        M = crank(source, monkeypatch).mass_matrix([0.3])
        assert np.allclose(M, 2.0 * (0.5 * factor) ** 2, rtol=1e-14)


def test_a_joint_that_does_what_nobody_can_tell_is_itself_alone(monkeypatch):
    source = CRANK.replace("PHASE = 0.0", "import threading\nPHASE = threading.Lock()")
    with pytest.raises(ArgumentError, match="needs to know what"):
        meaning(type(crank(source, monkeypatch).joints[0].type))
    one, other = crank(source, monkeypatch), crank(source, monkeypatch)
    assert one.fingerprint != other.fingerprint
    assert one == one.replace(name=one.name)
