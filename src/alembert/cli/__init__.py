"""The command `alembert`: thin, and quick to start."""

from alembert.cli.app import app as app
from alembert.cli.app import main as main
