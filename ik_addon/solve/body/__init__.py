"""Whole-body posing: the root is free, pins hold, and one joint goes where it is dragged."""
