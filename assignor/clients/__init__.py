"""One module a client: how our assignors are plugged into it. A client is imported only in its own module."""
