"""The stand-alone page, in a real browser: it loads without a word on the console, moves, and obeys."""

import io
import json
import re
from importlib import resources
from time import monotonic, sleep

import numpy as np
import pytest
from PIL import Image

import alembert as al
from alembert.errors import ArgumentError, FileError
from alembert.model.io.native import loads
from alembert.optimal import Problem, System, running
from alembert.view import Animation, write_html, write_page
from alembert.view.film import Browser, find
from alembert.view.page import configuration, page_data, scene_data
from alembert.view.scene import body_poses

POSITION = (
    """(() => { const e = alembert.current.stage.matrices[%d].elements; return [e[12], e[13], e[14]]; })()"""
)
ROTATION = """(() => { const e = alembert.current.stage.matrices[%d].elements;
return [[e[0], e[4], e[8]], [e[1], e[5], e[9]], [e[2], e[6], e[10]]]; })()"""


def four_bar():
    path = resources.files("alembert.study").joinpath("templates", "fourbar", "model.toml")
    return loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run():
    return al.simulate(al.library.acrobot(), [2.0, 0.5], [0.0, 0.0], duration=2.0)


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    return run.to_html(tmp_path_factory.mktemp("page") / "run.html")


def test_nothing_is_asked_of_a_network(page):
    text = page.read_text(encoding="utf-8")
    assert "https://" not in text
    # of XML, not addresses: three.js and the swatches of legends name them
    assert set(re.findall(r"http://[\w./]+", text)) == {
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/2000/svg",
    }
    assert "<link" not in text.replace('<link rel="icon" href="data:,">', "")
    assert "src=" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("name", ["run.png", "run"])
