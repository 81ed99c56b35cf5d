import pytest


@pytest.fixture
def load(chromium):
    """Open a page, unless it is open, and wait for its first scene.

    At the end nothing must have gone wrong or left the machine.
    """
    chromium.messages.clear()
    chromium.requests.clear()

    def opened(path):
        if chromium.evaluate("location.href") != path.as_uri():
            chromium.open(path)
        chromium.wait_for("!!window.alembert")
        assert chromium.evaluate("alembert.current.problem") is None
        return chromium

    yield opened
    assert chromium.messages == []
    assert chromium.requests == []
