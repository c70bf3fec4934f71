"""Where loads come from: sources that are read outside `assign`, whose newest snapshot the assignor is given."""