def test_a_page_is_written_under_the_name_of_a_page(run, name, tmp_path):
    with pytest.raises(ArgumentError, match=f"a page is HTML, and '{name}' does not end with .html; plot"):
        run.to_html(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_numbers_of_long_motions_are_those_of_intervals(tmp_path, load):
    """Where an interval of records has more than one value, its least and greatest stand for it."""
    t = np.linspace(0.0, 1000.0, 100_001)
    series = {"s": {"fast": np.sin(50.0 * t), "slow": 2.0 + t / 1000.0}}
    model = al.library.pendulum()
    path = write_html(tmp_path / "long.html", model, t, 0.1 * np.sin(t)[:, None], series=series)
    browser = load(path)
    browser.evaluate("alembert.current.pause(), alembert.current.seek(500)")
    fast, slow = browser.evaluate(
        "[...document.querySelectorAll('.legend .value')].map((x) => x.textContent)"
    )
    low, high = (float(x.replace("\N{MINUS SIGN}", "-")) for x in fast.split(" … "))
    np.testing.assert_allclose([low, high], [-1.0, 1.0], atol=0.04)  # in records 0.5 rad apart: 1 - cos(0.25)
    assert abs(float(slow) - 2.5) < 1e-3


def test_pages_of_many_scenes_have_the_name_of_the_model(run):
    title, _ = page_data(al.linearize(al.library.chain(4), np.zeros(4)).modes().motions())
    assert title == "chain_4"
    assert page_data([run, run.model])[0] == run.model.name


def test_the_motion_is_that_of_the_run(page, run, load):
    browser = load(page)
    browser.evaluate("alembert.current.pause()")
    R, p = body_poses(run.model, run.q)
    for k in (0, len(run.time) // 3, len(run.time) - 1):
        browser.evaluate(f"alembert.current.seek({run.time[k]})")
        # frames lie 1/60 s apart; between them the path is straight: an error of a h^2 / 8, 2e-3 for a = 60 m/s^2
        np.testing.assert_allclose(browser.evaluate(POSITION % 1), p[k, 1], atol=4e-3)
        np.testing.assert_allclose(browser.evaluate(ROTATION % 1), R[k, 1], atol=1e-2)
    browser.evaluate("alembert.current.seek(0)")
    np.testing.assert_allclose(browser.evaluate(POSITION % 1), p[0, 1], atol=1e-4)  # int16 over the box


def test_it_plays_pauses_and_scrubs(page, load):
    browser = load(page)
    browser.evaluate("alembert.current.pause(); alembert.current.seek(0)")
    before = browser.evaluate(POSITION % 1)
    browser.evaluate("document.querySelector('.play').click()")
    browser.wait_for("alembert.current.time > 0.05")
    browser.evaluate("document.querySelector('.play').click()")
    assert browser.evaluate("alembert.current.playing") is False
    assert np.linalg.norm(np.subtract(browser.evaluate(POSITION % 1), before)) > 1e-4
    slider = "document.querySelector('.bar input[type=range]')"
    browser.evaluate(f"{slider}.value = 1.5; {slider}.dispatchEvent(new Event('input'))")
    assert browser.evaluate("alembert.current.time") == pytest.approx(1.5)
    assert "1.50 / 2.00 s" in browser.evaluate("document.querySelector('.time').textContent")


def test_the_picture_changes_with_time(page, load):
    browser = load(page)
    browser.evaluate("alembert.current.pause(); alembert.current.seek(0); alembert.current.stage.render()")
    pixels = """(() => { const s = alembert.current.stage; s.dirty = true; s.render(); return s.canvas.toDataURL(); })()"""
    first = browser.evaluate(pixels)
    browser.evaluate("alembert.current.seek(1)")
    assert browser.evaluate(pixels) != first


def test_the_keyboard_is_enough(page, load):
    browser = load(page)
    browser.evaluate("alembert.current.pause(); alembert.current.seek(1); document.activeElement.blur()")
    browser.press("Home")
    assert browser.evaluate("alembert.current.time") == 0
    browser.press(".", "Period", ".")
    assert browser.evaluate("alembert.current.time") == pytest.approx(0.02)
    browser.press(" ", "Space", " ")
    assert browser.evaluate("alembert.current.playing") is True
    browser.press(" ", "Space", " ")
    # everything that can be clicked can be reached and has a name
    unnamed = browser.evaluate(
        "[...document.querySelectorAll('button, input, select, canvas[tabindex]')].filter("
        "e => !e.closest('[hidden]') && !(e.textContent.trim() || e.ariaLabel || e.title)).length"
    )
    assert unnamed == 0
    assert browser.evaluate("alembert.current.stage.canvas.tabIndex") == 0
    before = browser.evaluate("alembert.current.stage.camera.position.toArray()")
    browser.evaluate("alembert.current.stage.canvas.focus()")
    browser.press("ArrowLeft")
    assert browser.evaluate("alembert.current.stage.camera.position.toArray()") != before


def test_plots_follow_and_lead(page, run, load):
    browser = load(page)
    browser.evaluate("alembert.current.pause(); alembert.current.seek(1)")
    titles = browser.evaluate("[...document.querySelectorAll('figcaption')].map(e => e.textContent)")
    assert titles == ["energy [J]", "angles [rad]", "rates [rad/s]"]
    legend = browser.evaluate(
        "[...document.querySelectorAll('figure')[1].querySelectorAll('.legend button')].map(e => e.textContent)"
    )
    k = int(np.argmin(np.abs(run.time - 1)))
    for text, name, x in zip(legend, run.model.coordinate_names, run.q[k], strict=True):
        assert text.startswith(name)
        assert float(text.removeprefix(name).replace("−", "-")) == pytest.approx(x, abs=5e-3)
    browser.evaluate(
        """(() => { const c = alembert.current.plots[0].canvas, r = c.getBoundingClientRect(), p = alembert.current.plots[0];
        c.setPointerCapture = () => {};
        c.dispatchEvent(new PointerEvent('pointerdown',
        { clientX: r.left + p.x(0.5), clientY: r.top + 40, pointerId: 1 })); })()"""
    )
    assert browser.evaluate("alembert.current.time") == pytest.approx(0.5, abs=0.02)


def test_every_switch_works_in_both_themes(page, load):
    browser = load(page)
    browser.evaluate("alembert.current.pause()")
    for _ in range(2):
        browser.evaluate(
            "for (const b of document.querySelectorAll('.group button:not(:last-child)'))"
            " { b.click(); alembert.current.advance(0.02); }"
        )
        browser.evaluate("document.getElementById('theme').click(); alembert.current.advance(0.02)")
    assert browser.evaluate("document.documentElement.dataset.theme") in ("light", "dark")
    assert browser.evaluate("alembert.current.stage.ghostGroup.children.length") > 0


def test_sliders_pose_the_model(tmp_path, load):
    """The page runs the instructions of the model's own kinematics, quaternions and all."""
    model = al.library.humanoid()
    browser = load(write_html(tmp_path / "model.html", model))
    names = browser.evaluate("[...document.querySelectorAll('.sliders .name')].map(e => e.textContent)")
    assert names == list(model.speed_names)
    x = np.random.default_rng(0).uniform(-0.3, 0.3, model.nv)
    x = np.clip(x, np.r_[[-1] * 6, model.lower_limits[7:]], np.r_[[1] * 6, model.upper_limits[7:]])
    browser.evaluate(
        f"""{json.dumps(x.tolist())}.forEach((x, k) => {{ const e = document.querySelectorAll('.sliders input')[k];
        e.value = x; e.dispatchEvent(new Event('input')); }})"""
    )
    R, p = body_poses(model, configuration(model, model.neutral(), x))
    for i in (0, 10, len(model.bodies) - 1):
        np.testing.assert_allclose(browser.evaluate(POSITION % i), p[i], atol=1e-12)
        np.testing.assert_allclose(browser.evaluate(ROTATION % i), R[i], atol=1e-12)
    browser.evaluate("document.querySelector('.sliders button').click()")
    np.testing.assert_allclose(
        browser.evaluate(POSITION % 3), body_poses(model, model.neutral())[1][3], atol=1e-12
    )


MOVE = """(() => { const e = document.querySelectorAll('.sliders input')[%d];
e.value = %r; e.dispatchEvent(new Event('input')); return [...alembert.current.x]; })()"""


def test_sliders_keep_loops_closed(tmp_path, load):
    model = four_bar()
    start = model.assemble([1.2, -1.0, 1.6], fixed=["drive"]).q
    browser = load(write_html(tmp_path / "loop.html", model, q=start))
    for drive in (2.0, 3.0, -2.5):
        x = np.array(browser.evaluate(MOVE % (0, drive)))
        assert x[0] == pytest.approx(drive, abs=1e-12)
        np.testing.assert_allclose(model.constraint_residual(x), 0, atol=1e-7)  # the tolerance of the page
        # what is shown, on the sliders and in the picture, is where the loop has moved the others
        shown = browser.evaluate("[...document.querySelectorAll('.sliders input')].map(e => Number(e.value))")
        np.testing.assert_allclose(shown, x, atol=1e-9)
        np.testing.assert_allclose(browser.evaluate(POSITION % 1), body_poses(model, x)[1][1], atol=1e-12)
    # the rocker cannot turn round: it stops where the loop is stretched
    x = np.array(browser.evaluate(MOVE % (2, -1.0)))
    np.testing.assert_allclose(model.constraint_residual(x), 0, atol=1e-7)
    assert x[2] > 0
    assert "cannot be closed" in browser.evaluate("document.querySelector('.notice').textContent")
    browser.evaluate("document.querySelector('.sliders button').click()")
    assert browser.evaluate("document.querySelector('.notice').textContent") == ""
    np.testing.assert_allclose(browser.evaluate("[...alembert.current.x]"), start, atol=1e-15)


PULL = """(() => { const p = alembert.current, h = p.hand, s = p.stage, i = s.data.bodies.indexOf(%s);
const at = (v) => v.applyMatrix4(s.root.matrixWorld);
h.grip(i, at(new THREE.Vector3().applyMatrix4(s.body(i))));
h.to(at(new THREE.Vector3(...%s)));
for (let k = 0; k < 12; k++) h.advance();
h.release();
return [[...p.x], p.notice.textContent]; })()"""


def test_joints_follow_a_body_that_is_pulled(tmp_path, load):
    """From an arm stretched out at the limit of its elbow to wherever another configuration has its hand."""
    model = al.library.arm7()
    browser = load(write_html(tmp_path / "arm.html", model))
    rng = np.random.default_rng(4)
    for q in rng.uniform(model.lower_limits, model.upper_limits, (4, model.nq)):
        target = model.frame_pose(q, "link7").translation
        x, notice = browser.evaluate(PULL % ('"link7"', target.tolist()))
        assert notice == ""
        # the page stops at 1e-5 of the length of a link, or after some frames at 1e-4
        np.testing.assert_allclose(model.frame_pose(x, "link7").translation, target, atol=1e-4)
        assert np.all((x >= model.lower_limits - 1e-6) & (x <= model.upper_limits + 1e-6))
    _, notice = browser.evaluate(PULL % ('"link7"', [3.0, 0.0, 0.5]))
    assert notice.startswith("Out of reach by ")
    browser.evaluate("alembert.current.switches.pull.click()")
    assert browser.evaluate("alembert.current.hand.mode") == ""


def test_a_body_that_was_turned_by_the_mouse_keeps_its_attitude(tmp_path, load):
    """With Shift the body turns about the point that is held; pulled on without, it goes there as it is then."""
    model = al.library.arm7()
    start = np.array([0.3, 0.6, 0.0, -1.4, 0.0, 1.0, 0.0])
    browser = load(write_html(tmp_path / "turned.html", model, q=start))
    held = model.frame_pose(start, "link7")
    target = held.translation + np.array([-0.05, 0.04, 0.03])
    turn = f"""(() => {{ const p = alembert.current, h = p.hand, s = p.stage, i = s.data.bodies.indexOf("link7");
const at = (v) => v.applyMatrix4(s.root.matrixWorld);
h.grip(i, at(new THREE.Vector3(...{held.translation.tolist()})));
h.turn(30, 20);
for (let k = 0; k < 12; k++) h.advance();
const first = [...p.x];
h.to(at(new THREE.Vector3(...{target.tolist()})));
for (let k = 0; k < 12; k++) h.advance();
h.release();
return [first, [...p.x], p.notice.textContent]; }})()"""
    first, last, notice = browser.evaluate(turn)
    assert notice == ""
    turned, moved = (model.frame_pose(np.array(x), "link7") for x in (first, last))
    # to what the page asks for: 1e-4 of the length of a link, and of a radian
    np.testing.assert_allclose(turned.translation, held.translation, atol=1e-4)
    np.testing.assert_allclose(moved.translation, target, atol=1e-4)
    np.testing.assert_allclose(moved.rotation, turned.rotation, atol=2e-4)
    angle = np.arccos((np.trace(held.rotation.T @ turned.rotation) - 1) / 2)
    assert angle == pytest.approx(np.hypot(30, 20) / 150, abs=2e-4)


def test_a_floor_is_drawn_and_does_not_shrink_the_rest(tmp_path, load):
    model = al.library.pendulum()
    floor = al.Visual(al.Box((500.0, 500.0, 0.1)), al.Placement((0, 0, -2)))
    with_floor = model.replace(visuals=[floor])
    sizes = []
    for k, shown in enumerate((model, with_floor)):
        browser = load(write_html(tmp_path / f"floor{k}.html", shown))
        sizes.append(browser.evaluate("alembert.current.stage.size"))
        assert browser.evaluate("alembert.current.data.parts.filter(p => p.kind === 'box').length") == k
    assert sizes[0] == sizes[1]


def test_several_scenes_have_tabs(run, tmp_path, load):
    still = al.library.satellite()
    browser = load(write_page(tmp_path / "two.html", [run, still], title="two"))
    assert browser.evaluate("document.querySelectorAll('[role=tab]').length") == 2
    browser.evaluate("document.querySelectorAll('[role=tab]')[1].click()")
    browser.wait_for("alembert.current.data.name === 'satellite'")
    assert browser.evaluate("document.getElementById('scene0').hidden") is True


def test_the_frame_of_a_notebook_runs(run, tmp_path, load):
    """In a sandbox, inside a page of somebody else."""
    shown = al.view(run, inline=True)
    path = tmp_path / "notebook.html"
    # the frame tells nobody anything: its picture is what there is to see
    path.write_text(
        f"<!DOCTYPE html><script>window.alembert={{current: {{problem: null}}}}</script>{shown._repr_html_()}"
    )
    browser = load(path)
    end = monotonic() + 60
    while len(Image.open(io.BytesIO(browser.screenshot())).convert("RGB").getcolors(1 << 20)) < 300:
        assert monotonic() < end
        sleep(0.2)


def test_without_webgl_the_plots_still_work(page):
    if find() is None:
        pytest.skip("pages are looked at in Chromium or Chrome, and none of them is installed")
    with Browser(width=720, height=480, timeout=120, arguments=("--disable-3d-apis",)) as browser:
        browser.open(page)
        browser.wait_for("!!window.alembert")
        assert "no WebGL" in browser.evaluate("document.querySelector('.stage').textContent")
        browser.evaluate("alembert.current.pause(); alembert.current.seek(1); alembert.current.advance(0.1)")
        assert browser.evaluate("document.querySelector('.value').textContent") != ""


HOSTILE = [
    "</script><script>window.hacked=1</script>",
    "\"'`><img src=x onerror=window.hacked=1>",
    "a\u2028b\u2029c\\",
    "<!--<script>",
    "]]>&lt;${window.hacked=1}",
    "__proto__",
]


def test_names_from_a_model_run_no_script(tmp_path, load):
    builder = al.ModelBuilder(HOSTILE[0])
    for k, name in enumerate(HOSTILE):
        builder.body(
            name,
            al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)),
            joint=al.Revolute((0, 0, 1)),
            joint_name=name,
            parent=HOSTILE[k - 1] if k else "world",
        )
        builder.frame(f"frame {name}", name, (1, 0, 0)).sensor(name, "gyro", name)
    model = builder.build()
    n = 20
    q = np.linspace(0, 1, n)[:, None] * np.ones(model.nq)
    motion = Animation(
        model,
        np.linspace(0, 1, n),
        q,
        efforts=q,
        series={name: dict.fromkeys(HOSTILE, q[:, 0]) for name in HOSTILE},
        notes=dict(zip(HOSTILE, HOSTILE, strict=True)),
        title=HOSTILE[1],
    )
    path = write_page(tmp_path / "hostile.html", [motion, model], title=HOSTILE[0])
    browser = load(path)
    for k in range(2):
        browser.evaluate(f"alembert.select({k})")
        browser.evaluate(
            "for (const b of document.querySelectorAll('.group button:not(:last-child)')) b.click()"
        )
        browser.evaluate("alembert.current.advance(0.02)")
    assert browser.evaluate("window.hacked") is None
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.title") == HOSTILE[0]
    assert browser.evaluate("alembert.current.data.bodies") == HOSTILE
    assert browser.evaluate("[...document.querySelectorAll('dd')].map(e => e.textContent)") == HOSTILE
    # and should a name ever get into the page as markup, the policy refuses it
    browser.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hacked=1>')")
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    assert browser.evaluate("window.hacked") is None
    assert any("Content Security Policy" in message for message in browser.messages)
    browser.messages.clear()


