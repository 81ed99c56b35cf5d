"""Algebra, names and conversions: identities of transfer matrices at random points of the complex plane."""

import numpy as np
import pytest
import scipy.io
import scipy.signal
from control_helpers import random_system

import alembert as al
from alembert.control import (
    DeltaBlock,
    SecondOrder,
    StateSpace,
    append,
    c2d,
    connect,
    feedback,
    from_control,
    from_scipy,
    lft,
    load_mat,
    mu_response,
    pade,
    parallel,
    parameter,
    root_locus,
    save_mat,
    series,
    static,
    step_info,
    summing,
    tf,
    to_control,
    to_scipy,
    upper_lft,
    zpk,
)
from alembert.control.transfer import times_polynomial
from alembert.errors import ArgumentError, FileError, NumericalError

RNG = np.random.default_rng(1)
POINTS = RNG.normal(size=5) + 1j * RNG.normal(size=5)
CLOSE = {"rtol": 1e-9, "atol": 1e-10}  # condition of s - A at the points is below 1e4


def test_algebra_is_that_of_transfer_matrices():
    rng = np.random.default_rng(2)
    G, H, K = random_system(rng, 4, 2, 3), random_system(rng, 3, 2, 3), random_system(rng, 2, 3, 2)
    M = rng.normal(size=(2, 3))
    for s in POINTS:
        g, h, k = G.at(s), H.at(s), K.at(s)
        pairs = [
            (G + H, g + h),
            (G - H, g - h),
            (2 * G, 2 * g),
            (G / 4, g / 4),
            (-G, -g),
            (G * K, g @ k),
            (G @ K, g @ k),
            (M @ G, M @ g),
            (G * M, g @ M),
            (1 - G * K, 1 - g @ k),
            (series(K, G), g @ k),
            (parallel(G, H), g + h),
            (feedback(G, K), np.linalg.solve(np.eye(3) + g @ k, g)),
            (feedback(G, K, sign=1), np.linalg.solve(np.eye(3) - g @ k, g)),
            ((G * K + static(5 * np.eye(3))).inverse(), np.linalg.inv(g @ k + 5 * np.eye(3))),
            (G.dual(), g.T),
            (G.adjoint(), G.at(-s).T),
            (G.transformed(rng.normal(size=(4, 4))), g),
            (G.balanced_scales(), g),
        ]
        for system, value in pairs:
            np.testing.assert_allclose(system.at(s), value, **CLOSE)


def test_fractional_transformations():
    rng = np.random.default_rng(3)
    P, K = random_system(rng, 4, 3, 4), random_system(rng, 2, 2, 1)
    for s in POINTS:
        p, k = P.at(s), K.at(s)
        lower = p[:2, :2] + p[:2, 2:] @ k @ np.linalg.solve(np.eye(2) - p[2:, 2:] @ k, p[2:, :2])
        np.testing.assert_allclose(lft(P, K).at(s), lower, **CLOSE)
        upper = p[2:, 1:] + p[2:, :1] @ k @ np.linalg.solve(np.eye(2) - p[:2, :1] @ k, p[:2, 1:])
        np.testing.assert_allclose(upper_lft(P, K).at(s), upper, **CLOSE)


