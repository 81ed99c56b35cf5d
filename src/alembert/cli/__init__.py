"""The command `alembert`: thin, and quick to start."""

# ruff: noqa: F401, I001  (each module adds its commands, in the order in which the help lists them)
from alembert.cli import files as _files
from alembert.cli import tasks as _tasks
from alembert.cli import verify as _verify
from alembert.cli import demo as _demo
from alembert.cli.app import app as app
from alembert.cli.app import main as main
