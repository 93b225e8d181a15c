"""What is solved, in which order: the structure of an armature with chains."""
