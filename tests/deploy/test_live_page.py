"""Live pages: the WebAssembly in them is the simulation, to rounding, and the page plays it in a real browser."""

import base64
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, library
from alembert.simulate import DynamicController, Sampled, SymbolicLaw
from alembert.view.film import Browser, find
from alembert.view.scene import body_poses

STATE = {"q0": [0.6, -0.4], "v0": [0.3, 0.0]}
RUN = """
const live = JSON.parse(require("fs").readFileSync(process.argv[2], "utf8"));
WebAssembly.instantiate(Buffer.from(live.wasm, "base64"), { m: Math }).then(({ instance }) => {
  const m = new Float64Array(instance.exports.memory.buffer);
  const part = (n) => m.subarray(live.places[n][0], live.places[n][0] + live.places[n][1]);
  for (const n of ["q", "v", "x", "d"]) part(n).set(live[n]);
  part("h")[0] = live.step;
  for (const s of live.sliders) part(s.array)[s.index] = s.value;
  for (let k = 0; k < 200; k++) {
    if (live.every && k % live.every === 0) instance.exports.instant_now();
    instance.exports.step_now();
    part("t")[0] = (k + 1) * live.step;
  }
  instance.exports.poses_now();
  console.log(JSON.stringify({ q: [...part("q")], v: [...part("v")], x: [...part("poses")] }));
});
"""


def data(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))["scenes"][0]["live"]