def test_a_long_run_of_many_bodies_is_small(tmp_path, load):
    """Ten seconds of fifty bodies, recorded every millisecond: below 5 MB, and drawn with a handful of calls."""
    model = al.library.chain(50)
    time = np.linspace(0, 10, 10_001)
    q = np.sin(time[:, None] * np.linspace(1, 2, 50)) * 0.3
    series = {"angles [rad]": dict(zip(model.coordinate_names, q.T, strict=True))}
    path = write_html(tmp_path / "long.html", model, time, q, efforts=q, series=series, autoplay=False)
    assert path.stat().st_size < 5_000_000
    browser = load(path)
    browser.evaluate(
        "alembert.current.pause(); alembert.current.stage.dirty = true; alembert.current.stage.render()"
    )
    assert browser.evaluate("alembert.current.stage.renderer.info.render.calls") < 30


def test_sparse_records_keep_bodies_connected(tmp_path):
    """Between five records a link turns along the shortest way instead of shrinking."""
    model = al.library.two_link()
    motion = Animation(model, np.linspace(0, 4, 5), np.linspace(0, 1, 5)[:, None] * [[6.0, -3.0]])
    frames = motion.frames()
    tip = frames.positions[:, 1]
    np.testing.assert_allclose(np.linalg.norm(tip, axis=1), np.linalg.norm(tip[0]), rtol=1e-12)
    assert len(frames.time) == 241


