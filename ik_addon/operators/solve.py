"""Operators on chains."""
CLASSES = ()
