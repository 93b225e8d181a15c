"""The buttons: thin, each says in its report what it did or what is wrong."""
