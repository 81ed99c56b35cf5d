"""The live viewer: what its program says reaches the page, and it listens to this machine only."""

import http.client
import json
import socket
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import numpy as np
import pytest

import alembert as al
from alembert.errors import ArgumentError, UnsupportedError
from alembert.view import window


def asked(viewer, name):
    """What a page gets that asks for it."""
    with urllib.request.urlopen(viewer.url + name, timeout=30) as answer:
        assert answer.status == 200
        return answer.read().decode()


def test_a_configuration_reaches_the_page():
    model = al.library.arm7()
    with al.view(model, open_browser=False, port=18600) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:")
        assert '<script defer src="connected.js">' in asked(viewer, "")
        data = json.loads(asked(viewer, "scenes"))
        assert [s["name"] for s in data["scenes"][0]["posing"]["sliders"]] == list(model.speed_names)
        assert json.loads(asked(viewer, "wanted")) == {"number": 0}
        q = np.array([0.3, 0.6, 0.0, -1.4, 0.0, 1.0, 0.0])
        viewer.set(q)
        wanted = json.loads(asked(viewer, "wanted"))
        assert wanted["number"] == 1
        np.testing.assert_allclose(wanted["x"], q, atol=1e-15)
        poses = np.array(wanted["poses"]).reshape(-1, 12)
        # pages have 7 digits
        for row, body in zip(poses, data["scenes"][0]["bodies"], strict=True):
            X = model.frame_pose(q, body)
            np.testing.assert_allclose(row, [*X.rotation.ravel(), *X.translation], atol=1e-6)
        with pytest.raises(ArgumentError, match=r"q has shape \(2,\)"):
            viewer.set([0.1, 0.2])
        with pytest.raises(UnsupportedError, match="seek: the viewer shows a model at rest"):
            viewer.seek(1.0)
        assert "at http://127.0.0.1" in repr(viewer)
        assert viewer.url in viewer._repr_html_()
    assert "stopped" in repr(viewer)
    assert viewer._repr_html_() == "<p>Viewer of &#x27;arm7&#x27; stopped</p>"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", urlsplit(viewer.url).port)) != 0


def test_the_page_goes_where_the_program_says(chromium):
    """Sliders and picture of a model, a ball among its joints; the time of a motion; the first of several scenes."""
    builder = al.ModelBuilder("ball")
    builder.body("cart", al.Inertia.point(1.0), joint=al.Prismatic((1, 0, 0)), joint_name="slide")
    builder.body("ball", al.Inertia.sphere(1.0, 0.1), joint=al.Spherical(), joint_name="ball", parent="cart")
    model = builder.build()
    start = model.random_configuration(3)
    with al.view(model, start, open_browser=False, port=18610) as viewer:
        chromium.open(viewer.url)
        chromium.wait_for("!!window.alembert")
        assert chromium.evaluate("alembert.current.problem") is None
        q = model.integrate(start, [0.2, 0.1, -0.2, 0.4])
        viewer.set(q)
        chromium.wait_for("Math.abs(alembert.current.x[3] - 0.4) < 1e-12")
        np.testing.assert_allclose(
            chromium.evaluate("[...alembert.current.x]")[1:], [0.1, -0.2, 0.4], atol=1e-12
        )
        # as sliders alone would have posed it, to the 7 digits of what was sent
        drawn, own = (
            chromium.evaluate(f"{pose}alembert.current.stage.body(1).elements")
            for pose in ("", "alembert.current.pose(), ")
        )
        np.testing.assert_allclose(drawn, own, atol=1e-6)
    linear = al.linearize(al.library.acrobot(), [-np.pi / 2, 0.0])
    with al.view(linear.modes(), open_browser=False, port=18620) as viewer:
        chromium.open(viewer.url)
        chromium.wait_for("!!window.alembert")
        assert chromium.evaluate("document.querySelectorAll('[role=tab]').length") == 2
        viewer.seek(0.5)
        chromium.wait_for("alembert.current.time === 0.5")
        with pytest.raises(ArgumentError, match="seek: t is nan, expected a time in seconds"):
            viewer.seek(float("nan"))
        viewer.stop()
        chromium.wait_for(
            "document.querySelector('header').innerText.includes('The program has ended; the picture stays.')"
        )
    chromium.open("about:blank")
    chromium.messages.clear()  # that the program has ended
    chromium.requests.clear()


