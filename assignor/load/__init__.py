"""Load sources: they are read outside `assign`, which uses their newest snapshot."""