def in_node(path, tmp_path, **changes):
    live = data(path)
    for slider in live["sliders"]:
        slider["value"] = changes.get(slider["name"], slider["value"])
    (tmp_path / "live.json").write_text(json.dumps(live))
    (tmp_path / "run.js").write_text(RUN)
    found = subprocess.run(
        ["node", str(tmp_path / "run.js"), str(tmp_path / "live.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: np.array(x) for name, x in json.loads(found.stdout).items()}


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_module_is_the_simulation(tmp_path):
    """Quaternions, parameters, gravity and damping: 200 steps as `al.simulate` makes them."""
    builder = al.ModelBuilder("ball")
    mass = builder.parameter("mass", 2.0)
    builder.body("ball", al.Inertia(mass, (0.1, 0.2, 0.3), (0.5, 0, 0.6, 0, 0, 0.7)), joint=al.Spherical())
    builder.body(
        "arm",
        al.Inertia.point(0.5, (0.4, 0, 0)),
        parent="ball",
        joint=al.Revolute((0, 1, 0)),
        joint_name="hinge",
    )
    model = builder.build()
    v0 = np.array([1.0, -2.0, 0.5, 0.3])
    path = al.deploy.live_page(model, tmp_path / "ball.html", v0=v0, step=2e-3)
    found = in_node(path, tmp_path, mass=3.0, damping=0.4)
    import casadi as ca

    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    run = al.simulate(
        model,
        v0=v0,
        duration=0.4,
        step=2e-3,
        integrator="rk4",
        controller=ca.Function("damping", [t, q, v], [-0.4 * v]),
        parameters={"mass": 3.0},
    )
    np.testing.assert_allclose(found["q"], run.q[-1], atol=1e-11)
    np.testing.assert_allclose(found["v"], run.v[-1], atol=1e-10)
    X = model.frame_pose(run.q[-1], "arm")
    np.testing.assert_allclose(found["x"][12:21].reshape(3, 3), X.rotation, atol=1e-11)
    np.testing.assert_allclose(found["x"][21:], X.translation, atol=1e-11)
    # without gravity
    found = in_node(path, tmp_path, gravity=0.0, mass=3.0)
    run = al.simulate(
        model,
        v0=v0,
        duration=0.4,
        step=2e-3,
        integrator="rk4",
        gravity=(0, 0, 0),
        parameters={"mass": 3.0},
    )
    np.testing.assert_allclose(found["v"], run.v[-1], atol=1e-9)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_bodies_that_bend_are_drawn(tmp_path):
    """In pieces, where their nodes are."""
    builder = al.ModelBuilder("satellite", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(30.0, (1, 1, 1)), joint=al.Revolute(), joint_name="turn")
    panel = al.flexible.beam(3.0, 2.0, EI_z=200.0, bending_y=2)
    builder.body("panel", panel, joint=al.Fixed(), parent="hub", placement=(0.5, 0, 0))
    model = builder.build()
    q0, v0 = {"panel.bending_y_1": 0.1}, {"turn": 0.3}
    path = al.deploy.live_page(model, tmp_path / "live.html", q0=q0, v0=v0, step=2e-3)
    found = in_node(path, tmp_path)
    run = al.simulate(model, q0, v0, duration=0.4, step=2e-3, integrator="rk4")
    R, p = body_poses(model, run.q[-1])
    expected = np.concatenate([R.reshape(len(R), 9), p], axis=1)
    # rounding of the 200 steps; the panel is in pieces, which have moved far
    np.testing.assert_allclose(found["x"].reshape(-1, 12), expected, atol=1e-10)
    assert len(R) > len(model.bodies)
    assert np.ptp(p[2:, 1]) > 0.05


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_loops_states_and_samples_in_the_page(crank, tmp_path):
    import casadi as ca

    model, start = crank
    slow = al.control.StateSpace(
        [[-3.0]], [[1.0]], [[2.0]], [[-4.0]], input_names=("v:crank",), output_names=("crank",)
    )
    v = ca.SX.sym("v", 4)
    damped = ca.Function("law", [ca.SX.sym("t"), ca.SX.sym("q", 4), v], [ca.vertcat(0, 0, -v[2], 0)])
    given = {
        "controller": [
            DynamicController(slow, references={"v:crank": 9.0}),
            Sampled(damped, period=0.02, delay=0.01),
        ]
    }
    path = al.deploy.live_page(model, tmp_path / "crank.html", step=2e-3, **start, **given)
    assert [s["name"] for s in data(path)["sliders"]] == ["gravity", "damping", "reference.v:crank"]
    found = in_node(path, tmp_path)
    run = al.simulate(model, **start, duration=0.4, step=2e-3, interval=0.1, integrator="rk4", **given)
    np.testing.assert_allclose(found["q"], run.q[-1], atol=1e-10)  # the same operations


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_masses_and_gains_have_sliders(tmp_path):
    """A body of another mass, with its moments in proportion, and another gain: 200 steps as `al.simulate` makes them."""
    import casadi as ca

    model = library.two_link()
    t, q, v, g = ca.SX.sym("t"), ca.SX.sym("q", 2), ca.SX.sym("v", 2), ca.SX.sym("g", 2)
    law = ca.Function("law", [t, q, v, g], [-g[0] * q - g[1] * v])
    second = model.bodies[1].name
    path = al.deploy.live_page(
        model,
        tmp_path / "arm.html",
        masses=[second],
        controller=law,
        inputs={"stiffness": 40.0, "gravity": 8.0},  # a name that the page has too
        **STATE,
    )
    before = model.body(second).inertia
    sliders = data(path)["sliders"]
    assert [(s["name"], s["unit"]) for s in sliders] == [
        ("gravity", "×"), ("damping", ""), ("stiffness", ""), ("gravity", ""), (f"mass of {second}", "kg"),
    ]  # fmt: skip
    assert [s["value"] for s in sliders[2:]] == [40.0, 8.0, before.mass]
    assert (sliders[0]["value"], sliders[0]["high"], sliders[3]["high"]) == (1.0, 3.0, 16.0)
    found = in_node(
        path, tmp_path, **{f"mass of {second}": 3 * before.mass, "stiffness": 15.0, "damping": 0.1}
    )
    heavy = model.replace_body(
        second, inertia=al.Inertia(3 * before.mass, before.com, tuple(3 * x for x in before.tensor))
    )
    run = al.simulate(
        heavy, **STATE, duration=0.2, step=1e-3, integrator="rk4",
        controller=ca.Function("law", [t, q, v], [law(t, q, v, ca.DM([15.0, 8.0])) - 0.1 * v]),
    )  # fmt: skip
    np.testing.assert_allclose(found["q"], run.q[-1], atol=1e-11)  # the same operations, but for their order


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return al.deploy.live_page(
        library.two_link(), tmp_path_factory.mktemp("live") / "arm.html", autoplay=False, **STATE
    )


def test_the_page_is_small_and_asks_for_nothing(page):
    text = page.read_text(encoding="utf-8")
    assert len(text) < 2_000_000
    assert "https://" not in text
    assert "wasm-unsafe-eval" in text
    assert base64.b64decode(data(page)["wasm"])[:4] == b"\x00asm"
    ordinary = al.view.write_html(page.with_name("still.html"), library.pendulum())
    assert "wasm" not in ordinary.read_text(encoding="utf-8").split("<script>")[0]


@pytest.mark.skipif(find() is None, reason="needs Chromium")
def test_the_page_plays(page, crank, tmp_path):
    with Browser() as browser:
        browser.open(page)
        browser.wait_for("!!window.alembert && !!alembert.current.live.memory")
        live = "alembert.current.live"
        np.testing.assert_allclose(browser.evaluate(f"[...{live}.part('q')]"), STATE["q0"])
        browser.evaluate(f"{live}.running = true")
        for _ in range(4):
            browser.evaluate(f"{live}.advance(0.0101)")
        browser.evaluate(f"{live}.stop()")
        t = browser.evaluate(f"{live}.time")
        model = library.two_link()
        run = al.simulate(model, **STATE, duration=round(t, 6), step=1e-3, integrator="rk4")
        np.testing.assert_allclose(browser.evaluate(f"[...{live}.part('q')]"), run.q[-1], atol=1e-9)
        browser.evaluate(f"{live}.restart()")
        assert browser.evaluate(f"{live}.time") == 0
        browser.evaluate("alembert.current.move(0, 1.25)")
        assert browser.evaluate(f"{live}.part('q')[0]") == 1.25
        assert browser.evaluate(f"{live}.part('v')[0]") == 0
        browser.evaluate(
            """(() => { const p = alembert.current, h = p.hand, s = p.stage, at = new THREE.Vector3(0.5, 0, -0.3);
            h.grip(1, new THREE.Vector3().applyMatrix4(s.body(1)).applyMatrix4(s.root.matrixWorld));
            h.to(at.applyMatrix4(s.root.matrixWorld)); h.advance(); h.release(); })()"""
        )
        assert browser.evaluate(f"{live}.part('q')[0]") != 1.25  # pulled elsewhere, at rest
        assert browser.evaluate(f"{live}.part('q')[0]") == browser.evaluate("alembert.current.x[0]")
        assert browser.evaluate("document.querySelectorAll('.live input').length") == 2
        browser.evaluate(f"{live}.part('q')[0] = NaN; {live}.running = true; {live}.advance(0.01)")
        assert "without bounds" in browser.evaluate(f"{live}.readout.textContent")
        assert browser.messages == []
        # a joint of a loop that is moved by hand takes the others along
        model, start = crank
        browser.open(al.deploy.live_page(model, tmp_path / "crank.html", autoplay=False, **start))
        browser.wait_for("!!window.alembert && !!alembert.current.live.memory")
        browser.evaluate(f"alembert.current.x[0] = 1.5; {live}.moved(0)")
        q = np.array(browser.evaluate(f"[...{live}.part('q')]"))
        assert abs(q[0] - 1.5) < 1e-5
        assert model.constraint_analysis(q).residual < 1e-9
        assert browser.messages == []


def test_what_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="step is 1, expected a time in seconds"):
        al.deploy.live_page(library.pendulum(), tmp_path / "x.html", step=1)
    law = Sampled(SymbolicLaw(lambda t, m: {"efforts": 0 * t}), period=0.01)
    with pytest.raises(ArgumentError, match=r"step is 0\.003 s, expected a part of 0\.01 s"):
        al.deploy.live_page(library.pendulum(), tmp_path / "x.html", step=0.003, controller=law)
    model = library.two_link()
    name = model.bodies[1].name
    light = al.ModelBuilder("light")
    light.parameter("m", 2.0)
    light.body(
        "formula", al.Inertia.point(al.Expression("m"), (1, 0, 0)), joint=al.Revolute(), joint_name="a"
    )
    light.body("frame", al.Inertia(), joint=al.Fixed(), joint_name="b", parent="formula")
    light.body(
        "boom", al.flexible.beam(1.0, 2.0, EI_y=50.0, bending_z=1), joint=al.Fixed(), joint_name="c", parent="formula"
    )  # fmt: skip
    light = light.build()
    for given, options, message in (
        (model, {"masses": ["nobody"]}, "nobody"),
        (model, {"masses": name}, "expected a list of names"),
        (
            light,
            {"masses": ["formula"]},
            "'formula', whose inertia is a formula of parameters, which have sliders",
        ),
        (light, {"masses": ["frame"]}, "'frame', which has a mass of 0 kg"),
        (light, {"masses": ["boom"]}, "'boom', which is flexible, expected rigid bodies"),
        (
            model,
            {"inputs": {"gain": 1.0}},
            r"inputs are \['gain'\], and there is no controller that takes them",
        ),
        (model, {"inputs": ["gain"]}, "expected names with their values at the start"),
        (model, {"inputs": {"gain": [1.0]}}, r"inputs\['gain'\] is \[1.0\], expected a number"),
    ):
        with pytest.raises(al.AlembertError, match=message):
            al.deploy.live_page(given, tmp_path / "x.html", **options)
