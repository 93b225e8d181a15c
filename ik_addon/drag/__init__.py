"""Targets and poles in a user's hand."""