def test_systems_are_joined_by_name():
    G = tf([1, 3], [1, 1, 4], inputs="u", outputs="y")
    K = tf([5], [1, 2], inputs="e", outputs="u")
    loop = connect(G, K, summing("e", ["r", "-y"]), inputs=["r"], outputs=["y", "e"])
    assert loop.input_names == ("r",)
    assert loop.output_names == ("y", "e")
    for s in POINTS:
        L = (G * K).at(s)[0, 0]
        np.testing.assert_allclose(loop.at(s)[:, 0], [L / (1 + L), 1 / (1 + L)], **CLOSE)
    wide = summing("e", ["r", "-y"], width=2)
    assert wide.input_names == ("r[0]", "r[1]", "y[0]", "y[1]")
    part = append(G, K)["u", "e"]
    np.testing.assert_allclose(part.at(1j), K.at(1j), **CLOSE)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda G: connect(G, inputs=[], outputs=["y"]), "nothing feeds the input 'u'"),
        (lambda G: connect(G, G, inputs=["u"], outputs=["y"]), "the output 'y' is there twice"),
        (lambda G: connect(G, inputs=["v"], outputs=["y"]), "nothing feeds the input 'u'"),
        (lambda G: connect(G, inputs=["u"], outputs=["x"]), "no system has a signal 'x'"),
        (lambda G: connect(G, inputs=["u", "w"], outputs=["y"]), "no system has an input 'w'"),
        (lambda G: G["z", :], "outputs: there is no 'z'"),
        (lambda G: G[3, :], "expected a name or a number below 1"),
        (lambda G: G["y"], r"expected \[outputs, inputs\]"),
        (lambda G: series(G, static(np.eye(2))), "1 outputs meet 2 inputs"),
        (lambda G: parallel(G, static(np.eye(2))), "do not add"),
        (lambda G: append(), "no system was given"),
        (lambda G: append(G, G.sampled(0.1)), "different rates .continuous, dt = 0.1 s"),
        (lambda G: feedback(G, static(np.eye(2))), r"K has shape \(2, 2\), expected \(1, 1\)"),
        (lambda G: feedback(G, 1.0, sign=2), "sign is 2"),
        (lambda G: lft(G, static(np.eye(2))), "K has shape"),
        (lambda G: upper_lft(G, static(np.eye(2))), "Delta has shape"),
        (lambda G: G.inverse(), "only a system with a square, regular D"),
        (lambda G: G.transformed(np.zeros((2, 2))), "T is singular"),
        (lambda G: StateSpace([[1.0, 2]], [1], [1]), r"A has shape \(1, 2\), expected a square matrix"),
        (lambda G: StateSpace([[1.0]], [[1], [2]], [1]), r"B has shape \(2, 1\), expected \(1, any\)"),
        (lambda G: StateSpace([[1j]], [1], [1]), "expected real numbers"),
        (lambda G: StateSpace([[np.nan]], [1], [1]), "not finite"),
        (lambda G: StateSpace([[1.0]], [1], [1], dt=-1), "dt is -1"),
        (lambda G: StateSpace([[1.0]], [1], [1], input_names=["a", "b"]), "expected 1 names"),
        (lambda G: StateSpace(np.eye(2), np.eye(2), np.eye(2), state_names=["a", "a"]), "'a' twice"),
        (lambda G: StateSpace([[1.0]], [1], [1], input_units=["a", "b"]), "expected 1 units"),
        (lambda G: tf([1, 0, 0], [1, 1]), "not proper"),
        (lambda G: tf([1], [0]), "the denominator is zero"),
        (lambda G: tf([["x"]], [1]), "expected real numbers"),
        (lambda G: tf([[[1], [1]]], [[[1]]]), "rows of different lengths"),
        (lambda G: tf([1], [[1, 2]]), "a polynomial has shape"),
        (lambda G: zpk([1, 2], [1], 1), "no more zeros than poles"),
        (lambda G: zpk([1j], [1, 2], 1), "without its conjugate"),
        (lambda G: pade(-1), "expected seconds of zero or more"),
        (lambda G: times_polynomial(G, [1, 0, 0]), "is not proper"),
        (lambda G: from_scipy(3), "no system of scipy.signal"),
        (lambda G: from_control(3), "is no StateSpace"),
    ],
)
def test_refusals_say_what_came(make, sentence):
    with pytest.raises(ArgumentError, match=sentence):
        make(tf([1, 3], [1, 1, 4], inputs="u", outputs="y"))


@pytest.mark.parametrize("factor", [tf([1], [0.1, 1]), parameter("k", 1, 3)], ids=["filter", "uncertain"])
def test_a_factor_without_units_keeps_those_of_the_other(factor):
    names = {"input_names": ["a", "b"], "output_names": ["x", "y"]}
    G = StateSpace(-np.eye(2), np.eye(2), np.eye(2), **names, input_units=["N"] * 2, output_units=["m"] * 2)
    for found in (factor * G, G * factor):
        assert (found.input_names, found.output_names) == (("a", "b"), ("x", "y"))
        assert (found.input_units, found.output_units) == (("N", "N"), ("m", "m"))


def test_units_and_algebraic_loops_are_named():
    a = StateSpace([[-1.0]], [1], [1], output_units="m", output_names="x")
    b = StateSpace([[-1.0]], [1], [1], input_units="rad", input_names="x")
    with pytest.raises(ArgumentError, match="'x' is in m, the input 'x' in rad"):
        series(a, b)
    with pytest.raises(ArgumentError, match="'x' is in m, the input 'x' in rad"):
        connect(a, b, inputs=["u0"], outputs=["x"])
    with pytest.raises(NumericalError, match="algebraic loop with no solution, through u0"):
        feedback(static(1.0), -1.0)
    with pytest.raises(NumericalError, match="the system integrates"):
        tf([1], [1, 0]).dc_gain()
    with pytest.raises(NumericalError, match="pole at zero"):
        StateSpace([[0.0]], [1], [1], dt=1.0).adjoint()


