"""What other programs take: the deform skeleton alone, with its motion in keys."""
