"""Parameters recovered from simulated measurements."""

import dataclasses
import functools
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from alembert import (
    ArgumentError,
    Fixed,
    Friction,
    Inertia,
    ModelBuilder,
    Placement,
    Revolute,
    Rotor,
    library,
)
from alembert.errors import NumericalError, UnsupportedError
from alembert.identify import Measurements, consistent, identify, is_consistent, regressor


def motion(model, count=400, seed=0):
    """Sums of sines about the middle of the range, well exciting; q is that of joints with q' = v."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 10, count)
    w = 2 * np.pi * 0.1 * np.arange(1, 6)
    A = rng.normal(size=(5, model.nv)) * 1.2
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return t, (s / w) @ A + rng.uniform(-1, 1, model.nv), c @ A, (-w * s) @ A


def measured(model, noise=0.0, seed=0, **options):
    t, q, v, a = motion(model, **options)
    tau = model.inverse_dynamics(q, v, a)
    sigma = noise * np.sqrt(np.mean(tau**2, axis=0))
    return Measurements(q, v, a, tau + sigma * np.random.default_rng(seed + 1).normal(size=tau.shape), time=t)


def disturbed(model, seed=0, size=0.2):
    """A prior that is off in everything."""
    rng = np.random.default_rng(seed)
    bodies = [
        dataclasses.replace(
            body,
            inertia=dataclasses.replace(
                body.inertia, com=tuple(np.array(body.inertia.com) + 0.05 * size * rng.normal(size=3))
            ).scaled(float(np.exp(size * rng.normal()))),
        )
        for body in model.bodies
    ]
    joints = [
        dataclasses.replace(
            joint,
            friction=joint.friction
            and dataclasses.replace(
                joint.friction,
                viscous=tuple(1.5 * x for x in joint.friction.viscous),
                coulomb=tuple(0.6 * x for x in joint.friction.coulomb),
            ),
            armature=tuple(0.7 * x for x in joint.armature),
        )
        for joint in model.joints
    ]
    return model.replace(bodies=tuple(bodies), joints=tuple(joints))


def truth(model, result):
    zero = np.zeros(model.nv)
    pi = regressor(model, model.neutral(), zero, zero, include=result.include).pi
    return pi, result.base.values(pi[result.free])


@functools.cache
def arm():
    return library.arm7()


@functools.cache
def noisy():
    return identify(disturbed(arm()), measured(arm(), 0.02))


@pytest.mark.parametrize("method", ["least_squares", "consistent"])
def test_without_noise_the_base_parameters_are_exact(method):
    result = identify(disturbed(arm()), measured(arm()), method=method)
    _, beta = truth(arm(), result)
    for found in (result.base_values, result.base_consistent):
        np.testing.assert_allclose(found, beta, atol=1e-8 * np.abs(beta).max())
    assert result.excited == result.base.rank == 62
    if method == "consistent":
        _, q, v, a = motion(arm(), seed=5)
        expected = arm().inverse_dynamics(q, v, a)
        for found in (result.model.inverse_dynamics(q, v, a), result.predict(q, v, a)):
            np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_with_noise_estimates_are_within_their_standard_errors():
    """Errors over standard errors are standard normal: 62 of them stay below 4, and their mean square near 1."""
    result = noisy()
    pi, beta = truth(arm(), result)
    z = (result.base_values - beta) / result.base_standard_errors
    assert np.abs(z).max() < 4
    assert 0.5 < np.mean(z**2) < 1.6
    friction = [k for k, name in enumerate(result.names) if "viscous" in name or "coulomb" in name]
    z = (result.values - pi)[friction] / result.standard_errors[friction]
    assert np.abs(z).max() < 4
    assert np.all(result.informed[friction] > 0.9)
    tau = result.data.tau
    np.testing.assert_allclose(result.noise, 0.02 * np.sqrt(np.mean(tau**2, axis=0)), rtol=0.15)
    np.testing.assert_allclose(result.rms, result.noise, rtol=0.15)
    assert np.all(result.r_squared > 0.99)


def test_the_condition_number_is_that_of_the_weighted_equations():
    """By its definition; columns of unit length, so that units do not count."""
    result = noisy()
    d = result.data
    W = result.base.regressor(regressor(arm(), d.q, d.v, d.a).Y[..., result.free]) / result.noise[:, None]
    W = W.reshape(-1, result.base.rank)
    assert result.condition == pytest.approx(np.linalg.cond(W / np.linalg.norm(W, axis=0)), rel=1e-6)
    assert f"condition number {result.condition:.3g}" in result.excitation


def test_the_explained_share_of_an_effort_that_does_not_vary_is_unknown():
    result = noisy()
    tau = result.data.tau.copy()
    tau[:, 2] = 0.0
    d = result.data
    still = dataclasses.replace(result, data=Measurements(d.q, d.v, d.a, tau), measured=tau)
    assert np.isnan(still.r_squared).tolist() == [k == 2 for k in range(7)]
    assert list(still.effort_table().columns[3].cells)[2] == "-"
    tau[:, 2] = 3.0 * (1 + 1e-16 * np.arange(len(tau)))  # nor does rounding vary
    constant = dataclasses.replace(result, data=Measurements(d.q, d.v, d.a, tau), measured=tau)
    assert np.isnan(constant.r_squared).tolist() == [k == 2 for k in range(7)]
    biased = dataclasses.replace(result, residuals=result.residuals + 10 * np.std(d.tau, axis=0))
    assert np.all(biased.r_squared < -90)  # an offset is not explained either


def test_the_standard_errors_predict_the_scatter():
    """Over 60 repetitions the scatter is known to 1/sqrt(120) = 9 % (one standard deviation); three of them."""
    model = library.pendulum(damping=0.2)
    _, q, v, a = motion(model, 100)
    tau = model.inverse_dynamics(q, v, a)
    rng = np.random.default_rng(0)
    runs = [
        identify(
            model,
            Measurements(q, v, a, tau + 0.3 * rng.normal(size=tau.shape), noise=0.3),
            method="least_squares",
        )
        for _ in range(60)
    ]
    scatter = np.std([run.base_values for run in runs], axis=0)
    np.testing.assert_allclose(scatter, runs[0].base_standard_errors, rtol=0.28)


def test_consistent_estimates_can_be_a_body():
    """Little and noisy data, from which least squares makes something unphysical."""
    model = library.two_link()
    data = measured(model, 0.3, count=30)
    plain = identify(model, data, method="least_squares")
    sound = identify(model, data)
    assert not np.all(is_consistent(plain.values.reshape(-1, 10)))
    assert np.all(is_consistent(sound.values.reshape(-1, 10)))
    for body in sound.model.bodies:
        assert body.inertia.problem() is None


def test_what_the_data_do_not_show_stays_at_the_prior():
    result = noisy()
    prior = disturbed(arm()).body("link1").inertia
    k = result.names.index("link1.mass")
    assert result.informed[k] < 0.2
    # Only Izz of the first link moves anything; the prior keeps the rest, near its scale.
    assert abs(np.log(result.values[k] / prior.mass)) < 0.5
    assert "link1.mass" in result.base.unidentifiable


def test_friction_cannot_be_negative():
    """A model without friction, identified with friction: noise would make about half of them negative."""
    model = library.two_link()
    result = identify(model, measured(model, 0.05), include=("viscous", "coulomb"))
    friction = [k for k, name in enumerate(result.names) if "viscous" in name or "coulomb" in name]
    assert len(friction) == 4
    assert np.all(result.values[friction] >= 0)
    assert np.any(result.base_values < 0)
    assert np.all(np.isfinite(result.standard_errors))


def test_friction_is_found_where_the_model_has_none():
    friction = Friction((0.4,), (0.7,), smoothing=0.05)
    actual = library.two_link()
    for name in ("shoulder", "elbow"):
        actual = actual.replace_joint(name, friction=friction, armature=(0.2,))
    result = identify(
        library.two_link(), measured(actual), include=("viscous", "coulomb", "armature"), smoothing=0.05
    )
    assert result.estimate("elbow.viscous")[0] == pytest.approx(0.4, rel=1e-6)
    assert result.estimate("elbow.coulomb")[0] == pytest.approx(0.7, rel=1e-6)
    assert result.model.joint("elbow").friction.smoothing == 0.05
    # Unlike the second link's moment of inertia, the elbow's armature does not load the shoulder.
    assert result.estimate("elbow.armature")[0] == pytest.approx(0.2, rel=1e-3)


def test_rotors_and_every_other_joint():
    kinds = ["prismatic", "cylindrical", "universal", "screw"]
    model = library.random_tree(4, bodies=4, kinds=kinds, attachments=True)
    result = identify(model, measured(model), method="least_squares")
    _, beta = truth(model, result)
    np.testing.assert_allclose(result.base_values, beta, atol=1e-8 * np.abs(beta).max())
    consistent = identify(model, measured(model, 0.01))
    _, q, v, a = motion(model, seed=9)
    expected = model.inverse_dynamics(q, v, a)
    error = consistent.model.inverse_dynamics(q, v, a) - expected
    assert np.abs(error).max() < 0.05 * np.abs(expected).max()


def test_welded_bodies_become_part_of_what_carries_them():
    builder = ModelBuilder("welded")
    builder.body("arm", Inertia.box(1.0, (1.0, 0.1, 0.1), (0.5, 0, 0)), joint=Revolute((0, 1, 0)))
    builder.body(
        "hand", Inertia.sphere(2.0, 0.1), joint=Fixed(), parent="arm", placement=Placement((1.0, 0, 0))
    )
    model = builder.build()
    found = identify(model, measured(model, 1e-3)).model
    assert found.body("hand").inertia == Inertia()
    assert found.mass == pytest.approx(3.0, rel=0.2)
    _, q, v, a = motion(model, seed=3)
    expected = model.inverse_dynamics(q, v, a)
    assert np.abs(found.inverse_dynamics(q, v, a) - expected).max() < 0.01 * np.abs(expected).max()


def test_fixed_bodies_and_joints_keep_their_values():
    model = library.arm7()
    prior = disturbed(model)
    data = measured(model, 0.02, count=120)
    result = identify(prior, data, fixed=("link1", "link2", "joint7"))
    assert result.model.body("link2") == prior.body("link2")
    assert result.model.joint("joint7") == prior.joint("joint7")
    held = [k for k, name in enumerate(result.names) if name.startswith(("link1.", "link2.", "joint7."))]
    assert np.array_equal(result.values[held], result.prior[held])
    assert not np.any(result.standard_errors[held])


def test_massless_bodies_stay_massless():
    builder = ModelBuilder("cross")
    builder.body("middle", joint=Revolute((0, 0, 1)))
    builder.body(
        "outer",
        Inertia.box(1.0, (0.3, 0.2, 0.1), (0.1, 0.2, 0.3)),
        joint=Revolute((0, 1, 0)),
        parent="middle",
    )
    model = builder.build()
    result = identify(model, measured(model, 0.01))
    assert result.model.body("middle").inertia == Inertia()


def test_efforts_with_infinite_noise_are_left_out():
    model = library.two_link()
    data = measured(model)
    wrong = dataclasses.replace(data, tau=data.tau + np.array([0.0, 100.0]), noise=[1.0, np.inf])
    result = identify(model, wrong, method="least_squares")
    _, beta = truth(model, result)
    np.testing.assert_allclose(result.base_values, beta, atol=1e-8)


def test_a_poor_motion_is_named():
    model = library.two_link()
    data = measured(model, 0.01)
    still = data.q.copy()
    still[:, 0] = 0.3
    zero = data.v * [0.0, 1.0], data.a * [0.0, 1.0]
    tau = model.inverse_dynamics(still, *zero)
    result = identify(model, Measurements(still, *zero, tau))
    assert result.excited < result.base.rank
    assert "of 6 base parameters undetermined" in result.excitation
    assert np.any(np.isinf(result.base_standard_errors))


def test_printing_and_plots(tmp_path):
    pytest.importorskip("matplotlib")
    result = noisy()
    text = str(result)
    assert "link7.mass" in text
    assert "joint3.viscous" in text
    assert "400 samples; all 62 base parameters are" in text
    assert "condition number" in repr(result)
    figures = result.plot(tmp_path)
    assert set(figures) == {"efforts", "residuals", "parameters"}
    assert {path.name for path in tmp_path.iterdir()} == {"efforts.png", "residuals.png", "parameters.png"}


def test_plots_need_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UnsupportedError, match=r"matplotlib is not installed; pip install matplotlib"):
        noisy().plot()


def test_unknown_names_are_refused():
    with pytest.raises(
        ArgumentError, match=r"estimate: no parameter 'link3\.mas'; did you mean 'link3\.mass'"
    ):
        noisy().estimate("link3.mas")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": np.zeros(3)}, "data is a ndarray, expected Measurements"),
        ({"method": "magic"}, "method is 'magic', expected 'consistent' or 'least_squares'"),
        ({"prior_spread": 0.0}, "prior_spread is 0.0, expected a positive number"),
        ({"fixed": ("uper",)}, "fixed: no moving body or joint 'uper'; did you mean 'upper'"),
        ({"fixed": ("upper", "lower")}, "no parameter is left to identify"),
        (
            {"data": Measurements(*(np.zeros((50, 3)) for _ in range(4)))},
            "q has 3 columns, expected 2; the model has 2 coordinates and 2 degrees of freedom",
        ),
        (
            {"data": Measurements(*(np.ones((2, 2)) for _ in range(4)))},
            "2 samples of 2 efforts are 4 equations, expected at least 6",
        ),
    ],
)
def test_bad_arguments_are_refused(changes, message):
    model = library.two_link()
    with pytest.raises(ArgumentError, match=f"identify: {message}"):
        identify(model, **({"data": measured(model, 0.1, count=50)} | changes))


def test_much_data_of_a_whole_arm_settle():
    """Of 91 parameters 29 are left to the prior alone, in a valley that Gauss-Newton steps do not get through."""
    model = library.arm7()
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1, 1, size=(3, 2000, 7))
    tau = model.inverse_dynamics(q, v, a) + 0.05 * rng.normal(size=q.shape)
    result = identify(model, Measurements(q, v, a, tau))
    z = (result.base_consistent - result.base_values) / result.base_standard_errors
    # what the prior, which is right, moves: less than one standard error each. The largest of 62 normal numbers
    # is beyond 4 once in 250 times, and the sum of squares beyond 2.2 per number never
    assert np.abs(z).max() < 4
    assert np.mean(z**2) < 1


def test_an_estimate_that_does_not_settle_is_refused(monkeypatch):
    monkeypatch.setattr(consistent, "_ITERATIONS", 2)
    with pytest.raises(NumericalError, match="the consistent estimate has not settled after 2 iterations"):
        identify(disturbed(arm()), measured(arm(), 0.02))


def test_parameters_without_any_effect_are_refused():
    model = library.pendulum().replace_joint("pivot", rotors=(Rotor(0.0, 1e-3),))
    with pytest.raises(ArgumentError, match="no motion of the model shows any of the parameters to identify"):
        identify(model, measured(model), fixed=("bob",))


def test_the_worked_example(tmp_path, capsys):
    path = Path(__file__).parents[2] / "examples" / "03_identify_arm.py"
    spec = importlib.util.spec_from_file_location("identify_arm", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main(tmp_path, iterations=6)
    text = capsys.readouterr().out
    assert "all 62 base parameters are well excited" in text
    errors = [
        line.split(":")[1].split() for line in text.splitlines() if line.startswith("torques of another")
    ]
    prior, identified = (np.array(row[:7], dtype=float) for row in errors)
    assert np.linalg.norm(identified) < 0.1 * np.linalg.norm(prior)
    # On the motion of the data itself, 62 parameters from 4866 samples of noise sigma predict to sigma sqrt(62 / 4866);
    # another motion asks for other sums of them.
    assert np.all(identified < 3 * example.TORQUE_NOISE * np.sqrt(62 / 4866))


def test_data_that_show_nothing_are_refused():
    model = library.two_link().replace(gravity=(0.0, 0.0, 0.0))
    still = np.zeros((40, 2))
    with pytest.raises(ArgumentError, match="the measured motion excites no parameter; does anything move"):
        identify(model, Measurements(still, still, still, still))


@pytest.mark.parametrize("method", ["least_squares", "consistent"])
def test_a_small_mechanism_is_a_large_one_in_other_units(method):
    """A thousandth of every length, efforts in the units of that: all parameters, known or not, are the same multiples."""

    def arm(s, wrong=1.0):
        builder = ModelBuilder("arm", gravity=(0, 0, -9.81 * s))
        parent, at = "world", 0.0
        for name, mass in (("a", 2.0), ("b", 0.7)):
            size = wrong * mass * s**2
            builder.body(
                name,
                Inertia(wrong * mass, (0.05 * s, 0.01 * s, 0.2 * s), (0.1 * size, 0, 0.1 * size, 0, 0, 0.05 * size)),
                joint=Revolute((0, 1, 0) if name == "a" else (1, 0, 0)),
                joint_name=f"joint_{name}", parent=parent, placement=(0, 0, at), armature=(0.02 * size,),
                friction=Friction(viscous=(0.3 * s**2,)),
            )  # fmt: skip
            parent, at = name, 0.4 * s
        return builder.build()

    found = []
    for s in (1.0, 1e-3):
        _, q, v, a = motion(arm(s))
        noise = 0.05 * s**2 * np.random.default_rng(3).normal(size=q.shape)
        data = Measurements(q, v, a, arm(s).inverse_dynamics(q, v, a) + noise)
        result = identify(arm(s, 1.3), data, method=method)
        length = np.array(
            [0 if name.endswith("mass") else 1 if ".mc" in name else 2 for name in result.names]
        )
        found.append([result.values / s**length, result.standard_errors / s**length, result.informed])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)  # as far as the iteration goes