def test_transfer_functions():
    G = tf([[[1, 1], 2], [[3], [1, 0, 5]]], [[[1, 2, 2], [1, 3]], [[1, 4], [2, 1, 1]]])
    for s in POINTS:
        expected = [
            [(s + 1) / (s**2 + 2 * s + 2), 2 / (s + 3)],
            [3 / (s + 4), (s**2 + 5) / (2 * s**2 + s + 1)],
        ]
        np.testing.assert_allclose(G.at(s), expected, **CLOSE)
        H = zpk([-1, 2 + 1j, 2 - 1j], [-3, -4, -1 + 1j, -1 - 1j], 5)
        value = 5 * (s + 1) * ((s - 2) ** 2 + 1) / ((s + 3) * (s + 4) * ((s + 1) ** 2 + 1))
        np.testing.assert_allclose(H.at(s), [[value]], **CLOSE)
        odd = zpk([1j, -1j, 3], [-1, -2, -3], 2)  # a pair of zeros over single poles
        np.testing.assert_allclose(
            odd.at(s), [[2 * (s**2 + 1) * (s - 3) / ((s + 1) * (s + 2) * (s + 3))]], **CLOSE
        )
        F = tf([1, 2], [1, 1, 3, 4])
        np.testing.assert_allclose(
            times_polynomial(F, [2, 3, 4]).at(s), F.at(s) * (2 * s**2 + 3 * s + 4), **CLOSE
        )
    np.testing.assert_allclose(H.poles(), np.sort_complex([-3, -4, -1 + 1j, -1 - 1j]), atol=1e-10)


def test_pade_is_all_pass_and_near_the_delay():
    G = pade(0.5, 4)
    w = np.array([0.1, 1.0, 3.0, 30.0])
    g = G.frequency_response(w).response[:, 0, 0]
    np.testing.assert_allclose(np.abs(g), 1, rtol=1e-10)
    # the first error is (w T)^9 / (2 * 4!^2/8!... ) about 1e-6 at w T = 1.5
    np.testing.assert_allclose(g[:3], np.exp(-0.5j * w[:3]), atol=3e-6)


def test_to_and_from_other_programs(tmp_path):
    pytest.importorskip("control")
    G = random_system(np.random.default_rng(5), 3, 2, 2).renamed(inputs=["motor.a", "motor:b"])
    back = from_control(to_control(G))
    assert back.input_names == ("motor_a", "motor_b")
    for H in (back, from_scipy(to_scipy(G))):
        for a, b in zip(G.matrices, H.matrices, strict=True):
            np.testing.assert_array_equal(a, b)
    D = G.sampled(0.1)
    assert from_scipy(to_scipy(D)).dt == 0.1
    assert from_control(to_control(D)).dt == 0.1
    save_mat(D, tmp_path / "d.mat")
    again = load_mat(tmp_path / "d.mat")
    np.testing.assert_array_equal(again.A, D.A)
    assert again.dt == 0.1
    import control

    T = from_control(control.tf([[[1], [2, 1]]], [[[1, 2], [1, 3, 3]]]))
    np.testing.assert_allclose(T.at(2j), [[1 / (2j + 2), (4j + 1) / ((2j) ** 2 + 6j + 3)]], **CLOSE)
    with pytest.raises(ArgumentError, match="unknown rate"):
        from_control(control.ss(0.5, 1, 1, 0, True))


def test_mat_files_without_matrices_are_refused(tmp_path):
    import scipy.io

    scipy.io.savemat(tmp_path / "x.mat", {"A": np.eye(2)})
    with pytest.raises(FileError, match="has no B, C; it has A"):
        load_mat(tmp_path / "x.mat")
    (tmp_path / "y.mat").write_text("nothing")
    with pytest.raises(FileError, match=r"y\.mat"):
        load_mat(tmp_path / "y.mat")
    header = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    (tmp_path / "z.mat").write_bytes(header + bytes(384) + b"\x89HDF\r\n\x1a\n")
    with pytest.raises(FileError, match=r"z\.mat is of MATLAB's version 7\.3, which is not read; .* '-v7'"):
        load_mat(tmp_path / "z.mat")


