"""The operators behind the buttons: thin wrappers that report what they did or what is wrong."""
