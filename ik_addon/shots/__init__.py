"""Files baked from the command line: what `ik_bake` does with one shot, or with many."""
