"""Elements of Delta besides real parameters: unmodelled dynamics, sectors, saturations; Safonov's margin."""

import numpy as np
import pytest

from alembert import control
from alembert.control import (
    DeltaBlock,
    mu_peak,
    parameter,
    saturation,
    sector,
    stability_margin,
    tf,
    unmodelled,
)
from alembert.control.uncertain_systems import UncertainSystem, as_uncertain_system
from alembert.errors import ArgumentError

LAG = tf([1], [1, 1])


def test_dynamics_that_are_not_modelled():
    """Multiplicative uncertainty: G (1 + W d) with feedback is stable for |W T| < 1 (small gain), and mu says so."""
    G, W = tf([2], [1, 1, 0]), tf([0.5, 0.1], [0.05, 1])
    loop = (G * (1 + W * unmodelled("actuator"))).feedback(1.0)
    T = control.feedback(G, 1.0)
    assert isinstance(loop, UncertainSystem)
    assert [b.kind for b in loop.blocks] == ["complex"]
    # one complex block: mu is the gain itself
    assert loop.mu(tolerance=1e-4).peak == pytest.approx((W * T).hinf_norm().gain, rel=1e-4)
    # at a value the system is the one with that factor
    s = 0.7j
    factor = 1 + W.at(s) * 0.4
    expected = (G.at(s) * factor) / (1 + G.at(s) * factor)
    assert np.allclose(loop.at(actuator=0.4).at(s), expected, rtol=1e-12)


def test_algebra_of_systems_is_that_of_their_values():
    k = parameter("k", 1.0, 3.0)
    A = control.uncertain_system([[0, 1], [-k, -0.5]], [[0], [1]], [[1, 0]])
    B = LAG * unmodelled("d", radius=0.3)
    s, values = 0.3 + 0.8j, {"k": 1.4, "d": -0.2}
    a, b = A.at(k=1.4).at(s), B.at(d=-0.2).at(s)
    for made, expected in (
        (A * B, a * b),
        (A + B, a + b),
        (A - B, a - b),
        (2.0 - A, 2 - a),
        (LAG + A, LAG.at(s) + a),
        (LAG - A, LAG.at(s) - a),
        (A * LAG, LAG.at(s) * a),
        (LAG * k, LAG.at(s) * 1.4),
        (k * LAG, LAG.at(s) * 1.4),
        (A.feedback(B), a / (1 + a * b)),
        (A.feedback(LAG, sign=1), a / (1 - a * LAG.at(s))),
    ):
        known = {name: x for name, x in values.items() if name in made.matrix.copies}
        assert np.allclose(made.at(**known).at(s), expected, rtol=1e-10)
    assert dict((A + A).matrix.copies) == {"k": 2}
    assert "k (real)" in repr(A)
    assert "no elements" in repr(as_uncertain_system(LAG))


def test_full_elements_keep_their_size():
    d = unmodelled("d", size=2)
    U = np.array([[1.0, 0.5]]) @ d
    assert [(b.kind, b.rows) for b in (U + U).blocks] == [("full", 2)] * 2
    assert np.allclose(U.at(d=[[0.1, 0.2], [0.3, 0.4]]), [[0.25, 0.4]])
    assert not (0 * d).blocks
    with pytest.raises(ArgumentError, match=r"at: 'd' has shape \(3,\), expected a number or \(2, 2\)"):
        U.at(d=[1.0, 2.0, 3.0])


def test_the_circle_criterion():
    """u = -f(y) around 1/(s^2 + s + 1): Re G >= -1/3 where it is least, so that f within [0, 3) is absolutely stable.

    Re G(jw) = (1 - w^2)/((1 - w^2)^2 + w^2); with x = w^2 - 1 it is -x/(x^2 + x + 1), least at x = 1: -1/3.
    """
    G = tf([1], [1, 1, 1])
    for high, holds in ((2.9, True), (3.1, False)):
        loop = (G * sector("f", 0.0, high)).feedback(1.0)
        assert (loop.mu(tolerance=1e-3).upper < 1) == holds
    found = (G * sector("f", 0.0, 2.9)).feedback(1.0).mu()
    assert found.lower == 0
    assert found.delta is None


