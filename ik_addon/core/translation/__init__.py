"""Translations of everything that users read."""
