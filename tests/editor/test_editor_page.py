"""The editor in a real browser: a model is opened, changed by hand, and saved."""

import json
import shutil
from importlib import resources

import numpy as np
import pytest

import alembert as al
from alembert.editor import edit

TEMPLATES = resources.files("alembert.study").joinpath("templates")


BROKEN = """format = "alembert-model"
version = 1
[bodies.a]
inertia = { point = { mass = -2, position = [1, 0, 0] } }
[bodies.b]
inertia = { sphere = { mass = 1, radius = 0.1 } }
[joints.hinge]
type = "revolute"
parent = "world"
child = "a"
"""


@pytest.fixture
def opened(chromium, tmp_path):
    """Open a copy of a template; at the end nothing must have gone wrong or left the machine."""
    chromium.messages.clear()
    running = []

    def start(name, text=""):
        path = tmp_path / "model.toml"
        if text:
            path.write_text(text)
        elif name:
            shutil.copy(str(TEMPLATES.joinpath(name, "model.toml")), path)
        running.append(edit(path, open_browser=False))
        chromium.requests.clear()
        chromium.open(running[0].url)
        chromium.wait_for("!!window.editor")
        if not text:
            chromium.wait_for("!!window.alembert")
            assert chromium.evaluate("alembert.current.problem || null") is None
        return Page(chromium, running[0], path)

    yield start
    assert chromium.messages == []
    assert all(url.startswith(running[0].url) for url in chromium.requests)
    chromium.evaluate("editor.state.saved = true")  # the page may be left
    chromium.open("about:blank")
    for editor in running:
        editor.stop()


class Page:
    def __init__(self, browser, editor, path):
        self.browser, self.editor, self.path = browser, editor, path

    def settled(self):
        """What was sent is answered, and drawn: the mouse hits what the last frame has shown."""
        self.browser.evaluate(
            "(async () => { await editor.queue; for (const _ of [1, 2]) await new Promise(requestAnimationFrame); })()"
        )

    def field(self, *place):
        return (
            "[...document.querySelectorAll('.form [data-place]')].find((e) => e.dataset.place === "
            f"{json.dumps(json.dumps(place, separators=(',', ':')))})"
        )

    def type(self, value, *place):
        e = self.field(*place)
        self.browser.evaluate(
            f"{e}.focus(); {e}.value = {json.dumps(value)}; {e}.dispatchEvent(new Event('change'))"
        )
        self.settled()

    def press(self, label):
        self.browser.evaluate(
            f"[...document.querySelectorAll('button')].find((b) => b.textContent === {json.dumps(label)}).click()"
        )
        self.settled()

    def choose(self, part):
        self.browser.evaluate(f"document.querySelector('[data-part={json.dumps(part)}]').click()")

    def errors(self):
        return self.browser.evaluate(
            "[...document.querySelectorAll('.form .error')].map((e) => e.textContent)"
        )

    def pixel(self, body):
        """Where the centre of mass of a body is on the screen."""
        x, y = self.browser.evaluate(
            f"""(() => {{ const s = alembert.current.stage, i = s.data.bodies.indexOf({json.dumps(body)});
            const m = s.data.masses.find((m) => m.body === i), r = s.canvas.getBoundingClientRect();
            const v = new THREE.Vector3().setFromMatrixPosition(m.local).applyMatrix4(s.body(i));
            v.applyMatrix4(s.root.matrixWorld).project(s.camera);
            return [r.left + (v.x + 1) / 2 * r.width, r.top + (1 - v.y) / 2 * r.height]; }})()"""
        )
        return x, y


def test_a_model_is_opened_changed_and_saved(opened):
    page = opened("pendulum")
    text = page.path.read_text()
    page.choose("bodies/rod")
    page.type("0.2", "joints", "hinge", "friction", "viscous", 0)
    page.type("2.5", "bodies", "rod", "inertia", "rod", "mass")
    expected = text.replace('viscous = "damping"', "viscous = 0.2").replace('mass = "mass"', "mass = 2.5")
    assert expected != text
    assert page.editor.document.text == expected
    page.type("-1", "bodies", "rod", "inertia", "rod", "mass")
    assert page.errors() == ["body 'rod': mass is -1, expected a positive number"]
    assert (
        page.browser.evaluate(f"{page.field('bodies', 'rod', 'inertia', 'rod', 'mass')}.ariaInvalid")
        == "true"
    )
    page.press("Undo")
    assert page.errors() == []
    page.type("stick", "bodies", "rod", "")
    assert page.editor.document.model.joint("hinge").child == "stick"
    assert page.browser.evaluate("editor.selected.join('/')") == "bodies/stick"
    page.type("prismatic", "joints", "hinge", "type")
    assert page.editor.document.model.joint("hinge").type.kind == "prismatic"
    page.press("Undo")
    page.press("Redo")
    page.press("Undo")
    page.press("Python")
    assert "al.Inertia.rod(mass=2.5" in page.browser.evaluate(
        "document.querySelector('.code textarea').value"
    )
    page.press("Save")
    assert page.path.read_text() == page.editor.document.text
    saved = al.load(page.path)
    assert (saved.body("stick").inertia.mass, saved.joint("hinge").type.kind) == (2.5, "revolute")
    assert [line for line in text.splitlines() if "#" in line] == [
        line for line in page.path.read_text().splitlines() if "#" in line
    ]
    assert page.browser.evaluate("document.querySelector('h1').textContent") == "model.toml"