def test_several_nonlinearities_have_constant_scales():
    """Two loops in series that feed each other weakly: scales differ by 100, and no frequency may choose its own.

    With one constant ratio the bound is that of the geometric mean of the cross gains, |g12 g21|^(1/2), at the worst
    frequency: 0.3 here. Scales free at each frequency would say the same for this plant, and equal scales 100 times more.
    """
    M = control.append(LAG, LAG) * control.static([[0.0, 30.0], [0.003, 0.0]])
    blocks = [DeltaBlock("sector", name="a"), DeltaBlock("sector", name="b")]
    found = mu_peak(M, blocks, tolerance=1e-2)
    # Nelder-Mead stops within 1e-4 of the least
    assert found.upper == pytest.approx(0.3, rel=2e-2)
    told = control.mu_response(M, blocks, [0.0, 1.0])
    assert told.upper == pytest.approx([0.3, 0.3 / np.sqrt(2)], rel=1e-2)
    assert np.all(told.lower == 0)


def test_saturation_as_a_sector():
    """PI control of a lag with a saturated actuator; the local sector holds as long as arguments stay below its reach."""
    assert saturation("u", 1.0, reach=4.0).ranges["u"] == (0.25, 1.0)
    assert saturation("u").ranges["u"] == (0.0, 1.0)
    plant, K = tf([1], [1, 0.2, 1]), 4.0
    whole, local = ((plant * (K * saturation("u", reach=r))).feedback(1.0) for r in (np.inf, 3.0))
    # Re(4 G) >= -1 decides for all amplitudes, and fails; less of the sector is left for small ones
    assert whole.mu().upper > local.mu().upper
    low, high = (tf([1], [1, 2, 1]) * saturation("u", reach=2.0)).feedback(1.0).worst_gain(tolerance=5e-2)
    # from below the gain at the middle slope 3/4 is known; at the slope 1 it is 1/2 at rest: no bound can be lower
    assert low == pytest.approx(0.75 / 1.75, rel=1e-9)
    assert high >= 0.5


def test_safonovs_margins():
    """Example D of Chiang and Safonov: K_m = 2 two-sided; gains that only fall may vanish, one that rises has (1 + 2)."""
    T = control.feedback(
        tf([[[4], [0]], [[12, 64, 0], [8]]], [[[1, 4], [1]], [[1, 12, 32], [1, 8]]]), np.eye(2)
    ).minimal()
    blocks = [DeltaBlock("complex")] * 2
    two = stability_margin(-T, blocks)
    assert two.guaranteed == pytest.approx(2.0, rel=2e-3)
    assert two.reached == pytest.approx(2.0, rel=1e-6)
    # T is triangular with 4/(s + 8), 8/(s + 16): lags. det(1 + t_i d) = 0 needs d = -(s + 8)/4: no d with positive real part
    assert stability_margin(-T, blocks, signs=1, largest=3, tolerance=0.1) == control.StabilityMargin(
        np.inf, np.inf, pytest.approx(np.nan, nan_ok=True)
    )
    # on the other side the first to fail is d = -2, at rest
    down = stability_margin(-T, blocks, signs=[-1, 0], tolerance=5e-2)
    assert down.guaranteed == pytest.approx(2.0, rel=0.12)
    assert down.reached >= down.guaranteed


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: unmodelled("d", radius=-1), r"unmodelled: 'd' has radius -1, center 0.0 and size 1"),
        (lambda: saturation("u", 2.0, reach=1.0), r"saturation: 'u' has limit 2.0 and reach 1.0"),
        (lambda: sector("a", 0, 1) + parameter("a", 0, 1), r"'a' is of kind sector and of kind real"),
        (
            lambda: control.append(as_uncertain_system(LAG), LAG) * np.eye(3),
            "series: 3 outputs meet 2 inputs",
        ),
        (lambda: as_uncertain_system(LAG).feedback(sign=2), "feedback: sign is 2, expected -1 or 1"),
        (
            lambda: stability_margin(LAG, [DeltaBlock("complex")], signs=3),
            "signs are 3, expected -1, 0 or 1, for all or for each of 1 blocks",
        ),
        (
            lambda: stability_margin(control.static([[0.1, 0.1]]), [DeltaBlock("full", 2, 1)], signs=1),
            "a block of 2 x 1 has no sign, expected a square one",
        ),
    ],
)
def test_refusals(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make()


def test_controllers_of_another_rate_are_refused():
    """Their matrices mean something else."""
    G = control.StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]]) * control.parameter("k", 1.0, 3.0)
    K = control.StateSpace([[-2.0]], [[1.0]], [[-1.0]], [[0.0]])
    assert G.closed(K).order == 2
    with pytest.raises(ArgumentError, match=r"the controller is sampled every 0.1 s, the system continuous"):
        G.closed(control.c2d(K, 0.1))


