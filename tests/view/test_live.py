"""The live viewer: what its sliders do, without a browser, and that it listens to this machine only."""

import socket
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import numpy as np
import pytest

import alembert as al
from alembert.errors import UnsupportedError
from alembert.view import window

pytest.importorskip("viser")


def test_sliders_move_the_model():
    model = al.library.arm7()
    with al.view(model, open_browser=False, port=18600) as viewer:
        assert viewer.url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(viewer.url, timeout=30) as answer:
            assert answer.status == 200
        sliders = {slider.name: (slider, handle) for slider, handle in viewer._control.handles}
        assert list(sliders) == list(model.speed_names)
        slider, handle = sliders["joint2"]
        assert (handle.min, handle.max) == (model.lower_limits[1], model.upper_limits[1])
        handle.value = 1.0
        viewer._control.changed(slider)
        q = viewer._control.q
        assert q[1] == pytest.approx(1.0)
        np.testing.assert_allclose(
            viewer.body_position("link7"), model.frame_pose(q, "link7").translation, atol=1e-12
        )
        viewer._control.reset()
        np.testing.assert_allclose(
            viewer.body_position("link7"),
            model.frame_pose(viewer._control.start, "link7").translation,
            atol=1e-12,
        )
        with pytest.raises(UnsupportedError, match="seek: the viewer shows a model at rest"):
            viewer.seek(1.0)
        assert "at http://127.0.0.1" in repr(viewer)
    assert "stopped" in repr(viewer)
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", urlsplit(viewer.url).port)) != 0


def four_bar():
    builder = al.ModelBuilder("four_bar")
    builder.body(
        "crank", al.Inertia.rod(1.0, (0, 0, 0), (1, 0, 0)), joint=al.Revolute((0, 1, 0)), joint_name="a"
    )
    builder.body(
        "coupler",
        al.Inertia.rod(1.0, (0, 0, 0), (2, 0, 0)),
        joint=al.Revolute((0, 1, 0)),
        joint_name="b",
        parent="crank",
        placement=(1, 0, 0),
    )
    builder.body(
        "rocker",
        al.Inertia.rod(1.0, (0, 0, 0), (1.5, 0, 0)),
        joint=al.Revolute((0, 1, 0)),
        joint_name="c",
        placement=(2.0, 0, 0),
    )
    builder.frame("coupler_end", "coupler", (2, 0, 0)).frame("rocker_end", "rocker", (1.5, 0, 0))
    return builder.loop("pin", al.Revolute((0, 1, 0)), "coupler_end", "rocker_end").build()


def test_loops_stay_closed_when_a_slider_moves():
    model = four_bar()
    start = model.assemble([-1.0, 0.8, -1.3]).q
    with al.view(model, start, open_browser=False, port=18610) as viewer:
        slider, handle = viewer._control.handles[0]
        handle.value = float(start[0] + 0.2)
        viewer._control.changed(slider)
        q = viewer._control.q
        assert np.max(np.abs(model.constraint_residual(q))) < 1e-9
        assert q[0] == pytest.approx(start[0] + 0.2, abs=1e-6)  # a slider has a step
        assert viewer._control.handles[2][1].value == pytest.approx(q[2], abs=1e-2)


def test_joints_follow_a_frame_that_is_dragged():
    model = al.library.arm7()
    q = np.array([0.3, 0.6, 0.0, -1.4, 0.0, 1.0, 0.0])
    with al.view(model, q, open_browser=False, port=18615) as viewer:
        reaching = viewer._control.reaching
        reaching.follow()  # nothing is chosen
        assert viewer._control.q is not None
        np.testing.assert_array_equal(viewer._control.q, q)
        reaching.choice.value = "tool"
        reaching.choose()
        start = np.array(reaching.handle.position)
        np.testing.assert_allclose(start, model.frame_pose(q, "tool").translation, atol=1e-12)
        reaching.handle.position = start + np.array([-0.1, 0.15, -0.05])
        reaching.follow()
        assert reaching.message.value == "reached"
        q = viewer._control.q
        # what `reach` was asked for: 1e-6
        np.testing.assert_allclose(
            model.frame_pose(q, "tool").translation, reaching.handle.position, atol=2e-6
        )
        assert np.all((q >= model.lower_limits) & (q <= model.upper_limits))
        handle = viewer._control.handles[1][1]
        assert handle.value == pytest.approx(q[1], abs=1e-2)  # a slider has a step
        reaching.handle.position = start + np.array([5.0, 0.0, 0.0])
        reaching.follow()
        assert reaching.message.value.startswith("out of reach: position of tool by ")
        viewer._control.reset()
        np.testing.assert_allclose(reaching.handle.position, start, atol=1e-12)
        reaching.turns.value = True
        reaching.choose()
        reaching.follow()
        assert reaching.message.value == "reached"
        reaching.choice.value = "nothing"
        reaching.choose()
        assert reaching.handle is None


