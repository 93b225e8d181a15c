"""Solving while frames change and targets move."""
