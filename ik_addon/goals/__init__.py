"""Targets and poles, as they are placed, keyed and taken from one space to another."""