def test_thinned_plots_keep_their_peaks():
    """One record in a hundred thousand is a spike; another has no value."""
    model = al.library.pendulum()
    time = np.linspace(0, 100, 100_001)
    line = np.sin(3000 * time)
    line[54_321] = 50.0
    line[77_000:77_500] = np.nan
    motion = Animation(model, time, np.zeros((len(time), 1)), series={"x": {"y": line}})
    ((_, times, lines),) = motion.panels()
    assert len(times) == len(lines["y"]) <= 2001
    assert np.nanmax(lines["y"]) == 50.0
    assert np.nanmin(lines["y"]) == np.nanmin(line)
    assert np.isnan(lines["y"]).any()
    assert times[int(np.nanargmax(lines["y"]))] == pytest.approx(54.321, abs=0.1)
    assert (times[0], times[-1]) == (0.0, 100.0)


def test_a_page_says_when_its_picture_is_coarse(tmp_path):
    model = al.library.chain(20)
    time = np.linspace(0, 2000, 201)
    text = write_html(tmp_path / "x.html", model, time, np.zeros((201, 20))).read_text(encoding="utf-8")
    assert re.search(r'\["picture","[\d.]+ frames per second of motion"\]', text)


def test_torques_of_joints_become_arrows():
    model = al.library.satellite()
    efforts = np.zeros((3, model.nv))
    efforts[:, 6:] = [[1.0, -2.0, 3.0]] * 3
    q = np.tile(model.neutral(), (3, 1))
    wrench = np.tile([0, 0, 0, 5.0, 0, 0], (3, 1))
    motion = Animation(model, [0, 1, 2], q, efforts=efforts, wrenches={"main": wrench})
    arrows = {(arrow.name, arrow.kind): arrow.vectors[0] for arrow in motion.frames().arrows}
    np.testing.assert_allclose(arrows["spin_y", "torque"], [0, -2, 0], atol=1e-15)
    np.testing.assert_allclose(arrows["main", "force"], [5, 0, 0], atol=1e-15)
    assert set(arrows) == {
        ("spin_x", "torque"),
        ("spin_y", "torque"),
        ("spin_z", "torque"),
        ("main", "force"),
    }
    assert motion.panels()[0][0] == "torques [N m]"


