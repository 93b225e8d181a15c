"""Making, changing and taking away chains."""
