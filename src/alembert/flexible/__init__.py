"""Modal bodies from what engineers have: properties of beams."""

from alembert.flexible.beam import beam as beam

__all__ = ["beam"]