def test_root_locus_of_a_double_integrator():
    """1 + k (s + 1)/s^2: poles meet on the real axis at k = 4."""
    locus = root_locus(tf([1, 1], [1, 0, 0]), gains=[0, 2, 4, 10])
    np.testing.assert_allclose(np.sort_complex(locus.poles[1]), [-1 - 1j, -1 + 1j], atol=1e-12)
    np.testing.assert_allclose(locus.poles[2], -2, atol=1e-7)
    np.testing.assert_allclose(locus.zeros, [-1.0], atol=1e-12)
    with pytest.raises(NumericalError, match="1 \\+ k K D is singular"):
        root_locus(tf([1, 1], [1, 2]), gains=[-1.0])


def test_figures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    G = tf([[[1], [1, 1]]], [[[1, 0.1, 1], [1, 2, 3]]])
    for kind in ("bode", "sigma", "nyquist", "nichols", "step", "poles"):
        G.plot(kind, path=tmp_path / f"{kind}.png")
        assert (tmp_path / f"{kind}.png").stat().st_size > 5000
    G.sampled(0.1).plot("poles", path=tmp_path / "d.png")
    root_locus(tf([1], [1, 2, 1])).plot(path=tmp_path / "r.png")
    sampled = root_locus(tf([1], [1, 2, 1]).sampled(0.1))
    assert sampled.dt == 0.1
    (axis,) = sampled.plot(path=tmp_path / "z.png").axes
    # the grid: damping 0.2 is |z| = exp(-0.2/sqrt(1 - 0.04) arg z), and nothing of it leaves the unit circle
    z = np.concatenate([line.get_xdata() + 1j * np.asarray(line.get_ydata()) for line in axis.lines[4:]])
    assert np.any(np.abs(np.abs(z) - np.exp(-0.2 / np.sqrt(0.96) * np.abs(np.angle(z)))) < 1e-12)
    assert axis.get_xlim() == (-1.3, 1.3)
    loop = tf([4], [1, 3, 3, 1])
    assert "gain 6.0 dB at 1.73 rad/s, phase 27.1 deg" in loop.plot("margins").axes[0].get_title()
    specs = {"overshoot": 0.2, "rise": 2.5, "settling": 8.0}
    assert (
        "not kept: overshoot, settling" in tf([1], [1, 0.8, 1]).plot("step", specs=specs).axes[0].get_title()
    )
    drawn = mu_response(tf([1], [1, 1]), [DeltaBlock("complex")], [0.1, 1.0]).plot(path=tmp_path / "mu.png")
    assert "largest upper bound at these frequencies: 0.995" in drawn.axes[0].get_title()
    # exp(-pi zeta/sqrt(1 - zeta^2)) of a second-order lag
    assert step_info(tf([1], [1, 0.8, 1])).overshoot == pytest.approx(
        np.exp(-0.4 * np.pi / np.sqrt(0.84)), rel=1e-3
    )
    for system, sentence in (
        (append(loop, loop), "step_info: the system has shape"),
        (tf([1], [1, -1]), "step_info: the system is not stable"),
        (tf([1, 0], [1, 1]), "step_info: the response goes back to zero"),
    ):
        with pytest.raises(ArgumentError, match=sentence):
            step_info(system)
    with pytest.raises(
        ArgumentError, match=r"specs\['overshoot'\] is -0\.1, expected a share of the final value"
    ):
        loop.plot("step", specs={"overshoot": -0.1})
    with pytest.raises(ArgumentError, match=r"specs: there is no specification 'rose'"):
        loop.plot("step", specs={"rose": 1.0})
    with pytest.raises(ArgumentError, match="there is no plot 'bodes'; did you mean 'bode'"):
        G.plot("bodes")


