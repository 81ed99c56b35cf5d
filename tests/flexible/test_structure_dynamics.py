"""Linear dynamics of structures: responses, Campbell diagrams, loss of stability, absorbers, maps of gains."""

import matplotlib as mpl
import numpy as np
import pytest
import scipy.linalg
from structures import TUBE, straight

import alembert as al

fl = al.flexible
mpl.use("agg")


def two_masses(damping=0.02):
    K = np.array([[2.0, -1.0], [-1.0, 1.0]])
    return al.control.SecondOrder(
        np.eye(2), damping * K, K, [[1.0], [0.0]], np.eye(2), np.eye(2), ["u"], ["first", "second"]
    )


def test_responses_of_many_unknowns_come_from_few_modes():
    fe = straight(20)
    w = np.linspace(0.1, 30.0, 40)
    forces, sensors = {"tip": (20, "y")}, {"middle": (10, "y rz")}
    few = fl.structure_response(fe, forces, sensors, w, held=0, modes=6, damping_ratio=0.01)
    free, _ = fe.held(fe.unknowns(0))
    K, M = (A[free][:, free].toarray() for A in (fe.K, fe.M))
    f = np.zeros(fe.size)
    f[fe.unknowns(20, "y")] = 1.0
    # undamped, by the whole: below the first frequencies, where damping of 1 % does not show
    at = np.abs(w[:, None] - np.array([3.516, 22.03])).min(axis=1) > 2
    exact = np.array(
        [np.linalg.solve(K - x**2 * M, f[free])[np.isin(free, fe.unknowns(10, "y"))] for x in w[at]]
    )
    found = few.response[at, 0, 0]
    # the first modes left out are at 61.7 rad/s and above: (30/61.7)^2 of their small static part, and damping
    np.testing.assert_allclose(found.real, exact[:, 0], atol=2e-2 * np.abs(exact).max())
    assert few.output_names == ("middle_y", "middle_rz")
    for call, message in (
        (lambda: fl.structure_response(fe, {}, sensors, w, held=0), "no forces or no sensors"),
        (lambda: fl.structure_response(fe, {"a": (1, "w")}, sensors, w, held=0), "'a' has no direction 'w'"),
        (
            lambda: fl.structure_response(fe, forces, sensors, w, held=0, damping_ratio=-1),
            "damping_ratio is -1",
        ),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()


def test_second_order_systems_answer_alike_by_either_way():
    # not modal: a damper at one place
    fe = straight(8, planar=True)
    free, _ = fe.held(fe.unknowns(0))
    M, K = (A[free][:, free].toarray() for A in (fe.M, fe.K))
    n = len(M)
    D = 1e-3 * K
    D[-2, -2] += 0.3
    G = al.control.SecondOrder(M, D, K, np.eye(n)[:, [-2]], np.eye(n)[[-2]])
    w = np.linspace(0.5, 50.0, 400)
    both = G.frequency_response(w).response[::57], G.frequency_response(w[::57]).response
    np.testing.assert_allclose(*both, rtol=1e-6)  # poles to rounding times the condition of M, 1e6
    undamped = al.control.SecondOrder(
        np.eye(2), 1e-9 * np.array([[0, 1.0], [-1, 0]]), np.diag([4.0, 4.0]), np.eye(2), np.eye(2)
    )
    assert np.isfinite(undamped.frequency_response([1.0]).response).all()


def hub(modes=3):
    builder = al.ModelBuilder("hub", gravity=(0, 0, 0))
    body = fl.beam(1.0, 1.0, EI_y=1.0, EI_z=1.0, bending_y=modes, bending_z=modes)
    builder.body("blade", body, joint=al.Revolute((0, 0, 1)), joint_name="shaft")
    return builder.build()


def test_a_campbell_diagram(tmp_path):
    model = hub()
    found = fl.campbell(model, "shaft", np.linspace(0.0, 12.0, 7), modes=3)
    lag, flap = found.frequencies[:, 0], found.frequencies[:, 1]
    np.testing.assert_allclose(
        lag**2, flap**2 - found.rates**2, rtol=1e-6, atol=1e-6
    )  # planes of equal stiffness
    assert found.unstable_from is None
    assert len(found.critical_rates(1.0)) == 1  # lag, near 4 rad/s; flap is always faster than the rate
    assert 3.5 < found.critical_rates(1.0)[0] < 4.5
    assert found.plot(path=tmp_path / "campbell.png").axes
    soft = fl.with_stiffening(model, "inconsistent")
    assert fl.campbell(soft, "shaft", [0.0, 3.0, 4.0]).unstable_from == 4.0  # past 3.516 rad/s


def test_modes_are_followed_through_a_crossing():
    """Flap of a blade that is soft out of the plane grows past its lag."""
    builder = al.ModelBuilder("blade", gravity=(0, 0, 0))
    hub = al.Inertia(1.0, (0, 0, 0), (1.0, 0, 1.0, 0, 0, 1.0))
    builder.body("hub", hub, joint=al.Revolute((0, 0, 1)), joint_name="shaft")
    blade = fl.beam(1.0, 1.0, EI_y=1.0, EI_z=4.0, bending_y=2, bending_z=2)
    builder.body("blade", blade, joint=al.Fixed(), parent="hub")
    model = builder.build()
    rates = np.linspace(0.0, 12.0, 7)
    found, sorted_ = (fl.campbell(model, "shaft", rates, tracked=x) for x in (True, False))
    flap = [model.speed_names.index(f"blade.bending_z_{k}") for k in (1, 2)]
    assert np.abs(found.shapes[:, 0, flap]).max(axis=1) == pytest.approx(1.0)  # one mode all the way
    lag = np.delete(np.arange(model.nv), flap)
    assert np.abs(found.shapes[:, 0, lag]).max() < 1e-9
    assert found.resemblance.min() > 0.99
    assert found.frequencies[-1, 0] > found.frequencies[-1, 1] + 4
    assert (np.diff(sorted_.frequencies, axis=1) > 0).all()
    np.testing.assert_allclose(np.sort(found.frequencies, axis=1), sorted_.frequencies, atol=1e-9)
    assert sorted_.resemblance.min() < 1e-9


def test_a_whirl_is_followed_where_the_rate_overtakes_it():
    """A thin shaft: w0 + W and w0 - W as seen from it, the latter on the other side of zero from W = w0 on."""
    builder = al.ModelBuilder("rotor", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(1.0, (1, 1, 1)), joint=al.Revolute((1, 0, 0)), joint_name="spin")
    rod = fl.beam(1.0, 1.0, EI_y=100.0, EI_z=100.0, bending_y=2, bending_z=2)
    builder.body("rod", rod, joint=al.Fixed(), parent="hub")
    model = builder.build()
    w0 = 10 * 1.8751040687119612**2
    for rates in (np.linspace(0, 60, 7), np.linspace(0, 2 * w0, 5), np.linspace(0, 120, 41)):
        found = fl.campbell(model, "spin", rates, modes=2)
        signed = np.sort(found.poles.imag, axis=1)
        np.testing.assert_allclose(signed, np.column_stack([w0 - rates, w0 + rates]), atol=1e-5)
        back = found.poles.imag[:, int(found.poles.imag[-1, 1] < found.poles.imag[-1, 0])]
        np.testing.assert_allclose(back, w0 - rates, atol=1e-5)  # one column all the way
        assert found.resemblance[2:].min() > 0.99  # at rest the plane of a mode is any
        assert found.critical_rates(0.0) == pytest.approx([w0])  # unbalance
        assert found.critical_rates(1.0) == pytest.approx([w0 / 2])  # a load that stands still
    with pytest.raises(al.ArgumentError, match=r"rates have shape \(0,\)"):
        fl.campbell(model, "spin", [])


def shaft(held, EI_z=1.0):
    """A beam of length 1 that turns about its axis, with rotary inertia, in a bearing at its root; `held` adds the other."""
    builder = al.ModelBuilder("shaft", gravity=(0, 0, 0))
    spindle = al.Inertia(1.0, (0, 0, 0), (1.0, 0, 1.0, 0, 0, 1.0))
    builder.body("spindle", spindle, joint=al.Revolute((1, 0, 0)), joint_name="spin")
    modes = {"bending_y": 3, "bending_z": 3, "ends": "craig-bampton"}
    body = fl.beam(1.0, 1.0, EI_y=1.0, EI_z=EI_z, rhoI_y=0.01, rhoI_z=0.01, **modes)
    bearing = al.Universal((0, 1, 0), (0, 0, 1))
    builder.body("shaft", body, joint=bearing, joint_name="bearing", parent="spindle")
    builder.frame("end", "shaft", node="tip")
    held(builder)
    return builder.build()


def test_a_shaft_in_two_bearings():
    """Rayleigh: (1 + r^2 k^2) w^2 -+ 2 r^2 k^2 W w = EI k^4, forward and backward whirl; seen from the shaft, w -+ W."""
    rate, k, r2 = 4.0, np.pi, 0.01
    whirl = np.roots([1 + r2 * k**2, -2 * r2 * k**2 * rate, -(k**4)])
    forward, backward = whirl.max(), -whirl.min()
    for held in (
        lambda builder: builder.equation("far", ["y", "z"], {"y": "end.y", "z": "end.z"}),
        lambda builder: builder.loop("far", al.PointOnLine((1, 0, 0)), "world", "end"),
    ):
        found = fl.campbell(shaft(held), "spin", [0.0, rate], modes=2)
        # what three modes with both ends held leave is as much as at rest
        left = np.abs(found.frequencies[0] - k**2 / np.sqrt(1 + r2 * k**2)).max()
        assert left < 2e-4
        seen = np.sort(found.frequencies[1])
        np.testing.assert_allclose(seen, [forward - rate, backward + rate], atol=1.1 * left)
        assert np.abs(found.poles.real).max() < 1e-9
    # a shaft that is stiffer one way is unstable between its two critical rates, pi^2 and 2 pi^2 and more by rotary inertia
    flat = shaft(lambda builder: builder.loop("far", al.PointOnLine((1, 0, 0)), "world", "end"), EI_z=4.0)
    critical = k**2 / np.sqrt(1 - r2 * k**2)
    for at, grows in (
        (0.99 * critical, False),
        (1.01 * critical, True),
        (1.99 * critical, True),
        (2.01 * critical, False),
    ):
        assert (fl.campbell(flat, "spin", [at], modes=2).unstable_from is not None) == grows


def pair():
    """Two pendulums, the second on the first, on a slide; gravity across their axes."""
    builder = al.ModelBuilder("pair", gravity=(0, -9.81, 0))
    builder.body("sledge", al.Inertia.point(1.0), joint=al.Prismatic((0, 0, 1)), joint_name="slide")
    for name, parent in (("a", "sledge"), ("b", "a")):
        inertia = al.Inertia.point(1.0, (1, 0, 0))
        builder.body(name, inertia, parent=parent, joint=al.Revolute((0, 0, 1)), joint_name=f"{name}_joint")
    return builder


def test_bad_campbell_diagrams_are_refused():
    model = hub(1)
    free = al.ModelBuilder("free", gravity=(0, 0, 0)).body(
        "a", al.Inertia.point(1.0), joint=al.Free(), joint_name="j"
    )
    pendulum = al.library.pendulum()
    for call, message in (
        (lambda: fl.campbell(free.build(), "j", [1.0]), "has 6 speeds"),
        (lambda: fl.campbell(model, "shaft", [np.nan]), "expected finite numbers"),
        (lambda: fl.campbell(pendulum, pendulum.joints[0].name, [1.0]), "nothing but the joint moves"),
        (lambda: fl.campbell(model, "shaft", [1.0], modes=-1), "modes is -1, expected a number of modes"),
        (lambda: fl.campbell(pair().build(), "slide", [1.0]), "'slide' does not turn"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()
    with pytest.raises(al.UnsupportedError, match="gravity is not along the axis"):
        fl.campbell(pair().build(), "a_joint", [1.0])
    coupled, equal = pair(), pair()
    coupled.coupling("gear", "a_joint", ["b_joint"], [2.0])
    equal.equation("same", formulas=["x - y"], inputs={"x": "a_joint", "y": "b_joint"})
    for builder in (coupled, equal):
        with pytest.raises(
            al.UnsupportedError, match="do not let 'a_joint' turn alone, or change as it turns"
        ):
            fl.campbell(builder.build(), "a_joint", [1.0])
    with pytest.raises(al.UnsupportedError, match="do not let 'spin' turn alone, or change as it turns"):
        fl.campbell(shaft(lambda builder: builder.equation("hook", "y", {"y": "end.y"})), "spin", [1.0])


def test_stability_is_lost_by_divergence_or_flutter():
    def column(p, follows=0.0):
        K = np.diag([4.0, 9.0]) - p * np.array([[1.0, follows], [-follows, 0.0]])
        return al.control.SecondOrder(np.eye(2), np.zeros((2, 2)), K, np.eye(2), np.eye(2))

    buckles = fl.stability_boundary(column, 0.0, 10.0)
    assert buckles.kind == "divergence"
    assert buckles.value == pytest.approx(4.0, rel=1e-4)  # growth counts from 1e-5 of the frequency
    # (5 + p)^2 = 4 (2 p)^2 of the frequencies' squares that meet
    flutters = fl.stability_boundary(lambda p: column(p, 2.0), 0.0, 10.0)
    assert flutters.kind == "flutter"
    assert flutters.value == pytest.approx(5 / 3, rel=1e-4)
    assert fl.stability_boundary(column, 0.0, 3.0) is None
    for call, message in (
        (lambda: fl.stability_boundary(column, 5.0, 6.0), "unstable at 5 already"),
        (lambda: fl.stability_boundary(column, 1.0, 0.0), "from 1.0 to 0.0"),
        (lambda: fl.stability_boundary(lambda p: p, 0.0, 1.0), "is float, expected a SecondOrder"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()


def test_rigid_motions_are_no_instability():
    """A free chain of masses whose dampers turn negative at p = 5: poles at zero, to rounding, do not grow."""
    n = 12
    L = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    L[0, 0] = L[-1, -1] = 1.0
    M, K = np.diag(np.linspace(1.0, 2.0, n)), 1e4 * L
    found = fl.stability_boundary(
        lambda p: al.control.SecondOrder(M, (5 - p) * L, K, np.eye(n), np.eye(n)), 0.0, 8.0
    )
    assert found.kind == "flutter"
    assert found.value == pytest.approx(5.0, abs=0.02)  # growth of 1e-5 of a frequency of 200 counts


def test_a_free_rod_under_thrust_flutters():
    """Beal (1965): at 11.12 pi^2 EI / L^2; its fourfold poles at zero are no divergence."""
    n, P = 10, np.polynomial.legendre
    x, w = P.leggauss(2 * n)
    mixed = np.random.default_rng(0).normal(size=(n, n))  # else the rigid motions have zeros to the bit

    def field(order, at):
        c = np.eye(n)
        return mixed @ [2.0**order * P.legval(at, P.legder(c[k], order)) for k in range(n)]

    (y, slope, bend), w = (field(k, x) for k in range(3)), w / 2
    tip, turn = field(0, 1.0), field(1, 1.0)

    def rod(thrust):
        K = (bend * w) @ bend.T - thrust * ((slope * w * (x + 1) / 2) @ slope.T - np.outer(tip, turn))
        return al.control.SecondOrder((y * w) @ y.T, np.zeros((n, n)), K, np.eye(n), np.eye(n))

    with pytest.warns(
        al.AlembertWarning, match="rigid motions grow by up to .* rounding of loads that follow"
    ):
        found = fl.stability_boundary(rod, 0.0, 150.0, digits=5)
    assert found.kind == "flutter"
    assert found.value == pytest.approx(11.12 * np.pi**2, rel=1e-3)  # printed to four digits; nine shapes


def test_free_structures_respond():
    """Against all modes: rigid acceleration, ten modes and inertia relief of the others."""
    fe = straight(8, TUBE)
    tip, root = fe.unknowns(8, "y")[0], fe.unknowns(0, "y")[0]
    w = np.array([5.0, 97.0, 300.0, 700.0])
    found = fl.structure_response(fe, {"f": (8, "y")}, {"a": (8, "y"), "b": (0, "y")}, w, held=None, modes=10)
    squares, V = scipy.linalg.eigh(fe.K.toarray(), fe.M.toarray())
    squares[:6] = 0.0
    poles = squares - w[:, None] ** 2 + 0.01j * np.sqrt(squares) * w[:, None]
    for k, at in enumerate((tip, root)):
        np.testing.assert_allclose(found.response[:, k, 0], (V[at] * V[tip] / poles).sum(axis=1), rtol=1e-4)
    for frequency in ([0.0, 1.0], [np.nan], [-1.0]):
        with pytest.raises(al.ArgumentError, match=r"frequency is .* above zero for a structure that floats"):
            fl.structure_response(fe, {"f": (8, "y")}, {"a": (8, "y")}, frequency, held=None)
    with pytest.raises(al.ArgumentError, match=r"frequency is .* none below zero"):
        fl.structure_response(fe, {"f": (8, "y")}, {"a": (8, "y")}, [-1.0], held=0)


@pytest.mark.parametrize(
    "ground",
    [
        {"fixed": [0]},
        {"springs": [fl.NodeSpring(0, None, (1e4, 1e4, 1e4, 1e2, 1e2, 1e2))]},
        {"springs": [fl.NodeSpring(0, None, (1.0, 1.0, 1.0, 1e-2, 1e-2, 1e-2))]},
        {"springs": [fl.NodeSpring(4, None, (0.0, 1e4, 0.0, 0.0, 0.0, 0.0))]},
    ],
    ids=["clamped", "on springs", "on soft springs", "held along y"],
)
def test_what_grounds_a_framework_holds_it(ground):
    """Fixed nodes and springs, soft as they may be, hold the structure where no further node is: modes, responses and
    residual modes against the whole matrices."""
    fe = straight(8, TUBE, **ground)
    squares, V = scipy.linalg.eigh(fe.K.toarray(), fe.M.toarray())
    floats = fe.floating.shape[1]
    assert (np.abs(squares) < 1e-4).sum() == floats
    kept = fl.normal_modes(fe, 6)
    np.testing.assert_allclose(fl.frequencies(fe, kept), np.sqrt(squares[floats : floats + 6]), rtol=1e-5)
    w = np.array([7.0, 97.0, 300.0])
    found = fl.structure_response(
        fe, {"f": (8, "x y")}, {"a": (8, "x y"), "b": (4, "x y")}, w, held=None, modes=12
    )
    at, F = np.r_[fe.unknowns(8, "x y"), fe.unknowns(4, "x y")], fe.unknowns(8, "x y")
    squares[:floats] = 0.0
    for k, x in enumerate(w):
        gains = 1 / (squares - x**2 + 0.01j * np.sqrt(squares) * x)
        np.testing.assert_allclose(found.response[k], (V[at] * gains) @ V[F].T, rtol=1e-3, atol=1e-12)
    residual = fl.residual_modes(fe, {"f": (8, "x y")}, kept).shapes
    rest = slice(floats + 6, None)
    np.testing.assert_allclose(residual, (V[:, rest] / squares[rest]) @ V[F][:, rest].T, atol=1e-12)
    with pytest.raises(al.ModelError, match="the structure is held to ground, its motion along"):
        fl.structure_body(fe, kept, attachment=4)
    again = fl.FiniteElements.of_matrices(
        fe.M, fe.K, fe.positions, fe.dofs, names=fe.names, rounding=fe.rounding
    )
    assert again.floating.shape[1] == floats


def test_a_proof_mass_is_a_body_on_a_spring():
    plain = two_masses()
    k, c = fl.tuned_absorber(0.618, 0.5, 0.1, rule="minas", housing=0.05)
    system = fl.with_proof_mass(plain, 1, 0.1, k, c, housing=0.05)
    assert system.size == 3
    np.testing.assert_allclose(system.M, np.diag([1.0, 1.05, 0.1]))
    np.testing.assert_allclose(system.K[1:, 1:], [[1 + k, -k], [-k, k]])
    np.testing.assert_allclose(system.F[:, 1], [0, 1, -1])
    np.testing.assert_allclose(fl.with_proof_mass(plain, [0, 1.0], 0.1, k, c, housing=0.05).K, system.K)
    assert system.input_names == ("u", "proof_mass")
    mu, mu_t = 0.1 * 0.25, 0.05 * 0.25
    assert k == pytest.approx(0.1 * 0.618**2 * (1 + mu_t) / (1 + mu_t + mu) ** 2)
    assert c == pytest.approx(0.1 * 0.618 * np.sqrt(mu * (1 + mu_t) / (1 + mu_t + mu) ** 3))
    assert fl.tuned_absorber(2.0, 1.0, 0.1, rule="equal") == (pytest.approx(0.4), 0.0)
    for call, message in (
        (lambda: fl.tuned_absorber(1.0, 1.0, 0.1, rule="best"), "rule is 'best'"),
        (lambda: fl.tuned_absorber(0.0, 1.0, 0.1), "frequency is 0.0"),
        (lambda: fl.with_proof_mass(plain, 7, 0.1, 1.0), "place 7 of 2 positions"),
        (lambda: fl.with_proof_mass(plain, 0, 0.1, -1.0), "expected none negative"),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()


def test_maps_of_gains(tmp_path):
    system = fl.with_proof_mass(two_masses(), 0, 0.1, 0.05, 0.05)
    gains = np.linspace(-0.5, 0.5, 5)
    found = fl.stability_map(system, gains, gains, outputs=["first", "second"], control="proof_mass")
    assert found.stable[2, 2]
    # a cell by the poles of the closed loop in first order; outputs are displacement and speed of each mass added
    b, g = system.F[:, [1]], np.array([[gains[0], gains[3]]])
    closed = al.control.SecondOrder(
        system.M, system.D - b @ g @ system.C_v, system.K - b @ g @ system.C_q, b, system.C_q
    )
    assert found.growth[0, 3] == pytest.approx(closed.poles().real.max(), abs=1e-9)
    assert found.growth.min() == found.growth[[*gains].index(found.best[0]), [*gains].index(found.best[1])]
    assert found.plot(path=tmp_path / "map.png").axes
    for call, message in (
        (
            lambda: fl.stability_map(system, gains, gains, outputs=["first"], control="u"),
            "1 outputs, expected two",
        ),
        (lambda: fl.stability_map(system, gains, gains, outputs=["x", "y"], control="u"), "no output 'x'"),
        (
            lambda: fl.stability_map(system, gains, gains, outputs=["first", "second"], control="w"),
            "no input 'w'",
        ),
    ):
        with pytest.raises(al.ArgumentError, match=message):
            call()


def test_reduction_for_a_band_of_frequencies():
    own, zeta = np.array([1.0, 10.0, 100.0]), 0.01
    rng = np.random.default_rng(0)
    T = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    K, D = T @ np.diag(own**2) @ T.T, T @ np.diag(2 * zeta * own) @ T.T
    F = T @ np.ones((3, 1))
    system = al.control.SecondOrder(np.eye(3), D, K, F, F.T)
    # all frequencies are those of the ordinary gramian: what is beyond 1e6 rad/s is (100/1e6) of it at most
    wide = system.position_singular_values(band=(0.0, 1e6))
    np.testing.assert_allclose(wide, system.position_singular_values(), rtol=1e-3, atol=1e-9)
    for center in own:
        # other modes have (bandwidth/separation) of their energy in the band, some percent of the one inside
        kept = system.reduced(1, band=(0.8 * center, 1.2 * center))
        assert np.sqrt(kept.K[0, 0] / kept.M[0, 0]) == pytest.approx(center, rel=0.05)
    with pytest.raises(al.ArgumentError, match="expected two frequencies, the first smaller"):
        system.reduced(1, band=(2.0, 1.0))
