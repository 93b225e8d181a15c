"""Making, changing, mirroring, converting and removing chains, and their controls."""
