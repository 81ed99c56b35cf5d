"""Who the editor answers, and how it refuses."""

import http.client
import json
import threading
from urllib.parse import urlsplit

import pytest

from alembert.editor import Editor, ModelDocument, edit
from alembert.errors import ArgumentError
from alembert.view.served import _Handler, _Server


@pytest.fixture
def editor(tmp_path):
    with edit(tmp_path / "arm.toml", open_browser=False) as running:
        yield running


def ask(editor, path, method="GET", body=None, **headers):
    """Status, headers and content of an answer; `path` begins behind the token."""
    place = urlsplit(editor.url)
    connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=30)
    own = {"Host": place.netloc, **{key.replace("_", "-"): value for key, value in headers.items()}}
    connection.request(method, path if path.startswith("//") else place.path + path, body, own)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def act(editor, **action):
    status, _, content = ask(editor, "act", "POST", json.dumps(action))
    assert status == 200
    return json.loads(content)


def test_only_its_own_page_is_answered(editor):
    netloc = urlsplit(editor.url).netloc
    port = urlsplit(editor.url).port
    assert editor.url.startswith("http://127.0.0.1:")
    for path in ("", "state", "forms", "editor.js", "three.min.js", "page.css"):
        status, headers, _ = ask(editor, path)
        assert status == 200
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert ask(editor, "state", Origin=f"http://{netloc}")[0] == 200
    for wrong in (
        {"Origin": "http://example.com"},
        {"Origin": "null"},
        {"Origin": f"http://127.0.0.1:{port + 1}"},
        {"Host": f"example.com:{port}"},
        {"Host": "[::1"},
    ):
        assert ask(editor, "state", **wrong)[0] == 403, wrong
        assert ask(editor, "act", "POST", '{"do": "add", "section": "bodies"}', **wrong)[0] == 403, wrong
    for path in ("//", "//state", f"//{'x' * 22}/state", "//../state"):
        assert ask(editor, path)[0] == 403
    assert b"a token, which is missing here" in ask(editor, "//state")[2]
    assert editor.document.data.get("bodies") is None


def test_what_it_does_not_know_is_refused(editor):
    assert ask(editor, "../pyproject.toml")[0] == 404
    assert ask(editor, "guard.py")[0] == 404
    assert ask(editor, "act", "POST", "[1]")[0] == 400
    assert ask(editor, "act", "POST", "{")[0] == 400
    assert ask(editor, "state", "POST", "{}")[0] == 400
    assert ask(editor, "act", "POST", "{}", Content_Length="1000000000000")[0] == 413
    assert ask(editor, "act", "POST", "{}", Content_Length="\u00b2")[0] == 413
    assert ask(editor, "act", "POST", "[" * 100_000)[0] == 400
    assert "there is no action '3'" in act(editor, do=3)["error"]
    assert "there is no action " in act(editor, do=["x"])["error"]
    assert "there is no action 'ad'; did you mean 'add'?" in act(editor, do="ad")["error"]
    assert act(editor, do="add", sectoin="bodies")["error"].startswith("add: ")
    assert act(editor, do="undo")["error"] == "undo: there is nothing to undo"


def test_hostile_actions_are_told_and_change_nothing(editor):
    """What is nested deeply, named at length, or larger than a float: one sentence each, and the text as it was."""
    act(editor, do="add", section="bodies")
    before = editor.document.text
    deep = "[" * 3000 + "]" * 3000
    put = {"put": ["gravity"], "toml": deep}
    for action, told in (
        ({"do": "text", "text": f"a = {deep}"}, "nested"),
        ({"do": "text", "text": "a." * 3000 + "a = 1"}, "nested"),
        ({"do": "change", "changes": [put]}, "nested without end"),
        ({"do": "change", "changes": [{"put": ["a"] * 3000, "value": 1}]}, "nested too deeply"),
        ({"do": "save", "name": "n" * 400 + ".toml"}, "File name too long"),
        ({"do": "move", "body": "body1", "shift": [10**400, 0, 0]}, "too large"),
    ):
        found = editor.act(action)["error"]
        assert told in found, found[:200]
        assert editor.document.text == before


def test_an_action_is_answered_with_the_new_state(editor):
    state = act(editor, do="add", section="bodies")
    assert state["added"] == ["bodies", "body1"]
    assert state["summary"] == "1 body, 1 degree of freedom, 1 kg"
    assert state["undo"] == "add body body1"
    assert state["saved"] is False
    assert "builder.body(" in state["python"]
    assert len(state["scene"]["bodies"]) == 1
    late = act(editor, do="undo", version=0)
    assert late["error"] == "the model was changed in another window; this is how it is now"
    assert late["version"] == state["version"]
    done = act(editor, do="save", version=late["version"])
    assert done["wrote"].endswith("arm.toml")
    assert done["saved"] is True
    act(editor, do="change", changes=[{"put": ["joints", "body1_joint", "limits", "upper"], "typed": "inf"}])
    assert json.loads(ask(editor, "state")[2])["data"]["joints"]["body1_joint"]["limits"] == {"upper": "inf"}


def test_a_port_is_taken_once(editor):
    port = urlsplit(editor.url).port
    with pytest.raises(ArgumentError, match="build: port is 70000, expected a whole number, 0 to 65535"):
        Editor(ModelDocument.open(None), port=70000, open_browser=False)
    with pytest.raises(ArgumentError, match=f"build: port {port} cannot be used: "):
        Editor(ModelDocument.open(None), port=port, open_browser=False)
    with Editor(ModelDocument.open(None), open_browser=False) as other:
        assert other.url != editor.url
        assert "of a new model at http://127.0.0.1" in repr(other)
        assert other.state()["file"] == ""
    other.wait()
    assert "stopped" in repr(other)


def test_models_that_cannot_be_drawn_can_be_mended(editor):
    """A rod as long as numbers reach has no picture; requests that no page makes are told, and change nothing."""
    act(editor, do="add", section="bodies")
    far = [{"put": ["bodies", "body1", "inertia"], "toml": "{point={mass=1, position=[0, 0, 1e308]}}"}]
    answer = act(editor, do="change", changes=far)
    assert answer["scene"] is None
    assert answer["remarks"][0].startswith("the model cannot be drawn: ")
    for action, said in (
        ({"do": "move", "body": "body1", "shift": [1, 2]}, "move: "),
        ({"do": "change", "changes": "abc"}, "change: "),
        ({"do": "change", "changes": [{"put": ["name"]}]}, "change: 'value'"),
        ({"do": "change", "changes": [{"put": ["gravity", 0], "typed": "9" * 5000}]}, "change: Exceeds"),
    ):
        assert act(editor, **action)["error"].startswith(said)
    assert act(editor, do="undo")["scene"] is not None


@pytest.mark.parametrize(("error", "told"), [(ConnectionResetError, False), (ValueError, True)])
def test_a_page_that_is_closed_too_early_is_not_told(editor, capsys, monkeypatch, error, told):
    """Only what is a fault of ours comes to the terminal."""
    ended = threading.Event()

    def write(self, *_):
        raise error("gone")

    def close(self, request, shutdown=_Server.shutdown_request):
        shutdown(self, request)
        ended.set()

    monkeypatch.setattr(_Handler, "_send", write)
    monkeypatch.setattr(_Server, "shutdown_request", close)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(editor, "state")
    assert ended.wait(30)
    assert ("Traceback" in capsys.readouterr().err) is told
