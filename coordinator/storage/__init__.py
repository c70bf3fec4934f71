"""A directory that keeps the state of a cluster over restarts."""
