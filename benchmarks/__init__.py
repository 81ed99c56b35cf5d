"""Measurements against other programs, side by side in one run: `python -m benchmarks` (`make bench`)."""
