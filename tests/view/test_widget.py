"""Widgets: Python and the page have the same joints, whichever moves them."""

import json

import numpy as np
import pytest

import alembert as al
from alembert import ArgumentError, UnsupportedError
from alembert.view import page, window

pytest.importorskip("anywidget")


@pytest.fixture(scope="module")
def model():
    """A ball on a slide: coordinates that add, and a quaternion."""
    builder = al.ModelBuilder("ball")
    builder.body("cart", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="slide")
    builder.body("ball", al.Inertia.sphere(1.0, 0.1), joint=al.Spherical(), joint_name="ball", parent="cart")
    return builder.build()


def test_joints_are_pythons_and_the_pages(model):
    q0 = model.random_configuration(3)
    widget = al.view.widget(model, q0, height=300)
    np.testing.assert_allclose(widget.q, q0, atol=1e-15)
    heard = []
    widget.on_move(heard.append)
    widget.set_state({"x": [0.3, 0.1, -0.2, 0.4]})  # as a page does
    expected = np.concatenate([[0.3], model.integrate(q0, [0.0, 0.1, -0.2, 0.4])[1:]])
    np.testing.assert_allclose(widget.q, expected, atol=1e-14)
    np.testing.assert_allclose(heard, [expected], atol=1e-14)
    q = model.random_configuration(4)
    widget.q = q
    np.testing.assert_allclose(np.abs(widget.q), np.abs(q), atol=1e-12)  # q and -q are one rotation
    assert widget.height == 300
    assert "framed" in widget.page
    with pytest.raises(ArgumentError, match=r"widget: q has shape \(2,\), expected \(5,\)"):
        widget.q = [1.0, 2.0]


def test_what_is_refused(monkeypatch):
    boom = al.ModelBuilder("boom")
    beam = al.flexible.beam(length=2.0, rhoA=1.2, EI_z=1.4e2, bending_y=1)
    boom.body("boom", beam, joint=al.Revolute())
    with pytest.raises(UnsupportedError, match="'boom' has bodies that deform"):
        al.view.widget(boom.build())
    still = al.ModelBuilder("still").body("post", al.Inertia.point(1.0), joint=al.Fixed()).build()
    with pytest.raises(UnsupportedError, match="'still' has no joint that moves"):
        al.view.widget(still)
    monkeypatch.setattr(window.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"pip install 'alembert\[notebook\]'"):
        al.view.widget(still)


HARNESS = """<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,"><div id="el"></div>
<script type="module">
WIDGET
const values = DATA, listeners = [];
window.sent = [];
const model = {
  get: (name) => values[name], set: (name, x) => { values[name] = x; },
  save_changes: () => { window.sent.push([...values.x]); listeners.forEach((f) => f()); },
  on: (_, f) => listeners.push(f), off: () => {},
};
render({ model, el: document.getElementById("el") });
window.put = (x) => { values.x = x; listeners.forEach((f) => f()); };
</script>"""


def test_a_browser_moves_both_ways(chromium, tmp_path):
    """The script of the widget with a model of joints in the place of the notebook's."""
    widget = al.view.widget(al.library.two_link())
    script = page.asset("widget.js")
    assert '"sandbox", "allow-scripts allow-downloads"' in script
    script = script.replace("allow-scripts", "allow-scripts allow-same-origin")  # to look inside, here
    script = script.replace("export default", "const widget =")
    data = json.dumps({"page": widget.page, "height": 400, "x": []}).replace("<", "\\u003c")
    path = tmp_path / "harness.html"
    path.write_text(HARNESS.replace("WIDGET", script).replace("DATA", data), encoding="utf-8")
    chromium.messages.clear()
    chromium.open(path)
    chromium.wait_for("window.sent.length > 0")  # the page has told where its joints are
    inside = "document.querySelector('iframe').contentWindow.alembert.current"
    chromium.evaluate("put([0.5, -0.25])")
    chromium.wait_for(f"{inside}.x[0] === 0.5 && {inside}.x[1] === -0.25")
    chromium.evaluate("put([1])")  # not as many as there are: not heard
    chromium.evaluate(f"{inside}.move(1, 0.75)")
    chromium.wait_for("JSON.stringify(window.sent.at(-1)) === '[0.5,0.75]'")
    assert all("escape its sandboxing" in text for text in chromium.messages)  # of the change above
