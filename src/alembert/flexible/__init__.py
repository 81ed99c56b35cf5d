"""Modal bodies from what engineers have: properties of beams."""

from alembert.flexible.beam import beam as beam
from alembert.flexible.stiffening import with_stiffening as with_stiffening

__all__ = ["beam", "with_stiffening"]
