"""The panels in the sidebar."""
