"""Loads in sections of beams come from the equilibrium of the part beyond: weight, inertia, what hangs there, loops."""

import dataclasses

import numpy as np
import pytest

import alembert as al
from alembert.flexible import beam, section_loads

NODES = {"root": 0.0, "0.3": 0.3, "0.9": 0.9, "tip": 1.0}


def stiff_beam(builder: al.ModelBuilder, **options) -> al.Model:
    """A beam of 2 m and 0.5 kg/m with a point mass of 0.7 kg at its tip."""
    body = beam(2.0, 0.5, EI_y=100.0, EI_z=300.0, bending_z=2, bending_y=1, **options)
    builder.body("beam", body, joint=al.Revolute((0, 0, 1)), joint_name="shaft")
    builder.body("load", al.Inertia.point(0.7), joint=al.Fixed(), parent="beam", node="tip")
    builder.frame("tip", "beam", node="tip")
    return builder.build()


@pytest.fixture(scope="module")
def spinning():
    return stiff_beam(al.ModelBuilder("spinning", gravity=(0, 0, -9.81)))


@pytest.mark.parametrize("node", NODES)
def test_weight_tension_and_inertia_of_the_part_beyond(spinning, node):
    """Undeformed: all of it in closed form, by integrals along the beam."""
    L, rho, m, g, rate, speeding = 2.0, 0.5, 0.7, 9.81, 3.0, 5.0
    x = L * NODES[node]
    q, v, a = (
        np.zeros(spinning.nq),
        spinning.velocity({"shaft": rate}),
        spinning.velocity({"shaft": speeding}),
    )
    found = section_loads(spinning, q, v, a, "beam", node)
    beyond = rho * (L - x) + m
    first = rho * (L**2 - x**2) / 2 + m * L  # int s dm
    arm = rho * (L - x) ** 2 / 2 + m * (L - x)  # int (s - x) dm
    second = rho * ((L**3 - x**3) / 3 - x * (L**2 - x**2) / 2) + m * L * (L - x)  # int s (s - x) dm
    expected = [0.0, g * arm, -speeding * second, rate**2 * first, -speeding * first, -g * beyond]
    np.testing.assert_allclose(found, expected, atol=1e-9)  # quadrature is exact; digits of numbers up to 30


def test_arms_are_those_of_the_bent_beam(spinning):
    """A force along the beam bends it further by its arm, the deflection: P times what the part beyond is displaced."""
    q = np.zeros(spinning.nq)
    q[1:] = [2e-3, 3e-3, -1e-3]
    rest = np.zeros(spinning.nv)
    body = spinning.body("beam").flexible
    R = spinning.frame_pose(q, "tip").rotation
    push = np.concatenate([np.zeros(3), R.T @ [-50.0, 0, 0]])
    for node in ("root", "0.3"):
        pair = [
            section_loads(spinning, q, rest, rest, "beam", node, wrenches={"tip": w})
            for w in (push, 0 * push)
        ]
        moved = q[1:] @ (body.node_array("tip", "shapes") - body.node_array(node, "shapes"))
        moment = (pair[0] - pair[1])[:3]
        # in the axes of the section, whose slopes of 1e-3 turn 0.15 N m by 1e-4
        np.testing.assert_allclose(moment, np.cross(moved, [-50.0, 0, 0]), atol=2e-4)


def test_levels_and_parameters_give_the_same(spinning):
    """On every level, and of beams of expressions."""
    q, v = np.zeros(spinning.nq), spinning.velocity({"shaft": 3.0})
    expected = section_loads(spinning, q, v, 0 * v, "beam", "0.3")
    for level in ("inconsistent", "ruthless"):
        model = al.flexible.with_stiffening(spinning, level)
        np.testing.assert_allclose(section_loads(model, q, v, 0 * v, "beam", "0.3"), expected, atol=1e-9)
    builder = al.ModelBuilder("named", gravity=(0, 0, -9.81))
    L, EI = builder.parameter("L", 1.0), builder.parameter("EI", 100.0)
    body = beam(L, 0.5, EI_y=EI, EI_z=300.0, bending_z=2, bending_y=1)
    builder.body("beam", body, joint=al.Revolute((0, 0, 1)), joint_name="shaft")
    builder.body("load", al.Inertia.point(0.7), joint=al.Fixed(), parent="beam", node="tip")
    named = section_loads(builder.build(), q, v, 0 * v, "beam", "0.3", parameters={"L": 2.0})
    np.testing.assert_allclose(named, expected, atol=1e-6)  # shapes of the beam of unit length, to 1e-9 of 50


