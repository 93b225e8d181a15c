"""Whole bodies posed by hand: any bone is dragged, pins hold, and the body follows."""
