"""Chains whose joints turn freely."""
