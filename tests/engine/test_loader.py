"""What the user sees of compiling: a line when it takes long."""

import io
import time
from contextlib import redirect_stderr

import pytest

from alembert.engine import loader


class Terminal(io.StringIO):
    def isatty(self):
        return True


def wait_for(stream, text, patience=10.0):
    until = time.monotonic() + patience
    while text not in stream.getvalue() and time.monotonic() < until:
        time.sleep(0.005)
    assert text in stream.getvalue()


def test_a_long_compile_says_so_and_wipes_the_line():
    with redirect_stderr(Terminal()) as terminal, loader.patience("forward_dynamics", delay=0.01):
        wait_for(terminal, "alembert: compiling forward_dynamics, once ...")
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_the_line_goes_when_compiling_fails():
    with redirect_stderr(Terminal()) as terminal, pytest.raises(KeyError), loader.patience("f", delay=0.01):
        wait_for(terminal, "compiling f")
        raise KeyError
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_short_compile_says_nothing():
    with redirect_stderr(Terminal()) as terminal, loader.patience("f", delay=60.0):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("stream", [None, io.StringIO()], ids=["none", "file"])
def test_only_terminals_are_told(stream):
    with redirect_stderr(stream), loader.patience("f", delay=0.0):
        time.sleep(0.05)
    assert stream is None or stream.getvalue() == ""


def test_a_line_for_files_where_progress_is_asked_for():
    with redirect_stderr(io.StringIO()) as stream, loader.spoken(), loader.patience("f", delay=0.01):
        wait_for(stream, "alembert: compiling f, once ...\n")
    assert "\r" not in stream.getvalue()
