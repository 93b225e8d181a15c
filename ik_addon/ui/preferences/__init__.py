"""The add-on's preferences, shared by all files: the tab, shortcuts, defaults for new chains, overlay colors."""
