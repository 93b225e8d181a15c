"""Targets and poles that the add-on makes: empties or control bones."""
