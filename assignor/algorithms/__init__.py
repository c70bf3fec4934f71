"""The algorithms, each a module with one `Assignor`: pure functions of a `GroupSnapshot`."""