def test_curves_are_smooth_and_whole():
    """A resonance is a circle of its residue's size, its polygon is no flatter than that of 4 degrees; what was drawn is
    within the axes; branches of a root locus are followed where they meet."""
    pytest.importorskip("matplotlib")
    G = tf([1], [1, 0.002, 1])
    (axis,) = G.plot("nyquist").axes
    bottom, top = axis.get_ylim()
    assert top == pytest.approx(-bottom, rel=1e-12)
    curve = axis.lines[0].get_xdata() + 1j * np.asarray(axis.lines[0].get_ydata())
    assert np.abs(np.diff(curve)).max() < 500 * 2 * np.sin(
        np.radians(4.1)
    )  # on a circle of diameter 500, twice 4 degrees
    # a circle of diameter 8 is whole; a curve that goes on to infinity gets axes of some width
    (axis,) = tf([4], [1, -0.5]).plot("nyquist").axes
    assert axis.get_xlim()[0] < -8
    (axis,) = tf([10], [1, 4, 5, 0]).plot("nyquist").axes
    (left, right), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    assert right - left > 0.79 * (top - bottom)
    # a zero before a pole: the phase climbs above zero
    (axis,) = tf([1, 0.02, 1], [1, 0.02, 1.21, 0]).plot("nichols").axes
    phase, gain = (np.asarray(x) for x in axis.lines[0].get_data())
    left, right = axis.get_xlim()
    inside = np.abs(gain) < 40
    assert left <= phase[inside].min()
    assert phase[inside].max() <= right
    assert phase[inside].max() > 0
    locus = root_locus(tf([1, 1], [1, 0.5, 0.1]))
    assert np.abs(np.diff(locus.poles, axis=0)[np.abs(locus.poles[1:]) < 1]).max() < 0.05
    # the rise is counted from a tenth on: what may not be entered begins later than it by that
    specs = {"rise": 2.0, "settling": 8.0}
    (axis,) = tf([1], [1, 3, 3, 1]).plot("step", specs=specs).axes
    shaded = [p.get_extents().x0 for c in axis.collections for p in c.get_paths()]
    assert min(shaded) == pytest.approx(2.0 + 1.102, abs=0.1)  # 1.102 solves exp(-t) (1 + t + t^2/2) = 0.9
    # a settling beyond the end of the response: it was drawn backwards, from there to that end
    (axis,) = tf([1], [1, 3, 3, 1]).plot("step", specs={"settling": 40.0}).axes
    shaded = [p.get_extents().x0 for c in axis.collections for p in c.get_paths()]
    assert min(shaded) == 40.0
    assert axis.lines[0].get_xdata()[-1] == pytest.approx(48.0, abs=0.1)


def test_panels_have_one_unit_each():
    pytest.importorskip("matplotlib")
    G = StateSpace(
        [[0, 1], [-4, -0.4]],
        [[0], [1]],
        [[1, 0], [0, 1], [-4, -0.4]],
        [[0], [0], [1]],
        input_names=("push",),
        output_names=("angle", "rate", "other angle"),
        input_units=("N m",),
        output_units=("rad", "rad/s", "rad"),
    )
    labels = [axis.get_ylabel() for axis in G.plot("bode").axes]
    assert labels == ["magnitude [dB of rad]", "magnitude [dB of rad/s]", "phase [deg]"]
    assert G.plot("bode").axes[0].get_title() == "from push [N m]"
    panels = G.plot("step").axes
    assert [axis.get_ylabel() for axis in panels] == ["[rad]", "[rad/s]"]
    assert [axis.get_title() for axis in panels] == ["step of push [N m]"] * 2
    assert [len(axis.lines) for axis in panels] == [2, 1]


def test_the_package_is_there():
    assert al.control.StateSpace is StateSpace
    assert repr(tf([1], [1, 2], 0.1)) == "<StateSpace: 1 state, 1 input, 1 output, every 0.1 s>"
    assert scipy.signal.lti([1], [1, 1]).to_ss().A.shape == (1, 1)


def test_large_gains_close_no_algebraic_loop():
    """1/(s + 1) under u = -k y has the pole -1 - k, however large k is; 1 - k d = 0 is refused, however small d is."""
    for k in (1e8, 1e12):
        assert feedback(tf([1], [1, 1]), static(k)).poles().real.min() == pytest.approx(-1 - k, rel=1e-12)
        assert lft(static([[0.0, 1], [1, 0]]), static(k)).D[0, 0] == pytest.approx(k)
        with pytest.raises(NumericalError, match="algebraic loop"):
            feedback(static(1 / k), static(k), sign=1)


