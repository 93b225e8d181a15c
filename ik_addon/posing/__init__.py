"""Whole bodies in a user's hand: any bone is dragged, pins hold, and the body comes along."""
