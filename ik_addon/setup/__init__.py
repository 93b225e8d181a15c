"""Adding, changing and removing chains."""
