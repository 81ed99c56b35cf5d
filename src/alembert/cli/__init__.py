"""The command `alembert`: thin, and quick to start."""

from alembert.cli import simulation as _simulation  # noqa: F401  (adds its command)
from alembert.cli.app import app as app
from alembert.cli.app import main as main