def test_step_info_without_a_grid_of_the_slowest():
    """Closed forms: 1 - exp(-t) from 10 to 90 % in log 9, to 2 % in log 50; a double pole; scales a thousand apart."""
    lag = step_info(tf([1], [1, 1]))
    assert (lag.rise, lag.settling) == pytest.approx((np.log(9), np.log(50)), rel=1e-6)
    double = step_info(tf([-1, 1], [1, 2, 1]))  # 1 - (1 + 2 t) exp(-t): its grid ended before 90 %
    assert (1 + 2 * double.settling) * np.exp(-double.settling) == pytest.approx(0.02, rel=1e-6)
    apart = step_info(tf([950], [1, 1000]) + tf([0.05], [1, 1]))
    assert apart.settling == pytest.approx(np.log(0.05 / 0.02), rel=1e-6)
    assert 0.002 < apart.rise < 0.004  # was 0: 90 % within the first step of the grid
    slow = step_info(tf([1e-5], [1, -(1 - 1e-5)], 0.1))  # was infinite after 5000 samples
    assert slow.settling == pytest.approx(0.1 * np.log(0.02) / np.log1p(-1e-5), abs=0.1)
    ripple = tf([1], [1, 0.4, 1])
    assert step_info(ripple).overshoot == pytest.approx(np.exp(-np.pi * 0.2 / np.sqrt(0.96)), abs=1e-6)
    for many in (zpk([], [-1] * 6, 1.0), tf([-1, 1], [1, 2, 1]), c2d(zpk([], [-1] * 3, 1.0), 0.1)):
        assert many.step_response().y[-1, 0] == pytest.approx(1, abs=0.02)


def test_matlab_files_with_names_descriptors_and_faults(tmp_path):
    path = tmp_path / "plant.mat"
    G = StateSpace(
        np.diag([-1.0, -2]), [[1], [1]], [[1, 0], [0, 2]], None, 0.1, "torque", ["angle", "rate"], ["p", "q"], "N m"
    )  # fmt: skip
    save_mat(G, path)
    found = load_mat(path)
    for name in ("input_names", "output_names", "state_names", "input_units", "output_units", "dt"):
        assert getattr(found, name) == getattr(G, name)
    parts = {"A": np.array([[-3.0]]), "B": np.eye(1), "C": np.eye(1)}
    scipy.io.savemat(path, {**parts, "E": np.array([[2.0]])})  # E was passed over: a pole at -3
    np.testing.assert_allclose(load_mat(path).poles(), [-1.5])
    for wrong in ({"A": "no"}, {"A": [[1j]]}):
        scipy.io.savemat(path, {**parts, **wrong})
        with pytest.raises(FileError, match=r"load_mat: .*plant\.mat: A is .*, expected real numbers"):
            load_mat(path)
    assert from_scipy(scipy.signal.lti([2], [1])).order == 0


def test_operands_of_systems():
    """What has `to_statespace()`, and one input and output times a matrix: each entry."""
    G = tf([1], [1, 1])
    mass = SecondOrder(1, 0.1, 4, 1, 1)
    two = G * np.array([[1.0, 2.0, 3.0], [4, 5, 6]])
    assert two.order == 2
    np.testing.assert_allclose(two.at(1j), G.at(1j) * np.array([[1.0, 2, 3], [4, 5, 6]]), atol=1e-14)
    np.testing.assert_allclose((G * mass - mass / 2).at(1j), (G.at(1j) - 0.5) * mass.to_statespace().at(1j))
    np.testing.assert_allclose((mass * G).at(1j), (G * mass).at(1j))
    with pytest.raises(NumericalError, match="at: -1 is a pole"):
        G.at(-1)
    with pytest.raises(
        NumericalError, match=r"c2d: within one sample of 0\.1 s the system grows beyond all numbers"
    ):
        c2d(tf([1], [1, -1e5]), 0.1)
    with pytest.raises(ArgumentError, match="truncated: keep has 7"):
        mass.truncated([7])
    assert repr(mass) == "<SecondOrder: 1 position, 1 input, 1 output>"


def test_phases_begin_where_they_are_expected_and_rounding_is_no_curve():
    """A loop with a delay began at 360 degrees, its margin far from the line that was drawn; -340 dB were a curve."""
    loop = tf([2], [1, 1]) * pade(0.5, 4)
    lower = loop.plot("margins").axes[1]
    assert lower.lines[0].get_ydata()[0] == pytest.approx(0, abs=1)
    assert tf([1], [1, 0, 0]).plot("nichols").axes[0].lines[0].get_xdata()[0] == pytest.approx(-180)
    system = StateSpace(
        -1, 1, [[1], [1e-17], [0]], output_names=["x", "z", "none"], output_units=["m", "m", "rad"]
    )
    upper, empty, _ = system.plot("bode").axes
    assert [line.get_label() for line in upper.lines] == ["x", "z (zero)"]
    assert np.isnan(upper.lines[1].get_ydata()).all()
    assert [text.get_text() for text in empty.texts] == ["zero"]