def test_sampled_systems_of_uncertain_matrices():
    """x+ = k x / 2 + u, y = x with u = -y / 4 has the pole k/2 - 1/4: stable for k below 2.5, so that mu of k in 0 to 2 is
    (1/1.5) (how far it may go is 1.5 times its range)."""
    k = control.parameter("k", 0, 2)
    G = control.uncertain_system([[k / 2]], [[1]], [[1]], dt=0.1)
    assert G.at(k=1.5).dt == 0.1
    assert G.at(k=1.5).poles() == pytest.approx([0.75])
    closed = G.feedback(0.25)
    assert closed.mu().peak == pytest.approx(1 / 1.5, rel=1e-6)
    with pytest.raises(ArgumentError, match="dt is -1"):
        control.uncertain_system([[k]], [[1]], [[1]], dt=-1)


def test_uncertain_systems_are_joined_as_others_are():
    """By position and by name; for values of the elements the same as joining the systems at these values."""
    k, d = parameter("k", 1, 3), parameter("d", 0.1, 0.5)
    plant = control.uncertain_system(
        [[0, 1], [-k, -d]], [[0], [1]], [[1, 0], [0, 1]], inputs="force", outputs=["place", "speed"]
    )
    drive = control.tf([10], [1, 10], inputs="e", outputs="force") * parameter("gain", 0.8, 1.2)
    drive = drive.renamed(inputs="e", outputs="force")
    error = control.summing("e", ["r", "-place"])
    loop = control.connect(plant, drive, error, inputs=["r"], outputs=["speed", "e"])
    assert dict(loop.matrix.copies) == {"k": 1, "d": 1, "gain": 1}
    assert (loop.input_names, loop.output_names) == (("r",), ("speed", "e"))
    values = {"k": 1.3, "d": 0.2, "gain": 1.1}
    here = plant.at(k=1.3, d=0.2), drive.at(gain=1.1)
    direct = control.connect(*here, error, inputs=["r"], outputs=["speed", "e"])
    np.testing.assert_allclose(loop.at(**values).at(0.7j), direct.at(0.7j), atol=1e-12)
    np.testing.assert_allclose(loop["e", "r"].at(**values).at(0.7j), direct.at(0.7j)[1:], atol=1e-12)
    part = plant["place", :]
    here = here[0]["place", :], here[1]
    for join in (
        lambda G, H: control.series(H, G),
        control.parallel,
        control.feedback,
        control.append,
        lambda G, H: control.lft(control.append(1.0, G), H * 0.1),
        lambda G, H: control.upper_lft(control.append(G, 1.0), H * 0.1),
        lambda G, H: 2 * G - H / 4 + 1,
        lambda G, H: control.append(G, H) * np.eye(2) * G,
    ):
        np.testing.assert_allclose(join(part, drive).at(**values).at(0.7j), join(*here).at(0.7j), atol=1e-12)
    with pytest.raises(ArgumentError, match="margins: L has uncertain elements, expected a StateSpace"):
        control.margins(loop["e", :])
    with pytest.raises(ArgumentError, match="connect: the systems have different rates"):
        control.connect(plant, control.tf([1], [1, 0.5], 0.1, outputs="force"), inputs=[], outputs=["place"])
    with pytest.raises(ArgumentError, match="UncertainSystem: divided by 0"):
        plant / 0
    corners = part.samples(9)
    assert len(corners) == 9
    np.testing.assert_allclose(corners[0].at(0.7j), part.at(k=1, d=0.1).at(0.7j))


def test_elements_in_powers_and_lists():
    a = parameter("a", 1, 3)
    for power in (-2, -1, 0, 3):
        np.testing.assert_allclose((a**power).at(**({"a": 1.5} if power else {})), [[1.5**power]], atol=1e-12)
    np.testing.assert_allclose(control.uncertain(np.array([[a, 1.0]], dtype=object)).at(a=2), [[2, 1]])
    assert repr(a * a) == "<Uncertain: shape (1, 1), a x 2>"
    with pytest.raises(ArgumentError, match="a list of elements, expected a list of rows"):
        control.uncertain([a, 1.0])
    with pytest.raises(
        ArgumentError, match=r"to the power 0\.5, expected a square matrix and a whole number"
    ):
        a**0.5
    with pytest.raises(ArgumentError, match="'b' is between 0 and inf, expected a range"):
        parameter("b", 0, np.inf)
