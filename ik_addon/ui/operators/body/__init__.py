"""Operators on whole bodies."""
