"""The command line: whole files baked, planted and exported, with reports."""