# --- messages -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": [0, 1], "q": np.zeros((3, 2))}, r"Animation: q has shape \(3, 2\), expected \(2, 2\)"),
        ({"time": [1, 0], "q": np.zeros((2, 2))}, "times .* that do not decrease"),
        ({"time": "now", "q": np.zeros((2, 2))}, "Animation: time is 'now', expected numbers"),
        ({"time": [0, np.nan], "q": np.zeros((2, 2))}, "time has entries that are not finite"),
        (
            {"time": [0], "q": np.zeros((1, 2)), "efforts": [1.0]},
            r"efforts have shape \(1,\), expected \(1, 2\)",
        ),
        ({"time": [0], "q": np.zeros((1, 2)), "wrenches": {"lower": [1.0]}}, "wrench on 'lower' has shape"),
        (
            {"time": [0], "q": np.zeros((1, 2)), "series": {"x": {"y": [1, 2]}}},
            r"series 'x', line 'y' has shape \(2,\)",
        ),
        ({"time": [0], "q": np.zeros((1, 2)), "series": {"x": np.zeros((1, 1, 1))}}, "series 'x' has shape"),
        ({"time": [0], "q": np.zeros((1, 2)), "trails": ["nowhere"]}, "has no frame 'nowhere'"),
        ({"series": {}}, "write_html: series is given without time"),
        ({"theme": "pink"}, "theme is 'pink', expected one of auto, light, dark"),
    ],
)
def test_bad_arguments(tmp_path, options, message):
    with pytest.raises(ArgumentError, match=message):
        write_html(tmp_path / "x.html", al.library.two_link(), **options)


