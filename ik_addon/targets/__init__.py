"""Targets and poles: dragging, snapping, switching their space, switching between IK and FK."""
