"""Chains and trees whose joints have limits, or several goals."""
