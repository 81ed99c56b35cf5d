import pytest

from alembert.view import browser


@pytest.fixture(scope="session")
def chromium():
    """One headless browser for all tests."""
    if browser.find() is None:
        pytest.skip("pages are looked at in Chromium or Chrome, and none of them is installed")
    with browser.Browser(width=720, height=480, timeout=120) as running:
        yield running


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
