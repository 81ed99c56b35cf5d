"""A person in the loop: what the page sends arrives at full deflection of each input, and silence is zero."""

import json
import urllib.request

import numpy as np
import pytest

import alembert as al
from alembert.deploy import loop
from alembert.errors import ArgumentError
from alembert.view.scene import body_poses


@pytest.fixture
def link():
    model = al.library.two_link()
    with al.deploy.BrowserLink(model, {"shoulder": 20.0, "elbow": 5}, open_browser=False) as running:
        yield running


def exchange(link, u):
    request = urllib.request.Request(f"{link.url}exchange", json.dumps({"u": u}).encode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def received(link):
    u = np.full(2, 7.0)
    link.receive(u)
    return u.tolist()


def test_commands_arrive_and_states_are_shown(link, monkeypatch):
    monkeypatch.setattr(loop, "SILENCE", 60.0)  # a busy machine
    assert received(link) == [0.0, 0.0]
    assert link.wait(0.0) is False
    exchange(link, [0.5, -3.0])
    assert link.wait(0.0) is True
    assert received(link) == [10.0, -5.0]
    for wrong in ([1.0], "x", [None, 1.0], [True], {}, [10**400, 0]):
        exchange(link, wrong)
    assert received(link) == [10.0, -5.0]
    monkeypatch.setattr(loop, "SILENCE", 0.0)
    assert received(link) == [0.0, 0.0]
    q = np.array([0.4, -0.7])
    link.send(3, 0.25, q, np.zeros(2))
    state = exchange(link, [0.0, 0.0])
    assert state["t"] == 0.25
    R, p = body_poses(link.model, q)
    poses = np.array(state["poses"]).reshape(-1, 12)
    np.testing.assert_allclose(poses[:, :9], R.reshape(-1, 9), atol=1e-6)  # seven digits are sent
    np.testing.assert_allclose(poses[:, 9:], p, atol=1e-6)
    assert "shoulder, elbow, at http://127.0.0.1:" in repr(link)


def test_the_loop_takes_its_inputs(link, monkeypatch):
    monkeypatch.setattr(loop, "SILENCE", 60.0)
    model = link.model.replace(gravity=(0.0, 0.0, 0.0))
    exchange(link, [0.01, 0.0])
    now = iter(np.arange(1, 10_000) * 3e-4)
    report = al.deploy.realtime(
        model, duration=0.1, rate=200, inputs=list(link.names), link=link, clock=lambda: float(next(now))
    )
    assert report.v[0] > 0
    with pytest.raises(
        ArgumentError, match=r"has the inputs shoulder, elbow, expected 1; give realtime inputs="
    ):
        al.deploy.realtime(model, duration=0.1, inputs=["elbow"], link=link)


def test_what_is_refused():
    model = al.library.pendulum()
    with pytest.raises(ArgumentError, match=r"BrowserLink: largest is {}, expected inputs by name"):
        al.deploy.BrowserLink(model, {})
    with pytest.raises(
        ArgumentError, match="BrowserLink: largest of 'pivot' is -1, expected a positive number"
    ):
        al.deploy.BrowserLink(model, {"pivot": -1})


def test_keys_sticks_and_the_picture(link, chromium):
    chromium.messages.clear()
    chromium.open(link.url)
    chromium.wait_for("!!window.pilot && !!pilot.clock.textContent")
    assert "N m" in chromium.evaluate("pilot.rows[0].output.textContent")
    key = "document.dispatchEvent(new KeyboardEvent('%s', { key: '%s' }))"
    chromium.evaluate(key % ("keydown", "ArrowRight"))
    assert chromium.evaluate("pilot.deflections()") == [1, 0]
    chromium.evaluate(key % ("keydown", "ArrowDown"))
    assert chromium.evaluate("pilot.deflections()") == [1, -1]
    chromium.evaluate(key % ("keyup", "ArrowRight") + ";" + key % ("keyup", "ArrowDown"))
    chromium.evaluate(
        "navigator.getGamepads = () => [null, { connected: true, id: '<b>pad</b>', axes: [0.5, 0.25, 0.02] }]"
    )
    assert chromium.evaluate("pilot.deflections()") == [0.5, -0.25]
    assert chromium.evaluate("pilot.pad.textContent") == "gamepad: <b>pad</b>"
    q = np.array([0.4, -0.7])
    link.send(1, 0.75, q, np.zeros(2))
    chromium.wait_for("pilot.t === 0.75")
    shown = chromium.evaluate("[...pilot.player.stage.matrices[1].elements].slice(12, 15)")
    np.testing.assert_allclose(shown, body_poses(link.model, q)[1][1], atol=1e-6)
    link.stop()
    chromium.wait_for("pilot.status.textContent === 'The program has ended.'")
    chromium.open("about:blank")
    assert all("Failed to load resource" in text for text in chromium.messages)
    chromium.messages.clear()
    chromium.requests.clear()
