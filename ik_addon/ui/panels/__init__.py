"""The sub-panels of the tab."""
