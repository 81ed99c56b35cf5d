"""The command `alembert`: thin, and quick to start."""

# each module adds its commands, in the order in which the help lists them
from alembert.cli import cache as _cache  # noqa: F401
from alembert.cli import files as _files  # noqa: F401
from alembert.cli import schema as _schema  # noqa: F401
from alembert.cli import simulation as _simulation  # noqa: F401
from alembert.cli.app import app as app
from alembert.cli.app import main as main