def test_a_model_is_built_from_nothing_and_tried(opened):
    page = opened("")
    page.browser.evaluate("document.querySelector('nav .add').click()")
    page.settled()
    page.press("+ Body")
    page.press("+ Frame")
    page.choose("bodies/body2")
    page.type("rpy_deg", "joints", "body2_joint", "placement", "turn")
    page.type("90", "joints", "body2_joint", "placement", "rpy_deg", 0)
    page.type("<img src=x onerror=window.hacked=1>", "bodies", "body2", "")
    model = page.editor.document.model
    assert [body.name for body in model.bodies] == ["body1", "<img src=x onerror=window.hacked=1>"]
    np.testing.assert_allclose(model.joints[1].placement.pose().rotation[:, 1], [0, 0, 1], atol=1e-12)
    assert page.browser.evaluate("window.hacked || null") is None
    # sliders move the new joints
    slider = "document.querySelectorAll('.sliders input')[0]"
    page.browser.evaluate(f"{slider}.value = 0.5; {slider}.dispatchEvent(new Event('input'))")
    moved = page.browser.evaluate("[...alembert.current.stage.matrices[1].elements].slice(12, 15)")
    expected = model.frame_pose([0.5, 0.0], model.bodies[1].name).translation
    np.testing.assert_allclose(moved, expected, atol=1e-6)
    page.press("+ Shape")
    name = model.bodies[1].name
    page.type("box", "bodies", name, "visuals", 0, "shape")
    page.type("0.3", "bodies", name, "visuals", 0, "box", "size", 2)
    page.type("#ff0000", "bodies", name, "visuals", 0, "color")
    (visual,) = page.editor.document.model.bodies[1].visuals
    assert visual == al.Visual(al.Box((0.1, 0.1, 0.3)), color=(1.0, 0.0, 0.0, 1.0))
    page.press("Remove this shape")
    assert page.editor.document.model.bodies[1].visuals == ()
    page.type("no formula (", "joints", "body2_joint", "axis", 0)
    assert len(page.errors()) == 1
    page.press("Undo")
    page.press("Remove")
    assert page.editor.document.model.nv == 1
    removed = page.browser.evaluate("document.querySelector('.status').textContent")
    page.choose("/")
    page.browser.evaluate("document.querySelector('.form .add').click()")
    page.settled()
    page.type("m1", "parameters", "parameter1", "")
    page.type("2.5", "parameters", "m1")
    assert page.editor.document.model.parameter_values == {"m1": 2.5}
    assert removed == "Removed with it: joint body2_joint, frame frame1."
    page.press("File")
    area = "document.querySelector('.code textarea')"
    page.browser.evaluate(f"{area}.value = {area}.value.replace('-9.81', '-1.62')")
    page.press("Apply")
    assert page.editor.document.model.gravity[2] == -1.62
    page.browser.evaluate(f"{area}.value += '['")
    page.press("Apply")
    assert "not valid TOML" in page.browser.evaluate("document.querySelector('.status').textContent")


def test_a_file_with_errors_is_opened_and_mended(opened):
    page = opened("", BROKEN)
    assert page.browser.evaluate("!!window.alembert") is False  # no picture yet
    assert "There will be a picture" in page.browser.evaluate("document.querySelector('.stage').textContent")
    page.browser.evaluate("document.querySelector('.problem-line').click()")
    assert any(
        "mass is -2, expected a positive number" in text or "No joint" in text for text in page.errors()
    )
    page.choose("bodies/b")
    page.press("+ Joint")
    page.choose("bodies/a")
    page.type("2", "bodies", "a", "inertia", "point", "mass")
    assert page.editor.document.problems == ()
    assert page.editor.document.model.joint("b_joint").child == "b"
    page.browser.wait_for("!!window.alembert")
    assert page.browser.evaluate("document.querySelectorAll('.form').length") == 1
    assert page.browser.evaluate("document.querySelectorAll('.sliders input').length") == 2


def test_bodies_are_placed_and_pulled_by_the_mouse(opened):
    page = opened("fourbar")
    text = page.path.read_text()
    x, y = page.pixel("coupler")
    before = np.array(page.browser.evaluate("[...alembert.current.x]"))
    page.browser.drag((x, y), *((x - 3 * k, y - 2 * k) for k in range(2, 11, 2)))
    after = np.array(page.browser.evaluate("[...alembert.current.x]"))
    assert np.max(np.abs(after - before)) > 0.02
    model = page.editor.document.model
    # the page closes loops to 1e-7 of the length of a link
    assert np.max(np.abs(model.constraint_residual(after))) < 1e-6
    assert page.editor.document.text == text  # pulling tries joints, and changes nothing
    page.press("Place")
    x, y = page.pixel("rocker")
    page.browser.drag((x, y), *((x + 4 * k, y) for k in range(2, 11, 2)))
    page.settled()
    moved = page.editor.document.model.joint("pivot").placement.translation
    assert moved[0] > 1.2
    assert page.editor.document.before[-1].what == "place rocker"
    x, y = page.pixel("coupler")  # stands at a formula
    page.browser.drag((x, y), *((x + 4 * k, y) for k in range(2, 11, 2)))
    page.settled()
    assert "which dragging would replace" in page.browser.evaluate(
        "document.querySelector('.status').textContent"
    )