def test_other_messages(tmp_path, run):
    with pytest.raises(ArgumentError, match="Animation: model is a int, expected a Model"):
        Animation(3, [0], [[0]])
    with pytest.raises(ArgumentError, match="view: model is a int, expected a Model"):
        write_html(tmp_path / "x.html", 3)
    with pytest.raises(ArgumentError, match=r"view: q has shape \(1, 2\), expected \(2,\)"):
        write_html(tmp_path / "x.html", run.model, q=[[0.0, 0.0]])
    with pytest.raises(ArgumentError, match="view: int is neither a model nor a result with a motion"):
        write_page(tmp_path / "x.html", [3])
    with pytest.raises(ArgumentError, match="there is nothing to show"):
        write_page(tmp_path / "x.html", [])
    with pytest.raises(FileError, match="cannot be written"):
        run.to_html(tmp_path / "none" / "x.html")
    with pytest.raises(ArgumentError, match=r"member is 1, expected one of a batch of shape \(\)"):
        run.to_html(tmp_path / "x.html", member=1)


def test_the_picture_moves_with_what_flies_far():
    """In an orbit the bodies are placed relative to the first; a ball that is thrown is seen to fly."""
    builder = al.ModelBuilder("craft", gravity=(0, 0, 0))
    builder.body("hub", al.Inertia.box(100.0, (1, 1, 1)), joint=al.Free())
    builder.body(
        "arm", al.Inertia.box(1.0, (1, 0.1, 0.1)), parent="hub", joint=al.Revolute(), placement=(2, 0, 0)
    )
    model = builder.build()
    t = np.linspace(0, 100, 21)
    for radius, moves in ((7e6, True), (50.0, False)):
        q = np.tile(model.neutral(), (len(t), 1))
        q[:, 0], q[:, 1] = radius * np.cos(1e-2 * t), radius * np.sin(1e-2 * t)
        data = scene_data(Animation(model, t, q))
        notes = dict(data["notes"])
        assert ("moves with 'hub'" in notes.get("picture", "")) is moves
        step = max(data["motion"]["scale"])
        assert step < 2e-3
        assert max(np.abs(data["motion"]["offset"])) < 60


