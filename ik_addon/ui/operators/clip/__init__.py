"""Operators that work on a whole clip."""
