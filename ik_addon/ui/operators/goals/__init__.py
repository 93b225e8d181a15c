"""Operators that move targets and poles."""
