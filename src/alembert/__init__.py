"""Alembert: computational control of articulated systems by recursive sweeps."""
