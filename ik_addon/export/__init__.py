"""For other programs: the deform skeleton alone, with its motion as keys."""
