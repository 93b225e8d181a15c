"""Feet and hands that touch: found, keyed on their chains, and planted over a range of frames."""
