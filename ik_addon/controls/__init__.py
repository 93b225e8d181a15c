"""Targets and poles made by the add-on: empties or control bones."""