def test_no_moment_at_hinges_of_a_rod_in_a_loop():
    """A slider-crank: the load at the end of the rod is the reaction there, and hinges carry no moment."""
    builder = al.ModelBuilder("slider-crank")
    crank = al.Inertia.rod(0.5, (0, 0, 0), (0.2, 0, 0))
    builder.body("crank", crank, joint=al.Revolute((0, 0, 1)), joint_name="shaft")
    rod = beam(0.5, 0.6, EI_z=20.0, ends="craig-bampton")
    pin = {"joint": al.Revolute((0, 0, 1)), "joint_name": "pin", "parent": "crank", "placement": (0.2, 0, 0)}
    builder.body("rod", rod, **pin)
    builder.body("slider", al.Inertia.point(0.3), joint=al.Prismatic((1, 0, 0)), joint_name="slide")
    builder.frame("end", "rod", node="tip")
    builder.loop("wrist", al.Revolute((0, 0, 1)), "end", "slider")
    model = builder.build()
    start = model.assemble(
        model.configuration({"shaft": 0.6, "slide": 0.6}), model.velocity({"shaft": 8.0}), fixed=["shaft"]
    )
    spring = al.simulate.SpringDamper("world", "end", stiffness=5.0)
    run = al.simulate(model, start.q, start.v, duration=0.1, interval=0.02, forces=[spring])
    tip, root = (run.channel(f"section:rod.{node}").values for node in ("tip", "root"))
    bent = np.abs(run.channel("rod").values).max()
    forces = np.linalg.norm(tip[:, 3:], axis=1)
    assert np.abs(tip[:, 2]).max() < 1e-9 * forces.max()
    # second order: forces times deflection squared over length
    assert np.abs(root[:, 2]).max() < 3 * forces.max() * bent**2 / 0.5 + 1e-9
    assert np.abs(run.channel("rod").values @ rod.node_array("tip", "loads"))[:, 2].max() > 0.02  # by strains
    # of the joint and of the spring, at the same place
    where = np.stack([model.frame_pose(q, "end").translation for q in run.q])
    turn = np.stack([model.frame_pose(q, "end").rotation for q in run.q])
    reaction = run.channel("reaction:wrist").values[:, 3:]  # on the slider, whose axes are those of the world
    total = np.einsum("kij,kj->ki", turn, tip[:, 3:]) + reaction + 5.0 * where
    assert np.abs(total).max() < 1e-8 * forces.max()

    # of a state: the reactions are found, not asked for, and efforts are not taken for reactions
    push, turning = {"end": [0.0, 0.0, 0.0, 1.0, 2.0, 0.0]}, model.velocity({"shaft": 0.5})
    driven = al.simulate(
        model, start.q, start.v, duration=0.04, interval=0.02, efforts=turning, wrenches=push
    )
    expected = driven.channel("section:rod.0.5").values
    motion = driven.q, driven.v, driven.accelerations, "rod", "0.5"
    found = section_loads(model, *motion, tau=turning, wrenches=push)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    for given in ({"tau": turning}, {"wrenches": push}):
        with pytest.raises(al.ArgumentError, match="no reactions of the constraints balance this motion"):
            section_loads(model, *motion, **given)


@pytest.fixture(scope="module")
def loaded():
    """A cantilever with a load at its tip."""
    builder = al.ModelBuilder("loaded")
    load = builder.parameter("load", 1.0)
    builder.body("boom", beam(2.0, 1.0, EI_y=1000.0, bending_z=2), joint=al.Fixed())
    builder.body("load", al.Inertia.point(load), joint=al.Fixed(), parent="boom", node="tip")
    return builder.build()


def test_runs_with_parameters_have_sections(loaded):
    given = {"load": 3.0}
    run = al.simulate(loaded, duration=0.02, interval=0.01, step=0.01, integrator="rk4", parameters=given)
    found, strain = run.channel("section:boom.0.5").values, run.channel("strain_energy:boom").values[:, 0]
    expected = section_loads(loaded, run.q, run.v, run.accelerations, "boom", "0.5", parameters=given)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)  # the same equations, by two ways
    K = loaded.body("boom").flexible.array("stiffness", given)
    np.testing.assert_allclose(strain, np.einsum("ki,ij,kj->k", run.q, K, run.q) / 2)


def test_efforts_that_act_nobody_knows_where_are_refused(loaded):
    push = loaded.frame_jacobian(loaded.neutral(), "load", reference="local_world_aligned")[5]
    run = al.simulate(loaded, duration=0.01, step=0.01, integrator="rk4", controller=lambda t, q, v: push)
    with pytest.raises(
        al.UnsupportedError, match=r"section:boom\.0\.5 and efforts on the modes of 'boom' do not go together"
    ):
        run.channel("section:boom.0.5")


def test_bodies_without_mass_beyond_give_strains():
    boom = beam(1.0, 1.0, EI_z=2.0, bending_y=1)
    nodes = tuple(dataclasses.replace(node, beyond=None) for node in boom.nodes)
    builder = al.ModelBuilder("old", gravity=(0, 0, 0))
    builder.body("boom", dataclasses.replace(boom, nodes=nodes), joint=al.Fixed())
    model = builder.build()
    run = al.simulate(model, [0.01], duration=0.01, interval=0.01, step=0.01)
    expected = run.q @ boom.node_array("0.5", "loads")
    np.testing.assert_allclose(run.channel("section:boom.0.5").values, expected)
    with pytest.raises(al.ArgumentError, match=r"body 'boom' has no section '0\.5'"):
        section_loads(model, [0.0], [0.0], [0.0], "boom", "0.5")
    with pytest.raises(al.ArgumentError, match="no flexible body 'bom'; did you mean 'boom'"):
        section_loads(model, [0.0], [0.0], [0.0], "bom", "0.5")
    with pytest.raises(al.ArgumentError, match=r"parameter 'EI' has shape \(2,\), expected a number"):
        section_loads(model, [0.0], [0.0], [0.0], "boom", "root", parameters={"EI": np.ones(2)})
