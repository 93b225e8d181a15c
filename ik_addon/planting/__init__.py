"""Contacts of feet and hands: found, keyed on their chains, and planted over a range of frames."""