def test_a_motion_has_a_timeline():
    model = al.library.satellite()
    run = al.simulate(model, model.neutral(), [0.3, 0.1, 0.2, 0, 0, 0, 1, 2, 3], duration=1.0)
    with al.view(run, open_browser=False, port=18620) as viewer:
        viewer.seek(1.0)
        expected = run.model.frame_pose(run.q[-1], "rotor_x").translation
        np.testing.assert_allclose(viewer.body_position("rotor_x"), expected, atol=1e-9)
        viewer.seek(0.0)
        viewer._control.toggle()
        for _ in range(200):
            if viewer._control.time > 0.02:
                break
            viewer._stopped.wait(0.02)
        assert viewer._control.time > 0.02
        viewer._control.slider.value = 0.5
        viewer._control.playing = False
        viewer._control._scrubbed()


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
        chromium.evaluate(  # open what is folded
            "for (const e of document.querySelectorAll('input[type=checkbox], .mantine-Paper-root *'))"
            " if (e.childElementCount === 0 && e.click) e.click()"
        )
        chromium.evaluate("new Promise(done => setTimeout(done, 300))")
        assert chromium.evaluate("window.hacked") is None
        assert chromium.evaluate("document.querySelectorAll('img[src=x]').length") == 0
    chromium.open("about:blank")
    chromium.messages.clear()  # what viser's own page has to say
    chromium.requests.clear()


# --- who may talk to it -------------------------------------------------------------------------------------


def connect(url, port, **headers):
    """A WebSocket client; what it is told first, or the status with which it is refused."""
    client = pytest.importorskip("websockets.sync.client")
    import viser
    from websockets.exceptions import InvalidStatus

    try:
        with client.connect(
            url,
            sock=socket.create_connection(("127.0.0.1", port), timeout=30),
            subprotocols=[f"viser-v{viser.__version__}"],
            **headers,
        ) as connection:
            return connection.recv(timeout=30)
    except InvalidStatus as error:
        return error.response.status_code


def test_only_its_own_page_may_talk_to_it():
    with al.view(al.library.pendulum(), open_browser=False, port=18630) as viewer:
        port = urlsplit(viewer.url).port
        own = viewer.url.replace("http:", "ws:").rstrip("/")
        origin = f"http://127.0.0.1:{port}"
        assert isinstance(connect(own, port, origin=origin), bytes)
        assert isinstance(connect(own, port), bytes)  # a program that was given the address
        assert isinstance(
            connect(own.replace("127.0.0.1", "localhost"), port, origin=f"http://localhost:{port}"), bytes
        )
        bare = f"ws://127.0.0.1:{port}"
        for url, sent in (
            (own, "http://example.com"),
            (own, f"https://127.0.0.1:{port}"),
            (own, f"http://127.0.0.1:{port + 1}"),
            (own, "null"),
            (
                own.replace("127.0.0.1", "example.com"),
                f"http://example.com:{port}",
            ),  # a name that points here
            (bare, origin),
            (f"{bare}/", None),
            (f"{bare}/{'x' * 22}", origin),
            (own[:-1], origin),
        ):
            assert connect(url, port, origin=sent) == 403, (url, sent)
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(f"GET /\xff\xfe/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode("latin-1"))
            assert b" 403 " in connection.recv(64)
        for url in (f"http://127.0.0.1:{port}/", viewer.url[:-2]):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(url, timeout=30)


def test_two_viewers_have_two_tokens():
    with (
        al.view(al.library.pendulum(), open_browser=False, port=18640) as one,
        al.view(al.library.pendulum(), open_browser=False, port=18650) as two,
    ):
        assert urlsplit(one.url).path != urlsplit(two.url).path
        for viewer in (one, two):
            with urllib.request.urlopen(viewer.url, timeout=30) as answer:
                assert answer.status == 200


def test_a_server_that_does_not_ask_the_guard_is_not_used(monkeypatch):
    from contextlib import nullcontext

    from alembert.view.served import Guard

    monkeypatch.setattr(Guard, "installed", lambda self: nullcontext())
    with pytest.raises(
        UnsupportedError, match="this version of viser cannot be told to refuse foreign pages"
    ):
        al.view(al.library.pendulum(), open_browser=False, port=18660)
