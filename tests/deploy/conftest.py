"""Models that several tests export."""

import pytest

import alembert as al


@pytest.fixture(scope="session")
def crank():
    """A crank that turns round, a rocker, and a wheel that a gear couples to the crank; with its start."""
    builder = al.ModelBuilder("crank", gravity=(0, -9.81, 0))
    for name, length, parent, place in (
        ("crank", 0.4, "world", (0, 0, 0)),
        ("coupler", 1.1, "crank", (0.4, 0, 0)),
        ("rocker", 0.9, "world", (1.0, 0, 0)),
    ):
        builder.body(
            name,
            al.Inertia.rod(1.0, (0, 0, 0), (length, 0, 0)),
            joint=al.Revolute((0, 0, 1)),
            joint_name=name,
            parent=parent,
            placement=place,
        )
    builder.body("wheel", al.Inertia.sphere(1.0, 0.2), joint=al.Revolute((0, 0, 1)), joint_name="wheel")
    builder.frame("end", "coupler", (1.1, 0, 0)).frame("head", "rocker", (0.9, 0, 0))
    builder.loop("pin", al.Revolute((0, 0, 1)), "head", "end")
    model = builder.build().replace(couplings=(al.Coupling("gear", "wheel", ("crank",), (-2.0,)),))
    q = model.assemble([0.3, 0.5, 1.5, -0.6], fixed=["crank"]).q
    v = model.project(q, [9.0, -4.0, 1.0, -18.0]).v
    return model, {"q0": q, "v0": v}
