"""Posing a whole body: a free root, pins that hold, and one joint that goes where it is dragged."""
