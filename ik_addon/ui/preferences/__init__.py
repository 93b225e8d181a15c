"""What a user sets once for all files: the tab, the keys, how new chains are made, how the overlay looks."""