def test_what_is_shown_and_what_is_not():
    model = al.library.two_link()
    run = al.simulate(model, [0.1, 0.2], duration=0.1, step=0.01)
    with al.view([run, model], open_browser=False, port=18630) as viewer:
        assert [bool(s["motion"]) for s in json.loads(asked(viewer, "scenes"))["scenes"]] == [True, False]
    with pytest.raises(ArgumentError, match="set: the viewer was stopped"):
        viewer.set([0.1, 0.2])
    with al.view(model, {"elbow": 0.3}, open_browser=False, port=18640) as viewer:
        viewer.set({"shoulder": 0.2})
        assert json.loads(asked(viewer, "wanted"))["x"] == [0.2, 0.0]
    for thing, q, message in (
        (run, [0.1, 0.2], "view: q is given, but what is shown is not one model"),
        (model, model.assemble([0.1, 0.2]), "view: q is State.*; they are its .q and .v"),
        (al.linearize(model, [0.0, 0.0]), None, r"LinearModel is neither .*; its modes\(\) move"),
    ):
        with pytest.raises(ArgumentError, match=message):
            al.view(thing, q, open_browser=False)


def test_in_a_notebook_the_page_is_inline(monkeypatch):
    model = al.library.pendulum()
    monkeypatch.setattr(window, "in_notebook", lambda: True)
    shown = al.view(model)
    text = shown._repr_html_()
    assert text.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts' in text
    assert "allow-same-origin" not in text
    assert "<script" not in text  # escaped, as an attribute must be
    assert "MB of HTML" in repr(shown)
    shown.stop()


def test_names_run_no_script_in_the_live_viewer(chromium):
    hostile = [
        "</script><script>window.hacked=1</script>",
        "\"'><img src=x onerror=window.hacked=1>",
        "a/b/../c\u2028",
    ]
    builder = al.ModelBuilder(hostile[0])
    for k, name in enumerate(hostile):
        builder.body(
            name,
            al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)),
            joint=al.Revolute((0, 1, 0)),
            joint_name=name,
            parent=hostile[k - 1] if k else "world",
        )
        builder.sensor(name, "gyro", name)
    run = al.simulate(builder.build(), [0.1, 0.2, 0.3], duration=0.2, efforts=[1.0, 0.0, 0.0])
    with al.view(run, open_browser=False, port=18630) as viewer:
        chromium.open(viewer.url)
        chromium.wait_for("document.body.textContent.includes('torques [N m]')")
        chromium.evaluate("for (const e of Object.values(alembert.current.switches)) e.click()")
        chromium.evaluate("new Promise(done => setTimeout(done, 300))")
        assert chromium.evaluate("window.hacked") is None
        assert chromium.evaluate("document.querySelectorAll('img[src=x]').length") == 0
    chromium.open("about:blank")
    chromium.messages.clear()  # that the program has ended
    chromium.requests.clear()


# --- who may talk to it -------------------------------------------------------------------------------------


def status(viewer, path, **headers):
    """Of the answer to a request with these headers alone."""
    connection = http.client.HTTPConnection("127.0.0.1", urlsplit(viewer.url).port, timeout=30)
    connection.putrequest("GET", path, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    with connection.getresponse() as answer:
        return answer.status


def test_only_its_own_page_may_talk_to_it():
    with al.view(al.library.pendulum(), open_browser=False, port=18630) as viewer:
        port = urlsplit(viewer.url).port
        host, own = f"127.0.0.1:{port}", urlsplit(viewer.url).path
        for name in ("", "scenes", "wanted", "connected.js"):
            assert status(viewer, own + name, Host=host, Origin=f"http://{host}") == 200
            assert status(viewer, own + name, Host=host) == 200  # a program that was given the address
            assert (
                status(viewer, own + name, Host=f"localhost:{port}", Origin=f"http://localhost:{port}") == 200
            )
            for path, given, origin in (
                (own, host, "http://example.com"),
                (own, host, f"https://{host}"),
                (own, host, f"http://127.0.0.1:{port + 1}"),
                (own, host, "null"),
                (own, f"example.com:{port}", f"http://example.com:{port}"),  # a name that points here
                ("/", host, f"http://{host}"),
                (f"/{'x' * 22}/", host, f"http://{host}"),
                (own[:-2] + "/", host, f"http://{host}"),
            ):
                assert status(viewer, path + name, Host=given, Origin=origin) == 403, (path, given, origin)
        assert status(viewer, own + "page.html", Host=host) == 404
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(f"GET /\xff\xfe/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode("latin-1"))
            assert b" 403 " in connection.recv(64)
        for url in (f"http://{host}/", viewer.url[:-2]):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(url, timeout=30)


def test_two_viewers_have_two_tokens():
    with (
        al.view(al.library.pendulum(), open_browser=False, port=18640) as one,
        al.view(al.library.pendulum(), open_browser=False, port=18650) as two,
    ):
        assert urlsplit(one.url).path != urlsplit(two.url).path
        for viewer in (one, two):
            assert asked(viewer, "").startswith("<!DOCTYPE html>")
