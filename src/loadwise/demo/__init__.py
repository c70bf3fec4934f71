"""The demo: a real skewed stream, every assignor in turn, and a page with the pictures."""