def test_a_result_without_a_model_is_a_page_of_plots(tmp_path, load):
    """No picture and no talk of one; plots over the time follow it, those over iterations have no cursor to drag."""
    landing = System(["h", "v"], ["thrust"], lambda s: [s.v, s.thrust - 1.5], name="lander")
    ends = {"start": {"h": 10, "v": -2}, "end": {"h": 0, "v": 0}}
    problem = Problem(
        landing, (1.0, 10.0), **ends, limits={"thrust": (0, 3)}, cost=running(lambda s: s.thrust)
    )
    solution = problem.solve(20, accuracy=1e-4)
    browser = load(solution.to_html(tmp_path / "lander.html"))
    titles = browser.evaluate("[...document.querySelectorAll('figcaption')].map(e => e.textContent)")
    assert titles[:5] == ["h", "v", "thrust", "costates", "multipliers of bounds"]
    assert [title.partition(" over the ")[2] for title in titles[5:]] == [
        "iterations",
        "iterations, powers of ten",
        "meshes, powers of ten",
    ]
    assert browser.evaluate("document.querySelectorAll('.stage canvas').length") == 0
    assert "picture" not in browser.evaluate("document.body.innerText")
    assert "intervals" in browser.evaluate("document.querySelector('.notes').textContent")
    browser.evaluate("alembert.current.pause(); alembert.current.seek(0)")
    values = "[...document.querySelectorAll('.value')].map(e => Number(e.textContent.replace('−', '-')))"
    first = browser.evaluate(values)
    assert first[:2] == pytest.approx([10, -2], abs=1e-3)
    browser.evaluate(f"alembert.current.seek({solution.duration})")
    last = browser.evaluate(values)
    assert last[:2] == pytest.approx([0, 0], abs=1e-3)
    assert last[-4:] == first[-4:]
